"""Controllers that look after a namespace at a time: what is in it, and whose business a change in it is.

Budgets and quotas are about whatever else there is in their namespace, so that one change concerns all of them. Such
controllers reconcile the namespace as a whole; a thousand changes at once are then one piece of work.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from springtide.cluster.controller import Cached
from springtide.cluster.resources import Key, Object, Resource, Selection

IN_NAMESPACE = "in namespace"
"""The index of objects by their namespace."""


def _by_namespace(item: Object) -> Iterable[Hashable]:
    yield item["metadata"].get("namespace", "")


def grouped(resource: Resource) -> Cached:
    """Give the cache of a resource whose objects are found by their namespace."""
    return Cached(Selection(resource), indexes={IN_NAMESPACE: _by_namespace})


def to_namespace(key: Key, item: Object) -> Iterable[Key]:  # noqa: ARG001
    """Map a change to the namespace that it happened in."""
    return (Key(key.namespace, ""),)


def replacing(present: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """Write a map so that a merge patch leaves nothing else in it; None for an empty one."""
    gone = {name: None for name in present or {} if name not in wanted}
    return {**gone, **wanted} if wanted else None
