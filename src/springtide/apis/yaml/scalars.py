"""What an unquoted word means: Kubernetes' reading of YAML scalars.

A generic YAML 1.1 reader turns `22:00` into 1320, `NO` into false and `2026-12-24` into a date.
Times, country codes and days are exactly what people write in our kinds, so here they are text.
Numbers follow the Go reader that the Kubernetes tools use.
"""

from __future__ import annotations

import math
import re
import struct
from typing import Final, TypeAlias

Scalar: TypeAlias = str | int | float | bool | None

_WORDS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

DISPUTED_WORDS: Final = frozenset(
    word for lower in ("y", "n", "yes", "no", "on", "off") for word in (lower, lower.capitalize(), lower.upper())
)
"""Words that we read as text, and the Kubernetes command-line tools as a truth value."""

_FIRST_OF_NUMBER: Final = frozenset("0123456789+-.")
_BASED: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+))")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
# A number with more digits than this is beyond every floating-point number; Go leaves it as text.
_MAX_DIGITS: Final = 308


def resolve(text: str) -> Scalar:
    """Give the value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST_OF_NUMBER:
        return text
    number = text if text[0] == "." else text.replace("_", "")
    if len(number) > _MAX_DIGITS:
        return text
    if based := _BASED.fullmatch(number):
        sign, hexadecimal, binary, octal = based.groups()
        magnitude = int(hexadecimal, 16) if hexadecimal else int(binary, 2) if binary else int(octal, 8)
        return -magnitude if sign == "-" else magnitude
    if not _FLOAT.fullmatch(number):
        return text
    if _INTEGER.fullmatch(number):
        return int(number)
    value = float(number)
    return value if math.isfinite(value) else text


def is_not_finite(text: str) -> bool:
    """Tell whether an unquoted scalar is an infinity or not a number, neither of which an object can hold."""
    return bool(_NOT_FINITE.fullmatch(text))


def key_text(value: str | int | float | bool) -> str:
    """Write a key that is no string as the Kubernetes tools do when they make JSON of it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return _shortest_single(value)


def _shortest_single(value: float) -> str:
    """The shortest text of a number in single precision, with an exponent from a million up."""
    single = _single_precision(value)
    if single is None:
        return "-Inf" if value < 0 else "+Inf"
    # Nine digits always tell one such number from the next.
    digits = next(n for n in range(9) if _single_precision(float(f"{single:.{n}e}")) == single)
    mantissa, exponent = f"{single:.{digits}e}".split("e")
    if -4 <= int(exponent) < 6:
        return f"{single:.{max(digits - int(exponent), 0)}f}"
    return f"{mantissa}e{exponent}"


def _single_precision(value: float) -> float | None:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return None
