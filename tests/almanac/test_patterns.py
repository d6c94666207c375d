"""The lists of a pattern, the messages for what they reject, and the occurrences of a pattern."""

import pytest
from tests.almanac.builders import utc

from springtide.almanac import Occurrence, TimePattern, TimePatternError, load_zone
from springtide.almanac.civil import members

# arguments, then (field, part of the message, hint) of every problem
REJECTED = [
    pytest.param(
        {"weekdays": "Mon-Fri"},
        [("weekdays", "'Mon-Fri' is not allowed", "only lists are understood: Mon,Tue,Wed,Thu,Fri")],
        id="weekday-range",
    ),
    pytest.param(
        {"months": "Jan-Mar"},
        [("months", "'Jan-Mar' is not allowed", "only lists are understood: Jan,Feb,Mar")],
        id="month-range",
    ),
    pytest.param(
        {"hours": "*/2"},
        [("hours", "'*/2' is not", "only lists are understood: 0,2,4,6,8,10,12,14,16,18,20,22")],
        id="step",
    ),
    pytest.param({"days": "*"}, [("days", "'*' is not allowed", "leave days out to match any")], id="star"),
    pytest.param({"weekdays": "8"}, [("weekdays", "'8' is not", "choose a value from 0 to 6")], id="weekday-8"),
    pytest.param({"hours": ""}, [("hours", "hours is empty", "leave hours out, or list values such as 1")], id="empty"),
    pytest.param(
        {"hours": "9,,10"}, [("hours", "'9,,10' has an empty element", "remove the extra comma")], id="empty-element"
    ),
    pytest.param({"hours": 24}, [("hours", "'24' is not allowed", "choose a value from 0 to 23")], id="hour-24"),
    pytest.param({"minutes": 60}, [("minutes", "'60' is not", "choose a value from 0 to 59")], id="minute-60"),
    pytest.param({"days": "0"}, [("days", "'0' is not", "choose a value from 1 to 31")], id="day-0"),
    pytest.param({"days": "32"}, [("days", "'32' is not", "choose a value from 1 to 31")], id="day-32"),
    pytest.param({"hours": -1}, [("hours", "'-1' is not", "list whole numbers, such as 0,1")], id="negative"),
    pytest.param({"hours": "9.5"}, [("hours", "'9.5' is not", "list whole numbers, such as 0,1")], id="fraction"),
    pytest.param({"months": "Sept"}, [("months", "'Sept' is not", "did you mean Sep?")], id="four-letters"),
    pytest.param(
        {"weekdays": "xyz"},
        [("weekdays", "'xyz' is not allowed", "names are Sun, Mon, Tue, Wed, Thu, Fri, Sat")],
        id="no-name",
    ),
    pytest.param(
        {"weekdays": "Fri-Mon"},
        [("weekdays", "'Fri-Mon' is not allowed", "only lists are understood: Fri,Sat,Sun,Mon")],
        id="range-over-the-weekend",
    ),
    pytest.param(
        {"days": 30, "months": "Feb"},
        [("days", "days 30 never come in months Feb", "choose a day that one of the months has")],
        id="30-february",
    ),
    pytest.param(
        {"days": "31", "months": "Apr,Jun"},
        [("days", "days 31 never come in months Apr,Jun", "choose a day that one of the months has")],
        id="31-april-and-june",
    ),
    pytest.param(
        {"minutes": "61", "hours": "9-17", "weekdays": "Mon,Funday"},
        [
            ("minutes", "'61' is not allowed", "choose a value from 0 to 59"),
            ("hours", "'9-17' is not allowed", "only lists are understood: 9,10,11,12,13,14,15,16,17"),
            ("weekdays", "'Funday' is not allowed", "names are Sun, Mon, Tue, Wed, Thu, Fri, Sat"),
        ],
        id="all-problems-at-once",
    ),
]


@pytest.mark.parametrize(("given", "expected"), REJECTED)
def test_rejected_with_every_problem(given: dict[str, str | int], expected: list[tuple[str, str, str]]) -> None:
    """Every list that is wrong is reported, each with a fix."""
    with pytest.raises(TimePatternError) as caught:
        TimePattern.parse(**given)

    problems = caught.value.problems
    assert [(problem.field, problem.hint) for problem in problems] == [(field, hint) for field, _, hint in expected]
    for problem, (_, message, _) in zip(problems, expected, strict=True):
        assert message in problem.message


@pytest.mark.parametrize(
    ("given", "weekdays"),
    [
        pytest.param("Monday", (1,), id="full-name"),
        pytest.param("7", (0,), id="seven-is-sunday"),
        pytest.param(0, (0,), id="zero"),
        pytest.param("mon, TUE,Wednesday", (1, 2, 3), id="any-case-and-spaces"),
        pytest.param("Fri,5", (5,), id="twice"),
    ],
)
def test_weekdays(given: str | int, weekdays: tuple[int, ...]) -> None:
    """Weekdays are names of three letters, full names, or numbers with both Sundays."""
    assert members(TimePattern.parse(weekdays=given).days.weekdays) == weekdays


def test_numbers_may_be_numbers() -> None:
    """Hours 17 is the same as hours "17"."""
    assert TimePattern.parse(hours=17) == TimePattern.parse(hours="17")
    assert TimePattern.parse(hours=17) != TimePattern.parse(hours=18)
    assert len({TimePattern.parse(hours=17), TimePattern.parse(hours="17", minutes=0)}) == 1


def test_left_out_times_are_zero_and_left_out_days_are_any() -> None:
    """An empty pattern is every midnight."""
    pattern = TimePattern.parse()

    assert pattern.walls.times == (0,)
    assert pattern.days.daily


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"days": 29, "months": "Feb"}, True, id="29-february"),
        pytest.param({"days": "29,30", "months": 2}, True, id="29-february-and-a-day-that-never-comes"),
        pytest.param({"days": "28,29", "months": "Feb"}, False, id="with-the-28th"),
        pytest.param({"days": 29, "months": "Feb,Mar"}, False, id="with-march"),
        pytest.param({"days": 29}, False, id="any-month"),
    ],
)
def test_leap_years_only(given: dict[str, str | int], expected: bool) -> None:
    """A pattern that matches only 29 February is recognised."""
    assert TimePattern.parse(**given).leap_years_only is expected


def test_occurrences_have_their_wall_time() -> None:
    """Wall times that a clock skips share an instant and keep their order."""
    zone, pattern = load_zone("America/New_York"), TimePattern.parse(hours="2,3", minutes="0,30")
    jump = utc("2026-03-08T07:00")
    walls = [utc(f"2026-03-08T{clock}") for clock in ("02:00", "02:30", "03:00", "03:30")]

    found = list(pattern.between(jump - 3600, jump + 3600, zone))

    assert found == [*(Occurrence(jump, wall) for wall in walls[:3]), Occurrence(jump + 1800, walls[3])]
    assert pattern.after(jump - 1, zone) == found[0]
    assert pattern.at_or_before(jump, zone) == found[2]
    assert pattern.after(jump, zone) == found[3]
