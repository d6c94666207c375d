"""NodePool and NodeClaim in `karpenter.sh/v1`, the storage version, with node requirements, taints and own labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from springtide.apis.core.resources import is_known as is_resource
from springtide.apis.core.resources import meant_resource
from springtide.apis.karpenter.disruption import Disruption, Duration, DurationOrNever, unrepaired_problems
from springtide.apis.kinds import (
    INT32_MAX,
    CelRule,
    Int64,
    NonEmpty,
    Quantity,
    Time,
    ValidationContext,
    View,
    at_most,
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
LabelValue = Annotated[str, Meta(max_length=63, pattern=LABEL_VALUE), text_format("label-value")]

OWN_GROUP = "springtide.dev"
"""The group of node classes whose nodes Springtide creates."""
NODEPOOL_LABEL = "karpenter.sh/nodepool"
HOSTNAME_LABEL = "kubernetes.io/hostname"
_OWN_DOMAIN = re.compile(r"([a-z0-9-]+\.)*karpenter\.sh/")
_WELL_KNOWN = ("karpenter.sh/capacity-type", NODEPOOL_LABEL)
_BOUNDS = ("Gt", "Lt", "Gte", "Lte")

NodeCount = Annotated[int, Meta(ge=0, le=INT32_MAX, extra_json_schema={"format": "int64"})]
"""A number of nodes: of 64 bits in Karpenter's schema, while the scale subresource allows 32 bits."""

ResourceAmounts = dict[str, Quantity]
"""Amounts by resource name."""


def restricted_label(key: str) -> str | None:
    """Return why users may not set a label; None if they may."""
    if key == HOSTNAME_LABEL:
        return f"`{key}` is restricted: it is the node's own"
    if _OWN_DOMAIN.match(key) and key not in _WELL_KNOWN:
        return f"`{key}` is restricted: labels under karpenter.sh are Karpenter's own"
    return None


POOL_LABEL_MESSAGE = f"remove {NODEPOOL_LABEL}: every node of the pool gets it automatically"


def label_rules(subject: str, each: str) -> tuple[CelRule, ...]:
    """Return the same rule in CEL, for a field in which `each` holds for every label `subject`."""
    own = f"!{subject}.matches('^([a-z0-9-]+[.])*karpenter[.]sh/')"
    known = " || ".join(f"{subject} == '{label}'" for label in _WELL_KNOWN)
    return (
        CelRule(each.format(f"{subject} != '{HOSTNAME_LABEL}'"), f"remove {HOSTNAME_LABEL}: it is the node's own"),
        CelRule(each.format(f"{known} || {own}"), "remove labels under karpenter.sh: they are Karpenter's own"),
    )


def pool_label_problems(keys: Iterable[str]) -> Iterator[Problem]:
    """Find labels that a NodePool must not set; the path of each problem is the label."""
    for key in keys:
        if key == NODEPOOL_LABEL:
            yield error((key,), f"`{key}` is restricted: every node of the pool gets it automatically", "remove it")
        elif (why := restricted_label(key)) is not None:
            yield error((key,), why, "remove it, or use a label of your own domain")


