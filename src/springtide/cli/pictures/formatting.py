"""Formats values, durations and times, in the same way for every picture."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Final

from springtide.apis.forecast import LaneStyle

if TYPE_CHECKING:
    from springtide.apis.forecast import Forecast, Lane, LaneValue


_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))

_BIDI_CONTROLS: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """Make text safe for one line: control characters, escape codes and text direction marks are escaped.

    Names and messages come from objects of any origin; a terminal executes escape codes, and XML forbids them.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_printable_character(character) for character in text)


def _printable_character(character: str) -> str:
    if character in "\t\n\r\v\f\x85\u2028\u2029":
        return " "
    unprintable = character in _BIDI_CONTROLS or unicodedata.category(character) in ("Cc", "Cs", "Cn")
    return character.encode("unicode_escape").decode() if unprintable else character


def format_value(value: LaneValue, *, unicode: bool = True) -> str:
    """Write a value in full, as tables and sentences show it."""
    return value_forms(value, unicode=unicode)[0]


def value_forms(value: LaneValue, *, unicode: bool = True) -> tuple[str, ...]:
    """Write a value in forms of decreasing length; a picture takes the first one that fits."""
    match value:
        case None:
            return ("nothing", "–" if unicode else "-")
        case bool():
            return ("on",) if value else ("off",)
        case int():
            return (str(value),)
        case "unlimited":
            return ("∞ unlimited", "∞") if unicode else ("unlimited", "inf")
        case str():
            return (printable(value),)
        case dict():
            return _mapping_forms(value, unicode=unicode)


def _mapping_forms(value: dict[str, object], *, unicode: bool) -> tuple[str, ...]:
    full = ", ".join(f"{printable(key)}{_argument(item)}" for key, item in value.items()) or "nothing"
    match value:
        case {"replicas": int(replicas), **rest} if not rest:
            return (full, str(replicas))
        case {"min": int(least), "max": int(most), **rest} if not rest:
            return (full, f"{least}{'–' if unicode else '-'}{most}")
        case {"min": int(least), **rest} if not rest:
            return (full, f"{'≥' if unicode else '>='}{least}")
        case {"max": int(most), **rest} if not rest:
            return (full, f"{'≤' if unicode else '<='}{most}")
        case _:
            return (full,)


def _argument(item: object) -> str:
    match item:
        case list() | tuple():
            return f"({', '.join(_scalar(part) for part in item)})"
        case _:
            return f" {_scalar(item)}"


def _scalar(item: object) -> str:
    match item:
        case str():
            return printable(item)
        case _:
            return printable(json.dumps(item, ensure_ascii=False, default=str))


def is_on(value: LaneValue) -> bool:
    """Return whether the value of an on-or-off lane is on."""
    return value is True


def format_span(seconds: int, *, spaced: bool = False) -> str:
    """Write a duration in its two largest units: ``2d 14h``, ``45min``, ``0s``; spaced: ``2 d 14 h``."""
    rest = abs(seconds)
    parts: list[str] = []
    for size, unit in _UNITS:
        count, remainder = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}" if spaced else f"{count}{unit}")
            rest = remainder
        elif parts:
            break  # only adjacent units: "2d 3min" is needlessly precise
        if len(parts) == 2:
            break
    return " ".join(parts) or "0s"


def format_relative(at: int, now: int) -> str:
    """Write the distance of a time from now: ``in 2d 14h``, ``3h ago``, ``now``."""
    if at == now:
        return "now"
    return f"in {format_span(at - now)}" if at > now else f"{format_span(now - at)} ago"


def format_never(lane: Lane) -> str:
    """Say that a lane has no further changes."""
    if lane.style is not LaneStyle.FIRINGS:
        return "never changes"
    return "never fires" if lane.current is None else "never fires again"


def why_empty(forecast: Forecast) -> str:
    """Say why a forecast has no lanes."""
    errors = sum(problem.severity == "error" for problem in forecast.problems)
    if not errors:
        return "nothing in this object depends on time"
    return f"not drawn because of {errors} error{'s' if errors > 1 else ''}, which `springtide check` lists"


def format_subject(forecast: Forecast) -> str:
    """Write KIND/NAME of the object."""
    return printable(f"{forecast.kind}/{forecast.name}")
