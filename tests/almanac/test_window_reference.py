"""Windows and calendars compared with their definitions, evaluated instant by instant with zoneinfo alone."""

from collections.abc import Callable
from datetime import date, timedelta

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.almanac import reference, strategies

from springtide.almanac import (
    CalendarFilter,
    CalendarMode,
    Cron,
    CronError,
    DayCalendar,
    Days,
    Dialect,
    Firings,
    MatchPolicy,
    Timeline,
    TimePattern,
    always,
    first_difference,
    load_zone,
    recurring,
    restrict,
    windows_after_hits,
)

DAY = 86_400
_HOURS = st.lists(st.sampled_from((0, 1, 2, 3, 4, 9, 17, 22, 23)), min_size=1, max_size=3, unique=True)
_MINUTES = st.lists(st.sampled_from((0, 15, 30, 59)), min_size=1, max_size=2, unique=True)
_WEEKDAYS = st.one_of(st.none(), st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True))


def assert_follows(timeline: Timeline[bool], truth: Callable[[int], bool], a: int, b: int, probes: list[int]) -> None:
    """Compare a timeline with the definition at probes, and on both sides of every change that it reports."""
    changes = timeline.changes(a, b)
    edges = [at + d for at, _ in changes for d in (-1, 0, 1)]
    for t in [a, b, *edges, *probes]:
        if a <= t <= b:
            assert timeline.at(t) is truth(t), t
    for t in [a, *probes[:1]]:
        ahead, following = [change for change in changes if change[0] > t], timeline.next_change(t)
        assert following == ahead[0] if ahead else following is None or following[0] > b
    for at, value in changes:
        assert truth(at) is value
        assert truth(at - 1) is not value


@st.composite
def _pattern(draw: st.DrawFn) -> tuple[TimePattern, Callable[[date], bool], list[tuple[int, int]]]:
    hours, minutes, weekdays = draw(_HOURS), draw(_MINUTES), draw(_WEEKDAYS)
    pattern = TimePattern.parse(
        hours=",".join(map(str, hours)),
        minutes=",".join(map(str, minutes)),
        weekdays=None if weekdays is None else ",".join(map(str, weekdays)),
    )

    def on_day(day: date) -> bool:
        return weekdays is None or day.isoweekday() % 7 in weekdays

    return pattern, on_day, [(hour, minute) for hour in hours for minute in minutes]


@settings(max_examples=100, deadline=None)
@given(start=_pattern(), end=_pattern(), policy=st.sampled_from(MatchPolicy), data=st.data())
def test_recurring_windows(
    start: tuple[TimePattern, Callable[[date], bool], list[tuple[int, int]]],
    end: tuple[TimePattern, Callable[[date], bool], list[tuple[int, int]]],
    policy: MatchPolicy,
    data: st.DataObject,
) -> None:
    """Literal compares the next start and end, Window the latest, by instant and then by wall time."""
    zone = data.draw(strategies.zones)
    centre = data.draw(strategies.moments(zone))
    # Two weeks hold every weekday on both sides, also where a day is skipped.
    span = (centre - 14 * DAY, centre + 14 * DAY)
    starts = reference.occurrences(start[1], start[2], zone, *span)
    ends = reference.occurrences(end[1], end[2], zone, *span)

    def literal(now: int) -> bool:
        return min(key for key in ends if key[0] > now) <= min(key for key in starts if key[0] > now)

    def window(now: int) -> bool:
        return max(key for key in starts if key[0] <= now) >= max(key for key in ends if key[0] <= now)

    a, b = centre - 2 * DAY, centre + 2 * DAY
    probes = data.draw(st.lists(st.integers(a, b), max_size=4)) + strategies.near_changes(zone, a, b)
    probes += [key[0] + d for key in starts + ends for d in (-1, 0) if a < key[0] <= b][:30]
    timeline = recurring(start[0], end[0], load_zone(zone), policy)

    assert_follows(timeline, literal if policy is MatchPolicy.LITERAL else window, a, b, [centre, *probes])

    differs = first_difference(start[0], end[0], load_zone(zone), a)
    disputed = [t for t in [a, *probes] if t >= a and literal(t) is not window(t)]
    if differs is not None and differs < b:
        assert literal(differs) is not window(differs)
        disputed = [t for t in disputed if t < differs]
    assert not disputed


