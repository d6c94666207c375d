"""The ReplicaSet and ReplicationController controllers: a number of pods of one template."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from springtide.apis.forecast import format_instant
from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.errors import ApiError, Forbidden, Invalid
from springtide.cluster.resources import PODS, Key, Object, Resource
from springtide.simulator.behaviours import pod_status as state
from springtide.simulator.behaviours.ownership import (
    claim,
    create_once,
    delete_pod,
    free_names,
    pod_exists,
    pod_from,
    surplus_pods,
    write_status,
)
from springtide.simulator.behaviours.pod_status import with_conditions
from springtide.simulator.behaviours.resources import (
    ALL_PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    owned,
    selects,
    to_controller,
)


@dataclass(frozen=True, slots=True)
class ReplicaSetPlan:
    """The number of pods to create, those to delete, and the status."""

    missing: int
    surplus: tuple[Object, ...]
    status: dict[str, Any]
    again: Result | None


def decide(item: Object, pods: Sequence[Object], now: int) -> ReplicaSetPlan:
    """Compare the active pods with the wanted number."""
    spec = item["spec"]
    wanted, grace = int(spec.get("replicas", 1)), int(spec.get("minReadySeconds") or 0)
    active = [pod for pod in pods if state.is_active(pod)]
    going = sum(state.is_terminating(pod) and not state.is_finished(pod) for pod in pods)
    available = [at for pod in active if (at := state.available_at(pod, grace)) is not None]
    later = [at for at in available if at > now]
    labels = (spec.get("template") or {}).get("metadata", {}).get("labels") or {}
    everything = {"matchLabels": labels}
    leaving = "deletionTimestamp" in item["metadata"]
    return ReplicaSetPlan(
        missing=0 if leaving else max(0, wanted - len(active)),
        surplus=() if leaving else tuple(surplus_pods(active, wanted, now)),
        status={
            "replicas": len(active),
            "fullyLabeledReplicas": sum(selects(everything, pod["metadata"].get("labels") or {}) for pod in active)
            or None,
            "readyReplicas": sum(state.is_ready(pod) for pod in active) or None,
            "availableReplicas": len(available) - len(later) or None,
            "terminatingReplicas": going or None,
            "observedGeneration": item["metadata"].get("generation"),
        },
        again=Result(requeue_at=min(later)) if later else None,
    )


def failure_conditions(item: Object, failure: ApiError | None, now: int) -> list[Object] | None:
    """Return the conditions with ReplicaFailure set or removed; None for no conditions."""
    present = (item.get("status") or {}).get("conditions") or []
    if failure is None:
        return [entry for entry in present if entry["type"] != "ReplicaFailure"] or None
    told = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": failure.message}
    return with_conditions(present, [told], format_instant(now))


class _Replicas(Controller):
    """Keeps a number of pods; the two kinds differ in the form of their selector."""

    resource: ClassVar[Resource]
    workers = 4

    @abstractmethod
    def selector(self, item: Object) -> Object:
        """Return the selector as a LabelSelector."""

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Create or delete pods, and write the status."""
        item = self.context.store(self.watches[0].cached).get(key)
        if item is None:
            return None
        pods = await claim(self.context, self.resource, item, of=ALL_PODS, selector=self.selector(item))
        plan = decide(item, pods, now)
        failure = await self._act(item, plan)
        status = {**plan.status, "conditions": failure_conditions(item, failure, now)}
        made, ready = plan.status.get("replicas") or 0, plan.status.get("readyReplicas") or 0
        because = f"{made} of {item['spec'].get('replicas', 1)} pods exist, {ready} are ready"
        await write_status(self.context, self.resource, item, status, because=because)
        if failure is not None:
            raise failure
        return plan.again

    async def _act(self, item: Object, plan: ReplicaSetPlan) -> ApiError | None:
        """Execute a plan; return the error if a pod could not be created."""
        namespace, wanted = item["metadata"]["namespace"], item["spec"].get("replicas", 1)
        because = f"{self.resource.kind} {item['metadata']['name']} has {plan.status['replicas']} of {wanted} pods"
        names = free_names(item, lambda name: pod_exists(self.context, namespace, name))
        for name in islice(names, plan.missing):
            pod = pod_from(item["spec"]["template"], item, self.resource, name)
            try:
                await create_once(self.context, PODS, pod, because=because)
            except (Forbidden, Invalid) as failure:
                return failure
        for pod in plan.surplus:
            await delete_pod(self.context, pod, because=because)
        return None


def _permissions(resource: Resource) -> tuple[Permission, ...]:
    return (
        Permission(resource, ("get", "list", "watch")),
        Permission(resource, ("patch",), "status"),
        Permission(PODS, ("get", "list", "watch", "create", "patch", "delete")),
    )


class ReplicaSets(_Replicas):
    """The ReplicaSet controller."""

    name = "replicaset"
    resource = REPLICA_SETS
    watches = (Watch(owned(REPLICA_SETS)), Watch(ALL_PODS, to_controller("ReplicaSet")))
    permissions = _permissions(REPLICA_SETS)

    def selector(self, item: Object) -> Object:
        """Return the selector."""
        return dict(item["spec"]["selector"])


class ReplicationControllers(_Replicas):
    """The ReplicationController controller."""

    name = "replicationcontroller"
    resource = REPLICATION_CONTROLLERS
    watches = (Watch(owned(REPLICATION_CONTROLLERS)), Watch(ALL_PODS, to_controller("ReplicationController")))
    permissions = _permissions(REPLICATION_CONTROLLERS)

    def selector(self, item: Object) -> Object:
        """Convert the label map; the default is the labels of the template."""
        labels = item["spec"].get("selector") or (item["spec"]["template"].get("metadata") or {}).get("labels")
        return {"matchLabels": labels or {}}
