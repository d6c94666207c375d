"""The grammar of cron schedules: five fields or a macro, as Kubernetes reads them.

It is the "standard" grammar of the cron library that CronJob and Karpenter use, with its differences from Vixie cron:
`?` means `*`, `N/step` runs from N to the end of the field, and a day field with a step above 1 does not count as a
wildcard. `1/2` of the weekdays is 1, 3 and 5 in both dialects: where 7 is Sunday too, the field still ends at 6. Two
things that the library accepts are errors here, because they only hide mistakes: a schedule that never fires, and a `*`
with a range.
"""

import difflib
import re
from dataclasses import dataclass
from enum import StrEnum

from springtide.almanac.civil import DayRule, bits, members

_LAST = re.compile(r"(?P<weekday>\w*)L(?:W|-\d+)?", re.IGNORECASE)
_NTH = re.compile(r"\w+#(?P<nth>[1-5])")
_NEAREST = re.compile(r"(?P<day>\d{1,2})W", re.IGNORECASE)


MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Dialect(StrEnum):
    """How a schedule is read.

    Both share one grammar. A rule may write 7 for Sunday, and a fixed time of day fires exactly once a day also when
    clocks change. A budget follows the clock: a skipped time does not fire, a repeated one fires twice.
    """

    BUDGET = "budget"
    RULE = "rule"


class CronError(ValueError):
    """A schedule that cannot be parsed: what is wrong, how to fix it, and in which field (None: the whole schedule)."""

    def __init__(self, message: str, hint: str, field: str | None = None) -> None:
        self.message = message
        self.hint = hint
        self.field = field
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class CronField:
    """One of the five fields: its name, its bounds, and the names that stand for its values."""

    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()

    def word(self, value: int) -> str:
        """Return the usual notation of a value in this field."""
        return self.words[value - self.low] if self.words else str(value)


