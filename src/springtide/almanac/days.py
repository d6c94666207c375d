"""Sets of local days: dates, ranges, days that come every year, and public holidays.

The set is unbounded (New Year comes forever), so it is laid out year by year, only for the years asked about.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from springtide.almanac.civil import CYCLE_DAYS, FIRST_DAY, LAST_DAY, date_of, day_of, is_leap
from springtide.almanac.public_holidays import PublicHolidays

_FIRST_YEAR = 1
_LAST_YEAR = 9999
_CYCLE_YEARS = 400


@dataclass(frozen=True, slots=True)
class Days:
    """A set of local days.

    `ranges` include both ends. `yearly` holds (month, day) pairs; (2, 29) comes in leap years only.
    """

    dates: tuple[date, ...] = ()
    ranges: tuple[tuple[date, date], ...] = ()
    yearly: tuple[tuple[int, int], ...] = ()
    holidays: PublicHolidays | None = None

    def __contains__(self, day: int) -> bool:
        """Tell whether a day number is in the set."""
        found = self.run_at_or_before(day)
        return found is not None and day <= found[1]

    def runs(self, day: int) -> Iterator[tuple[int, int]]:
        """Yield (first, last) of the unbroken runs of days that end on or after a day, in order.

        Runs are listed for as long as they come: what has not come for a whole cycle never will, and what has not
        paused for one never does.
        """
        opened: tuple[int, int] | None = None
        latest = max(_year_of(day), self._first_year())
        for year in range(latest, self._last_year() + 1):
            for first, last in self._year(year):
                latest = year
                if opened is not None and first <= opened[1] + 1:
                    opened = (opened[0], max(opened[1], last))
                    continue
                if opened is not None and opened[1] >= day:
                    yield opened
                opened = (first, last)
            if year - latest > _CYCLE_YEARS or (opened is not None and opened[1] - opened[0] > CYCLE_DAYS):
                break
        if opened is not None and opened[1] >= day:
            yield opened

    def run_at_or_before(self, day: int) -> tuple[int, int] | None:
        """Return the latest unbroken run within one year that starts on or before a day."""
        year = _year_of(day)
        first_year = max(year - _CYCLE_YEARS, self._first_year())
        for candidate in range(min(year, self._last_year()), first_year - 1, -1):
            runs = self._year(candidate)
            index = bisect_right(runs, day, key=lambda run: run[0]) - 1
            if index >= 0:
                return runs[index]
        return None

    def _recurs(self) -> bool:
        return bool(self.yearly) or self.holidays is not None

    def _first_year(self) -> int:
        if self._recurs():
            return _FIRST_YEAR
        return min([d.year for d in self.dates] + [a.year for a, _ in self.ranges], default=_LAST_YEAR + 1)

    def _last_year(self) -> int:
        if self._recurs():
            return _LAST_YEAR
        return max([d.year for d in self.dates] + [b.year for _, b in self.ranges], default=_FIRST_YEAR - 1)

    def _year(self, year: int) -> list[tuple[int, int]]:
        """Return the unbroken runs of days within one year."""
        new_year, last_day = day_of(date(year, 1, 1)), day_of(date(year, 12, 31))
        single = [day_of(d) for d in self.dates if d.year == year]
        single += [day_of(date(year, m, d)) for m, d in self.yearly if (m, d) != (2, 29) or is_leap(year)]
        if self.holidays is not None:
            single += self.holidays.in_year(year)
        pieces = [(day, day) for day in single]
        pieces += [
            (max(day_of(first), new_year), min(day_of(last), last_day))
            for first, last in self.ranges
            if first.year <= year <= last.year
        ]
        return _merged(sorted(pieces))


def _year_of(day: int) -> int:
    return date_of(min(max(day, FIRST_DAY), LAST_DAY)).year


def _merged(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for first, last in pieces:
        if runs and first <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], max(runs[-1][1], last))
        else:
            runs.append((first, last))
    return runs
