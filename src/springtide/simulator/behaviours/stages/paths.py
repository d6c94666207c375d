"""Paths into objects, as stages write them.

`status.phase` goes through fields, `metadata.annotations["example.com/a.b"]` through a field whose name has dots, and
`status.conditions[type=Ready].status` through the first entry of a list that has this value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_STEP = re.compile(r'(?:^|\.)(?P<field>[A-Za-z_]\w*)|\["(?P<quoted>[^"]+)"\]|\[(?P<key>\w+)=(?P<value>[^\]]+)\]')

Step = Callable[[Any], Any]


def compile_path(path: str) -> Step:
    """Make the function that reads a path; it gives None where there is nothing, or null."""
    steps: list[Step] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            msg = f"`{path}` is not a path: expected a field or an entry of a list at `{path[position:]}`"
            raise ValueError(msg)
        steps.append(
            _entry(match["key"], match["value"]) if match["key"] else _field(match["field"] or match["quoted"])
        )
        position = match.end()

    def read(value: Any) -> Any:
        for step in steps:
            if value is None:
                return None
            value = step(value)
        return value

    return read


def _field(name: str) -> Step:
    return lambda value: value.get(name) if isinstance(value, dict) else None


def _entry(key: str, wanted: str) -> Step:
    def find(value: Any) -> Any:
        for entry in value if isinstance(value, list) else ():
            if isinstance(entry, dict) and _text(entry.get(key)) == wanted:
                return entry
        return None

    return find


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
