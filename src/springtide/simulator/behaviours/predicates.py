"""What a pod asks of a node. Most pods are made of few templates, and whatever is true of one demand is so of all equal
ones: they are read once, and what is found out about them is kept under them.

Whether a pod may run on a node, and how well it would fit: pure functions of the two, worded as the scheduler does.

Reasons that a node is refused come in the order in which the scheduler asks: of a node that fails several questions
only the first tells, but of the resources that run short all do.
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
"""The pods of a DaemonSet all differ; those of clusters long gone must not be kept for ever."""

Amounts = Mapping[str, int]
"""Resources in billionths, the precision of quantities."""


@dataclass(frozen=True, slots=True)
class PodClass:
    """All of a pod that decides where it may run."""

    text: bytes
    """The spec as it is written, but for the node: demands are equal if this is."""
    spec: Object = field(compare=False)
    needs: Amounts = field(compare=False)
    """Nothing where that cannot be read, as no server takes such a pod."""


def pod_class_of(pod: Object) -> PodClass:
    """Tell what a pod asks for, wherever it is."""
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
"""The taint of a node that was made unschedulable."""

_MOST_SCORE = 100
_SCORED = ("cpu", "memory")

Score = tuple[int, int]
"""How well a pod would be off on a node; the greatest is the best."""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What a node has for pods, and what those take that are there."""

    node: Object
    taints: tuple[Object, ...]
    allocatable: Amounts
    """Without `pods`, which is a count."""
    most_pods: int
    used: Amounts
    pods: int


def refusals(demand: PodClass, room: NodeInfo) -> tuple[str, ...]:
    """Tell why a pod cannot run on a node; nothing: it can."""
    spec, node = demand.spec, room.node
    tolerations = spec.get("tolerations") or ()
    if (node.get("spec") or {}).get("unschedulable") and not tolerates(tolerations, CORDON):
        return ("node(s) were unschedulable",)
    if room.taints and untolerated(tolerations, room.taints, ("NoSchedule", "NoExecute")):
        return ("node(s) had untolerated taint(s)",)
    if not chooses(spec, node):
        return ("node(s) didn't match Pod's node affinity/selector",)
    return shortages(demand.needs, room)


def shortages(needs: Amounts, room: NodeInfo) -> tuple[str, ...]:
    """Tell which resources a node has too little of."""
    short = ["Too many pods"] if room.pods + 1 > room.most_pods else []
    short += [
        f"Insufficient {name}"
        for name, amount in needs.items()
        if amount > 0 and amount > room.allocatable.get(name, 0) - room.used.get(name, 0)
    ]
    return tuple(short)


def chooses(spec: Object, node: Object) -> bool:
    """Tell whether a pod's node selector and required node affinity allow a node."""
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
    """Tell whether one of several alternatives holds; an empty one holds for no node."""
    expressions, on_fields = term.get("matchExpressions"), term.get("matchFields")
    return bool(expressions or on_fields) and all_hold(expressions, labels) and all_hold(on_fields, fields)


def effective_taints(node: Object) -> tuple[Object, ...]:
    """List the taints of a node; one that does not report ready yet counts as tainted before anybody has done so."""
    listed = list((node.get("spec") or {}).get("taints") or ())
    if not is_true(node, "Ready") and not any(taint["key"] in (NOT_READY, UNREACHABLE) for taint in listed):
        listed.append({"key": NOT_READY, "effect": "NoSchedule"})
    return tuple(listed)


def untolerated(
    tolerations: Sequence[Object], listed: Iterable[Object], effects: tuple[str, ...]
) -> tuple[Object, ...]:
    """List the taints of these effects that nothing tolerates."""
    return tuple(taint for taint in listed if taint["effect"] in effects and not tolerates(tolerations, taint))


def tolerates(tolerations: Iterable[Object], taint: Object) -> bool:
    """Tell whether one of the tolerations puts up with a taint."""
    return any(is_tolerated_by(toleration, taint) for toleration in tolerations)


def is_tolerated_by(toleration: Object, taint: Object) -> bool:
    """Tell whether a toleration puts up with a taint; without a key it does so with every one."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if (toleration.get("operator") or "Equal") == "Exists":
        return True
    return bool((toleration.get("value") or "") == (taint.get("value") or ""))


def score(demand: PodClass, room: NodeInfo) -> Score:
    """Judge a node that a pod may run on, the higher the better: taints to avoid first, then what stays free."""
    avoided = untolerated(demand.spec.get("tolerations") or (), room.taints, ("PreferNoSchedule",))
    parts = [
        max(0, room.allocatable[name] - room.used.get(name, 0) - demand.needs.get(name, 0))
        * _MOST_SCORE
        // room.allocatable[name]
        for name in _SCORED
        if room.allocatable.get(name)
    ]
    return -len(avoided), sum(parts) // len(parts) if parts else 0


def unschedulable_message(nodes: int, refused: Iterable[tuple[str, ...]]) -> str:
    """Word why no node takes a pod: how many nodes, and how many of them for which reason."""
    if not nodes:
        return "no nodes available to schedule pods"
    counts: dict[str, int] = {}
    for reasons in refused:
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    listed = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{nodes} nodes are available: {', '.join(listed)}."
