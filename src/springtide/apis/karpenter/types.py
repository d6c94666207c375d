"""What nodes must be like: requirements, taints and the labels that Karpenter keeps to itself.

NodePool and NodeClaim as `karpenter.sh/v1` has them, which is how they are stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from springtide.apis.core.resources import is_known as is_resource
from springtide.apis.core.resources import meant_resource
from springtide.apis.karpenter.disruption import Disruption, Duration, DurationOrNever
from springtide.apis.kinds import (
    CelRule,
    Count,
    Int64,
    NonEmpty,
    Quantity,
    Time,
    ValidationContext,
    View,
    atomic,
    default,
    doc,
    int32,
    rules,
    text_format,
)
from springtide.apis.meta.types import Conditions, Object
from springtide.apis.problems import Problem, error, warning

LABEL_KEY = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"

NODEPOOL_LABEL = "karpenter.sh/nodepool"
HOSTNAME_LABEL = "kubernetes.io/hostname"
_OWN_DOMAIN = re.compile(r"([a-z0-9-]+\.)*karpenter\.sh/")
_WELL_KNOWN = ("karpenter.sh/capacity-type", NODEPOOL_LABEL)
_BOUNDS = ("Gt", "Lt", "Gte", "Lte")

ResourceAmounts = dict[str, Quantity]
"""Amounts by resource name."""


def restricted_label(key: str) -> str | None:
    """Say why Karpenter does not let users choose a label; none where they may."""
    if key == HOSTNAME_LABEL:
        return f"`{key}` is restricted: it is the node's own"
    if _OWN_DOMAIN.match(key) and key not in _WELL_KNOWN:
        return f"`{key}` is restricted: labels under karpenter.sh are Karpenter's own"
    return None


POOL_LABEL_MESSAGE = f"remove {NODEPOOL_LABEL}: every node of the pool gets it by itself"


def label_rules(subject: str, each: str) -> tuple[CelRule, ...]:
    """Write the same as CEL, for a field in which `each` holds of every label `subject`."""
    own = f"!{subject}.matches('^([a-z0-9-]+[.])*karpenter[.]sh/')"
    known = " || ".join(f"{subject} == '{label}'" for label in _WELL_KNOWN)
    return (
        CelRule(each.format(f"{subject} != '{HOSTNAME_LABEL}'"), f"remove {HOSTNAME_LABEL}: it is the node's own"),
        CelRule(each.format(f"{known} || {own}"), "remove labels under karpenter.sh: they are Karpenter's own"),
    )


def pool_label_problems(keys: Iterable[str]) -> Iterator[Problem]:
    """Find labels that a NodePool must not set; each problem's path is the label."""
    for key in keys:
        if key == NODEPOOL_LABEL:
            yield error((key,), f"`{key}` is restricted: every node of the pool gets it by itself", "remove it")
        elif (why := restricted_label(key)) is not None:
            yield error((key,), why, "remove it, or use a label of your own domain")


