"""Windows between patterns, case by case: the documented example, wraps, overlaps, and the two readings.

Windows between patterns across changes of the clock: no occurrence is lost, none happens twice.
"""

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
        pytest.param((B1, B2, B3), "2026-06-05T16:59:59", [B2], 3, (1, "2026-06-05T17:00"), id="E01"),
        pytest.param((B1, B2, B3), "2026-06-05T17:00:00", [B1, B3], 1, (3, "2026-06-08T09:00"), id="E02"),
        pytest.param((B1, B2, B3), "2026-06-07T23:59:59", [B1, B3], 1, (3, "2026-06-08T09:00"), id="E04"),
        pytest.param((B1, B2, B3), "2026-06-08T08:59:59", [B1, B3], 1, (3, "2026-06-08T09:00"), id="E05"),
        pytest.param((B1, B2, B3), "2026-06-08T17:00:00", [B3], 2, (3, "2026-06-09T09:00"), id="E07"),
        pytest.param((B1, B2, B3), "2026-06-09T03:00:00", [B3], 2, (3, "2026-06-09T09:00"), id="E08"),
        pytest.param((B3, B2, B1), "2026-06-06T12:00:00", [B3, B1], 2, (3, "2026-06-08T09:00"), id="E10"),
        pytest.param((B3, B2, B1), "2026-06-08T08:59:59", [B3, B1], 2, (3, "2026-06-08T09:00"), id="E11"),
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
    pytest.param([NIGHTS], 1, "2026-06-05T21:59:59", 1, (9, "2026-06-05T22:00"), id="W01"),
    pytest.param([NIGHTS], 1, "2026-06-05T22:00", 9, (1, "2026-06-06T06:00"), id="W02"),
    pytest.param([NIGHTS], 1, "2026-06-06T00:00", 9, (1, "2026-06-06T06:00"), id="W03"),
    pytest.param([NIGHTS], 1, "2026-06-06T06:00", 1, (9, "2026-06-06T22:00"), id="W04"),
    pytest.param([WEEKEND], 1, "2026-06-06T19:59:59", 1, (9, "2026-06-06T20:00"), id="W05-before"),
    pytest.param([WEEKEND], 1, "2026-06-06T20:00", 9, (1, "2026-06-09T04:00"), id="W05-at"),
    pytest.param([WEEKEND], 1, "2026-06-08T12:00", 9, (1, "2026-06-09T04:00"), id="W06-inside"),
    pytest.param([WEEKEND], 1, "2026-06-09T04:00", 1, (9, "2026-06-13T20:00"), id="W06-end"),
    pytest.param([WINTER], 1, "2026-10-31T23:59:59", 1, (9, "2026-11-01"), id="W08-before"),
    pytest.param([WINTER], 1, "2026-11-01", 9, (1, "2027-02-01"), id="W08-at"),
    pytest.param([WINTER], 1, "2027-01-31T23:59:59", 9, (1, "2027-02-01"), id="W09-before"),
    pytest.param([WINTER], 1, "2027-02-01", 1, (9, "2027-11-01"), id="W09-at"),
    pytest.param([WEEK], 1, "2026-06-08", 9, (1, "2026-06-12"), id="W11-monday"),
    pytest.param([WEEK], 1, "2026-06-11T23:59:59", 9, (1, "2026-06-12"), id="W11-thursday"),
    pytest.param([WEEK], 1, "2026-06-12", 1, (9, "2026-06-15"), id="W11-friday"),
    pytest.param([WEEK], 1, "2026-06-14T12:00", 1, (9, "2026-06-15"), id="W11-sunday"),
    pytest.param([MORNING], 1, "2026-06-05T00:00", 9, (1, "2026-06-05T06:00"), id="W12-midnight"),
    pytest.param([MORNING], 1, "2026-06-05T05:59", 9, (1, "2026-06-05T06:00"), id="W12-before"),
    pytest.param([MORNING], 1, "2026-06-05T06:00", 1, (9, "2026-06-06"), id="W12-end"),
    pytest.param([THURSDAY], 1, "2026-06-03T23:59:59", 1, (9, "2026-06-04"), id="W14-before"),
    pytest.param([THURSDAY], 1, "2026-06-04T00:00", 9, (1, "2026-06-04T23:59"), id="W14-start"),
    pytest.param([THURSDAY], 1, "2026-06-04T23:58:59", 9, (1, "2026-06-04T23:59"), id="W14-inside"),
    pytest.param([THURSDAY], 1, "2026-06-04T23:59", 1, (9, "2026-06-11"), id="W14-end"),
    pytest.param([THURSDAY], 1, "2026-06-05T12:00", 1, (9, "2026-06-11"), id="W14-friday"),
    pytest.param([EVEN_HOURS], 1, "2026-06-05T10:00", 9, (1, "2026-06-05T11:00"), id="W15-even"),
    pytest.param([EVEN_HOURS], 1, "2026-06-05T10:59:59", 9, (1, "2026-06-05T11:00"), id="W15-inside"),
    pytest.param([EVEN_HOURS], 1, "2026-06-05T11:00", 1, (9, "2026-06-05T12:00"), id="W15-odd"),
    pytest.param([EVEN_HOURS], 1, "2026-06-05T23:30", 1, (9, "2026-06-06T00:00"), id="W15-last"),
    pytest.param([daily(0, 22, 6)], 3, "2026-06-05T23:00", 0, (3, "2026-06-06T06:00"), id="W17-zero"),
    pytest.param([daily(0, 22, 6)], 3, "2026-06-05T06:00", 3, (0, "2026-06-05T22:00"), id="W17-default"),
    pytest.param([], 2, "2026-06-05T06:00", 2, None, id="W18-no-behaviours"),
    pytest.param([daily(3, 9, 17), daily(5, 17, 21)], 1, "2026-06-05T16:59:59", 3, (5, "2026-06-05T17:00"), id="W20-a"),
    pytest.param([daily(3, 9, 17), daily(5, 17, 21)], 1, "2026-06-05T17:00", 5, (1, "2026-06-05T21:00"), id="W20-b"),
    pytest.param([daily(3, 9, 17), daily(5, 17, 21)], 1, "2026-06-05T20:59:59", 5, (1, "2026-06-05T21:00"), id="W20-c"),
    pytest.param([daily(3, 9, 17), daily(5, 17, 21)], 1, "2026-06-05T21:00", 1, (3, "2026-06-06T09:00"), id="W20-d"),
    pytest.param([daily(3, 9, 12), daily(3, 12, 15)], 1, "2026-06-05T10:00", 3, (1, "2026-06-05T15:00"), id="W21"),
    pytest.param([daily(8, 12, 13), daily(3, 8, 20)], 1, "2026-06-05T11:59:59", 3, (8, "2026-06-05T12:00"), id="W23-a"),
    pytest.param([daily(8, 12, 13), daily(3, 8, 20)], 1, "2026-06-05T12:30", 8, (3, "2026-06-05T13:00"), id="W23-b"),
    pytest.param([daily(8, 12, 13), daily(3, 8, 20)], 1, "2026-06-05T13:00", 3, (1, "2026-06-05T20:00"), id="W23-c"),
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
    schedule = replicas(behaviours, default)

    assert schedule.at(t) == value
    assert schedule.next_change(t) == (following and (utc(following[1]), following[0]))
    assert [b.active(policy=policy).at(t) for b in behaviours] == [b.active().at(t) for b in behaviours]


