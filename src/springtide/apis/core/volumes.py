"""Volumes, their claims and classes: views in manifests, and records of what decides on which nodes they can be used.

Disks of the plugins that Kubernetes had before CSI count as volumes of the CSI drivers that replaced them, as on every
cluster since Kubernetes 1.28. VolumeAttachments are not kept: the volumes of the pods of a node are counted instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated

import msgspec

from springtide.apis.core.affinity import NodeSelectorView
from springtide.apis.core.interning import NO_LABELS, intern_strings
from springtide.apis.core.pod_record import (
    IN_TREE_DRIVERS,
    ClaimSpec,
    DiskSources,
    EphemeralClaim,
    NodeSelector,
    ObjectSelector,
    disk_of,
)
from springtide.apis.core.volume_sources import HostPathVolumeSource, PersistentVolumeClaimSpec
from springtide.apis.kinds import NonEmpty, View, doc
from springtide.apis.kinds import Quantity as QuantityText
from springtide.apis.meta.types import DecodedPart, Object
from springtide.quantity import AmountError, Quantity

READ_WRITE_ONCE_POD = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_PROVISIONERS: Mapping[str, str] = MappingProxyType(
    {
        "kubernetes.io/aws-ebs": IN_TREE_DRIVERS["awsElasticBlockStore"],
        "kubernetes.io/azure-disk": IN_TREE_DRIVERS["azureDisk"],
        "kubernetes.io/azure-file": IN_TREE_DRIVERS["azureFile"],
        "kubernetes.io/cinder": IN_TREE_DRIVERS["cinder"],
        "kubernetes.io/gce-pd": IN_TREE_DRIVERS["gcePersistentDisk"],
        "kubernetes.io/portworx-volume": IN_TREE_DRIVERS["portworxVolume"],
        "kubernetes.io/vsphere-volume": IN_TREE_DRIVERS["vsphereVolume"],
    }
)


class PersistentVolumeClaim(Object, kw_only=True):
    """Storage that pods of a namespace use."""

    __opaque__ = ("status",)

    spec: Annotated[PersistentVolumeClaimSpec, doc("Which volume is needed.")]


class VolumeNodeAffinityView(View, kw_only=True):
    """The nodes that a volume can be used on."""

    required: Annotated[NodeSelectorView | None, doc("What the node must match.")] = None


class ClaimReferenceView(View, kw_only=True):
    """The claim that a volume is for."""

    __opaque__ = ("apiVersion", "fieldPath", "kind", "resourceVersion", "uid")

    namespace: Annotated[str | None, doc("Namespace of the claim.")] = None
    name: Annotated[str | None, doc("Name of the claim.")] = None


class PersistentCsiSource(View, kw_only=True):
    """A volume of a CSI driver."""

    __opaque__ = (
        "controllerExpandSecretRef",
        "controllerPublishSecretRef",
        "fsType",
        "nodeExpandSecretRef",
        "nodePublishSecretRef",
        "nodeStageSecretRef",
        "readOnly",
        "volumeAttributes",
    )

    driver: Annotated[NonEmpty, doc("Name of the CSI driver.")]
    volume_handle: Annotated[NonEmpty, doc("What identifies the volume to its driver.")]


class LocalVolumeSource(View, kw_only=True):
    """A disk of a node."""

    path: Annotated[str, doc("The path on the node.")]
    fs_type: Annotated[str | None, doc("File system.")] = None


class PersistentVolumeSpec(View, kw_only=True):
    """What a volume is, and for which claim."""

    __opaque__ = (
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "glusterfs",
        "iscsi",
        "mountOptions",
        "nfs",
        "persistentVolumeReclaimPolicy",
        "photonPersistentDisk",
        "portworxVolume",
        "quobyte",
        "rbd",
        "scaleIO",
        "storageos",
        "volumeAttributesClassName",
        "vsphereVolume",
    )

    capacity: Annotated[dict[str, QuantityText] | None, doc("How much storage it has.")] = None
    access_modes: Annotated[tuple[str, ...] | None, doc("How it can be used.")] = None
    claim_ref: Annotated[ClaimReferenceView | None, doc("The claim that it is bound to.")] = None
    storage_class_name: Annotated[str | None, doc("Name of its StorageClass; none if not set.")] = None
    node_affinity: Annotated[VolumeNodeAffinityView | None, doc("The nodes that it can be used on.")] = None
    volume_mode: Annotated[str | None, doc("Filesystem or Block.")] = None
    csi: Annotated[PersistentCsiSource | None, doc("A volume of a CSI driver.")] = None
    local: Annotated[LocalVolumeSource | None, doc("A disk of a node.")] = None
    host_path: Annotated[HostPathVolumeSource | None, doc("A path of the node.")] = None


class PersistentVolume(Object, kw_only=True):
    """A piece of storage."""

    __opaque__ = ("status",)

    spec: Annotated[PersistentVolumeSpec, doc("What it is.")]


class TopologyRequirementView(View, kw_only=True):
    """The values that a node label may have."""

    key: Annotated[str, doc("The label.")]
    values: Annotated[tuple[str, ...], doc("The values.")]


class TopologyTermView(View, kw_only=True):
    """Requirements on a node, all of which must hold."""

    match_label_expressions: Annotated[tuple[TopologyRequirementView, ...] | None, doc("The requirements.")] = None


class StorageClass(Object, kw_only=True):
    """How volumes are provisioned."""

    __opaque__ = ("allowVolumeExpansion", "mountOptions", "parameters", "reclaimPolicy")

    provisioner: Annotated[NonEmpty, doc("The CSI driver, or kubernetes.io/no-provisioner.")]
    volume_binding_mode: Annotated[
        str | None, doc("WaitForFirstConsumer, or Immediate if not set: when claims are bound.")
    ] = None
    allowed_topologies: Annotated[tuple[TopologyTermView, ...] | None, doc("Where volumes can be provisioned.")] = None


class VolumeLimit(View, kw_only=True):
    """How much of a CSI driver a node can use."""

    count: Annotated[int | None, doc("How many volumes can be attached.")] = None


class CSINodeDriver(View, kw_only=True):
    """A CSI driver of a node."""

    __opaque__ = ("nodeID", "topologyKeys")

    name: Annotated[NonEmpty, doc("Name of the driver.")]
    allocatable: Annotated[VolumeLimit | None, doc("How many volumes can be attached; no limit if not set.")] = None


class CSINodeSpec(View, kw_only=True):
    """The CSI drivers of a node."""

    drivers: Annotated[tuple[CSINodeDriver, ...] | None, doc("The drivers.")] = None


class CSINode(Object, kw_only=True):
    """The CSI drivers of the node of the same name."""

    spec: Annotated[CSINodeSpec, doc("The drivers.")]


class VolumeClaimRecord(msgspec.Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim."""

    namespace: str = ""
    name: str = ""
    storage_class: str | None = None
    """None: not set, which is the default class; empty: volumes without a class only."""
    volume_name: str = ""
    """The volume that it is, or is to be, bound to."""
    bound: bool = False
    """Whether binding is complete; a claim that only names a volume is not bound."""
    access_modes: tuple[str, ...] = ()
    requested: Quantity | None = None
    selector: ObjectSelector | None = None
    """Which existing volumes may be bound; a claim with one is never provisioned."""
    volume_mode: str = "Filesystem"
    selected_node: str = ""
    """The node for which the scheduler has asked to provision a volume."""
    deleting: bool = False

    @property
    def for_one_pod(self) -> bool:
        """Whether only one pod of the cluster may use it."""
        return READ_WRITE_ONCE_POD in self.access_modes


