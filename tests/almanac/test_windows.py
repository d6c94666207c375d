"""Windows between patterns: the documented example, wraps, overlaps, the two match policies, and clock changes."""

import pytest
from tests.almanac.builders import WEEKDAYS, Behaviour, daily, local, replicas, show, utc

from springtide.almanac import UTC, Cron, Dialect, MatchPolicy, TimePattern, first_difference, load_zone

LA = "America/Los_Angeles"
NIGHTS = Behaviour(9, {"hours": 22}, {"hours": 6})
WEEKEND = Behaviour(9, {"weekdays": "Sat", "hours": 20}, {"weekdays": "Tue", "hours": 4})
WINTER = Behaviour(9, {"months": "Nov", "days": 1}, {"months": "Feb", "days": 1})
WEEK = Behaviour(9, {"weekdays": "Mon"}, {"weekdays": "Fri"})
MORNING = Behaviour(9, {}, {"hours": 6})
THURSDAY = Behaviour(9, {"weekdays": "Thu"}, {"weekdays": "Thu", "hours": 23, "minutes": 59})
EVEN_HOURS = Behaviour(9, {"hours": "0,2,4,6,8,10,12,14,16,18,20,22"}, {"hours": "1,3,5,7,9,11,13,15,17,19,21,23"})

B1 = Behaviour(1, {"weekdays": "Fri", "hours": 17}, {"weekdays": "Mon", "hours": 9})
B2 = Behaviour(3, {"weekdays": WEEKDAYS, "hours": 9}, {"weekdays": WEEKDAYS, "hours": 17})
B3 = Behaviour(2, {"weekdays": WEEKDAYS, "hours": 17}, {"weekdays": WEEKDAYS, "hours": 9})


@pytest.mark.parametrize(
    ("order", "now", "active", "value", "following"),
    [
        pytest.param(
            (B1, B2, B3), "2026-06-05T16:59:59", [B2], 3, (1, "2026-06-05T17:00"), id="friday-one-second-before-evening"
        ),
        pytest.param((B1, B2, B3), "2026-06-05T17:00:00", [B1, B3], 1, (3, "2026-06-08T09:00"), id="friday-evening"),
        pytest.param(
            (B1, B2, B3), "2026-06-07T23:59:59", [B1, B3], 1, (3, "2026-06-08T09:00"), id="last-second-of-sunday"
        ),
        pytest.param(
            (B1, B2, B3),
            "2026-06-08T08:59:59",
            [B1, B3],
            1,
            (3, "2026-06-08T09:00"),
            id="monday-one-second-before-nine",
        ),
        pytest.param((B1, B2, B3), "2026-06-08T17:00:00", [B3], 2, (3, "2026-06-09T09:00"), id="monday-evening"),
        pytest.param((B1, B2, B3), "2026-06-09T03:00:00", [B3], 2, (3, "2026-06-09T09:00"), id="tuesday-night"),
        pytest.param(
            (B3, B2, B1), "2026-06-06T12:00:00", [B3, B1], 2, (3, "2026-06-08T09:00"), id="reversed-list-on-saturday"
        ),
        pytest.param(
            (B3, B2, B1),
            "2026-06-08T08:59:59",
            [B3, B1],
            2,
            (3, "2026-06-08T09:00"),
            id="reversed-list-monday-before-nine",
        ),
    ],
)
def test_documented_example(
    order: tuple[Behaviour, ...], now: str, active: list[Behaviour], value: int, following: tuple[int, str]
) -> None:
    """The example of the scheduled-capacity design, default 2, in Los Angeles."""
    t = local(LA, now)
    schedule = replicas(order, 2, LA)

    assert [behaviour for behaviour in order if behaviour.active(LA).at(t)] == active
    assert schedule.at(t) == value
    assert schedule.next_change(t) == (local(LA, following[1]), following[0])