class NodeRequirement(View, kw_only=True):
    """What a label of a node must be."""

    __rules__ = (
        CelRule(
            "self.operator != 'In' || (has(self.values) && self.values.size() > 0)",
            "give `values` at least one value for the operator In",
        ),
        CelRule(
            "!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte'])"
            " || (has(self.values) && self.values.size() == 1 && int(self.values[0]) >= 0)",
            "give `values` exactly one whole number, 0 or more, for the operators Gt, Lt, Gte and Lte",
        ),
        CelRule(
            "self.operator != 'In' || !has(self.minValues) || self.values.size() >= self.minValues",
            "give `values` at least as many values as `minValues` asks for",
        ),
    )
    __mistaken__: ClassVar[dict[str, str]] = {"value": "write `values`, a list"}

    key: Annotated[
        str,
        doc("The label."),
        Meta(max_length=316, pattern=LABEL_KEY),
        rules(*label_rules("self", "{}")),
    ]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"],
        doc("How the label is compared with the values."),
    ]
    values: Annotated[
        tuple[Annotated[str, Meta(max_length=63, pattern=LABEL_VALUE)], ...] | None,
        doc("The values: at least one for In, one whole number for Gt, Lt, Gte and Lte, none for the others."),
        atomic,
    ] = None
    min_values: Annotated[
        Annotated[int, Meta(ge=1, le=50)] | None,
        doc("How many different values must stay possible, so that the choice of machines stays wide."),
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find values that do not go with the operator, and labels that are not the user's to choose."""
        values = self.values or ()
        if (why := restricted_label(self.key)) is not None:
            yield error(("key",), why, "remove the requirement")
        if self.operator == "In" and not values:
            yield error(("values",), "the operator In needs at least one value")
        elif self.operator == "In" and self.min_values is not None and len(values) < self.min_values:
            yield error(
                ("minValues",),
                f"asks for {self.min_values} different values, but `values` has {len(values)}",
                "list more values, or lower `minValues`",
            )
        elif self.operator in _BOUNDS and not (len(values) == 1 and re.fullmatch("[0-9]+", values[0])):
            given = ", ".join(values) or "none"
            message = f"the operator {self.operator} needs exactly one whole number, 0 or more; `values` has {given}"
            yield error(("values",), message, 'write it in quotes, such as ["4"]')
        elif self.operator in ("Exists", "DoesNotExist") and values:
            yield warning(("values",), f"the operator {self.operator} ignores values", "remove `values`")


NodeRequirements = Annotated[tuple[NodeRequirement, ...], Meta(max_length=100)]


class NodePoolTaint(View, kw_only=True):
    """Keeps pods away from a node that do not tolerate it."""

    key: Annotated[str, doc("Name of the taint."), Meta(min_length=1, pattern=LABEL_KEY)]
    effect: Annotated[
        Literal["NoSchedule", "PreferNoSchedule", "NoExecute"],
        doc("What happens to pods that do not tolerate it."),
    ]
    value: Annotated[Annotated[str, Meta(pattern=f"^$|{LABEL_KEY}")] | None, doc("Value of the taint.")] = None
    time_added: Annotated[Time | None, doc("When the taint was added; written by the server.")] = None


class NodeClassReference(View, kw_only=True):
    """The object that says how the provider makes nodes."""

    __mistaken__: ClassVar[dict[str, str]] = {"apiVersion": "write `group`, the part before the slash"}

    group: Annotated[NonEmpty, doc("API group of the node class."), Meta(pattern="^[^/]*$")]
    kind: Annotated[NonEmpty, doc("Kind of the node class.")]
    name: Annotated[NonEmpty, doc("Name of the node class.")]


_STAYS_IN_ITS_CLASS = rules(
    CelRule("self.group == oldSelf.group", "make a new NodePool: the group of `nodeClassRef` cannot change"),
    CelRule("self.kind == oldSelf.kind", "make a new NodePool: the kind of `nodeClassRef` cannot change"),
)


class TemplateMetadata(View, kw_only=True):
    """What every node of the pool is marked with."""

    labels: Annotated[
        Annotated[dict[str, str], Meta(max_length=100), text_format("labels")] | None,
        doc("Labels of every node."),
        rules(
            *label_rules("x", "self.all(x, {})"),
            CelRule(f"self.all(x, x != '{NODEPOOL_LABEL}')", POOL_LABEL_MESSAGE),
        ),
    ] = None
    annotations: Annotated[
        Annotated[dict[str, str], text_format("annotations")] | None, doc("Annotations of every node.")
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find labels that are Karpenter's own."""
        for problem in pool_label_problems(self.labels or {}):
            yield problem.under("labels")


POOL_REQUIREMENTS_RULES = rules(CelRule(f"self.all(x, x.key != '{NODEPOOL_LABEL}')", POOL_LABEL_MESSAGE))


def pool_requirement_problems(requirements: NodeRequirements) -> Iterator[Problem]:
    """Find requirements that a claim may have but a pool may not; paths are relative to the list."""
    for position, requirement in enumerate(requirements):
        if requirement.key == NODEPOOL_LABEL:
            message = f"`{NODEPOOL_LABEL}` is restricted: every node of the pool gets it by itself"
            yield error((position, "key"), message, "remove the requirement")


class NodeTemplateSpec(View, kw_only=True):
    """What the nodes of the pool are like."""

    requirements: Annotated[NodeRequirements, doc("What the labels of every node must be."), POOL_REQUIREMENTS_RULES]
    node_class_ref: Annotated[NodeClassReference, doc("How the provider makes the nodes."), _STAYS_IN_ITS_CLASS]
    taints: Annotated[tuple[NodePoolTaint, ...] | None, doc("Taints of every node.")] = None
    startup_taints: Annotated[
        tuple[NodePoolTaint, ...] | None,
        doc("Taints that a node starts with and that something takes away; pods need not tolerate them."),
    ] = None
    expire_after: Annotated[DurationOrNever, doc("How old a node may become; Never lets it live.")] = "720h"
    termination_grace_period: Annotated[
        Duration | None,
        doc("How long pods may hold up the end of a node before they are deleted; for ever if not set."),
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find requirements that are the pool's own."""
        for problem in pool_requirement_problems(self.requirements):
            yield problem.under("requirements")


class NodeTemplate(View, kw_only=True):
    """What the nodes of the pool are made from."""

    metadata: Annotated[TemplateMetadata | None, doc("What every node is marked with.")] = None
    spec: Annotated[NodeTemplateSpec, doc("What every node is like.")]


STATIC_POOL_RULES = (
    CelRule(
        "has(self.replicas) == has(oldSelf.replicas)",
        "make a new NodePool: `replicas` can be neither added nor removed",
    ),
    CelRule(
        "!has(self.replicas) || !has(self.limits) || size(self.limits) == 0"
        " || (size(self.limits) == 1 && 'nodes' in self.limits)",
        "keep only `limits.nodes` in a pool with `replicas`",
    ),
    CelRule("!has(self.replicas) || !has(self.weight)", "remove `weight`: a pool with `replicas` has none"),
)

Weight = Annotated[int, int32(1, 100)]


def pool_problems(replicas: int | None, weight: int | None, limits: ResourceAmounts | None) -> Iterator[Problem]:
    """Find what a pool with a fixed number of nodes cannot have, and limits that limit nothing."""
    if replicas is not None and weight is not None:
        yield error(("weight",), "a pool with `replicas` has no `weight`", "remove `weight`")
    for name in limits or {}:
        if replicas is not None and name != "nodes":
            yield error(("limits", name), "a pool with `replicas` can only have `limits.nodes`", "remove it")
        elif name != "nodes" and not is_resource(name) and (guess := meant_resource(name)) is not None:
            yield error(
                ("limits", name), f"`{name}` is not a resource: this limits nothing", f"did you mean `{guess}`?"
            )


class NodePoolSpec(View, kw_only=True):
    """What a pool's nodes are like, how many there may be, and when they may be taken away."""

    __rules__ = STATIC_POOL_RULES

    template: Annotated[NodeTemplate, doc("What the nodes of the pool are made from.")]
    disruption: Annotated[Disruption, doc("When nodes may be taken away."), default({"consolidateAfter": "0s"})] = (
        Disruption()
    )
    limits: Annotated[
        ResourceAmounts | None, doc("How much the pool's nodes may come to; `nodes` limits their number.")
    ] = None
    weight: Annotated[Weight | None, doc("Which pool is asked first: the higher one.")] = None
    replicas: Annotated[
        Count | None, doc("Keeps a fixed number of nodes, whatever pods there are; the pool is then static.")
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find what a static pool cannot have."""
        yield from pool_problems(self.replicas, self.weight, self.limits)


class NodePoolStatus(View, kw_only=True):
    """What the pool has become."""

    nodes: Annotated[Int64 | None, doc("How many nodes the pool has.")] = None
    resources: Annotated[ResourceAmounts | None, doc("What the pool's nodes come to.")] = None
    node_class_observed_generation: Annotated[
        Int64 | None, doc("The generation of the node class that was seen last.")
    ] = None
    conditions: Annotated[Conditions | None, doc("Whether the pool can make nodes, and why not.")] = None


class NodePool(Object, kw_only=True):
    """Nodes that are made and taken away together: what they are like, how many, and when they may go."""

    spec: Annotated[NodePoolSpec, doc("What is wanted.")]
    status: Annotated[NodePoolStatus | None, doc("What has become of it.")] = None


class ClaimResources(View, kw_only=True):
    """What the node must have room for."""

    requests: Annotated[ResourceAmounts | None, doc("The least that the node must offer.")] = None


class NodeClaimSpec(View, kw_only=True):
    """What the claimed node must be like."""

    requirements: Annotated[NodeRequirements, doc("What the labels of the node must be.")]
    node_class_ref: Annotated[NodeClassReference, doc("How the provider makes the node.")]
    resources: Annotated[ClaimResources | None, doc("What the node must have room for.")] = None
    taints: Annotated[tuple[NodePoolTaint, ...] | None, doc("Taints of the node.")] = None
    startup_taints: Annotated[
        tuple[NodePoolTaint, ...] | None,
        doc("Taints that the node starts with and that something takes away; pods need not tolerate them."),
    ] = None
    expire_after: Annotated[DurationOrNever, doc("How old the node may become; Never lets it live.")] = "720h"
    termination_grace_period: Annotated[
        Duration | None,
        doc("How long pods may hold up the end of the node before they are deleted; for ever if not set."),
    ] = None


class NodeClaimStatus(View, kw_only=True):
    """What has become of the claim."""

    node_name: Annotated[str | None, doc("Name of the node.")] = None
    provider_id: Annotated[str | None, doc("What the provider calls the machine.")] = None
    image_id: Annotated[str | None, doc("The image that the machine runs.")] = None
    capacity: Annotated[ResourceAmounts | None, doc("What the node has.")] = None
    allocatable: Annotated[ResourceAmounts | None, doc("What of it pods can have.")] = None
    last_pod_event_time: Annotated[Time | None, doc("When a pod last came to the node, or began to leave it.")] = None
    conditions: Annotated[Conditions | None, doc("How far the node is, and whether it may go.")] = None


class NodeClaim(Object, kw_only=True):
    """One node that a pool asked for."""

    spec: Annotated[
        NodeClaimSpec,
        doc("What is wanted; it cannot change."),
        rules(CelRule("self == oldSelf", "make a new NodeClaim: the spec cannot change")),
    ]
    status: Annotated[NodeClaimStatus | None, doc("What has become of it.")] = None
