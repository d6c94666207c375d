"""Bindings: how a scheduler puts a pod on a node."""

from __future__ import annotations

from typing import Any

from springtide.cluster.resources import Object, Resource
from springtide.simulator.api import pods
from springtide.simulator.api.answers import conflict, invalid
from springtide.simulator.api.bodies import body_of, leaf, part
from springtide.simulator.api.builtin.judging import required, unsupported
from springtide.simulator.api.values import with_metadata

_BINDING = Resource("", "v1", "bindings", "Binding")


def bound(pod: Object, binding: Any, now: str) -> Object:
    """Give a pod on the node that a binding names."""
    name = pod["metadata"]["name"]
    body = body_of("Binding", binding, name)
    wanted = part(body, "metadata")
    for field, told in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        present = pod["metadata"][field]
        if wanted.get(field) and wanted[field] != present:
            why = f"Precondition failed: {told} in precondition: {wanted[field]}, {told} in object meta: {present}"
            raise conflict("pods", name, why)
    node = _node(part(body, "target"), name)
    if why := _unbindable(pod, name):
        raise conflict("pods/binding", name, why)
    placed = pods.with_condition(
        {**pod, "spec": {**pod["spec"], "nodeName": node}}, {"type": "PodScheduled", "status": "True"}, now
    )
    placed["status"].pop("nominatedNodeName", None)
    annotations = pod["metadata"].get("annotations", {}) | part(wanted, "annotations")
    labels = pod["metadata"].get("labels", {}) | part(wanted, "labels")
    return with_metadata(placed, annotations=annotations or None, labels=labels or None)


def _node(target: Object, pod: str) -> str:
    kind, name = leaf(target, "kind", str, ""), leaf(target, "name", str, "")
    causes = [unsupported("target.kind", kind, "Node", "<empty>")] if kind not in ("", "Node") else []
    causes += [] if name else [required("target.name")]
    if causes:
        raise invalid(_BINDING, pod, causes)
    return name


def _unbindable(pod: Object, name: str) -> str:
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""
