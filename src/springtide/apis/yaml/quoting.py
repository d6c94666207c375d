"""When a text needs quotes in YAML, and how it is written then.

Two readers must agree on what we write: ours, and those that follow YAML 1.1 to the letter, for which `NO` is
false and `22:00` a number. Where either could take a text for something else, it is quoted.
"""

from __future__ import annotations

import json
import math
import re
from typing import Final

from springtide.apis.yaml.scalars import DISPUTED_WORDS, is_not_finite, resolve

_SPECIAL: Final = frozenset({"=", "<<", "-"})
_NEEDS_QUOTES: Final = re.compile(r"[?:,\[\]{}#&*!|>'\"%@`]|-\s|---|\.\.\.|\s|.*(?::(?:\s|$)|\s#|\s$)")
_NEEDS_QUOTES_IN_FLOW: Final = re.compile(r"[,\[\]{}:#?]")
_NUMBER_IN_YAML_1_1: Final = re.compile(
    r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # to the base of sixty: 22:00
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"  # dates
    r"|[-+]?0[xX][0-9a-fA-F_]+|[-+]?0[bB][01_]+|[-+]?0[oO]?[0-7_]+"
    r"|[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?"
)


def scalar_text(value: str | int | float | bool | None, *, flow: bool = False, style: str = "") -> str:
    """Write a scalar on one line; a text keeps the quotes of `style` where they can hold it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float_text(value)
    if style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if style != '"' and is_plain(value, flow=flow):
        return value
    if not style and '"' in value and value.isprintable():
        return "'" + value.replace("'", "''") + "'"  # JSON, as annotations hold it, stays readable
    return double_quoted(value)


def is_plain(text: str, *, flow: bool = False) -> bool:
    """Tell whether a text can stand without quotes and is the same text for every reader."""
    if not text or not text.isprintable() or text in _SPECIAL or text in DISPUTED_WORDS:
        return False
    if resolve(text) != text or is_not_finite(text) or _NUMBER_IN_YAML_1_1.fullmatch(text):
        return False
    return not _NEEDS_QUOTES.match(text) and not (flow and _NEEDS_QUOTES_IN_FLOW.search(text))


def double_quoted(text: str) -> str:
    """Write a text in double quotes: JSON's escapes are a part of YAML's, which prints fewer characters."""
    return "".join(
        character if character.isprintable() else _escaped(character)
        for character in json.dumps(text, ensure_ascii=False)
    )


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be written: an object holds finite numbers only")
    text = repr(value)
    # YAML 1.1 knows an exponent only after a point.
    return text if "." in text else text.replace("e", ".0e")
