"""Windows: the recurring and one-off stretches of time in which something is active.

All windows are half-open: active at their start, no longer at their end.
"""

from collections.abc import Iterator
from enum import StrEnum

from springtide.almanac.civil import BEGINNING, DAY, END
from springtide.almanac.effort import is_enough
from springtide.almanac.pattern import Pattern
from springtide.almanac.timeline import Timeline, always, settle, spans
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


def recurring(start: Pattern, end: Pattern, zone: Zone, policy: MatchPolicy = MatchPolicy.LITERAL) -> Timeline[bool]:
    """Return the window between two patterns; the same pattern twice is always active.

    Patterns so dense that `QUIET_LIMIT` of their times pass without effect are taken to be settled.
    """
    literal = policy is MatchPolicy.LITERAL
    # Where every start is an end too, the next end never comes later than the next start; likewise backwards.
    if end.walls.covers(start.walls) if literal else start.walls.covers(end.walls):
        return always()
    if literal:
        return Timeline(lambda t: settle((at, ahead) for at, ahead, _ in _readings(start, end, zone, t)))
    return Timeline(lambda t: settle((at, back) for at, _, back in _readings(start, end, zone, t)))


def first_difference(start: Pattern, end: Pattern, zone: Zone, from_: int, years: int = 9) -> int | None:
    """Return the first instant from `from_` on at which the policies differ, or None within so many years.

    Nine years hold a leap year even across a century. None means that starts and ends alternate, as far as whoever
    asks wants to know.
    """
    until = from_ + years * _DAYS_PER_YEAR * DAY
    previous: tuple[int, bool] | None = None
    for at, literal, window in _readings(start, end, zone, from_):
        # A reading counts once time has passed in it: inside a gap several events share one instant.
        if previous is not None and previous[1] and at > previous[0]:
            return previous[0]
        if at > until or is_enough():
            return None
        previous = (at, literal is not window)
    return None


def span(from_: int | None, until: int | None) -> Timeline[bool]:
    """Return the window that is active once, from one instant to another; None is without bound."""
    return spans([(BEGINNING if from_ is None else from_, until)])


def _readings(start: Pattern, end: Pattern, zone: Zone, t: int) -> Iterator[tuple[int, bool, bool]]:
    """Yield (instant, literal, window) at an instant and at every start and end after it.

    The walk is over wall seconds. Their order is that of occurrences: first by instant, and by wall second
    where a gap puts several on one instant, so that a window inside a gap vanishes instead of turning
    inside out.
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
