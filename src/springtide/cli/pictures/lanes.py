"""What all renderers need about the lanes of a forecast: spans, heights of values, groups of firings, collisions."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from springtide.apis.forecast import LaneChange, LaneStyle
from springtide.cli.pictures.formatting import format_span, format_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from springtide.apis.forecast import Forecast, Lane, LaneCollision, LaneValue
    from springtide.cli.pictures.time_axis import ZoneClock


@dataclass(frozen=True, slots=True)
class Span:
    """A period in which a lane has one value."""

    start: int
    end: int
    value: LaneValue
    because: str


@dataclass(frozen=True, slots=True)
class DenseSpans:
    """Adjacent spans that are too short to be drawn one by one."""

    start: int
    end: int
    spans: tuple[Span, ...]


def lane_spans(lane: Lane, start: int, until: int) -> Iterator[Span]:
    """Split a lane into its spans within ``[start, until)``; the first has the current value."""
    points = chain((LaneChange(start, lane.current, lane.because),), lane.changes, (LaneChange(until, None, ""),))
    for point, following in pairwise(points):
        begin, end = max(point.at, start), min(following.at, until)
        if end > begin:
            yield Span(begin, end, point.value, point.because)


def merge_short_spans(spans: Iterable[Span], shortest: int) -> list[Span | DenseSpans]:
    """Merge adjacent spans that last less than ``shortest`` seconds."""
    merged: list[Span | DenseSpans] = []
    run: list[Span] = []

    def close() -> None:
        if len(run) == 1:
            merged.append(run[0])
        elif run:
            merged.append(DenseSpans(run[0].start, run[-1].end, tuple(run)))
        run.clear()

    for span in spans:
        if span.end - span.start < shortest:
            run.append(span)
        else:
            close()
            merged.append(span)
    close()
    return merged


def value_at(lane: Lane, at: int) -> tuple[LaneValue, str]:
    """Return the value at a time and its reason; before the first change, the current value."""
    place = bisect_right(lane.changes, at, key=_instant)
    if place == 0:
        return lane.current, lane.because
    change = lane.changes[place - 1]
    return change.value, change.because


def next_change_after(lane: Lane, now: int) -> LaneChange | None:
    """Find the first change after now, within the range of the forecast or beyond."""
    place = bisect_right(lane.changes, now, key=_instant)
    if place < len(lane.changes):
        return lane.changes[place]
    return lane.next if lane.next is not None and lane.next.at > now else None


def _instant(change: LaneChange) -> int:
    return change.at


FULL_HEIGHT: Final = 1000
"""The height of the largest value of a lane. Heights are integers: a picture is the same on any machine."""

_TALLEST_LIMIT: Final = 700  # a limiting budget is drawn visibly lower than an unlimited one
_SHORTEST_LIMIT: Final = 150  # and visibly higher than a blocking one


def is_unset(lane: Lane, value: LaneValue) -> bool:
    """Return whether a level has no value, as rules have not set one yet."""
    return lane.style is LaneStyle.LEVEL and value is None


def height_scale(lane: Lane) -> Callable[[LaneValue], int]:
    """Choose the height of each value of a lane, from 0 to `FULL_HEIGHT`."""
    values = [lane.current, *(change.value for change in lane.changes)]
    if lane.style is LaneStyle.BUDGET:
        return _budget_scale(values)
    most = max(lane.most or 0, *map(_count, values)) or 1
    return lambda value: _count(value) * FULL_HEIGHT // most


def is_blocked(lane: Lane, value: LaneValue) -> bool:
    """Return whether the value of a budget allows no disruption."""
    return lane.style is LaneStyle.BUDGET and any(amount == 0 for _, amount in _limits(value))


def is_ever_blocked(lane: Lane) -> bool:
    """Return whether a lane is a budget that allows no disruption at some time."""
    return is_blocked(lane, lane.current) or any(is_blocked(lane, change.value) for change in lane.changes)


def describe_value(lane: Lane, value: LaneValue, *, unicode: bool = True) -> str:
    """Write a value of a lane in full; with "(blocked)" where a budget allows no disruption."""
    if is_unset(lane, value):
        return "not set"
    text = format_value(value, unicode=unicode)
    return f"{text} (blocked)" if is_blocked(lane, value) else text


def _count(value: LaneValue) -> int:
    return max(0, value) if isinstance(value, int) else 0


def _budget_scale(values: Iterable[LaneValue]) -> Callable[[LaneValue], int]:
    # Counts and percentages cannot be compared while the number of nodes is unknown: each has its own scale.
    most: dict[str, int] = {}
    for value in values:
        for unit, amount in _limits(value):
            most[unit] = max(most.get(unit, 1), amount)

    def height(value: LaneValue) -> int:
        return min((_limit_height(amount, most[unit]) for unit, amount in _limits(value)), default=FULL_HEIGHT)

    return height


def _limit_height(amount: int, most: int) -> int:
    return max(_SHORTEST_LIMIT, amount * _TALLEST_LIMIT // most) if amount else 0


def _limits(value: LaneValue) -> Sequence[tuple[str, int]]:
    """Split the value of a budget into limits with units; none means unlimited."""
    match value:
        case bool() | None:
            return ()
        case int():
            return (("nodes", max(0, value)),)
        case str():
            unit, digits = ("%", value[:-1]) if value.endswith("%") else ("nodes", value)
            return ((unit, int(digits)),) if digits.isascii() and digits.isdigit() else ()
        case {"min": list() | tuple() as parts}:
            return tuple(limit for part in parts for limit in _limits(part))
        case _:
            return ()


def group_firings(changes: Iterable[LaneChange], nearest: int) -> list[tuple[LaneChange, ...]]:
    """Group changes that follow each other in less than ``nearest`` seconds."""
    groups: list[list[LaneChange]] = []
    for change in changes:
        if groups and change.at - groups[-1][-1].at < nearest:
            groups[-1].append(change)
        else:
            groups.append([change])
    return [tuple(group) for group in groups]


def firing_group_forms(group: Sequence[LaneChange]) -> tuple[str, ...]:
    """Write what a group of firings applies, and how often, in forms of decreasing length."""
    count = f"{len(group):,}×"
    steps = {later.at - earlier.at for earlier, later in pairwise(group)}
    even = len(group) > 2 and len(steps) == 1
    often = (f"every {format_span(steps.pop())} ({count})", count) if even else (count,)
    distinct = {id(change.value): change.value for change in group}  # the firings of a rule share one value
    values = {format_value(value) for value in distinct.values()}
    return often if len(values) > 1 else (f"{values.pop()}, {often[0]}", *often)


_LISTED_TIMES: Final = 3


@dataclass(frozen=True, slots=True)
class NumberedCollision:
    """A collision, with the number of its mark in the picture."""

    number: int
    """The same for collisions that differ only in their time."""
    start: int
    end: int
    when: str
    text: str
    drawn: bool
    """Whether it is in the range of the picture; if not, only the notes list it."""

    @property
    def sentence(self) -> str:
        """The time, and what collides."""
        return f"{self.when}: {self.text}"


def number_collisions(forecast: Forecast, clock: ZoneClock) -> list[NumberedCollision]:
    """Number the collisions of a forecast, and describe them."""
    found: list[NumberedCollision] = []
    numbers: dict[str, int] = {}
    for collision in forecast.collisions:
        number = numbers.setdefault(collision.text, len(numbers) + 1)
        end = _end(collision, forecast)
        if end == collision.at:
            when = clock.moment(collision.at, year=True)
        elif collision.until is None:
            when = f"from {clock.moment(collision.at, year=True)} on"
        else:
            when = clock.range(collision.at, end, year=True)
        drawn = collision.at <= forecast.until and end >= forecast.start
        found.append(NumberedCollision(number, collision.at, end, when, collision.text, drawn))
    return found


def collision_sentences(collisions: Sequence[NumberedCollision]) -> list[tuple[int, str]]:
    """Write a sentence for each number: the first times, the count of further ones, and what collides."""
    by_number: dict[int, list[NumberedCollision]] = {}
    for collision in collisions:
        by_number.setdefault(collision.number, []).append(collision)
    return [(number, _sentence(listed)) for number, listed in by_number.items()]


def _sentence(collisions: Sequence[NumberedCollision]) -> str:
    first = collisions[:_LISTED_TIMES]
    more = len(collisions) - len(first)
    further = f" and {more} more times" if more > 1 else " and once more" if more == 1 else ""
    return f"{'; '.join(collision.when for collision in first)}{further}: {collisions[0].text}"


def _end(collision: LaneCollision, forecast: Forecast) -> int:
    """Return the end of a collision; an open one ends with the picture."""
    return collision.until if collision.until is not None else max(collision.at, forecast.until)