# behaviours, default, now, value, next (value, when)
WINDOWS = [
    pytest.param([NIGHTS], 1, "2026-06-05T21:59:59", 1, (9, "2026-06-05T22:00"), id="night-one-second-before-start"),
    pytest.param([NIGHTS], 1, "2026-06-05T22:00", 9, (1, "2026-06-06T06:00"), id="night-start"),
    pytest.param([NIGHTS], 1, "2026-06-06T00:00", 9, (1, "2026-06-06T06:00"), id="night-midnight"),
    pytest.param([NIGHTS], 1, "2026-06-06T06:00", 1, (9, "2026-06-06T22:00"), id="night-end"),
    pytest.param([WEEKEND], 1, "2026-06-06T19:59:59", 1, (9, "2026-06-06T20:00"), id="weekend-one-second-before-start"),
    pytest.param([WEEKEND], 1, "2026-06-06T20:00", 9, (1, "2026-06-09T04:00"), id="weekend-start"),
    pytest.param([WEEKEND], 1, "2026-06-08T12:00", 9, (1, "2026-06-09T04:00"), id="weekend-inside"),
    pytest.param([WEEKEND], 1, "2026-06-09T04:00", 1, (9, "2026-06-13T20:00"), id="weekend-end"),
    pytest.param([WINTER], 1, "2026-10-31T23:59:59", 1, (9, "2026-11-01"), id="winter-one-second-before-start"),
    pytest.param([WINTER], 1, "2026-11-01", 9, (1, "2027-02-01"), id="winter-start"),
    pytest.param([WINTER], 1, "2027-01-31T23:59:59", 9, (1, "2027-02-01"), id="winter-last-second"),
    pytest.param([WINTER], 1, "2027-02-01", 1, (9, "2027-11-01"), id="winter-end"),
    pytest.param([WEEK], 1, "2026-06-08", 9, (1, "2026-06-12"), id="week-starts-monday"),
    pytest.param([WEEK], 1, "2026-06-11T23:59:59", 9, (1, "2026-06-12"), id="week-last-second-of-thursday"),
    pytest.param([WEEK], 1, "2026-06-12", 1, (9, "2026-06-15"), id="week-ends-friday"),
    pytest.param([WEEK], 1, "2026-06-14T12:00", 1, (9, "2026-06-15"), id="week-not-on-sunday"),
    pytest.param([MORNING], 1, "2026-06-05T00:00", 9, (1, "2026-06-05T06:00"), id="morning-starts-at-midnight"),
    pytest.param([MORNING], 1, "2026-06-05T05:59", 9, (1, "2026-06-05T06:00"), id="morning-last-minute"),
    pytest.param([MORNING], 1, "2026-06-05T06:00", 1, (9, "2026-06-06"), id="morning-end"),
    pytest.param([THURSDAY], 1, "2026-06-03T23:59:59", 1, (9, "2026-06-04"), id="thursday-one-second-before"),
    pytest.param([THURSDAY], 1, "2026-06-04T00:00", 9, (1, "2026-06-04T23:59"), id="thursday-start"),
    pytest.param([THURSDAY], 1, "2026-06-04T23:58:59", 9, (1, "2026-06-04T23:59"), id="thursday-last-second"),
    pytest.param([THURSDAY], 1, "2026-06-04T23:59", 1, (9, "2026-06-11"), id="thursday-end-at-23-59"),
    pytest.param([THURSDAY], 1, "2026-06-05T12:00", 1, (9, "2026-06-11"), id="thursday-not-on-friday"),
    pytest.param([EVEN_HOURS], 1, "2026-06-05T10:00", 9, (1, "2026-06-05T11:00"), id="even-hour"),
    pytest.param([EVEN_HOURS], 1, "2026-06-05T10:59:59", 9, (1, "2026-06-05T11:00"), id="even-hour-last-second"),
    pytest.param([EVEN_HOURS], 1, "2026-06-05T11:00", 1, (9, "2026-06-05T12:00"), id="odd-hour"),
    pytest.param([EVEN_HOURS], 1, "2026-06-05T23:30", 1, (9, "2026-06-06T00:00"), id="last-odd-hour-of-the-day"),
    pytest.param([daily(0, 22, 6)], 3, "2026-06-05T23:00", 0, (3, "2026-06-06T06:00"), id="night-at-zero-replicas"),
    pytest.param(
        [daily(0, 22, 6)], 3, "2026-06-05T06:00", 3, (0, "2026-06-05T22:00"), id="default-after-zero-replicas"
    ),
    pytest.param([], 2, "2026-06-05T06:00", 2, None, id="no-behaviours"),
    pytest.param(
        [daily(3, 9, 17), daily(5, 17, 21)],
        1,
        "2026-06-05T16:59:59",
        3,
        (5, "2026-06-05T17:00"),
        id="adjacent-windows-last-second-of-first",
    ),
    pytest.param(
        [daily(3, 9, 17), daily(5, 17, 21)],
        1,
        "2026-06-05T17:00",
        5,
        (1, "2026-06-05T21:00"),
        id="adjacent-windows-start-of-second",
    ),
    pytest.param(
        [daily(3, 9, 17), daily(5, 17, 21)],
        1,
        "2026-06-05T20:59:59",
        5,
        (1, "2026-06-05T21:00"),
        id="adjacent-windows-last-second-of-second",
    ),
    pytest.param(
        [daily(3, 9, 17), daily(5, 17, 21)],
        1,
        "2026-06-05T21:00",
        1,
        (3, "2026-06-06T09:00"),
        id="adjacent-windows-default-after-both",
    ),
    pytest.param(
        [daily(3, 9, 12), daily(3, 12, 15)],
        1,
        "2026-06-05T10:00",
        3,
        (1, "2026-06-05T15:00"),
        id="adjacent-windows-of-the-same-value",
    ),
    pytest.param(
        [daily(8, 12, 13), daily(3, 8, 20)],
        1,
        "2026-06-05T11:59:59",
        3,
        (8, "2026-06-05T12:00"),
        id="nested-window-before",
    ),
    pytest.param(
        [daily(8, 12, 13), daily(3, 8, 20)],
        1,
        "2026-06-05T12:30",
        8,
        (3, "2026-06-05T13:00"),
        id="nested-window-inside",
    ),
    pytest.param(
        [daily(8, 12, 13), daily(3, 8, 20)], 1, "2026-06-05T13:00", 3, (1, "2026-06-05T20:00"), id="nested-window-after"
    ),
]


