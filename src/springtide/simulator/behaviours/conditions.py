"""Conditions in the status of built-in kinds: a list told apart by type, of which everybody writes only their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from springtide.cluster.resources import Object


def condition(item: Object, kind: str) -> Object | None:
    """Find the condition of a type."""
    for found in (item.get("status") or {}).get("conditions") or ():
        if found.get("type") == kind:
            return dict(found)
    return None


def is_true(item: Object, kind: str) -> bool:
    """Tell whether a condition is there and holds."""
    found = condition(item, kind)
    return found is not None and found.get("status") == "True"


def with_conditions(present: Sequence[Object] | None, wanted: Sequence[Object], now: str) -> list[Object]:
    """Bring conditions into a list; the time of the transition stays where the status does, as do all others."""
    left = {entry["type"]: entry for entry in wanted}
    merged = [_brought_in(entry, left.pop(entry["type"], None), now) for entry in present or ()]
    return merged + [{**entry, "lastTransitionTime": now} for entry in left.values()]


def _brought_in(old: Object, new: dict[str, Any] | None, now: str) -> Object:
    if new is None:
        return old
    stays = old.get("status") == new["status"] and "lastTransitionTime" in old
    return {**new, "lastTransitionTime": old["lastTransitionTime"] if stays else now}
