"""Kubernetes' quantities, durations, and counts that may be percentages: exact parsing and formatting.

All kinds use these notations, and each has corner cases in which a guess is wrong by a factor of a thousand: `100m` is
a tenth, `1E` is a number but `1e` is not, `1G` is less than `1Gi`. All functions are pure and compute with integers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

_MAX_INT64: Final = 2**63 - 1
_MAX_INT32: Final = 2**31 - 1


class AmountError(ValueError):
    """Text that is not an amount: what is wrong with it, and a fix if one can be guessed."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class QuantityError(AmountError):
    """Text that is not a quantity."""


class DurationError(AmountError):
    """Text that is not a duration."""


class IntOrPercentError(AmountError):
    """A value that is neither a count nor a percentage."""


MAX_LENGTH: Final = 1000
"""The maximum length of an amount. Users write these texts, so the length is checked before any pattern or hint."""


def _check_length(text: str, kind: type[AmountError], what: str) -> None:
    if len(text) > MAX_LENGTH:
        raise kind(f"{_shown(text)} is not {what}: it has {len(text)} characters", f"write at most {MAX_LENGTH}")


_WHOLE_NUMBER: Final = re.compile(r"[0-9]{1,18}")


def whole_number(text: str) -> int | None:
    """Return the number that a text of at most 18 digits writes; None for other texts.

    Python refuses to parse thousands of digits by an error that says nothing about the field.
    """
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else None


# Quantities

_NANO_PER_UNIT: Final = 10**9
_NANO_DIGITS: Final = 9
# Larger than any resource, and small enough that no text takes long to parse.
_MAX_EXPONENT: Final = 300

_BINARY_EXPONENTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_EXPONENTS: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_SUFFIXES: Final = ("", *_BINARY_EXPONENTS)
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}

_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]*))?|\.(?P<bare_fraction>[0-9]+))"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE](?P<exponent>[+-]?[0-9]+))"
)
_NUMBER_AND_REST: Final = re.compile(r"\s*+([+-]?[0-9][0-9.,]*+)\s*+([A-Za-zµ]*+)\s*+")
_MEANT_SUFFIXES: Final = {
    "b": ("",),
    "k": ("k", "Ki"),
    "m": ("M", "Mi"),
    "g": ("G", "Gi"),
    "t": ("T", "Ti"),
    "p": ("P", "Pi"),
    "e": ("E", "Ei"),
    "µ": ("u",),
}


