"""Next hits of cron rules, case by case: daylight saving, leap days, and cases that other schedulers get wrong."""

import pytest
from tests.almanac.builders import local, show, utc

from springtide.almanac import Cron, Dialect, load_zone

ET = "America/New_York"
BERLIN = "Europe/Berlin"
LORD_HOWE = "Australia/Lord_Howe"
RIGA = "Europe/Riga"

# zone, schedule, from (local), the hits that follow (local, with offset)
RULES = [
    pytest.param(
        "UTC", "3 * * * *", "2026-06-05T09:04", ["2026-06-05T10:03Z", "2026-06-05T11:03Z"], id="minute-3-of-every-hour"
    ),
    pytest.param("UTC", "3 * * * *", "2026-06-05T09:03", ["2026-06-05T10:03Z"], id="strictly-later-than-a-hit"),
    pytest.param(
        ET,
        "30 2 * * *",
        "2026-03-08T00:00",
        ["2026-03-08T03:00-04:00", "2026-03-09T02:30-04:00"],
        id="fixed-time-in-gap",
    ),
    pytest.param(ET, "0 3 * * *", "2026-03-08T00:00", ["2026-03-08T03:00-04:00"], id="fixed-time-right-after-gap"),
    pytest.param(
        ET,
        "30 1 * * *",
        "2026-10-31T12:00",
        ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"],
        id="fixed-time-in-fold",
    ),
    pytest.param(
        ET,
        "*/30 * * * *",
        "2026-03-08T01:10",
        ["2026-03-08T01:30-05:00", "2026-03-08T03:00-04:00", "2026-03-08T03:30-04:00"],
        id="wildcard-follows-the-clock",
    ),
    pytest.param(
        ET, "30 1 * * *", "2026-11-01T01:15-05:00", ["2026-11-02T01:30-05:00"], id="not-again-in-the-second-pass"
    ),
    pytest.param(
        BERLIN, "30 2 * * *", "2026-10-24T12:00", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"], id="berlin-fold"
    ),
    pytest.param(LORD_HOWE, "15 2 * * *", "2026-10-03T12:00", ["2026-10-04T02:30+11:00"], id="half-hour-gap"),
    pytest.param(
        LORD_HOWE,
        "45 1 * * *",
        "2026-04-04T12:00",
        ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"],
        id="half-hour-fold",
    ),
    pytest.param(
        "America/Santiago", "0 0 * * *", "2026-09-05T12:00", ["2026-09-06T01:00-03:00"], id="santiago-skipped-midnight"
    ),
    pytest.param(
        "Africa/Cairo", "0 0 * * *", "2026-04-23T12:00", ["2026-04-24T01:00+03:00"], id="cairo-skipped-midnight"
    ),
    pytest.param(
        "America/Havana", "30 0 * * *", "2026-03-07T12:00", ["2026-03-08T01:00-04:00"], id="havana-gap-after-midnight"
    ),
    pytest.param(
        "Africa/Casablanca",
        "30 2 * * *",
        "2026-03-21T12:00",
        ["2026-03-22T03:00+01:00"],
        id="casablanca-end-of-ramadan",
    ),
    pytest.param(
        "Asia/Shanghai", "30 7 * * *", "2026-06-05T00:00", ["2026-06-04T23:30Z"], id="shanghai-is-the-day-before-in-utc"
    ),
    pytest.param(
        "UTC",
        "0 0 29 2 *",
        "2026-06-01",
        ["2028-02-29T00:00Z", "2032-02-29T00:00Z", "2036-02-29T00:00Z"],
        id="leap-days",
    ),
    pytest.param("UTC", "0 0 29 2 *", "2097-01-01", ["2104-02-29T00:00Z"], id="leap-day-over-the-century"),
    pytest.param(
        "UTC",
        "0 0 13 * 5",
        "2026-06-01",
        ["2026-06-05T00:00Z", "2026-06-12T00:00Z", "2026-06-13T00:00Z"],
        id="either-day",
    ),
    pytest.param(ET, "30 2 11 Mar ?", "2012-03-11T00:00", ["2012-03-11T03:00-04:00"], id="named-month-in-gap"),
    pytest.param(
        ET, "0 1 * * ?", "2012-11-04T01:00-04:00", ["2012-11-05T01:00-05:00"], id="question-mark-in-second-pass"
    ),
    pytest.param(
        RIGA,
        "0 3 * * *",
        "2021-03-27T01:30",
        ["2021-03-27T03:00+02:00", "2021-03-28T04:00+03:00", "2021-03-29T03:00+03:00"],
        id="riga-gap",
    ),
    pytest.param(
        RIGA,
        "15 3 * * *",
        "2021-10-30T00:00",
        ["2021-10-30T03:15+03:00", "2021-10-31T03:15+03:00", "2021-11-01T03:15+02:00"],
        id="riga-fold",
    ),
    pytest.param(
        RIGA,
        "30 1,2,3,4,5 * * *",
        "2021-03-28T01:30",
        ["2021-03-28T02:30+02:00", "2021-03-28T04:00+03:00", "2021-03-28T04:30+03:00"],
        id="riga-several-hours-around-the-gap",
    ),
    pytest.param(
        "UTC", "0 0 * Feb Mon/2", "2012-07-09", ["2013-02-01T00:00Z", "2013-02-04T00:00Z"], id="named-weekday-with-step"
    ),
]

