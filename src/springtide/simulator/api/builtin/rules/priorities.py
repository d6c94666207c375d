"""Priority classes: those of the system are the system's, and what a class means stays."""

from __future__ import annotations

from collections.abc import Iterator

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import forbidden, invalid
from springtide.simulator.api.builtin.rules.making import IMMUTABLE

_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_HIGHEST = 1_000_000_000
"""The highest priority that users may define."""


def priority_class(item: Object, old: Object | None) -> Iterator[Cause]:
    """Judge a class, given what it was before."""
    value = item.get("value") or 0
    if old is not None:
        if value != (old.get("value") or 0):
            yield forbidden("value", "may not be changed in an update.")
        policy = item.get("preemptionPolicy")
        if policy != old.get("preemptionPolicy"):
            yield invalid("preemptionPolicy", policy, IMMUTABLE)
    elif item["metadata"].get("name", "").startswith("system-"):
        yield from _of_the_system(item["metadata"]["name"], value, item.get("globalDefault") or False)
    elif value > _HIGHEST:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")


def _of_the_system(name: str, value: int, default: bool) -> Iterator[Cause]:
    if name not in _SYSTEM:
        error = f"{name} is not a known system priority class"
    elif value != _SYSTEM[name]:
        error = f"value of {name} PriorityClass must be {_SYSTEM[name]}"
    elif default:
        error = f"globalDefault of {name} PriorityClass must be false"
    else:
        return
    message = f"priority class names with 'system-' prefix are reserved for system use only. error: {error}"
    yield forbidden("metadata.name", message)
