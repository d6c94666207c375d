"""Views of nodes and namespaces in manifests. `node_record` has what is kept of running nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from springtide.apis.kinds import NonEmpty, Quantity, View, doc
from springtide.apis.meta.types import Object


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


class NodeStatus(View, kw_only=True):
    """Capacity of a node."""

    __opaque__ = (
        "addresses",
        "conditions",
        "config",
        "daemonEndpoints",
        "declaredFeatures",
        "features",
        "images",
        "nodeInfo",
        "phase",
        "runtimeHandlers",
        "volumesAttached",
        "volumesInUse",
    )

    capacity: Annotated[dict[str, Quantity] | None, doc("Amounts that the machine has.")] = None
    allocatable: Annotated[dict[str, Quantity] | None, doc("Amounts that pods may request.")] = None


class Node(Object, kw_only=True):
    """A machine of the cluster."""

    spec: Annotated[NodeSpec | None, doc("Identity, taints and schedulability.")] = None
    status: Annotated[NodeStatus | None, doc("Capacity.")] = None
