"""The pod record: what controllers, behaviours and the packer keep of a pod in memory.

A cluster has up to 150,000 pods and every process caches all of them, so a record is small. The fields that decide
where a pod can run are the same for all pods of a template; they are parsed once and shared as a `PodSchedulingClass`.
Labels, owner and status are shared between equal pods as well, and fields that few pods have are in `PodDetails`.

Requests are those of kube-scheduler 1.36: while a pod is resized in place, the largest of what its spec requests, what
the kubelet has allocated and what the containers have. Not kept are CSI volumes within a pod, which no predicate
counts; of claims of devices only the fact is kept.

`PodView` is the type that the API server's JSON is decoded as; `pod_record` makes the record of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Any

import msgspec

from springtide.apis.core.interning import NO_LABELS, intern_labels
from springtide.apis.core.pods import CLASS_ANNOTATION, CONSUME_ANNOTATION
from springtide.apis.core.resources import (
    RequestingContainer,
    amounts,
    largest,
    pod_level_requests,
    pod_requests,
    requests_of,
)
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
    """Effective requests of the whole pod: init containers, sidecars and overhead included.

    Of a pod that runs, read `PodRecord.requests`, which differ while it is resized."""
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
    has_priority: bool = False
    """Whether the priority is set, which the API server does; a manifest usually names the class only."""
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    scheduler_name: str = "default-scheduler"
    termination_grace_seconds: int = 30
    text: bytes = b""
    """The part of the spec that it was made from, as JSON, which identifies the class."""

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


class InlineDisk(msgspec.Struct, frozen=True, gc=False):
    """A disk that a volume of a pod names itself, by one of the plugins that Kubernetes had before CSI."""

    plugin: str
    """The field of the volume, such as `awsElasticBlockStore`."""
    handle: str
    read_only: bool = False
    monitors: tuple[str, ...] = ()
    """The Ceph monitors of an RBD image."""

    @property
    def driver(self) -> str:
        """The CSI driver that attaches it, whose volumes are counted; empty: none."""
        return IN_TREE_DRIVERS.get(self.plugin, "")

    def conflicts_with(self, other: InlineDisk) -> bool:
        """Return whether no node can run a pod with each: the disk is the same and does not allow that."""
        if (self.plugin, self.handle) != (other.plugin, other.handle):
            return False
        if self.plugin == "awsElasticBlockStore":
            return True
        if self.plugin == "rbd" and not set(self.monitors) & set(other.monitors):
            return False
        return self.plugin in _ONE_WRITER and not (self.read_only and other.read_only)


IN_TREE_DRIVERS: Mapping[str, str] = MappingProxyType(
    {
        "awsElasticBlockStore": "ebs.csi.aws.com",
        "azureDisk": "disk.csi.azure.com",
        "azureFile": "file.csi.azure.com",
        "cinder": "cinder.csi.openstack.org",
        "gcePersistentDisk": "pd.csi.storage.gke.io",
        "portworxVolume": "pxd.portworx.com",
        "vsphereVolume": "csi.vsphere.vmware.com",
    }
)
"""The CSI drivers that replaced the plugins, by the field that names a volume of the plugin."""
_ONE_WRITER = ("gcePersistentDisk", "iscsi", "rbd")


class _StorageRequests(DecodedPart):
    storage: str | int | float | None = None


class _StorageResources(DecodedPart):
    requests: _StorageRequests | None = None


class ClaimSpec(DecodedPart):
    """The spec of a PersistentVolumeClaim, as far as it decides on which nodes the claim can be bound."""

    access_modes: tuple[str, ...] | None = None
    resources: _StorageResources | None = None
    selector: ObjectSelector | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None


class EphemeralClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim that is created for a volume of a pod, and what it will request."""

    name: str
    spec: ClaimSpec = ClaimSpec()