@pytest.mark.parametrize("policy", MatchPolicy)
@pytest.mark.parametrize(("behaviours", "default", "now", "value", "following"), WINDOWS)
def test_windows(
    behaviours: list[Behaviour],
    default: int,
    now: str,
    value: int,
    following: tuple[int, str] | None,
    policy: MatchPolicy,
) -> None:
    """Where starts and ends alternate both policies give the same values and the same next change."""
    t = utc(now)
    schedule = replicas(behaviours, default, policy=policy)

    assert schedule.at(t) == value
    assert schedule.next_change(t) == (following and (utc(following[1]), following[0]))


BLACK_FRIDAY = {"months": "Nov", "weekdays": "Fri", "days": "23,24,25,26,27,28,29"}


@pytest.mark.parametrize(
    ("priority", "now", "value", "following"),
    [
        pytest.param(0, "2026-11-20T12:00", 4, (1, "2026-11-20T20:00"), id="other-friday"),
        pytest.param(0, "2026-11-27T06:00", 4, (1, "2026-11-27T20:00"), id="first-listed-wins"),
        pytest.param(10, "2026-11-27T06:00", 50, (1, "2026-11-27T20:00"), id="priority-wins"),
    ],
)
def test_overlap_goes_to_the_first_listed_or_the_highest_priority(
    priority: int, now: str, value: int, following: tuple[int, str]
) -> None:
    """The order of the list decides, unless a priority does."""
    fridays = Behaviour(4, {"weekdays": "Fri", "hours": 6}, {"weekdays": "Fri", "hours": 20})
    black_friday = Behaviour(50, {**BLACK_FRIDAY, "hours": 6}, {**BLACK_FRIDAY, "hours": 20}, priority)
    schedule = replicas([fridays, black_friday], 1)

    assert schedule.at(utc(now)) == value
    assert schedule.next_change(utc(now)) == (utc(following[1]), following[0])


def _days(pattern: TimePattern, start: str, end: str) -> list[str]:
    found = pattern.between(utc(start) - 1, utc(end) - 1, load_zone("UTC"))
    return [str(show(occurrence.instant))[:10] for occurrence in found]


def test_black_fridays() -> None:
    """Days, months and weekdays must all match."""
    found = _days(TimePattern.parse(**BLACK_FRIDAY), "2024-01-01", "2032-01-01")

    assert [day[-2:] for day in found] == ["29", "28", "27", "26", "24", "23", "29", "28"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"months": "Jan", "days": "22,23,24,25,26,27,28,29,30,31", "weekdays": "Fri"},
            ["23", "30"],
            id="fridays-of-late-january",
        ),
        pytest.param(
            {"months": "Feb", "days": "1,2,3,4,5,6,7,8,9,10,11,12,13,14", "weekdays": "Fri"},
            ["06", "13"],
            id="fridays-of-early-february",
        ),
        pytest.param({"months": "Mar", "weekdays": "Tue"}, ["03", "10", "17", "24", "31"], id="tuesdays-of-march"),
    ],
)
def test_days_and_weekdays_are_joined_by_and(given: dict[str, str], expected: list[str]) -> None:
    """A day must be in both the list of days and the list of weekdays."""
    assert [day[-2:] for day in _days(TimePattern.parse(**given), "2026-01-01", "2027-01-01")] == expected


