"""Field errors: the causes of a 422 answer, in the words of a kube-apiserver.

Users know these sentences from kubectl, scripts match them, and clients act on the reasons. There is one function for
each kind of error of `k8s.io/apimachinery/pkg/util/validation/field`, and all validation uses them.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object

NO_PATH = "<nil>"
"""The path of an object as a whole."""

OMITTED: Any = object()
"""Given as the value of an error whose message leaves the value out."""


class Verbatim(str):
    """A value that is formatted already."""

    __slots__ = ()


class GoStruct(dict[str, Any]):
    """An object that messages show as a Go struct: all fields, capitalised, in the order of their declaration."""

    def __init__(self, value: Object, /, **zero: Any) -> None:
        """Take the fields of the struct, each with its zero value."""
        super().__init__({f"{name[0].upper()}{name[1:]}": value.get(name, none) for name, none in zero.items()})


def required(path: str, detail: str = "") -> StatusCause:
    """Report a field that must be set."""
    return _cause(path, "Required value", detail, "FieldValueRequired")


def invalid(path: str, value: Any, detail: str) -> StatusCause:
    """Report a value that breaks a rule."""
    return _cause(path, _with_value("Invalid value", value), detail, "FieldValueInvalid")


def wrong_type(path: str, value: Any, detail: str) -> StatusCause:
    """Report a value of another type than the declared one."""
    return _cause(path, _with_value("Invalid value", value), detail, "FieldValueTypeInvalid")


def unsupported(path: str, value: Any, *supported: str) -> StatusCause:
    """Report a value that is not among the supported ones."""
    choices = ", ".join(quoted(choice) for choice in supported)
    detail = f"supported values: {choices}" if choices else ""
    return _cause(path, _with_value("Unsupported value", value), detail, "FieldValueNotSupported")


def duplicate(path: str, value: Any, detail: str = "") -> StatusCause:
    """Report a value that may occur only once."""
    return _cause(path, _with_value("Duplicate value", value), detail, "FieldValueDuplicate")


def not_found(path: str, value: Any) -> StatusCause:
    """Report a reference to something that does not exist."""
    return _cause(path, _with_value("Not found", value), "", "FieldValueNotFound")


def forbidden(path: str, detail: str) -> StatusCause:
    """Report a field that must not be set or changed."""
    return _cause(path, "Forbidden", detail, "FieldValueForbidden")


def too_long(path: str, limit: int) -> StatusCause:
    """Report a string that is longer than `limit`."""
    return _cause(path, "Too long", f"may not be more than {limit} byte{'s' * (limit != 1)}", "FieldValueTooLong")


def too_many(path: str, count: int, limit: int) -> StatusCause:
    """Report a list or map with more than `limit` entries."""
    detail = f"must have at most {limit} item{'s' * (limit != 1)}"
    return _cause(path, f"Too many: {count}", detail, "FieldValueTooMany")


def format_value(value: Any) -> str:
    """Format a value for a message."""
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
    return compact_json(value, sort_keys=not isinstance(value, GoStruct))


def compact_json(value: Any, *, sort_keys: bool) -> str:
    """Format a value as JSON without spaces, escaped for HTML as Go does it."""
    text = json.dumps(_integers_without_fraction(value), ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _integers_without_fraction(value: Any) -> Any:
    """Turn floating-point numbers without a fraction into integers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    if isinstance(value, dict):
        return {name: _integers_without_fraction(part) for name, part in value.items()}
    return [_integers_without_fraction(part) for part in value] if isinstance(value, list) else value


def quoted(text: str) -> str:
    """Put a string into double quotes."""
    return json.dumps(text, ensure_ascii=False)


def format_float(number: float) -> str:
    """Format a floating-point number in its shortest form, with an exponent from a million on."""
    if not math.isfinite(number):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(str(number), "NaN")
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    power = len(digits) + int(exponent) - 1
    if -4 <= power < 6 or not number:
        return repr(number).removesuffix(".0")
    first, rest = digits[0], "".join(map(str, digits[1:]))
    return f"{'-' * sign}{first}{'.' * bool(rest)}{rest}e{power:+03d}"


def _with_value(problem: str, value: Any) -> str:
    return problem if value is OMITTED else f"{problem}: {format_value(value)}"


def _cause(path: str, problem: str, detail: str, reason: str) -> StatusCause:
    return StatusCause(path or NO_PATH, f"{problem}: {detail}" if detail else problem, reason)
