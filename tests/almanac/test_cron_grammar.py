"""The grammar of schedules in each dialect, and the messages for what it rejects."""

import pytest

from springtide.almanac import Cron, CronError, Dialect
from springtide.almanac.civil import members

BOTH = (Dialect.BUDGET, Dialect.RULE)

# schedule, field, what the message says, what the hint says
REJECTED = [
    pytest.param("@wrongly", None, "macro '@wrongly' is unknown", "did you mean @", id="unknown-macro"),
    pytest.param("@Daily", None, "macro '@Daily' is unknown", "did you mean @daily?", id="macro-case"),
    pytest.param("@every 5m", None, "counts from the start of the process", "*/15 * * * *", id="every"),
    pytest.param(
        "TZ=America/New_York 0 9 * * *", None, "names a time zone", "America/New_York in timeZone", id="zone-prefix-tz"
    ),
    pytest.param("CRON_TZ=UTC 0 9 * * *", None, "names a time zone", "write 0 9 * * * here", id="zone-prefix-cron-tz"),
    pytest.param("60 * * * *", "minute", "minute '60' is out of range, expected 0-59", "write 0", id="minute-60"),
    pytest.param("*/0 * * * *", "minute", "has the step 0", "leave the step out", id="step-0"),
    pytest.param("*", None, "has 1 field, expected 5", "* * * * *", id="one-field"),
    pytest.param("* * * * ", None, "has 4 fields, expected 5", "* * * * *", id="four-stars"),
    pytest.param("0 0 13 *", None, "has 4 fields, expected 5", "0 0 13 * *", id="four-fields"),
    pytest.param("0 30 9 * * mon", None, "has 6 fields", "without seconds: 30 9 * * mon", id="seconds"),
    pytest.param("0 0 1 1 * 2026 x", None, "has 7 fields", "keep the first five: 0 0 1 1 *", id="seven"),
    pytest.param("", None, "schedule is empty", "0 9 * * mon-fri", id="empty"),
    pytest.param("0 0 30 2 *", "day of month", "never fires: no day 30 in feb", "choose a day", id="30-february"),
    pytest.param("0 0 31 4,6 *", "day of month", "never fires: no day 31 in apr, jun", "choose", id="31-apr-jun"),
    pytest.param("1 1 * * 5L", "day of week", "'5L' is not understood", "L (the last", id="last-weekday"),
    pytest.param("1 1 * * 1#2", "day of week", "'1#2' is not understood", "# (the nth weekday", id="nth-weekday"),
    pytest.param("1 1 L * *", "day of month", "'L' is not understood", "L (the last day)", id="last-day"),
    pytest.param("1 1 15W * *", "day of month", "'15W' is not understood", "W (the nearest", id="nearest-working-day"),
    pytest.param("0 24 * * *", "hour", "hour '24' is out of range, expected 0-23", "write 0", id="hour-24"),
    pytest.param("0 0 0 * *", "day of month", "expected 1-31", "from 1 to 31", id="day-0"),
    pytest.param("0 0 32 * *", "day of month", "expected 1-31", "from 1 to 31", id="day-32"),
    pytest.param("0 0 * 13 *", "month", "expected 1-12 or jan-dec", "from 1 to 12", id="month-13"),
    pytest.param("0 0 * * 8", "day of week", "out of range", "from 0 to 6", id="weekday-8"),
    pytest.param("0 22-2 * * *", "hour", "runs backwards", "22,23,0,1,2", id="hours-wrap"),
    pytest.param("0 0 * * fri-sun", "day of week", "runs backwards", "write fri,sat,sun", id="weekdays-wrap"),
    pytest.param("0 0 * nov-feb *", "month", "runs backwards", "write nov,dec,jan,feb", id="months-wrap"),
    pytest.param("0 0 * * tue-mon/3", "day of week", "runs backwards", "write tue,fri,mon", id="wrap-with-step"),
    pytest.param(", * * * *", "minute", "minute ',' names no value", "write *", id="empty-list"),
    pytest.param("0 0 * * monday", "day of week", "'monday' is not", "first three letters: mon", id="long-name"),
    pytest.param("0 0 * xyz *", "month", "'xyz' is not understood", "names have three letters: jan", id="no-name"),
    pytest.param("mon * * * *", "minute", "'mon' is not understood", "write numbers", id="name-in-wrong-field"),
    pytest.param("-1 * * * *", "minute", "'-1' is not understood", "negative numbers", id="negative"),
    pytest.param("1-2-3 * * * *", "minute", "'1-2-3' is not", "a range has one dash", id="two-dashes"),
    pytest.param("*/2/3 * * * *", "minute", "has the step '2/3'", "write a step such as", id="two-slashes"),
    pytest.param("*/x * * * *", "minute", "has the step 'x'", "write a step such as", id="step-word"),
    pytest.param("*-5 * * * *", "minute", "attaches a range to *", "write 0-5", id="star-range"),
    pytest.param("٣ * * * *", "minute", "'٣' is not understood", "write numbers", id="other-digits"),
    pytest.param("9" * 5000 + " * * * *", "minute", "is out of range", "from 0 to 59", id="endless-digits"),
]


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(("text", "field", "message", "hint"), REJECTED)
def test_rejected_with_a_fix(text: str, field: str | None, message: str, hint: str, dialect: Dialect) -> None:
    """Every rejection names the field, quotes what was written and says what to write."""
    with pytest.raises(CronError) as caught:
        Cron.parse(text, dialect)

    assert caught.value.field == field
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("text", ["0 0 * * 7", "0 0 * * 6-7", "0 0 * * 0-7", "0 0 * * 1,7"])
def test_seven_is_sunday_only_for_rules(text: str) -> None:
    """A budget has weekdays 0 to 6, a rule also 7."""
    with pytest.raises(CronError) as caught:
        Cron.parse(text, Dialect.BUDGET)

    assert caught.value.hint == "write 0 or sun for Sunday"
    assert 0 in members(Cron.parse(text, Dialect.RULE).days.weekdays)


