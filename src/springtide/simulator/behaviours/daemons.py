"""Which nodes have a daemon and which should: the decisions of DaemonSets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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


class Standing(NamedTuple):
    """How a node stands to a DaemonSet."""

    should: bool
    """It should have a daemon."""
    may: bool
    """It may keep the one that it has."""


def standings(item: Object, nodes: Iterable[Object]) -> dict[str, Standing]:
    """Tell how each node, by its name, stands to a DaemonSet."""
    spec = spec_of(item)
    return {node["metadata"]["name"]: _standing(spec, node) for node in nodes}


def _standing(spec: Object, node: Object) -> Standing:
    if not chooses(spec, node):
        return Standing(should=False, may=False)
    tolerations, taints = spec["tolerations"], effective_taints(node)
    stays = not untolerated(tolerations, taints, ("NoExecute",))
    return Standing(should=stays and not untolerated(tolerations, taints, ("NoSchedule",)), may=stays)


def decide(item: Object, nodes: Mapping[str, Standing], pods: Iterable[Object], now: int) -> Plan:
    """Compare the pods of all nodes with the one that each should have, or the two of a node that changes over."""
    if state.is_terminating(item):
        return Plan()
    there, plan, surges = by_node(pods), Plan(), most_surge(item, nodes) > 0
    for name, (should, may) in nodes.items():
        present = there.pop(name, [])
        alive = [pod for pod in present if not state.is_terminating(pod)]
        ended = [pod for pod in alive if state.is_finished(pod)]
        if not may:
            plan.delete += [(pod, f"node {name} does not take it any more") for pod in alive]
        elif ended:
            plan.delete += [(pod, "it has ended, and is made anew") for pod in ended]
        elif should and not (alive if surges else present):
            plan.create.append(name)
        else:
            surplus = _surplus(item, alive, now) if surges else alive[1:]
            plan.delete += [(pod, f"node {name} has one already") for pod in surplus]
    for name, lost in there.items():
        # Those that are bound to a node that is gone are garbage, and somebody else's business.
        unbound = [pod for pod in lost if not pod["spec"].get("nodeName") and not state.is_terminating(pod)]
        plan.delete += [(pod, f"node {name} does not exist any more") for pod in unbound if name]
    return plan


def by_node(pods: Iterable[Object]) -> dict[str, list[Object]]:
    """Group pods by the node that they are for: on each, those that are bound come first, then the oldest."""
    grouped: dict[str, list[Object]] = {}
    for pod in sorted(pods, key=lambda pod: (not pod["spec"].get("nodeName"), state.created_at(pod), key_of(pod))):
        grouped.setdefault(node_of(pod) or "", []).append(pod)
    return grouped


def most_surge(item: Object, nodes: Mapping[str, Standing]) -> int:
    """Tell how many nodes may have a second pod while they change over to a new template."""
    rolling = (item["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return share(rolling.get("maxSurge", 0), sum(node.should for node in nodes.values()), up=True)


def _surplus(item: Object, alive: Sequence[Object], now: int) -> list[Object]:
    """List the pods that a node need not keep: it has one that is up to date, and an old one until that works."""
    new, old = current_and_old(item, alive)
    changed_over = new and old and (is_available(item, new[0], now) or not state.is_ready(old[0]))
    return new[1:] + (old if changed_over else old[1:])


def current_and_old(item: Object, pods: Iterable[Object]) -> tuple[list[Object], list[Object]]:
    """Part the pods that are up to date from those of older templates."""
    mark = template_hash(item["spec"]["template"])
    parts: tuple[list[Object], list[Object]] = ([], [])
    for pod in pods:
        parts[(pod["metadata"].get("labels") or {}).get(LABEL) != mark].append(pod)
    return parts


def available_at(item: Object, pod: Object) -> int | None:
    """Give the instant at which a pod of a DaemonSet counts as available."""
    return state.available_at(pod, int(item["spec"].get("minReadySeconds") or 0))


def is_available(item: Object, pod: Object, now: int) -> bool:
    """Tell whether a pod of a DaemonSet works, and has for long enough."""
    at = available_at(item, pod)
    return not state.is_terminating(pod) and at is not None and at <= now


def status_of(item: Object, nodes: Mapping[str, Standing], pods: Iterable[Object], now: int) -> dict[str, Any]:
    """Count nodes: those that should have a pod, those that have one, and those that have one in vain."""
    first = {name: there[0] for name, there in by_node(pod for pod in pods if state.is_active(pod)).items()}
    placed = [first[name] for name, node in nodes.items() if node.should and name in first]
    available = sum(is_available(item, pod, now) for pod in placed)
    wanted = sum(node.should for node in nodes.values())
    up_to_date, _ = current_and_old(item, placed)
    return {
        "observedGeneration": item["metadata"].get("generation"),
        "desiredNumberScheduled": wanted,
        "currentNumberScheduled": len(placed),
        "numberMisscheduled": sum(not node.should and name in first for name, node in nodes.items()),
        "numberReady": sum(state.is_ready(pod) for pod in placed),
        "updatedNumberScheduled": len(up_to_date) or None,
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