class PodDetails(msgspec.Struct, frozen=True, gc=False):
    """Fields that few pods have."""

    claims: tuple[str, ...] = ()
    """Names of the PersistentVolumeClaims that its volumes use, of ephemeral volumes included."""
    annotations: Mapping[str, str] = NO_LABELS
    """Those of `POD_ANNOTATIONS` that it has."""
    ephemeral_claims: tuple[EphemeralClaim, ...] = ()
    """Those of the claims that are created for the pod."""
    disks: tuple[InlineDisk, ...] = ()
    resized: Mapping[str, Quantity] | None = None
    """Effective requests while a resize makes them differ from those of the class."""


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
    def requests(self) -> Mapping[str, Quantity]:
        """Effective requests of the whole pod, also while it is resized."""
        resized = self.details.resized
        return self.pod_class.requests if resized is None else resized

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
    container_port: int | None = None
    host_port: int | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class _Container(DecodedPart):
    resources: _Resources | None = None
    ports: tuple[_Port, ...] | None = None
    restart_policy: str | None = None
    name: str = ""

    @property
    def sidecar(self) -> bool:
        """Whether an init container keeps running beside the others."""
        return self.restart_policy == "Always"


class _Gate(DecodedPart):
    name: str = ""


class _ClaimVolume(DecodedPart):
    claim_name: str = ""


class _ClaimTemplate(DecodedPart):
    spec: ClaimSpec = ClaimSpec()


class _EphemeralVolume(DecodedPart):
    volume_claim_template: _ClaimTemplate = _ClaimTemplate()


class _Disk(DecodedPart):
    """A volume source of any of the plugins that Kubernetes had before CSI."""

    disk_uri: str | None = msgspec.field(default=None, name="diskURI")
    image: str | None = None
    iqn: str | None = None
    monitors: tuple[str, ...] | None = None
    pd_name: str | None = None
    pool: str | None = None
    read_only: bool | None = None
    secret_name: str | None = None
    share_name: str | None = None
    volume_id: str | None = msgspec.field(default=None, name="volumeID")
    volume_path: str | None = None


class DiskSources(DecodedPart):
    """The fields of a volume that name a disk by one of the plugins that Kubernetes had before CSI."""

    aws_elastic_block_store: _Disk | None = None
    azure_disk: _Disk | None = None
    azure_file: _Disk | None = None
    cinder: _Disk | None = None
    gce_persistent_disk: _Disk | None = None
    iscsi: _Disk | None = None
    portworx_volume: _Disk | None = None
    rbd: _Disk | None = None
    vsphere_volume: _Disk | None = None


_DISK_FIELDS = {field.name: field.encode_name for field in msgspec.structs.fields(DiskSources)}


def disk_of(volume: DiskSources) -> InlineDisk | None:
    """Return the disk that a volume of a pod or a PersistentVolume names by a plugin older than CSI, if any."""
    for name, plugin in _DISK_FIELDS.items():
        disk: _Disk | None = getattr(volume, name)
        if disk is not None:
            return InlineDisk(plugin, _handle(plugin, disk), bool(disk.read_only), disk.monitors or ())
    return None


def _handle(plugin: str, disk: _Disk) -> str:
    """Return what identifies the disk; EBS volumes may have their zone in front."""
    if plugin == "rbd":
        return f"{disk.pool or 'rbd'}/{disk.image or ''}"
    if plugin == "azureFile":
        return f"{disk.secret_name or ''}/{disk.share_name or ''}"
    handle = disk.pd_name or disk.volume_id or disk.disk_uri or disk.volume_path or disk.iqn or ""
    return handle.rpartition("/")[2] if plugin == "awsElasticBlockStore" else handle


class _Volume(DiskSources):
    name: str = ""
    persistent_volume_claim: _ClaimVolume | None = None
    ephemeral: _EphemeralVolume | None = None


class PodSpecView(DecodedPart):
    """The spec of a pod as the API server sends it, as far as records are made of it."""

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
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    termination_grace_period_seconds: int | None = None
    # Not part of the class:
    host_network: bool | None = None
    node_name: str | None = None
    volumes: tuple[_Volume, ...] | None = None


class _Condition(DecodedPart):
    type: str = ""
    status: str = ""
    reason: str | None = None


class _ContainerStatus(DecodedPart):
    name: str = ""
    resources: _Resources | None = None
    """What the container has."""
    allocated_resources: dict[str, str | int | float] | None = None