@pytest.mark.parametrize(
    ("schedule", "count"),
    [
        pytest.param("0 0 22-31 1 5", 13, id="fridays-of-late-january"),
        pytest.param("0 0 1-14 2 5", 16, id="fridays-of-early-february"),
        pytest.param("0 0 * 3 2", 5, id="tuesdays-of-march"),
    ],
)
def test_cron_joins_days_and_weekdays_by_or(schedule: str, count: int) -> None:
    """Unlike in a pattern, in cron a day needs to be in only one of the two lists."""
    hits = Cron.parse(schedule, Dialect.RULE).between(utc("2026-01-01") - 1, utc("2027-01-01") - 1, UTC)

    assert len(list(hits)) == count


SPRING = Behaviour(
    9,
    {"weekdays": WEEKDAYS, "hours": 9, "months": "Jan,Feb,Mar"},
    {"weekdays": WEEKDAYS, "hours": 17, "months": "Feb,Mar,Apr"},
)
TWO_STARTS = Behaviour(9, {"hours": "9,12"}, {"hours": 17})
#: Two starts and an end on the Sunday in March whose clock jumps over all three.
_JUMP = {"months": "Mar", "days": "8,9,10,11,12,13,14", "weekdays": "Sun", "hours": "2"}
IN_THE_GAP = Behaviour(9, {**_JUMP, "minutes": "0,30"}, {**_JUMP, "minutes": "45"})
LEAP_DAY = Behaviour(9, {"months": "Feb", "days": 29}, {"months": "Mar", "days": 1})


@pytest.mark.parametrize(
    ("behaviour", "zone", "now", "literal", "window"),
    [
        pytest.param(SPRING, LA, "2026-01-01T09:00", False, True, id="start-months-shifted-first-of-january"),
        pytest.param(SPRING, LA, "2026-01-31T10:00", False, True, id="start-months-shifted-end-of-january"),
        pytest.param(SPRING, LA, "2026-02-02T10:00", True, True, id="start-months-shifted-in-february"),
        pytest.param(SPRING, LA, "2026-03-31T17:00", True, False, id="start-months-shifted-last-end-in-march"),
        pytest.param(SPRING, LA, "2026-03-31T20:00", True, False, id="start-months-shifted-evening-of-last-march-day"),
        pytest.param(SPRING, LA, "2026-04-15T03:00", True, False, id="start-months-shifted-night-in-april"),
        pytest.param(SPRING, LA, "2026-05-10T12:00", False, False, id="start-months-shifted-in-may"),
        pytest.param(TWO_STARTS, "UTC", "2026-06-05T10:00", False, True, id="two-starts-after-the-first"),
        pytest.param(TWO_STARTS, "UTC", "2026-06-05T12:00", True, True, id="two-starts-at-the-second"),
        pytest.param(TWO_STARTS, "UTC", "2026-06-05T17:00", False, False, id="two-starts-at-the-end"),
        pytest.param(LEAP_DAY, "UTC", "2026-02-28T12:00", True, False, id="leap-day-start-in-a-common-year"),
        pytest.param(LEAP_DAY, "UTC", "2028-02-28T23:59:59", False, False, id="one-second-before-the-leap-day"),
        pytest.param(LEAP_DAY, "UTC", "2028-02-29T00:00", True, True, id="start-of-the-leap-day"),
        pytest.param(LEAP_DAY, "UTC", "2028-02-29T23:59:59", True, True, id="last-second-of-the-leap-day"),
        pytest.param(LEAP_DAY, "UTC", "2028-03-01T00:00", True, False, id="day-after-the-leap-day"),
    ],
)
def test_match_policies_differ(behaviour: Behaviour, zone: str, now: str, literal: bool, window: bool) -> None:
    """Where starts and ends do not alternate, the policies Literal and Window differ."""
    t = local(zone, now)

    assert behaviour.active(zone, MatchPolicy.LITERAL).at(t) is literal
    assert behaviour.active(zone, MatchPolicy.WINDOW).at(t) is window


