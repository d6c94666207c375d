"""JSON pointers (RFC 6901): a path into a JSON document."""

from __future__ import annotations

import re
from typing import Any

_INDEX = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
"""A place in a list; what has more digits is in no list that anybody has."""


class PointsNowhere(LookupError):
    """A pointer that names nothing in a document; the message says where the way ends."""


def resolve(document: Any, pointer: str) -> Any:
    """Give the value that a pointer names; the empty pointer names the whole document."""
    if not pointer:
        return document
    value, walked = document, ""
    for token in pointer.removeprefix("/").split("/"):
        value = _step(value, token.replace("~1", "/").replace("~0", "~"), walked or "the top")
        walked = f"{walked}/{token}"
    return value


def _step(value: Any, name: str, place: str) -> Any:
    if isinstance(value, dict):
        if name in value:
            return value[name]
        msg = f'there is no member "{name}" at {place}'
        raise PointsNowhere(msg)
    if isinstance(value, list):
        if _INDEX.fullmatch(name) and int(name) < len(value):
            return value[int(name)]
        msg = f'there is no entry "{name}" in the list at {place}'
        raise PointsNowhere(msg)
    msg = f'there is nothing below {place} that could have a member "{name}"'
    raise PointsNowhere(msg)
