"""What the API server says about a field, in its own words.

Users know these sentences from kubectl, scripts match on them, and the reasons decide what clients do. So there is one
function for each kind of failure, and everything in this package that refuses an object speaks through them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from springtide.cluster.errors import StatusCause

NO_PATH = "<nil>"
"""What the server writes for the path of an object as a whole."""

OMITTED: Any = object()
"""Stands for a value that is too large to be repeated in a message."""


class Verbatim(str):
    """A value that has been written for a message already."""

    __slots__ = ()


def required(path: str, detail: str = "") -> StatusCause:
    """Nothing is where something must be."""
    return _cause(path, "Required value", detail, "FieldValueRequired")


def invalid(path: str, value: Any, detail: str) -> StatusCause:
    """The value breaks a rule."""
    return _cause(path, _with_value("Invalid value", value), detail, "FieldValueInvalid")


def wrong_type(path: str, value: Any, detail: str) -> StatusCause:
    """The value is not of the type that the schema wants."""
    return _cause(path, _with_value("Invalid value", value), detail, "FieldValueTypeInvalid")


def unsupported(path: str, value: Any, supported: Iterable[str]) -> StatusCause:
    """The value is none of those that can be chosen."""
    choices = ", ".join(quoted(choice) for choice in supported)
    detail = f"supported values: {choices}" if choices else ""
    return _cause(path, _with_value("Unsupported value", value), detail, "FieldValueNotSupported")


def duplicate(path: str, value: Any) -> StatusCause:
    """The value is there already."""
    return _cause(path, _with_value("Duplicate value", value), "", "FieldValueDuplicate")


def forbidden(path: str, detail: str) -> StatusCause:
    """The field must not be used here."""
    return _cause(path, "Forbidden", detail, "FieldValueForbidden")


def too_long(path: str, limit: int) -> StatusCause:
    """The text is longer than it may be."""
    return _cause(path, "Too long", f"may not be more than {limit} byte{'s' * (limit != 1)}", "FieldValueTooLong")


def too_many(path: str, count: int, limit: int) -> StatusCause:
    """There are more entries than there may be."""
    return _cause(
        path, f"Too many: {count}", f"must have at most {limit} item{'s' * (limit != 1)}", "FieldValueTooMany"
    )


def format_value(value: Any) -> str:
    """Write a value into a message."""
    if isinstance(value, Verbatim):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, int):
        return str(value)
    return compact_json(value, sort_keys=True)


def compact_json(value: Any, *, sort_keys: bool) -> str:
    """Write a value as JSON that could stand in a web page, as the server does."""
    text = json.dumps(_integers_without_fraction(value), ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _integers_without_fraction(value: Any) -> Any:
    """Write whole numbers without a fraction, also where they are floating-point numbers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    if isinstance(value, dict):
        return {name: _integers_without_fraction(part) for name, part in value.items()}
    return [_integers_without_fraction(part) for part in value] if isinstance(value, list) else value


def quoted(text: str) -> str:
    """Put a text into double quotes."""
    return json.dumps(text, ensure_ascii=False)


def format_float(number: float) -> str:
    """Write a floating-point number in its shortest form, with an exponent from a million on."""
    if not math.isfinite(number):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(str(number), "NaN")
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    power = len(digits) + int(exponent) - 1
    if -4 <= power < 6 or not number:
        return repr(number).removesuffix(".0")
    first, rest = digits[0], "".join(map(str, digits[1:]))
    return f"{'-' * sign}{first}{'.' * bool(rest)}{rest}e{power:+03d}"


def _with_value(words: str, value: Any) -> str:
    return words if value is OMITTED else f"{words}: {format_value(value)}"


def _cause(path: str, words: str, detail: str, reason: str) -> StatusCause:
    return StatusCause(path or NO_PATH, f"{words}: {detail}" if detail else words, reason)
