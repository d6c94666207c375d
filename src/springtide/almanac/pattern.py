"""Patterns: typed lists of minutes, hours, days, months and weekdays that a wall clock must show.

A pattern says less than cron on purpose. Lists are written out, months, days and weekdays must all hold,
and a minute or hour that is left out is 0, not "every". No wall time is ever lost: one that a clock jumps
over happens right after the gap, one that it shows twice happens the first time. So windows between two
patterns keep their shape when clocks change.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from springtide.almanac.civil import HOUR, MINUTE
from springtide.almanac.day_rule import ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, DayRule, bits
from springtide.almanac.pattern_fields import FIELDS, FieldProblem, parse_field
from springtide.almanac.wall import WallTimes
from springtide.almanac.wording import days_in_words, times_in_words
from springtide.almanac.zones import Zone

_NEVER_HINT = "choose a day that one of the months has"


class PatternError(ValueError):
    """A pattern that cannot be read, with every problem of every field."""

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{problem.field}: {problem.message}" for problem in problems))


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """One time that a pattern matches: its instant, and the wall second that it stands for.

    Several wall seconds share an instant where a clock jumps over them; the wall second keeps their order.
    """

    instant: int
    wall: int


class Pattern:
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
    ) -> "Pattern":
        """Read the five lists; raises `PatternError` with all that is wrong."""
        texts = {"minutes": minutes, "hours": hours, "days": days, "months": months, "weekdays": weekdays}
        problems: list[FieldProblem] = []
        values = {
            name: None if text is None else parse_field(FIELDS[name], text, problems) for name, text in texts.items()
        }
        rule = DayRule(
            ALL_DAYS if values["days"] is None else bits(values["days"]),
            ALL_MONTHS if values["months"] is None else bits(values["months"]),
            ALL_WEEKDAYS if values["weekdays"] is None else bits(values["weekdays"]),
        )
        if not problems and rule.empty:
            message = f"days {days} never come in months {months}"
            problems.append(FieldProblem("days", message, _NEVER_HINT))
        if problems:
            raise PatternError(tuple(problems))
        at_minutes = (0,) if values["minutes"] is None else values["minutes"]
        at_hours = (0,) if values["hours"] is None else values["hours"]
        return cls(WallTimes(rule, tuple(h * HOUR + m * MINUTE for h in at_hours for m in at_minutes)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pattern):
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
        """Say in a few words when the pattern matches, such as `at 17:00 on fri`."""
        return f"{times_in_words(self.walls.times)} {days_in_words(self.days)}".rstrip()
