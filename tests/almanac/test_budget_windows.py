"""Windows that open at the hits of a schedule, case by case, as disruption budgets use them."""

import pytest
from tests.almanac.builders import utc

from springtide.almanac import Cron, Dialect, UnknownZone, load_zone, windows_after_hits

H = 3600
ET = "America/New_York"
OFFICE = ("0 9 * * mon-fri", 8 * H)

# (schedule, duration), now in UTC, active; 2024-01-10 is a Wednesday
WINDOWS = [
    pytest.param(OFFICE, "2024-01-10T08:59:59", False, id="39"),
    pytest.param(OFFICE, "2024-01-10T09:00:00", True, id="40"),
    pytest.param(OFFICE, "2024-01-10T16:59:59", True, id="41"),
    pytest.param(OFFICE, "2024-01-10T17:00:00", False, id="42-half-open"),
    pytest.param(("0 22 * * *", 4 * H), "2024-01-10T23:59", True, id="44-before-midnight"),
    pytest.param(("0 22 * * *", 4 * H), "2024-01-11T01:59", True, id="44-after-midnight"),
    pytest.param(("0 22 * * *", 4 * H), "2024-01-11T02:00", False, id="44-end"),
    pytest.param(("0 22 * * fri", 10 * H), "2024-01-13T07:59:59", True, id="45-inside"),
    pytest.param(("0 22 * * fri", 10 * H), "2024-01-13T08:00", False, id="45-end"),
    pytest.param(("@daily", 48 * H), "2024-01-10T17:23:11", True, id="47-longer-than-its-period"),
    pytest.param(("@weekly", H), "2024-01-07T00:30", True, id="48-sunday"),
    pytest.param(("@weekly", H), "2024-01-08T00:30", False, id="48-monday"),
    pytest.param(("@hourly", H), "2024-01-10T12:37:10", True, id="50-seamless"),
    pytest.param(("@hourly", 15 * 60), "2024-01-10T12:14:59", True, id="51-inside"),
    pytest.param(("@hourly", 15 * 60), "2024-01-10T12:15:00", False, id="51-end"),
    pytest.param(("* * * * *", 60), "2024-01-10T12:00:30", True, id="53-gapless"),
    pytest.param(("*/15 9-16 * * MON-FRI", 15 * 60), "2024-01-10T16:59", True, id="54"),
    pytest.param(("0 9 ? * 1-5", 8 * H), "2024-01-10T12:00", True, id="56"),
    pytest.param(("0 0 13 * 5", 24 * H), "2024-01-12T12:00", True, id="57-friday"),
    pytest.param(("0 0 13 * 5", 24 * H), "2024-01-13T12:00", True, id="57-the-13th"),
    pytest.param(("0 0 13 * 5", 24 * H), "2024-01-14T12:00", False, id="57-sunday"),
    pytest.param(("0 0 * * 6,0", 24 * H), "2024-01-14T12:00", True, id="59"),
    pytest.param(("0 0 29 2 *", 24 * H), "2024-02-29T12:00", True, id="60-leap-day"),
    pytest.param(("0 0 29 2 *", 24 * H), "2023-02-28T12:00", False, id="60-other-year"),
    pytest.param(("30 6 * * SUN", 6 * H), "2024-01-07T00:00", False, id="62"),
    pytest.param(("@yearly", 24 * H), "1000-01-01T12:00", True, id="63-long-ago"),
    pytest.param(("@yearly", 0), "2024-01-01T00:00", False, id="65-no-duration"),
]


def _active(given: tuple[str, int], zone: str, now: str) -> bool:
    text, seconds = given
    return windows_after_hits(Cron.parse(text, Dialect.BUDGET), seconds, load_zone(zone)).at(utc(now))


@pytest.mark.parametrize(("given", "now", "active"), WINDOWS)
def test_window_in_utc(given: tuple[str, int], now: str, active: bool) -> None:
    """A window is active from its hit until just before its duration has passed."""
    assert _active(given, "UTC", now) is active


