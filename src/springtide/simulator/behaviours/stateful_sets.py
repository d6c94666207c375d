"""The StatefulSet controller: pods with ordinals, created, deleted and replaced in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.resources import PODS, Key, Object
from springtide.simulator.behaviours import ownership as revisions
from springtide.simulator.behaviours import pod_status as state
from springtide.simulator.behaviours.ownership import (
    LABEL,
    TemplateRevision,
    children_of,
    claim,
    create_once,
    delete_pod,
    pod_from,
    write_status,
)
from springtide.simulator.behaviours.resources import (
    ALL_PODS,
    CONTROLLER_REVISIONS,
    STATEFUL_SETS,
    owned,
    to_controller,
)


@dataclass(frozen=True, slots=True)
class StatefulSetPlan:
    """The pods to create and delete, and the status."""

    create: tuple[int, ...]
    """Ordinals."""
    delete: tuple[Object, ...]
    because: str
    """Why pods are deleted."""
    status: dict[str, Any]
    again: Result | None


@dataclass(frozen=True, slots=True)
class StatefulSetShape:
    """The spec with defaults."""

    start: int
    replicas: int
    ordered: bool
    rolling: bool
    partition: int
    min_ready_seconds: int


def shape_of(item: Object) -> StatefulSetShape:
    """Read the spec of a StatefulSet."""
    spec = item["spec"]
    strategy = spec.get("updateStrategy") or {}
    return StatefulSetShape(
        start=int((spec.get("ordinals") or {}).get("start") or 0),
        replicas=int(spec.get("replicas", 1)),
        ordered=spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady",
        rolling=strategy.get("type", "RollingUpdate") == "RollingUpdate",
        partition=int((strategy.get("rollingUpdate") or {}).get("partition") or 0),
        min_ready_seconds=int(spec.get("minReadySeconds") or 0),
    )


def ordinal_of(item: Object, pod: Object) -> int | None:
    """Read the ordinal from the name of a pod."""
    prefix, _, number = pod["metadata"]["name"].rpartition("-")
    return int(number) if prefix == item["metadata"]["name"] and number.isdecimal() else None


def decide(item: Object, pods: Sequence[Object], current: str, update: str, now: int) -> StatefulSetPlan:
    """Return the next step: create missing pods, then delete surplus ones, then replace outdated ones."""
    shape = shape_of(item)
    by_ordinal = {number: pod for pod in pods if (number := ordinal_of(item, pod)) is not None}
    wanted = range(shape.start, shape.start + shape.replicas)
    surplus = [pod for number, pod in sorted(by_ordinal.items(), reverse=True) if number not in wanted]

    def is_available(pod: Object) -> bool:
        at = state.available_at(pod, shape.min_ready_seconds)
        return not state.is_terminating(pod) and at is not None and at <= now

    create: list[int] = []
    delete: list[Object] = []
    because, settled = "", True
    for number in wanted:
        pod = by_ordinal.get(number)
        if pod is None:
            create.append(number)
        elif state.is_finished(pod) and not state.is_terminating(pod):
            delete.append(pod)
            because = "it has ended and is created again"
        settled = pod is not None and is_available(pod)
        if shape.ordered and not settled:
            break
    if not create and not delete and (settled or not shape.ordered):
        delete, because = _reduced(surplus, ordered=shape.ordered), f"{shape.replicas} replicas are wanted"
        if not surplus and shape.rolling:
            outdated = _outdated(by_ordinal, wanted, shape.start + shape.partition, update, is_available)
            delete, because = outdated, f"its template is not the one of revision {update}"
    if state.is_terminating(item):
        create, delete = [], []
    return StatefulSetPlan(
        tuple(create), tuple(delete), because, _status(item, pods, current, update, now), _retry_at(pods, shape, now)
    )


def _reduced(surplus: list[Object], *, ordered: bool) -> list[Object]:
    """Return the surplus pods to delete: the highest ordinal first, one at a time if ordered."""
    if not ordered:
        return [pod for pod in surplus if not state.is_terminating(pod)]
    return [] if not surplus or state.is_terminating(surplus[0]) else [surplus[0]]


def _outdated(
    by_ordinal: dict[int, Object], wanted: range, first: int, update: str, is_available: Callable[[Object], bool]
) -> list[Object]:
    """Return the pod to replace: from the highest ordinal down, waiting for those above to become available."""
    for number in reversed([number for number in wanted if number >= first]):
        pod = by_ordinal.get(number)
        if pod is None or state.is_terminating(pod):
            return []
        if (pod["metadata"].get("labels") or {}).get(LABEL) != update:
            return [pod]
        if not is_available(pod):
            return []
    return []


def _retry_at(pods: Sequence[Object], shape: StatefulSetShape, now: int) -> Result | None:
    later = [at for pod in pods if (at := state.available_at(pod, shape.min_ready_seconds)) is not None and at > now]
    return Result(requeue_at=min(later)) if later else None


def _status(item: Object, pods: Sequence[Object], current: str, update: str, now: int) -> dict[str, Any]:
    shape = shape_of(item)
    alive = [pod for pod in pods if not state.is_terminating(pod)]
    ready = [pod for pod in pods if state.phase(pod) == "Running" and state.is_ready(pod)]
    labels = [(pod["metadata"].get("labels") or {}).get(LABEL) for pod in alive]
    updated = labels.count(update)
    if shape.rolling and updated == shape.replicas == len(ready):
        current = update
    return {
        "observedGeneration": item["metadata"].get("generation"),
        "replicas": len(pods),
        "readyReplicas": len(ready) or None,
        "availableReplicas": sum((state.available_at(pod, shape.min_ready_seconds) or now) <= now for pod in ready),
        "currentReplicas": labels.count(current) or None,
        "updatedReplicas": updated or None,
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": 0,
    }


def make_pod(item: Object, ordinal: int, revision: TemplateRevision) -> Object:
    """Create the pod body of an ordinal; its volume claims are referenced, not created."""
    name = f"{item['metadata']['name']}-{ordinal}"
    pod = pod_from(revision.template, item, STATEFUL_SETS, name)
    pod["metadata"]["labels"] |= {
        LABEL: revision.name,
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
    }
    claims = [claim["metadata"]["name"] for claim in item["spec"].get("volumeClaimTemplates") or ()]
    others = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in claims]
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}} for claim in claims]
    pod["spec"] = {**pod["spec"], "hostname": name, "subdomain": item["spec"].get("serviceName") or ""}
    if claims:
        pod["spec"]["volumes"] = [*volumes, *others]
    return pod


class StatefulSets(Controller):
    """The StatefulSet controller."""

    name = "statefulset"
    watches = (
        Watch(owned(STATEFUL_SETS)),
        Watch(ALL_PODS, to_controller("StatefulSet")),
        Watch(owned(CONTROLLER_REVISIONS), to_controller("StatefulSet")),
    )
    permissions = (
        Permission(STATEFUL_SETS, ("get", "list", "watch")),
        Permission(STATEFUL_SETS, ("patch",), "status"),
        Permission(PODS, ("get", "list", "watch", "create", "patch", "delete")),
        Permission(CONTROLLER_REVISIONS, ("get", "list", "watch", "create", "delete")),
    )
    workers = 4

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Take one step, and write the status."""
        item = self.context.store(self.watches[0].cached).get(key)
        if item is None:
            return None
        update = revisions.newest(item)
        current = await self._current(item, key, update)
        pods = await claim(self.context, STATEFUL_SETS, item, of=ALL_PODS, selector=item["spec"]["selector"])
        plan = decide(item, pods, current.name, update.name, now)
        shape = shape_of(item)
        for ordinal in plan.create:
            held_back = shape.rolling and ordinal - shape.start < shape.partition
            pod = make_pod(item, ordinal, current if held_back else update)
            await create_once(
                self.context, PODS, pod, because=f"StatefulSet {key.name} wants {shape.replicas} replicas"
            )
        for pod in plan.delete:
            await delete_pod(self.context, pod, because=plan.because)
        made, ready = plan.status.get("replicas") or 0, plan.status.get("readyReplicas") or 0
        because = f"{made} of {shape.replicas} pods exist, {ready} are ready"
        await write_status(self.context, STATEFUL_SETS, item, plan.status, because=because)
        return plan.again

    async def _current(self, item: Object, key: Key, update: TemplateRevision) -> TemplateRevision:
        """Store the current template, delete old revisions, and return the revision that a rollout starts from."""
        existing = [
            one
            for one in children_of(self.context, owned(CONTROLLER_REVISIONS), STATEFUL_SETS.kind, key)
            if one["metadata"]["ownerReferences"][0]["uid"] == item["metadata"]["uid"]
        ]
        by_name = {one["metadata"]["name"]: one for one in existing}
        if update.name not in by_name and not state.is_terminating(item):
            body = revisions.as_object(item, STATEFUL_SETS, update, existing)
            await create_once(self.context, CONTROLLER_REVISIONS, body, because="the template is new")
        current = (item.get("status") or {}).get("currentRevision") or update.name
        limit = int(item["spec"].get("revisionHistoryLimit", 10))
        for one in revisions.expired_revisions(existing, (current, update.name), limit):
            await self.context.client.delete(CONTROLLER_REVISIONS, of=one, because=f"{limit} old revisions are kept")
        return revisions.revision_of(by_name[current]) if current in by_name else update
