"""The values of a node tree, by Kubernetes' rules for scalars, and the problems of its notation.

A YAML 1.1 parser turns `22:00` into 1320, `NO` into false and `2026-12-24` into a date. Users of our kinds write times,
country codes and dates, so here these are strings. Numbers follow the Go parser that the Kubernetes tools use.
"""

from __future__ import annotations

import math
import re
import struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from springtide.apis.problems import error, warning
from springtide.apis.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode, clipped, resolved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from springtide.apis.problems import Path, Problem


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
"""Words that are strings here, and booleans for kubectl."""

_FIRST_OF_NUMBER: Final = frozenset("0123456789+-.")
_BASED: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+))")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
# A number with more digits than this is larger than every floating-point number; Go treats it as a string.
_MAX_DIGITS: Final = 308


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted scalar."""
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
    """Return whether an unquoted scalar is an infinity or NaN, which JSON and so an object cannot hold."""
    return bool(_NOT_FINITE.fullmatch(text))


def key_text(value: str | int | float | bool) -> str:
    """Return a key as a string, as the Kubernetes tools do when they convert YAML to JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return _shortest_single(value)


def _shortest_single(value: float) -> str:
    """Return the shortest text of a number in single precision, with an exponent from a million on."""
    single = _single_precision(value)
    if single is None:
        return "-Inf" if value < 0 else "+Inf"
    # Nine digits always distinguish two such numbers.
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


Finding: TypeAlias = "tuple[Problem, Node]"
Entry: TypeAlias = tuple[Node, Node]

_STANDARD: Final = "tag:yaml.org,2002:"
_TYPES: Final = {"int": int, "float": float, "bool": bool, "null": type(None)}
_MERGE: Final = "<<"
_SLASHES: Final = re.compile(r"\s//(\s|$)")
_OBJECT_KEYS: Final = ("apiVersion", "kind", "metadata")


def value_of(root: Node, first_line: int = 1) -> tuple[Any, list[Finding]]:
    """Return the value of a tree that begins on a line of its file, and every problem with its node."""
    reader = _ValueReader(first_line)
    return reader.value(root, ()), reader.findings


def fields(node: MappingNode) -> dict[str, Entry]:
    """Return the entries of a mapping by name, merged ones included; of a repeated key the last one counts."""
    merged: dict[str, Entry] = {}
    own: dict[str, Entry] = {}
    for key, value in node.entries:
        if _is_merge(key):
            for source in _merge_sources(value):
                merged |= {name: entry for name, entry in fields(source).items() if name not in merged}
        elif (name := name_of(key)) is not None:
            own[name] = (key, value)
    return merged | own


def merges(node: MappingNode) -> bool:
    """Return whether a mapping merges entries of another one with `<<`."""
    return any(_is_merge(key) for key, _ in node.entries)


def name_of(key: Node) -> str | None:
    """Return the key as a string, or None if it is null, a list or a mapping."""
    scalar = resolved(key)
    if not isinstance(scalar, ScalarNode):
        return None
    value = _scalar_value(scalar)
    return None if value is None else key_text(value)


def _is_merge(key: Node) -> bool:
    return isinstance(key, ScalarNode) and not key.style and key.tag is None and key.text == _MERGE


def _merge_sources(value: Node) -> Iterator[MappingNode]:
    """Yield the mappings to merge, the one with the highest precedence first."""
    inner = resolved(value)
    for candidate in inner.items if isinstance(inner, SequenceNode) else [inner]:
        source = resolved(candidate)
        if isinstance(source, MappingNode):
            yield source


def _scalar_value(node: ScalarNode) -> str | int | float | bool | None:
    if node.tag is None:
        return node.text if node.style else resolve(node.text)
    if node.tag.removeprefix(_STANDARD) in _TYPES:
        return resolve(node.text)
    return node.text


