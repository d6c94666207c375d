"""NodePool and NodeClaim as `karpenter.sh/v1` has them, which is how they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from springtide.apis.core.resources import is_known as is_resource
from springtide.apis.core.resources import meant_resource
from springtide.apis.fields import (
    Context,
    Count,
    Int64,
    NonEmpty,
    Rule,
    Time,
    View,
    default,
    doc,
    int32,
    rules,
    text_format,
)
from springtide.apis.karpenter.disruption import Disruption, Duration, DurationOrNever
from springtide.apis.karpenter.scheduling import (
    NODEPOOL_LABEL,
    POOL_LABEL_MESSAGE,
    Requirements,
    ResourceAmounts,
    Taint,
    label_rules,
    pool_label_problems,
)
from springtide.apis.meta.types import Conditions, Object
from springtide.apis.problems import Problem, error


class NodeClassReference(View, kw_only=True):
    """The object that says how the provider makes nodes."""

    __mistaken__: ClassVar[dict[str, str]] = {"apiVersion": "write `group`, the part before the slash"}

    group: Annotated[NonEmpty, doc("API group of the node class."), Meta(pattern="^[^/]*$")]
    kind: Annotated[NonEmpty, doc("Kind of the node class.")]
    name: Annotated[NonEmpty, doc("Name of the node class.")]


_STAYS_IN_ITS_CLASS = rules(
    Rule("self.group == oldSelf.group", "make a new NodePool: the group of `nodeClassRef` cannot change"),
    Rule("self.kind == oldSelf.kind", "make a new NodePool: the kind of `nodeClassRef` cannot change"),
)


class TemplateMetadata(View, kw_only=True):
    """What every node of the pool is marked with."""

    labels: Annotated[
        Annotated[dict[str, str], Meta(max_length=100), text_format("labels")] | None,
        doc("Labels of every node."),
        rules(
            *label_rules("x", "self.all(x, {})"),
            Rule(f"self.all(x, x != '{NODEPOOL_LABEL}')", POOL_LABEL_MESSAGE),
        ),
    ] = None
    annotations: Annotated[
        Annotated[dict[str, str], text_format("annotations")] | None, doc("Annotations of every node.")
    ] = None

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find labels that are Karpenter's own."""
        for problem in pool_label_problems(self.labels or {}):
            yield problem.under("labels")


POOL_REQUIREMENTS_RULES = rules(Rule(f"self.all(x, x.key != '{NODEPOOL_LABEL}')", POOL_LABEL_MESSAGE))


def pool_requirement_problems(requirements: Requirements) -> Iterator[Problem]:
    """Find requirements that a claim may have but a pool may not; paths are relative to the list."""
    for position, requirement in enumerate(requirements):
        if requirement.key == NODEPOOL_LABEL:
            message = f"`{NODEPOOL_LABEL}` is restricted: every node of the pool gets it by itself"
            yield error((position, "key"), message, "remove the requirement")


class NodeTemplateSpec(View, kw_only=True):
    """What the nodes of the pool are like."""

    requirements: Annotated[Requirements, doc("What the labels of every node must be."), POOL_REQUIREMENTS_RULES]
    node_class_ref: Annotated[NodeClassReference, doc("How the provider makes the nodes."), _STAYS_IN_ITS_CLASS]
    taints: Annotated[tuple[Taint, ...] | None, doc("Taints of every node.")] = None
    startup_taints: Annotated[
        tuple[Taint, ...] | None,
        doc("Taints that a node starts with and that something takes away; pods need not tolerate them."),
    ] = None
    expire_after: Annotated[DurationOrNever, doc("How old a node may become; Never lets it live.")] = "720h"
    termination_grace_period: Annotated[
        Duration | None,
        doc("How long pods may hold up the end of a node before they are deleted; for ever if not set."),
    ] = None

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find requirements that are the pool's own."""
        for problem in pool_requirement_problems(self.requirements):
            yield problem.under("requirements")


class NodeTemplate(View, kw_only=True):
    """What the nodes of the pool are made from."""

    metadata: Annotated[TemplateMetadata | None, doc("What every node is marked with.")] = None
    spec: Annotated[NodeTemplateSpec, doc("What every node is like.")]


STATIC_POOL_RULES = (
    Rule(
        "has(self.replicas) == has(oldSelf.replicas)",
        "make a new NodePool: `replicas` can be neither added nor removed",
    ),
    Rule(
        "!has(self.replicas) || !has(self.limits) || size(self.limits) == 0"
        " || (size(self.limits) == 1 && 'nodes' in self.limits)",
        "keep only `limits.nodes` in a pool with `replicas`",
    ),
    Rule("!has(self.replicas) || !has(self.weight)", "remove `weight`: a pool with `replicas` has none"),
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

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
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

    requirements: Annotated[Requirements, doc("What the labels of the node must be.")]
    node_class_ref: Annotated[NodeClassReference, doc("How the provider makes the node.")]
    resources: Annotated[ClaimResources | None, doc("What the node must have room for.")] = None
    taints: Annotated[tuple[Taint, ...] | None, doc("Taints of the node.")] = None
    startup_taints: Annotated[
        tuple[Taint, ...] | None,
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
        rules(Rule("self == oldSelf", "make a new NodeClaim: the spec cannot change")),
    ]
    status: Annotated[NodeClaimStatus | None, doc("What has become of it.")] = None
