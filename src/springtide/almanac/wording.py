"""Times and days in the few words that explanations and pictures have room for."""

from springtide.almanac.civil import DAY, HOUR, MINUTE
from springtide.almanac.day_rule import ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, DayRule, members

_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FEW = 4


def times_in_words(times: tuple[int, ...]) -> str:
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


def days_in_words(rule: DayRule) -> str:
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
    # A phase such as 5, 20, 35, 50 past is not said by "every 15 minutes".
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
    # Weekdays read best from Monday on: sat, sun and not sun, sat.
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
