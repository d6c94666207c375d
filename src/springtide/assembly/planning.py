"""Makes the packer's snapshot and pools of the objects of a plan.

    files ────► Collected ──assemble()──► PlanningInput: snapshot, pools, notes
    cluster ──►

Workloads whose pods are not in the input get them from their templates, with the defaults that the API server sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from springtide.apis.core.daemon_sets import daemon_set_record
from springtide.apis.core.interning import intern_labels
from springtide.apis.core.nodes import NodeRecord, namespace_record, node_record
from springtide.apis.core.pod_record import (
    ObjectSelector,
    PodOwner,
    PodRecord,
    PodSchedulingClass,
    PodSpecView,
    pod_class_of,
    pod_details_of,
    pod_record,
)
from springtide.apis.core.policies import (
    LimitRangeRecord,
    PriorityClassRecord,
    class_with_defaults,
    class_with_priority,
    limit_range_record,
    priority_class_record,
)
from springtide.apis.core.resources import amounts
from springtide.apis.core.volumes import (
    VolumeClaimView,
    csi_node_record,
    storage_class_record,
    volume_claim_record,
    volume_record,
)
from springtide.apis.karpenter.conversion import V1BETA1, to_v1
from springtide.apis.karpenter.types import OWN_GROUP, NodePool
from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, load_tree
from springtide.assembly.manifests import LocatedProblem
from springtide.assembly.planning_objects import WORKLOADS, Collected, located
from springtide.packing.catalogue import HOSTNAME_LABEL, NODEPOOL_LABEL, PODS, STABLE_LABELS, WELL_KNOWN_LABELS
from springtide.packing.node_claims import NodeClaimRecord, node_claim_record, node_taints
from springtide.packing.offerings import Pool
from springtide.packing.predicates import Requirement, canonical, selects
from springtide.packing.snapshot import PodKey, Snapshot, is_default_scheduled
from springtide.quantity import AmountError, Quantity

_DEFAULT_PODS: Final = Quantity.parse("110")
_T = TypeVar("_T")


@dataclass(slots=True)
class PlanningInput:
    """What a plan is made of."""

    snapshot: Snapshot
    pools: tuple[Pool, ...]
    workloads: Mapping[PodKey, str]
    """The workload of each unbound pod, for people: the name of a Deployment, or whatever else its pods have."""
    problems: tuple[LocatedProblem, ...] = ()
    notes: tuple[str, ...] = ()
    unreadable: bool = False
    pods: int = 0
    """All pods that have not finished, pending or bound."""
    static_pools: int = 0

    @property
    def errors(self) -> int:
        """The number of errors."""
        return sum(problem.severity == "error" for problem in self.problems)


@dataclass(frozen=True, slots=True)
class PlanningOptions:
    """What is planned for, and how."""

    namespace: str = ""
    """With a namespace, pending pods of others are left out."""
    foreign_types: bool = False
    """Whether the instance types are those of the provider, so that requirements on its own labels can be met."""
    required_preferences: bool = False
    """Whether pods get what they prefer even if that takes more nodes."""
    relaxed: frozenset[PodKey] = frozenset()
    """Pods for which preferences stay what they are."""


def assemble(found: Collected, options: PlanningOptions | None = None) -> PlanningInput:
    """Make the snapshot and the pools of what was read."""
    return _Assembler(found, options or PlanningOptions()).run()


class _Assembler:
    """Turns objects into records, and feeds them to a snapshot."""

    def __init__(self, found: Collected, options: PlanningOptions) -> None:
        self.found, self.options = found, options
        self.snapshot = Snapshot()
        self.problems = list(found.problems)
        self.notes = list(found.notes)
        self.workloads: dict[PodKey, str] = {}
        self.pods: dict[PodKey, PodRecord] = {}
        self.nodes: dict[str, NodeRecord] = {}
        self.claims: list[NodeClaimRecord] = []
        self.priorities: dict[str, PriorityClassRecord] = {}
        self.limit_ranges: dict[str, list[LimitRangeRecord]] = {}
        self.of_namespace: dict[str, list[PodRecord]] = {}
        """The pods of the input, before others are made from templates."""
        self._elsewhere = self._other_scheduler = 0

    def run(self) -> PlanningInput:
        """Feed everything to the snapshot."""
        snapshot, volumes = self.snapshot, self.snapshot.volumes
        for priority in self._records("PriorityClass", priority_class_record):
            self.priorities[priority.name] = priority
        for limits in self._records("LimitRange", limit_range_record):
            self.limit_ranges.setdefault(limits.namespace or "default", []).append(limits)
        for each in self._records("Namespace", namespace_record):
            snapshot.put_namespace(each.name, each.labels)
        for storage_class in self._records("StorageClass", storage_class_record):
            volumes.put_class(storage_class)
        for volume in self._records("PersistentVolume", volume_record):
            volumes.put_volume(volume)
        for claim in self._records("PersistentVolumeClaim", volume_claim_record):
            volumes.put_claim(claim if claim.namespace else msgspec.structs.replace(claim, namespace="default"))
        for csi_node in self._records("CSINode", csi_node_record):
            snapshot.put_csi_node(csi_node)
        self._put_nodes()
        self._put_daemon_sets()
        self._put_pods()
        pools, static = self._pools()
        if self._other_scheduler:
            self.notes.append(f"{_count(self._other_scheduler, 'pod')} left out: another scheduler places them")
        if self._elsewhere:
            others = _count(self._elsewhere, "pending pod")
            self.notes.append(f"{others} of other namespaces left out; without -n they are planned for as well")
        return PlanningInput(
            snapshot,
            pools,
            self.workloads,
            tuple(self.problems),
            tuple(self.notes),
            self.found.unreadable,
            len(self.pods),
            static,
        )

    def _records(self, kind: str, make: Callable[[Any], _T]) -> Iterator[_T]:
        """Make the records of a kind; one that has no meaning is an error."""
        for key, view in self.found.of(kind).items():
            try:
                yield make(view)
            except AmountError as failure:
                self._refuse(kind, key, str(failure))

    def _refuse(self, kind: str, key: PodKey, message: str) -> None:
        """Report an object that is left out, unless its problem has been found with its place."""
        if not any((one.kind, one.name, one.severity) == (kind, key[1], "error") for one in self.problems):
            self.problems.append(located("input", kind, key, message))

    def _put_nodes(self) -> None:
        for record in self._records("Node", node_record):
            allocatable = record.allocatable or record.capacity
            labels = record.labels
            if ("Node", ("", record.name)) in self.found.manifests:
                # What the kubelet would report of the machine.
                allocatable = {PODS: _DEFAULT_PODS, **allocatable}
                labels = intern_labels({HOSTNAME_LABEL: record.name, **labels})
            record = msgspec.structs.replace(record, allocatable=allocatable, labels=labels)
            self.nodes[record.name] = record
            self.snapshot.put_node(record)
        for claim in self._records("NodeClaim", node_claim_record):
            self.claims.append(claim)
            if claim.node.node in self.nodes or not claim.deleting:
                self.snapshot.put_claim(claim.node)

    def _put_daemon_sets(self) -> None:
        for record in self._records("DaemonSet", daemon_set_record):
            if record.deleting:
                continue
            namespace = record.namespace or "default"
            pod_class = class_with_defaults(record.pod_class, self.limit_ranges.get(namespace, ()))
            pod_class = class_with_priority(pod_class, self.priorities)
            record = msgspec.structs.replace(record, namespace=namespace, pod_class=pod_class)
            self.snapshot.put_daemon_set((namespace, record.name), record)

    def _put_pods(self) -> None:
        for key, view in self.found.of("Pod").items():
            record = pod_record(view)
            if record.pod_class.unreadable:
                self._refuse("Pod", key, _misfit(view.spec))
                continue
            if ("Pod", key) in self.found.manifests:
                record = self._defaulted(key[0], record)
            if not record.is_finished:
                self.pods[key] = record
        for (namespace, _), record in self.pods.items():
            self.of_namespace.setdefault(namespace, []).append(record)
        for kind in WORKLOADS:
            for key, value in self.found.of(kind).items():
                self._expand(kind, key, value)
        for key, record in self.pods.items():
            if record.node or record.state.nominated_node or record.is_terminating:
                self.snapshot.put_pod(key, record)
            elif self.options.namespace and key[0] != self.options.namespace:
                self._elsewhere += 1
            elif not is_default_scheduled(record):
                self._other_scheduler += 1
            else:
                if self.options.required_preferences and key not in self.options.relaxed:
                    pod_class = with_required_preferences(record.pod_class)
                    record = msgspec.structs.replace(record, pod_class=pod_class)
                self.snapshot.put_pod(key, record)
                self.workloads[key] = workload_of(key, record)

    def _defaulted(self, namespace: str, record: PodRecord) -> PodRecord:
        """Set what the API server would set when the pod is created."""
        pod_class = class_with_defaults(record.pod_class, self.limit_ranges.get(namespace, ()))
        return msgspec.structs.replace(record, pod_class=class_with_priority(pod_class, self.priorities))

    def _expand(self, kind: str, key: PodKey, value: dict[str, Any]) -> None:
        """Add the pods that a workload wants and that are not in the input."""
        spec = value.get("spec") or {}
        template = spec.get("template") or {}
        if self._owner_is_here(kind, key, value) or not isinstance(template.get("spec"), dict):
            return
        labels = (template.get("metadata") or {}).get("labels") or {}
        wanted = _wanted(kind, spec)
        present = self._present(kind, key, spec, labels) if wanted else 0
        missing = wanted - present
        if missing <= 0:
            return
        pod_class = pod_class_of(template["spec"])
        if pod_class.unreadable:
            self._refuse(kind, key, "the pods of its template cannot be understood")
            return
        pods = _count(missing, "pod")
        of_all = f"; the other {present} are in the input" if present else ""
        self.notes.append(f"{kind} {_named(key)}: {pods} counted as pending, made from its template{of_all}")
        record = PodRecord(pod_class=pod_class, labels=intern_labels(labels), owner=PodOwner(kind, key[1], ""))
        record = self._defaulted(key[0], record)
        first = 1
        if kind == "StatefulSet":
            first = int((spec.get("ordinals") or {}).get("start") or 0)
        number = first - 1
        own_claims = spec.get("volumeClaimTemplates") or ()
        has_volumes = bool(template["spec"].get("volumes") or own_claims)
        while missing:
            number += 1
            pod = (key[0], f"{key[1]}-{number}")
            if pod in self.pods:
                continue
            missing -= 1
            details = record.details
            if has_volumes:
                claimed = [self._claim(pod, each) for each in own_claims]
                volumes = [*(template["spec"].get("volumes") or ()), *claimed]
                details = pod_details_of({"volumes": volumes}, pod[1])
            self.pods[pod] = msgspec.structs.replace(record, details=details) if has_volumes else record

    def _claim(self, pod: PodKey, template: dict[str, Any]) -> dict[str, Any]:
        """Add the claim that a StatefulSet makes for a pod, unless it exists; returns the volume that uses it."""
        named = (template.get("metadata") or {}).get("name") or ""
        name = f"{named}-{pod[1]}"
        if (pod[0], name) not in self.found.of("PersistentVolumeClaim"):
            claim = {"metadata": {"name": name, "namespace": pod[0]}, "spec": template.get("spec") or {}}
            self.snapshot.volumes.put_claim(volume_claim_record(msgspec.convert(claim, VolumeClaimView)))
        return {"name": named, "persistentVolumeClaim": {"claimName": name}}

    def _owner_is_here(self, kind: str, key: PodKey, value: dict[str, Any]) -> bool:
        """Return whether a controller in the input creates the object, or would delete it."""
        metadata = value.get("metadata") or {}
        if metadata.get("deletionTimestamp"):
            return True
        owners = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
        return kind == "ReplicaSet" and any(
            (key[0], owner.get("name")) in self.found.of("Deployment") for owner in owners
        )

    def _present(self, kind: str, key: PodKey, spec: dict[str, Any], labels: dict[str, str]) -> int:
        """Count the pods of a workload that are in the input."""
        there = self.of_namespace.get(key[0], ())
        if kind == "Job":
            owners = [record.owner for record in there if record.owner is not None]
            return sum((owner.kind, owner.name) == (kind, key[1]) for owner in owners)
        selector = spec.get("selector") or {}
        if kind == "ReplicationController":
            selector = {"matchLabels": selector or labels}
        wanted = canonical(msgspec.convert(selector, ObjectSelector))
        return sum(not record.is_terminating and selects(wanted, record.labels) for record in there)

    def _pools(self) -> tuple[tuple[Pool, ...], int]:
        pools, static = [], 0
        foreign: dict[str, list[str]] = {}
        ignored: dict[str, list[str]] = {}
        used = self._used()
        for (_, name), value in sorted(self.found.of("NodePool").items()):
            view = _pool_view(value)
            if view is None:
                self._refuse("NodePool", ("", name), "cannot be understood; `springtide check` says why")
                continue
            if view.spec.replicas is not None:
                static += 1
                self.notes.append(f"NodePool {name} is left out: `replicas` fixes how many nodes it has")
                continue
            if (value.get("metadata") or {}).get("deletionTimestamp"):
                self.notes.append(f"NodePool {name} is left out: it is being deleted")
                continue
            pool = pool_of(view, used=used.get(name, {}))
            group = view.spec.template.spec.node_class_ref.group
            if group != OWN_GROUP:
                foreign.setdefault(group, []).append(name)
                if not self.options.foreign_types:
                    pool, left_out = _without_provider_labels(pool, group)
                    for key in left_out:
                        ignored.setdefault(key, []).append(name)
            pools.append(pool)
        for group, names in foreign.items():
            kinds = _listed(names, "NodePool")
            types = "" if self.options.foreign_types else "; types and prices here are those of the built-in catalogue"
            self.notes.append(f"{kinds} {'has' if len(names) == 1 else 'have'} node classes of {group}{types}")
        if ignored:
            keys = ", ".join(ignored)
            self.notes.append(f"the built-in catalogue has no {keys}: these requirements are ignored; see --types")
        return tuple(pools), static

    def _used(self) -> dict[str, dict[str, Quantity]]:
        """Sum what the nodes of each pool have; a NodeClaim without a node counts with what it promises."""
        used: dict[str, dict[str, Quantity]] = {}

        def add(labels: Mapping[str, str], capacity: Mapping[str, Quantity]) -> None:
            pool = labels.get(NODEPOOL_LABEL)
            if pool:
                total = used.setdefault(pool, {})
                for name, amount in (*capacity.items(), ("nodes", Quantity.parse(1))):
                    total[name] = total[name] + amount if name in total else amount

        for record in self.nodes.values():
            add(record.labels, record.capacity or record.allocatable)
        for claim in self.claims:
            if claim.node.node not in self.nodes:
                add(claim.node.labels, claim.capacity)
        return used


def _misfit(spec: PodSpecView) -> str:
    """Return why the requests of a pod cannot be understood."""
    for container in (*spec.containers, *(spec.init_containers or ())):
        resources = container.resources
        for quantities in (resources.requests, resources.limits) if resources is not None else ():
            try:
                amounts(quantities)
            except AmountError as failure:
                return str(failure)
    return "its requests cannot be understood"


def _wanted(kind: str, spec: dict[str, Any]) -> int:
    """Return how many pods a workload wants at a time."""
    if kind != "Job":
        replicas = spec.get("replicas")
        return 1 if replicas is None else int(replicas)
    if spec.get("suspend"):
        return 0
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    parallel = 1 if parallelism is None else int(parallelism)
    return parallel if completions is None else min(parallel, int(completions))


def with_required_preferences(pod_class: PodSchedulingClass) -> PodSchedulingClass:
    """Return the class of a pod that requires what it prefers: as Karpenter, of nodes the heaviest term alone."""
    if not any(word in pod_class.text for word in _PREFERRING):
        return pod_class
    spec = msgspec.json.decode(pod_class.text)
    for spread in spec.get("topologySpreadConstraints") or ():
        spread["whenUnsatisfiable"] = "DoNotSchedule"
    affinity = spec.get("affinity") or {}
    for field_name in ("podAffinity", "podAntiAffinity"):
        part = affinity.get(field_name) or {}
        preferred = [each["podAffinityTerm"] for each in part.pop(_PREFERRED, None) or ()]
        if preferred:
            part[_REQUIRED] = [*(part.get(_REQUIRED) or ()), *preferred]
    nodes = affinity.get("nodeAffinity") or {}
    terms = sorted(nodes.pop(_PREFERRED, None) or (), key=lambda each: -int(each.get("weight") or 0))
    if terms:
        heaviest = terms[0]["preference"]
        required = (nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
        together = [
            {
                name: [*(each.get(name) or ()), *(heaviest.get(name) or ())]
                for name in ("matchExpressions", "matchFields")
            }
            for each in required
        ]
        nodes[_REQUIRED] = {"nodeSelectorTerms": together}
    return pod_class_of(spec)


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_PREFERRING: Final = (_PREFERRED.encode(), b"ScheduleAnyway")
_ORDINAL: Final = re.compile(r"-(?:\d+|[a-z0-9]{5})$")
_SCHEDULED_JOB: Final = re.compile(r"-\d{8,10}$")
_NAMING_LABELS: Final = ("app.kubernetes.io/name", "app", "k8s-app")


def workload_of(key: PodKey, record: PodRecord) -> str:
    """Name what a pod belongs to: its Deployment, another owner, the application of its labels, or the pod itself."""
    owner = record.owner
    if owner is not None:
        template = record.labels.get("pod-template-hash")
        if owner.kind == "ReplicaSet" and template:
            return owner.name.removesuffix(f"-{template}")
        return _SCHEDULED_JOB.sub("", owner.name) if owner.kind == "Job" else owner.name
    named = next((record.labels[label] for label in _NAMING_LABELS if label in record.labels), "")
    return named or _ORDINAL.sub("", key[1])


def _pool_view(value: dict[str, Any]) -> NodePool | None:
    """Return the view of a NodePool in either version; None if its structure does not allow one."""
    if value.get("apiVersion") == V1BETA1:
        value = to_v1(value)
    loaded = load_tree(value, ValidationContext(now=0, deep_search=False))
    view = loaded.view if isinstance(loaded, LoadedObject) else None
    return view if isinstance(view, NodePool) else None


def pool_of(view: NodePool, *, used: Mapping[str, Quantity]) -> Pool:
    """Return what the packer needs of a NodePool; `used` is what its nodes have, and as `nodes` how many there are."""
    template = view.spec.template
    reference = template.spec.node_class_ref
    labels = dict((template.metadata.labels if template.metadata is not None else None) or {})
    labels = {STABLE_LABELS.get(key, key): value for key, value in labels.items()}
    labels[f"{reference.group}/{reference.kind.lower()}"] = reference.name
    requirements: list[Requirement] = []
    min_values: dict[str, int] = {}
    for each in template.spec.requirements:
        key = STABLE_LABELS.get(each.key, each.key)
        requirements.append((key, each.operator, tuple(sorted(set(each.values or ())))))
        if each.min_values is not None:
            min_values[key] = max(each.min_values, min_values.get(key, 0))
    return Pool(
        name=view.metadata.name or "",
        requirements=tuple(requirements),
        min_values=min_values,
        labels=labels,
        taints=node_taints(template.spec.taints),
        weight=view.spec.weight or 0,
        limits=amounts(view.spec.limits),
        used=used,
    )


def _without_provider_labels(pool: Pool, group: str) -> tuple[Pool, list[str]]:
    """Leave out requirements on the labels of a provider, whose values only its own types have."""
    domain = group.removeprefix("karpenter.")

    def is_of_provider(key: str) -> bool:
        prefix = key.rpartition("/")[0]
        return key not in WELL_KNOWN_LABELS and (prefix == group or prefix.endswith(domain))

    left_out = [key for key, _, _ in pool.requirements if is_of_provider(key)]
    kept = tuple(each for each in pool.requirements if each[0] not in left_out)
    least = {key: number for key, number in pool.min_values.items() if key not in left_out}
    return Pool(pool.name, kept, least, pool.labels, pool.taints, pool.weight, pool.limits, pool.used), left_out


def _named(key: PodKey) -> str:
    return key[1] if key[0] in ("", "default") else f"{key[0]}/{key[1]}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _listed(names: Sequence[str], kind: str) -> str:
    return f"{kind}{'' if len(names) == 1 else 's'} {', '.join(names)}"