BLACK_FRIDAY = {"months": "Nov", "weekdays": "Fri", "days": "23,24,25,26,27,28,29"}


@pytest.mark.parametrize(
    ("priority", "now", "value", "following"),
    [
        pytest.param(0, "2026-11-20T12:00", 4, (1, "2026-11-20T20:00"), id="W24-other-friday"),
        pytest.param(0, "2026-11-27T06:00", 4, (1, "2026-11-27T20:00"), id="W24-first-listed-wins"),
        pytest.param(10, "2026-11-27T06:00", 50, (1, "2026-11-27T20:00"), id="W26-priority-wins"),
    ],
)
def test_who_wins_an_overlap(priority: int, now: str, value: int, following: tuple[int, str]) -> None:
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
    """W27: days, months and weekdays must all hold."""
    found = _days(TimePattern.parse(**BLACK_FRIDAY), "2024-01-01", "2032-01-01")

    assert [day[-2:] for day in found] == ["29", "28", "27", "26", "24", "23", "29", "28"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"months": "Jan", "days": "22,23,24,25,26,27,28,29,30,31", "weekdays": "Fri"}, ["23", "30"], id="W31"
        ),
        pytest.param(
            {"months": "Feb", "days": "1,2,3,4,5,6,7,8,9,10,11,12,13,14", "weekdays": "Fri"}, ["06", "13"], id="W32"
        ),
        pytest.param({"months": "Mar", "weekdays": "Tue"}, ["03", "10", "17", "24", "31"], id="W34"),
    ],
)
def test_days_and_weekdays_are_joined_by_and(given: dict[str, str], expected: list[str]) -> None:
    """A list of days and one of weekdays narrow each other down."""
    assert [day[-2:] for day in _days(TimePattern.parse(**given), "2026-01-01", "2027-01-01")] == expected


