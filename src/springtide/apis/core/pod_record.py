"""The pod record: what controllers, behaviours and the packer keep of a pod in memory.

A cluster has up to 150,000 pods and every process caches all of them, so a record is small. The fields that decide
where a pod can run are the same for all pods of a template; they are parsed once and shared as a `PodSchedulingClass`.
Labels, owner and status are shared between equal pods as well, and fields that few pods have are in `PodDetails`.

`PodView` is the type that the API server's JSON is decoded as; `pod_record` makes the record of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Any

import msgspec

from springtide.apis.core.interning import NO_LABELS, intern_labels
from springtide.apis.core.pods import CLASS_ANNOTATION, CONSUME_ANNOTATION
from springtide.apis.core.resources import pod_requests
from springtide.apis.meta.times import instant_in
from springtide.apis.meta.types import PAUSED_ANNOTATION, DecodedPart
from springtide.quantity import AmountError, Quantity

_SHARED_CLASSES = 4096
_SHARED_PARTS = 16_384
"""How many classes, owners and states are shared: those of deleted workloads must not be kept for ever."""
_FINISHED = ("Succeeded", "Failed")
_NO_REQUESTS: Mapping[str, Quantity] = MappingProxyType({})


class NodeSelectorRequirement(DecodedPart):
    """One requirement on a label or a field of a node."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(DecodedPart):
    """Requirements on a node, all of which must hold; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(DecodedPart):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredNodeTerm(DecodedPart):
    """A term that a node should match, and how much that counts."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(DecodedPart):
    """Which nodes a pod must or should run on."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredNodeTerm, ...] | None = None


class ObjectSelector(DecodedPart):
    """A label selector, decoded without validation."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None


class PodAffinityTerm(DecodedPart):
    """Pods in whose topology domain a pod must, should or must not run."""

    topology_key: str = ""
    label_selector: ObjectSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: ObjectSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(DecodedPart):
    """A term that should hold, and how much that counts."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(DecodedPart):
    """Affinity or anti-affinity to other pods."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] | None = None


class Affinity(DecodedPart):
    """Affinity of a pod to nodes and to other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(DecodedPart):
    """A topology spread constraint."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: ObjectSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class TaintToleration(DecodedPart):
    """A toleration: the taints that the pod tolerates."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    """Empty: every effect."""
    toleration_seconds: int | None = None


class HostPort(DecodedPart):
    """A port of the node that the pod occupies."""

    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"  # noqa: S104 - the address that Kubernetes means by none


class PodSchedulingClass(msgspec.Struct, frozen=True, gc=False):
    """The fields that decide where a pod can run, shared by all pods of one template."""

    requests: Mapping[str, Quantity] = _NO_REQUESTS
    """Effective requests of the whole pod: init containers, sidecars and overhead included."""
    unreadable: bool = False
    """Whether the requests cannot be parsed; the API server accepts no such pod."""
    node_selector: Mapping[str, str] = NO_LABELS
    affinity: Affinity | None = None
    topology_spread: tuple[SpreadConstraint, ...] = ()
    tolerations: tuple[TaintToleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    scheduling_gates: tuple[str, ...] = ()
    resource_claims: bool = False
    """Whether the pod claims devices by dynamic resource allocation."""
    priority: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    scheduler_name: str = "default-scheduler"
    termination_grace_seconds: int = 30
    text: bytes = b""
    """The JSON that it was made from, which identifies the class."""

    def __hash__(self) -> int:
        return hash(self.text)


class PodOwner(msgspec.Struct, frozen=True, gc=False):
    """The controller that owns a pod."""

    kind: str
    name: str
    uid: str


class PodState(msgspec.Struct, frozen=True, gc=False):
    """What the kubelet and the scheduler report of a pod; most pods are in one of a few states."""

    phase: str = ""
    ready: bool = False
    unschedulable: bool = False
    """Whether the scheduler found no node for it."""
    nominated_node: str = ""
    deleted_at: int | None = None
    """The deletion timestamp."""


class PodDetails(msgspec.Struct, frozen=True, gc=False):
    """Fields that few pods have."""

    claims: tuple[str, ...] = ()
    """Names of the PersistentVolumeClaims that its volumes use."""
    annotations: Mapping[str, str] = NO_LABELS
    """Those of `POD_ANNOTATIONS` that it has."""


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """A pod."""

    pod_class: PodSchedulingClass = PodSchedulingClass()
    labels: Mapping[str, str] = NO_LABELS
    node: str = ""
    """The node that it is bound to; empty: none yet."""
    owner: PodOwner | None = None
    state: PodState = PodState()
    details: PodDetails = PodDetails()
    created_at: int = 0

    @property
    def is_finished(self) -> bool:
        """Whether all containers have ended for good: the pod takes nothing of its node any more."""
        return self.state.phase in _FINISHED

    @property
    def is_terminating(self) -> bool:
        """Whether it has been deleted and has not ended yet."""
        return self.state.deleted_at is not None


class _Annotations(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The annotations that are read; all others are skipped while decoding."""

    consume: str | None = msgspec.field(default=None, name=CONSUME_ANNOTATION)
    provisioning_class: str | None = msgspec.field(default=None, name=CLASS_ANNOTATION)
    do_not_disrupt: str | None = msgspec.field(default=None, name="karpenter.sh/do-not-disrupt")
    safe_to_evict: str | None = msgspec.field(default=None, name="cluster-autoscaler.kubernetes.io/safe-to-evict")
    deletion_cost: str | None = msgspec.field(default=None, name="controller.kubernetes.io/pod-deletion-cost")
    paused: str | None = msgspec.field(default=None, name=PAUSED_ANNOTATION)


