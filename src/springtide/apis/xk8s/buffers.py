"""CapacityBuffer: room that is kept free in the cluster, in chunks of the shape of a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from springtide.apis.core.resources import amounts, name_problems
from springtide.apis.fields import (
    Context,
    Count,
    Int64,
    NonEmpty,
    Quantity,
    Rule,
    View,
    Zone,
    by_key,
    doc,
    extension,
)
from springtide.apis.meta.types import Conditions, LabelSelector, LocalReference, Object
from springtide.apis.meta.windows import CalendarReference, Window
from springtide.apis.problems import Problem, error, warning

ACTIVE_CAPACITY = "buffer.x-k8s.io/active-capacity"

_GROUPS = {
    "Deployment": "apps",
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "Job": "batch",
}
_WITHOUT_REPLICAS = ("CronJob", "DaemonSet", "Pod", "PodTemplate")


class ScalableReference(View, kw_only=True):
    """A workload of the same namespace that can be scaled."""

    __mistaken__ = {"apiVersion": "write the group alone, as `apiGroup`"}

    api_group: Annotated[str | None, doc("Group of the kind; empty for the kinds of Kubernetes' core.")] = None
    kind: Annotated[NonEmpty, doc("Kind of the workload.")]
    name: Annotated[NonEmpty, doc("Name of the workload.")]

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find references that lead to nothing, or to something that has no replicas."""
        group, _, version = (self.api_group or "").partition("/")
        home = _GROUPS.get(self.kind)
        if version:
            yield error(("apiGroup",), f'"{self.api_group}" is a group with a version', f"write `apiGroup: {group}`")
        elif self.kind in _WITHOUT_REPLICAS:
            yield error(("kind",), f"a {self.kind} has no number of replicas to follow", "name what is scaled")
        elif home is not None and group != home:
            found = f'"{group}"' if group else "the core group"
            yield warning(("apiGroup",), f"there is no {self.kind} in {found}", f"write `apiGroup: {home}`")


class BufferWindow(Window, kw_only=True):
    """A stretch of time in which the buffer is active: one that recurs, or one that happens once."""

    __rules__ = (
        Rule(
            "has(self.start) != has(self.from)",
            "Set either start and end, for a window that recurs, or from and until, for one that happens once.",
        ),
        Rule("has(self.start) == has(self.end)", "Set both start and end."),
        Rule("has(self.from) == has(self.until)", "Set both from and until."),
    )