class _PodStatus(DecodedPart):
    phase: str | None = None
    conditions: tuple[_Condition, ...] | None = None
    nominated_node_name: str | None = None
    container_statuses: tuple[_ContainerStatus, ...] | None = None
    init_container_statuses: tuple[_ContainerStatus, ...] | None = None
    resources: _Resources | None = None
    allocated_resources: dict[str, str | int | float] | None = None


class PodView(DecodedPart):
    """A pod as the API server sends it, as far as records are made of it."""

    metadata: _PodMetadata
    spec: PodSpecView
    status: _PodStatus | None = None


def pod_record(pod: PodView) -> PodRecord:
    """Make the record of a pod."""
    metadata, spec, status = pod.metadata, pod.spec, pod.status or _NO_STATUS
    pod_class = _pod_class(msgspec.json.encode(_shared_part(spec)))
    return PodRecord(
        pod_class=pod_class,
        labels=intern_labels(metadata.labels),
        node=intern(spec.node_name) if spec.node_name else "",
        owner=_controller_of(metadata.owner_references or ()),
        state=_state(status, metadata.deletion_timestamp),
        details=_details(metadata, spec.volumes, _resized(spec, status, pod_class)),
        created_at=int(metadata.creation_timestamp.timestamp()) if metadata.creation_timestamp is not None else 0,
    )


def pod_class_of(spec: Mapping[str, Any]) -> PodSchedulingClass:
    """Return the class of a pod with this spec, which is plain JSON, whether or not the pod is bound."""
    try:
        return _class_of_spec(msgspec.json.encode({name: spec[name] for name in spec if name not in _OF_ONE_POD}))
    except msgspec.ValidationError:
        return _UNREADABLE


def pod_details_of(spec: Mapping[str, Any], name: str = "") -> PodDetails:
    """Return what a pod of this name with this spec, which is plain JSON, has in its volumes."""
    try:
        volumes = msgspec.convert(spec.get("volumes"), tuple[_Volume, ...] | None)
    except msgspec.ValidationError:
        return _NO_DETAILS
    return _details(_PodMetadata(name), volumes, None)


def class_with_tolerations(spec: PodSpecView, added: Iterable[TaintToleration]) -> PodSchedulingClass:
    """Return the class of a pod with this spec and more tolerations, as the controllers of some workloads add them."""
    present = spec.tolerations or ()
    wanted = (*present, *(toleration for toleration in added if toleration not in present))
    shared = msgspec.structs.replace(_shared_part(spec), tolerations=wanted or None)
    return _pod_class(msgspec.json.encode(shared))


_OF_ONE_POD = ("nodeName", "volumes")
"""Fields of the spec that differ between the pods of a template."""
_UNREADABLE = PodSchedulingClass(unreadable=True)
_NO_STATUS = _PodStatus()
_NO_DETAILS = PodDetails()
_NO_ANNOTATIONS = _Annotations()


def _shared_part(spec: PodSpecView) -> PodSpecView:
    """Return the part of a spec that decides where the pod can run and that all pods of a template have."""
    host = bool(spec.host_network)
    return msgspec.structs.replace(
        spec,
        containers=tuple([_shared_container(container, host) for container in spec.containers]),
        init_containers=tuple([_shared_container(container, host) for container in spec.init_containers])
        if spec.init_containers
        else None,
        host_network=None,
        node_name=None,
        volumes=None,
    )


def _shared_container(container: _Container, host: bool) -> _Container:
    """Return requests and host ports of a container; on the network of the host all its ports are host ports."""
    ports: tuple[_Port, ...] = ()
    for port in container.ports or ():
        if number := port.host_port or (port.container_port if host else None):
            ports += (_Port(None, number, port.host_ip, port.protocol),)
    return _Container(container.resources, ports or None, container.restart_policy)


@lru_cache(maxsize=_SHARED_CLASSES)
def _class_of_spec(text: bytes) -> PodSchedulingClass:
    return _pod_class(msgspec.json.encode(_shared_part(msgspec.json.decode(text, type=PodSpecView))))


