"""Nodes and namespaces, as far as ours refer to them."""

from __future__ import annotations

from typing import Annotated, Literal

from springtide.apis.kinds import NonEmpty, Quantity, View, doc
from springtide.apis.meta.types import Object


class Namespace(Object, kw_only=True):
    """A namespace."""

    __opaque__ = ("spec", "status")


class Taint(View, kw_only=True):
    """What keeps pods away from a node."""

    __opaque__ = ("timeAdded",)

    key: Annotated[NonEmpty, doc("Name of the taint.")]
    effect: Annotated[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], doc("What it does to pods.")]
    value: Annotated[str | None, doc("Value of the taint.")] = None


class NodeSpec(View, kw_only=True):
    """What a node is, and whom it takes."""

    __opaque__ = ("configSource", "externalID", "podCIDR", "podCIDRs")

    provider_id: Annotated[str | None, doc("The machine behind the node, as its provider names it.")] = None
    taints: Annotated[tuple[Taint, ...] | None, doc("What keeps pods away.")] = None
    unschedulable: Annotated[bool, doc("Whether new pods are kept away.")] = False


class NodeStatus(View, kw_only=True):
    """What a node offers."""

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

    capacity: Annotated[dict[str, Quantity] | None, doc("What the machine has.")] = None
    allocatable: Annotated[dict[str, Quantity] | None, doc("What pods may ask for.")] = None


class Node(Object, kw_only=True):
    """A machine of the cluster."""

    spec: Annotated[NodeSpec | None, doc("What it is.")] = None
    status: Annotated[NodeStatus | None, doc("What it offers.")] = None