@pytest.mark.parametrize(
    ("behaviour", "zone", "start", "expected"),
    [
        pytest.param(TWO_STARTS, "UTC", "2026-06-05T00:00", "2026-06-05T09:00", id="extra-start"),
        pytest.param(TWO_STARTS, "UTC", "2026-06-05T10:00", "2026-06-05T10:00", id="differs-already"),
        pytest.param(LEAP_DAY, "UTC", "2026-02-28T12:00", "2026-02-28T12:00", id="start-rarer-than-end"),
        pytest.param(SPRING, LA, "2026-02-02T10:00", "2026-03-31T17:00", id="month-shift"),
        pytest.param(NIGHTS, "UTC", "2026-06-05", None, id="alternates"),
        pytest.param(daily(9, 2, 3), "America/New_York", "2026-01-01", None, id="alternates-over-gaps"),
        pytest.param(B1, LA, "2026-06-05", None, id="alternates-by-week"),
        pytest.param(IN_THE_GAP, "America/New_York", "2026-01-01", None, id="differs-for-no-time-at-all"),
        pytest.param(
            Behaviour(9, {"days": 31}, {"days": 1}), "UTC", "2026-01-31T12:00", "2026-02-01T00:00", id="short-months"
        ),
    ],
)
def test_first_difference(behaviour: Behaviour, zone: str, start: str, expected: str | None) -> None:
    """The first instant at which the policies differ is found, or None where starts and ends alternate."""
    found = first_difference(
        TimePattern.parse(**behaviour.start), TimePattern.parse(**behaviour.end), load_zone(zone), local(zone, start)
    )

    assert found == (None if expected is None else local(zone, expected))


@pytest.mark.parametrize("policy", MatchPolicy)
def test_equal_start_and_end_are_always_active(policy: MatchPolicy) -> None:
    """A window whose start and end are the same pattern is always active and has no next change."""
    always_on = Behaviour(9, {"hours": "9"}, {"hours": 9, "minutes": "0"}).active(policy=policy)

    assert always_on.at(utc("2026-06-05T08:00"))
    assert always_on.next_change(utc("2026-06-05T08:00")) is None


def test_a_difference_that_only_leap_years_show_is_found() -> None:
    """Policies are compared over nine years: two starts in a row occur on 28 and 29 February only."""
    start, end = TimePattern.parse(days="28,29", months="Feb"), TimePattern.parse(days=1, months="Mar")

    assert first_difference(start, end, UTC, utc("2025-03-02")) == utc("2028-02-28")


ET = "America/New_York"
BERLIN = "Europe/Berlin"


def window(start: str, end: str) -> Behaviour:
    """Return a daily behaviour between two times written HH:MM."""
    first, last = (dict(zip(("hours", "minutes"), text.split(":"), strict=True)) for text in (start, end))
    return Behaviour(1, {**first}, {**last})


