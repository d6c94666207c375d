"""Recurring wall-clock times: which minutes of which local days, before any zone is applied.

Cron schedules and patterns share this core. Both search for the next or the latest wall time, often many thousand
times, so the matching days are computed once per block of days and searched by bisection. `describe_times` and
`describe_days` put wall times into the few words that explanations and pictures have room for.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache

from springtide.almanac.civil import (
    ALL_DAYS,
    ALL_MONTHS,
    ALL_WEEKDAYS,
    CYCLE_DAYS,
    DAY,
    FIRST_DAY,
    HOUR,
    LAST_DAY,
    MINUTE,
    DayRule,
    members,
)

#: Days per block as a power of two: long enough to make a search cheap, short enough to compute in microseconds.
_BLOCK = 9
_BLOCKS_PER_CYCLE = (CYCLE_DAYS >> _BLOCK) + 2


class MatchingDays:
    """The days of a rule, searched in both directions; blocks of days are computed on first use and cached."""

    __slots__ = ("_blocks", "_daily", "rule")

    def __init__(self, rule: DayRule) -> None:
        self.rule = rule
        self._daily = rule.daily
        self._blocks: dict[int, tuple[int, ...]] = {}

    def at_or_after(self, day: int) -> int | None:
        """Return the first matching day from a day on, or None if none lies ahead."""
        if day < FIRST_DAY:
            day = FIRST_DAY
        if self._daily:
            return day if day <= LAST_DAY else None
        first = day >> _BLOCK
        for key in range(first, min(first + _BLOCKS_PER_CYCLE, (LAST_DAY >> _BLOCK) + 1)):
            block = self._blocks.get(key)
            if block is None:
                block = self._lay_out(key)
            if block and block[-1] >= day:
                return block[bisect_left(block, day)]
        return None

    def at_or_before(self, day: int) -> int | None:
        """Return the last matching day up to a day, or None if there is none."""
        if day > LAST_DAY:
            day = LAST_DAY
        if self._daily:
            return day if day >= FIRST_DAY else None
        first = day >> _BLOCK
        for key in range(first, max(first - _BLOCKS_PER_CYCLE, (FIRST_DAY >> _BLOCK) - 1), -1):
            block = self._blocks.get(key)
            if block is None:
                block = self._lay_out(key)
            if block and block[0] <= day:
                return block[bisect_right(block, day) - 1]
        return None

    def count(self, first: int, last: int) -> int:
        """Count the matching days from one day to another, both included."""
        first, last = max(first, FIRST_DAY), min(last, LAST_DAY)
        if first > last:
            return 0
        if self._daily:
            return last - first + 1
        blocks = (self._blocks.get(key) or self._lay_out(key) for key in range(first >> _BLOCK, (last >> _BLOCK) + 1))
        return sum(bisect_right(block, last) - bisect_left(block, first) for block in blocks)

    def run_end(self, day: int, reach: int) -> int:
        """Return the last day of the run of matching days, no further apart than `reach`, that a day belongs to."""
        if self.never_pauses(reach):
            return LAST_DAY
        far = day + CYCLE_DAYS
        while day < far and (following := self.at_or_after(day + 1)) is not None and following <= day + reach:
            day = following
        return day

    def never_pauses(self, reach: int) -> bool:
        """Return whether neighbouring days are known to lie no further apart than `reach`."""
        pause = _longest_pause(self.rule)
        return pause is not None and pause <= reach

    def _lay_out(self, key: int) -> tuple[int, ...]:
        first = key << _BLOCK
        block = self.rule.layout(max(first, FIRST_DAY), min(first + (1 << _BLOCK) - 1, LAST_DAY))
        self._blocks[key] = block
        return block


@lru_cache(maxsize=4096)
def _longest_pause(rule: DayRule) -> int | None:
    return rule.longest_pause()


@lru_cache(maxsize=4096)
def matching_days(rule: DayRule) -> MatchingDays:
    """Return the searchable days of a rule; schedules with the same days share them."""
    return MatchingDays(rule)


class WallTimes:
    """Wall seconds that recur: every time of day of `times` on every day of a rule."""

    __slots__ = ("days", "times")

    def __init__(self, rule: DayRule, times: tuple[int, ...]) -> None:
        self.days = matching_days(rule)
        self.times = times

    def after(self, wall: int) -> int | None:
        """Return the first time strictly after a wall second."""
        day, second = divmod(wall, DAY)
        times = self.times
        if second >= times[-1]:
            day += 1
            second = -1
        found = self.days.at_or_after(day)
        if found is None:
            return None
        if found == day:
            return day * DAY + times[bisect_right(times, second)]
        return found * DAY + times[0]

    def at_or_before(self, wall: int) -> int | None:
        """Return the last time at or before a wall second."""
        day, second = divmod(wall, DAY)
        times = self.times
        if second < times[0]:
            day -= 1
            second = DAY
        found = self.days.at_or_before(day)
        if found is None:
            return None
        if found == day:
            return day * DAY + times[bisect_right(times, second) - 1]
        return found * DAY + times[-1]

    def between(self, a: int, b: int) -> Iterator[int]:
        """Yield the times in (a, b], ascending."""
        first_day, first_second = divmod(a, DAY)
        last_day, last_second = divmod(b, DAY)
        times, at_or_after = self.times, self.days.at_or_after
        day = at_or_after(first_day)
        while day is not None and day <= last_day:
            low = bisect_right(times, first_second) if day == first_day else 0
            high = bisect_right(times, last_second) if day == last_day else None
            midnight = day * DAY
            for second in times[low:high]:
                yield midnight + second
            day = at_or_after(day + 1)

    def count(self, a: int, b: int) -> int:
        """Count the times in (a, b]."""
        return self._rank(b, a // DAY) - self._rank(a, a // DAY) if a < b else 0

    def _rank(self, wall: int, first_day: int) -> int:
        """Count the times from the midnight of a day up to a wall second."""
        day, second = divmod(wall, DAY)
        whole = self.days.count(first_day, day - 1) * len(self.times)
        return whole + self.days.count(day, day) * bisect_right(self.times, second)

    def following(self, wall: int) -> Iterator[int]:
        """Yield every time strictly after a wall second, up to the end of the calendar."""
        return self.between(wall, (LAST_DAY + 1) * DAY)

    def covers(self, other: "WallTimes") -> bool:
        """Return whether every time of `other` is one of these."""
        return set(other.times).issubset(self.times) and self.days.rule.covers(other.days.rule)


_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FEW = 4


def describe_times(times: tuple[int, ...]) -> str:
    """Return `at 09:00`, `every 15 minutes`, or for irregular many `at minutes 0, 30 of hours 9-16`."""
    if len(times) <= _FEW:
        return "at " + ", ".join(_clock(time) for time in times)
    minutes = sorted({time % HOUR // MINUTE for time in times})
    hours = sorted({time // HOUR for time in times})
    step = _even_step(times)
    if step is not None:
        if step == MINUTE:
            return "every minute"
        if step % HOUR == 0:
            return f"every {step // HOUR} hours" if step > HOUR else "every hour"
        return f"every {step // MINUTE} minutes"
    past = "every minute" if len(minutes) == 60 else f"at {_plural('minute', minutes)} {_runs(minutes)}"
    if len(hours) == 24:
        return past if len(minutes) == 60 else f"{past} of every hour"
    return f"{past} of {_plural('hour', hours)} {_runs(hours)}"


def describe_days(rule: DayRule) -> str:
    """Return `on mon-fri`, `on day 1 in jan`, or nothing for every day."""
    by_date = f"day {_runs(members(rule.days))}" if rule.days != ALL_DAYS else ""
    by_weekday = _names(rule.weekdays, _WEEKDAYS, 0, wrap=True) if rule.weekdays != ALL_WEEKDAYS else ""
    joint = " or " if rule.either else " that is "
    days = joint.join(part for part in (by_date, by_weekday) if part)
    months = f"in {_names(rule.months, _MONTHS, 1, wrap=False)}" if rule.months != ALL_MONTHS else ""
    return " ".join(part for part in (f"on {days}" if days else "", months) if part)


def _even_step(times: tuple[int, ...]) -> int | None:
    step = times[1] - times[0]
    around = (*times[1:], times[0] + DAY)
    # "every 15 minutes" does not describe a phase such as 5, 20, 35, 50.
    return step if times[0] == 0 and all(b - a == step for a, b in zip(times, around, strict=True)) else None


def _clock(time: int) -> str:
    return f"{time // HOUR:02}:{time % HOUR // MINUTE:02}"


def _plural(noun: str, values: list[int]) -> str:
    return noun if len(values) == 1 else f"{noun}s"


def _runs(values: tuple[int, ...] | list[int]) -> str:
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ", ".join(_run(str(low), str(high), high - low) for low, high in runs)


def _names(mask: int, names: tuple[str, ...], first: int, *, wrap: bool) -> str:
    size = len(names)
    present = [mask >> (index + first) & 1 for index in range(size)]
    # Weekdays are listed from Monday on: sat, sun and not sun, sat.
    order = [(index + 1) % size for index in range(size)] if wrap else list(range(size))
    runs: list[list[int]] = []
    for place, index in enumerate(order):
        if present[index] and runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        elif present[index]:
            runs.append([place, place])
    return ", ".join(_run(names[order[low]], names[order[high]], high - low) for low, high in runs)


def _run(low: str, high: str, length: int) -> str:
    if length == 0:
        return low
    return f"{low}, {high}" if length == 1 else f"{low}-{high}"
