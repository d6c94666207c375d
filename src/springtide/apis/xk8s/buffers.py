"""CapacityBuffer: capacity that is kept free in the cluster, in chunks of the size of a pod.

The number of chunks is the larger of the fixed count and the percentage of the target's replicas, and at most what the
limits allow. A percentage rounds up, so that any percentage of a running workload is at least one chunk. All numbers
are exact, without overflow at 32 bits.

The windows of a buffer's schedule are open from a start until the next end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from springtide.almanac import DayCalendar, MatchPolicy, Timeline, always, both, either, load_zone
from springtide.almanac import Zone as TimeZone
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
from springtide.apis.meta.scaling import scalable_kind_meant
from springtide.apis.meta.times import CalendarReference, Window, calendar_filters, clock_time, open_times
from springtide.apis.meta.types import Conditions, LabelSelectorView, LocalReference, Object
from springtide.apis.problems import Problem, error, warning
from springtide.quantity import Quantity as Amount

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
        """Find references with a wrong group, and to kinds without replicas."""
        group, _, version = (self.api_group or "").partition("/")
        expected = _GROUPS.get(self.kind)
        if version:
            yield error(("apiGroup",), f'"{self.api_group}" is a group with a version', f"write `apiGroup: {group}`")
        elif self.kind in _WITHOUT_REPLICAS:
            yield error(("kind",), f"a {self.kind} has no number of replicas to follow", "name what is scaled")
        elif (meant := scalable_kind_meant(self.kind, group)) is not None:
            named = group or "the core group"
            yield error(("kind",), f"there is no kind {self.kind} in {named}", f"did you mean `{meant}`?")
        elif expected is not None and group != expected:
            found = f'"{group}"' if group else "the core group"
            yield warning(("apiGroup",), f"there is no {self.kind} in {found}", f"write `apiGroup: {expected}`")


class BufferWindow(Window, kw_only=True):
    """A window in which the buffer is active: a recurring or a single one."""

    __rules__ = (
        CelRule(
            "has(self.start) != has(self.from)",
            "Set either start and end, for a window that recurs, or from and until, for one that happens once.",
        ),
        CelRule("has(self.start) == has(self.end)", "Set both start and end."),
        CelRule("has(self.from) == has(self.until)", "Set both from and until."),
    )


class BufferSchedule(View, kw_only=True):
    """When the buffer reserves capacity."""

    __mistaken__ = {"timezone": "write `timeZone`", "behaviors": "write `windows`"}

    time_zone: Annotated[Zone | None, doc("Zone of the windows' local times, by its IANA name; UTC if not set.")] = None
    windows: Annotated[
        Annotated[tuple[BufferWindow, ...], Meta(max_length=64)] | None,
        doc("When the buffer is active: in any of these windows; at all times if there are none."),
    ] = None
    calendars: Annotated[
        Annotated[tuple[CalendarReference, ...], Meta(max_length=16), by_key("name")] | None,
        doc("Calendars that exclude days, or leave only theirs."),
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find schedules without effect."""
        if not self.windows and not self.calendars:
            yield warning((), "the schedule has neither windows nor calendars: the buffer is always active")


