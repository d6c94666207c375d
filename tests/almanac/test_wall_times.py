"""Short descriptions of schedules and patterns."""

import pytest

from springtide.almanac import Cron, Dialect, TimePattern


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
