"""Predicates: the rules of kube-scheduler that decide whether a pod may run on a node, in one table.

Reasons, the documentation and `springtide plan -o json` name predicates as this table does. The functions here judge
single values: a requirement and the value of a label, a toleration and a taint. `static_rules` applies them to columns
of nodes, and `counters` has the predicates that depend on other pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from springtide.apis.core.nodes import NodeTaint
from springtide.apis.core.pod_record import (
    NodeSelectorRequirement,
    ObjectSelector,
    TaintToleration,
)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A rule that decides whether a pod may run on a node, or on a node that a pool would add."""

    name: str
    """The name of the plugin of kube-scheduler that has the rule; our own rules have names that it does not use."""
    refusal: str
    """What kube-scheduler says of a node that is refused; for our own rules what `plan` says."""
    rule: str
    """What is compared."""
    not_modelled: str = ""
    """What kube-scheduler does beyond this."""


PREDICATES: Final = (
    Predicate(
        "SchedulingGates",
        "the pod has scheduling gates",
        "A pod with `schedulingGates` is not tried before the last of them is removed.",
    ),
    Predicate(
        "DynamicResources",
        "dynamic resource claims are not modelled",
        "A pod with `resourceClaims` is reported as one that cannot be placed.",
        "Devices of dynamic resource allocation.",
    ),
    Predicate(
        "NodeUnschedulable",
        "node(s) were unschedulable",
        "A cordoned node takes only pods that tolerate `node.kubernetes.io/unschedulable:NoSchedule`.",
    ),
    Predicate(
        "TaintToleration",
        "node(s) had untolerated taint(s)",
        "Each taint with effect NoSchedule or NoExecute needs a toleration: Exists, Equal, and Lt and Gt on integers."
        " Startup taints of a pool are ignored, since they are gone when the node is initialized.",
    ),
    Predicate(
        "NodeAffinity",
        "node(s) didn't match Pod's node affinity/selector",
        "All labels of `nodeSelector`, and one term of the required node affinity: In, NotIn, Exists, DoesNotExist, Gt,"
        " Lt, and `metadata.name` in `matchFields`.",
    ),
    Predicate(
        "NodePorts",
        "node(s) didn't have free ports for the requested pod ports",
        "Host ports with their protocol and address; 0.0.0.0 conflicts with every address.",
    ),
    Predicate(
        "NodeResourcesFit",
        "Insufficient resources",
        "Effective requests (init containers, sidecars, overhead, requests of the whole pod, resizes in place) fit into"
        " what is allocatable, for each resource that is requested; and the number of pods.",
    ),
    Predicate(
        "VolumeRestrictions",
        "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
        "A ReadWriteOncePod claim is used by one pod at a time. Pods that name the same disk in awsElasticBlockStore,"
        " gcePersistentDisk, iscsi or rbd are not on one node; except for the first, all may read it.",
    ),
    Predicate(
        "NodeVolumeLimits",
        "node(s) exceed max volume count",
        "Volumes of a CSI driver on one node, each counted once, up to the limit in the node's CSINode.",
        "Limits of nodes that do not exist yet.",
    ),
    Predicate(
        "VolumeBinding",
        "node(s) had volume node affinity conflict",
        "The node affinity of bound volumes, and `allowedTopologies` of the class of claims that wait for a consumer.",
        "Capacity that CSI drivers report, and which of several local volumes is chosen.",
    ),
    Predicate(
        "VolumeZone",
        "node(s) had no available volume zone",
        "The zone and region labels of bound volumes.",
    ),
    Predicate(
        "PodTopologySpread",
        "node(s) didn't match pod topology spread constraints",
        "Constraints with DoNotSchedule: skew, `minDomains`, `nodeAffinityPolicy`, `nodeTaintsPolicy`,"
        " `matchLabelKeys`. Those with ScheduleAnyway are scores. Domains are those that eligible nodes have or that"
        " pools can add.",
    ),
    Predicate(
        "InterPodAffinity",
        "node(s) didn't match pod affinity/anti-affinity rules",
        "Required affinity and anti-affinity in both directions, over namespaces and topology domains. Preferred terms"
        " are scores.",
    ),
    Predicate(
        "Limits",
        "the limits of the pool are reached",
        "The limits of a NodePool, `nodes` included, with every planned node counted.",
    ),
    Predicate(
        "MinValues",
        "too few instance types remain for minValues",
        "The instance types that can take all pods of the node have at least `minValues` values of the label.",
    ),
    Predicate(
        "Offering",
        "no available offering",
        "The instance type is offered, and available, in a zone and a capacity type that pool and pod allow.",
    ),
)
"""All predicates; kube-scheduler's in the order in which it checks them."""

