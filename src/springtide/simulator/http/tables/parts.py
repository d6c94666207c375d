"""What cells of several tables are made of."""

from __future__ import annotations

from typing import Any

from springtide.cluster.resources import Object
from springtide.simulator.api.selectors import selector_of
from springtide.simulator.api.values import found
from springtide.simulator.http.tables.ages import Ages
from springtide.simulator.http.tables.layouts import NONE

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def name(item: Object) -> str:
    """Give the name of an object."""
    return str(item["metadata"]["name"])


def age(item: Object, ages: Ages) -> str:
    """Tell how long an object has existed."""
    return ages.since(item["metadata"].get("creationTimestamp"))


def at(item: Object, path: str, otherwise: Any = "") -> Any:
    """Give what stands at a dotted path."""
    value = found(item, tuple(path.split(".")))
    return otherwise if value is None else value


def labels(given: Any) -> str:
    """Write labels in one cell."""
    return ",".join(f"{key}={value}" for key, value in sorted((given or {}).items())) or NONE


def selector(given: Any) -> str:
    """Write a label selector in one cell."""
    return str(selector_of(given)) or NONE if isinstance(given, dict) else NONE


def containers(template: Any) -> list[str]:
    """Give the names and the images of the containers of a pod template."""
    listed = found(template, ("spec", "containers")) or []
    return [",".join(str(each.get(field, "")) for each in listed) for field in ("name", "image")]


def access_modes(modes: Any) -> str:
    """Abbreviate the ways in which a volume can be mounted."""
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def holds(item: Object, condition: str) -> bool:
    """Tell whether a condition is true."""
    listed = at(item, "status.conditions", [])
    return any(each.get("type") == condition and each.get("status") == "True" for each in listed)