class _Family(Enum):
    """The family of suffixes of a quantity, in which it is also formatted."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact amount of a resource, with Kubernetes' grammar, precision and canonical text.

    Quantities are compared by amount alone: `1Ki` equals `1024`. As in Kubernetes, an amount is a whole number of
    billionths.
    """

    nano: int
    _family: _Family = field(default=_Family.DECIMAL, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str | int | float) -> Quantity:
        """Parse a quantity; it is rounded away from zero to a whole number of billionths.

        A float, as YAML parsers return it, is parsed by its shortest text, which is what the user wrote. Binary amounts
        are limited to 2**63-1 in either direction, as in Kubernetes; decimal ones are not limited.
        """
        if isinstance(text, bool):
            raise QuantityError(f"{str(text).lower()} is not a quantity", "write a number, such as 1 or 500m")
        if isinstance(text, int):
            return cls(text * _NANO_PER_UNIT)
        text = str(text)
        _check_length(text, QuantityError, "a quantity")
        match = _QUANTITY.fullmatch(text)
        if match is None:
            raise QuantityError(f"{_shown(text)} is not a quantity", _quantity_hint(text))

        whole, fraction = match["whole"] or "", match["fraction"] or match["bare_fraction"] or ""
        digits = int(whole + fraction)
        suffix = match["suffix"]
        if suffix in _BINARY_EXPONENTS:
            family = _Family.BINARY
            nano = _shift(digits << _BINARY_EXPONENTS[suffix], _NANO_DIGITS - len(fraction))
            nano = min(nano, _MAX_INT64 * _NANO_PER_UNIT)
        else:
            family = _Family.EXPONENT if match["exponent"] else _Family.DECIMAL
            exponent = int(match["exponent"]) if match["exponent"] else _DECIMAL_EXPONENTS[suffix]
            if exponent > _MAX_EXPONENT and digits:
                raise QuantityError(f"{_shown(text)} is too large for a quantity", "use a smaller exponent")
            nano = _shift(digits, exponent + _NANO_DIGITS - len(fraction)) if digits else 0
        return cls(-nano if match["sign"] == "-" else nano, family)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nano > 0) - (self.nano < 0)

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero."""
        return _divide_away_from_zero(self.nano, 10**6)

    @property
    def units(self) -> int:
        """The amount in units, rounded away from zero."""
        return _divide_away_from_zero(self.nano, _NANO_PER_UNIT)

    def floor_div(self, other: Quantity) -> int:
        """Return how many whole times `other` fits into this quantity; raises ZeroDivisionError if it is zero."""
        return self.nano // other.nano

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self._family if self.nano else other._family)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self._family if self.nano else other._family)

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nano * times, self._family)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self._family)

    def __str__(self) -> str:
        """Return Kubernetes' canonical text: no fraction, exact, with the largest suffix of the same family."""
        if not self.nano:
            return "0"
        units, rest = divmod(self.nano, _NANO_PER_UNIT)
        if self._family is _Family.BINARY and not rest and abs(units) >= 1024:
            return _binary_text(units)
        return _decimal_text(self.nano, self._family)


def _binary_text(units: int) -> str:
    step = 0
    while units % 1024 == 0 and step + 1 < len(_BINARY_SUFFIXES):
        units //= 1024
        step += 1
    return f"{units}{_BINARY_SUFFIXES[step]}"


def _decimal_text(nano: int, family: _Family) -> str:
    exponent = -_NANO_DIGITS
    while nano % 1000 == 0:
        nano //= 1000
        exponent += 3
    # Beyond E there is no suffix, only an exponent.
    if exponent and (family is _Family.EXPONENT or exponent not in _DECIMAL_SUFFIXES):
        return f"{nano}e{exponent}"
    return f"{nano}{_DECIMAL_SUFFIXES[exponent]}"


