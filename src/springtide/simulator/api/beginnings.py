"""What new objects of some kinds start with, whatever their author wrote."""

from __future__ import annotations

from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.pod_defaults import service_class
from springtide.simulator.api.kinds import ServedKind

SERVER = "kube-apiserver"
"""The manager of what the server writes of its own accord, while it does what somebody asked for."""
NAMESPACE_FINALIZER = "kubernetes"
"""Holds a namespace until its contents are gone."""
DEFINITION_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a CRD until the objects of its kind are gone."""

_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_GIVEN_TO_PODS = ("priority", "preemptionPolicy")
_NO_DISRUPTIONS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def without_status(kind: ServedKind, item: Object) -> Object:
    """Take from a new object the status that its author is not asked for."""
    # A kubelet registers its node with its capacity in one request.
    if "status" in kind.subresources and kind.resource.kind != "Node":
        item.pop("status", None)
    return item


def carried_on(kind: ServedKind, item: Object, old: Object) -> Object:
    """Give a changed object what the cluster added to it when it was new, where its writer leaves that out."""
    if (kind.resource.group, kind.resource.kind) == ("", "Pod") and isinstance(item.get("spec"), dict):
        spec, before = item["spec"], old["spec"]
        for name in _GIVEN_TO_PODS:
            if spec.get(name) is None and name in before:
                spec[name] = before[name]
    return item


def begun(kind: ServedKind, item: Object) -> Object:
    """Give a new object its beginnings; may change what it is given, which is well formed."""
    match kind.resource.group, kind.resource.kind:
        case "", "Pod":
            item["status"] = _pod_status(item)
        case "", "Namespace":
            item["spec"] = _with_finalizer(item.get("spec") or {}, NAMESPACE_FINALIZER)
            item["status"] = {"phase": "Active"}
        case "", ("PersistentVolume" | "PersistentVolumeClaim"):
            item["status"] = {"phase": "Pending"}
        case "policy", "PodDisruptionBudget":
            item["status"] = dict(_NO_DISRUPTIONS)
        case _:
            if kind.strategic and "status" in kind.subresources:
                item.setdefault("status", {})
    return item


def _pod_status(pod: Object) -> Object:
    status: Object = {"phase": "Pending", "qosClass": service_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        gated = _GATED | {"lastProbeTime": None, "lastTransitionTime": pod["metadata"]["creationTimestamp"]}
        status["conditions"] = [gated]
    return status


def _with_finalizer(holder: Object, finalizer: str) -> Object:
    present = holder.get("finalizers") or []
    return holder if finalizer in present else {**holder, "finalizers": [*present, finalizer]}