CASES = [
    pytest.param(ET, "22:00", "02:30", "2026-03-07T21:59:59-05:00", False, id="gap-in-window-one-second-before-start"),
    pytest.param(ET, "22:00", "02:30", "2026-03-07T22:00-05:00", True, id="gap-in-window-start"),
    pytest.param(
        ET, "22:00", "02:30", "2026-03-08T01:59:59-05:00", True, id="gap-in-window-last-second-before-the-gap"
    ),
    pytest.param(ET, "22:00", "02:30", "2026-03-08T03:00-04:00", False, id="end-in-gap-ends-right-after-it"),
    pytest.param(ET, "22:00", "02:30", "2026-03-08T22:00-04:00", True, id="next-start-after-the-gap"),
    pytest.param(ET, "02:30", "06:00", "2026-03-07T06:00-05:00", False, id="start-in-gap-day-before-end"),
    pytest.param(ET, "02:30", "06:00", "2026-03-07T12:00-05:00", False, id="start-in-gap-day-before-noon"),
    pytest.param(ET, "02:30", "06:00", "2026-03-08T01:59:59-05:00", False, id="start-in-gap-last-second-before"),
    pytest.param(ET, "02:30", "06:00", "2026-03-08T03:00-04:00", True, id="start-in-gap-starts-right-after-it"),
    pytest.param(ET, "02:30", "06:00", "2026-03-08T06:00-04:00", False, id="start-in-gap-end"),
    pytest.param(ET, "02:00", "02:45", "2026-03-07T12:00-05:00", False, id="window-within-gap-day-before"),
    pytest.param(ET, "02:00", "02:45", "2026-03-08T01:59:59-05:00", False, id="window-within-gap-last-second-before"),
    pytest.param(ET, "02:00", "02:45", "2026-03-08T03:00-04:00", False, id="window-within-gap-does-not-open"),
    pytest.param(ET, "02:00", "02:45", "2026-03-08T12:00-04:00", False, id="window-within-gap-noon"),
    pytest.param(ET, "02:00", "02:45", "2026-03-09T02:30-04:00", True, id="window-within-gap-opens-next-day"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:29:59-04:00", False, id="start-in-fold-one-second-before"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:30-04:00", True, id="start-in-fold-first-pass"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:00-05:00", True, id="start-in-fold-active-between-passes"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:30-05:00", True, id="start-in-fold-second-pass"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T06:00-05:00", False, id="start-in-fold-end"),
    pytest.param(ET, "22:00", "01:30", "2026-11-01T01:30-04:00", False, id="end-in-fold-first-pass"),
    pytest.param(
        ET, "22:00", "01:30", "2026-11-01T01:29:59-05:00", False, id="end-in-fold-one-second-before-second-pass"
    ),
    pytest.param(ET, "22:00", "01:30", "2026-11-01T01:30-05:00", False, id="end-in-fold-second-pass"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T08:59:59-04:00", False, id="day-after-gap-one-second-before-start"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T09:00-04:00", True, id="day-after-gap-start"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T16:59:59-04:00", True, id="day-after-gap-last-second"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T17:00-04:00", False, id="day-after-gap-end"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-03-28T12:00+01:00", False, id="berlin-day-before-the-gap"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-03-29T03:00+02:00", True, id="berlin-start-in-gap"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-03-29T04:00+02:00", False, id="berlin-end-after-gap"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T02:30+02:00", True, id="berlin-start-in-fold-first-pass"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T02:15+01:00", True, id="berlin-active-between-passes"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T02:30+01:00", True, id="berlin-second-pass"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T04:00+01:00", False, id="berlin-end-after-fold"),
    pytest.param(
        "America/Santiago", "00:00", "08:00", "2026-09-05T08:00-04:00", False, id="santiago-end-the-day-before"
    ),
    pytest.param(
        "America/Santiago",
        "00:00",
        "08:00",
        "2026-09-05T23:59:59-04:00",
        False,
        id="santiago-last-second-before-skipped-midnight",
    ),
    pytest.param(
        "America/Santiago", "00:00", "08:00", "2026-09-06T01:00-03:00", True, id="santiago-start-at-skipped-midnight"
    ),
    pytest.param("America/Santiago", "00:00", "08:00", "2026-09-06T08:00-03:00", False, id="santiago-end"),
    pytest.param("Africa/Cairo", "18:00", "00:00", "2026-04-23T18:00+02:00", True, id="cairo-start"),
    pytest.param(
        "Africa/Cairo",
        "18:00",
        "00:00",
        "2026-04-23T23:59:59+02:00",
        True,
        id="cairo-last-second-before-skipped-midnight",
    ),
    pytest.param("Africa/Cairo", "18:00", "00:00", "2026-04-24T01:00+03:00", False, id="cairo-end-at-skipped-midnight"),
    pytest.param(
        "Australia/Lord_Howe",
        "02:00",
        "06:00",
        "2026-04-05T02:00+10:30",
        True,
        id="lord-howe-start-after-half-hour-fold",
    ),
    pytest.param("Australia/Lord_Howe", "02:00", "06:00", "2026-04-05T05:00+10:30", True, id="lord-howe-inside"),
]


@pytest.mark.parametrize("policy", MatchPolicy)
@pytest.mark.parametrize(("zone", "start", "end", "now", "active"), CASES)
def test_window_across_a_change(zone: str, start: str, end: str, now: str, active: bool, policy: MatchPolicy) -> None:
    """A skipped wall time takes effect right after the gap, a repeated one in the first pass."""
    assert window(start, end).active(zone, policy).at(utc(now)) is active


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        pytest.param("2026-03-07T22:00-05:00", "2026-03-08T06:00-04:00", 7, id="spring-night-of-seven-hours"),
        pytest.param("2026-10-31T22:00-04:00", "2026-11-01T06:00-05:00", 9, id="autumn-night-of-nine-hours"),
    ],
)
def test_a_night_is_as_long_as_its_clock_says(start: str, end: str, hours: int) -> None:
    """A window from 22:00 to 06:00 lasts seven hours in spring and nine in autumn."""
    nights = window("22:00", "06:00").active(ET)

    assert nights.changes(utc(start) - 1, utc(end)) == [(utc(start), True), (utc(end), False)]
    assert utc(end) - utc(start) == hours * 3600