@settings(max_examples=100, deadline=None)
@given(
    text=strategies.schedules,
    minutes=st.one_of(st.sampled_from((1, 15, 60, 480, 1440, 2880)), st.integers(1, 3000)),
    dialect=st.sampled_from(Dialect),
    data=st.data(),
)
def test_windows_from_hits(text: str, minutes: int, dialect: Dialect, data: st.DataObject) -> None:
    """A window is active if there was a hit within its duration."""
    try:
        cron = Cron.parse(text, dialect)
    except CronError:
        assume(False)
    zone, seconds = data.draw(strategies.zones), minutes * 60
    centre = data.draw(strategies.moments(zone))
    a, b = centre - DAY // 2, centre + DAY // 2
    find = reference.fixed_times if cron.fixed_time else reference.follow_clock
    hits = find(text, zone, a - seconds - 2, b)

    def active(now: int) -> bool:
        return any(now - seconds < hit <= now for hit in hits)

    probes = data.draw(st.lists(st.integers(a, b), max_size=5)) + strategies.near_changes(zone, a, b)
    probes += [hit + d for hit in hits[:10] + hits[-10:] for d in (-1, 0, seconds - 1, seconds)]

    assert_follows(windows_after_hits(cron, seconds, load_zone(zone)), active, a, b, [centre, *probes])


@st.composite
def _calendar(draw: st.DrawFn, around: date) -> tuple[Days, Callable[[date], bool]]:
    near = st.integers(-4, 4).map(lambda days: around + timedelta(days=days))
    dates = draw(st.lists(near, max_size=3))
    ranges = [
        (first, first + timedelta(days=length))
        for first, length in draw(st.lists(st.tuples(near, st.integers(0, 3)), max_size=1))
    ]
    yearly = draw(st.lists(st.one_of(near.map(lambda day: (day.month, day.day)), st.just((2, 29))), max_size=2))

    def listed(day: date) -> bool:
        return day in dates or any(a <= day <= b for a, b in ranges) or (day.month, day.day) in yearly

    return Days(dates=tuple(dates), ranges=tuple(ranges), yearly=tuple(yearly)), listed


@settings(max_examples=120, deadline=None)
@given(mode=st.sampled_from(CalendarMode), text=strategies.schedules, data=st.data())
def test_calendars_cut_levels_and_choose_firings(mode: CalendarMode, text: str, data: st.DataObject) -> None:
    """Windows and firings are allowed by the local day in the zone of the calendar."""
    try:
        cron = Cron.parse(text, Dialect.BUDGET)
    except CronError:
        assume(False)
    zone = data.draw(strategies.zones)
    own = data.draw(st.one_of(st.none(), strategies.zones))
    centre = data.draw(strategies.moments(own or zone))
    days, listed = data.draw(_calendar(reference.clock(centre, own or zone).date()))
    day_filter = CalendarFilter(DayCalendar(days, None if own is None else load_zone(own)), mode)

    def allowed(now: int) -> bool:
        return listed(reference.clock(now, own or zone).date()) is (mode is CalendarMode.ONLY)

    a, b = centre - DAY, centre + DAY
    probes = [centre, *data.draw(st.lists(st.integers(a, b), max_size=5)), *strategies.near_changes(own or zone, a, b)]
    assert_follows(restrict(always(), [day_filter], load_zone(zone)), allowed, a, b, probes)

    hits = [hit for hit in reference.follow_clock(text, zone, a, b) if allowed(hit)]
    firings = Firings.of(cron, load_zone(zone), [day_filter])
    assert list(firings.between(a, b)) == hits
    for t in probes:
        following, latest = firings.after(t), firings.at_or_before(t)
        ahead, behind = [hit for hit in hits if hit > t], [hit for hit in hits if hit <= t]
        assert following == ahead[0] if ahead else following is None or following > b
        assert latest == behind[-1] if behind else latest is None or latest <= a