@pytest.mark.parametrize(
    ("text", "weekdays"),
    [
        pytest.param("5-7", (0, 5, 6), id="range-to-seven"),
        pytest.param("5-7/2", (0, 5), id="range-with-step"),
        pytest.param("1/2", (1, 3, 5), id="open-step-ends-at-six"),
        pytest.param("7", (0,), id="seven"),
        pytest.param("Mon/2", (1, 3, 5), id="named-step"),
        pytest.param("SUN-sat", (0, 1, 2, 3, 4, 5, 6), id="names-any-case"),
        pytest.param("1,,2,", (1, 2), id="empty-elements-mean-nothing"),
        pytest.param("05", (5,), id="leading-zero"),
        pytest.param("*/100", (0,), id="step-beyond-the-end"),
    ],
)
def test_weekdays_of_a_rule(text: str, weekdays: tuple[int, ...]) -> None:
    """Items of the weekday field become weekdays."""
    assert members(Cron.parse(f"0 0 * * {text}", Dialect.RULE).days.weekdays) == weekdays


def test_steps_from_seven_are_ambiguous() -> None:
    """A step from 7 is rejected, because 7 could start or end the week."""
    with pytest.raises(CronError) as caught:
        Cron.parse("0 0 * * 7/2", Dialect.RULE)

    assert caught.value.hint == "write 0/2 to start on Sunday"


@pytest.mark.parametrize(
    ("days", "weekdays", "either"),
    [
        pytest.param("13", "5", True, id="both-named"),
        pytest.param("*", "5", False, id="star"),
        pytest.param("?", "5", False, id="question-mark"),
        pytest.param("*/1", "5", False, id="step-1-keeps-the-star"),
        pytest.param("*/2", "5", True, id="step-2-loses-it"),
        pytest.param("1,*", "5", False, id="list-with-a-star"),
        pytest.param("1,*/2", "5", True, id="list-with-a-step"),
        pytest.param("13", "*/2", True, id="weekday-step"),
        pytest.param("13", "?", False, id="weekday-question-mark"),
        pytest.param("1-31", "5", True, id="all-days-written-out"),
    ],
)
def test_how_the_day_fields_are_joined(days: str, weekdays: str, either: bool) -> None:
    """A wildcard in a day field asks for both; otherwise either of them is enough."""
    assert Cron.parse(f"0 0 {days} * {weekdays}", Dialect.BUDGET).days.either is either


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("30 2 * * *", True),
        ("0,30 2-4 * * *", True),
        ("@daily", True),
        ("@hourly", False),
        ("*/5 2 * * *", False),
        ("0 */2 * * *", False),
        ("? 2 * * *", False),
        ("0 ? * * *", False),
        ("5,* 2 * * *", True),
    ],
)
def test_fixed_time_depends_on_the_minute_and_hour_fields(text: str, fixed: bool) -> None:
    """A rule has a fixed time if neither minute nor hour begins with a wildcard; a budget never has."""
    assert Cron.parse(text, Dialect.RULE).fixed_time is fixed
    assert not Cron.parse(text, Dialect.BUDGET).fixed_time


def test_text_is_kept_as_written() -> None:
    """The text of a schedule stays as the user wrote it."""
    assert Cron.parse(" 0 9 * * MON-FRI ", Dialect.RULE).text == " 0 9 * * MON-FRI "