class BufferSchedule(View, kw_only=True):
    """When the buffer exists; outside these times it is as if it did not."""

    __mistaken__ = {"timezone": "write `timeZone`", "behaviors": "write `windows`"}

    time_zone: Annotated[Zone | None, doc("Zone of the windows' local times, by its IANA name; UTC if not set.")] = None
    windows: Annotated[
        Annotated[tuple[BufferWindow, ...], Meta(max_length=64)] | None,
        doc("When the buffer is active: in any of these windows; at all times if there are none."),
    ] = None
    calendars: Annotated[
        Annotated[tuple[CalendarReference, ...], Meta(max_length=16), by_key("name")] | None,
        doc("Calendars that take days away, or leave only some."),
    ] = None

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find schedules that change nothing."""
        if not self.windows and not self.calendars:
            yield warning((), "the schedule has neither windows nor calendars: the buffer is always active")


class CapacityBufferSpec(View, kw_only=True):
    """The shape of the chunks, how many there are, and when."""

    __rules__ = (
        Rule(
            "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
            "A buffer with podTemplateRef needs a size: set replicas or limits.",
        ),
        Rule(
            "!(has(self.podTemplateRef) && has(self.scalableRef))",
            "Set either podTemplateRef or scalableRef, not both.",
        ),
        Rule(
            "has(self.podTemplateRef) || has(self.scalableRef)",
            "Set podTemplateRef or scalableRef: the buffer needs a shape.",
            extension=True,
        ),
        Rule(
            "has(self.replicas) || has(self.percentage) || has(self.limits)",
            "Set replicas, percentage or limits: the buffer needs a size.",
            extension=True,
        ),
        Rule(
            "!has(self.dedicated) || !self.dedicated || has(self.podSelector)",
            "Set podSelector: a dedicated buffer must say for which pods.",
            extension=True,
        ),
    )
    __mistaken__ = {
        "podTemplate": "write `podTemplateRef`",
        "scaleTargetRef": "write `scalableRef`, with `apiGroup` instead of `apiVersion`",
        "strategy": "write `provisioningStrategy`",
        "minReplicas": "write `replicas`: with `percentage` it is the least that there is",
    }

    provisioning_strategy: Annotated[str, doc("How the room is kept; strategies of others are left to them.")] = (
        ACTIVE_CAPACITY
    )
    pod_template_ref: Annotated[
        LocalReference | None, doc("The PodTemplate that is the shape of a chunk. Either this or scalableRef.")
    ] = None
    scalable_ref: Annotated[
        ScalableReference | None,
        doc("The workload whose pods are the shape of a chunk. Either this or podTemplateRef."),
    ] = None
    replicas: Annotated[Count | None, doc("How many chunks; with percentage, the larger of the two.")] = None
    percentage: Annotated[
        Count | None, doc("How many chunks, in percent of the workload's replicas, rounded up. For scalableRef.")
    ] = None
    limits: Annotated[
        dict[str, Quantity] | None,
        doc("The most that all chunks together may ask for; as many chunks as fit, if nothing else says how many."),
    ] = None
    schedule: Annotated[BufferSchedule | None, doc("When the buffer is active; always if not set."), extension] = None
    dedicated: Annotated[
        bool, doc("Whether the pods of podSelector fill the buffer instead of coming on top of it."), extension
    ] = False
    pod_selector: Annotated[LabelSelector | None, doc("The pods that a dedicated buffer is for."), extension] = None

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find buffers without a shape or a size, and settings that have no effect."""
        yield from self._shape_problems()
        yield from self._size_problems()
        for problem in name_problems(self.limits):
            yield problem.under("limits")
        for name, limit in amounts(self.limits).items():
            if limit.sign < 0:
                yield error(("limits", name), f"`{name}` must not be negative, is {limit}")
        if self.provisioning_strategy not in (ACTIVE_CAPACITY, ""):
            yield warning(
                ("provisioningStrategy",),
                f'strategy "{self.provisioning_strategy}" is not ours: the buffer is left alone',
                f"ours is `{ACTIVE_CAPACITY}`",
            )
        if self.dedicated and self.pod_selector is None:
            yield error(
                ("dedicated",), "a dedicated buffer must say for which pods", "add `podSelector: {matchLabels: {…}}`"
            )
        if self.pod_selector is not None and not self.dedicated:
            yield warning(
                ("podSelector",), "`podSelector` has no effect on a buffer for everyone", "add `dedicated: true`"
            )

    def _shape_problems(self) -> Iterator[Problem]:
        if self.pod_template_ref is not None and self.scalable_ref is not None:
            yield error(
                ("scalableRef",), "the chunks cannot have two shapes", "keep either `podTemplateRef` or `scalableRef`"
            )
        elif self.pod_template_ref is None and self.scalable_ref is None:
            yield error((), "the chunks have no shape", "add `podTemplateRef` or `scalableRef`")

    def _size_problems(self) -> Iterator[Problem]:
        if self.replicas is None and self.percentage is None and not self.limits:
            yield error((), "the buffer has no size", "add `replicas`, `percentage` or `limits`")
        elif self.percentage is not None and self.scalable_ref is None:
            if self.replicas is None and not self.limits:
                hint = "add `replicas` or `limits`, or refer to a workload with `scalableRef`"
                yield error(("percentage",), "`percentage` is of a workload's replicas, and there is none", hint)
            else:
                hint = "remove it, or refer to a workload with `scalableRef`"
                yield warning(("percentage",), "`percentage` is ignored: there is no workload it could be of", hint)


class CapacityBufferStatus(View, kw_only=True):
    """What the buffer comes to."""

    pod_template_ref: Annotated[LocalReference | None, doc("The PodTemplate that the chunks are made from.")] = None
    replicas: Annotated[Count | None, doc("How many chunks there should be, after limits and quotas.")] = None
    ready_replicas: Annotated[Count | None, doc("How many chunks have room on nodes that are ready."), extension] = None
    pod_template_generation: Annotated[Int64 | None, doc("Generation of the PodTemplate.")] = None
    provisioning_strategy: Annotated[str | None, doc("The strategy that is followed.")] = None
    conditions: Annotated[Conditions | None, doc("What is observed about the buffer.")] = None


class CapacityBuffer(Object, kw_only=True):
    """Room that is kept free in the cluster, so that new pods start without waiting for a node."""

    spec: Annotated[CapacityBufferSpec, doc("What is kept free, how much of it, and when.")]
    status: Annotated[CapacityBufferStatus | None, doc("What the buffer comes to.")] = None