@pytest.mark.parametrize(
    ("schedule", "count"),
    [
        pytest.param("0 0 22-31 1 5", 13, id="W31"),
        pytest.param("0 0 1-14 2 5", 16, id="W32"),
        pytest.param("0 0 * 3 2", 5, id="W34"),
    ],
)
def test_cron_joins_days_and_weekdays_by_or(schedule: str, count: int) -> None:
    """The pitfall that patterns avoid: in cron either of the two lists is enough."""
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
        pytest.param(SPRING, LA, "2026-01-01T09:00", False, True, id="W40"),
        pytest.param(SPRING, LA, "2026-01-31T10:00", False, True, id="W42"),
        pytest.param(SPRING, LA, "2026-02-02T10:00", True, True, id="W43"),
        pytest.param(SPRING, LA, "2026-03-31T17:00", True, False, id="W45-17h"),
        pytest.param(SPRING, LA, "2026-03-31T20:00", True, False, id="W45-20h"),
        pytest.param(SPRING, LA, "2026-04-15T03:00", True, False, id="W46"),
        pytest.param(SPRING, LA, "2026-05-10T12:00", False, False, id="W48"),
        pytest.param(TWO_STARTS, "UTC", "2026-06-05T10:00", False, True, id="W50-10h"),
        pytest.param(TWO_STARTS, "UTC", "2026-06-05T12:00", True, True, id="W50-12h"),
        pytest.param(TWO_STARTS, "UTC", "2026-06-05T17:00", False, False, id="W50-17h"),
        pytest.param(LEAP_DAY, "UTC", "2026-02-28T12:00", True, False, id="W52"),
        pytest.param(LEAP_DAY, "UTC", "2028-02-28T23:59:59", False, False, id="W53-before"),
        pytest.param(LEAP_DAY, "UTC", "2028-02-29T00:00", True, True, id="W53-start"),
        pytest.param(LEAP_DAY, "UTC", "2028-02-29T23:59:59", True, True, id="W53-inside"),
        pytest.param(LEAP_DAY, "UTC", "2028-03-01T00:00", True, False, id="W53-end"),
    ],
)
def test_the_two_readings(behaviour: Behaviour, zone: str, now: str, literal: bool, window: bool) -> None:
    """Where starts and ends do not alternate, looking ahead and looking back differ."""
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
    """The first instant at which the readings differ is found, or starts and ends alternate."""
    found = first_difference(
        TimePattern.parse(**behaviour.start), TimePattern.parse(**behaviour.end), load_zone(zone), local(zone, start)
    )

    assert found == (None if expected is None else local(zone, expected))


@pytest.mark.parametrize("policy", MatchPolicy)
def test_equal_start_and_end_are_always_active(policy: MatchPolicy) -> None:
    """The same pattern twice never ends, and says so at once."""
    always_on = Behaviour(9, {"hours": "9"}, {"hours": 9, "minutes": "0"}).active(policy=policy)

    assert always_on.at(utc("2026-06-05T08:00"))
    assert always_on.next_change(utc("2026-06-05T08:00")) is None


def test_a_difference_that_only_leap_years_show_is_found() -> None:
    """Readings are compared over nine years: two starts in a row come on 28 and 29 February only."""
    start, end = TimePattern.parse(days="28,29", months="Feb"), TimePattern.parse(days=1, months="Mar")

    assert first_difference(start, end, UTC, utc("2025-03-02")) == utc("2028-02-28")


ET = "America/New_York"
BERLIN = "Europe/Berlin"


def window(start: str, end: str) -> Behaviour:
    """Return a daily behaviour between two times written HH:MM."""
    first, last = (dict(zip(("hours", "minutes"), text.split(":"), strict=True)) for text in (start, end))
    return Behaviour(1, {**first}, {**last})


