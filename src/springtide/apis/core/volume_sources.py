"""Views of what pods say about volumes in manifests: their sources, and the claims that they make.

Sources that decide nothing about scheduling are known by name.
"""

from __future__ import annotations

from typing import Annotated

from springtide.apis.kinds import NonEmpty, Quantity, View, doc
from springtide.apis.meta.types import LabelSelectorView, ObjectMeta


class VolumeResources(View, kw_only=True):
    """How much storage a claim requests."""

    requests: Annotated[dict[str, Quantity] | None, doc("What the volume must have at least.")] = None
    limits: Annotated[dict[str, Quantity] | None, doc("What the volume may have at most.")] = None


class PersistentVolumeClaimSpec(View, kw_only=True):
    """Which volume a claim needs."""

    __opaque__ = ("dataSource", "dataSourceRef", "volumeAttributesClassName")

    access_modes: Annotated[
        tuple[str, ...] | None, doc("ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod.")
    ] = None
    resources: Annotated[VolumeResources | None, doc("How much storage.")] = None
    storage_class_name: Annotated[str | None, doc("Name of the StorageClass; the default class if not set.")] = None
    volume_name: Annotated[str | None, doc("Name of the PersistentVolume.")] = None
    volume_mode: Annotated[str | None, doc("Filesystem or Block.")] = None
    selector: Annotated[LabelSelectorView | None, doc("Which existing volumes fit.")] = None


class EphemeralClaimTemplate(View, kw_only=True):
    """The claim that is created for a pod."""

    metadata: Annotated[ObjectMeta | None, doc("Labels and annotations of the claim.")] = None
    spec: Annotated[PersistentVolumeClaimSpec, doc("Which volume is needed.")]


class VolumeClaimTemplate(EphemeralClaimTemplate, kw_only=True):
    """The claim that is created for each pod of a StatefulSet."""

    __opaque__ = ("apiVersion", "kind", "status")


class ClaimVolumeSource(View, kw_only=True):
    """A claim in the namespace of the pod."""

    claim_name: Annotated[NonEmpty, doc("Name of the PersistentVolumeClaim.")]
    read_only: Annotated[bool | None, doc("Whether it is mounted read-only.")] = None


class EphemeralVolumeSource(View, kw_only=True):
    """A claim that is created and deleted with the pod."""

    volume_claim_template: Annotated[EphemeralClaimTemplate | None, doc("The claim.")] = None


class CsiVolumeSource(View, kw_only=True):
    """A volume that a CSI driver makes for the pod alone; it does not count for the limits of a node."""

    __opaque__ = ("nodePublishSecretRef",)

    driver: Annotated[NonEmpty, doc("Name of the CSI driver.")]
    fs_type: Annotated[str | None, doc("File system.")] = None
    read_only: Annotated[bool | None, doc("Whether it is mounted read-only.")] = None
    volume_attributes: Annotated[dict[str, str] | None, doc("Parameters of the driver.")] = None


class EmptyDirVolumeSource(View, kw_only=True):
    """A directory that lives as long as the pod."""

    medium: Annotated[str | None, doc("Memory, HugePages, or the disk of the node if not set.")] = None
    size_limit: Annotated[Quantity | None, doc("What may be stored; the scheduler does not count it.")] = None


class HostPathVolumeSource(View, kw_only=True):
    """A file or directory of the node."""

    path: Annotated[str, doc("The path on the node.")]
    type: Annotated[str | None, doc("What must be there.")] = None


class KeyToPath(View, kw_only=True):
    """A key of a ConfigMap or Secret, and its file."""

    key: Annotated[str, doc("The key.")]
    path: Annotated[str, doc("The file, relative to the volume.")]
    mode: Annotated[int | None, doc("Mode bits of the file.")] = None


class ConfigMapVolumeSource(View, kw_only=True):
    """The keys of a ConfigMap as files."""

    name: Annotated[str | None, doc("Name of the ConfigMap.")] = None
    items: Annotated[tuple[KeyToPath, ...] | None, doc("The keys; all if not set.")] = None
    default_mode: Annotated[int | None, doc("Mode bits of the files.")] = None
    optional: Annotated[bool | None, doc("Whether it may be missing.")] = None


class SecretVolumeSource(View, kw_only=True):
    """The keys of a Secret as files."""

    secret_name: Annotated[str | None, doc("Name of the Secret.")] = None
    items: Annotated[tuple[KeyToPath, ...] | None, doc("The keys; all if not set.")] = None
    default_mode: Annotated[int | None, doc("Mode bits of the files.")] = None
    optional: Annotated[bool | None, doc("Whether it may be missing.")] = None


class Volume(View, kw_only=True):
    """A volume that containers of the pod can mount."""

    __opaque__ = (
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "downwardAPI",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "gitRepo",
        "glusterfs",
        "image",
        "iscsi",
        "nfs",
        "photonPersistentDisk",
        "portworxVolume",
        "projected",
        "quobyte",
        "rbd",
        "scaleIO",
        "storageos",
        "vsphereVolume",
    )
    __mistaken__ = {"claimName": "write `persistentVolumeClaim:` and put `claimName` under it"}

    name: Annotated[NonEmpty, doc("Name, unique in the pod.")]
    persistent_volume_claim: Annotated[ClaimVolumeSource | None, doc("A claim.")] = None
    ephemeral: Annotated[EphemeralVolumeSource | None, doc("A claim of the pod's own.")] = None
    csi: Annotated[CsiVolumeSource | None, doc("A volume of a CSI driver.")] = None
    empty_dir: Annotated[EmptyDirVolumeSource | None, doc("A directory of the pod's own.")] = None
    host_path: Annotated[HostPathVolumeSource | None, doc("A path of the node.")] = None
    config_map: Annotated[ConfigMapVolumeSource | None, doc("A ConfigMap.")] = None
    secret: Annotated[SecretVolumeSource | None, doc("A Secret.")] = None
