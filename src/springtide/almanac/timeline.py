"""Timelines: values that hold from one instant to the next.

A timeline is a piecewise-constant function of time, defined by one operation, `segments(t)`. Schedules,
windows, budgets and their combinations are timelines; previews, checks and forecasts read them. Timelines are
lazy and may be endless: finding the next change does only the work that leads up to it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from springtide.almanac.civil import CYCLE, DAY
from springtide.almanac.search_budget import BudgetScope, exceeds_budget

V = TypeVar("V")
W = TypeVar("W")

#: A timeline that does not change for this long, at more than `SETTLED_BREAKPOINTS` breakpoints, is taken to be
#: constant from then on: within this time every date falls on every weekday.
SETTLED_TIME = 29 * 366 * DAY
SETTLED_BREAKPOINTS = 10_000


class Timeline(Generic[V]):
    """A value for every instant.

    `segments(t)` yields `(t, value at t)` and then every later change as `(instant, new value)`: instants
    strictly increase, neighbouring values differ. It ends when no change lies ahead, and otherwise need not
    end.
    """

    __slots__ = ("_segments",)

    def __init__(self, segments: Callable[[int], Iterator[tuple[int, V]]]) -> None:
        self._segments = segments

    def segments(self, t: int) -> Iterator[tuple[int, V]]:
        """Yield the value at an instant and every change after it."""
        return self._segments(t)

    def at(self, t: int) -> V:
        """Return the value at an instant."""
        return next(self._segments(t))[1]

    def next_change(self, t: int) -> tuple[int, V] | None:
        """Return the first change strictly later than an instant, or None if none lies ahead."""
        segments = self._segments(t)
        next(segments)
        return next(segments, None)

    def changes(self, a: int, b: int) -> list[tuple[int, V]]:
        """Return every change in (a, b]."""
        found: list[tuple[int, V]] = []
        segments = self._segments(a)
        next(segments)
        for change in segments:
            if change[0] > b:
                break
            found.append(change)
        return found

    def map(self, function: Callable[[V], W]) -> "Timeline[W]":
        """Return the timeline of a function of the value."""
        if isinstance(self, Constant):
            return Constant(function(self.value))
        return Timeline(lambda t: to_segments((at, function(value)) for at, value in self._segments(t)))


class Constant(Timeline[V]):
    """One value for all time. Combinations check for this class, to answer without a search."""

    __slots__ = ("value",)

    def __init__(self, value: V) -> None:
        self.value = value
        super().__init__(lambda t: iter(((t, value),)))


def constant(value: V) -> Timeline[V]:
    """Return the timeline that has one value for all time."""
    return Constant(value)


def always() -> Timeline[bool]:
    """Return the timeline that is active at every instant."""
    return Constant(True)


def never() -> Timeline[bool]:
    """Return the timeline that is active at no instant."""
    return Constant(False)


def steps(initial: V, changes: Iterable[tuple[int, V]]) -> Timeline[V]:
    """Return a timeline that starts with a value and takes each given value from its instant on."""
    ordered = sorted(changes, key=lambda change: change[0])

    def segments(t: int) -> Iterator[tuple[int, V]]:
        value = initial
        later: list[tuple[int, V]] = []
        for at, new in ordered:
            if at <= t:
                value = new
            else:
                later.append((at, new))
        return to_segments([(t, value), *later])

    return Timeline(segments) if ordered else Constant(initial)


def spans(intervals: Iterable[tuple[int, int | None]]) -> Timeline[bool]:
    """Return the timeline that is active in disjoint half-open intervals; an end of None is forever.

    An interval that ends before it begins is empty.
    """
    changes: list[tuple[int, bool]] = []
    for start, end in sorted(intervals, key=lambda interval: interval[0]):
        if end is not None and end <= start:
            continue
        changes.append((start, True))
        if end is not None:
            changes.append((end, False))
    return steps(False, changes)


def active_spans(timeline: Timeline[bool], t: int) -> Iterator[tuple[int, int | None]]:
    """Yield the half-open stretches from an instant on in which a timeline is active; None is forever."""
    opened: int | None = None
    for at, active in timeline.segments(t):
        if active:
            opened = at
        elif opened is not None:
            yield opened, at
            opened = None
    if opened is not None:
        yield opened, None


def from_spans(intervals: Callable[[int], Iterator[tuple[int, int | None]]]) -> Timeline[bool]:
    """Return the timeline that is active in intervals listed lazily.

    `intervals(t)` yields half-open intervals that end after `t`, in order of their starts; they may overlap
    or touch.
    """

    def segments(t: int) -> Iterator[tuple[int, bool]]:
        scope = BudgetScope()
        with scope:
            listed = intervals(t)
            first = next(listed, None)
        yield t, first is not None and first[0] <= t
        while first is not None:
            start, end = first
            # The start is yielded before the search for the end, so that the caller need not wait for both.
            if start > t:
                yield start, True
            with scope:
                end, first = _joined(start, end, listed)
            if end is not None:
                yield end, False

    return Timeline(segments)


def to_segments(breakpoints: Iterable[tuple[int, V]]) -> Iterator[tuple[int, V]]:
    """Turn breakpoints into segments: the last value at an instant counts, repeated values are dropped.

    No other breakpoint may share the instant of the first, so that the value there is known at once. Without a change
    of the value, the search gives up when the search budget is exhausted (which the sources of the breakpoints use
    too), after `SETTLED_BREAKPOINTS` over `SETTLED_TIME`, or after a whole cycle of the calendar.
    """
    points = iter(breakpoints)
    scope = BudgetScope()
    with scope:
        at, value = next(points)
    yield at, value
    shown = value
    ended = False
    while not ended:
        unchanged, since = 0, at
        with scope as budget:
            for later, new in points:
                budget.left -= 1
                change = (at, value)
                passed = later != at
                at, value = later, new
                if passed and change[1] != shown:
                    break
                unchanged += passed
                cycled = passed and change[0] - since > CYCLE
                if cycled or (unchanged > SETTLED_BREAKPOINTS and later - since > SETTLED_TIME):
                    return
                if budget.left < 0:
                    # The change that was found last is still yielded.
                    ended, change = True, (at, value)
                    break
            else:
                ended, change = True, (at, value)
        if change[1] != shown:
            yield change
        shown = change[1]


def _joined(
    start: int, end: int | None, intervals: Iterator[tuple[int, int | None]]
) -> tuple[int | None, tuple[int, int | None] | None]:
    """Return the end of an interval and of all that it overlaps or touches, and the interval after them."""
    for following in intervals:
        # An interval longer than a cycle of the calendar never ends; neither can an end be found without budget.
        if end is None or end - start > CYCLE or exceeds_budget():
            return None, None
        if following[0] > end:
            return end, following
        end = None if following[1] is None else max(end, following[1])
    return None if end is None or end - start > CYCLE or exceeds_budget(0) else end, None