CASES = [
    pytest.param(ET, "22:00", "02:30", "2026-03-07T21:59:59-05:00", False, id="Z01"),
    pytest.param(ET, "22:00", "02:30", "2026-03-07T22:00-05:00", True, id="Z02"),
    pytest.param(ET, "22:00", "02:30", "2026-03-08T01:59:59-05:00", True, id="Z03"),
    pytest.param(ET, "22:00", "02:30", "2026-03-08T03:00-04:00", False, id="Z04"),
    pytest.param(ET, "22:00", "02:30", "2026-03-08T22:00-04:00", True, id="Z05"),
    pytest.param(ET, "02:30", "06:00", "2026-03-07T06:00-05:00", False, id="Z06"),
    pytest.param(ET, "02:30", "06:00", "2026-03-07T12:00-05:00", False, id="Z07"),
    pytest.param(ET, "02:30", "06:00", "2026-03-08T01:59:59-05:00", False, id="Z08"),
    pytest.param(ET, "02:30", "06:00", "2026-03-08T03:00-04:00", True, id="Z09"),
    pytest.param(ET, "02:30", "06:00", "2026-03-08T06:00-04:00", False, id="Z10"),
    pytest.param(ET, "02:00", "02:45", "2026-03-07T12:00-05:00", False, id="Z11-day-before"),
    pytest.param(ET, "02:00", "02:45", "2026-03-08T01:59:59-05:00", False, id="Z11-before"),
    pytest.param(ET, "02:00", "02:45", "2026-03-08T03:00-04:00", False, id="Z11-after-the-gap"),
    pytest.param(ET, "02:00", "02:45", "2026-03-08T12:00-04:00", False, id="Z11-noon"),
    pytest.param(ET, "02:00", "02:45", "2026-03-09T02:30-04:00", True, id="Z12"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:29:59-04:00", False, id="Z13"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:30-04:00", True, id="Z14"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:00-05:00", True, id="Z15"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:30-05:00", True, id="Z16"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T06:00-05:00", False, id="Z17"),
    pytest.param(ET, "22:00", "01:30", "2026-11-01T01:30-04:00", False, id="Z18-first-pass"),
    pytest.param(ET, "22:00", "01:30", "2026-11-01T01:29:59-05:00", False, id="Z18-second-pass"),
    pytest.param(ET, "22:00", "01:30", "2026-11-01T01:30-05:00", False, id="Z19"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T08:59:59-04:00", False, id="Z22-before"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T09:00-04:00", True, id="Z22-start"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T16:59:59-04:00", True, id="Z22-inside"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T17:00-04:00", False, id="Z22-end"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-03-28T12:00+01:00", False, id="Z23"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-03-29T03:00+02:00", True, id="Z24-start"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-03-29T04:00+02:00", False, id="Z24-end"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T02:30+02:00", True, id="Z25-first-pass"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T02:15+01:00", True, id="Z25-second-pass-before"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T02:30+01:00", True, id="Z25-second-pass"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T04:00+01:00", False, id="Z25-end"),
    pytest.param("America/Santiago", "00:00", "08:00", "2026-09-05T08:00-04:00", False, id="Z26-end"),
    pytest.param("America/Santiago", "00:00", "08:00", "2026-09-05T23:59:59-04:00", False, id="Z26-last-second"),
    pytest.param("America/Santiago", "00:00", "08:00", "2026-09-06T01:00-03:00", True, id="Z27-first-instant"),
    pytest.param("America/Santiago", "00:00", "08:00", "2026-09-06T08:00-03:00", False, id="Z27-end"),
    pytest.param("Africa/Cairo", "18:00", "00:00", "2026-04-23T18:00+02:00", True, id="Z28-start"),
    pytest.param("Africa/Cairo", "18:00", "00:00", "2026-04-23T23:59:59+02:00", True, id="Z28-last-second"),
    pytest.param("Africa/Cairo", "18:00", "00:00", "2026-04-24T01:00+03:00", False, id="Z29"),
    pytest.param("Australia/Lord_Howe", "02:00", "06:00", "2026-04-05T02:00+10:30", True, id="Z31-second-pass"),
    pytest.param("Australia/Lord_Howe", "02:00", "06:00", "2026-04-05T05:00+10:30", True, id="Z31-inside"),
]


@pytest.mark.parametrize("policy", MatchPolicy)
@pytest.mark.parametrize(("zone", "start", "end", "now", "active"), CASES)
def test_window_across_a_change(zone: str, start: str, end: str, now: str, active: bool, policy: MatchPolicy) -> None:
    """A window keeps its shape: what the clock skips happens right after, what it repeats happens once."""
    assert window(start, end).active(zone, policy).at(utc(now)) is active


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        pytest.param("2026-03-07T22:00-05:00", "2026-03-08T06:00-04:00", 7, id="Z21-spring"),
        pytest.param("2026-10-31T22:00-04:00", "2026-11-01T06:00-05:00", 9, id="Z21-autumn"),
    ],
)
def test_a_night_is_as_long_as_its_clock_says(start: str, end: str, hours: int) -> None:
    """A window from 22:00 to 06:00 lasts seven hours in spring and nine in autumn."""
    nights = window("22:00", "06:00").active(ET)

    assert nights.changes(utc(start) - 1, utc(end)) == [(utc(start), True), (utc(end), False)]
    assert utc(end) - utc(start) == hours * 3600
