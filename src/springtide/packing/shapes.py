"""Shapes: what decides where a pod can run, and nothing else.

Pods are interned in two steps. A *group* has the pods of one namespace with one class, one set of labels and the same
volumes, as their records have them. A *shape* has all groups that no rule can tell apart: of the labels it keeps those
that some selector reads. Names of claims, environment variables and images are never part of it. A cluster of 150,000
pods has a few hundred shapes, and every question is asked once for a shape instead of once for a pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from springtide.apis.core.pod_record import (
    Affinity,
    HostPort,
    InlineDisk,
    NodeSelector,
    PodAffinityTerm,
    PodSchedulingClass,
    PreferredNodeTerm,
    SpreadConstraint,
)
from springtide.packing.columns import (
    ATTACHABLE,
    CPU,
    EVERYWHERE,
    MEMORY,
    PODS,
    AffinityTerms,
    Amounts,
    NodeRule,
    Resources,
    Scope,
    VolumeTopology,
    affinity_terms,
    rule_of,
)
from springtide.packing.predicates import Requirement, Selector, canonical, selects

NamespaceLabels = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class PodMatcher:
    """Pods that a term or a constraint counts: by namespace and by labels."""

    namespaces: tuple[str, ...]
    namespace_selector: Selector
    selector: Selector

    def matches(
        self, namespace: str, labels: Mapping[str, str], known: NamespaceLabels, *, listed: bool = True
    ) -> bool:
        """Return whether it counts a pod.

        kube-scheduler looks up the namespaces that the selector of a pod's own terms matches; with `listed` a namespace
        must be known, or the selector must match no labels at all, which its lookup asks as well.
        """
        if not selects(self.selector, labels):
            return False
        if namespace in self.namespaces:
            return True
        if listed and selects(self.namespace_selector, _NO_LABELS):
            return True
        own = known.get(namespace, None if listed else _NO_LABELS)
        return own is not None and selects(self.namespace_selector, own)


_NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class CounterKey:
    """What is counted by topology domain."""

    kind: str
    """`spread`: matching pods that are not terminating; `matching`: matching pods; `holders`: pods with an
    anti-affinity term; `preferring`: pods with an affinity term that scores the pods which match; `ports`: pods with a
    host port; `disks`: pods with a disk that not every pod may use on the same node; `attached`: pods with a volume
    that several pods use, which is attached to a node once; `claims`: pods with a claim that is for one pod only."""
    matchers: tuple[PodMatcher, ...] = ()
    """A pod is counted if all of them match it, or (`holders`, `preferring`) if it has the term."""
    topology: str = ""
    """The label whose values are the domains; empty: each node is one."""
    scope: Scope | None = None
    port: HostPort | None = None
    weight: int = 0
    """Of `preferring`: how much such a pod wants the pods that match near itself; negative: away from itself."""
    disk: InlineDisk | None = None
    volume: tuple[str, str] | None = None
    """A CSI driver, and what identifies the volume to it."""
    claim: str = ""
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        content = (self.kind, self.matchers, self.topology, self.scope, self.port, self.weight, self.disk, self.volume)
        object.__setattr__(self, "_hash", hash((content, self.claim)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Spread:
    """A topology spread constraint of a shape."""

    counter: CounterKey
    max_skew: int
    min_domains: int
    self_match: int
    """1 if the pod itself is counted."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """Everything about a shape that depends on other pods."""

    affinity: tuple[CounterKey, ...] = ()
    """Each must be above zero in the domain of the node."""
    affinity_self: bool = False
    """Whether the pod matches its own terms, so that it may be the first."""
    refused: tuple[CounterKey, ...] = ()
    """Each must be zero in the domain of the node: own anti-affinity terms."""
    spreads: tuple[Spread, ...] = ()
    holds: tuple[CounterKey, ...] = ()
    """Counters that a pod of the shape raises because of its own terms, ports and disks."""
    preferred: tuple[tuple[int, CounterKey], ...] = ()
    """Weights and counters of preferred terms; negative weights for anti-affinity."""
    soft_spreads: tuple[Spread, ...] = ()


@dataclass(frozen=True, slots=True)
class VolumeNeeds:
    """What the volumes of a pod resolve to."""

    topologies: tuple[VolumeTopology, ...] = ()
    """Where its volumes can be reached; each must match."""
    attached: tuple[tuple[str, int], ...] = ()
    """CSI drivers and how many volumes are attached that no other pod uses."""
    shared: tuple[tuple[str, str], ...] = ()
    """CSI drivers and volumes that other pods use as well."""
    disks: tuple[InlineDisk, ...] = ()
    """Disks that not every pod may use on the same node."""
    exclusive: tuple[str, ...] = ()
    """Claims for one pod, with their namespace, that other pods want as well."""
    blocked: str = ""
    """The predicate that refuses every node, if a claim cannot be used."""
    because: str = field(default="", compare=False, repr=False)
    """Why, of one of the pods; it names a claim, so needs that differ only in it are equal."""


NO_VOLUMES = VolumeNeeds()


@dataclass(slots=True, eq=False)
class Shape:
    """Pods that no rule can tell apart."""

    number: int
    namespace: str
    labels: Mapping[str, str]
    """Those that some selector reads."""
    priority: int
    amounts: Mapping[int, int]
    """Requests by column of `Resources`, the pod itself included."""
    columns: Amounts
    """The columns that it requests."""
    needs: Amounts
    """The requests in these columns."""
    rule: NodeRule
    constraints: Constraints
    volumes: VolumeNeeds
    ports: tuple[HostPort, ...]
    preferences: tuple[tuple[int, AffinityTerms], ...]
    """Weights and terms of the preferred node affinity."""
    preempts: bool
    blocked: str = ""
    """The predicate that refuses every node."""
    because: str = ""
    bumps: list[int] = field(default_factory=list)
    """Numbers of the counters that a pod of the shape raises."""
    terminating_bumps: list[int] = field(default_factory=list)
    """The same, while the pod is terminating."""
    refused: list[int] = field(default_factory=list)
    """Numbers of the counters that must be zero, anti-affinity of other pods included."""
    promised_bumps: list[int] = field(default_factory=list)
    """Numbers of the counters that a pod raises on the node that preemption has promised it."""
    wanted_by: list[int] = field(default_factory=list)
    """Numbers of the counters of other pods that prefer to have this one near, or far: they score only."""
    linked: int = -1
    """How many counters and ports there were when these lists were made."""
    size: int = 0
    """How much of a node it takes, roughly: large pods are placed first."""
    order: tuple[object, ...] = ()
    """A total order that depends on the content only, not on when shapes were interned."""

    @property
    def is_constrained(self) -> bool:
        """Whether other pods decide where it can run."""
        own = self.constraints
        return bool(self.refused or own.affinity or own.spreads or self.volumes.shared)


def class_content(pod_class: PodSchedulingClass) -> tuple[object, ...]:
    """Return the parts of a class that decide where its pods can run; classes that differ otherwise share shapes."""
    return (
        pod_class.unreadable,
        tuple(sorted((name, amount.nano) for name, amount in pod_class.requests.items())),
        tuple(sorted(pod_class.node_selector.items())),
        _affinity_content(pod_class.affinity) if pod_class.affinity is not None else (),
        tuple(sorted({repr(_spread_content(each)) for each in pod_class.topology_spread})),
        tuple(sorted({repr(each) for each in pod_class.tolerations})),
        tuple(sorted({_port_key(each) for each in pod_class.host_ports})),
        bool(pod_class.scheduling_gates),
        pod_class.resource_claims,
        pod_class.preemption_policy,
    )


def _affinity_content(affinity: Affinity) -> tuple[object, ...]:
    nodes = affinity.node_affinity
    required = nodes.required_during_scheduling_ignored_during_execution if nodes is not None else None
    preferred = nodes.preferred_during_scheduling_ignored_during_execution if nodes is not None else None
    parts: list[object] = [
        affinity_terms(required) if required is not None else None,
        preferences_of(preferred or ()),
    ]
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        terms = part.required_during_scheduling_ignored_during_execution if part is not None else None
        weighted = part.preferred_during_scheduling_ignored_during_execution if part is not None else None
        parts.append(tuple(sorted({repr(_term_content(term)) for term in terms or ()})))
        parts.append(tuple(sorted(repr((one.weight, _term_content(one.pod_affinity_term))) for one in weighted or ())))
    return tuple(parts)


def _term_content(term: PodAffinityTerm) -> tuple[object, ...]:
    return (
        term.topology_key,
        canonical(term.label_selector),
        tuple(sorted(set(term.namespaces or ()))),
        canonical(term.namespace_selector),
        tuple(sorted(set(term.match_label_keys or ()))),
        tuple(sorted(set(term.mismatch_label_keys or ()))),
    )


def _spread_content(spread: SpreadConstraint) -> tuple[object, ...]:
    return (
        spread.topology_key,
        spread.when_unsatisfiable,
        spread.max_skew,
        spread.min_domains,
        canonical(spread.label_selector),
        tuple(sorted(set(spread.match_label_keys or ()))),
        spread.node_affinity_policy,
        spread.node_taints_policy,
    )


def preferences_of(preferred: Iterable[PreferredNodeTerm]) -> tuple[tuple[int, AffinityTerms], ...]:
    """Return weights and terms of a preferred node affinity; empty terms are preferred nowhere."""
    found = [(each.weight, affinity_terms(NodeSelector((each.preference,)))) for each in preferred if each.weight]
    return tuple(sorted((weight, terms) for weight, terms in found if terms))


def selector_keys(pod_class: PodSchedulingClass) -> set[str]:
    """Return the labels of pods that terms and constraints of a class read."""
    keys: set[str] = set()
    for spread in pod_class.topology_spread:
        keys.update(spread.match_label_keys or ())
        keys.update(key for key, _, _ in canonical(spread.label_selector) or ())
    for term in _pod_terms(pod_class):
        keys.update((*(term.match_label_keys or ()), *(term.mismatch_label_keys or ())))
        keys.update(key for key, _, _ in canonical(term.label_selector) or ())
    return keys


def _pod_terms(pod_class: PodSchedulingClass) -> Iterable[PodAffinityTerm]:
    if pod_class.affinity is None:
        return
    for part in (pod_class.affinity.pod_affinity, pod_class.affinity.pod_anti_affinity):
        if part is not None:
            yield from part.required_during_scheduling_ignored_during_execution or ()
            for weighted in part.preferred_during_scheduling_ignored_during_execution or ():
                yield weighted.pod_affinity_term


def matcher_of(term: PodAffinityTerm, namespace: str, labels: Mapping[str, str]) -> PodMatcher:
    """Return which pods a term of a pod with this namespace and these labels counts."""
    selector = canonical(term.label_selector)
    if selector is not None:
        # The API server has added these to the selector when the pod was created; manifests lack them.
        stored = {(key, operator) for key, operator, _ in selector}
        added = [
            (key, operator, (labels[key],))
            for operator, keys in (("In", term.match_label_keys), ("NotIn", term.mismatch_label_keys))
            for key in keys or ()
            if key in labels and (key, operator) not in stored
        ]
        selector = tuple(sorted({*selector, *added}))
    namespaces = tuple(sorted(set(term.namespaces or ())))
    namespace_selector = canonical(term.namespace_selector)
    if not namespaces and namespace_selector is None:
        namespaces = (namespace,)
    return PodMatcher(namespaces, namespace_selector, selector)


class ConstraintCompiler:
    """Compiles what pods of a class require of other pods; `intern` makes equal node rules one object."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def compile(
        self,
        pod_class: PodSchedulingClass,
        namespace: str,
        labels: Mapping[str, str],
        known: NamespaceLabels,
        volumes: VolumeNeeds = NO_VOLUMES,
    ) -> Constraints:
        """Return the constraints of pods with this class, namespace, labels and volumes."""
        affinity = pod_class.affinity
        plain = affinity is None and not pod_class.topology_spread and not pod_class.host_ports
        if plain and not volumes.shared and not volumes.disks and not volumes.exclusive:
            return _UNCONSTRAINED
        required: tuple[tuple[PodMatcher, str], ...] = ()
        refused: list[CounterKey] = []
        holds: list[CounterKey] = []
        preferred: list[tuple[int, CounterKey]] = []
        preferring: dict[tuple[PodMatcher, str], int] = {}
        if affinity is not None and affinity.pod_affinity is not None:
            terms = affinity.pod_affinity.required_during_scheduling_ignored_during_execution or ()
            required = tuple((matcher_of(term, namespace, labels), term.topology_key) for term in terms)
            for one in required:
                preferring[one] = preferring.get(one, 0) + HARD_AFFINITY_WEIGHT
            for weighted in affinity.pod_affinity.preferred_during_scheduling_ignored_during_execution or ():
                term = weighted.pod_affinity_term
                key = CounterKey("matching", (matcher_of(term, namespace, labels),), term.topology_key)
                preferred.append((weighted.weight, key))
        if affinity is not None and affinity.pod_anti_affinity is not None:
            for term in affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution or ():
                matcher = (matcher_of(term, namespace, labels),)
                refused.append(CounterKey("matching", matcher, term.topology_key))
                holds.append(CounterKey("holders", matcher, term.topology_key))
            for weighted in affinity.pod_anti_affinity.preferred_during_scheduling_ignored_during_execution or ():
                term = weighted.pod_affinity_term
                key = CounterKey("matching", (matcher_of(term, namespace, labels),), term.topology_key)
                preferred.append((-weighted.weight, key))
        for weight, key in preferred:
            preferring[key.matchers[0], key.topology] = preferring.get((key.matchers[0], key.topology), 0) + weight
        holds += [
            CounterKey("preferring", (matcher,), topology, weight=weight)
            for (matcher, topology), weight in preferring.items()
            if weight
        ]
        holds += [CounterKey("ports", port=port) for port in pod_class.host_ports]
        holds += [CounterKey("disks", disk=disk) for disk in volumes.disks]
        holds += [CounterKey("attached", volume=volume) for volume in volumes.shared]
        holds += [CounterKey("claims", topology=EVERYWHERE, claim=claim) for claim in volumes.exclusive]
        matchers = _by_content({matcher for matcher, _ in required})
        hard, soft = self._spreads(pod_class, namespace, labels)
        return Constraints(
            affinity=tuple(
                CounterKey("matching", matchers, topology) for topology in sorted({key for _, key in required})
            ),
            affinity_self=bool(required) and all(each.matches(namespace, labels, known) for each in matchers),
            refused=_by_content(set(refused)),
            spreads=hard,
            holds=_by_content(set(holds)),
            preferred=_by_content(preferred),
            soft_spreads=soft,
        )

    def _spreads(
        self, pod_class: PodSchedulingClass, namespace: str, labels: Mapping[str, str]
    ) -> tuple[tuple[Spread, ...], tuple[Spread, ...]]:
        found: dict[str, list[Spread]] = {"DoNotSchedule": [], "ScheduleAnyway": []}
        for when, spreads in found.items():
            constraints = [each for each in pod_class.topology_spread if each.when_unsatisfiable == when]
            keys = tuple(sorted({each.topology_key for each in constraints}))
            for each in constraints:
                spreads.append(self._spread(each, keys, pod_class, namespace, labels))
        hard, soft = map(_by_content, found.values())
        return hard, soft

    def _scope(self, constraint: SpreadConstraint, keys: tuple[str, ...], pod_class: PodSchedulingClass) -> Scope:
        affinity = pod_class.affinity.node_affinity if pod_class.affinity is not None else None
        by_taints = constraint.node_taints_policy == "Honor"
        by_affinity = constraint.node_affinity_policy != "Ignore" and (
            bool(pod_class.node_selector)
            or (affinity is not None and affinity.required_during_scheduling_ignored_during_execution is not None)
        )
        if not (by_affinity or by_taints):
            return Scope(None, False, False, keys)
        whole = rule_of(pod_class)
        rule = self._rules.intern(
            NodeRule(
                whole.selector if by_affinity else (),
                whole.affinity if by_affinity else None,
                whole.tolerations if by_taints else (),
            )
        )
        return Scope(rule, by_affinity, by_taints, keys)

    def _spread(
        self,
        constraint: SpreadConstraint,
        keys: tuple[str, ...],
        pod_class: PodSchedulingClass,
        namespace: str,
        labels: Mapping[str, str],
    ) -> Spread:
        selector = canonical(constraint.label_selector)
        if selector is not None:
            same: list[Requirement] = [
                (key, "In", (labels[key],)) for key in constraint.match_label_keys or () if key in labels
            ]
            selector = tuple(sorted({*selector, *same}))
        scope = self._scope(constraint, keys, pod_class)
        matcher = PodMatcher((namespace,), None, selector)
        return Spread(
            CounterKey("spread", (matcher,), constraint.topology_key, scope),
            constraint.max_skew,
            constraint.min_domains or 1,
            int(selects(selector, labels)),
        )


