"""The resources that behaviours live with, and the caches of them that all behaviours share.

Controllers that look after a namespace at a time: what is in it, and whose business a change in it is.

Budgets and quotas are about whatever else there is in their namespace, so that one change concerns all of them. Such
controllers reconcile the namespace as a whole; a thousand changes at once are then one piece of work.

How kinds that are named in a reference are called in the API: for whoever reads or sets the scale of another.

Selectors, as workloads write them over labels and pods over nodes: all requirements must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, cast

from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Cached
from springtide.cluster.kinds import DEFINITIONS as ALL_DEFINITIONS
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import NODES as NODES
from springtide.cluster.resources import PODS as PODS
from springtide.cluster.resources import Key, Object, Resource, Selection

CONTROLLER_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
JOBS = Resource("batch", "v1", "jobs", "Job")
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


def resource_of(context: ControllerContext, reference: Object) -> Resource | None:
    """Find the resource that a reference with `apiVersion` and `kind` means; None where there is no such kind.

    To be asked by those who watch `ALL_DEFINITIONS`.
    """
    found = KindRegistry(context.store(ALL_DEFINITIONS)).find(str(reference.get("apiVersion", "")), reference["kind"])
    return found.resource if found is not None else None


def selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Tell whether a LabelSelector selects these labels; one that is not there selects nothing."""
    if selector is None:
        return False
    wanted, expressions = selector.get("matchLabels"), selector.get("matchExpressions")
    return (not wanted or wanted.items() <= labels.items()) and (not expressions or all_hold(expressions, labels))


def all_hold(requirements: Iterable[Object] | None, values: Mapping[str, str]) -> bool:
    """Tell whether every requirement holds for the values that stand under their keys."""
    return all(_holds(requirement, values.get(requirement["key"])) for requirement in requirements or ())


def _holds(requirement: Object, value: str | None) -> bool:
    operator, listed = requirement["operator"], requirement.get("values") or ()
    if operator == "In":
        return value in listed
    if operator == "NotIn":
        return value not in listed
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    return _compares(operator, value, listed)


def _compares(operator: str, value: str | None, listed: Iterable[str]) -> bool:
    """Compare as numbers, for Gt and Lt; what is no number is neither greater nor smaller."""
    try:
        number, bound = int(value or ""), int(next(iter(listed), ""))
    except ValueError:
        return False
    return number > bound if operator == "Gt" else number < bound if operator == "Lt" else False
