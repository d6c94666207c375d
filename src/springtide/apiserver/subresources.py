"""The subresources: status, scale, finalize, binding and eviction.

An eviction is decided here and nowhere else: `disruptionsAllowed` is decremented, and the pod recorded in
`disruptedPods`, in the same step that deletes it, so that two evictions never use the same allowance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from springtide.apiserver import pods
from springtide.apiserver.deletion import check_delete
from springtide.apiserver.errors import conflict, forbidden, invalid, no_such_resource, not_found
from springtide.apiserver.field_errors import required, unsupported
from springtide.apiserver.kinds import ANYTHING, ServedKind, StructureNode
from springtide.apiserver.scale import scale_of, scale_view, with_scale
from springtide.apiserver.selectors import selector_of
from springtide.apiserver.storage import CollectionId
from springtide.apiserver.strategy import SERVER_MANAGER, WritePart
from springtide.apiserver.values import object_field, timestamp, typed_body, typed_field, with_metadata
from springtide.cluster.errors import BadRequest, StatusCause, TooManyRequests
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Precondition, Propagation, Write

if TYPE_CHECKING:
    from springtide.apiserver.server import ApiServer


_BINDING = Resource("", "v1", "bindings", "Binding")

SEVERAL_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
BUDGET_EXHAUSTED = "Cannot evict pod as it would violate the pod's disruption budget."

_PHASES_WITHOUT_BUDGET = ("Pending", "Succeeded", "Failed")
_MAX_DISRUPTED_PODS = 2000
_WAIT_FOR_SYNC = 10.0

_BUDGETS = CollectionId("policy", "poddisruptionbudgets")
_SUCCESS: Object = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success"}
_TYPES: dict[str, Object] = {
    "binding": {"apiVersion": "v1", "kind": "Binding"},
    "eviction": {"apiVersion": "policy/v1", "kind": "Eviction"},
}
_EVICTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def bind_pod(pod: Object, binding: Any, now: str) -> Object:
    """Return a pod bound to the node of a binding."""
    name = pod["metadata"]["name"]
    body = typed_body("Binding", binding, name)
    wanted = object_field(body, "metadata")
    for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        present = pod["metadata"][field]
        if wanted.get(field) and wanted[field] != present:
            why = f"Precondition failed: {label} in precondition: {wanted[field]}, {label} in object meta: {present}"
            raise conflict("pods", name, why)
    node = _node(object_field(body, "target"), name)
    if why := _unbindable(pod, name):
        raise conflict("pods/binding", name, why)
    placed = pods.with_condition(
        {**pod, "spec": {**pod["spec"], "nodeName": node}}, {"type": "PodScheduled", "status": "True"}, now
    )
    placed["status"].pop("nominatedNodeName", None)
    annotations = pod["metadata"].get("annotations", {}) | object_field(wanted, "annotations")
    labels = pod["metadata"].get("labels", {}) | object_field(wanted, "labels")
    return with_metadata(placed, annotations=annotations or None, labels=labels or None)


def _node(target: Object, pod: str) -> str:
    kind, name = typed_field(target, "kind", str, ""), typed_field(target, "name", str, "")
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


def skips_budget(pod: Object) -> bool:
    """Return whether a pod is evicted without its budget: it does not run, or is being deleted already."""
    return (pod.get("status") or {}).get("phase") in _PHASES_WITHOUT_BUDGET or "deletionTimestamp" in pod["metadata"]


def budget_of(pod: Object, budgets: list[Object]) -> Object | None:
    """Return the budget that selects a pod, of those in its namespace."""
    labels = pod["metadata"].get("labels")
    found = [each for each in budgets if selector_of((each.get("spec") or {}).get("selector")).matches(labels)]
    if len(found) > 1:
        # A kube-apiserver answers with 500; but a retry is useless until the budgets change.
        raise BadRequest(SEVERAL_BUDGETS)
    return found[0] if found else None


def skips_allowance(pod: Object, budget: Object) -> bool:
    """Return whether an unhealthy pod is evicted without using the allowance of its budget."""
    if pods.is_ready(pod):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    return desired > 0 and status.get("currentHealthy", 0) >= desired


def with_spent_disruption(budget: Object, pod: Object, now: str) -> Object:
    """Return a budget with one allowed disruption less; refuse where none is left."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", _WAIT_FOR_SYNC)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden("poddisruptionbudget.policy", name, "pdb disruptions allowed is negative")
    disrupted = status.get("disruptedPods") or {}
    if len(disrupted) > _MAX_DISRUPTED_PODS:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("poddisruptionbudget.policy", name, why)
    if not allowed:
        raise _refused(_why_none(name, status))
    left = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod["metadata"]["name"]: now}}
    if allowed == 1:
        left["conditions"] = _exhausted(status.get("conditions") or [], budget["metadata"].get("generation", 0), now)
    return {**budget, "status": left}


def _why_none(name: str, status: Object) -> str:
    held: Object = next(
        (
            each
            for each in status.get("conditions") or ()
            if each.get("type") == "DisruptionAllowed" and each.get("status") == "False" and each.get("message")
        ),
        {},
    )
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if held.get("reason") == "SyncFailed":
        failed = f"because it failed sync: {held['message']}"
        return f"The disruption budget {name} does not allow evicting pods currently {failed}"
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    if held:
        return (
            f"The disruption budget {name} does not allow evicting pods currently ({held['reason']}): {held['message']}"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _exhausted(conditions: list[Object], generation: int, now: str) -> list[Object]:
    """Return the conditions of a budget whose last disruption is used."""
    fresh = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
        "lastTransitionTime": now,
    }
    if not any(each.get("type") == "DisruptionAllowed" for each in conditions):
        return [*conditions, fresh]
    return [
        each if each.get("type") != "DisruptionAllowed" else each if each.get("status") == "False" else fresh
        for each in conditions
    ]