class VolumeRecord(msgspec.Struct, frozen=True, gc=False):
    """A PersistentVolume."""

    name: str = ""
    driver: str = ""
    """The CSI driver that attaches it; empty for volumes that are not attached, such as `nfs` and `local`."""
    handle: str = ""
    """What identifies it to its driver; pods with the same volume count it once."""
    node_affinity: NodeSelector | None = None
    labels: Mapping[str, str] = NO_LABELS
    """All of its labels; those of zone and region decide, their values separated by `__`."""
    claim: tuple[str, str] | None = None
    """Namespace and name of the claim that it is, or is to be, bound to."""
    storage_class: str = ""
    capacity: Quantity | None = None
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    phase: str = ""
    deleting: bool = False


class TopologyRequirement(DecodedPart):
    """The values that a node label may have."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(DecodedPart):
    """Requirements on a node, all of which must hold."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClassRecord(msgspec.Struct, frozen=True, gc=False):
    """A StorageClass."""

    name: str = ""
    provisioner: str = ""
    binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()
    """Where volumes can be provisioned: one of these must hold; empty: on all nodes."""
    is_default: bool = False
    created_at: int = 0

    @property
    def driver(self) -> str:
        """The CSI driver whose volumes it provisions."""
        return _PROVISIONERS.get(self.provisioner, self.provisioner)

    @property
    def waits_for_pod(self) -> bool:
        """Whether claims are bound where their first pod is scheduled."""
        return self.binding_mode == WAIT_FOR_FIRST_CONSUMER

    @property
    def provisions(self) -> bool:
        """Whether volumes are provisioned on demand; otherwise only existing ones are bound."""
        return self.provisioner not in ("", "kubernetes.io/no-provisioner")


