"""The five lists of a pattern: what each may hold, and what to say about what it may not."""

import re
from dataclasses import dataclass

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_RANGE = re.compile(r"(?P<low>\w+)\s*-\s*(?P<high>\w+)")
_EVERY = re.compile(r"[*?](?:/(?P<step>\d{1,2}))?")


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with one list of a pattern, and how to fix it."""

    field: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class ListField:
    """One list: its name, its bounds, and the names that stand for numbers."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """Say what an element may be."""
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
        """Return a number as a person would write it in this list."""
        return self.names[(value - self.low) % len(self.names)][:3].title() if self.names else str(value)


FIELDS = {
    "minutes": ListField("minutes", 0, 59),
    "hours": ListField("hours", 0, 23),
    "days": ListField("days", 1, 31),
    "months": ListField("months", 1, 12, _MONTHS),
    "weekdays": ListField("weekdays", 0, 7, _WEEKDAYS),
}


def parse_field(field: ListField, given: str | int, problems: list[FieldProblem]) -> tuple[int, ...]:
    """Return the numbers of a list, ascending, and add what is wrong with it to the problems."""
    text = str(given)
    if not text.strip():
        hint = f"leave {field.name} out, or list values such as {field.word(field.low + 1)}"
        problems.append(FieldProblem(field.name, f"{field.name} is empty, expected {field.expected}", hint))
        return ()
    found: list[int] = []
    for element in text.split(","):
        value = field.number(element.strip())
        if value is None:
            problems.append(_problem(field, text, element.strip()))
        else:
            found.append(value % 7 if field.name == "weekdays" else value)
    return tuple(sorted(frozenset(found)))


def _problem(field: ListField, text: str, element: str) -> FieldProblem:
    if not element:
        message = f"{field.name} {text!r} has an empty element, expected {field.expected} between commas"
        return FieldProblem(field.name, message, "remove the extra comma")
    message = f"{field.name} {element!r} is not allowed, expected {field.expected}"
    return FieldProblem(field.name, message, _hint(field, element))


def _hint(field: ListField, element: str) -> str:
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


def _last(field: ListField) -> int:
    return 6 if field.name == "weekdays" else field.high


def _around(field: ListField, low: int, high: int) -> list[int]:
    """Return the values of a range, which may run over the end of the field."""
    size = _last(field) - field.low + 1
    return [field.low + (low - field.low + k) % size for k in range((high - low) % size + 1)]


def _written_out(field: ListField, values: range | list[int]) -> str:
    return ",".join(field.word(value) for value in values)