def _shift(digits: int, places: int) -> int:
    """Return `digits` times ten to the power of `places`, rounded up."""
    if places >= 0:
        return int(digits * 10**places)
    if -places > MAX_LENGTH + _MAX_EXPONENT:
        return 1 if digits else 0
    return int(-(-digits // 10**-places))


def _divide_away_from_zero(amount: int, by: int) -> int:
    return -(-amount // by) if amount > 0 else amount // by


def _quantity_hint(text: str) -> str:
    if not text:
        return "write a number, such as 1 or 500m; leave the field out for none"
    match = _NUMBER_AND_REST.fullmatch(text)
    if match is None:
        return "write a number with an optional suffix, such as 2, 500m, 1.5, 10G or 4Gi"
    number, unit = match[1], match[2]
    if "," in number:
        return "write the number without commas; decimals follow a point, as in 1.5"
    if _QUANTITY.fullmatch(number + unit):
        return f"write {number}{unit}, without spaces"
    stem = re.sub(r"(?:ytes?|s)$", "", unit.lower())
    stem = re.sub(r"(?<=.)i?b$|(?<=.)i$", "", stem)
    if stem in _MEANT_SUFFIXES:
        return "did you mean " + " or ".join(f"{number}{suffix}" for suffix in _MEANT_SUFFIXES[stem]) + "?"
    return "suffixes are n, u, m, k, M, G, T, P, E (decimal) and Ki, Mi, Gi, Ti, Pi, Ei (powers of 1024)"


# Durations

_NANO_PER: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # U+00B5, the micro sign
    "μs": 10**3,  # U+03BC, the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION_PART: Final = re.compile(r"(?=\.?[0-9])(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[^0-9.]*)")
_WINDOW_DURATION: Final = re.compile(r"(?:[0-9]+[hm]|[0-9]+h[0-9]+m)(?:0s)?")
_SPAN: Final = re.compile(r"(?:[0-9]+[wdhms])+")
_SPAN_PART: Final = re.compile(r"(?<![0-9])([0-9]++)([wdhms])")
_SPAN_SECONDS: Final = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_KARPENTER_DURATION: Final = re.compile(r"(?:[0-9]+[smh])+")
_DURATION_HINT: Final = "write a number and a unit, such as 90s, 30m or 1h30m"


def parse_duration(text: str) -> int:
    """Parse a duration as Go's `time.ParseDuration` does. Returns nanoseconds, which may be negative."""
    _check_length(text, DurationError, "a duration")
    begin = 1 if text[:1] in {"+", "-"} else 0
    if text[begin:] == "0":
        return 0
    # Go counts in 64 bits; only the negative range reaches 2**63.
    longest = _MAX_INT64 + text.startswith("-")
    total, at = 0, begin
    while at < len(text) or at == begin:
        part = _DURATION_PART.match(text, at)
        if part is None:
            raise DurationError(f"{_shown(text)} is not a duration", _DURATION_HINT)
        unit = _NANO_PER.get(part["unit"])
        if unit is None:
            raise DurationError(*_unit_problem(text, part["unit"]))
        whole = (part["whole"] or "").lstrip("0")
        total += int(whole[:20] or "0") * unit + _go_fraction(part["fraction"] or "", unit)
        if total > longest or len(whole) > 20:
            raise DurationError(f"{_shown(text)} is too long for a duration", "the longest is about 292 years")
        at = part.end()
    return -total if text.startswith("-") else total


def _go_fraction(digits: str, unit: int) -> int:
    """Return a decimal fraction of a unit in nanoseconds, exactly as Go computes it.

    Go multiplies by a floating-point scale, so that 0.3333333333333333333h is twenty minutes and not a nanosecond less.
    This function does the same operations in the same order on the same 64-bit numbers.
    """
    numerator, scale = 0, 1.0
    for digit in digits:
        longer = numerator * 10 + int(digit)
        if numerator > _MAX_INT64 // 10 or longer > 2**63:
            break
        numerator, scale = longer, scale * 10
    return int(float(numerator) * (float(unit) / scale))


def _unit_problem(text: str, unit: str) -> tuple[str, str]:
    if not unit:
        return (
            f"{_shown(text)} has no unit",
            f"did you mean {text}s or {text}m?" if text.isdigit() else _DURATION_HINT,
        )
    if unit.strip() != unit or " " in text:
        return f"{_shown(text)} contains a space", "write it without spaces, as in 1h30m"
    if unit in {"d", "w"}:
        hours = 24 if unit == "d" else 168
        return (
            f"{_shown(text)} has the unit {unit}, which durations do not have",
            f"count in hours: 1{unit} is {hours}h",
        )
    return f"{_shown(text)} has the unknown unit {_shown(unit)}", "units are ns, us, ms, s, m and h"


def format_duration(nanoseconds: int) -> str:
    """Format nanoseconds as Go formats a duration: `1h30m0s`, `1.5ms`, `0s`."""
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    for unit in ("ns", "µs", "ms"):
        if rest < _NANO_PER[unit] * 1000:
            return f"{sign}{_with_fraction(rest, _NANO_PER[unit])}{unit}"
    minutes, rest = divmod(rest, _NANO_PER["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_with_fraction(rest, _NANO_PER['s'])}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _with_fraction(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{rest:0{len(str(unit)) - 1}}".rstrip("0")


def parse_window_duration(text: str) -> int:
    """Parse the duration of a disruption budget's window (hours, minutes or both). Returns seconds."""
    _check_length(text, DurationError, "the duration of a window")
    if not _WINDOW_DURATION.fullmatch(text):
        raise DurationError(
            f"{_shown(text)} is not the duration of a window",
            "write hours, minutes or both, such as 30m, 8h or 8h30m",
        )
    return parse_duration(text) // _NANO_PER["s"]


def parse_karpenter_duration(text: str) -> int | None:
    """Parse a duration of a NodePool, such as `consolidateAfter`. Returns seconds, or None for `Never`."""
    if text == "Never":
        return None
    _check_length(text, DurationError, "a duration")
    if not _KARPENTER_DURATION.fullmatch(text):
        hint = "write Never" if text.lower() == "never" else f"{_DURATION_HINT}, or Never"
        raise DurationError(f"{_shown(text)} is neither a duration nor Never", hint)
    return parse_duration(text) // _NANO_PER["s"]


def parse_span(text: str) -> int:
    """Parse a length of time on the command line or in a scenario, such as `1d12h`. Returns seconds."""
    _check_length(text, DurationError, "a length of time")
    if not _SPAN.fullmatch(text):
        raise DurationError(f"{_shown(text)} is not a length of time", "write 7d, 36h, 2w or 1d12h")
    return sum(int(count) * _SPAN_SECONDS[unit] for count, unit in _SPAN_PART.findall(text))


# Counts that may be percentages


@dataclass(frozen=True, slots=True)
class IntOrPercent:
    """A number of nodes, or a percentage of all nodes."""

    number: int
    is_percent: bool = False

    @classmethod
    def parse(cls, value: str | int) -> IntOrPercent:
        """Parse `10`, `"10"` or `"10%"`."""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise IntOrPercentError(f"{_shown(value)} is neither a count nor a percentage", _COUNT_HINT)
        text = str(value) if isinstance(value, int) else value
        _check_length(text, IntOrPercentError, "a count or a percentage")
        match = _COUNT.fullmatch(text)
        if match is None:
            raise IntOrPercentError(f"{_shown(text)} is neither a count nor a percentage", _count_hint(text))
        digits, percent = match[1].lstrip("0") or "0", bool(match[2])
        if percent and (len(digits) > 3 or int(digits) > 100):
            raise IntOrPercentError(f"{_shown(text)} is more than 100%", "the largest percentage is 100%")
        if percent and len(match[1]) > max(2, len(digits)):
            raise IntOrPercentError(f"{_shown(text)} has too many zeros in front", f'write "{digits}%"')
        if len(digits) > 10 or int(digits) > _MAX_INT32:
            raise IntOrPercentError(
                f"{_shown(text)} is larger than {_MAX_INT32}", 'write "100%" for no limit, or a smaller count'
            )
        return cls(int(digits), percent)

    @property
    def text(self) -> str:
        """The canonical text, as in a stored object."""
        return f"{self.number}%" if self.is_percent else str(self.number)

    def of(self, total: int) -> int:
        """Return the number of `total`; a percentage is rounded up."""
        return -(-self.number * total // 100) if self.is_percent else self.number


_COUNT: Final = re.compile(r"([0-9]+)(%?)")
_COUNT_HINT: Final = 'write a count such as 10, or a percentage such as "10%"'


def _count_hint(text: str) -> str:
    stripped = text.replace(" ", "")
    if stripped != text and _COUNT.fullmatch(stripped):
        return f'write "{stripped}", without spaces'
    if stripped.startswith("-"):
        return "the smallest is 0, which allows none"
    if re.fullmatch(r"[0-9]*[.,][0-9]*%?", stripped):
        return "write a whole number; a percentage of the nodes is rounded up"
    return _COUNT_HINT


def _shown(value: object) -> str:
    """Return a value as it is quoted in a message, shortened to one line."""
    text = str(value)
    return f'"{text}"' if len(text) <= 60 else f'"{text[:60]}…"'