class NodeRequirement(View, kw_only=True):
    """A requirement on a label of a node."""

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
        text_format("qualified-name"),
        rules(*label_rules("self", "{}")),
    ]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"],
        doc("How the label is compared with the values."),
    ]
    values: Annotated[
        tuple[LabelValue, ...] | None,
        doc("The values: at least one for In, one whole number for Gt, Lt, Gte and Lte, none for the others."),
        atomic,
    ] = None
    min_values: Annotated[
        Annotated[int, Meta(ge=1, le=50)] | None,
        doc("How many different values must stay possible, to keep a choice of machine types."),
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find values that do not fit the operator, and restricted labels."""
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

    key: Annotated[
        str,
        doc("Name of the taint."),
        Meta(min_length=1, pattern=LABEL_KEY),
        at_most(316),
        text_format("qualified-name"),
    ]
    effect: Annotated[
        Literal["NoSchedule", "PreferNoSchedule", "NoExecute"],
        doc("What happens to pods that do not tolerate it."),
    ]
    value: Annotated[
        Annotated[str, Meta(pattern=f"^$|{LABEL_KEY}"), at_most(63), text_format("label-value")] | None,
        doc("Value of the taint."),
    ] = None
    time_added: Annotated[Time | None, doc("When the taint was added; written by the server.")] = None


class NodeClassReference(View, kw_only=True):
    """The node class, which has settings of the provider."""

    __mistaken__: ClassVar[dict[str, str]] = {"apiVersion": "write `group`, the part before the slash"}

    group: Annotated[NonEmpty, doc("API group of the node class."), Meta(pattern="^[^/]*$")]
    kind: Annotated[NonEmpty, doc("Kind of the node class.")]
    name: Annotated[NonEmpty, doc("Name of the node class.")]


_IMMUTABLE_NODE_CLASS = rules(
    CelRule("self.group == oldSelf.group", "create a new NodePool: the group of `nodeClassRef` cannot change"),
    CelRule("self.kind == oldSelf.kind", "create a new NodePool: the kind of `nodeClassRef` cannot change"),
)


class TemplateMetadata(View, kw_only=True):
    """Labels and annotations of every node of the pool."""

    labels: Annotated[
        Annotated[dict[str, LabelValue], Meta(max_length=100), text_format("label-keys")] | None,
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
        """Find restricted labels."""
        for problem in pool_label_problems(self.labels or {}):
            yield problem.under("labels")


POOL_REQUIREMENTS_RULES = rules(CelRule(f"self.all(x, x.key != '{NODEPOOL_LABEL}')", POOL_LABEL_MESSAGE))


def pool_requirement_problems(requirements: NodeRequirements) -> Iterator[Problem]:
    """Find requirements that a claim may have and a pool may not; paths are relative to the list."""
    for position, requirement in enumerate(requirements):
        if requirement.key == NODEPOOL_LABEL:
            message = f"`{NODEPOOL_LABEL}` is restricted: every node of the pool gets it automatically"
            yield error((position, "key"), message, "remove the requirement")


class NodeTemplateSpec(View, kw_only=True):
    """The spec of the nodes of the pool."""

    requirements: Annotated[NodeRequirements, doc("Required labels of every node."), POOL_REQUIREMENTS_RULES]
    node_class_ref: Annotated[
        NodeClassReference, doc("The node class, with settings of the provider."), _IMMUTABLE_NODE_CLASS
    ]
    taints: Annotated[tuple[NodePoolTaint, ...] | None, doc("Taints of every node.")] = None
    startup_taints: Annotated[
        tuple[NodePoolTaint, ...] | None,
        doc("Taints of a new node that another controller removes; pods need not tolerate them."),
    ] = None
    expire_after: Annotated[DurationOrNever, doc("The maximum age of a node; Never disables expiry.")] = "720h"
    termination_grace_period: Annotated[
        Duration | None,
        doc("How long pods may delay the termination of a node; without limit if not set."),
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find requirements that a pool must not have."""
        for problem in pool_requirement_problems(self.requirements):
            yield problem.under("requirements")


class NodeTemplate(View, kw_only=True):
    """The template of the nodes of the pool."""

    metadata: Annotated[TemplateMetadata | None, doc("Labels and annotations of every node.")] = None
    spec: Annotated[NodeTemplateSpec, doc("The spec of every node.")]


STATIC_POOL_RULES = (
    CelRule(
        "has(self.replicas) == has(oldSelf.replicas)",
        "create a new NodePool: `replicas` can be neither added nor removed",
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
    """Find fields that a static pool cannot have, and limits without effect."""
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
    """The template of the nodes, their limits, and when they may be disrupted."""

    __rules__ = STATIC_POOL_RULES

    template: Annotated[NodeTemplate, doc("The template of the nodes.")]
    disruption: Annotated[Disruption, doc("When nodes may be disrupted."), default({"consolidateAfter": "0s"})] = (
        Disruption()
    )
    limits: Annotated[
        ResourceAmounts | None, doc("The maximum total resources of the nodes; `nodes` limits their number.")
    ] = None
    weight: Annotated[Weight | None, doc("Pools with a higher weight are tried first.")] = None
    replicas: Annotated[NodeCount | None, doc("A fixed number of nodes, which makes the pool static.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find fields that a static pool cannot have, and budgets for the repair of nodes where it is off."""
        yield from pool_problems(self.replicas, self.weight, self.limits)
        if self.template.spec.node_class_ref.group == OWN_GROUP:
            yield from unrepaired_problems(self.disruption)


class NodePoolStatus(View, kw_only=True):
    """The observed state of the pool."""

    nodes: Annotated[Int64 | None, doc("How many nodes the pool has.")] = None
    resources: Annotated[ResourceAmounts | None, doc("The total resources of the nodes.")] = None
    node_class_observed_generation: Annotated[
        Int64 | None, doc("The generation of the node class that was seen last.")
    ] = None
    conditions: Annotated[Conditions | None, doc("Whether the pool can create nodes, and why not.")] = None


class NodePool(Object, kw_only=True):
    """A pool of nodes from one template, with limits and disruption settings."""

    spec: Annotated[NodePoolSpec, doc("The desired state.")]
    status: Annotated[NodePoolStatus | None, doc("The observed state.")] = None


class ClaimResources(View, kw_only=True):
    """Resources that the node must offer."""

    requests: Annotated[ResourceAmounts | None, doc("Minimum resources of the node.")] = None


class NodeClaimSpec(View, kw_only=True):
    """The spec of the claimed node."""

    requirements: Annotated[NodeRequirements, doc("Required labels of the node.")]
    node_class_ref: Annotated[NodeClassReference, doc("The node class, with settings of the provider.")]
    resources: Annotated[ClaimResources | None, doc("Resources that the node must offer.")] = None
    taints: Annotated[tuple[NodePoolTaint, ...] | None, doc("Taints of the node.")] = None
    startup_taints: Annotated[
        tuple[NodePoolTaint, ...] | None,
        doc("Taints of the new node that another controller removes; pods need not tolerate them."),
    ] = None
    expire_after: Annotated[DurationOrNever, doc("The maximum age of the node; Never disables expiry.")] = "720h"
    termination_grace_period: Annotated[
        Duration | None,
        doc("How long pods may delay the termination of the node; without limit if not set."),
    ] = None


class NodeClaimStatus(View, kw_only=True):
    """The observed state of the claim."""

    node_name: Annotated[str | None, doc("Name of the node.")] = None
    provider_id: Annotated[str | None, doc("The id of the machine at the provider.")] = None
    image_id: Annotated[str | None, doc("The image that the machine runs.")] = None
    capacity: Annotated[ResourceAmounts | None, doc("Resources of the node.")] = None
    allocatable: Annotated[ResourceAmounts | None, doc("Resources that pods can request.")] = None
    last_pod_event_time: Annotated[Time | None, doc("When a pod was last added, or last began to terminate.")] = None
    conditions: Annotated[Conditions | None, doc("The progress of the node, and whether it may be disrupted.")] = None


class NodeClaim(Object, kw_only=True):
    """A request of a pool for one node."""

    spec: Annotated[
        NodeClaimSpec,
        doc("The desired state; it cannot change."),
        rules(CelRule("self == oldSelf", "create a new NodeClaim: the spec cannot change")),
    ]
    status: Annotated[NodeClaimStatus | None, doc("The observed state.")] = None