# the same schedules where a budget's hits follow the clock
BUDGETS = [
    pytest.param(ET, "30 2 * * *", "2026-03-08T00:00", ["2026-03-09T02:30-04:00"], id="gap-is-skipped"),
    pytest.param(
        ET, "30 1 * * *", "2026-10-31T12:00", ["2026-11-01T01:30-04:00", "2026-11-01T01:30-05:00"], id="fold-twice"
    ),
    pytest.param(ET, "30 1 * * *", "2026-11-01T01:15-05:00", ["2026-11-01T01:30-05:00"], id="second-pass"),
    pytest.param("Africa/Cairo", "0 0 * * *", "2026-04-23T12:00", ["2026-04-24T01:00+03:00"], id="no-midnight"),
    pytest.param(
        "Africa/Cairo", "0 9 24 4 *", "2026-04-23T12:00", ["2026-04-24T09:00+03:00"], id="day-without-midnight"
    ),
    pytest.param(
        "Africa/Cairo",
        "*/20 0 * * *",
        "2026-04-23T12:00",
        ["2026-04-24T01:00+03:00", "2026-04-25T00:00+03:00"],
        id="only-midnight-itself-is-kept",
    ),
    pytest.param(
        "Australia/Lord_Howe", "0 2 * * *", "2026-04-04T12:00", ["2026-04-05T02:00+10:30"], id="after-half-hour-fold"
    ),
    pytest.param(
        "Pacific/Apia",
        "0 9 * * *",
        "2011-12-29T12:00",
        ["2011-12-31T09:00+14:00", "2012-01-01T09:00+14:00"],
        id="a-day-that-never-was",
    ),
    pytest.param(
        "Africa/Monrovia", "0 * * * *", "1971-12-31T22:30", ["1971-12-31T23:44:30Z"], id="offset-with-seconds"
    ),
]


def _following(text: str, dialect: Dialect, zone: str, start: str, count: int) -> list[int | None]:
    cron, hits = Cron.parse(text, dialect), list[int | None]()
    t: int | None = local(zone, start)
    for _ in range(count):
        assert t is not None
        t = cron.after(t, load_zone(zone))
        hits.append(t)
    return hits


@pytest.mark.parametrize(("zone", "text", "start", "expected"), RULES)
def test_rule_fires_next(zone: str, text: str, start: str, expected: list[str]) -> None:
    """A rule with a fixed time fires once a day, also when clocks change."""
    found = _following(text, Dialect.RULE, zone, start, len(expected))

    assert [show(utc(hit)) for hit in expected] == [show(hit) for hit in found]


@pytest.mark.parametrize(("zone", "text", "start", "expected"), BUDGETS)
def test_budget_fires_next(zone: str, text: str, start: str, expected: list[str]) -> None:
    """A budget's schedule follows the clock, except that a skipped midnight fires at the first instant of the day."""
    found = _following(text, Dialect.BUDGET, zone, start, len(expected))

    assert [show(utc(hit)) for hit in expected] == [show(hit) for hit in found]


def test_skipped_day_fires_right_after_for_fixed_times() -> None:
    """Where a whole day is skipped its fixed times fire together at the start of the next one."""
    cron, apia = Cron.parse("0 9 * * *", Dialect.RULE), load_zone("Pacific/Apia")
    start = utc("2011-12-30T00:00Z")

    hits = [show(hit, "Pacific/Apia") for hit in cron.between(start, start + 2 * 86_400, apia)]

    assert hits == ["2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00", "2012-01-01T09:00:00+14:00"]


@pytest.mark.parametrize("year", ["0001", "1000", "1600", "9999"])
def test_any_year_of_the_calendar_works(year: str) -> None:
    """Schedules work before the epoch and up to the last year."""
    cron = Cron.parse("@yearly", Dialect.BUDGET)

    assert cron.at_or_before(utc(f"{year}-01-01T12:00"), load_zone("UTC")) == utc(f"{year}-01-01")


def test_nothing_fires_after_the_last_year() -> None:
    """The calendar ends with the year 9999, and begins with the year 1."""
    cron, zone = Cron.parse("0 0 1 1 *", Dialect.RULE), load_zone(ET)

    assert cron.after(utc("9999-06-01"), zone) is None
    assert cron.at_or_before(utc("0001-01-01"), zone) is None
    assert list(cron.between(utc("9999-06-01"), utc("9999-12-31"), zone)) == []
