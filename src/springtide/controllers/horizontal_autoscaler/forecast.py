"""What a HorizontalAutoscaler will do from its present state on, with the functions of its controller.

It is known where each of its metrics is the schedule of a MetricsProducer, shared out among replicas. The state is
the number of replicas of its target, and what the status and the schedules tell of the past.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from springtide.almanac.search_budget import limit_search
from springtide.apis.forecast import format_instant
from springtide.apis.scheduled.autoscaler import (
    HorizontalAutoscaler,
    PrometheusMetricSource,
    is_proportional,
    sources_of,
)
from springtide.apis.scheduled.cross_object_checks import producers_named_in
from springtide.apis.scheduled.follower_forecast import CompiledFollower
from springtide.apis.scheduled.followers import producer_queried, read_follower, scheduled_producers
from springtide.apis.scheduled.producer import MetricsProducer, ScheduleSpec
from springtide.cluster.conditions import ConditionStatus
from springtide.controllers.explanation import ExplanationInput, UpcomingChange, end_named_in, instant_of, mappings
from springtide.controllers.horizontal_autoscaler.scaling_history import restore_changes
from springtide.scaling import (
    PolicySelect,
    ProjectedMove,
    ProjectionRules,
    ProjectionStart,
    RecommendationSteps,
    ReplicaHistory,
    ScalingTolerance,
)

_LISTED = 5
_MOST_STEPS = 2_000_000
"""Of the search for changes of the schedules: some seconds."""
_MOST_EVALUATIONS = 5_000
"""The same for evaluations of the metrics."""
_SETTLED = 86_400
"""Seconds that windows and policies are given to settle where the replicas at the explained time are not known."""


@dataclass(frozen=True, slots=True)
class ReplicaForecast:
    """What an autoscaler wants at the explained time and what it will do, or why that is not known."""

    wants: int | None = None
    coming: tuple[UpcomingChange, ...] = ()
    unknown: str = ""


def forecast_replicas(facts: ExplanationInput, autoscaler: HorizontalAutoscaler) -> ReplicaForecast:
    """Look ahead for an autoscaler without errors."""
    sources = sources_of(autoscaler.spec)
    unknown = next((why for source in sources if (why := _why_unknown(source, facts))), "")
    follower = read_follower(facts.object, scheduled_producers(facts.others))
    if unknown or not sources or follower is None:
        return ReplicaForecast(unknown=unknown)
    behaviour = follower.rules.behaviour
    if len(sources) > 1 and behaviour.up.select is not behaviour.down.select:
        # It also depends on the recommendation that was overruled last, which no status contains.
        unknown = "which of its metrics counts depends on whether it goes up or down from where it is"
        return ReplicaForecast(unknown=unknown)
    compiled = CompiledFollower.of(follower, facts.default_zone, facts.calendars)
    asked, read_at = _replicas(facts), facts.at if facts.present else facts.read_at
    if asked is not None and read_at is not None and read_at <= facts.at:
        begins, start = read_at, ProjectionStart(asked, _past(facts, compiled, read_at, asked))
    elif unknown := _unknown_without_replicas(follower.rules):
        return ReplicaForecast(unknown=unknown)
    else:
        begins, start = facts.at - _SETTLED, None
    return _ahead(facts.at, compiled, begins, start)


def _ahead(at: int, compiled: CompiledFollower, begins: int, start: ProjectionStart | None) -> ReplicaForecast:
    """Follow the autoscaler from an instant on to the one that is explained, and list what comes then."""
    wants: int | None = None
    coming: list[ProjectedMove] = []
    evaluations, last = 0, begins
    with limit_search(_MOST_STEPS) as budget:
        for step in islice(compiled.moves(begins, start), _MOST_EVALUATIONS):
            if budget.exhausted or len(coming) == _LISTED:
                break  # when the search is given up, a change of a schedule may be missing before this evaluation
            evaluations, last = evaluations + 1, step.at
            if step.at <= at:
                wants = step.replicas
            elif step.changes:
                coming.append(step)
    changes = tuple(
        UpcomingChange(
            step.at, step.replicas, "replicas", compiled.reason(step), compiled.deciding(step.since)[0].zone.name
        )
        for step in coming
    )
    if len(coming) == _LISTED or not (budget.exhausted or evaluations == _MOST_EVALUATIONS):
        return ReplicaForecast(wants, changes)
    if last < at:
        return ReplicaForecast(unknown="there are too many changes before that time")
    more = "nothing more" if coming else "nothing"
    unknown = f"{more} changes until {format_instant(last)}, and the search for what comes then was given up"
    return ReplicaForecast(wants, changes, unknown)


def schedule_read_by(source: PrometheusMetricSource, facts: ExplanationInput) -> ScheduleSpec | None:
    """Return the schedule whose value a metric is, without anything around it."""
    producer = producer_queried(source.query, facts.object.namespace, scheduled_producers(facts.others))
    return None if producer is None else producer.spec.schedule


def producers(facts: ExplanationInput) -> Iterator[MetricsProducer]:
    """Return the producers without errors."""
    for other in facts.others:
        if isinstance(other.view, MetricsProducer) and other.sound:
            yield other.view


def missing_producers(source: PrometheusMetricSource, facts: ExplanationInput) -> list[str]:
    """Name the producers that a metric reads and that do not exist."""
    if "MetricsProducer" in facts.unseen:
        return []
    known = {(one.namespace, one.name) for one in facts.others if one.kind.kind == "MetricsProducer"}
    named = dict.fromkeys(producers_named_in(source.query, facts.object.namespace))
    return [name for namespace, name in named if (namespace, name) not in known]


def _why_unknown(source: PrometheusMetricSource, facts: ExplanationInput) -> str:
    """Say why the values of a metric, or what they recommend, are not known in advance, if they are not."""
    if schedule_read_by(source, facts) is None:
        missing = missing_producers(source, facts)
        if missing:
            return f"no MetricsProducer `{missing[0]}` exists, so the next change is unknown"
        return f"`{source.query}` is not just the schedule of one MetricsProducer, so the next change is unknown"
    if is_proportional(source):
        return (
            f"what `{source.query}` asks for depends on how many replicas there are then (target {source.target.type})"
        )
    return ""


def _unknown_without_replicas(rules: ProjectionRules) -> str:
    """Say why the replicas at the explained time depend on those before, if they do."""
    selects = {"scaleUp": rules.behaviour.up.select, "scaleDown": rules.behaviour.down.select}
    disabled = [name for name, select in selects.items() if select is PolicySelect.DISABLED]
    if disabled:
        return f"`{disabled[0]}` is disabled, so that it depends on where it is then"
    if rules.tolerance != ScalingTolerance():
        return "a `tolerance` is set, so that it depends on where it is then"
    return ""


def _replicas(facts: ExplanationInput) -> int | None:
    """Return what the target is asked for now, as far as that is known."""
    if facts.target is not None and "replicas" in facts.target.values:
        return facts.target.values["replicas"]
    reported = facts.status.get("desiredReplicas")
    return reported if isinstance(reported, int) else None


def _past(facts: ExplanationInput, compiled: CompiledFollower, at: int, asked: int) -> ReplicaHistory:
    """Return what the controller recommended and changed, as the schedules and its status tell."""
    behaviour = compiled.follower.rules.behaviour
    recent = [
        entry
        for entry in mappings(facts.status.get("recentChanges"))
        if instant_of(entry.get("time")) is not None and isinstance(entry.get("change"), int)
    ]
    changes = restore_changes({"recentChanges": recent}, asked, at, keep=behaviour.longest_period)
    steps = _recommendations(compiled, at, asked, since=instant_of(facts.status.get("lastScaleTime")))
    able = next((one for one in facts.conditions if one.type == "AbleToScale"), None)
    if able is not None and able.status == ConditionStatus.FALSE and able.reason.endswith("Stabilized"):
        # The controller was started, or the schedule was edited, within the window.
        window = behaviour.up.window if able.reason.startswith("ScaleUp") else behaviour.down.window
        end = end_named_in(able.message, at)
        if end is not None and end - window <= at:
            steps = RecommendationSteps(((at - behaviour.longest_window, asked), (end - window, steps.steps[-1][1])))
    return ReplicaHistory(steps, changes)


def _recommendations(compiled: CompiledFollower, until: int, asked: int, *, since: int | None) -> RecommendationSteps:
    """Return the recommendations of the longest window that ends at an instant.

    `asked` is the scale since an instant, or for all the time; before it, the scale is not known.
    """
    rules = compiled.follower.rules
    found: list[tuple[int, int]] = []
    for at, ratios in compiled.ratios.segments(until - rules.behaviour.longest_window):
        if at > until:
            break
        replicas = rules.select(ratios, asked if since is None or at >= since else 0)
        if not found or found[-1][1] != replicas:
            found.append((at, replicas))
    return RecommendationSteps(tuple(found))
