"""CapacityBuffer: room that is kept free in the cluster, in chunks of the shape of a pod.

How many chunks a buffer has.

The larger of the fixed count and the share of the target, and never more than the limits hold. A share rounds up, so
that any share of any running workload is at least one chunk. All numbers are exact: shares of large workloads do not
wrap round at 32 bits.

When a buffer is active, and why.

The windows of a buffer are read as people mean them: open from a start until the end after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from springtide.almanac import DayCalendar, MatchPolicy, Timeline, always, both, either, load_zone
from springtide.almanac import Zone as ImportedZone
from springtide.apis.core.resources import amounts, name_problems
from springtide.apis.forecast import ForecastQuery, Lane, LaneStyle, Outlook, timeline_lane
from springtide.apis.kinds import (
    INT32_MAX,
    CelRule,
    Count,
    Int64,
    NonEmpty,
    Quantity,
    ValidationContext,
    View,
    Zone,
    by_key,
    doc,
    extension,
)
from springtide.apis.meta.times import CalendarReference, Window, calendar_filters, clock_time, open_times
from springtide.apis.meta.types import Conditions, LabelSelector, LocalReference, Object
from springtide.apis.problems import Problem, error, warning
from springtide.quantity import Quantity as ImportedQuantity

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

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
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
        CelRule(
            "has(self.start) != has(self.from)",
            "Set either start and end, for a window that recurs, or from and until, for one that happens once.",
        ),
        CelRule("has(self.start) == has(self.end)", "Set both start and end."),
        CelRule("has(self.from) == has(self.until)", "Set both from and until."),
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

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find schedules that change nothing."""
        if not self.windows and not self.calendars:
            yield warning((), "the schedule has neither windows nor calendars: the buffer is always active")


class CapacityBufferSpec(View, kw_only=True):
    """The shape of the chunks, how many there are, and when."""

    __rules__ = (
        CelRule(
            "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
            "A buffer with podTemplateRef needs a size: set replicas or limits.",
        ),
        CelRule(
            "!(has(self.podTemplateRef) && has(self.scalableRef))",
            "Set either podTemplateRef or scalableRef, not both.",
        ),
        CelRule(
            "has(self.podTemplateRef) || has(self.scalableRef)",
            "Set podTemplateRef or scalableRef: the buffer needs a shape.",
            extension=True,
        ),
        CelRule(
            "has(self.replicas) || has(self.percentage) || has(self.limits)",
            "Set replicas, percentage or limits: the buffer needs a size.",
            extension=True,
        ),
        CelRule(
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

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
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


class BufferSizeError(ValueError):
    """A buffer whose size cannot be told; the message is the one that its condition shows."""


def chunk_count(
    *,
    replicas: int | None = None,
    percentage: int | None = None,
    target_replicas: int | None = None,
    limits: Mapping[str, ImportedQuantity] | None = None,
    requests: Mapping[str, ImportedQuantity] | None = None,
) -> int:
    """Count the chunks of a buffer.

    `target_replicas` is how many replicas the scaled target has, if there is one; `requests` is what a chunk asks for.
    Raises `SizeError` where nothing says a size, or where the limits name nothing that a chunk asks for.
    """
    wanted = _requested_chunks(replicas, percentage, target_replicas)
    held = _limit_by_resources(limits, requests or {}) if limits else None
    sizes = [size for size in (wanted, held) if size is not None]
    if not sizes:
        msg = "replicas, percentage and limits are not defined"
        raise BufferSizeError(msg)
    return min(*sizes, INT32_MAX)


def _requested_chunks(replicas: int | None, percentage: int | None, target_replicas: int | None) -> int | None:
    sizes = []
    if replicas is not None:
        sizes.append(max(0, replicas))
    if percentage is not None and target_replicas is not None:
        sizes.append(-(-max(0, percentage) * max(0, target_replicas) // 100))
    return max(sizes, default=None)


def _limit_by_resources(limits: Mapping[str, ImportedQuantity], requests: Mapping[str, ImportedQuantity]) -> int:
    """Count how many chunks fit into all limits; resources that a chunk does not ask for limit nothing."""
    counts = [
        limit.milli // requests[name].milli
        for name, limit in limits.items()
        if limit.sign >= 0 and name in requests and requests[name].sign > 0
    ]
    if not counts:
        msg = "resources in configured limits not found in the pod template"
        raise BufferSizeError(msg)
    return min(counts)


_LANE = "active"


@dataclass(frozen=True, slots=True)
class BufferActiveTimes:
    """A compiled schedule: its windows and its calendars, each by itself so that reasons can name them."""

    zone: ImportedZone
    windows: tuple[Timeline[bool], ...]
    calendars: tuple[tuple[str, Timeline[bool]], ...]
    """The calendars' names, and when each lets the buffer be active."""

    def timeline(self) -> Timeline[bool]:
        """Give the times at which the buffer is active."""
        return both(either(*self.windows), *(allows for _, allows in self.calendars))

    def state(self, at: int) -> str:
        """Say why the buffer is active or not at an instant."""
        if (refusing := self._refusing(at)) is not None:
            return f"calendar `{refusing}` leaves the day out ({self.zone.name})"
        if (window := self._open(at)) is not None:
            return f"`windows[{window}]` is open ({self.zone.name})"
        return f"no window is open ({self.zone.name})"

    def change(self, at: int, active: bool) -> str:
        """Say why the buffer becomes active, or stops being so, at an instant."""
        when = clock_time(at, self.zone)
        if not active:
            refusing = self._refusing(at)
            if refusing is not None:
                return f"calendar `{refusing}` leaves the day out ({when})"
            return f"`windows[{self._open(at - 1)}]` closes ({when})"
        refused = self._refusing(at - 1)
        if refused is not None:
            return f"calendar `{refused}` lets the day be used ({when})"
        return f"`windows[{self._open(at)}]` opens ({when})"

    def _open(self, at: int) -> int | None:
        return next((position for position, window in enumerate(self.windows) if window.at(at)), None)

    def _refusing(self, at: int) -> str | None:
        return next((name for name, allows in self.calendars if not allows.at(at)), None)


def buffer_active_times(
    schedule: BufferSchedule, default_zone: str, calendars: Mapping[str, DayCalendar]
) -> BufferActiveTimes:
    """Compile a schedule without errors; calendars that do not exist leave nothing out."""
    zone = load_zone(schedule.time_zone or default_zone)
    windows = tuple(open_times(window, zone, MatchPolicy.WINDOW) for window in schedule.windows or ())
    used = [reference for reference in schedule.calendars or () if reference.name in calendars]
    return BufferActiveTimes(
        zone,
        windows or (always(),),
        tuple(
            (reference.name, compiled.timeline(zone))
            for reference, compiled in zip(used, calendar_filters(used, calendars), strict=True)
        ),
    )


def forecast_buffer(buffer: CapacityBuffer, question: ForecastQuery) -> Outlook:
    """Look ahead: when the buffer is active."""
    schedule = buffer.spec.schedule
    if schedule is None:
        lane = Lane(_LANE, LaneStyle.ACTIVE, True, (), None, "the buffer has no schedule: it is always active")
        return Outlook(zones=(question.default_zone,), lanes=(lane,))
    times = buffer_active_times(schedule, question.default_zone, question.calendars)
    lane = timeline_lane(
        _LANE,
        LaneStyle.ACTIVE,
        times.timeline(),
        question,
        because=times.change,
        because_now=times.state(question.start),
    )
    return Outlook(zones=(times.zone.name,), lanes=(lane,))