class _ValueReader:
    """Visits a tree once; recursion is safe because the depth of a tree is bounded."""

    def __init__(self, first_line: int) -> None:
        self.findings: list[Finding] = []
        self._first_line = first_line

    def value(self, node: Node, path: Path) -> Any:
        inner = resolved(node)
        if isinstance(inner, ScalarNode):
            return self._scalar(inner, path)
        self._check_tag(inner, path, "seq" if isinstance(inner, SequenceNode) else "map")
        if isinstance(inner, SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(inner.items)]
        self._check_keys(inner, path)
        return {name: self.value(value, (*path, name)) for name, (_, value) in fields(inner).items()}

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        kind = (node.tag or "").removeprefix(_STANDARD)
        if kind in _TYPES:
            value = resolve(node.text)
            if type(value) is not _TYPES[kind] and not (kind == "float" and type(value) is int):
                message = f"`{clipped(node.text)}` is no {kind}, as its tag `!!{kind}` says"
                self._report(node, path, message, "remove the tag")
            return value
        self._check_tag(node, path, "str")
        if node.style or node.tag:
            return node.text
        if is_not_finite(node.text):
            self._report(node, path, f"`{node.text}` is not a number that an object can hold", "write a finite number")
        elif node.text in DISPUTED_WORDS:
            self._warn_of_disputed(node, path)
        if _SLASHES.search(node.text):
            self._warn_of_slashes(node, path)
        return resolve(node.text)

    def _check_keys(self, node: MappingNode, path: Path) -> None:
        seen: dict[str, Node] = {}
        for key, value in node.entries:
            if _is_merge(key):
                self._check_merge(key, value, path)
                continue
            name = name_of(key)
            if name is None:
                self._refuse_key(key, path)
            elif name in seen:
                self._report_repeated(key, seen[name], (*path, name))
            else:
                seen[name] = key
                inner = resolved(key)
                if name in DISPUTED_WORDS and isinstance(inner, ScalarNode) and not (inner.style or inner.tag):
                    self._warn_of_disputed(inner, (*path, name))

    def _check_merge(self, key: Node, value: Node, path: Path) -> None:
        inner = resolved(value)
        sources = inner.items if isinstance(inner, SequenceNode) else [inner]
        if not all(isinstance(resolved(source), MappingNode) for source in sources):
            self._report(key, path, "`<<` merges a value that is not a mapping", "write an alias of a mapping")

    def _refuse_key(self, key: Node, path: Path) -> None:
        inner = resolved(key)
        if isinstance(inner, MappingNode) and inner.flow:
            message = "a mapping cannot be a key"
            hint = "`{{ }}` belongs to a template: render it first, or quote the text"
        elif isinstance(inner, ScalarNode):
            message, hint = "a key is empty or null", "write a name before the colon, or quote the key"
        else:
            message, hint = "a list or mapping cannot be a key", "write a name before the colon"
        self._report(key, path, message, hint)

    def _report_repeated(self, key: Node, first: Node, path: Path) -> None:
        hint = "keep one of them"
        if len(path) == 1 and path[0] in _OBJECT_KEYS:
            hint = "does a new object begin here, and its `---` is missing?"
        line = first.line + self._first_line
        self._report(key, path, f"`{path[-1]}` is repeated in this mapping, first on line {line}", hint)

    def _check_tag(self, node: Node, path: Path, expected: str) -> None:
        if node.tag is not None and node.tag not in (_STANDARD + expected, "!"):
            shown = node.tag.replace(_STANDARD, "!!")
            self._report(node, path, f"the tag `{clipped(shown)}` is not known", "write the value without a tag")

    def _warn_of_disputed(self, node: ScalarNode, path: Path) -> None:
        expected = "true" if node.text.lower() in {"y", "yes", "on"} else "false"
        message = f"`{node.text}` is text here, but kubectl reads it as {expected}"
        self.findings.append((warning(path, message, f'write "{node.text}" or {expected}'), node))

    def _warn_of_slashes(self, node: ScalarNode, path: Path) -> None:
        message = "`//` does not start a comment in YAML: the rest of the line is part of the value"
        self.findings.append((warning(path, message, "write `#` instead, or quote the value"), node))

    def _report(self, node: Node, path: Path, message: str, hint: str) -> None:
        self.findings.append((error(path, message, hint), node))
