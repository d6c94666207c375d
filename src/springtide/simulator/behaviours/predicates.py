"""Scheduling predicates and scores: whether a pod fits a node, and how well; with the messages of kube-scheduler.

Pods of one template share a `PodSchedulingClass`, which is parsed and evaluated once. A node that fails several
predicates reports the first in the order of kube-scheduler, but all insufficient resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from springtide.apis.core.nodes import NodeRecord, NodeTaint
from springtide.apis.core.pod_record import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSchedulingClass,
    TaintToleration,
)
from springtide.simulator.behaviours.resources import holds

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
CORDON = NodeTaint(UNSCHEDULABLE, "NoSchedule")
"""The taint of a cordoned node."""

_MOST_SCORE = 100
_SCORED = ("cpu", "memory")

Amounts = Mapping[str, int]
"""Amounts of resources in billionths, the precision of quantities."""

Score = tuple[int, int]
"""The score of a node for a pod; the highest is best."""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """The allocatable resources of a node, and what its pods use."""

    node: NodeRecord
    taints: tuple[NodeTaint, ...]
    """With the not-ready taint, which a controller may not have set yet."""
    allocatable: Amounts
    """Without `pods`, which is a count."""
    most_pods: int
    used: Amounts
    pods: int


def refusals(pod_class: PodSchedulingClass, info: NodeInfo) -> tuple[str, ...]:
    """Return why a pod does not fit a node; empty if it fits."""
    tolerations, node = pod_class.tolerations, info.node
    if node.unschedulable and not tolerates(tolerations, CORDON):
        return ("node(s) were unschedulable",)
    if info.taints and untolerated(tolerations, info.taints, ("NoSchedule", "NoExecute")):
        return ("node(s) had untolerated taint(s)",)
    if not chooses(pod_class, node):
        return ("node(s) didn't match Pod's node affinity/selector",)
    return _shortages(pod_class, info)


def _shortages(pod_class: PodSchedulingClass, info: NodeInfo) -> tuple[str, ...]:
    """Return the resources that are insufficient."""
    short = ["Too many pods"] if info.pods + 1 > info.most_pods else []
    short += [
        f"Insufficient {name}"
        for name, amount in pod_class.requests.items()
        if amount.nano > 0 and amount.nano > info.allocatable.get(name, 0) - info.used.get(name, 0)
    ]
    return tuple(short)


def chooses(pod_class: PodSchedulingClass, node: NodeRecord) -> bool:
    """Whether the node selector and required node affinity of a pod match a node."""
    if any(node.labels.get(key) != value for key, value in pod_class.node_selector.items()):
        return False
    affinity = pod_class.affinity.node_affinity if pod_class.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or any(_term_holds(term, node) for term in required.node_selector_terms or ())


def _term_holds(term: NodeSelectorTerm, node: NodeRecord) -> bool:
    """Whether a node selector term matches; an empty term matches no node."""
    expressions, on_fields = term.match_expressions or (), term.match_fields or ()
    return (
        bool(expressions or on_fields)
        and _all_hold(expressions, node.labels)
        and _all_hold(on_fields, {"metadata.name": node.name})
    )


def _all_hold(requirements: Iterable[NodeSelectorRequirement], values: Mapping[str, str]) -> bool:
    return all(
        holds(requirement.operator, values.get(requirement.key), requirement.values or ())
        for requirement in requirements
    )


def effective_taints(node: NodeRecord) -> tuple[NodeTaint, ...]:
    """Return the taints of a node, including the not-ready taint before a controller has set it."""
    if node.ready or any(taint.key in (NOT_READY, UNREACHABLE) for taint in node.taints):
        return node.taints
    return (*node.taints, NodeTaint(NOT_READY, "NoSchedule"))


def untolerated(
    tolerations: Sequence[TaintToleration], listed: Iterable[NodeTaint], effects: tuple[str, ...]
) -> tuple[NodeTaint, ...]:
    """Return the taints with these effects that no toleration matches."""
    return tuple(taint for taint in listed if taint.effect in effects and not tolerates(tolerations, taint))


def tolerates(tolerations: Iterable[TaintToleration], taint: NodeTaint) -> bool:
    """Whether a toleration matches a taint."""
    return any(is_tolerated_by(toleration, taint) for toleration in tolerations)


def is_tolerated_by(toleration: TaintToleration, taint: NodeTaint) -> bool:
    """Whether a toleration matches a taint; one without a key matches all."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def score(pod_class: PodSchedulingClass, info: NodeInfo) -> Score:
    """Score a node that fits a pod: first by PreferNoSchedule taints, then by free resources."""
    avoided = untolerated(pod_class.tolerations, info.taints, ("PreferNoSchedule",))
    parts = [
        max(0, total - info.used.get(name, 0) - _requested(pod_class, name)) * _MOST_SCORE // total
        for name in _SCORED
        if (total := info.allocatable.get(name))
    ]
    return -len(avoided), sum(parts) // len(parts) if parts else 0


def _requested(pod_class: PodSchedulingClass, name: str) -> int:
    amount = pod_class.requests.get(name)
    return amount.nano if amount is not None else 0


def unschedulable_message(nodes: int, refused: Iterable[tuple[str, ...]]) -> str:
    """Return the message of an unschedulable pod: the number of nodes for each reason."""
    if not nodes:
        return "no nodes available to schedule pods"
    counts: dict[str, int] = {}
    for reasons in refused:
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    listed = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{nodes} nodes are available: {', '.join(listed)}."
