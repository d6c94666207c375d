"""What the cluster as a whole has to say about a new object, beyond the rules of its kind.

Its namespace must be there and not on its way out; a pod gets the defaults of limit ranges and the number of its
priority class; and what it asks for must fit into the quotas of its namespace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Key, Object
from springtide.simulator.api import pods, quota
from springtide.simulator.api.answers import forbidden, not_found
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.storage import CollectionId

NAMESPACES = CollectionId("", "namespaces")
_PODS = CollectionId("", "pods")
_QUOTAS = CollectionId("", "resourcequotas")
_LIMIT_RANGES = CollectionId("", "limitranges")
PRIORITY_CLASSES = CollectionId("scheduling.k8s.io", "priorityclasses")

_UNDELETABLE = ("default", "kube-public", "kube-system")


class Objects(Protocol):
    """The stored objects, as admission reads them."""

    def now(self) -> int:
        """Give the instant."""
        ...

    def find(self, identity: CollectionId, key: Key) -> Object | None:
        """Give one object, or None."""
        ...

    def objects(self, identity: CollectionId, namespace: str = "") -> Iterator[tuple[Key, Object]]:
        """Give all objects of a kind, in order."""
        ...


class Admission:
    """Judges requests by what else there is in the cluster."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def admit_namespace(self, kind: ServedKind, key: Key) -> None:
        """Refuse a new object whose namespace is not there, or will not be for long."""
        if not kind.resource.namespaced:
            return
        namespace = self._objects.find(NAMESPACES, Key("", key.namespace))
        if namespace is None:
            raise not_found("namespaces", key.namespace)
        if "deletionTimestamp" in namespace["metadata"]:
            cause = Cause(
                "metadata.namespace", f"namespace {key.namespace} is being terminated", "NamespaceTerminating"
            )
            why = f"unable to create new content in namespace {key.namespace} because it is being terminated"
            raise forbidden(kind.resource, key.name, why, (cause,))

    def admit_delete(self, kind: ServedKind, key: Key) -> None:
        """Refuse to delete what a cluster cannot be without."""
        if kind.resource.kind == "Namespace" and key.name in _UNDELETABLE:
            raise forbidden(kind.resource, key.name, "this namespace may not be deleted")

    def completed(self, kind: ServedKind, item: Object) -> Object:
        """Give a new object what the cluster adds to it; may change what it is given, which is well formed."""
        if (kind.resource.group, kind.resource.kind) != ("", "Pod"):
            return item
        for _, limits in self._objects.objects(_LIMIT_RANGES, item["metadata"]["namespace"]):
            _fill_limits(item, limits)
        self._fill_priority(kind, item)
        return item

    def admit_quota(self, kind: ServedKind, item: Object) -> None:
        """Refuse a new object that does not fit into the quotas of its namespace."""
        resource, metadata = kind.resource, item["metadata"]
        if not resource.namespaced:
            return
        requested: quota.Usage | None = None
        for _, each in self._objects.objects(_QUOTAS, metadata["namespace"]):
            hard = (each.get("spec") or {}).get("hard") or {}
            requested = requested if requested is not None else quota.usage(resource, item, self._objects.now())
            if not quota.covers(each, resource, item):
                continue
            name = each["metadata"]["name"]
            if resource.plural == "pods" and (silent := quota.missing(hard, item)):
                raise forbidden(resource, metadata["name"], f"failed quota: {name}: must specify {silent}")
            # What is counted is counted anew each time, so it is counted only where it matters.
            used = self._used(kind, each, metadata["namespace"]) if requested.keys() & hard.keys() else {}
            if over := quota.exceeded(hard, used, requested):
                told = (_listed(over, amounts) for amounts in (requested, used, hard))
                why = "exceeded quota: {}, requested: {}, used: {}, limited: {}".format(name, *told)
                raise forbidden(resource, metadata["name"], why)

    def _used(self, kind: ServedKind, limit: Object, namespace: str) -> quota.Usage:
        resource = kind.resource
        present = self._objects.objects(CollectionId(resource.group, resource.plural), namespace)
        now = self._objects.now()
        return quota.total(
            quota.usage(resource, item, now) for _, item in present if quota.covers(limit, resource, item)
        )

    def _fill_priority(self, kind: ServedKind, pod: Object) -> None:
        spec = pod["spec"]
        name = spec.get("priorityClassName")
        found = self._objects.find(PRIORITY_CLASSES, Key("", name)) if name else self._default_priority()
        if name and found is None:
            raise forbidden(kind.resource, pod["metadata"]["name"], f"no PriorityClass with name {name} was found")
        priority = found.get("value", 0) if found else 0
        if spec.get("priority") not in (None, priority):
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority "
                f"admission controller computed {priority} from the given PriorityClass name"
            )
            raise forbidden(kind.resource, pod["metadata"]["name"], why)
        spec["priority"] = priority
        if found:
            spec["priorityClassName"] = found["metadata"]["name"]
        spec.setdefault("preemptionPolicy", (found or {}).get("preemptionPolicy", "PreemptLowerPriority"))

    def _default_priority(self) -> Object | None:
        """Find the class of pods that name none; of several, the lowest counts."""
        marked = [item for _, item in self._objects.objects(PRIORITY_CLASSES) if item.get("globalDefault")]
        return min(marked, key=lambda item: item.get("value", 0), default=None)


def _fill_limits(pod: Object, limits: Object) -> None:
    for rule in (limits.get("spec") or {}).get("limits") or ():
        if rule.get("type") != "Container":
            continue
        for container in pods.containers(pod["spec"]):
            resources = container.setdefault("resources", {})
            for part, defaults in (("limits", rule.get("default")), ("requests", rule.get("defaultRequest"))):
                if defaults:
                    resources[part] = {**defaults, **(resources.get(part) or {})}


def _listed(names: tuple[str, ...], amounts: quota.Usage | dict[str, str]) -> str:
    return ",".join(f"{name}={amounts.get(name, 0)}" for name in names)