@lru_cache(maxsize=_SHARED_CLASSES)
def _pod_class(text: bytes) -> PodSchedulingClass:
    spec = msgspec.json.decode(text, type=PodSpecView)
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
        has_priority=spec.priority is not None,
        priority_class_name=spec.priority_class_name or "",
        preemption_policy=spec.preemption_policy or "PreemptLowerPriority",
        scheduler_name=spec.scheduler_name or "default-scheduler",
        termination_grace_seconds=30 if grace is None else grace,
        text=text,
    )


def _host_ports(spec: PodSpecView) -> tuple[HostPort, ...]:
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


def _details(
    metadata: _PodMetadata, volumes: tuple[_Volume, ...] | None, resized: Mapping[str, Quantity] | None
) -> PodDetails:
    annotations = metadata.annotations
    if not volumes and resized is None and (annotations is None or annotations == _NO_ANNOTATIONS):
        return _NO_DETAILS
    claims: list[str] = []
    ephemeral: list[EphemeralClaim] = []
    disks: list[InlineDisk] = []
    for volume in volumes or ():
        if volume.persistent_volume_claim is not None:
            claims.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            claims.append(f"{metadata.name}-{volume.name}")
            ephemeral.append(EphemeralClaim(claims[-1], volume.ephemeral.volume_claim_template.spec))
        elif (disk := disk_of(volume)) is not None:
            disks.append(disk)
    kept = intern_labels(msgspec.to_builtins(annotations)) if annotations is not None else NO_LABELS
    if not (claims or disks or kept or resized is not None):
        return _NO_DETAILS
    return PodDetails(tuple(claims), kept, tuple(ephemeral), tuple(disks), resized)


def _resized(spec: PodSpecView, status: _PodStatus, pod_class: PodSchedulingClass) -> Mapping[str, Quantity] | None:
    """Return the effective requests of a pod, where what its containers have makes them differ from its class.

    The kubelet reports the resources of all containers, which nearly always are those of the spec, in the same words.
    """
    if pod_class.unreadable or (
        (status.resources is None or spec.resources is None)
        and _have_what_they_request(spec.containers, status.container_statuses)
        and _have_what_they_request(spec.init_containers, status.init_container_statuses)
    ):
        return None
    try:
        requests = _requests_by_status(spec, status)
    except AmountError:
        return None
    return None if requests == pod_class.requests else MappingProxyType(requests)


def _have_what_they_request(
    containers: tuple[_Container, ...] | None, statuses: tuple[_ContainerStatus, ...] | None
) -> bool:
    """Return whether the spec and the statuses give equal texts; others may still mean equal amounts."""
    if not statuses or not containers:
        return True
    requested = {container.name: container.resources for container in containers}
    for status in statuses:
        if status.resources is not None:
            resources = requested.get(status.name)
            requests = (resources.requests if resources is not None else None) or None
            if (status.resources.requests or None) != requests or (status.allocated_resources or requests) != requests:
                return False
    return True


def _requests_by_status(spec: PodSpecView, status: _PodStatus) -> dict[str, Quantity]:
    """Return the largest of what is requested, allocated and used; of an infeasible resize the spec does not count.

    Ordinary init containers cannot be resized, so what is reported of them does not count.
    """
    sidecars = {container.name for container in spec.init_containers or () if container.sidecar}
    reported = {
        **{each.name: each for each in status.container_statuses or ()},
        **{each.name: each for each in status.init_container_statuses or () if each.name in sidecars},
    }
    infeasible = False
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            infeasible = condition.reason == "Infeasible"
            break

    def of_container(container: RequestingContainer) -> Mapping[str, Quantity]:
        found = reported.get(container.name) if isinstance(container, _Container) else None
        if found is None or found.resources is None:
            return requests_of(container)
        given = largest(amounts(found.resources.requests), amounts(found.allocated_resources))
        return given if infeasible else largest(requests_of(container), given)

    if status.resources is None or not pod_level_requests(spec):
        return pod_requests(spec, of_container)
    whole = largest(amounts(status.resources.requests), amounts(status.allocated_resources))

    def of_pod(name: str, amount: Quantity) -> Quantity:
        given = whole.get(name, _NOTHING)
        return given if infeasible else max(amount, given)

    return pod_requests(spec, of_container, of_pod)


_NOTHING = Quantity.parse(0)