NAMES: Final = tuple(predicate.name for predicate in PREDICATES)
ORDER: Final = {name: position for position, name in enumerate(NAMES)}

Requirement = tuple[str, str, tuple[str, ...]]
"""A requirement on labels in canonical form: key, operator and sorted values."""
Selector = tuple[Requirement, ...] | None
"""The requirements of a selector, sorted; an empty one matches everything, None matches nothing."""

FRESH: Final = "\0"
"""The value of labels that a new node has for itself alone, such as its hostname: no selector can list it."""

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
CORDON: Final = NodeTaint(UNSCHEDULABLE, "NoSchedule")
"""The taint of a cordoned node."""
HARD_EFFECTS: Final = ("NoSchedule", "NoExecute")


def holds(operator: str, value: str | None, listed: Sequence[str]) -> bool:
    """Return whether a requirement holds for the value of its label; None: there is no such label."""
    if operator == "In":
        return value in listed
    if operator == "NotIn":
        return value not in listed
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    number, bound = _integer(value), _integer(listed[0] if listed else None)
    if number is None or bound is None:
        return False
    match operator:
        case "Gt":
            return number > bound
        case "Lt":
            return number < bound
        case "Gte":
            return number >= bound
        case "Lte":
            return number <= bound
    return False


def all_hold(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Return whether labels meet all requirements."""
    return all(holds(operator, labels.get(key), values) for key, operator, values in requirements)


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Return whether a selector matches labels."""
    return selector is not None and all_hold(selector, labels)


def canonical(selector: ObjectSelector | None) -> Selector:
    """Return the canonical form of a label selector, equal for selectors that mean the same."""
    if selector is None:
        return None
    equal = [(key, "In", (value,)) for key, value in (selector.match_labels or {}).items()]
    return tuple(sorted({*equal, *map(canonical_requirement, selector.match_expressions or ())}))


def canonical_requirement(requirement: NodeSelectorRequirement) -> Requirement:
    """Return the canonical form of one requirement."""
    return requirement.key, requirement.operator, tuple(sorted(set(requirement.values or ())))


def tolerates(tolerations: Iterable[TaintToleration], taint: NodeTaint) -> bool:
    """Return whether one of the tolerations matches a taint."""
    return any(is_tolerated_by(toleration, taint) for toleration in tolerations)


def is_tolerated_by(toleration: TaintToleration, taint: NodeTaint) -> bool:
    """Return whether a toleration matches a taint; one without a key matches every key, without effect every effect."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator or "Equal":
        case "Exists":
            return True
        case "Equal":
            return toleration.value == taint.value
        case "Lt" | "Gt" as operator:
            bound, number = _plain_integer(toleration.value), _plain_integer(taint.value)
            return bound is not None and number is not None and (number < bound if operator == "Lt" else number > bound)
    return False


def untolerated(
    tolerations: Sequence[TaintToleration], taints: Iterable[NodeTaint], effects: tuple[str, ...] = HARD_EFFECTS
) -> tuple[NodeTaint, ...]:
    """Return the taints with these effects that no toleration matches."""
    return tuple(taint for taint in taints if taint.effect in effects and not tolerates(tolerations, taint))


def is_readable(requirement: Requirement) -> bool:
    """Return whether kube-scheduler can read a requirement on a node; a term with one that it cannot matches nothing.

    The API server accepts no such manifest, except for comparisons with something that is not an integer.
    """
    _, operator, values = requirement
    match operator:
        case "In" | "NotIn":
            return bool(values)
        case "Gt" | "Lt":
            return len(values) == 1 and _integer(values[0]) is not None
    return operator in ("Exists", "DoesNotExist") and not values


def _integer(text: str | None) -> int | None:
    """Return the integer of 64 bits that a label is, by the rules of Kubernetes; None for all other texts."""
    if not text:
        return None
    digits = (text[1:] if text[0] in "+-" else text).lstrip("0") or text[-1]
    if not digits.isascii() or not digits.isdigit() or len(digits) > 19:
        return None
    number = -int(digits) if text[0] == "-" else int(digits)
    return number if -(1 << 63) <= number < 1 << 63 else None


def _plain_integer(text: str) -> int | None:
    """Return the integer that a taint has as its value: only texts count that are written as integers are."""
    number = _integer(text)
    return number if number is not None and str(number) == text else None