POD_ANNOTATIONS = tuple(field.encode_name for field in msgspec.structs.fields(_Annotations))
"""The annotations of pods that records keep."""


class _OwnerReference(DecodedPart):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class _PodMetadata(DecodedPart):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: _Annotations | None = None
    owner_references: tuple[_OwnerReference, ...] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None


class _Resources(DecodedPart):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class _Port(DecodedPart):
    host_port: int | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class _Container(DecodedPart):
    resources: _Resources | None = None
    ports: tuple[_Port, ...] | None = None
    restart_policy: str | None = None

    @property
    def sidecar(self) -> bool:
        """Whether an init container keeps running beside the others."""
        return self.restart_policy == "Always"


class _Gate(DecodedPart):
    name: str = ""


class _ClaimVolume(DecodedPart):
    claim_name: str = ""


class _Volume(DecodedPart):
    name: str = ""
    persistent_volume_claim: _ClaimVolume | None = None
    ephemeral: dict[str, Any] | None = None


class _PodSpec(DecodedPart):
    containers: tuple[_Container, ...]
    init_containers: tuple[_Container, ...] | None = None
    resources: _Resources | None = None
    overhead: dict[str, str | int | float] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    topology_spread_constraints: tuple[SpreadConstraint, ...] | None = None
    tolerations: tuple[TaintToleration, ...] | None = None
    scheduling_gates: tuple[_Gate, ...] | None = None
    resource_claims: tuple[_Gate, ...] | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    termination_grace_period_seconds: int | None = None
    # What differs between the pods of a template:
    node_name: str | None = None
    volumes: tuple[_Volume, ...] | None = None


class _Condition(DecodedPart):
    type: str = ""
    status: str = ""
    reason: str | None = None


class _PodStatus(DecodedPart):
    phase: str | None = None
    conditions: tuple[_Condition, ...] | None = None
    nominated_node_name: str | None = None


class PodView(DecodedPart):
    """A pod as the API server sends it, as far as records are made of it."""

    metadata: _PodMetadata
    spec: _PodSpec
    status: _PodStatus | None = None


def pod_record(pod: PodView) -> PodRecord:
    """Make the record of a pod."""
    metadata, spec = pod.metadata, pod.spec
    shared = msgspec.structs.replace(spec, node_name=None, volumes=None)
    return PodRecord(
        pod_class=_pod_class(msgspec.json.encode(shared)),
        labels=intern_labels(metadata.labels),
        node=intern(spec.node_name) if spec.node_name else "",
        owner=_controller_of(metadata.owner_references or ()),
        state=_state(pod.status or _NO_STATUS, metadata.deletion_timestamp),
        details=_details(metadata, spec.volumes),
        created_at=int(metadata.creation_timestamp.timestamp()) if metadata.creation_timestamp is not None else 0,
    )