class CSINodeRecord(msgspec.Struct, frozen=True, gc=False):
    """The CSI drivers of a node, which has the same name."""

    name: str = ""
    limits: Mapping[str, int] = MappingProxyType({})
    """How many volumes can be attached, by driver; drivers that are not listed have no limit."""
    drivers: tuple[str, ...] = ()


def default_class(classes: Iterable[StorageClassRecord]) -> StorageClassRecord | None:
    """Return the class of claims that set none: of several defaults the newest, then the first by name."""
    defaults = [one for one in classes if one.is_default]
    return min(defaults, key=lambda one: (-one.created_at, one.name), default=None)


class _ClaimAnnotations(DecodedPart):
    bind_completed: str | None = msgspec.field(default=None, name="pv.kubernetes.io/bind-completed")
    selected_node: str | None = msgspec.field(default=None, name="volume.kubernetes.io/selected-node")
    storage_class: str | None = msgspec.field(default=None, name=_CLASS_ANNOTATION)


class _ClaimMetadata(DecodedPart):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    annotations: _ClaimAnnotations | None = None
    deletion_timestamp: str | None = None


class _Phase(DecodedPart):
    phase: str | None = None


class VolumeClaimView(DecodedPart):
    """A PersistentVolumeClaim as the API server sends it, as far as records are made of it."""

    metadata: _ClaimMetadata
    spec: ClaimSpec = ClaimSpec()
    status: _Phase | None = None


def volume_claim_record(claim: VolumeClaimView) -> VolumeClaimRecord:
    """Make the record of a claim."""
    metadata, annotations = claim.metadata, claim.metadata.annotations or _ClaimAnnotations()
    made = _requested_claim(metadata.namespace or "", metadata.name, claim.spec)
    phase = claim.status.phase if claim.status is not None else None
    return msgspec.structs.replace(
        made,
        storage_class=made.storage_class if annotations.storage_class is None else annotations.storage_class,
        bound=bool(made.volume_name) and (phase == "Bound" or annotations.bind_completed is not None),
        selected_node=annotations.selected_node or "",
        deleting=metadata.deletion_timestamp is not None,
    )


def ephemeral_claim_record(namespace: str, claim: EphemeralClaim) -> VolumeClaimRecord:
    """Make the record of a claim that will be created for a pod."""
    return _requested_claim(namespace, claim.name, claim.spec)


def _requested_claim(namespace: str, name: str, spec: ClaimSpec) -> VolumeClaimRecord:
    requests = spec.resources.requests if spec.resources is not None else None
    return VolumeClaimRecord(
        namespace=namespace,
        name=name,
        storage_class=spec.storage_class_name,
        volume_name=spec.volume_name or "",
        access_modes=spec.access_modes or (),
        requested=_amount(requests.storage if requests is not None else None),
        selector=spec.selector,
        volume_mode=spec.volume_mode or "Filesystem",
    )


class _Metadata(DecodedPart):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _VolumeAnnotations(DecodedPart):
    storage_class: str | None = msgspec.field(default=None, name=_CLASS_ANNOTATION)


class _VolumeMetadata(_Metadata):
    annotations: _VolumeAnnotations | None = None


