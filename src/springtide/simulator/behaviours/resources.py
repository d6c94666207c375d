"""Resources of built-in kinds, the caches that behaviours share, and label selectors.

Disruption budgets and quotas depend on all objects of their namespace. Their controllers have one key for a namespace,
so that many changes at once cause one reconcile.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, cast

from springtide.apis.core.nodes import NamespaceView, NodeRecord, NodeTaint, namespace_record
from springtide.apis.core.volumes import (
    CSINodeView,
    StorageClassView,
    VolumeClaimView,
    VolumeView,
    csi_node_record,
    storage_class_record,
    volume_claim_record,
    volume_record,
)
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Cached
from springtide.cluster.kinds import DEFINITIONS as ALL_DEFINITIONS
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import NODES, PODS, Key, Object, Resource, Selection
from springtide.packing import predicates
from springtide.packing.predicates import NOT_READY, UNREACHABLE

CONTROLLER_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
JOBS = Resource("batch", "v1", "jobs", "Job")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)


def controller_of(item: Object) -> Object | None:
    """Return the owner reference with `controller: true`."""
    for reference in item["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return cast(Object, reference)
    return None


def _by_controller(item: Object) -> Iterable[Hashable]:
    """Index objects by kind, namespace and name of their controller, which remain after it is deleted."""
    owner = controller_of(item)
    if owner is not None:
        yield (owner["kind"], item["metadata"].get("namespace", ""), owner["name"])


def _by_lack_of_controller(item: Object) -> Iterable[Hashable]:
    """Index objects without a controller by their namespace."""
    if controller_of(item) is None:
        yield item["metadata"].get("namespace", "")


def _by_node(pod: Object) -> Iterable[Hashable]:
    node = pod["spec"].get("nodeName")
    if node:
        yield node


CONTROLLED = "controlled by"
"""The index of owned objects: (kind, namespace, name) of the controller."""
UNCONTROLLED = "without controller"
"""The index of objects without a controller, which may be adopted: their namespace."""
ON_NODE = "on node"
"""The index of bound pods: the name of their node."""

ALL_PODS = Cached(
    Selection(PODS),
    indexes={CONTROLLED: _by_controller, UNCONTROLLED: _by_lack_of_controller, ON_NODE: _by_node},
)
ALL_NODES = Cached(Selection(NODES))
ALL_CLAIMS = Cached(Selection(CLAIMS, view=VolumeClaimView), record=volume_claim_record)
ALL_CSI_NODES = Cached(Selection(CSI_NODES, view=CSINodeView), record=csi_node_record)
ALL_NAMESPACES = Cached(Selection(NAMESPACES, view=NamespaceView), record=namespace_record)
ALL_STORAGE_CLASSES = Cached(Selection(STORAGE_CLASSES, view=StorageClassView), record=storage_class_record)
ALL_VOLUMES = Cached(Selection(VOLUMES, view=VolumeView), record=volume_record)


def owned(resource: Resource) -> Cached:
    """Return the cache of a resource, indexed by controller."""
    return Cached(Selection(resource), indexes={CONTROLLED: _by_controller, UNCONTROLLED: _by_lack_of_controller})


def to_controller(kind: str) -> Callable[[Key, Any], Iterable[Key]]:
    """Map a change of an object to its controller, if that has this kind."""

    def keys(key: Key, item: Object) -> Iterable[Key]:
        owner = controller_of(item)
        return (Key(key.namespace, owner["name"]),) if owner is not None and owner["kind"] == kind else ()

    return keys


def to_node(key: Key, pod: Object) -> Iterable[Key]:  # noqa: ARG001
    """Map a change of a pod to its node."""
    node = pod["spec"].get("nodeName")
    return (Key("", node),) if node else ()


IN_NAMESPACE = "in namespace"
"""The index of objects by their namespace."""


def _by_namespace(item: Object) -> Iterable[Hashable]:
    yield item["metadata"].get("namespace", "")


def grouped(resource: Resource) -> Cached:
    """Return the cache of a resource, indexed by namespace."""
    return Cached(Selection(resource), indexes={IN_NAMESPACE: _by_namespace})


def to_namespace(key: Key, item: Object) -> Iterable[Key]:  # noqa: ARG001
    """Map a change to the key of its namespace."""
    return (Key(key.namespace, ""),)


def replacing(present: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a merge patch that replaces a map; None for an empty map."""
    gone = {name: None for name in present or {} if name not in wanted}
    return {**gone, **wanted} if wanted else None


def resource_of(context: ControllerContext, reference: Object) -> Resource | None:
    """Find the resource of a reference with `apiVersion` and `kind`; None if the kind is not served.

    The controller must watch `ALL_DEFINITIONS`.
    """
    found = KindRegistry(context.store(ALL_DEFINITIONS)).find(str(reference.get("apiVersion", "")), reference["kind"])
    return found.resource if found is not None else None


def selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector matches the labels; an absent one matches nothing."""
    if selector is None:
        return False
    wanted, expressions = selector.get("matchLabels"), selector.get("matchExpressions")
    return (not wanted or wanted.items() <= labels.items()) and (not expressions or all_hold(expressions, labels))


def all_hold(requirements: Iterable[Object] | None, values: Mapping[str, str]) -> bool:
    """Whether all requirements of a selector hold."""
    return all(
        predicates.holds(requirement["operator"], values.get(requirement["key"]), requirement.get("values") or ())
        for requirement in requirements or ()
    )


def effective_taints(node: NodeRecord) -> tuple[NodeTaint, ...]:
    """Return the taints of a node, including the not-ready taint before a controller has set it."""
    if node.ready or any(taint.key in (NOT_READY, UNREACHABLE) for taint in node.taints):
        return node.taints
    return (*node.taints, NodeTaint(NOT_READY, "NoSchedule"))
