"""Objects written as YAML the way a person would for Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from springtide.apis.yaml.quoting import scalar_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIRST_KEYS: Final = ("apiVersion", "kind", "metadata", "spec", "status")
_INDENT: Final = "  "
# A key on one line with its value may not be longer for most parsers.
_MAX_KEY_LENGTH: Final = 1000


def dump(value: Any) -> str:
    """Write a value as one document, without `---`."""
    if isinstance(value, dict):
        first = {key: value[key] for key in _FIRST_KEYS if key in value}
        value = first | {key: item for key, item in value.items() if key not in first}
    return "\n".join(block_lines(value)) + "\n"


def block_lines(value: Any) -> list[str]:
    """Write a value as lines that begin in the first column."""
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
    """Tell whether a block can hold a text as it is: more than a line, and nothing that would vanish unseen."""
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