def _refused(why: str, retry_after: float | None = None) -> TooManyRequests:
    return TooManyRequests(
        BUDGET_EXHAUSTED, causes=(StatusCause("", why, "DisruptionBudget"),), retry_after=retry_after
    )


class Subresources:
    """Writes to subresources."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def structure(self, kind: ServedKind, subresource: str) -> StructureNode:
        """Return the structure of what a patch of a subresource applies to."""
        return ANYTHING if subresource == "scale" else kind.structure

    def change(
        self,
        kind: ServedKind,
        key: Key,
        make: Callable[[Object], Any],
        write: Write,
        verb: str,
        subresource: str,
        precondition: Precondition,
    ) -> Object:
        """Update an object through a subresource, or as a whole."""
        modify = self._server.modify
        match subresource:
            case "":
                return modify(kind, key, make, write, verb, precondition=precondition)
            case "status":
                return modify(
                    kind, key, make, write, f"{verb}/status", part=WritePart.STATUS, precondition=precondition
                )
            case "scale":

                def rescaled(old: Object) -> Object:
                    return with_scale(kind, old, make(scale_of(kind, old)))

                view = scale_view(kind)
                return view.of(
                    modify(kind, key, rescaled, write, f"{verb}/scale", precondition=precondition, view=view)
                )
            case "finalize":

                def finalized(old: Object) -> Object:
                    finalizers = typed_field(
                        object_field(typed_body("Namespace", make(old), key.name), "spec"), "finalizers", list, []
                    )
                    return {**old, "spec": {"finalizers": finalizers} if finalizers else {}}

                return modify(
                    kind, key, finalized, write, f"{verb}/finalize", part=WritePart.WHOLE, precondition=precondition
                )
            case _:
                raise no_such_resource()

    def body(self, key: Key, body: Any, subresource: str) -> Object:
        """Return the body of a binding or an eviction with its type, which may be left out."""
        if subresource not in _TYPES:
            raise no_such_resource()
        typed = _TYPES[subresource]
        given = typed_body(typed["kind"], body, key.name)
        object_field(given, "metadata")
        return typed | given

    def create(self, kind: ServedKind, key: Key, body: Any, write: Write, subresource: str) -> Object:
        """Bind or evict a pod."""
        match subresource:
            case "eviction":
                return self._evict(kind, key, body, write)
            case "binding":
                now = timestamp(self._server.now())
                self._server.modify(
                    kind,
                    key,
                    lambda pod: bind_pod(pod, body, now),
                    write,
                    "create/binding",
                    part=WritePart.WHOLE,
                    owned=True,
                )
                return _SUCCESS
            case _:
                raise no_such_resource()

    def _evict(self, kind: ServedKind, key: Key, body: Any, write: Write) -> Object:
        options = object_field(typed_body("Eviction", body, key.name), "deleteOptions")
        policy = typed_field(options, "propagationPolicy", str, "")
        if policy and policy not in list(Propagation):
            raise BadRequest(f"propagationPolicy is {policy!r}, expected one of {', '.join(Propagation)}")
        write = replace(write, dry_run=write.dry_run or bool(options.get("dryRun")))
        pod = self._server.find(CollectionId("", "pods"), key)
        if pod is None:
            raise not_found(kind.resource, key.name)
        wanted = object_field(options, "preconditions")
        precondition = Precondition(
            typed_field(wanted, "resourceVersion", str, ""), typed_field(wanted, "uid", str, "")
        )
        check_delete(pod, precondition, kind.resource)
        grace = (
            None if options.get("gracePeriodSeconds") is None else typed_field(options, "gracePeriodSeconds", int, 0)
        )
        if not skips_budget(pod):
            self._spend(pod, write)
        self._server.modify(
            kind,
            key,
            lambda old: pods.with_condition(old, _EVICTED, timestamp(self._server.now())),
            write,
            "create/eviction",
            part=WritePart.WHOLE,
            owned=True,
        )
        self._server.delete(
            kind.resource,
            key,
            write,
            propagation=Propagation(policy) if policy else None,
            grace_seconds=grace,
        )
        return _SUCCESS

    def _spend(self, pod: Object, write: Write) -> None:
        """Use one allowed disruption of the budget of a pod, if a budget selects it and counts it."""
        namespace = pod["metadata"]["namespace"]
        budget = budget_of(pod, [item for _, item in self._server.objects(_BUDGETS, namespace)])
        if budget is None or skips_allowance(pod, budget):
            return
        now = timestamp(self._server.now())
        kind = self._server.catalogue.of_kind(budget["apiVersion"], budget["kind"])
        if kind is None:
            raise no_such_resource()
        key = Key(namespace, budget["metadata"]["name"])
        spending = replace(write, manager=SERVER_MANAGER, because=f"pod {pod['metadata']['name']} is evicted")
        self._server.modify(
            kind,
            key,
            lambda old: with_spent_disruption(old, pod, now),
            spending,
            "update/status",
            part=WritePart.STATUS,
        )
