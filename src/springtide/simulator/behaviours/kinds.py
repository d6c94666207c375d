"""The resources that behaviours live with, and the caches of them that all behaviours share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, cast

from springtide.cluster.controller import Cached
from springtide.cluster.resources import Key, Object, Resource, Selection

CONTROLLER_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
JOBS = Resource("batch", "v1", "jobs", "Job")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")


def controller_of(item: Object) -> Object | None:
    """Give the owner reference of the one controller that looks after an object."""
    for reference in item["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return cast(Object, reference)
    return None


def _by_controller(item: Object) -> Iterable[Hashable]:
    """Find an object by kind, namespace and name of its controller: a name outlives the object that bore it."""
    owner = controller_of(item)
    if owner is not None:
        yield (owner["kind"], item["metadata"].get("namespace", ""), owner["name"])


def _by_lack_of_controller(item: Object) -> Iterable[Hashable]:
    """Find objects that anybody may adopt by their namespace."""
    if controller_of(item) is None:
        yield item["metadata"].get("namespace", "")


def _by_node(pod: Object) -> Iterable[Hashable]:
    node = pod["spec"].get("nodeName")
    if node:
        yield node


CONTROLLED = "controlled by"
"""The index of owned objects: (kind, namespace, name) of the controller."""
UNCONTROLLED = "controlled by nobody"
"""The index of objects that may be adopted: their namespace."""
ON_NODE = "on node"
"""The index of pods that are bound: the name of their node."""

ALL_PODS = Cached(
    Selection(PODS),
    indexes={CONTROLLED: _by_controller, UNCONTROLLED: _by_lack_of_controller, ON_NODE: _by_node},
)
ALL_NODES = Cached(Selection(NODES))


def owned(resource: Resource) -> Cached:
    """Give the cache of a resource whose objects are found by their controller, or by the lack of one."""
    return Cached(Selection(resource), indexes={CONTROLLED: _by_controller, UNCONTROLLED: _by_lack_of_controller})


def to_controller(kind: str) -> Callable[[Key, Any], Iterable[Key]]:
    """Map a change of an owned object to its controller, if that is of this kind."""

    def keys(key: Key, item: Object) -> Iterable[Key]:
        owner = controller_of(item)
        return (Key(key.namespace, owner["name"]),) if owner is not None and owner["kind"] == kind else ()

    return keys


def to_node(key: Key, pod: Object) -> Iterable[Key]:  # noqa: ARG001
    """Map a change of a pod to the node that it is bound to."""
    node = pod["spec"].get("nodeName")
    return (Key("", node),) if node else ()