MINUTE = CronField("minute", 0, 59)
HOUR = CronField("hour", 0, 23)
DAY_OF_MONTH = CronField("day of month", 1, 31)
MONTH = CronField("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))
DAY_OF_WEEK = CronField("day of week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))
FIELDS = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)

_ORDER = "minute, hour, day of month, month, day of week"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A parsed schedule: minutes and hours as bit masks, days, and whether it names a time of day."""

    minutes: int
    hours: int
    days: DayRule
    names_time_of_day: bool


def parse_schedule(text: str, dialect: Dialect) -> Schedule:
    """Parse a schedule; raises `CronError` for the first problem."""
    expanded = _expand(text.strip())
    parts = expanded.split()
    if len(parts) != len(FIELDS):
        raise _wrong_count(text, parts)
    # Whether a field is a wildcard is kept apart from its values: it decides how the two day fields are joined.
    values = [_parse_field(part, field, dialect) for part, field in zip(parts, FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = values
    rule = DayRule(days, months, weekdays, either=not (any_day or any_weekday))
    if rule.empty:
        raise _never_fires(text, rule)
    return Schedule(minutes, hours, rule, parts[0][0] not in "*?" and parts[1][0] not in "*?")


def _expand(text: str) -> str:
    if not text:
        msg = "schedule is empty, expected five fields or a macro such as @daily"
        raise CronError(msg, f"write five fields: {_ORDER}, such as 0 9 * * mon-fri")
    zone, _, rest = text.partition(" ")
    if zone.startswith(("TZ=", "CRON_TZ=")):
        msg = f"schedule {text!r} names a time zone, expected only five fields or a macro"
        raise CronError(msg, f"write {rest.strip() or '0 9 * * *'} here and {zone.partition('=')[2]} in timeZone")
    if not text.startswith("@"):
        return text
    if text in MACROS:
        return MACROS[text]
    msg = f"macro {text!r} is unknown, expected one of {', '.join(MACROS)}"
    if text.startswith("@every"):
        msg = f"schedule {text!r} counts from the start of the process, expected fixed times"
        raise CronError(msg, "write a step, such as */15 * * * * for every 15 minutes")
    near = difflib.get_close_matches(text.lower(), MACROS, n=1, cutoff=0.4)
    raise CronError(msg, f"did you mean {near[0] if near else '@daily'}?")


def _wrong_count(text: str, parts: list[str]) -> CronError:
    count = f"{len(parts)} field{'s' if len(parts) > 1 else ''}"
    message = f"schedule {text!r} has {count}, expected 5: {_ORDER}"
    if len(parts) == 6:
        return CronError(message, f"seconds and years are not supported; without seconds: {' '.join(parts[1:])}")
    if len(parts) < 5:
        # The usual mistake is a forgotten star at the end.
        return CronError(message, f"fill up with stars: {' '.join([*parts, *'*' * (5 - len(parts))])}")
    return CronError(message, f"keep the first five: {' '.join(parts[:5])}")


def _never_fires(text: str, rule: DayRule) -> CronError:
    months = ", ".join(MONTH.word(month) for month in members(rule.months))
    message = f"schedule {text!r} never fires: no day {_join(rule.days)} in {months}"
    return CronError(message, "choose a day that one of the months has", DAY_OF_MONTH.name)


def _join(mask: int) -> str:
    return ", ".join(str(value) for value in members(mask))


def _parse_field(text: str, field: CronField, dialect: Dialect) -> tuple[int, bool]:
    """Return a field's values as a bit mask, and whether it counts as a wildcard."""
    mask, wildcard = 0, False
    # Empty items between commas are ignored.
    for item in filter(None, text.split(",")):
        values, star = _parse_item(item, field, dialect)
        mask |= values
        wildcard |= star
    if not mask:
        message = f"{field.name} {text!r} names no value, expected {_expected(field, dialect)}"
        raise CronError(message, "write * for every value", field.name)
    return mask, wildcard


def _parse_item(item: str, field: CronField, dialect: Dialect) -> tuple[int, bool]:
    span, slash, step_text = item.partition("/")
    step = _parse_step(item, step_text, field) if slash else 1
    low_text, dash, high_text = span.partition("-")
    if low_text in ("*", "?"):
        if dash:
            message = f"{field.name} {item!r} attaches a range to {low_text}, expected one or the other"
            raise CronError(message, f"write {field.low}-{high_text} for a range", field.name)
        # With a step above 1 the field does not count as a wildcard.
        return bits(range(field.low, field.high + 1, step)), step == 1
    high_bound = 7 if field is DAY_OF_WEEK and dialect is Dialect.RULE else field.high
    low = _parse_value(item, low_text, field, dialect, high_bound)
    high = low
    if dash:
        high = _parse_value(item, high_text, field, dialect, high_bound)
    elif slash:
        high = field.high
    if low > high:
        raise _backwards(item, low, high, step, field, dash != "")
    return bits(value % 7 if field is DAY_OF_WEEK else value for value in range(low, high + 1, step)), False


def _parse_step(item: str, text: str, field: CronField) -> int:
    if not text.isascii() or not text.isdigit():
        message = f"{field.name} {item!r} has the step {text!r}, expected a whole number from 1"
        raise CronError(message, f"write a step such as */2 or {field.low}-{field.high}/2", field.name)
    step = _number(text)
    if step == 0:
        message = f"{field.name} {item!r} has the step 0, expected at least 1"
        raise CronError(message, "leave the step out for every value", field.name)
    return step


def _parse_value(item: str, text: str, field: CronField, dialect: Dialect, high: int) -> int:
    if text.lower() in field.words:
        return field.words.index(text.lower()) + field.low
    if not text.isascii() or not text.isdigit():
        message = f"{field.name} {item!r} is not understood, expected {_expected(field, dialect)}"
        raise CronError(message, _foreign_syntax_hint(item, field.name, field.words), field.name)
    value = _number(text)
    if value < field.low or value > high:
        message = f"{field.name} {item!r} is out of range, expected {_expected(field, dialect)}"
        raise CronError(message, _range_hint(value, field), field.name)
    return value


def _number(digits: str) -> int:
    # Python refuses to parse thousands of digits; five digits are enough to be out of range.
    return int(digits.lstrip("0")[:5] or "0")


def _backwards(item: str, low: int, high: int, step: int, field: CronField, ranged: bool) -> CronError:
    if not ranged:
        message = f"{field.name} {item!r} starts its steps at the last day, expected a day from 0 to 6"
        return CronError(message, f"write 0/{step} to start on Sunday", field.name)
    message = f"{field.name} {item!r} runs backwards, expected the smaller value first"
    values = _wrapped_range(low, high, step, field.low, field.high)
    return CronError(message, f"write {','.join(field.word(value) for value in values)}", field.name)


def _expected(field: CronField, dialect: Dialect) -> str:
    if field is DAY_OF_WEEK:
        return "0-6 or sun-sat" if dialect is Dialect.BUDGET else "0-7 or sun-sat (0 and 7 are Sunday)"
    return f"{field.low}-{field.high}" + (f" or {field.words[0]}-{field.words[-1]}" if field.words else "")


def _range_hint(value: int, field: CronField) -> str:
    if field is DAY_OF_WEEK and value == 7:
        return "write 0 or sun for Sunday"
    if (field is HOUR and value == 24) or (field is MINUTE and value == 60):
        return f"write 0 for the {field.name} that follows {field.high}"
    return f"choose a value from {field.low} to {field.high}"


def _foreign_syntax_hint(item: str, field: str, words: tuple[str, ...]) -> str:
    """Return a hint for an item in the syntax of another cron dialect: the nearest that this grammar supports."""
    if _NTH.fullmatch(item):
        return "# (the nth weekday of a month) is not supported; list the dates, or use a Calendar"
    if _NEAREST.fullmatch(item):
        return "W (the nearest working day) is not supported; list the dates, or use a Calendar"
    if _LAST.fullmatch(item):
        if field == "day of month":
            return "L (the last day) is not supported; use 28, or the first day of the next month"
        return "L (the last such weekday) is not supported; list the dates, or use a Calendar"
    if item.startswith("-") or "--" in item:
        return "negative numbers are not allowed; a range has one value on each side, such as 1-5"
    if item.count("-") > 1 or item.count("/") > 1:
        return "a range has one dash and at most one step, such as 1-5/2"
    known = [word for word in words if item.isalpha() and len(item) > 3 and item.lower().startswith(word)]
    if known:
        return f"write the first three letters: {known[0]}"
    if words:
        return f"names have three letters: {', '.join(words)}"
    return "write numbers, ranges such as 1-5, steps such as */2, or lists of these"


def _wrapped_range(low: int, high: int, step: int, first: int, last: int) -> list[int]:
    """Return the values of a range that wraps around the end of its field, such as `fri-sun`."""
    size = last - first + 1
    return [first + (low - first + k) % size for k in range(0, (high - low) % size + 1, step)]
