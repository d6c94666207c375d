"""Writing XML and HTML so that nothing unescaped can slip in: text becomes markup in one place only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NewType

from springtide.cli.pictures.words import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

Markup = NewType("Markup", str)
"""Text that is already XML: made by `escape`, `tag` and `join` only."""

_SHAPES: Final = frozenset(("circle", "path", "rect"))
"""What may be written without a closing tag; in a page ``<code/>`` would swallow all that follows."""

_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escape(text: str) -> Markup:
    """Turn any text into markup that shows exactly this text."""
    return Markup(plain(text).translate(_ESCAPES))


def join(parts: Iterable[Markup]) -> Markup:
    """Put pieces of markup one after the other."""
    return Markup("".join(parts))


def tag(name: str, *children: Markup, **attributes: str | int | float | None) -> Markup:
    """Write an element; ``class_`` becomes ``class``, ``stroke_width`` ``stroke-width``, None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _SHAPES and not children:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{join(children)}</{name}>")


def number(value: float) -> str:
    """Write a coordinate: at most two decimals, no trailing zeros, never ``-0``."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _attribute(value: str | int | float) -> str:
    return escape(value) if isinstance(value, str) else number(value)
