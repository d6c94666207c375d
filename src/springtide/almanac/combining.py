"""Timelines composed of timelines: overlays, minima, conjunctions, and starts moved earlier by a lead time.

`both` has a search of its own. A window may open every minute and a calendar allow one day in years, so neither
is stepped through while the other is inactive: the search skips to where the other begins, and ends when either has no
further span.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from heapq import heapify, heappop, heapreplace
from typing import TypeVar

from springtide.almanac.civil import CYCLE
from springtide.almanac.search_budget import BudgetScope, exceeds_budget
from springtide.almanac.timeline import (
    SETTLED_BREAKPOINTS,
    SETTLED_TIME,
    Constant,
    Timeline,
    active_spans,
    from_spans,
    to_segments,
)

V = TypeVar("V")
W = TypeVar("W")


def combine(function: Callable[[Sequence[V]], W], timelines: Sequence[Timeline[V]]) -> Timeline[W]:
    """Return the timeline of a function of the values of several timelines, given in their order."""
    if all(isinstance(timeline, Constant) for timeline in timelines):
        return Constant(function([timeline.at(0) for timeline in timelines]))
    return Timeline(lambda t: to_segments((at, function(values)) for at, values in merged(timelines, t)))


def merged(timelines: Sequence[Timeline[V]], t: int) -> Iterator[tuple[int, Sequence[V]]]:
    """Yield the values of all timelines at an instant and at every later change of any of them.

    The sequence is updated in place: a caller that keeps it must copy it. Ends early if the search budget is exhausted.
    """
    sources = [timeline.segments(t) for timeline in timelines]
    values = [next(source)[1] for source in sources]
    yield t, values
    heap = [
        (change[0], index, change[1])
        for index, source in enumerate(sources)
        if (change := next(source, None)) is not None
    ]
    heapify(heap)
    steps = 0
    # The budget is checked between instants, so that the values of an instant are always complete.
    while heap and not exceeds_budget(steps):
        at, steps = heap[0][0], 0
        while heap and heap[0][0] == at:
            steps += 1
            _, index, value = heap[0]
            values[index] = value
            change = next(sources[index], None)
            if change is None:
                heappop(heap)
            else:
                heapreplace(heap, (change[0], index, change[1]))
        yield at, values


def overlay(layers: Sequence[tuple[Timeline[bool], V]], default: V) -> Timeline[V]:
    """Return the value of the first active layer at every instant, or the default where none is."""
    relevant: list[tuple[Timeline[bool], V]] = []
    for active, value in layers:
        if isinstance(active, Constant):
            if active.value:
                # A layer that is always active hides all layers below it.
                default = value
                break
            continue
        relevant.append((active, value))
    values = [value for _, value in relevant]

    def first_active(states: Sequence[bool]) -> V:
        for state, value in zip(states, values, strict=True):
            if state:
                return value
        return default

    if all(value == default for value in values):
        return Constant(default)
    return combine(first_active, [active for active, _ in relevant])


def minimum(timelines: Sequence[Timeline[int]]) -> Timeline[int]:
    """Return the smallest value at every instant."""
    return combine(min, timelines)


def maximum(timelines: Sequence[Timeline[int]]) -> Timeline[int]:
    """Return the largest value at every instant."""
    return combine(max, timelines)


def both(*timelines: Timeline[bool]) -> Timeline[bool]:
    """Return the timeline that is active where all are."""
    varying = _relevant(timelines, neutral=True)
    return reduce(_conjunction, varying) if varying else Constant(True)


def either(*timelines: Timeline[bool]) -> Timeline[bool]:
    """Return the timeline that is active where any is."""
    varying = _relevant(timelines, neutral=False)
    if not varying:
        return Constant(False)
    return varying[0] if len(varying) == 1 else combine(any, varying)


def negate(timeline: Timeline[bool]) -> Timeline[bool]:
    """Return the timeline that is active where another is not."""
    return timeline.map(lambda active: not active)


def with_lead_time(timeline: Timeline[bool], seconds: int) -> Timeline[bool]:
    """Return a timeline whose starts come earlier by so many elapsed seconds; overlaps are merged."""
    if seconds == 0 or isinstance(timeline, Constant):
        return timeline

    def early(t: int) -> Iterator[tuple[int, int | None]]:
        for start, end in active_spans(timeline, t):
            yield start - seconds, end

    return from_spans(early)


def _relevant(timelines: Sequence[Timeline[bool]], *, neutral: bool) -> list[Timeline[bool]]:
    """Drop neutral constants; a constant that decides the result is returned alone."""
    for timeline in timelines:
        if isinstance(timeline, Constant) and timeline.value is not neutral:
            return [timeline]
    return [timeline for timeline in timelines if not isinstance(timeline, Constant)]


def _conjunction(one: Timeline[bool], other: Timeline[bool]) -> Timeline[bool]:
    """Return the timeline that is active where two timelines are both active."""

    def segments(t: int) -> Iterator[tuple[int, bool]]:
        yield t, one.at(t) and other.at(t)
        scope = BudgetScope()
        common = _common_spans(_Spans(one, t), _Spans(other, t), t)
        while True:
            with scope:
                span = next(common, None)
            if span is None:
                return
            start, end = span
            if start > t:
                yield start, True
            if end is None:
                return
            yield end, False

    return Timeline(segments)


class _Spans:
    """The spans in which a timeline is active, from an instant on."""

    __slots__ = ("_spans", "_timeline")

    def __init__(self, timeline: Timeline[bool], t: int) -> None:
        self._timeline = timeline
        self._spans = active_spans(timeline, t)

    def next(self, since: int) -> tuple[int, int | None] | None:
        """Return the next span or, if it ends by `since`, the first that ends later; None if there is none."""
        span = next(self._spans, None)
        if span is not None and span[1] is not None and span[1] <= since:
            self._spans = active_spans(self._timeline, since)
            span = next(self._spans, None)
        return span


def _common_spans(one: _Spans, other: _Spans, t: int) -> Iterator[tuple[int, int | None]]:
    """Yield the spans in which both are active, in order; gives up under the conditions of `to_segments`."""
    left, right = one.next(t), other.next(t)
    misses, since = 0, t
    while left is not None and right is not None:
        start = max(left[0], right[0])
        end = min((end for _, end in (left, right) if end is not None), default=None)
        if end is None or start < end:
            yield start, end
        if end is None:
            return
        misses, since = (0, end) if start < end else (misses + 1, since)
        if exceeds_budget() or start - since > CYCLE or (misses > SETTLED_BREAKPOINTS and start - since > SETTLED_TIME):
            return
        if left[1] == end:
            left = one.next(right[0])
        else:
            right = other.next(left[0])
