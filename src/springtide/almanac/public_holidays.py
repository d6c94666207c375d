"""Public holidays by country, from the optional `holidays` package.

Which days are holidays is law, changed every year somewhere; a package that many people keep up to date
knows it better than we could. It is imported only when a calendar asks for it.
"""

import difflib
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType

from springtide.almanac.civil import day_of


class CalendarError(ValueError):
    """A calendar that cannot be evaluated. `hint` says how to fix it."""

    def __init__(self, message: str, hint: str) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class PublicHolidays:
    """The public holidays of a country, or of one of its parts. Use `public_holidays` to make one."""

    country: str
    subdivision: str | None = None

    def in_year(self, year: int) -> list[int]:
        """Return the holidays of a year as day numbers, ascending."""
        return list(_in_year(self.country, self.subdivision, year))


def public_holidays(country: str, subdivision: str | None = None) -> PublicHolidays:
    """Return the holidays of a country; raises `CalendarError` if it or the package is missing."""
    known = _package().list_supported_countries(include_aliases=True)
    if country not in known:
        message = f"holidays country {country!r} is unknown, expected an ISO 3166 code such as DE"
        raise CalendarError(message, _near(country, list(known)))
    if subdivision is not None and subdivision not in known[country]:
        message = f"holidays subdivision {subdivision!r} of {country} is unknown"
        if not known[country]:
            raise CalendarError(message, f"{country} has no subdivisions: leave the field out")
        raise CalendarError(
            f"{message}, expected a code such as {known[country][0]}", _near(subdivision, known[country])
        )
    return PublicHolidays(country, subdivision)


def _package() -> ModuleType:
    try:
        import holidays
    except ImportError:
        message = "the holidays package is not installed, expected it for a calendar that names a country"
        raise CalendarError(message, "pip install springtide[holidays]") from None
    package: ModuleType = holidays
    return package


@lru_cache(maxsize=4096)
def _in_year(country: str, subdivision: str | None, year: int) -> tuple[int, ...]:
    found = _package().country_holidays(country, subdiv=subdivision, years=year)
    return tuple(sorted(day_of(day) for day in found if day.year == year))


def _near(name: str, known: list[str]) -> str:
    if name.upper() in known:
        return f"did you mean {name.upper()}?"
    near = difflib.get_close_matches(name.upper(), known, n=3, cutoff=0.5) or sorted(known)[:8]
    return f"did you mean one of {', '.join(near)}?" if len(near) > 1 else f"did you mean {near[0]}?"
