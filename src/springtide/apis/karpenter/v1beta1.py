"""NodePool and NodeClaim in `karpenter.sh/v1beta1`, the version that budgets by reason were designed for.

It has more fields than v1beta1 ever had: later fields are accepted, so that every stored object can be converted to it.
Incomplete pools, as in a design document, are read with warnings: their budgets can be checked and forecast although
the API server would reject them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from springtide.apis.karpenter import disruption, types
from springtide.apis.karpenter.disruption import Duration, DurationOrNever
from springtide.apis.karpenter.types import NodeCount, NodePoolTaint, NodeRequirements, ResourceAmounts
from springtide.apis.kinds import (
    CelRule,
    Count,
    Int32,
    NonEmpty,
    ValidationContext,
    View,
    default,
    doc,
    extension,
    rules,
)
from springtide.apis.meta.types import Object
from springtide.apis.problems import Problem, error, warning

_SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)
_RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")


def _keys_among(allowed: tuple[str, ...]) -> Meta:
    listed = ", ".join(f"'{name}'" for name in allowed)
    return rules(CelRule(f"self.all(x, x in [{listed}])", f"use only the keys {', '.join(allowed)}"))


_Thresholds = Annotated[dict[str, str], Meta(max_length=6)]
_Reserved = Annotated[dict[str, str], Meta(max_length=4)]
_Percent = Annotated[int, Meta(ge=0, le=100, extra_json_schema={"format": "int32"})]


class Kubelet(View, kw_only=True):
    """Settings of the kubelet; in v1 they are in the node class."""

    __rules__ = (
        CelRule(
            "!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent)"
            " || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent",
            "make `imageGCHighThresholdPercent` greater than `imageGCLowThresholdPercent`",
        ),
        CelRule(
            "!has(self.evictionSoft) || (has(self.evictionSoftGracePeriod)"
            " && self.evictionSoft.all(x, x in self.evictionSoftGracePeriod))",
            "give every threshold of `evictionSoft` a period in `evictionSoftGracePeriod`",
        ),
        CelRule(
            "!has(self.evictionSoftGracePeriod) || (has(self.evictionSoft)"
            " && self.evictionSoftGracePeriod.all(x, x in self.evictionSoft))",
            "give every period of `evictionSoftGracePeriod` a threshold in `evictionSoft`",
        ),
    )

    cluster_dns: Annotated[tuple[str, ...] | None, doc("Addresses of the cluster's DNS servers.")] = msgspec.field(
        name="clusterDNS", default=None
    )
    max_pods: Annotated[Count | None, doc("How many pods a node may run.")] = None
    pods_per_core: Annotated[Count | None, doc("How many pods a node may run for each core.")] = None
    system_reserved: Annotated[
        _Reserved | None, doc("Resources reserved for the operating system."), _keys_among(_RESERVABLE)
    ] = None
    kube_reserved: Annotated[_Reserved | None, doc("Resources reserved for Kubernetes."), _keys_among(_RESERVABLE)] = (
        None
    )
    eviction_hard: Annotated[_Thresholds | None, doc("When pods are evicted at once."), _keys_among(_SIGNALS)] = None
    eviction_soft: Annotated[
        _Thresholds | None, doc("When pods are evicted after a grace period."), _keys_among(_SIGNALS)
    ] = None
    eviction_soft_grace_period: Annotated[
        _Thresholds | None, doc("The grace period of each soft threshold."), _keys_among(_SIGNALS)
    ] = None
    eviction_max_pod_grace_period: Annotated[
        Int32 | None, doc("The longest grace period in seconds that a soft eviction gives a pod.")
    ] = None
    image_gc_high_threshold_percent: Annotated[
        _Percent | None, doc("How full a disk must be before images are removed.")
    ] = msgspec.field(name="imageGCHighThresholdPercent", default=None)
    image_gc_low_threshold_percent: Annotated[
        _Percent | None, doc("How full a disk may stay when images are removed.")
    ] = msgspec.field(name="imageGCLowThresholdPercent", default=None)
    cpu_cfs_quota: Annotated[bool | None, doc("Whether limits of CPU are enforced.")] = msgspec.field(
        name="cpuCFSQuota", default=None
    )

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find inconsistent thresholds, and keys that the kubelet does not know."""
        high, low = self.image_gc_high_threshold_percent, self.image_gc_low_threshold_percent
        if high is not None and low is not None and high <= low:
            message = f"{high} is not greater than `imageGCLowThresholdPercent`, {low}"
            yield error(("imageGCHighThresholdPercent",), message)
        soft, periods = self.eviction_soft or {}, self.eviction_soft_grace_period or {}
        for name in (name for name in soft if name not in periods):
            yield error(("evictionSoft", name), f"`{name}` has no period in `evictionSoftGracePeriod`")
        for name in (name for name in periods if name not in soft):
            yield error(("evictionSoftGracePeriod", name), f"`{name}` has no threshold in `evictionSoft`")
        for field, given, allowed in (
            ("systemReserved", self.system_reserved, _RESERVABLE),
            ("kubeReserved", self.kube_reserved, _RESERVABLE),
            ("evictionHard", self.eviction_hard, _SIGNALS),
            ("evictionSoft", self.eviction_soft, _SIGNALS),
        ):
            for name in (name for name in given or {} if name not in allowed):
                yield error((field, name), f"`{name}` is not one of {', '.join(allowed)}")