@pytest.mark.parametrize(
    ("given", "zone", "now", "active"),
    [
        pytest.param(OFFICE, ET, "2024-01-10T13:59:59", False, id="95-before"),
        pytest.param(OFFICE, ET, "2024-01-10T14:00:00", True, id="95-at"),
        pytest.param(("30 2 * * *", H), ET, "2024-03-10T06:45", False, id="97-before"),
        pytest.param(("30 2 * * *", H), ET, "2024-03-10T07:30", False, id="97-skipped"),
        pytest.param(("30 2 * * *", H), ET, "2024-03-10T08:00", False, id="97-after"),
        pytest.param(("30 2 * * *", H), ET, "2024-03-11T06:45", True, id="98"),
        pytest.param(("* 0-2 * * *", 60), ET, "2024-03-10T06:59:59", True, id="run-cut-by-a-gap-inside"),
        pytest.param(("* 0-2 * * *", 60), ET, "2024-03-10T07:00:00", False, id="run-cut-by-a-gap-end"),
        pytest.param(("0 22 * * sat", 8 * H), ET, "2024-03-10T10:59:59", True, id="100-inside"),
        pytest.param(("0 22 * * sat", 8 * H), ET, "2024-03-10T11:00:00", False, id="100-elapsed"),
        pytest.param(("0 22 * * sat", 8 * H), ET, "2024-11-03T09:59:59", True, id="101-inside"),
        pytest.param(("0 22 * * sat", 8 * H), ET, "2024-11-03T10:00:00", False, id="101-elapsed"),
        pytest.param(("0 9 * * *", 8 * H), "Asia/Kolkata", "2024-01-10T03:29:59", False, id="103-before"),
        pytest.param(("0 9 * * *", 8 * H), "Asia/Kolkata", "2024-01-10T03:30:00", True, id="103-at"),
    ],
)
def test_window_in_a_zone(given: tuple[str, int], zone: str, now: str, active: bool) -> None:
    """Hits follow the clock, and durations are elapsed time."""
    assert _active(given, zone, now) is active


def test_unknown_zone_is_an_error() -> None:
    """Row 104: a zone that does not exist is never read as UTC."""
    with pytest.raises(UnknownZone):
        load_zone("Mars/Olympus")


@pytest.mark.parametrize("zone", ["UTC", ET, "Asia/Kolkata", "Africa/Casablanca"])
@pytest.mark.parametrize("given", [("* * * * *", 60), ("@daily", 48 * H), ("*/5 * * * *", 300)])
def test_a_window_that_never_closes_says_so_at_once(given: tuple[str, int], zone: str) -> None:
    """Whether a change lies ahead is known without walking through four hundred years of minutes."""
    window = windows_after_hits(Cron.parse(given[0], Dialect.BUDGET), given[1], load_zone(zone))
    window.next_change(utc("2024-01-10"))

    assert window.next_change(utc("2024-06-01")) is None


@pytest.mark.parametrize("zone", ["UTC", ET])
def test_dense_half_year_changes_twice(zone: str) -> None:
    """Every minute of January to June is one window a year."""
    window = windows_after_hits(Cron.parse("* * * 1-6 *", Dialect.BUDGET), 60, load_zone(zone))

    assert [active for _, active in window.changes(utc("2024-01-02"), utc("2026-01-02"))] == [False, True] * 2


def test_every_day_for_a_day_pauses_when_a_day_is_longer() -> None:
    """A day of 25 hours has an hour that 24 hours from its start do not reach."""
    window = windows_after_hits(Cron.parse("@daily", Dialect.BUDGET), 24 * H, load_zone(ET))
    expected = [(utc("2024-11-04T04:00"), False), (utc("2024-11-04T05:00"), True)]

    assert window.changes(utc("2024-10-01"), utc("2024-12-01")) == expected
