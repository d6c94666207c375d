"""How wide text is when nobody can measure it: estimates by the widest of the usual system fonts."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

ELLIPSIS: Final = "…"

_BOLD: Final = 1.12  # how much wider heavy letters are
_CLASSES: Final = (("ijlI.,:;|!'", 0.32), ('frt()[]/-" ', 0.41), ("mwMW%@∞→—…×", 0.95))


@lru_cache(maxsize=1024)
def _ems(character: str) -> float:
    for members, width in _CLASSES:
        if character in members:
            return width
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in ("W", "F"):
        return 1.05
    return 0.72 if character.isupper() else 0.63


def text_width(text: str, size: int, *, bold: bool = False) -> float:
    """Estimate the width of text in a sans-serif font of a size in pixels."""
    return sum(map(_ems, text)) * size * (_BOLD if bold else 1)


def longest_fit(forms: Iterable[str], size: int, room: float, *, bold: bool = False) -> str | None:
    """Take the first of ever shorter forms that fits."""
    return next((form for form in forms if text_width(form, size, bold=bold) <= room), None)


def shorten(text: str, size: int, room: float, *, bold: bool = False) -> str:
    """Cut text to what fits, with an ellipsis where something was cut."""
    if text_width(text, size, bold=bold) <= room:
        return text
    kept = text
    while kept and text_width(kept + ELLIPSIS, size, bold=bold) > room:
        kept = kept[:-1]
    return kept.rstrip() + ELLIPSIS


def wrap(text: str, size: int, room: float) -> list[str]:
    """Break text into lines between words; a word that is too long for a line is shortened."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if text_width(longer, size) <= room:
            line = longer
            continue
        if line:
            lines.append(line)
        line = shorten(word, size, room)
    return [*lines, line] if line else lines
