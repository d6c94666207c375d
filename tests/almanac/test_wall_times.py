"""Short descriptions of schedules and patterns."""

import pytest

from springtide.almanac import Cron, Dialect, TimePattern
from springtide.almanac.cron_grammar import parse_schedule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 9 * * mon-fri", "at 09:00 on mon-fri"),
        ("0 0 * * *", "at 00:00"),
        ("0 0 * * 6,0", "at 00:00 on sat, sun"),
        ("0 0 * * 1,3,5", "at 00:00 on mon, wed, fri"),
        ("0 0 13 * 5", "at 00:00 on day 13 or fri"),
        ("0 0 1 1 *", "at 00:00 on day 1 in jan"),
        ("30 8,20 1-7 * *", "at 08:30, 20:30 on day 1-7"),
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("@hourly", "every hour"),
        ("0 */2 * * *", "every 2 hours"),
        ("5 * * * *", "at minute 5 of every hour"),
        ("5-50/15 * * * *", "at minutes 5, 20, 35, 50 of every hour"),
        ("*/15 9-16 * * MON-FRI", "at minutes 0, 15, 30, 45 of hours 9-16 on mon-fri"),
        ("* 3 * * *", "every minute of hour 3"),
        ("0 0 * 6-8 *", "at 00:00 in jun-aug"),
    ],
)
def test_description_of_a_schedule(text: str, words: str) -> None:
    """A description names times and days, not fields."""
    assert Cron.parse(text, Dialect.BUDGET).describe() == words


def test_description_of_a_pattern() -> None:
    """Days and weekdays are described as one condition."""
    pattern = TimePattern.parse(hours="6", days="23,24,25,26,27,28,29", months="Nov", weekdays="Fri")

    assert pattern.describe() == "at 06:00 on day 23-29 that is fri in nov"


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        pytest.param("* * *", 1, id="every-day"),
        pytest.param("* * mon", 7, id="a-weekday"),
        pytest.param("* * mon-fri", 3, id="weekdays"),
        pytest.param("1 * *", 31, id="a-day-of-every-month"),
        pytest.param("1 1 *", 366, id="a-day-of-the-year"),
        pytest.param("13 * fri", 7, id="a-day-of-every-month-or-a-weekday"),
        pytest.param("* 2 mon", None, id="a-weekday-of-a-month"),
    ],
)
def test_the_longest_pause_between_days(days: str, expected: int | None) -> None:
    """It is known where days depend on the date alone, or on the weekday alone."""
    assert parse_schedule(f"0 0 {days}", Dialect.BUDGET).days.longest_pause() == expected
