"""Pods with ordinals: which is made, deleted or replaced next. The decisions of StatefulSets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.cluster.controller import Again
from springtide.cluster.resources import Object
from springtide.simulator.behaviours import pods as state
from springtide.simulator.behaviours.kinds import STATEFUL_SETS
from springtide.simulator.behaviours.owning import pod_from
from springtide.simulator.behaviours.revisions import LABEL, Revision


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about the pods of a StatefulSet."""

    create: tuple[int, ...]
    """Ordinals."""
    delete: tuple[Object, ...]
    because: str
    """Why pods are deleted."""
    status: dict[str, Any]
    again: Again | None


@dataclass(frozen=True, slots=True)
class Shape:
    """What the spec says, with its defaults."""

    start: int
    replicas: int
    ordered: bool
    rolling: bool
    partition: int
    min_ready_seconds: int


def shape_of(item: Object) -> Shape:
    """Read the spec of a StatefulSet."""
    spec = item["spec"]
    strategy = spec.get("updateStrategy") or {}
    return Shape(
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


def decide(item: Object, pods: Sequence[Object], current: str, update: str, now: int) -> Plan:
    """Take the next step: make what is missing, then take away what is too much, then replace what is outdated."""
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
            because = "it has ended, and is made anew"
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
    return Plan(
        tuple(create), tuple(delete), because, _status(item, pods, current, update, now), _again(pods, shape, now)
    )


def _reduced(surplus: list[Object], *, ordered: bool) -> list[Object]:
    """Choose whom to delete of the pods beyond the wanted ordinals: in order one at a time, the highest first."""
    if not ordered:
        return [pod for pod in surplus if not state.is_terminating(pod)]
    return [] if not surplus or state.is_terminating(surplus[0]) else [surplus[0]]


def _outdated(
    by_ordinal: dict[int, Object], wanted: range, first: int, update: str, is_available: Callable[[Object], bool]
) -> list[Object]:
    """Choose the pod to replace: from the highest ordinal down, and none while one above it is not available."""
    for number in reversed([number for number in wanted if number >= first]):
        pod = by_ordinal.get(number)
        if pod is None or state.is_terminating(pod):
            return []
        if (pod["metadata"].get("labels") or {}).get(LABEL) != update:
            return [pod]
        if not is_available(pod):
            return []
    return []


def _again(pods: Sequence[Object], shape: Shape, now: int) -> Again | None:
    later = [at for pod in pods if (at := state.available_at(pod, shape.min_ready_seconds)) is not None and at > now]
    return Again(at=min(later)) if later else None


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


def make_pod(item: Object, ordinal: int, revision: Revision) -> Object:
    """Make the pod of an ordinal; its claims are named, and left to others to be made."""
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
