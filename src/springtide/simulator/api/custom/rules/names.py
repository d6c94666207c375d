"""Names of fields in rules: CEL reserves some words and has no names with dashes, dots or slashes."""

from __future__ import annotations

import re
from typing import Final

_RESERVED: Final = (
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
)  # fmt: skip
_MARKS: Final = {"__": "underscores", ".": "dot", "-": "dash", "/": "slash"}
_WORDS: Final = {word: mark for mark, word in _MARKS.items()}
_SPECIAL: Final = re.compile(r"__|[-./]")
_NAME: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_ESCAPE: Final = re.compile(r"__([^_]+)__")


def escape(name: str) -> str:
    """Write the name of a field as rules write it; a name that they cannot write stays as it is."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return name
    return _SPECIAL.sub(lambda mark: f"__{_MARKS[mark.group()]}__", name)


def unescape(name: str) -> str:
    """Read a name that a rule writes."""
    return _ESCAPE.sub(lambda found: _WORDS.get(found[1], found[1] if found[1] in _RESERVED else found[0]), name)
