"""Scheduling predicates and scores: whether a pod fits a node, and how well; with the messages of kube-scheduler.

Pods of one template have the same requirements and form a pod class, which is parsed and evaluated once. A node that
fails several predicates reports the first in the order of kube-scheduler, but all insufficient resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from springtide.apis.core.pods import PodSpec
from springtide.apis.core.resources import pod_requests
from springtide.cluster.resources import Object
from springtide.quantity import AmountError
from springtide.simulator.behaviours.pod_status import is_true
from springtide.simulator.behaviours.resources import all_hold

_MOST_REMEMBERED = 4096
"""A bound, because each pod of a DaemonSet is a class of its own."""

Amounts = Mapping[str, int]
"""Amounts of resources in billionths, the precision of quantities."""


@dataclass(frozen=True, slots=True)
class PodClass:
    """The part of a pod spec that decides where the pod may run."""

    text: bytes
    """The spec without the node name; classes are equal if this is."""
    spec: Object = field(compare=False)
    needs: Amounts = field(compare=False)
    """Empty if the requests cannot be parsed; the API server refuses such pods."""


def pod_class_of(pod: Object) -> PodClass:
    """Return the class of a pod, whether or not it is bound."""
    return _read(msgspec.json.encode({name: value for name, value in pod["spec"].items() if name != "nodeName"}))


@lru_cache(maxsize=_MOST_REMEMBERED)
def _read(text: bytes) -> PodClass:
    spec = msgspec.json.decode(text)
    try:
        requests = pod_requests(msgspec.convert(spec, PodSpec))
    except (msgspec.ValidationError, AmountError):
        requests = {}
    return PodClass(text, spec, {name: amount.nano for name, amount in requests.items()})


NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
CORDON: Object = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
"""The taint of a cordoned node."""

_MOST_SCORE = 100
_SCORED = ("cpu", "memory")

Score = tuple[int, int]
"""The score of a node for a pod; the highest is best."""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """The allocatable resources of a node, and what its pods use."""

    node: Object
    taints: tuple[Object, ...]
    allocatable: Amounts
    """Without `pods`, which is a count."""
    most_pods: int
    used: Amounts
    pods: int


def refusals(pod_class: PodClass, info: NodeInfo) -> tuple[str, ...]:
    """Return why a pod does not fit a node; empty if it fits."""
    spec, node = pod_class.spec, info.node
    tolerations = spec.get("tolerations") or ()
    if (node.get("spec") or {}).get("unschedulable") and not tolerates(tolerations, CORDON):
        return ("node(s) were unschedulable",)
    if info.taints and untolerated(tolerations, info.taints, ("NoSchedule", "NoExecute")):
        return ("node(s) had untolerated taint(s)",)
    if not chooses(spec, node):
        return ("node(s) didn't match Pod's node affinity/selector",)
    return shortages(pod_class.needs, info)


def shortages(needs: Amounts, info: NodeInfo) -> tuple[str, ...]:
    """Return the resources that are insufficient."""
    short = ["Too many pods"] if info.pods + 1 > info.most_pods else []
    short += [
        f"Insufficient {name}"
        for name, amount in needs.items()
        if amount > 0 and amount > info.allocatable.get(name, 0) - info.used.get(name, 0)
    ]
    return tuple(short)


def chooses(spec: Object, node: Object) -> bool:
    """Whether the node selector and required node affinity of a pod match a node."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(_term_holds(term, labels, fields) for term in required.get("nodeSelectorTerms") or ())


def _term_holds(term: Object, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    """Whether a node selector term matches; an empty term matches no node."""
    expressions, on_fields = term.get("matchExpressions"), term.get("matchFields")
    return bool(expressions or on_fields) and all_hold(expressions, labels) and all_hold(on_fields, fields)


def effective_taints(node: Object) -> tuple[Object, ...]:
    """Return the taints of a node, including the not-ready taint before a controller has set it."""
    listed = list((node.get("spec") or {}).get("taints") or ())
    if not is_true(node, "Ready") and not any(taint["key"] in (NOT_READY, UNREACHABLE) for taint in listed):
        listed.append({"key": NOT_READY, "effect": "NoSchedule"})
    return tuple(listed)


def untolerated(
    tolerations: Sequence[Object], listed: Iterable[Object], effects: tuple[str, ...]
) -> tuple[Object, ...]:
    """Return the taints with these effects that no toleration matches."""
    return tuple(taint for taint in listed if taint["effect"] in effects and not tolerates(tolerations, taint))


def tolerates(tolerations: Iterable[Object], taint: Object) -> bool:
    """Whether a toleration matches a taint."""
    return any(is_tolerated_by(toleration, taint) for toleration in tolerations)


def is_tolerated_by(toleration: Object, taint: Object) -> bool:
    """Whether a toleration matches a taint; one without a key matches all."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if (toleration.get("operator") or "Equal") == "Exists":
        return True
    return bool((toleration.get("value") or "") == (taint.get("value") or ""))


def score(pod_class: PodClass, info: NodeInfo) -> Score:
    """Score a node that fits a pod: first by PreferNoSchedule taints, then by free resources."""
    avoided = untolerated(pod_class.spec.get("tolerations") or (), info.taints, ("PreferNoSchedule",))
    parts = [
        max(0, info.allocatable[name] - info.used.get(name, 0) - pod_class.needs.get(name, 0))
        * _MOST_SCORE
        // info.allocatable[name]
        for name in _SCORED
        if info.allocatable.get(name)
    ]
    return -len(avoided), sum(parts) // len(parts) if parts else 0


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
