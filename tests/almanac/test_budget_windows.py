"""Windows that open at each hit of a schedule, as disruption budgets use them."""

import pytest
from tests.almanac.builders import utc

from springtide.almanac import Cron, Dialect, load_zone, windows_after_hits
from springtide.almanac.civil import DAY, LAST_DAY

H = 3600
ET = "America/New_York"
OFFICE = ("0 9 * * mon-fri", 8 * H)

# (schedule, duration), now in UTC, active; 2024-01-10 is a Wednesday
WINDOWS = [
    pytest.param(OFFICE, "2024-01-10T08:59:59", False, id="one-second-before-the-hit"),
    pytest.param(OFFICE, "2024-01-10T09:00:00", True, id="at-the-hit"),
    pytest.param(OFFICE, "2024-01-10T16:59:59", True, id="last-second-of-the-duration"),
    pytest.param(OFFICE, "2024-01-10T17:00:00", False, id="end-is-half-open"),
    pytest.param(("0 22 * * *", 4 * H), "2024-01-10T23:59", True, id="over-midnight-before-it"),
    pytest.param(("0 22 * * *", 4 * H), "2024-01-11T01:59", True, id="over-midnight-after-it"),
    pytest.param(("0 22 * * *", 4 * H), "2024-01-11T02:00", False, id="over-midnight-end"),
    pytest.param(("0 22 * * fri", 10 * H), "2024-01-13T07:59:59", True, id="friday-night-last-second"),
    pytest.param(("0 22 * * fri", 10 * H), "2024-01-13T08:00", False, id="friday-night-end"),
    pytest.param(("@daily", 48 * H), "2024-01-10T17:23:11", True, id="duration-longer-than-the-period"),
    pytest.param(("@weekly", H), "2024-01-07T00:30", True, id="weekly-on-sunday"),
    pytest.param(("@weekly", H), "2024-01-08T00:30", False, id="weekly-not-on-monday"),
    pytest.param(("@hourly", H), "2024-01-10T12:37:10", True, id="hourly-for-an-hour"),
    pytest.param(("@hourly", 15 * 60), "2024-01-10T12:14:59", True, id="quarter-hour-last-second"),
    pytest.param(("@hourly", 15 * 60), "2024-01-10T12:15:00", False, id="quarter-hour-end"),
    pytest.param(("* * * * *", 60), "2024-01-10T12:00:30", True, id="every-minute-for-a-minute"),
    pytest.param(("*/15 9-16 * * MON-FRI", 15 * 60), "2024-01-10T16:59", True, id="every-quarter-hour-in-office-hours"),
    pytest.param(("0 9 ? * 1-5", 8 * H), "2024-01-10T12:00", True, id="question-mark-as-star"),
    pytest.param(("0 0 13 * 5", 24 * H), "2024-01-12T12:00", True, id="either-day-on-friday"),
    pytest.param(("0 0 13 * 5", 24 * H), "2024-01-13T12:00", True, id="either-day-on-the-13th"),
    pytest.param(("0 0 13 * 5", 24 * H), "2024-01-14T12:00", False, id="neither-day-on-sunday"),
    pytest.param(("0 0 * * 6,0", 24 * H), "2024-01-14T12:00", True, id="weekdays-in-any-order"),
    pytest.param(("0 0 29 2 *", 24 * H), "2024-02-29T12:00", True, id="leap-day"),
    pytest.param(("0 0 29 2 *", 24 * H), "2023-02-28T12:00", False, id="no-leap-day-in-a-common-year"),
    pytest.param(("30 6 * * SUN", 6 * H), "2024-01-07T00:00", False, id="sunday-before-the-hit"),
    pytest.param(("@yearly", 24 * H), "1000-01-01T12:00", True, id="year-1000"),
    pytest.param(("@yearly", 0), "2024-01-01T00:00", False, id="duration-zero"),
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
        pytest.param(OFFICE, ET, "2024-01-10T13:59:59", False, id="new-york-one-second-before"),
        pytest.param(OFFICE, ET, "2024-01-10T14:00:00", True, id="new-york-at-the-hit"),
        pytest.param(("30 2 * * *", H), ET, "2024-03-10T06:45", False, id="hit-in-gap-before"),
        pytest.param(("30 2 * * *", H), ET, "2024-03-10T07:30", False, id="hit-in-gap-is-skipped"),
        pytest.param(("30 2 * * *", H), ET, "2024-03-10T08:00", False, id="hit-in-gap-after"),
        pytest.param(("30 2 * * *", H), ET, "2024-03-11T06:45", True, id="hit-the-day-after-the-gap"),
        pytest.param(("* 0-2 * * *", 60), ET, "2024-03-10T06:59:59", True, id="run-before-the-gap-last-second"),
        pytest.param(("* 0-2 * * *", 60), ET, "2024-03-10T07:00:00", False, id="run-before-the-gap-end"),
        pytest.param(
            ("0 22 * * sat", 8 * H), ET, "2024-03-10T10:59:59", True, id="elapsed-duration-over-gap-last-second"
        ),
        pytest.param(("0 22 * * sat", 8 * H), ET, "2024-03-10T11:00:00", False, id="elapsed-duration-over-gap-end"),
        pytest.param(
            ("0 22 * * sat", 8 * H), ET, "2024-11-03T09:59:59", True, id="elapsed-duration-over-fold-last-second"
        ),
        pytest.param(("0 22 * * sat", 8 * H), ET, "2024-11-03T10:00:00", False, id="elapsed-duration-over-fold-end"),
        pytest.param(
            ("0 9 * * *", 8 * H), "Asia/Kolkata", "2024-01-10T03:29:59", False, id="kolkata-one-second-before"
        ),
        pytest.param(("0 9 * * *", 8 * H), "Asia/Kolkata", "2024-01-10T03:30:00", True, id="kolkata-at-the-hit"),
    ],
)
def test_window_in_a_zone(given: tuple[str, int], zone: str, now: str, active: bool) -> None:
    """Hits follow the clock, and durations are elapsed time."""
    assert _active(given, zone, now) is active


@pytest.mark.parametrize("zone", ["UTC", ET, "Asia/Kolkata", "Africa/Casablanca"])
@pytest.mark.parametrize("given", [("* * * * *", 60), ("@daily", 48 * H), ("*/5 * * * *", 300)])
def test_a_window_that_never_closes_has_no_next_change(given: tuple[str, int], zone: str) -> None:
    """That no change lies ahead is known without stepping through four hundred years of minutes."""
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


def test_windows_open_on_the_last_day_of_the_calendar() -> None:
    """Days after it do not exist, and a window that begins on it is found."""
    window = windows_after_hits(Cron.parse("0 12 * * *", Dialect.BUDGET), H, load_zone("UTC"))
    noon = LAST_DAY * DAY + 12 * H

    assert [window.at(noon + seconds) for seconds in (-1, 0, H - 1)] == [False, True, True]
