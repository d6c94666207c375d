"""Built-in admission plugins, and the objects that every cluster has.

The plugins do what NamespaceLifecycle, LimitRanger, Priority, TaintNodesByCondition and ResourceQuota do in a
kube-apiserver: the namespace of a new object must exist and not be terminating; pods get the defaults of limit ranges
and the value of their priority class; nodes start with the not-ready taint; objects must fit into limit ranges and
quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from springtide.apiserver import quota
from springtide.apiserver.errors import forbidden, not_found
from springtide.apiserver.kinds import Catalogue, ServedKind
from springtide.apiserver.storage import CollectionId
from springtide.apiserver.strategy import SERVER_MANAGER, WritePart
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Key, Object, key_of
from springtide.cluster.transport import Write

if TYPE_CHECKING:
    from springtide.apiserver.server import ApiServer


NAMESPACES = CollectionId("", "namespaces")
_PODS = CollectionId("", "pods")
_QUOTAS = CollectionId("", "resourcequotas")
_LIMIT_RANGES = CollectionId("", "limitranges")
PRIORITY_CLASSES = CollectionId("scheduling.k8s.io", "priorityclasses")

_UNDELETABLE = ("default", "kube-public", "kube-system")
_SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")
_LIMITED = ("Pod", "PersistentVolumeClaim")
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

QuotaCharges: TypeAlias = tuple[tuple[Key, quota.ResourceUsage], ...]
"""The usage of a new object, by the quota that counts it."""

_WRITE = Write("kube-apiserver", "it is a system object")

_ALWAYS_THERE: dict[CollectionId, tuple[Object, ...]] = {
    NAMESPACES: tuple(
        {"metadata": {"name": name}} for name in ("default", "kube-node-lease", "kube-public", "kube-system")
    ),
    PRIORITY_CLASSES: (
        {"metadata": {"name": "system-cluster-critical"}, "value": 2_000_000_000},
        {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000},
    ),
}


class AdmissionStore(Protocol):
    """The part of the API server that plugins need: stored objects, and updates of quotas."""

    catalogue: Catalogue

    def now(self) -> int:
        """Return the current time."""
        ...

    def find(self, identity: CollectionId, key: Key) -> Object | None:
        """Return one object, or None."""
        ...

    def objects(self, identity: CollectionId, namespace: str = "") -> Iterator[tuple[Key, Object]]:
        """Iterate over the objects of a collection in key order."""
        ...

    def modify(
        self, kind: ServedKind, key: Key, change: Callable[[Object], Any], write: Write, verb: str, *, part: WritePart
    ) -> Object:
        """Update one object."""
        ...


class BuiltinAdmission:
    """Runs the built-in plugins."""

    def __init__(self, objects: AdmissionStore) -> None:
        self._objects = objects

    def admit_namespace(self, kind: ServedKind, key: Key) -> None:
        """Refuse a new object whose namespace does not exist or is terminating."""
        if not kind.resource.namespaced:
            return
        namespace = self._objects.find(NAMESPACES, Key("", key.namespace))
        if namespace is None:
            raise not_found("namespaces", key.namespace)
        if "deletionTimestamp" in namespace["metadata"]:
            cause = StatusCause(
                "metadata.namespace", f"namespace {key.namespace} is being terminated", "NamespaceTerminating"
            )
            why = f"unable to create new content in namespace {key.namespace} because it is being terminated"
            raise forbidden(kind.resource, key.name, why, (cause,))

    def admit_delete(self, kind: ServedKind, key: Key) -> None:
        """Refuse to delete system namespaces and system priority classes."""
        if kind.resource.kind == "Namespace" and key.name in _UNDELETABLE:
            raise forbidden(kind.resource, key.name, "this namespace may not be deleted")
        if kind.resource.kind == "PriorityClass" and key.name in _SYSTEM_PRIORITIES:
            raise forbidden(kind.resource, key.name, "this is a system priority class and cannot be deleted")

    def complete(self, kind: ServedKind, item: Object) -> Object:
        """Return a new object with what the plugins add; may modify the given object, which is valid.

        A different object is returned where the addition could break the rules of the kind: validate it again.
        """
        match kind.resource.group, kind.resource.kind:
            case "", "Node":
                _taint(item)
            case "", "Pod":
                self._fill_priority(kind, item)
                for _, each in self._objects.objects(_LIMIT_RANGES, item["metadata"]["namespace"]):
                    item = quota.with_default_limits(item, each)
        return item

    def admit_change(self, kind: ServedKind, item: Object) -> None:
        """Refuse a second default priority class."""
        if kind.resource.kind == "PriorityClass" and item.get("globalDefault"):
            name, default = item["metadata"]["name"], self._default_priority()
            if default is not None and default["metadata"]["name"] != name:
                why = f"PriorityClass {default['metadata']['name']} is already marked as default."
                raise forbidden(kind.resource, name, f"{why} Only one default can exist")

    def admit_new(self, kind: ServedKind, item: Object) -> QuotaCharges:
        """Refuse a new object that does not fit into the limit ranges and quotas of its namespace.

        Returns the usage to charge to each quota when the object is created.
        """
        self.admit_change(kind, item)
        if not kind.resource.namespaced:
            return ()
        self._admit_limits(kind, item)
        return self._admit_quota(kind, item)

    def charge(self, charges: QuotaCharges, because: str) -> None:
        """Add the usage of an admitted object to the status of its quotas."""
        kind = self._objects.catalogue.of_collection(_QUOTAS)
        if kind is None:
            return
        for key, requested in charges:
            charged = partial(_charged, requested=requested)
            self._objects.modify(
                kind, key, charged, Write(SERVER_MANAGER, because), "update/status", part=WritePart.STATUS
            )

    def _admit_limits(self, kind: ServedKind, item: Object) -> None:
        resource, metadata = kind.resource, item["metadata"]
        if resource.group or resource.kind not in _LIMITED:
            return
        for _, each in self._objects.objects(_LIMIT_RANGES, metadata["namespace"]):
            if why := quota.limit_range_problem(resource.kind, item, each):
                raise forbidden(resource, metadata["name"], why)

    def _admit_quota(self, kind: ServedKind, item: Object) -> QuotaCharges:
        resource, metadata = kind.resource, item["metadata"]
        requested: quota.ResourceUsage | None = None
        charges: QuotaCharges = ()
        for key, each in self._objects.objects(_QUOTAS, metadata["namespace"]):
            hard = (each.get("spec") or {}).get("hard") or {}
            requested = requested if requested is not None else quota.usage(resource, item, self._objects.now())
            if not quota.quota_covers(each, resource, item):
                continue
            name = each["metadata"]["name"]
            if resource.plural == "pods" and (unspecified := quota.unspecified_resources(hard, item)):
                raise forbidden(resource, metadata["name"], f"failed quota: {name}: must specify {unspecified}")
            # Usage is computed from all objects each time, so only where the quota limits what is requested.
            used = self._used(kind, each, metadata["namespace"]) if requested.keys() & hard.keys() else {}
            if over := quota.exceeded_quota(hard, used, requested):
                texts = (_listed(over, amounts) for amounts in (requested, used, hard))
                why = "exceeded quota: {}, requested: {}, used: {}, limited: {}".format(name, *texts)
                raise forbidden(resource, metadata["name"], why)
            charges += ((key, requested),)
        return charges

    def _used(self, kind: ServedKind, limit: Object, namespace: str) -> quota.ResourceUsage:
        resource = kind.resource
        present = self._objects.objects(CollectionId(resource.group, resource.plural), namespace)
        now = self._objects.now()
        return quota.total_usage(
            quota.usage(resource, item, now) for _, item in present if quota.quota_covers(limit, resource, item)
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
        """Return the default class for pods that name none; of several, the one with the lowest value."""
        marked = [item for _, item in self._objects.objects(PRIORITY_CLASSES) if item.get("globalDefault")]
        return min(marked, key=lambda item: item.get("value", 0), default=None)


def _charged(limit: Object, requested: quota.ResourceUsage) -> Object:
    return {**limit, "status": quota.with_charge(limit.get("status") or {}, requested)}


def _taint(node: Object) -> None:
    """Add the not-ready taint, which keeps pods away until the node lifecycle controller removes it."""
    taints = (node.get("spec") or {}).get("taints") or []
    if not any(taint.items() >= _NOT_READY.items() for taint in taints):
        node["spec"] = {**(node.get("spec") or {}), "taints": [*taints, dict(_NOT_READY)]}


def _listed(names: tuple[str, ...], amounts: quota.ResourceUsage | dict[str, str]) -> str:
    return ",".join(f"{name}={amounts.get(name, 0)}" for name in names)


def bootstrap(server: ApiServer) -> None:
    """Create the missing system namespaces and priority classes, as far as their kinds are served."""
    for identity, bodies in _ALWAYS_THERE.items():
        kind = server.catalogue.of_collection(identity)
        if kind is not None:
            for body in bodies:
                if server.find(identity, key_of(body)) is None:
                    server.create(kind.resource, body, _WRITE)
