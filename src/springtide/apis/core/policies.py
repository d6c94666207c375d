"""Objects that decide about the pods of others: priorities, disruption budgets and the defaults of a namespace.

Each has a view in manifests, and a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

import msgspec

from springtide.apis.core.pod_record import (
    ObjectSelector,
    PodSchedulingClass,
    PodSpecView,
    pod_class_of,
)
from springtide.apis.core.resources import pod_level_requests
from springtide.apis.kinds import Int32, Quantity, View, doc
from springtide.apis.meta.types import DecodedPart, LabelSelectorView, Object
from springtide.quantity import AmountError

_PREEMPTS = "PreemptLowerPriority"


class _Metadata(DecodedPart):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class PriorityClass(Object, kw_only=True):
    """How important pods are."""

    __opaque__ = ("description",)

    value: Annotated[Int32, doc("The priority; the higher is scheduled first.")]
    global_default: Annotated[bool | None, doc("Whether it is the class of pods that name none.")] = None
    preemption_policy: Annotated[
        str | None, doc("Never, or PreemptLowerPriority if not set: whether others are evicted for its pods.")
    ] = None


class PriorityClassRecord(msgspec.Struct, frozen=True, gc=False):
    """A PriorityClass."""

    name: str = ""
    value: int = 0
    global_default: bool = False
    """Whether it is the class of pods that name none."""
    preemption_policy: str = _PREEMPTS


class PriorityClassView(DecodedPart):
    """A PriorityClass as the API server sends it, as far as records are made of it."""

    metadata: _Metadata
    value: int = 0
    global_default: bool | None = None
    preemption_policy: str | None = None


def priority_class_record(priority_class: PriorityClassView) -> PriorityClassRecord:
    """Make the record of a priority class."""
    return PriorityClassRecord(
        priority_class.metadata.name,
        priority_class.value,
        bool(priority_class.global_default),
        priority_class.preemption_policy or _PREEMPTS,
    )


SYSTEM_PRIORITY_CLASSES = (
    PriorityClassRecord("system-cluster-critical", 2_000_000_000),
    PriorityClassRecord("system-node-critical", 2_000_001_000),
)
"""The priority classes that every cluster has."""


def class_with_priority(
    pod_class: PodSchedulingClass, priority_classes: Mapping[str, PriorityClassRecord]
) -> PodSchedulingClass:
    """Return the class with the priority of its PriorityClass, as the API server sets it when a pod is created.

    A pod that names none gets the global default, of several the one with the lowest value; a name without an object is
    priority 0, though the API server would refuse the pod.
    """
    if pod_class.has_priority:
        return pod_class
    found = _class_of(pod_class.priority_class_name, priority_classes)
    if found is None:
        return pod_class
    spec = msgspec.json.decode(pod_class.text)
    return pod_class_of(
        {
            **spec,
            "priority": found.value,
            "priorityClassName": found.name,
            "preemptionPolicy": found.preemption_policy,
        }
    )


def _class_of(name: str, classes: Mapping[str, PriorityClassRecord]) -> PriorityClassRecord | None:
    if name:
        return classes.get(name) or next((one for one in SYSTEM_PRIORITY_CLASSES if one.name == name), None)
    defaults = [one for one in classes.values() if one.global_default]
    return min(defaults, key=lambda one: (one.value, one.name), default=None)


class PodDisruptionBudgetSpec(View, kw_only=True):
    """How many pods of a selection must stay."""

    selector: Annotated[LabelSelectorView | None, doc("Which pods; none if not set, all if empty.")] = None
    min_available: Annotated[int | str | None, doc("How many must stay, as a count or percentage.")] = None
    max_unavailable: Annotated[int | str | None, doc("How many may be missing, as a count or percentage.")] = None
    unhealthy_pod_eviction_policy: Annotated[
        str | None, doc("AlwaysAllow, or IfHealthyBudget if not set: when pods that are not ready may be evicted.")
    ] = None


class PodDisruptionBudget(Object, kw_only=True):
    """A limit on evictions of the pods of a selection."""

    __opaque__ = ("status",)

    spec: Annotated[PodDisruptionBudgetSpec | None, doc("How many must stay.")] = None


class DisruptionBudgetRecord(msgspec.Struct, frozen=True, gc=False):
    """A PodDisruptionBudget."""

    namespace: str = ""
    name: str = ""
    selector: ObjectSelector | None = None
    """None selects no pod, an empty one all pods of the namespace."""
    min_available: int | str | None = None
    """A count or a percentage."""
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"
    disruptions_allowed: int = 0
    expected_pods: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    is_observed: bool = False
    """Whether the counts are those of the present spec; of a manifest they are not set."""


class _BudgetMetadata(_Metadata):
    generation: int | None = None


class _BudgetSpec(DecodedPart):
    selector: ObjectSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class _BudgetStatus(DecodedPart):
    observed_generation: int | None = None
    disruptions_allowed: int | None = None
    expected_pods: int | None = None
    current_healthy: int | None = None
    desired_healthy: int | None = None


class DisruptionBudgetView(DecodedPart):
    """A PodDisruptionBudget as the API server sends it, as far as records are made of it."""

    metadata: _BudgetMetadata
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus | None = None


def disruption_budget_record(budget: DisruptionBudgetView) -> DisruptionBudgetRecord:
    """Make the record of a budget."""
    metadata, spec, status = budget.metadata, budget.spec, budget.status or _BudgetStatus()
    return DisruptionBudgetRecord(
        namespace=metadata.namespace or "",
        name=metadata.name,
        selector=spec.selector,
        min_available=spec.min_available,
        max_unavailable=spec.max_unavailable,
        unhealthy_pod_eviction_policy=spec.unhealthy_pod_eviction_policy or "IfHealthyBudget",
        disruptions_allowed=status.disruptions_allowed or 0,
        expected_pods=status.expected_pods or 0,
        current_healthy=status.current_healthy or 0,
        desired_healthy=status.desired_healthy or 0,
        is_observed=status.observed_generation is not None and status.observed_generation >= (metadata.generation or 0),
    )


class LimitRangeItem(View, kw_only=True):
    """Limits and defaults of one type of object."""

    type: Annotated[str, doc("Container, Pod or PersistentVolumeClaim.")]
    default: Annotated[dict[str, Quantity] | None, doc("Limits of containers that set none.")] = None
    default_request: Annotated[dict[str, Quantity] | None, doc("Requests of containers that set none.")] = None
    max: Annotated[dict[str, Quantity] | None, doc("The maximum; also the default limit if that is not set.")] = None
    min: Annotated[dict[str, Quantity] | None, doc("The minimum; also the default request if that is not set.")] = None
    max_limit_request_ratio: Annotated[dict[str, Quantity] | None, doc("How far limits may exceed requests.")] = None


class LimitRangeSpec(View, kw_only=True):
    """Limits and defaults of a namespace."""

    limits: Annotated[tuple[LimitRangeItem, ...] | None, doc("The limits, by type of object.")] = None


class LimitRange(Object, kw_only=True):
    """Limits and defaults of the resources that pods of a namespace request."""

    spec: Annotated[LimitRangeSpec | None, doc("The limits.")] = None


RawAmounts = Mapping[str, str | int | float]
"""Amounts as they are written."""
_NO_AMOUNTS: RawAmounts = MappingProxyType({})


class LimitRangeRecord(msgspec.Struct, frozen=True, gc=False):
    """A LimitRange: what containers of its namespace request that set nothing."""

    namespace: str = ""
    name: str = ""
    default_requests: RawAmounts = _NO_AMOUNTS
    default_limits: RawAmounts = _NO_AMOUNTS


class _LimitRangeItem(DecodedPart):
    type: str = ""
    default: dict[str, str | int | float] | None = None
    default_request: dict[str, str | int | float] | None = None
    max: dict[str, str | int | float] | None = None
    min: dict[str, str | int | float] | None = None


class _LimitRangeSpec(DecodedPart):
    limits: tuple[_LimitRangeItem, ...] | None = None


class LimitRangeView(DecodedPart):
    """A LimitRange as the API server sends it, as far as records are made of it."""

    metadata: _Metadata
    spec: _LimitRangeSpec = _LimitRangeSpec()


def limit_range_record(limit_range: LimitRangeView) -> LimitRangeRecord:
    """Make the record of a limit range, defaulted as the API server does: limits from `max`, requests from `min`."""
    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}
    for item in limit_range.spec.limits or ():
        if item.type == "Container":
            given = {**(item.max or {}), **(item.default or {})}
            limits |= given
            requests |= {**(item.min or {}), **given, **(item.default_request or {})}
    metadata = limit_range.metadata
    return LimitRangeRecord(
        metadata.namespace or "", metadata.name, MappingProxyType(requests), MappingProxyType(limits)
    )


def with_defaults(spec: Mapping[str, Any], limit_ranges: Iterable[LimitRangeRecord]) -> dict[str, Any]:
    """Return a pod spec, which is plain JSON, with the requests and limits that the API server sets in its namespace.

    The limits that a container sets become its requests first, and those of the pod its requests; only then the limit
    ranges of the namespace fill in, in order of their names.
    """
    defaulted = {**spec}
    ranges = sorted(limit_ranges, key=lambda one: (one.namespace, one.name))
    if not ranges:
        return defaulted
    if (spec.get("resources") or {}).get("limits"):
        defaulted["resources"] = _pod_resources(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            defaulted[field] = [_container_with_defaults(container, ranges) for container in spec[field]]
    return defaulted


def _pod_resources(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the resources of the pod as a whole with the requests that its limits and its containers make."""
    try:
        view = msgspec.convert({**spec, "volumes": None}, PodSpecView)
        requests = pod_level_requests(view)
    except (msgspec.ValidationError, AmountError):
        return dict(spec["resources"])
    return {**spec["resources"], "requests": {name: str(amount) for name, amount in requests.items()}}


def _container_with_defaults(container: Mapping[str, Any], ranges: Iterable[LimitRangeRecord]) -> dict[str, Any]:
    resources = container.get("resources") or {}
    limits = dict(resources.get("limits") or {})
    requests = {**limits, **(resources.get("requests") or {})}
    for each in ranges:
        limits = {**each.default_limits, **limits}
        requests = {**each.default_requests, **requests}
    return {**container, "resources": {**resources, "limits": limits, "requests": requests}}


def class_with_defaults(pod_class: PodSchedulingClass, limit_ranges: Iterable[LimitRangeRecord]) -> PodSchedulingClass:
    """Return the class of a pod that is created in a namespace with these limit ranges, as `with_defaults` says."""
    ranges = tuple(limit_ranges)
    if not ranges or pod_class.unreadable or not pod_class.text:
        return pod_class
    return pod_class_of(with_defaults(msgspec.json.decode(pod_class.text), ranges))
