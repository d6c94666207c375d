"""Nodes: their view in manifests, and the record that controllers, behaviours and the packer keep in memory.

`NodeView` is the type that the API server's JSON is decoded as; `node_record` makes the record of it. Nodes of one
machine type share the mappings of their amounts. Pressure and network conditions are not kept: taints that the node
controller sets say the same to the scheduler. Namespaces are here, too: their labels decide which pods affinity counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from springtide.apis.core.interning import NO_LABELS, intern_strings
from springtide.apis.core.resources import amounts
from springtide.apis.kinds import NonEmpty, Quantity, View, doc
from springtide.apis.meta.times import instant_in
from springtide.apis.meta.types import PAUSED_ANNOTATION, DecodedPart, Object
from springtide.quantity import Quantity as Amount

_SHARED_AMOUNTS = 4096
_NO_AMOUNTS: Mapping[str, Amount] = MappingProxyType({})


class Namespace(Object, kw_only=True):
    """A namespace."""

    __opaque__ = ("spec", "status")


class Taint(View, kw_only=True):
    """A taint, which keeps pods away that do not tolerate it."""

    __opaque__ = ("timeAdded",)

    key: Annotated[NonEmpty, doc("Name of the taint.")]
    effect: Annotated[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], doc("What it does to pods.")]
    value: Annotated[str | None, doc("Value of the taint.")] = None


class NodeSpec(View, kw_only=True):
    """Identity, taints and schedulability of a node."""

    __opaque__ = ("configSource", "externalID", "podCIDR", "podCIDRs")

    provider_id: Annotated[str | None, doc("The machine behind the node, as its provider names it.")] = None
    taints: Annotated[tuple[Taint, ...] | None, doc("Taints, which keep pods away.")] = None
    unschedulable: Annotated[bool, doc("Whether new pods are kept away.")] = False


class NodeCondition(View, kw_only=True):
    """One observation about a node."""

    type: Annotated[str, doc("What is observed, such as Ready or MemoryPressure.")]
    status: Annotated[str, doc("Whether it holds: True, False or Unknown.")]
    reason: Annotated[str | None, doc("Why, in one CamelCase word.")] = None
    message: Annotated[str | None, doc("Why, in a sentence.")] = None
    last_heartbeat_time: Annotated[str | None, doc("When it was observed last.")] = None
    last_transition_time: Annotated[str | None, doc("When the status last changed.")] = None


class NodeSystemInfo(View, kw_only=True):
    """The software of a node."""

    __opaque__ = ("bootID", "machineID", "swap", "systemUUID")

    architecture: Annotated[str | None, doc("The architecture, such as amd64.")] = None
    container_runtime_version: Annotated[str | None, doc("Name and version of the container runtime.")] = None
    kernel_version: Annotated[str | None, doc("Version of the kernel.")] = None
    kube_proxy_version: Annotated[str | None, doc("Version of kube-proxy; no longer set.")] = None
    kubelet_version: Annotated[str | None, doc("Version of the kubelet.")] = None
    operating_system: Annotated[str | None, doc("The operating system, linux or windows.")] = None
    os_image: Annotated[str | None, doc("The image of the operating system.")] = None


class NodeAddress(View, kw_only=True):
    """An address of a node."""

    type: Annotated[str, doc("Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.")]
    address: Annotated[str, doc("The address.")]


class NodeStatus(View, kw_only=True):
    """Capacity and condition of a node."""

    __opaque__ = (
        "config",
        "daemonEndpoints",
        "declaredFeatures",
        "features",
        "images",
        "phase",
        "runtimeHandlers",
        "volumesAttached",
        "volumesInUse",
    )

    capacity: Annotated[dict[str, Quantity] | None, doc("Amounts that the machine has.")] = None
    allocatable: Annotated[dict[str, Quantity] | None, doc("Amounts that pods may request.")] = None
    conditions: Annotated[tuple[NodeCondition, ...] | None, doc("Observations; Ready decides.")] = None
    addresses: Annotated[tuple[NodeAddress, ...] | None, doc("Addresses.")] = None
    node_info: Annotated[NodeSystemInfo | None, doc("The software of the node.")] = None


class Node(Object, kw_only=True):
    """A machine of the cluster."""

    spec: Annotated[NodeSpec | None, doc("Identity, taints and schedulability.")] = None
    status: Annotated[NodeStatus | None, doc("Capacity and condition.")] = None


class NamespaceRecord(msgspec.Struct, frozen=True, gc=False):
    """A namespace, whose labels affinity terms select."""

    name: str = ""
    labels: Mapping[str, str] = NO_LABELS
    deleting: bool = False


class NodeTaint(msgspec.Struct, frozen=True, gc=False):
    """A taint of a node."""

    key: str
    effect: str
    value: str = ""
    added_at: int | None = None


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """A node."""

    name: str = ""
    labels: Mapping[str, str] = NO_LABELS
    annotations: Mapping[str, str] = NO_LABELS
    """Those of `NODE_ANNOTATIONS` that it has."""
    taints: tuple[NodeTaint, ...] = ()
    capacity: Mapping[str, Amount] = _NO_AMOUNTS
    allocatable: Mapping[str, Amount] = _NO_AMOUNTS
    """What pods may request in total."""
    unschedulable: bool = False
    """Whether the node is cordoned."""
    ready: bool = False
    """Whether its condition `Ready` is true."""
    provider_id: str = ""
    created_at: int = 0
    deleted_at: int | None = None
    """The deletion timestamp."""

    @property
    def is_usable(self) -> bool:
        """Whether it counts as capacity: it is ready, neither cordoned nor deleted."""
        return self.ready and not self.unschedulable and not self.is_terminating

    @property
    def is_terminating(self) -> bool:
        """Whether it has been deleted and is not gone yet."""
        return self.deleted_at is not None


class _Annotations(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The annotations that are read; all others are skipped while decoding."""

    do_not_disrupt: str | None = msgspec.field(default=None, name="karpenter.sh/do-not-disrupt")
    scale_down_disabled: str | None = msgspec.field(
        default=None, name="cluster-autoscaler.kubernetes.io/scale-down-disabled"
    )
    paused: str | None = msgspec.field(default=None, name=PAUSED_ANNOTATION)


