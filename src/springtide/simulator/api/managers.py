"""The names under which writers own fields."""

from __future__ import annotations

import json
from functools import lru_cache

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Resource
from springtide.simulator.api.answers import invalid

_MOST_BYTES = 128


def check_manager(manager: str, verb: str) -> None:
    """Refuse a write whose writer cannot be recorded."""
    if causes := _problems(manager):
        raise invalid(Resource("meta.k8s.io", "v1", "", f"{verb}Options"), "", causes)


@lru_cache(maxsize=1024)
def _problems(manager: str) -> tuple[Cause, ...]:
    causes = []
    if len(manager.encode()) > _MOST_BYTES:
        message = f"Too long: may not be more than {_MOST_BYTES} bytes"
        causes.append(Cause("fieldManager", message, "FieldValueTooLong"))
    for position, letter in enumerate(manager):
        if not letter.isprintable():
            place = len(manager[:position].encode())
            shown = json.dumps(manager, ensure_ascii=False)
            why = f"invalid character U+{ord(letter):04X} (at position {place})"
            causes.append(Cause("fieldManager", f"Invalid value: {shown}: {why}"))
    return tuple(causes)
