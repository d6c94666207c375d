"""What the cluster as a whole has to say about a new object, beyond the rules of its kind.

Its namespace must be there and not on its way out; a pod gets the defaults of limit ranges and the number of its
priority class; a node is not ready before somebody says so; and what an object asks for must fit into the limit ranges
and the quotas of its namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol, TypeAlias

from springtide.cluster.errors import Cause
from springtide.cluster.port import Write
from springtide.cluster.resources import Key, Object
from springtide.simulator.api import limits, quota
from springtide.simulator.api.answers import forbidden, not_found
from springtide.simulator.api.beginnings import SERVER
from springtide.simulator.api.catalogue import Catalogue
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.lifecycle import Part
from springtide.simulator.api.storage import CollectionId

NAMESPACES = CollectionId("", "namespaces")
_PODS = CollectionId("", "pods")
_QUOTAS = CollectionId("", "resourcequotas")
_LIMIT_RANGES = CollectionId("", "limitranges")
PRIORITY_CLASSES = CollectionId("scheduling.k8s.io", "priorityclasses")

_UNDELETABLE = ("default", "kube-public", "kube-system")
_SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")
_LIMITED = ("Pod", "PersistentVolumeClaim")
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


Charges: TypeAlias = tuple[tuple[Key, quota.Usage], ...]
"""What a new object uses, by the quota that it is charged to."""


class Objects(Protocol):
    """The stored objects, as admission reads them, and changes those that count others."""

    catalogue: Catalogue

    def now(self) -> int:
        """Give the instant."""
        ...

    def find(self, identity: CollectionId, key: Key) -> Object | None:
        """Give one object, or None."""
        ...

    def objects(self, identity: CollectionId, namespace: str = "") -> Iterator[tuple[Key, Object]]:
        """Give all objects of a kind, in order."""
        ...

    def modify(
        self, kind: ServedKind, key: Key, change: Callable[[Object], Any], write: Write, verb: str, *, part: Part
    ) -> Object:
        """Change one object."""
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
        if kind.resource.kind == "PriorityClass" and key.name in _SYSTEM_PRIORITIES:
            raise forbidden(kind.resource, key.name, "this is a system priority class and cannot be deleted")

    def completed(self, kind: ServedKind, item: Object) -> Object:
        """Give a new object what the cluster adds to it; may change what it is given, which is well formed.

        Another object than the one that was given has got something that could break the rules of its kind.
        """
        match kind.resource.group, kind.resource.kind:
            case "", "Node":
                _taint(item)
            case "", "Pod":
                self._fill_priority(kind, item)
                for _, each in self._objects.objects(_LIMIT_RANGES, item["metadata"]["namespace"]):
                    item = limits.filled(item, each)
        return item

    def admit_change(self, kind: ServedKind, item: Object) -> None:
        """Refuse what another object has already."""
        if kind.resource.kind == "PriorityClass" and item.get("globalDefault"):
            name, default = item["metadata"]["name"], self._default_priority()
            if default is not None and default["metadata"]["name"] != name:
                why = f"PriorityClass {default['metadata']['name']} is already marked as default."
                raise forbidden(kind.resource, name, f"{why} Only one default can exist")

    def admit_new(self, kind: ServedKind, item: Object) -> Charges:
        """Refuse a new object that does not fit into the limit ranges and quotas of its namespace.

        Tell what is to be charged to which quota when it is made.
        """
        self.admit_change(kind, item)
        if not kind.resource.namespaced:
            return ()
        self._admit_limits(kind, item)
        return self._admit_quota(kind, item)

    def charge(self, charges: Charges, because: str) -> None:
        """Count what is admitted in the quotas that cover it."""
        kind = self._objects.catalogue.of_collection(_QUOTAS)
        if kind is None:
            return
        for key, requested in charges:
            charged = partial(_charged, requested=requested)
            self._objects.modify(kind, key, charged, Write(SERVER, because), "update/status", part=Part.STATUS)

    def _admit_limits(self, kind: ServedKind, item: Object) -> None:
        resource, metadata = kind.resource, item["metadata"]
        if resource.group or resource.kind not in _LIMITED:
            return
        for _, each in self._objects.objects(_LIMIT_RANGES, metadata["namespace"]):
            if why := limits.exceeded(resource.kind, item, each):
                raise forbidden(resource, metadata["name"], why)

    def _admit_quota(self, kind: ServedKind, item: Object) -> Charges:
        resource, metadata = kind.resource, item["metadata"]
        requested: quota.Usage | None = None
        charges: Charges = ()
        for key, each in self._objects.objects(_QUOTAS, metadata["namespace"]):
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
            charges += ((key, requested),)
        return charges

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


def _charged(limit: Object, requested: quota.Usage) -> Object:
    return {**limit, "status": quota.charged(limit.get("status") or {}, requested)}


def _taint(node: Object) -> None:
    """Keep pods away from a node until it is known to be ready."""
    taints = (node.get("spec") or {}).get("taints") or []
    if not any(taint.items() >= _NOT_READY.items() for taint in taints):
        node["spec"] = {**(node.get("spec") or {}), "taints": [*taints, dict(_NOT_READY)]}


def _listed(names: tuple[str, ...], amounts: quota.Usage | dict[str, str]) -> str:
    return ",".join(f"{name}={amounts.get(name, 0)}" for name in names)