class CapacityBufferSpec(View, kw_only=True):
    """The pod template of the chunks, their number, and the schedule."""

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
            "Set podSelector: a dedicated buffer needs to select its pods.",
            extension=True,
        ),
    )
    __mistaken__ = {
        "podTemplate": "write `podTemplateRef`",
        "scaleTargetRef": "write `scalableRef`, with `apiGroup` instead of `apiVersion`",
        "strategy": "write `provisioningStrategy`",
        "minReplicas": "write `replicas`: with `percentage` it is the minimum",
    }

    provisioning_strategy: Annotated[str, doc("How capacity is kept free; other strategies than ours are ignored.")] = (
        ACTIVE_CAPACITY
    )
    pod_template_ref: Annotated[
        LocalReference | None, doc("The PodTemplate of a chunk. Either this or scalableRef.")
    ] = None
    scalable_ref: Annotated[
        ScalableReference | None,
        doc("The workload whose pod template is that of a chunk. Either this or podTemplateRef."),
    ] = None
    replicas: Annotated[Count | None, doc("How many chunks; with percentage, the larger of the two.")] = None
    percentage: Annotated[
        Count | None, doc("How many chunks, in percent of the workload's replicas, rounded up. For scalableRef.")
    ] = None
    limits: Annotated[
        dict[str, Quantity] | None,
        doc("The maximum of what all chunks together request; as many chunks as fit if no other size is set."),
    ] = None
    schedule: Annotated[BufferSchedule | None, doc("When the buffer is active; always if not set."), extension] = None
    dedicated: Annotated[
        bool, doc("Whether the pods of podSelector fill the buffer instead of coming on top of it."), extension
    ] = False
    pod_selector: Annotated[LabelSelectorView | None, doc("The pods that a dedicated buffer is for."), extension] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find buffers without a pod template or a size, and settings without effect."""
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
                f'strategy "{self.provisioning_strategy}" belongs to another project: Springtide ignores the buffer',
                f"ours is `{ACTIVE_CAPACITY}`",
            )
        if self.dedicated and self.pod_selector is None:
            yield error(
                ("dedicated",), "a dedicated buffer needs a `podSelector`", "add `podSelector: {matchLabels: {…}}`"
            )
        if self.pod_selector is not None and not self.dedicated:
            yield warning(
                ("podSelector",), "`podSelector` has no effect on a buffer for everyone", "add `dedicated: true`"
            )

    def _shape_problems(self) -> Iterator[Problem]:
        if self.pod_template_ref is not None and self.scalable_ref is not None:
            yield error(
                ("scalableRef",),
                "the chunks cannot have two pod templates",
                "keep either `podTemplateRef` or `scalableRef`",
            )
        elif self.pod_template_ref is None and self.scalable_ref is None:
            yield error((), "the chunks have no pod template", "add `podTemplateRef` or `scalableRef`")

    def _size_problems(self) -> Iterator[Problem]:
        if self.replicas is None and self.percentage is None and not self.limits:
            yield error((), "the buffer has no size", "add `replicas`, `percentage` or `limits`")
        elif self.percentage is not None and self.scalable_ref is None:
            if self.replicas is None and not self.limits:
                hint = "add `replicas` or `limits`, or refer to a workload with `scalableRef`"
                yield error(("percentage",), "`percentage` needs a workload, and there is no `scalableRef`", hint)
            else:
                hint = "remove it, or refer to a workload with `scalableRef`"
                yield warning(("percentage",), "`percentage` is ignored without a workload", hint)


class CapacityBufferStatus(View, kw_only=True):
    """The observed state of the buffer."""

    pod_template_ref: Annotated[LocalReference | None, doc("The PodTemplate that the chunks are made from.")] = None
    replicas: Annotated[Count | None, doc("How many chunks there should be, after limits and quotas.")] = None
    ready_replicas: Annotated[Count | None, doc("How many chunks have capacity on ready nodes."), extension] = None
    pod_template_generation: Annotated[Int64 | None, doc("Generation of the PodTemplate.")] = None
    provisioning_strategy: Annotated[str | None, doc("The strategy that is followed.")] = None
    conditions: Annotated[Conditions | None, doc("What is observed about the buffer.")] = None


class CapacityBuffer(Object, kw_only=True):
    """Capacity that is kept free in the cluster, so that new pods start without waiting for a node."""

    spec: Annotated[CapacityBufferSpec, doc("What is kept free, how much of it, and when.")]
    status: Annotated[CapacityBufferStatus | None, doc("The observed state of the buffer.")] = None


class BufferSizeError(ValueError):
    """The size of a buffer is undefined; its condition shows the message."""


def chunk_count(
    *,
    replicas: int | None = None,
    percentage: int | None = None,
    target_replicas: int | None = None,
    limits: Mapping[str, Amount] | None = None,
    requests: Mapping[str, Amount] | None = None,
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


def _limit_by_resources(limits: Mapping[str, Amount], requests: Mapping[str, Amount]) -> int:
    """Count how many chunks fit into all limits; limits of resources that a chunk does not request are ignored."""
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
    """A compiled schedule: its windows and calendars, kept separate so that reasons can name them."""

    zone: TimeZone
    windows: tuple[Timeline[bool], ...]
    calendars: tuple[tuple[str, Timeline[bool]], ...]
    """The names of the calendars, and the times at which each lets the buffer be active."""

    def timeline(self) -> Timeline[bool]:
        """Return the times at which the buffer is active."""
        return both(either(*self.windows), *(allows for _, allows in self.calendars))

    def state(self, at: int) -> str:
        """Return why the buffer is active or not at an instant."""
        if (excluding := self._excluding(at)) is not None:
            return f"calendar `{excluding}` excludes the day ({self.zone.name})"
        if (window := self._open(at)) is not None:
            return f"`windows[{window}]` is open ({self.zone.name})"
        return f"no window is open ({self.zone.name})"

    def change(self, at: int, active: bool) -> str:
        """Return why the buffer becomes active or inactive at an instant."""
        when = clock_time(at, self.zone)
        if not active:
            excluding = self._excluding(at)
            if excluding is not None:
                return f"calendar `{excluding}` excludes the day ({when})"
            return f"`windows[{self._open(at - 1)}]` closes ({when})"
        excluded = self._excluding(at - 1)
        if excluded is not None:
            return f"calendar `{excluded}` allows the day ({when})"
        return f"`windows[{self._open(at)}]` opens ({when})"

    def _open(self, at: int) -> int | None:
        return next((position for position, window in enumerate(self.windows) if window.at(at)), None)

    def _excluding(self, at: int) -> str | None:
        return next((name for name, allows in self.calendars if not allows.at(at)), None)


def buffer_active_times(
    schedule: BufferSchedule, default_zone: str, calendars: Mapping[str, DayCalendar]
) -> BufferActiveTimes:
    """Compile a schedule without errors; missing calendars are ignored."""
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


def forecast_buffer(buffer: CapacityBuffer, query: ForecastQuery) -> Outlook:
    """Forecast when the buffer is active."""
    schedule = buffer.spec.schedule
    if schedule is None:
        lane = Lane(_LANE, LaneStyle.ACTIVE, True, (), None, "the buffer has no schedule: it is always active")
        return Outlook(zones=(query.default_zone,), lanes=(lane,))
    times = buffer_active_times(schedule, query.default_zone, query.calendars)
    lane = timeline_lane(
        _LANE,
        LaneStyle.ACTIVE,
        times.timeline(),
        query,
        because=times.change,
        because_now=times.state(query.start),
    )
    return Outlook(zones=(times.zone.name,), lanes=(lane,))