def pod_class_of(spec: Mapping[str, Any]) -> PodSchedulingClass:
    """Return the class of a pod with this spec, which is plain JSON, whether or not the pod is bound."""
    try:
        return _pod_class(msgspec.json.encode({name: spec[name] for name in spec if name not in _OF_ONE_POD}))
    except msgspec.ValidationError:
        return _UNREADABLE


_OF_ONE_POD = ("nodeName", "volumes")
"""Fields of the spec that differ between the pods of a template."""
_UNREADABLE = PodSchedulingClass(unreadable=True)
_NO_STATUS = _PodStatus()
_NO_DETAILS = PodDetails()
_NO_ANNOTATIONS = _Annotations()


@lru_cache(maxsize=_SHARED_CLASSES)
def _pod_class(text: bytes) -> PodSchedulingClass:
    spec = msgspec.json.decode(text, type=_PodSpec)
    unreadable = False
    try:
        requests: Mapping[str, Quantity] = MappingProxyType(pod_requests(spec))
    except AmountError:
        requests, unreadable = _NO_REQUESTS, True
    grace = spec.termination_grace_period_seconds
    return PodSchedulingClass(
        requests=requests,
        unreadable=unreadable,
        node_selector=intern_labels(spec.node_selector),
        affinity=spec.affinity,
        topology_spread=spec.topology_spread_constraints or (),
        tolerations=spec.tolerations or (),
        host_ports=_host_ports(spec),
        scheduling_gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
        resource_claims=bool(spec.resource_claims),
        priority=spec.priority or 0,
        preemption_policy=spec.preemption_policy or "PreemptLowerPriority",
        scheduler_name=spec.scheduler_name or "default-scheduler",
        termination_grace_seconds=30 if grace is None else grace,
        text=text,
    )


def _host_ports(spec: _PodSpec) -> tuple[HostPort, ...]:
    """List the ports that the pod takes of its node; of init containers only sidecars keep theirs."""
    running = (*spec.containers, *(container for container in spec.init_containers or () if container.sidecar))
    return tuple(
        HostPort(port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")  # noqa: S104
        for container in running
        for port in container.ports or ()
        if port.host_port
    )


def _controller_of(references: tuple[_OwnerReference, ...]) -> PodOwner | None:
    for reference in references:
        if reference.controller:
            return _owner(reference.kind, reference.name, reference.uid)
    return None


@lru_cache(maxsize=_SHARED_PARTS)
def _owner(kind: str, name: str, uid: str) -> PodOwner:
    return PodOwner(intern(kind), name, uid)


def _state(status: _PodStatus, deleted: str | None) -> PodState:
    ready = unschedulable = False
    for condition in status.conditions or ():
        if condition.type == "Ready":
            ready = condition.status == "True"
        elif condition.type == "PodScheduled":
            unschedulable = condition.status == "False" and condition.reason == "Unschedulable"
    return _shared_state(status.phase or "", ready, unschedulable, status.nominated_node_name or "", deleted)


@lru_cache(maxsize=_SHARED_PARTS)
def _shared_state(phase: str, ready: bool, unschedulable: bool, nominated: str, deleted: str | None) -> PodState:
    return PodState(intern(phase), ready, unschedulable, intern(nominated), instant_in(deleted))


def _details(metadata: _PodMetadata, volumes: tuple[_Volume, ...] | None) -> PodDetails:
    annotations = metadata.annotations
    if not volumes and (annotations is None or annotations == _NO_ANNOTATIONS):
        return _NO_DETAILS
    claims = tuple(claim for volume in volumes or () if (claim := _claim(metadata.name, volume)))
    kept = intern_labels(msgspec.to_builtins(annotations)) if annotations is not None else NO_LABELS
    return PodDetails(claims, kept) if claims or kept else _NO_DETAILS


def _claim(pod: str, volume: _Volume) -> str:
    """Name the claim that a volume uses; empty where it uses none. That of an ephemeral volume is named after both."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod}-{volume.name}" if volume.ephemeral is not None else ""
