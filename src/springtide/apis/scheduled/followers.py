"""Autoscalers that follow the schedule of a MetricsProducer, and schedules that leave their bounds.

These follow: a HorizontalAutoscaler whose query is the metric of one producer, a HorizontalPodAutoscaler with that
external metric, and a ScaledObject with a Prometheus trigger. Only what is certain is reported: the target of the
metric is a number for each replica (`AverageValue`), and nothing else moves the bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from springtide.apis.core.workloads import HorizontalPodAutoscaler, ScaledObject
from springtide.apis.kinds import INT32_MAX, ValidationContext
from springtide.apis.meta.times import KnownCalendars, date_and_time
from springtide.apis.objects import LoadedObject
from springtide.apis.problems import Problem, warning
from springtide.apis.scheduled.autoscaler import (
    HorizontalAutoscaler,
    behaviour_of,
    bounds_of,
    exact_quantity,
    is_proportional,
    sources_of,
    target_of,
    tolerance_of,
)
from springtide.apis.scheduled.cross_object_checks import producers_named_in, query_is_only
from springtide.apis.scheduled.producer import MetricsProducer, ScheduleSpec
from springtide.apis.scheduled.schedule import compile_behaviors, first_wins, zone_of
from springtide.quantity import AmountError
from springtide.scaling import (
    DOWN_WINDOW,
    UP_WINDOW,
    ChangePolicy,
    DirectionLimits,
    PolicySelect,
    ProjectionRules,
    ScalingBehavior,
    ScalingBounds,
    ScalingTolerance,
)

SCHEDULE_METRICS = ("karpenter_scheduled_capacity", "karpenter_scheduled_replicas_value")
_DEFAULT_TOLERANCE = Fraction(1, 10)
"""Of a HorizontalPodAutoscaler, if the cluster does not change it."""


@dataclass(frozen=True, slots=True)
class FollowedSchedule:
    """A schedule that an autoscaler reads, and the value for one replica."""

    name: str
    """The name of the MetricsProducer."""
    schedule: ScheduleSpec
    target: Fraction

    def replicas(self, value: int) -> int:
        """Return the replicas that a value of the schedule recommends."""
        return ceil(value / self.target)


@dataclass(frozen=True, slots=True)
class ScheduleFollower:
    """An autoscaler, and the schedules among its metrics."""

    position: int
    """Its position among the objects."""
    loaded: LoadedObject
    followed: tuple[FollowedSchedule, ...]
    complete: bool
    """Whether it has no other metrics."""
    rules: ProjectionRules
    least_field: str = "minReplicas"
    most_field: str = "maxReplicas"

    @property
    def label(self) -> str:
        """Kind and name, for messages."""
        return f"{self.loaded.kind.kind} `{self.loaded.name}`"

    @property
    def certain_above(self) -> bool:
        """Whether a value above the maximum is certainly cut: the highest recommendation counts, or there is one."""
        up = self.rules.behaviour.up.select
        only = self.complete and len(self.followed) == 1
        return self.rules.highest or up is PolicySelect.MAX or (up is PolicySelect.MIN and only)

    @property
    def certain_below(self) -> bool:
        """Whether a value below the minimum is certainly raised to it: no other metric asks for more."""
        return self.complete and len(self.followed) == 1 and self.least_field == "minReplicas"


def read_followers(objects: Sequence[LoadedObject]) -> Iterator[ScheduleFollower]:
    """Find the autoscalers without errors that follow a schedule of one of these objects."""
    producers = scheduled_producers(objects)
    if not producers:
        return
    moved = {found for loaded in objects if (found := _target_of_rules(loaded)) is not None}
    for position, loaded in enumerate(objects):
        if not loaded.sound or (loaded.namespace, loaded.kind.kind, loaded.name) in moved:
            continue
        follower = read_follower(loaded, producers, position)
        if follower is not None and follower.followed:
            yield follower


ScheduledProducers = Mapping[tuple[str | None, str], MetricsProducer]
"""Producers without errors that have a schedule, by namespace and name."""


def scheduled_producers(objects: Iterable[LoadedObject]) -> ScheduledProducers:
    """Find the producers that autoscalers can follow."""
    return {
        (loaded.namespace, loaded.name): loaded.view
        for loaded in objects
        if isinstance(loaded.view, MetricsProducer) and loaded.sound and loaded.view.spec.schedule is not None
    }


def read_follower(loaded: LoadedObject, producers: ScheduledProducers, position: int = 0) -> ScheduleFollower | None:
    """Read an autoscaler without errors, and which of the producers it follows; None for other kinds."""
    match loaded.view:
        case HorizontalAutoscaler() as view:
            return _autoscaler(position, loaded, view, producers)
        case HorizontalPodAutoscaler() as view:
            return _pod_autoscaler(position, loaded, view, producers)
        case ScaledObject() as view:
            return _scaled_object(position, loaded, view, producers)
        case _:
            return None


def _target_of_rules(loaded: LoadedObject) -> tuple[str | None, str, str] | None:
    """Return the target of a CronFederatedHPA, with or without errors: where it is an autoscaler, its bounds change."""
    if loaded.kind.kind != "CronFederatedHPA":
        return None
    reference = _mapping(_mapping(loaded.value.get("spec")).get("scaleTargetRef"))
    return loaded.namespace, str(reference.get("kind")), str(reference.get("name"))


def producer_queried(query: str, namespace: str | None, producers: ScheduledProducers) -> MetricsProducer | None:
    """Find the producer whose schedule is the only metric of a query in a namespace."""
    for key in producers_named_in(query, namespace):
        producer = producers.get(key)
        if producer is not None and query_is_only(query, namespace, producer):
            return producer
    return None


def _queried(
    query: str, target: Fraction, loaded: LoadedObject, producers: ScheduledProducers
) -> FollowedSchedule | None:
    producer = producer_queried(query, loaded.namespace, producers)
    return None if producer is None else _followed(producer, target)


def _followed(producer: MetricsProducer, target: Fraction) -> FollowedSchedule | None:
    schedule = producer.spec.schedule
    return None if schedule is None else FollowedSchedule(producer.metadata.name or "", schedule, target)


def _autoscaler(
    position: int, loaded: LoadedObject, view: HorizontalAutoscaler, producers: ScheduledProducers
) -> ScheduleFollower:
    sources = sources_of(view.spec)
    found = [
        None if is_proportional(one) else _queried(one.query, target_of(one.target), loaded, producers)
        for one in sources
    ]
    followed = tuple(one for one in found if one is not None)
    rules = ProjectionRules(bounds_of(view.spec), behaviour_of(view.spec), tolerance_of(view.spec))
    return ScheduleFollower(position, loaded, followed, len(followed) == len(sources), rules)


def _pod_autoscaler(
    position: int, loaded: LoadedObject, view: HorizontalPodAutoscaler, producers: ScheduledProducers
) -> ScheduleFollower | None:
    metrics = view.spec.metrics or ()
    followed = tuple(one for metric in metrics if (one := _external(metric, loaded, producers)) is not None)
    behavior = _mapping(_mapping(loaded.value.get("spec")).get("behavior"))
    up, down = _mapping(behavior.get("scaleUp")), _mapping(behavior.get("scaleDown"))
    limits = (_pod_limits(up, UP_WINDOW), _pod_limits(down, DOWN_WINDOW))
    tolerances = (_pod_tolerance(up), _pod_tolerance(down))
    if limits[0] is None or limits[1] is None or tolerances[0] is None or tolerances[1] is None:
        return None
    rules = ProjectionRules(
        ScalingBounds(view.spec.min_replicas, view.spec.max_replicas),
        ScalingBehavior(limits[0], limits[1]),
        ScalingTolerance(up=tolerances[0], down=tolerances[1]),
        highest=True,
    )
    return ScheduleFollower(position, loaded, followed, len(followed) == len(metrics), rules)


def external_schedule_name(identifier: Any) -> str | None:
    """Return the name of the producer whose schedule an external metric selects; None for other metrics."""
    selector = _mapping(_mapping(identifier).get("selector"))
    name = _mapping(selector.get("matchLabels")).get("name")
    ours = _mapping(identifier).get("name") in SCHEDULE_METRICS and not selector.get("matchExpressions")
    return name if ours and isinstance(name, str) else None


def _external(metric: Any, loaded: LoadedObject, producers: ScheduledProducers) -> FollowedSchedule | None:
    """Find the schedule behind an external metric that selects one producer by its name."""
    source = _mapping(_mapping(metric).get("external"))
    identifier, target = _mapping(source.get("metric")), _mapping(source.get("target"))
    producer = producers.get((loaded.namespace, external_schedule_name(identifier) or ""))
    labels = _mapping(_mapping(identifier.get("selector")).get("matchLabels"))
    elsewhere = any(
        label != "name" and (label, value) != ("namespace", loaded.namespace) for label, value in labels.items()
    )
    if producer is None or elsewhere or target.get("type") != "AverageValue":
        return None
    amount = _positive(target.get("averageValue"))
    return None if amount is None else _followed(producer, amount)


def _pod_limits(written: Mapping[str, Any], window: int) -> DirectionLimits | None:
    """Read windows and policies; None for those that the API server refuses.

    The default policies are left out: under them a change takes a minute at most.
    """
    seconds = written.get("stabilizationWindowSeconds", window)
    select = written.get("selectPolicy", "Max")
    policies = [_pod_policy(_mapping(one)) for one in _list(written.get("policies"))]
    known = [policy for policy in policies if policy is not None]
    if len(known) < len(policies) or not _within(seconds, 0, 3600) or select not in list(PolicySelect):
        return None
    return DirectionLimits(seconds, PolicySelect(select), tuple(known))


def _pod_policy(written: Mapping[str, Any]) -> ChangePolicy | None:
    value, period = written.get("value"), written.get("periodSeconds")
    if not _within(value, 1, INT32_MAX) or not _within(period, 1, 1800):
        return None
    return ChangePolicy(int(value or 0), int(period or 0), written.get("type") == "Percent", least=0)


def _pod_tolerance(written: Mapping[str, Any]) -> Fraction | None:
    given = written.get("tolerance")
    return _DEFAULT_TOLERANCE if given is None else _amount(given)


def _scaled_object(
    position: int, loaded: LoadedObject, view: ScaledObject, producers: ScheduledProducers
) -> ScheduleFollower:
    followed = tuple(one for trigger in view.spec.triggers if (one := _trigger(trigger, loaded, producers)) is not None)
    bounds = ScalingBounds(view.spec.min_replica_count, view.spec.max_replica_count)
    rules = ProjectionRules(bounds, ScalingBehavior(), ScalingTolerance(), highest=True)
    # Not complete: KEDA also activates and deactivates, after periods of its own.
    return ScheduleFollower(position, loaded, followed, False, rules, "minReplicaCount", "maxReplicaCount")


def _trigger(trigger: Any, loaded: LoadedObject, producers: ScheduledProducers) -> FollowedSchedule | None:
    found = _mapping(trigger)
    metadata = _mapping(found.get("metadata"))
    query, threshold = metadata.get("query"), _positive(metadata.get("threshold"))
    if found.get("type") != "prometheus" or found.get("metricType", "AverageValue") != "AverageValue":
        return None
    if not isinstance(query, str) or threshold is None:
        return None
    return _queried(query, threshold, loaded, producers)


def _positive(amount: Any) -> Fraction | None:
    found = _amount(amount)
    return found if found is not None and found > 0 else None


def _amount(written: Any) -> Fraction | None:
    if not isinstance(written, str | int | float):
        return None
    try:
        return exact_quantity(written)
    except AmountError:
        return None


def _within(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and least <= value <= most


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def follower_problems(
    objects: Sequence[LoadedObject], context: ValidationContext, calendars: KnownCalendars
) -> Iterator[tuple[int, Problem]]:
    """Find schedules that ask for replicas beyond the bounds of the autoscaler that follows them."""
    for follower in read_followers(objects):
        for followed in follower.followed:
            for problem in _beyond_bounds(follower, followed, context, calendars):
                yield follower.position, problem


@dataclass(frozen=True, slots=True)
class _Request:
    """What a schedule asks for, by a behaviour or by default."""

    label: str
    field: str
    value: int
    replicas: int
    first: int
    """When it does so first, from now on."""


def _beyond_bounds(
    follower: ScheduleFollower, followed: FollowedSchedule, context: ValidationContext, calendars: KnownCalendars
) -> Iterator[Problem]:
    bounds, schedule = follower.rules.bounds, followed.schedule
    values = [schedule.default_replicas, *(one.replicas for one in schedule.behaviors if not one.suspend)]
    above = follower.certain_above and any(followed.replicas(value) > bounds.most for value in values)
    below = follower.certain_below and any(followed.replicas(value) < bounds.least for value in values)
    if not above and not below:
        return  # before the search for when it happens
    zone = zone_of(schedule, context.default_zone)
    claims = compile_behaviors(schedule, zone, calendars.by_name)
    unknown = {claim.position for claim in claims if not calendars.resolves(claim.behavior.calendars)}
    requests = [
        _Request(
            "the default" if claim is None else claim.label,
            "`defaultReplicas`" if claim is None else "`replicas` of the behaviour",
            value := schedule.default_replicas if claim is None else claim.replicas,
            followed.replicas(value),
            at,
        )
        for claim, at in first_wins(claims, context.now)
        if claim is None or claim.position not in unknown
    ]
    over = [one for one in requests if above and one.replicas > bounds.most]
    under = [one for one in requests if below and one.replicas < bounds.least]
    for found, limit, bound, path in (
        (sorted(over, key=lambda one: -one.replicas), bounds.most, "most", follower.most_field),
        (sorted(under, key=lambda one: one.replicas), bounds.least, "least", follower.least_field),
    ):
        if not found:
            continue
        worst = found[0]
        others = f"; so do {len(found) - 1} others" if len(found) > 2 else "; so does another" if found[1:] else ""
        asked = f"{worst.value}" if worst.value == worst.replicas else f"{worst.value} ({worst.replicas} replicas)"
        when = "now" if worst.first <= context.now else f"first at {date_and_time(worst.first, zone)}"
        message = (
            f"{follower.label} sets at {bound} {limit} replicas, but {worst.label} of MetricsProducer"
            f" `{followed.name}` asks for {asked}, {when}{others}"
        )
        yield warning(("spec", path), message, _bound_hint(follower, followed, worst, path, over=bound == "most"))


def _bound_hint(
    follower: ScheduleFollower, followed: FollowedSchedule, worst: _Request, path: str, *, over: bool
) -> str:
    bounds = follower.rules.bounds
    if over:
        fitting = int(bounds.most * followed.target)
        return f"raise `{path}` to {worst.replicas}, or lower {worst.field} to {fitting}"
    fitting = int((bounds.least - 1) * followed.target) + 1
    gate = isinstance(follower.loaded.view, HorizontalPodAutoscaler) and worst.replicas == 0
    gated = " (which needs the feature gate HPAScaleToZero)" if gate else ""
    return f"lower `{path}` to {worst.replicas}{gated}, or raise {worst.field} to {fitting}"
