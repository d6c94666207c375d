"""A lane as stretches of time, however it is drawn: its spans, what holds at an instant and what comes next.

How tall a value is drawn, and which values let nothing through.

Firings that come too thick to be drawn one by one: grouped, and told by how often they come.

Collisions as they are shown: from when to when, and in a sentence.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from springtide.apis.forecast import LaneChange, LaneStyle
from springtide.cli.pictures.formatting import format_span, format_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from springtide.apis.forecast import Forecast, Lane, LaneCollision, LaneValue
    from springtide.cli.pictures.time_axis import ZoneClock


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time over which a lane has one value."""

    start: int
    end: int
    value: LaneValue
    because: str


@dataclass(frozen=True, slots=True)
class DenseSpans:
    """A run of spans too short to be told apart."""

    start: int
    end: int
    spans: tuple[Span, ...]


def lane_spans(lane: Lane, start: int, until: int) -> list[Span]:
    """Cut a lane into its spans within ``[start, until)``, the first holding the current value."""
    points = [LaneChange(start, lane.current, lane.because), *lane.changes]
    ends = [min(change.at, until) for change in lane.changes] + [until]
    return [
        Span(max(point.at, start), end, point.value, point.because)
        for point, end in zip(points, ends, strict=True)
        if end > max(point.at, start)
    ]


def merge_short_spans(spans: Iterable[Span], shortest: int) -> list[Span | DenseSpans]:
    """Put neighbouring spans that last less than ``shortest`` seconds into one crowd."""
    shown: list[Span | DenseSpans] = []
    run: list[Span] = []

    def close() -> None:
        if len(run) == 1:
            shown.append(run[0])
        elif run:
            shown.append(DenseSpans(run[0].start, run[-1].end, tuple(run)))
        run.clear()

    for span in spans:
        if span.end - span.start < shortest:
            run.append(span)
        else:
            close()
            shown.append(span)
    close()
    return shown


def value_at(lane: Lane, at: int) -> tuple[LaneValue, str]:
    """Give the value that holds at an instant, and why; before the first change the current one."""
    place = bisect_right(lane.changes, at, key=_instant)
    if place == 0:
        return lane.current, lane.because
    change = lane.changes[place - 1]
    return change.value, change.because


def next_change_after(lane: Lane, now: int) -> LaneChange | None:
    """Find the first change after now that the forecast knows of, be it within its range or beyond."""
    place = bisect_right(lane.changes, now, key=_instant)
    if place < len(lane.changes):
        return lane.changes[place]
    return lane.next if lane.next is not None and lane.next.at > now else None


def _instant(change: LaneChange) -> int:
    return change.at


FULL_HEIGHT: Final = 1000
"""The height of the tallest value of a lane. Heights are whole numbers: a picture is the same anywhere."""

_TALLEST_LIMIT: Final = 700  # a budget that limits stays visibly below one that does not
_SHORTEST_LIMIT: Final = 150  # and visibly above one that blocks


def height_scale(lane: Lane) -> Callable[[LaneValue], int]:
    """Choose how tall each value of a lane is drawn, from 0 to `FULL_HEIGHT`."""
    values = [lane.current, *(change.value for change in lane.changes)]
    if lane.style is LaneStyle.BUDGET:
        return _budget_scale(values)
    most = max(map(_count, values)) or 1
    return lambda value: _count(value) * FULL_HEIGHT // most


def is_blocked(lane: Lane, value: LaneValue) -> bool:
    """Tell whether a budget's value lets nothing through."""
    return lane.style is LaneStyle.BUDGET and any(amount == 0 for _, amount in _limits(value))


def is_ever_blocked(lane: Lane) -> bool:
    """Tell whether a lane is a budget that lets nothing through at some time."""
    return is_blocked(lane, lane.current) or any(is_blocked(lane, change.value) for change in lane.changes)


def describe_value(lane: Lane, value: LaneValue, *, unicode: bool = True) -> str:
    """Write a value of a lane in full, and what it means where that is more than its number."""
    words = format_value(value, unicode=unicode)
    return f"{words} (blocked)" if is_blocked(lane, value) else words


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
    """Read a budget's value as limits by unit; none means unlimited."""
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
    """Group changes of which each follows the one before within less than ``nearest`` seconds."""
    groups: list[list[LaneChange]] = []
    for change in changes:
        if groups and change.at - groups[-1][-1].at < nearest:
            groups[-1].append(change)
        else:
            groups.append([change])
    return [tuple(group) for group in groups]


def firing_group_forms(group: Sequence[LaneChange]) -> tuple[str, ...]:
    """Say what a group of firings applies, and how often, in ever fewer words."""
    count = f"{len(group):,}×"
    steps = {later.at - earlier.at for earlier, later in pairwise(group)}
    even = len(group) > 2 and len(steps) == 1
    often = (f"every {format_span(steps.pop())} ({count})", count) if even else (count,)
    values = {format_value(change.value) for change in group}
    return often if len(values) > 1 else (f"{values.pop()}, {often[0]}", *often)


_LISTED_TIMES: Final = 3


@dataclass(frozen=True, slots=True)
class NumberedCollision:
    """A collision with the number that it is referred to by."""

    number: int
    """The same for all that differ in nothing but their time."""
    start: int
    end: int
    when: str
    text: str
    drawn: bool
    """Whether it falls into the range of the picture; if not, it is only told."""

    @property
    def sentence(self) -> str:
        """When, and what."""
        return f"{self.when}: {self.text}"


def number_collisions(forecast: Forecast, clock: ZoneClock) -> list[NumberedCollision]:
    """Number the collisions of a forecast and put them into words."""
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


def collision_sentences(clashes: Sequence[NumberedCollision]) -> list[tuple[int, str]]:
    """Put collisions into words, each number once: its first times, how many more there are, and what it is."""
    by_number: dict[int, list[NumberedCollision]] = {}
    for clash in clashes:
        by_number.setdefault(clash.number, []).append(clash)
    return [(number, _sentence(listed)) for number, listed in by_number.items()]


def _sentence(clashes: Sequence[NumberedCollision]) -> str:
    spelt, more = "; ".join(clash.when for clash in clashes[:_LISTED_TIMES]), len(clashes) - _LISTED_TIMES
    return (
        f"{spelt}{f' and {more} more times' if more > 1 else ' and once more' if more == 1 else ''}: {clashes[0].text}"
    )


def _end(collision: LaneCollision, forecast: Forecast) -> int:
    """Give the end of a collision; one that goes on ends with the picture."""
    return collision.until if collision.until is not None else max(collision.at, forecast.until)
