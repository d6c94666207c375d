"""Windows: the recurring and one-off stretches of time in which something is active.

All windows are half-open: active at their start, inactive at their end. There are three forms: `recurring` between two
patterns, `span` between two instants, and `windows_after_hits`, which opens at each hit of a cron schedule for a
duration.

The duration is elapsed time: eight hours are eight hours also when clocks change. Hits may be dense (every minute) and
closer together than the duration, so they are processed in runs: a window that never closes is recognised without
stepping through its minutes.
"""

from bisect import bisect_right
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise

from springtide.almanac.civil import BEGINNING, DAY, END, LAST_DAY
from springtide.almanac.cron import Cron, wall_end
from springtide.almanac.pattern import TimePattern
from springtide.almanac.search_budget import exceeds_budget
from springtide.almanac.timeline import Timeline, always, from_spans, never, spans, to_segments
from springtide.almanac.wall_times import WallTimes
from springtide.almanac.zones import Zone

_DAYS_PER_YEAR = 366


class MatchPolicy(StrEnum):
    """How start and end patterns make a window.

    LITERAL looks ahead: active while the next end comes no later than the next start. WINDOW looks back:
    active while the latest start is no earlier than the latest end. They agree wherever starts and ends
    alternate.
    """

    LITERAL = "Literal"
    WINDOW = "Window"


def recurring(
    start: TimePattern, end: TimePattern, zone: Zone, policy: MatchPolicy = MatchPolicy.LITERAL
) -> Timeline[bool]:
    """Return the window between two patterns; the same pattern twice is always active.

    If the search budget is exhausted before a change is found, the window is taken to be constant from there on.
    """
    literal = policy is MatchPolicy.LITERAL
    # Where every start is an end too, the next end never comes later than the next start; likewise backwards.
    if end.walls.covers(start.walls) if literal else start.walls.covers(end.walls):
        return always()
    if literal:
        return Timeline(lambda t: to_segments((at, ahead) for at, ahead, _ in _readings(start, end, zone, t)))
    return Timeline(lambda t: to_segments((at, back) for at, _, back in _readings(start, end, zone, t)))


def first_difference(start: TimePattern, end: TimePattern, zone: Zone, from_: int, years: int = 9) -> int | None:
    """Return the first instant from `from_` on at which the policies differ, or None within so many years.

    Nine years contain a leap year even across a century. None means that starts and ends alternate for that long, or
    that the search budget is exhausted.
    """
    until = from_ + years * _DAYS_PER_YEAR * DAY
    previous: tuple[int, bool] | None = None
    for at, literal, window in _readings(start, end, zone, from_):
        # A difference counts only if it lasts: inside a gap of the clock several events share one instant.
        if previous is not None and previous[1] and at > previous[0]:
            return previous[0]
        if at > until or exceeds_budget():
            return None
        previous = (at, literal is not window)
    return None


def span(from_: int | None, until: int | None) -> Timeline[bool]:
    """Return the window that is active once, from one instant to another; None is without bound."""
    return spans([(BEGINNING if from_ is None else from_, until)])


def _readings(start: TimePattern, end: TimePattern, zone: Zone, t: int) -> Iterator[tuple[int, bool, bool]]:
    """Yield (instant, literal, window) at an instant and at every start and end after it.

    Events are visited in the order of their wall seconds. That orders them by instant and, where a gap puts several on
    one instant, by wall second, so that a window that lies inside a gap is empty instead of inverted.
    """
    wall = zone.latest_wall(t)
    last_start, last_end = start.walls.at_or_before(wall), end.walls.at_or_before(wall)
    window = last_start is not None and (last_end is None or last_start >= last_end)
    starts, ends = start.walls.following(wall), end.walls.following(wall)
    next_start, next_end = next(starts, END), next(ends, END)
    at = t
    while True:
        yield at, next_end <= next_start, window
        wall = min(next_start, next_end)
        if wall == END:
            return
        window = next_start == wall
        if next_start == wall:
            next_start = next(starts, END)
        if next_end == wall:
            next_end = next(ends, END)
        at = zone.instant(wall)


_LAST_WALL = (LAST_DAY + 1) * DAY


def windows_after_hits(cron: Cron, seconds: int, zone: Zone) -> Timeline[bool]:
    """Return the timeline that is active for so many elapsed seconds from every hit on."""
    if seconds <= 0:
        return never()
    times = cron.walls.times
    clusters = _clusters(times, seconds)
    # The largest distance in days between two days whose windows still join.
    reach = (seconds + times[-1] - times[0]) // DAY if len(clusters) == 1 else 0
    if reach and zone.never_changes and cron.walls.days.never_pauses(reach):
        return always()

    def windows(t: int) -> Iterator[tuple[int, int | None]]:
        for first, last in _hit_runs(cron, clusters, reach, zone, t - seconds):
            yield first, last + seconds

    return from_spans(windows)


def _hit_runs(cron: Cron, clusters: list[tuple[int, int]], reach: int, zone: Zone, t: int) -> Iterator[tuple[int, int]]:
    """Yield (first hit, last hit) of the runs whose windows join, later than an instant.

    Within one segment of a zone, wall time and elapsed time advance alike, so runs are searched on the wall clock.
    """
    walls = cron.walls
    segments = zone.through(t)
    i = bisect_right(segments.starts, t) - 1
    low = zone.latest_wall(t) if cron.fixed_time else t + segments.offsets[i]
    while True:
        offset, high = segments.offsets[i], min(wall_end(segments, i) - 1, _LAST_WALL)
        runs = _over_days(walls, reach, low, high) if reach else _within_days(walls, clusters, low, high)
        for first, last in runs:
            yield first - offset, last - offset
        i += 1
        segments = zone.through(high + 2 * DAY)
        if i >= len(segments.starts):
            return
        low, opens_with_hit = cron.opening(segments, i)
        if opens_with_hit:
            yield segments.starts[i], segments.starts[i]


def _clusters(times: tuple[int, ...], seconds: int) -> list[tuple[int, int]]:
    """Return the index ranges of times of day that are no further apart than `seconds`."""
    breaks = [i + 1 for i, (a, b) in enumerate(pairwise(times)) if b - a > seconds]
    return list(zip([0, *breaks], [*(index - 1 for index in breaks), len(times) - 1], strict=True))


def _within_days(walls: WallTimes, clusters: list[tuple[int, int]], low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the runs in (low, high], day by day."""
    times = walls.times
    day = walls.days.at_or_after(low // DAY)
    while day is not None and (midnight := day * DAY) <= high:
        lowest = bisect_right(times, low - midnight)
        highest = bisect_right(times, high - midnight) - 1
        for first, last in clusters:
            begins, ends = max(first, lowest), min(last, highest)
            if begins <= ends:
                yield midnight + times[begins], midnight + times[ends]
        day = walls.days.at_or_after(day + 1)


def _over_days(walls: WallTimes, reach: int, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the runs in (low, high] where the windows of days within `reach` of each other join."""
    first = walls.after(low)
    while first is not None and first <= high:
        run_end = (walls.days.run_end(first // DAY, reach) + 1) * DAY - 1
        last = walls.at_or_before(min(run_end, high))
        if last is None or last < first:
            return
        yield first, last
        first = walls.after(run_end)
