"""Two timelines that must both be active: mostly a window that recurs, and a calendar.

A window may open every minute and a calendar allow one day in years. So neither is walked through while the other is
inactive: it is looked at again where the other begins. Once one of them is over, nobody looks for more of the other.
"""

from collections.abc import Iterator

from springtide.almanac.civil import CYCLE
from springtide.almanac.effort import Searching, is_enough
from springtide.almanac.timeline import QUIET_BREAKPOINTS, QUIET_TIME, Timeline, active_spans


def conjunction(one: Timeline[bool], other: Timeline[bool]) -> Timeline[bool]:
    """Return the timeline that is active where two are."""

    def segments(t: int) -> Iterator[tuple[int, bool]]:
        yield t, one.at(t) and other.at(t)
        searching = Searching()
        common = _common_spans(_Spans(one, t), _Spans(other, t), t)
        while True:
            with searching:
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
    """The stretches in which a timeline is active, from an instant on."""

    __slots__ = ("_spans", "_timeline")

    def __init__(self, timeline: Timeline[bool], t: int) -> None:
        self._timeline = timeline
        self._spans = active_spans(timeline, t)

    def next(self, since: int) -> tuple[int, int | None] | None:
        """Give the next stretch or, if that is over by an instant, the first that is not; None when none is left."""
        span = next(self._spans, None)
        if span is not None and span[1] is not None and span[1] <= since:
            self._spans = active_spans(self._timeline, since)
            span = next(self._spans, None)
        return span


def _common_spans(one: _Spans, other: _Spans, t: int) -> Iterator[tuple[int, int | None]]:
    """Yield the stretches in which both are active, in order; gives up as `settle` does."""
    mine, theirs = one.next(t), other.next(t)
    quiet, since = 0, t
    while mine is not None and theirs is not None:
        start = max(mine[0], theirs[0])
        end = min((end for _, end in (mine, theirs) if end is not None), default=None)
        if end is None or start < end:
            yield start, end
        if end is None:
            return
        quiet, since = (0, end) if start < end else (quiet + 1, since)
        if is_enough() or start - since > CYCLE or (quiet > QUIET_BREAKPOINTS and start - since > QUIET_TIME):
            return
        if mine[1] == end:
            mine = one.next(theirs[0])
        else:
            theirs = other.next(mine[0])
