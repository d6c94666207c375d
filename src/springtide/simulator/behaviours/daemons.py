"""Which nodes have a daemon and which should: the decisions of DaemonSets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from springtide.cluster.resources import Object, key_of
from springtide.simulator.behaviours import pods as state
from springtide.simulator.behaviours.kinds import DAEMON_SETS
from springtide.simulator.behaviours.naming import template_hash
from springtide.simulator.behaviours.owning import pod_from
from springtide.simulator.behaviours.predicates import chooses, effective_taints, untolerated
from springtide.simulator.behaviours.revisions import LABEL
from springtide.simulator.behaviours.shares import share

_ALWAYS_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_ON_THE_HOST = ("node.kubernetes.io/network-unavailable", "NoSchedule")


@dataclass(slots=True)
class Plan:
    """What is to be done about the pods of a DaemonSet."""

    create: list[str] = field(default_factory=list)
    """Names of nodes."""
    delete: list[tuple[Object, str]] = field(default_factory=list)
    """Pods, and why."""


def spec_of(item: Object) -> Object:
    """Give the spec of the pods, with the tolerations that Kubernetes adds: daemons stay where others must go."""
    spec = item["spec"]["template"]["spec"]
    added = [*_ALWAYS_TOLERATED, *([_ON_THE_HOST] if spec.get("hostNetwork") else [])]
    extra = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in added]
    present = spec.get("tolerations") or []
    return {**spec, "tolerations": [*present, *(toleration for toleration in extra if toleration not in present)]}


def node_of(pod: Object) -> str | None:
    """Tell for which node a pod was made, whether it is bound already or not."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for requirement in term.get("matchFields") or ():
            if requirement["key"] == "metadata.name" and requirement.get("values"):
                return str(requirement["values"][0])
    name = pod["spec"].get("nodeName")
    return str(name) if name else None


def runs_on(spec: Object, node: Object) -> tuple[bool, bool]:
    """Tell whether a node should get a daemon, and whether one that is there may stay."""
    if not chooses(spec, node):
        return False, False
    tolerations, taints = spec["tolerations"], effective_taints(node)
    stays = not untolerated(tolerations, taints, ("NoExecute",))
    return stays and not untolerated(tolerations, taints, ("NoSchedule",)), stays


def decide(item: Object, nodes: Sequence[Object], pods: Sequence[Object]) -> Plan:
    """Compare the pods on some nodes with the one that each should have; pods of other nodes are left alone."""
    spec, plan = spec_of(item), Plan()
    by_node: dict[str, list[Object]] = {}
    for pod in pods:
        by_node.setdefault(node_of(pod) or "", []).append(pod)
    for node in nodes:
        name = node["metadata"]["name"]
        present = by_node.get(name, [])
        should, may = runs_on(spec, node)
        alive = [pod for pod in present if not state.is_terminating(pod)]
        ended = [pod for pod in alive if state.is_finished(pod)]
        alive.sort(key=lambda pod: (not pod["spec"].get("nodeName"), state.created_at(pod), key_of(pod)))
        if not may:
            plan.delete += [(pod, f"node {name} does not take it any more") for pod in alive]
        elif ended:
            plan.delete += [(pod, "it has ended, and is made anew") for pod in ended]
        elif should and not present:
            plan.create.append(name)
        else:
            plan.delete += [(pod, f"node {name} has one already") for pod in alive[1:]]
    if state.is_terminating(item):
        return Plan()
    return plan


def outdated(item: Object, nodes: Sequence[Object], pods: Sequence[Object], now: int) -> list[Object]:
    """Choose the pods of an old template to replace now: those of no use at once, others as many as may be missing."""
    strategy = item["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate" or state.is_terminating(item):
        return []
    spec, mark = spec_of(item), template_hash(item["spec"]["template"])
    wanted = [node["metadata"]["name"] for node in nodes if runs_on(spec, node)[0]]
    available = {node_of(pod) for pod in pods if _is_available(item, pod, now)}
    room = share((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1), len(wanted), up=True)
    room -= sum(name not in available for name in wanted)
    old = [pod for pod in pods if state.is_active(pod) and (pod["metadata"].get("labels") or {}).get(LABEL) != mark]
    useless = [pod for pod in old if not _is_available(item, pod, now)]
    working = [pod for pod in old if _is_available(item, pod, now)]
    return useless + working[: max(0, room)]


def available_at(item: Object, pod: Object) -> int | None:
    """Give the instant at which a pod of a DaemonSet counts as available."""
    return state.available_at(pod, int(item["spec"].get("minReadySeconds") or 0))


def _is_available(item: Object, pod: Object, now: int) -> bool:
    at = available_at(item, pod)
    return not state.is_terminating(pod) and at is not None and at <= now


def status_of(item: Object, nodes: Sequence[Object], pods: Sequence[Object], now: int) -> dict[str, Any]:
    """Count nodes: those that should have a pod, those that have one, and those that have one in vain."""
    spec, mark = spec_of(item), template_hash(item["spec"]["template"])
    by_node = {node_of(pod): pod for pod in pods if state.is_active(pod)}
    should = {node["metadata"]["name"]: runs_on(spec, node)[0] for node in nodes}
    placed = [by_node[name] for name, wanted in should.items() if wanted and name in by_node]
    available = sum(_is_available(item, pod, now) for pod in placed)
    wanted = sum(should.values())
    return {
        "observedGeneration": item["metadata"].get("generation"),
        "desiredNumberScheduled": wanted,
        "currentNumberScheduled": len(placed),
        "numberMisscheduled": sum(not wanted and name in by_node for name, wanted in should.items()),
        "numberReady": sum(state.is_ready(pod) for pod in placed),
        "updatedNumberScheduled": sum((pod["metadata"].get("labels") or {}).get(LABEL) == mark for pod in placed)
        or None,
        "numberAvailable": available or None,
        "numberUnavailable": wanted - available or None,
    }


def make_pod(item: Object, node: str, name: str) -> Object:
    """Make the pod for a node; the scheduler puts it there, and nowhere else."""
    pod = pod_from(item["spec"]["template"], item, DAEMON_SETS, name)
    pod["metadata"]["labels"][LABEL] = template_hash(item["spec"]["template"])
    spec = spec_of(item)
    affinity = spec.get("affinity") or {}
    required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    here = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = [{**term, "matchFields": here} for term in required.get("nodeSelectorTerms") or [{}]]
    on_node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod["spec"] = {
        **spec,
        "affinity": {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **on_node}},
    }
    return pod
