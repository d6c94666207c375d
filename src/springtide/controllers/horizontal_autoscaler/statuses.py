"""What the status of an autoscaler tells already."""

from __future__ import annotations

from springtide.cluster.conditions import Truth
from springtide.cluster.events import Notice
from springtide.cluster.resources import Object


def says(autoscaler: Object, type_: str, truth: Truth) -> bool:
    """Tell whether a condition has a status."""
    return any(entry.get("type") == type_ and entry.get("status") == truth for entry in _conditions(autoscaler))


def has_told(autoscaler: Object, trouble: Notice) -> bool:
    """Tell whether people know of a trouble: a condition begins with its words, and may go on with others."""
    return any(
        entry.get("status") == Truth.FALSE
        and entry.get("reason") == trouble.reason
        and str(entry.get("message", "")).startswith(trouble.message)
        for entry in _conditions(autoscaler)
        if entry.get("type") != "Ready"
    )


def _conditions(autoscaler: Object) -> list[Object]:
    return (autoscaler.get("status") or {}).get("conditions") or []