class NodeClassReferenceV1Beta1(View, kw_only=True):
    """The node class, which has settings of the provider."""

    __mistaken__: ClassVar[dict[str, str]] = {"group": "write `apiVersion`, group and version"}

    api_version: Annotated[str | None, doc("Group and version of the node class.")] = None
    kind: Annotated[str | None, doc("Kind of the node class.")] = None
    name: Annotated[NonEmpty, doc("Name of the node class.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find fields that v1 requires."""
        for field, value in (("apiVersion", self.api_version), ("kind", self.kind)):
            if not value:
                yield warning((field,), f"`{field}` is not set, which v1 requires", f"set `{field}`")


class BudgetV1Beta1(disruption.Budget, kw_only=True):
    """How many nodes of the pool may be disrupted at once: always, or while the window of the budget is open."""

    __rules__ = (
        CelRule("!has(self.duration) || has(self.schedule)", "set `schedule`, or remove `duration`"),
        *(rule for rule in disruption.Budget.__rules__ if rule.extension),
    )
    __lone_schedule__ = "always open"


_Budgets = Annotated[tuple[BudgetV1Beta1, ...], Meta(max_length=50), default([{"nodes": "10%"}])]


class DisruptionV1Beta1(View, kw_only=True):
    """When Karpenter may disrupt nodes."""

    __mistaken__: ClassVar[dict[str, str]] = disruption.Disruption.__mistaken__ | {
        "ttlSecondsUntilExpired": "write `expireAfter`"
    }

    consolidate_after: Annotated[
        DurationOrNever | None,
        doc("How long a node must be empty, or without changes of its pods, before it is consolidated."),
    ] = None
    consolidation_policy: Annotated[Literal["WhenEmpty", "WhenUnderutilized"], doc("Which nodes are consolidated.")] = (
        "WhenUnderutilized"
    )
    expire_after: Annotated[DurationOrNever, doc("The maximum age of a node; Never disables expiry.")] = "720h"
    budgets: Annotated[
        _Budgets, doc("How many nodes may be disrupted at once; the tightest budget applies. 10% if not set.")
    ] = (BudgetV1Beta1(),)
    budget_default: Annotated[
        Literal["Floor", "Fallback"],
        doc(
            "What a budget without reasons means. Fallback: it counts only for reasons that no active budget names."
            " Floor: for every reason."
        ),
        extension,
    ] = "Fallback"
    budget_accounting: disruption.BudgetAccounting = "Total"
    expiration_policy: Annotated[
        Literal["Forceful", "Graceful"],
        doc("Whether expired nodes are removed as the budgets for Expired allow (Graceful) or at once (Forceful)."),
        extension,
    ] = "Graceful"
    disrupt_after: Annotated[
        disruption.DisruptAfter | None, doc("How long a node waits before it is disrupted, by reason."), extension
    ] = None
    repair: Annotated[
        disruption.NodeRepair | None,
        doc("Replaces nodes that stay unhealthy, within the budgets for Unhealthy; off if not set."),
        extension,
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        """Find fields that API servers of this version reject, and budgets without effect."""
        if self.consolidation_policy == "WhenEmpty" and self.consolidate_after is None:
            message = "v1beta1 servers reject the policy WhenEmpty without `consolidateAfter`; it is read as 0s here"
            yield warning(("consolidationPolicy",), message, "set `consolidateAfter`")
        if self.consolidation_policy == "WhenUnderutilized" and self.consolidate_after not in (None, "Never"):
            message = "v1beta1 servers reject `consolidateAfter` with the policy WhenUnderutilized; v1 accepts it"
            yield warning(("consolidateAfter",), message, "convert the object to karpenter.sh/v1")
        yield from disruption.disruption_problems(self, context)


class NodeTemplateSpecV1Beta1(View, kw_only=True):
    """The spec of the nodes of the pool."""

    __rules__ = (CelRule("has(self.nodeClassRef) && has(self.requirements)", "set `nodeClassRef` and `requirements`"),)

    requirements: Annotated[
        NodeRequirements | None, doc("Required labels of every node."), types.POOL_REQUIREMENTS_RULES
    ] = None
    node_class_ref: Annotated[
        NodeClassReferenceV1Beta1 | None, doc("The node class, with settings of the provider.")
    ] = None
    taints: Annotated[tuple[NodePoolTaint, ...] | None, doc("Taints of every node.")] = None
    startup_taints: Annotated[
        tuple[NodePoolTaint, ...] | None,
        doc("Taints of a new node that another controller removes; pods need not tolerate them."),
    ] = None
    resources: Annotated[types.ClaimResources | None, doc("Stays empty in a pool.")] = None
    kubelet: Annotated[Kubelet | None, doc("Settings of the kubelet.")] = None
    termination_grace_period: Annotated[
        Duration | None,
        doc("How long pods may delay the termination of a node; without limit if not set."),
        extension,
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find missing fields without which the API server rejects the pool."""
        for name, value in (("nodeClassRef", self.node_class_ref), ("requirements", self.requirements)):
            if value is None:
                yield _incomplete((name,), f"spec.template.spec.{name}")
        for problem in types.pool_requirement_problems(self.requirements or ()):
            yield problem.under("requirements")


class NodeTemplateV1Beta1(View, kw_only=True):
    """The template of the nodes of the pool."""

    __rules__ = (CelRule("has(self.spec)", "set `spec`"),)

    metadata: Annotated[types.TemplateMetadata | None, doc("Labels and annotations of every node.")] = None
    spec: Annotated[NodeTemplateSpecV1Beta1 | None, doc("The spec of every node.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find missing fields without which the API server rejects the pool."""
        if self.spec is None:
            yield _incomplete(("spec",), "spec.template.spec")


def _incomplete(path: tuple[str, ...], field: str) -> Problem:
    return warning(path, f"incomplete: the API server rejects the pool until `{field}` is set", f"set `{field}`")


class NodePoolSpecV1Beta1(View, kw_only=True):
    """The template of the nodes, their limits, and when they may be disrupted."""

    __rules__ = (
        CelRule("has(self.template)", "set `template`"),
        *(msgspec.structs.replace(rule, extension=True) for rule in types.STATIC_POOL_RULES),
    )

    template: Annotated[NodeTemplateV1Beta1 | None, doc("The template of the nodes.")] = None
    disruption: Annotated[
        DisruptionV1Beta1,
        doc("When nodes may be disrupted."),
        default({"consolidationPolicy": "WhenUnderutilized", "expireAfter": "720h"}),
    ] = DisruptionV1Beta1()
    limits: Annotated[ResourceAmounts | None, doc("The maximum total resources of the nodes.")] = None
    weight: Annotated[types.Weight | None, doc("Pools with a higher weight are tried first.")] = None
    replicas: Annotated[
        NodeCount | None,
        doc("A fixed number of nodes, which makes the pool static."),
        extension,
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find missing fields, and fields that a static pool cannot have."""
        if self.template is None:
            yield _incomplete(("template",), "spec.template")
        yield from types.pool_problems(self.replicas, self.weight, self.limits)
        spec = None if self.template is None else self.template.spec
        reference = None if spec is None else spec.node_class_ref
        if reference is not None and (reference.api_version or "").startswith(f"{types.OWN_GROUP}/"):
            yield from disruption.unrepaired_problems(self.disruption)


class NodePoolV1Beta1(Object, kw_only=True):
    """A pool of nodes from one template, with limits and disruption settings."""

    spec: Annotated[NodePoolSpecV1Beta1, doc("The desired state.")]
    status: Annotated[types.NodePoolStatus | None, doc("The observed state.")] = None


class NodeClaimSpecV1Beta1(View, kw_only=True):
    """The spec of the claimed node."""

    requirements: Annotated[NodeRequirements, doc("Required labels of the node.")]
    node_class_ref: Annotated[NodeClassReferenceV1Beta1, doc("The node class, with settings of the provider.")]
    resources: Annotated[types.ClaimResources | None, doc("Resources that the node must offer.")] = None
    taints: Annotated[tuple[NodePoolTaint, ...] | None, doc("Taints of the node.")] = None
    startup_taints: Annotated[
        tuple[NodePoolTaint, ...] | None,
        doc("Taints of the new node that another controller removes; pods need not tolerate them."),
    ] = None
    kubelet: Annotated[Kubelet | None, doc("Settings of the kubelet.")] = None
    expire_after: Annotated[
        DurationOrNever | None, doc("The maximum age of the node; Never disables expiry."), extension
    ] = None
    termination_grace_period: Annotated[
        Duration | None,
        doc("How long pods may delay the termination of the node; without limit if not set."),
        extension,
    ] = None


class NodeClaimV1Beta1(Object, kw_only=True):
    """A request of a pool for one node."""

    spec: Annotated[
        NodeClaimSpecV1Beta1,
        doc("The desired state; it cannot change."),
        rules(CelRule("self == oldSelf", "create a new NodeClaim: the spec cannot change")),
    ]
    status: Annotated[types.NodeClaimStatus | None, doc("The observed state.")] = None
