"""Static analysis of rules: which variables and fields they use.

The engine has no types for the fields of `self`. kube-apiserver does: it rejects rules that name unknown fields, and
strings of some formats are timestamps or durations in rules. Both only need the field paths in the text of a rule, such
as `self.window.start`, so they are read from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from springtide.apiserver.custom.cel.values import unescape
from springtide.apiserver.custom.structural_schema import SchemaNode

_TOKEN: Final = re.compile(
    r"""(?P<raw>(?:[rR][bB]?|[bB][rR])(?:'''(?:.|\n)*?'''|\"\"\"(?:.|\n)*?\"\"\"|'[^'\n]*'|"[^"\n]*"))
    |(?P<string>[bB]?(?:'''(?:.|\n)*?'''|\"\"\"(?:.|\n)*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"))
    |(?P<comment>//[^\n]*)|(?P<space>\s+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9][0-9A-Za-z.]*)|(?P<sign>\.\?|.)
    """,
    re.VERBOSE,
)
_CONVERSIONS: Final = {
    "duration": "duration({})",
    "date": "timestamp({} + 'T00:00:00Z')",
    "date-time": "timestamp({})",
    "byte": "base64.decode({})",
}
"""The expressions that turn a string of a format into its CEL type."""

_METADATA: Final = ("name", "generateName")
_TEXT: Final = SchemaNode(type="string")


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A field path in a rule: a variable and the fields that are selected from it."""

    start: int
    end: int
    root: str
    names: tuple[str, ...]
    tested: bool
    """Whether the path is the argument of `has(…)`."""


def uses_variable(rule: str, name: str) -> bool:
    """Whether a rule uses a variable."""
    return any(path.root == name for path in field_paths(rule, (name,)))


def field_paths(rule: str, roots: tuple[str, ...] = ("self", "oldSelf")) -> Iterator[FieldPath]:
    """Yield the field paths that start at one of the variables."""
    tokens = [match for match in _TOKEN.finditer(rule) if match.lastgroup not in ("space", "comment")]
    texts = [match.group() for match in tokens] + [""] * 3
    for index, token in enumerate(tokens):
        if token.group() not in roots or token.lastgroup != "name" or (index and texts[index - 1] in (".", ".?")):
            continue
        last, names = index, []
        while texts[last + 1] == "." and texts[last + 3] != "(" and last + 2 < len(tokens):
            names.append(texts[last + 2])
            last += 2
        tested = index > 1 and texts[index - 2 : index] == ["has", "("] and texts[last + 1] == ")"
        yield FieldPath(token.start(), tokens[last].end(), token.group(), tuple(names), tested)


def undefined_field(rule: str, node: SchemaNode, *, root: bool) -> str:
    """Return the message for the first field of a rule that the schema does not have; empty if there is none."""
    for path in field_paths(rule):
        here: SchemaNode | None = node
        for depth, name in enumerate(path.names):
            if root and depth < 2 and path.names[0] in ("apiVersion", "kind", "metadata"):
                here = _metadata_field(path.names[: depth + 1])
            else:
                here = _field(here, name)
            if here is None:
                looked_for = path.tested and depth == len(path.names) - 1
                column = path.start + (-1 if looked_for else len(".".join((path.root, *path.names[:depth]))))
                return _pointing(rule, column, f"undefined field '{name}'")
    return ""


def _pointing(rule: str, column: int, message: str) -> str:
    return f"ERROR: <input>:1:{column + 1}: {message}\n | {rule}\n | {'.' * column}^"


def with_format_types(rule: str, node: SchemaNode, *, root: bool) -> str:
    """Rewrite a rule so that strings of certain formats have their CEL types."""
    written = rule
    for path in reversed([*field_paths(rule)]):
        here: SchemaNode | None = node
        for name in path.names:
            here = None if root and here is node and name == "metadata" else _field(here, name)
        if here is None or here.type != "string" or path.tested:
            continue
        conversion = _CONVERSIONS.get(here.format)
        if conversion:
            written = written[: path.start] + conversion.format(rule[path.start : path.end]) + written[path.end :]
    return written


def _metadata_field(names: tuple[str, ...]) -> SchemaNode | None:
    match names:
        case ("metadata",):
            return SchemaNode(type="object", values=_TEXT)
        case ("apiVersion" | "kind",):
            return _TEXT
        case ("metadata", name) if name in _METADATA:
            return _TEXT
    return None


def _field(node: SchemaNode | None, name: str) -> SchemaNode | None:
    if node is None:
        return None
    if node.int_or_string or node.values is not None:
        return node.values or SchemaNode()
    if not node.type:
        return SchemaNode()
    found = node.properties.get(unescape(name))
    return found if found is not None and is_visible(found) else None


def is_visible(node: SchemaNode) -> bool:
    """Whether rules can use the values of a schema node: values without a type are not visible."""
    if node.int_or_string:
        return True
    if node.type == "array":
        return node.items is not None and is_visible(node.items)
    return node.type != "" and (node.values is None or is_visible(node.values))
