"""Windows that open at every hit of a schedule and stay open for a time.

Active at an instant means that a hit lies in the time just passed. The time is elapsed time: eight hours
are eight hours also when clocks change meanwhile. Hits may be dense (every minute) and windows longer than
their distance, so hits are taken in whole runs: a window that never closes is found without walking through
its minutes.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from springtide.almanac.civil import DAY, LAST_DAY
from springtide.almanac.cron import Cron, wall_end
from springtide.almanac.timeline import Timeline, always, from_spans, never
from springtide.almanac.wall import WallTimes
from springtide.almanac.zones import Zone

_LAST_WALL = (LAST_DAY + 1) * DAY


def hits_for(cron: Cron, seconds: int, zone: Zone) -> Timeline[bool]:
    """Return the timeline that is active for so many elapsed seconds from every hit on."""
    if seconds <= 0:
        return never()
    times = cron.walls.times
    clusters = _clusters(times, seconds)
    # How many days apart two days may lie whose hits still leave no pause between them.
    reach = (seconds + times[-1] - times[0]) // DAY if len(clusters) == 1 else 0
    if reach and zone.never_changes and cron.walls.days.never_pauses(reach):
        return always()

    def windows(t: int) -> Iterator[tuple[int, int | None]]:
        for first, last in _hit_runs(cron, clusters, reach, zone, t - seconds):
            yield first, last + seconds

    return from_spans(windows)


def _hit_runs(cron: Cron, clusters: list[tuple[int, int]], reach: int, zone: Zone, t: int) -> Iterator[tuple[int, int]]:
    """Yield (first hit, last hit) of runs without a pause, later than an instant.

    Within one stretch of a zone wall time and elapsed time run alike, so that runs can be found on the wall clock.
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
    """Return the index ranges of times of day that lie no further apart than so many seconds."""
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
    """Yield the runs in (low, high] where hits of days within reach of each other leave no pause."""
    first = walls.after(low)
    while first is not None and first <= high:
        run_end = (walls.days.run_end(first // DAY, reach) + 1) * DAY - 1
        last = walls.at_or_before(min(run_end, high))
        if last is None or last < first:
            return
        yield first, last
        first = walls.after(run_end)