PartT = TypeVar("PartT")


def _by_content(parts: Collection[PartT]) -> tuple[PartT, ...]:
    """Sort by content; most constraints have one part, which needs no costly comparison."""
    return tuple(sorted(parts, key=repr) if len(parts) > 1 else parts)


_UNCONSTRAINED = Constraints()
HARD_AFFINITY_WEIGHT = 1
"""How much kube-scheduler lets required affinity terms of existing pods count as preferences, by its default."""


def _port_key(port: HostPort) -> tuple[str, int, str]:
    return port.protocol, port.port, port.address


_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - kube-scheduler knows no other that means all


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Return whether two host ports cannot be taken on one node."""
    return (
        one.port == other.port
        and one.protocol == other.protocol
        and (one.address == other.address or _ANY_ADDRESS in (one.address, other.address))
    )


class Rules:
    """Node rules, each once."""

    def __init__(self) -> None:
        self._rules: dict[tuple[object, ...], NodeRule] = {}
        self._next = 0

    def forget(self) -> None:
        """Forget all rules. Their numbers are not used again, so that masks of rules that are still used stay valid."""
        self._rules.clear()

    def intern(self, rule: NodeRule) -> NodeRule:
        """Return the one rule that is equal to this one."""
        known = self._rules.setdefault(rule.key(), rule)
        if known.number < 0:
            known.number, self._next = self._next, self._next + 1
            known.text = repr(known.key())
        return known


def make_shape(
    number: int,
    namespace: str,
    labels: Mapping[str, str],
    pod_class: PodSchedulingClass,
    amounts: Mapping[int, int],
    constraints: Constraints,
    volumes: VolumeNeeds,
    content: str,
    rules: Rules,
    resources: Resources,
) -> Shape:
    """Make a shape of a class with the labels that are read; `content` is the class in canonical form."""
    whole = dict(amounts)
    whole[PODS] = 1
    for driver, count in volumes.attached:
        whole[resources.column(ATTACHABLE + driver)] = count
    columns = np.array(sorted(whole), np.int64)
    rule = rules.intern(rule_of(pod_class, volumes.topologies))
    blocked, because = volumes.blocked, volumes.because
    if pod_class.unreadable:
        blocked, because = "NodeResourcesFit", "its requests cannot be read"
    elif pod_class.scheduling_gates:
        blocked, because = "SchedulingGates", "it has scheduling gates"
    elif pod_class.resource_claims:
        blocked, because = "DynamicResources", "it has resource claims, which are not modelled"
    node_affinity = pod_class.affinity.node_affinity if pod_class.affinity is not None else None
    preferred = node_affinity.preferred_during_scheduling_ignored_during_execution if node_affinity else None
    return Shape(
        number=number,
        namespace=namespace,
        labels=labels,
        priority=pod_class.priority,
        amounts=whole,
        columns=columns,
        needs=np.array([whole[column] for column in sorted(whole)], np.int64),
        rule=rule,
        constraints=constraints,
        volumes=volumes,
        ports=pod_class.host_ports,
        preferences=preferences_of(preferred or ()),
        preempts=pod_class.preemption_policy != "Never",
        blocked=blocked,
        because=because,
        size=_size(whole),
        order=(
            namespace,
            tuple(sorted(labels.items())),
            tuple(sorted((resources.names[column], amount) for column, amount in whole.items())),
            content,
            "" if volumes is NO_VOLUMES else repr(volumes),
        ),
    )


_GIBIBYTES_PER_CPU = 22
"""Bytes shifted by this are thousandths of a cpu, at 4 GiB for one."""
_PER_DEVICE = 16_000


def _size(amounts: Mapping[int, int]) -> int:
    """Return the size of a pod in thousandths of a cpu; a device counts as 16 of them."""
    devices = sum(amount for column, amount in amounts.items() if column > PODS)
    return amounts.get(CPU, 0) + (amounts.get(MEMORY, 0) >> _GIBIBYTES_PER_CPU) + _PER_DEVICE * min(devices, 1 << 20)
