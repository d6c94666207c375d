"""Patterns: typed lists of minutes, hours, days, months and weekdays that a wall time must match.

A pattern is deliberately less expressive than cron. Lists are written out, months, days and weekdays must all match,
and a minute or hour that is not set is 0, not "every". No wall time is lost when clocks change: a skipped time occurs
right after the gap, a repeated one in the first pass. So windows between two patterns keep their shape.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from springtide.almanac.civil import ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, HOUR, MINUTE, DayRule, bits
from springtide.almanac.wall_times import WallTimes, describe_days, describe_times
from springtide.almanac.zones import Zone

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_RANGE = re.compile(r"(?P<low>\w+)\s*-\s*(?P<high>\w+)")
_EVERY = re.compile(r"[*?](?:/(?P<step>\d{1,2}))?")


@dataclass(frozen=True, slots=True)
class PatternFieldProblem:
    """What is wrong with one list of a pattern, and how to fix it."""

    field: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class PatternField:
    """One list: its name, its bounds, and the names that stand for numbers."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """Describe the allowed elements."""
        numbers = f"{self.low}-{self.high}"
        if not self.names:
            return f"a whole number {numbers}"
        return f"a name such as {self.names[1][:3].title()}, or {numbers}"

    def number(self, text: str) -> int | None:
        """Return the number that an element stands for, or None if it stands for none."""
        lower = text.lower()
        for index, name in enumerate(self.names):
            if lower in (name, name[:3]):
                # Weekdays count from 0, months from 1.
                return index + self.low
        if not text.isascii() or not text.isdigit():
            return None
        value = int(text.lstrip("0")[:5] or "0")
        return value if self.low <= value <= self.high else None

    def word(self, value: int) -> str:
        """Return the usual notation of a number in this list."""
        return self.names[(value - self.low) % len(self.names)][:3].title() if self.names else str(value)


PATTERN_FIELDS = {
    "minutes": PatternField("minutes", 0, 59),
    "hours": PatternField("hours", 0, 23),
    "days": PatternField("days", 1, 31),
    "months": PatternField("months", 1, 12, _MONTHS),
    "weekdays": PatternField("weekdays", 0, 7, _WEEKDAYS),
}


def parse_field(field: PatternField, given: str | int, problems: list[PatternFieldProblem]) -> tuple[int, ...]:
    """Return the numbers of a list, ascending; what is wrong with it is appended to `problems`."""
    text = str(given)
    if not text.strip():
        hint = f"leave {field.name} out, or list values such as {field.word(field.low + 1)}"
        problems.append(PatternFieldProblem(field.name, f"{field.name} is empty, expected {field.expected}", hint))
        return ()
    found: list[int] = []
    for element in text.split(","):
        value = field.number(element.strip())
        if value is None:
            problems.append(_problem(field, text, element.strip()))
        else:
            found.append(value % 7 if field.name == "weekdays" else value)
    return tuple(sorted(frozenset(found)))


def _problem(field: PatternField, text: str, element: str) -> PatternFieldProblem:
    if not element:
        message = f"{field.name} {text!r} has an empty element, expected {field.expected} between commas"
        return PatternFieldProblem(field.name, message, "remove the extra comma")
    message = f"{field.name} {element!r} is not allowed, expected {field.expected}"
    return PatternFieldProblem(field.name, message, _hint(field, element))


def _hint(field: PatternField, element: str) -> str:
    if (every := _EVERY.fullmatch(element)) is not None:
        step = int(every["step"] or 1)
        if not step or (step == 1 and field.name in ("days", "months", "weekdays")):
            return f"leave {field.name} out to match any"
        return f"only lists are understood: {_written_out(field, range(field.low, _last(field) + 1, step))}"
    if (ranged := _RANGE.fullmatch(element)) is not None:
        low, high = field.number(ranged["low"]), field.number(ranged["high"])
        if low is not None and high is not None:
            return f"only lists are understood: {_written_out(field, _around(field, low, high))}"
    if element.isascii() and element.isdigit():
        return f"choose a value from {field.low} to {_last(field)}"
    if field.names:
        near = [name[:3].title() for name in field.names if name[:2] == element[:2].lower()]
        return f"did you mean {near[0]}?" if near else f"names are {', '.join(n[:3].title() for n in field.names)}"
    return f"list whole numbers, such as {field.word(field.low)},{field.word(field.low + 1)}"


def _last(field: PatternField) -> int:
    return 6 if field.name == "weekdays" else field.high


def _around(field: PatternField, low: int, high: int) -> list[int]:
    """Return the values of a range, which may wrap around the end of the field."""
    size = _last(field) - field.low + 1
    return [field.low + (low - field.low + k) % size for k in range((high - low) % size + 1)]


def _written_out(field: PatternField, values: range | list[int]) -> str:
    return ",".join(field.word(value) for value in values)


_NEVER_HINT = "choose a day that one of the months has"


class TimePatternError(ValueError):
    """A pattern that cannot be parsed, with every problem of every field."""

    def __init__(self, problems: tuple[PatternFieldProblem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{problem.field}: {problem.message}" for problem in problems))


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """One time that a pattern matches: its instant, and its wall second.

    Wall seconds that a clock skips share one instant; the wall second keeps their order.
    """

    instant: int
    wall: int


class TimePattern:
    """A parsed pattern."""

    __slots__ = ("walls",)

    def __init__(self, walls: WallTimes) -> None:
        self.walls = walls

    @classmethod
    def parse(
        cls,
        *,
        minutes: str | int | None = None,
        hours: str | int | None = None,
        days: str | int | None = None,
        months: str | int | None = None,
        weekdays: str | int | None = None,
    ) -> "TimePattern":
        """Parse the five lists; raises `TimePatternError` with all problems."""
        texts = {"minutes": minutes, "hours": hours, "days": days, "months": months, "weekdays": weekdays}
        problems: list[PatternFieldProblem] = []
        values = {
            name: None if text is None else parse_field(PATTERN_FIELDS[name], text, problems)
            for name, text in texts.items()
        }
        rule = DayRule(
            ALL_DAYS if values["days"] is None else bits(values["days"]),
            ALL_MONTHS if values["months"] is None else bits(values["months"]),
            ALL_WEEKDAYS if values["weekdays"] is None else bits(values["weekdays"]),
        )
        if not problems and rule.empty:
            message = f"days {days} never come in months {months}"
            problems.append(PatternFieldProblem("days", message, _NEVER_HINT))
        if problems:
            raise TimePatternError(tuple(problems))
        at_minutes = (0,) if values["minutes"] is None else values["minutes"]
        at_hours = (0,) if values["hours"] is None else values["hours"]
        return cls(WallTimes(rule, tuple(h * HOUR + m * MINUTE for h in at_hours for m in at_minutes)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimePattern):
            return NotImplemented
        return (self.days, self.walls.times) == (other.days, other.walls.times)

    def __hash__(self) -> int:
        return hash((self.days, self.walls.times))

    def __repr__(self) -> str:
        return f"Pattern({self.describe()!r})"

    @property
    def days(self) -> DayRule:
        """Return the days on which the pattern matches."""
        return self.walls.days.rule

    @property
    def leap_years_only(self) -> bool:
        """Whether the pattern matches nothing but 29 February."""
        return self.days.leap_years_only

    def after(self, t: int, zone: Zone) -> Occurrence | None:
        """Return the first occurrence strictly later than an instant."""
        wall = self.walls.after(zone.latest_wall(t))
        return None if wall is None else Occurrence(zone.instant(wall), wall)

    def at_or_before(self, t: int, zone: Zone) -> Occurrence | None:
        """Return the latest occurrence that is not later than an instant."""
        wall = self.walls.at_or_before(zone.latest_wall(t))
        return None if wall is None else Occurrence(zone.instant(wall), wall)

    def between(self, a: int, b: int, zone: Zone) -> Iterator[Occurrence]:
        """Yield the occurrences in (a, b], in order."""
        for wall in self.walls.between(zone.latest_wall(a), zone.latest_wall(b)):
            yield Occurrence(zone.instant(wall), wall)

    def describe(self) -> str:
        """Describe when the pattern matches, such as `at 17:00 on fri`."""
        return f"{describe_times(self.walls.times)} {describe_days(self.days)}".rstrip()
