"""Writing objects as YAML, in the usual style of Kubernetes manifests.

A string must be the same for parsers with Kubernetes' rules and for strict YAML 1.1 parsers, for which `NO` is false
and `22:00` a number. A string that either could take for another value is quoted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from springtide.apis.yaml.values import DISPUTED_WORDS, is_not_finite, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable


_SPECIAL: Final = frozenset({"=", "<<", "-"})
_NEEDS_QUOTES: Final = re.compile(r"[?:,\[\]{}#&*!|>'\"%@`]|-\s|---|\.\.\.|\s|.*(?::(?:\s|$)|\s#|\s$)")
_NEEDS_QUOTES_IN_FLOW: Final = re.compile(r"[,\[\]{}:#?]")
_NUMBER_IN_YAML_1_1: Final = re.compile(
    r"[-+]?[0-9][0-9_]*+(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # to the base of sixty: 22:00
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"  # dates
    r"|[-+]?0[xX][0-9a-fA-F_]+|[-+]?0[bB][01_]+|[-+]?0[oO]?[0-7_]+"
    r"|[-+]?(?:[0-9][0-9_]*+\.?[0-9_]*+|\.[0-9_]++)(?:[eE][-+]?[0-9]+)?"
)


def scalar_text(value: str | int | float | bool | None, *, flow: bool = False, style: str = "") -> str:
    """Write a scalar on one line; a string keeps the quotes of `style` if they can hold it."""
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
        return "'" + value.replace("'", "''") + "'"  # keeps JSON in annotations readable
    return double_quoted(value)


def is_plain(text: str, *, flow: bool = False) -> bool:
    """Return whether a string needs no quotes to be the same string for every parser."""
    if not text or not text.isprintable() or text in _SPECIAL or text in DISPUTED_WORDS:
        return False
    if resolve(text) != text or is_not_finite(text) or _NUMBER_IN_YAML_1_1.fullmatch(text):
        return False
    return not _NEEDS_QUOTES.match(text) and not (flow and _NEEDS_QUOTES_IN_FLOW.search(text))


def double_quoted(text: str) -> str:
    """Write a string in double quotes, with JSON's escapes, which YAML allows too."""
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
    # YAML 1.1 allows an exponent only after a decimal point.
    return text if "." in text else text.replace("e", ".0e")


_FIRST_KEYS: Final = ("apiVersion", "kind", "metadata", "spec", "status")
_INDENT: Final = "  "
# Most parsers reject a longer key that is on one line with its value.
_MAX_KEY_LENGTH: Final = 1000


def dump(value: Any) -> str:
    """Write a value as one document, without `---`."""
    if isinstance(value, dict):
        first = {key: value[key] for key in _FIRST_KEYS if key in value}
        value = first | {key: item for key, item in value.items() if key not in first}
    return "\n".join(block_lines(value)) + "\n"


def streamed_lines(value: Any) -> Iterator[str]:
    """Yield the lines of a value, in which iterators stand for lists: their items are read as they are written."""
    if not isinstance(value, dict) or not any(isinstance(item, Iterator) for item in value.values()):
        yield from block_lines(value)
        return
    for key, item in value.items():
        if not isinstance(item, Iterator):
            yield from entry_lines(key, item)
            continue
        empty = True
        for each in item:
            if empty:
                yield f"{scalar_text(key)}:"
                empty = False
            lines = streamed_lines(each)
            yield f"- {next(lines)}"
            yield from (_INDENT + line if line else line for line in lines)
        if empty:
            yield f"{scalar_text(key)}: []"


def block_lines(value: Any) -> list[str]:
    """Write a value as lines without indentation."""
    if isinstance(value, dict) and value:
        return [line for key, item in value.items() for line in entry_lines(key, item)]
    if isinstance(value, list) and value:
        return [line for item in value for line in item_lines(item)]
    if isinstance(value, str) and _is_literal(value):
        return _literal_lines(value)
    return [flow_text(value)]


def entry_lines(key: str, value: Any) -> list[str]:
    """Write one entry of a mapping."""
    name, before = scalar_text(key), list[str]()
    if len(name) > _MAX_KEY_LENGTH:
        name, before = "", [f"? {name}"]
    lines = block_lines(value)
    if isinstance(value, dict) and value:
        return [*before, f"{name}:", *_indented(lines)]
    if isinstance(value, list) and value:
        return [*before, f"{name}:", *lines]
    return [*before, f"{name}: {lines[0]}", *lines[1:]]


def item_lines(value: Any) -> list[str]:
    """Write one item of a list."""
    first, *others = block_lines(value)
    if isinstance(value, str):
        return [f"- {first}", *others]
    return [f"- {first}", *_indented(others)]


def flow_text(value: Any) -> str:
    """Write a value on one line, in brackets and braces."""
    if isinstance(value, dict):
        return "{" + ", ".join(flow_entry(key, item) for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow_part(item) for item in value) + "]"
    return scalar_text(value)


def flow_entry(key: str, value: Any) -> str:
    """Write one entry of a mapping in braces."""
    return f"{scalar_text(key, flow=True)}: {_flow_part(value)}"


def _flow_part(value: Any) -> str:
    return flow_text(value) if isinstance(value, dict | list) else scalar_text(value, flow=True)


def _is_literal(text: str) -> bool:
    """Return whether a string is written as a block: several lines, without invisible characters at their ends."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and text[0] not in " \t\n"
        and all(line.replace("\t", "").isprintable() and line[-1:] not in (" ", "\t") for line in lines)
    )


def _literal_lines(text: str) -> list[str]:
    body = text.removesuffix("\n")
    header = "|-" if body == text else "|+" if body.endswith("\n") else "|"
    return [header, *_indented(body.split("\n"))]


def _indented(lines: Iterable[str]) -> list[str]:
    return [_INDENT + line if line else line for line in lines]