NODE_ANNOTATIONS = tuple(field.encode_name for field in msgspec.structs.fields(_Annotations))
"""The annotations of nodes that records keep."""


class _NodeMetadata(DecodedPart):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: _Annotations | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None


class _Taint(DecodedPart):
    key: str
    effect: str
    value: str | None = None
    time_added: str | None = None


class _NodeSpec(DecodedPart):
    taints: tuple[_Taint, ...] | None = None
    unschedulable: bool | None = None
    provider_id: str | None = msgspec.field(default=None, name="providerID")


class _Condition(DecodedPart):
    type: str = ""
    status: str = ""


class _NodeStatus(DecodedPart):
    capacity: dict[str, str | int | float] | None = None
    allocatable: dict[str, str | int | float] | None = None
    conditions: tuple[_Condition, ...] | None = None


class NodeView(DecodedPart):
    """A node as the API server sends it, as far as records are made of it."""

    metadata: _NodeMetadata
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.metadata.name

    @property
    def ready(self) -> bool:
        """Whether its condition `Ready` is true."""
        return any(one.type == "Ready" and one.status == "True" for one in self.status.conditions or ())

    @property
    def is_usable(self) -> bool:
        """Whether it counts as capacity: it is ready, neither cordoned nor deleted."""
        return self.ready and not self.spec.unschedulable and not self.is_terminating

    @property
    def is_terminating(self) -> bool:
        """Whether it has been deleted and is not gone yet."""
        return self.metadata.deletion_timestamp is not None


class _NamespaceMetadata(DecodedPart):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class NamespaceView(DecodedPart):
    """A namespace as the API server sends it, as far as records are made of it."""

    metadata: _NamespaceMetadata


def namespace_record(namespace: NamespaceView) -> NamespaceRecord:
    """Make the record of a namespace."""
    metadata = namespace.metadata
    return NamespaceRecord(metadata.name, intern_strings(metadata.labels), metadata.deletion_timestamp is not None)


def node_record(node: NodeView) -> NodeRecord:
    """Make the record of a node; raises `AmountError` for amounts that are not quantities."""
    metadata, spec, status = node.metadata, node.spec, node.status
    return NodeRecord(
        name=metadata.name,
        labels=intern_strings(metadata.labels),
        annotations=intern_strings(msgspec.to_builtins(metadata.annotations or _NO_ANNOTATIONS)),
        taints=tuple(_taint(taint) for taint in spec.taints or ()),
        capacity=_amounts(status.capacity),
        allocatable=_amounts(status.allocatable),
        unschedulable=bool(spec.unschedulable),
        ready=node.ready,
        provider_id=spec.provider_id or "",
        created_at=int(metadata.creation_timestamp.timestamp()) if metadata.creation_timestamp is not None else 0,
        deleted_at=instant_in(metadata.deletion_timestamp),
    )


_NO_ANNOTATIONS = _Annotations()


def _taint(taint: _Taint) -> NodeTaint:
    return NodeTaint(intern(taint.key), intern(taint.effect), taint.value or "", instant_in(taint.time_added))


def _amounts(quantities: Mapping[str, str | int | float] | None) -> Mapping[str, Amount]:
    return _shared_amounts(tuple(sorted(quantities.items()))) if quantities else _NO_AMOUNTS


@lru_cache(maxsize=_SHARED_AMOUNTS)
def _shared_amounts(quantities: tuple[tuple[str, str | int | float], ...]) -> Mapping[str, Amount]:
    return MappingProxyType(amounts(dict(quantities)))