class _CsiVolume(DecodedPart):
    driver: str = ""
    volume_handle: str = ""


class _ClaimReference(DecodedPart):
    namespace: str = ""
    name: str = ""


class _Capacity(DecodedPart):
    storage: str | int | float | None = None


class _VolumeAffinity(DecodedPart):
    required: NodeSelector | None = None


class _VolumeSpec(DiskSources):
    access_modes: tuple[str, ...] | None = None
    capacity: _Capacity | None = None
    claim_ref: _ClaimReference | None = None
    csi: _CsiVolume | None = None
    node_affinity: _VolumeAffinity | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None


class VolumeView(DecodedPart):
    """A PersistentVolume as the API server sends it, as far as records are made of it."""

    metadata: _VolumeMetadata
    spec: _VolumeSpec = _VolumeSpec()
    status: _Phase | None = None


def volume_record(volume: VolumeView) -> VolumeRecord:
    """Make the record of a volume."""
    metadata, spec = volume.metadata, volume.spec
    disk = None if spec.csi is not None else disk_of(spec)
    driver = spec.csi.driver if spec.csi is not None else disk.driver if disk is not None else ""
    annotated = metadata.annotations.storage_class if metadata.annotations is not None else None
    return VolumeRecord(
        name=metadata.name,
        driver=driver,
        handle=spec.csi.volume_handle if spec.csi is not None else disk.handle if disk is not None else "",
        node_affinity=spec.node_affinity.required if spec.node_affinity is not None else None,
        labels=intern_strings(metadata.labels),
        claim=(spec.claim_ref.namespace, spec.claim_ref.name) if spec.claim_ref is not None else None,
        storage_class=(spec.storage_class_name or "") if annotated is None else annotated,
        capacity=_amount(spec.capacity.storage if spec.capacity is not None else None),
        access_modes=spec.access_modes or (),
        volume_mode=spec.volume_mode or "Filesystem",
        phase=(volume.status.phase if volume.status is not None else None) or "",
        deleting=metadata.deletion_timestamp is not None,
    )


def _amount(text: str | int | float | None) -> Quantity | None:
    try:
        return None if text is None else Quantity.parse(text)
    except AmountError:
        return None


class _ClassAnnotations(DecodedPart):
    is_default: str | None = msgspec.field(default=None, name="storageclass.kubernetes.io/is-default-class")
    was_default: str | None = msgspec.field(default=None, name="storageclass.beta.kubernetes.io/is-default-class")


class _ClassMetadata(_Metadata):
    annotations: _ClassAnnotations | None = None
    creation_timestamp: datetime | None = None


class StorageClassView(DecodedPart):
    """A StorageClass as the API server sends it, as far as records are made of it."""

    metadata: _ClassMetadata
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] | None = None


def storage_class_record(storage_class: StorageClassView) -> StorageClassRecord:
    """Make the record of a storage class."""
    metadata, annotations = storage_class.metadata, storage_class.metadata.annotations or _ClassAnnotations()
    return StorageClassRecord(
        name=metadata.name,
        provisioner=storage_class.provisioner,
        binding_mode=storage_class.volume_binding_mode or "Immediate",
        allowed_topologies=storage_class.allowed_topologies or (),
        is_default="true" in (annotations.is_default, annotations.was_default),
        created_at=int(metadata.creation_timestamp.timestamp()) if metadata.creation_timestamp is not None else 0,
    )


class _Allocatable(DecodedPart):
    count: int | None = None


class _Driver(DecodedPart):
    name: str = ""
    allocatable: _Allocatable | None = None


class _CSINodeSpec(DecodedPart):
    drivers: tuple[_Driver, ...] | None = None


class CSINodeView(DecodedPart):
    """A CSINode as the API server sends it, as far as records are made of it."""

    metadata: _Metadata
    spec: _CSINodeSpec = _CSINodeSpec()


def csi_node_record(node: CSINodeView) -> CSINodeRecord:
    """Make the record of the CSI drivers of a node."""
    drivers = node.spec.drivers or ()
    limits = {
        driver.name: driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    return CSINodeRecord(node.metadata.name, MappingProxyType(limits), tuple(driver.name for driver in drivers))
