"""What a HorizontalAutoscaler will do: its `decide`, repeated at each instant at which it will decide something new.

These are the changes of the schedules that it follows, and the ends of the windows and policies that hold it back. The
replicas of its target change with each step, as tolerances and policies depend on them. It is known where each metric
is the schedule of a MetricsProducer, shared out among replicas.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from springtide.almanac import Timeline
from springtide.almanac.search_budget import limit_search
from springtide.apis.forecast import ForecastQuery, format_instant
from springtide.apis.scheduled.autoscaler import (
    HorizontalAutoscaler,
    HorizontalAutoscalerSpec,
    PrometheusMetricSource,
    behaviour_of,
    bounds_of,
    is_proportional,
    sources_of,
    tolerance_of,
)
from springtide.apis.scheduled.cross_object_checks import producers_named_in, query_is_only
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.scheduled.schedule import compile_schedule, forecast_schedule, zone_of
from springtide.cluster.conditions import ConditionStatus
from springtide.controllers.decision import ObservedScale
from springtide.controllers.explanation import ExplanationInput, UpcomingChange, end_named_in, instant_of, mappings
from springtide.controllers.horizontal_autoscaler.decide import HorizontalAutoscalerDecision, decide
from springtide.controllers.horizontal_autoscaler.recommendation import recommend
from springtide.controllers.horizontal_autoscaler.scaling_history import restore_changes
from springtide.scaling import (
    PolicySelect,
    RecommendationSteps,
    ReplicaHistory,
    ScalingTolerance,
)

_LISTED = 5
_MOST_STEPS = 2_000_000
"""Of the search for changes of the schedules: some seconds."""
_MOST_DECISIONS = 5_000
"""The same for decisions."""
_SETTLED = 86_400
"""Seconds that windows and policies are given to settle where the replicas at the explained time are not known."""


@dataclass(frozen=True, slots=True)
class ReplicaForecast:
    """What an autoscaler wants at the explained time and what it will do, or why that is not known."""

    wants: int | None = None
    coming: tuple[UpcomingChange, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class FollowedSchedule:
    """A metric of an autoscaler that is the schedule of a producer."""

    source: PrometheusMetricSource
    producer: MetricsProducer
    values: Timeline[int]


@dataclass(frozen=True, slots=True)
class _ReplayStart:
    """What the autoscaler knows at the first instant: the replicas of its target, and the past."""

    at: int
    asked: int
    history: ReplicaHistory


@dataclass(frozen=True, slots=True)
class _ReplayedDecision:
    at: int
    decision: HorizontalAutoscalerDecision
    changed_at: int | None
    """The last change of a schedule since the first instant."""
    held: str
    """Why the decision before this one did not go further: the reason of its condition AbleToScale."""


def forecast_replicas(facts: ExplanationInput, autoscaler: HorizontalAutoscaler) -> ReplicaForecast:
    """Look ahead for an autoscaler without errors."""
    followed: list[FollowedSchedule] = []
    for source in sources_of(autoscaler.spec):
        found = _followed_schedule(source, facts)
        if isinstance(found, str):
            return ReplicaForecast(unknown=found)
        followed.append(found)
    if not followed:
        return ReplicaForecast()
    behaviour = behaviour_of(autoscaler.spec)
    if len(followed) > 1 and behaviour.up.select is not behaviour.down.select:
        # It also depends on the recommendation that was overruled last, which no status contains.
        unknown = "which of its metrics counts depends on whether it goes up or down from where it is"
        return ReplicaForecast(unknown=unknown)
    start = _start(facts, autoscaler.spec, followed)
    if isinstance(start, str):
        return ReplicaForecast(unknown=start)
    wants: int | None = None
    coming: list[_ReplayedDecision] = []
    decisions, last = 0, start.at
    with limit_search(_MOST_STEPS) as budget:
        for one in islice(_replay(autoscaler.spec, followed, start), _MOST_DECISIONS):
            if budget.exhausted or len(coming) == _LISTED:
                break  # when the search is given up, a change of a schedule may be missing before this decision
            decisions, last = decisions + 1, one.at
            if one.at <= facts.at:
                wants = one.decision.replicas
            elif one.decision.actions:
                coming.append(one)
    changes = tuple(_upcoming(facts, autoscaler.spec, followed, start, coming))
    if len(coming) == _LISTED or not (budget.exhausted or decisions == _MOST_DECISIONS):
        return ReplicaForecast(wants, changes)
    if last < facts.at:
        return ReplicaForecast(unknown="there are too many changes before that time")
    more = "nothing more" if coming else "nothing"
    unknown = f"{more} changes until {format_instant(last)}, and the search for what comes then was given up"
    return ReplicaForecast(wants, changes, unknown)


def schedule_read_by(source: PrometheusMetricSource, facts: ExplanationInput) -> MetricsProducer | None:
    """Return the producer whose value a metric is, without anything around it."""
    return next((one for one in producers(facts) if query_is_only(source.query, facts.object.namespace, one)), None)


def producers(facts: ExplanationInput) -> Iterator[MetricsProducer]:
    """Return the producers without errors."""
    for other in facts.others:
        if isinstance(other.view, MetricsProducer) and other.sound:
            yield other.view


def schedule_values(producer: MetricsProducer, facts: ExplanationInput) -> Timeline[int] | None:
    """Return the values of a producer's schedule; None for other producers."""
    schedule = producer.spec.schedule
    if schedule is None:
        return None
    return compile_schedule(schedule, zone_of(schedule, facts.default_zone), facts.calendars)


def _followed_schedule(source: PrometheusMetricSource, facts: ExplanationInput) -> FollowedSchedule | str:
    """Compile a metric, or say why its next change is unknown."""
    producer = schedule_read_by(source, facts)
    values = schedule_values(producer, facts) if producer is not None else None
    if producer is None or values is None:
        return _why_unknown(source, facts)
    if is_proportional(source):
        return (
            f"what `{source.query}` asks for depends on how many replicas there are then (target {source.target.type})"
        )
    return FollowedSchedule(source, producer, values)


def missing_producers(source: PrometheusMetricSource, facts: ExplanationInput) -> list[str]:
    """Name the producers that a metric reads and that do not exist."""
    if "MetricsProducer" in facts.unseen:
        return []
    known = {(one.namespace, one.name) for one in facts.others if one.kind.kind == "MetricsProducer"}
    named = dict.fromkeys(producers_named_in(source.query, facts.object.namespace))
    return [name for namespace, name in named if (namespace, name) not in known]


def _why_unknown(source: PrometheusMetricSource, facts: ExplanationInput) -> str:
    missing = missing_producers(source, facts)
    if missing:
        return f"no MetricsProducer `{missing[0]}` exists, so the next change is unknown"
    return f"`{source.query}` is not just the schedule of one MetricsProducer, so the next change is unknown"


def _start(
    facts: ExplanationInput, spec: HorizontalAutoscalerSpec, followed: Sequence[FollowedSchedule]
) -> _ReplayStart | str:
    """Begin when the target was read, with its replicas; or before the explained time, where they do not matter."""
    at = facts.at if facts.present else facts.read_at
    asked = _replicas(facts)
    if asked is not None and at is not None and at <= facts.at:
        return _ReplayStart(at, asked, _past(facts, spec, followed, at, asked))
    behaviour = behaviour_of(spec)
    selects = {"scaleUp": behaviour.up.select, "scaleDown": behaviour.down.select}
    disabled = [name for name, select in selects.items() if select is PolicySelect.DISABLED]
    if disabled:
        return f"`{disabled[0]}` is disabled, so that it depends on where it is then"
    if tolerance_of(spec) != ScalingTolerance():
        return "a `tolerance` is set, so that it depends on where it is then"
    at = facts.at - _SETTLED
    asked = bounds_of(spec).clamp(_recommended(spec, followed, [one.values.at(at) for one in followed], None))
    return _ReplayStart(at, asked, ReplicaHistory(_recommendations(spec, followed, at, None)))


def _replicas(facts: ExplanationInput) -> int | None:
    """Return what the target is asked for now, as far as that is known."""
    if facts.target is not None and "replicas" in facts.target.values:
        return facts.target.values["replicas"]
    reported = facts.status.get("desiredReplicas")
    return reported if isinstance(reported, int) else None


def _past(
    facts: ExplanationInput,
    spec: HorizontalAutoscalerSpec,
    followed: Sequence[FollowedSchedule],
    at: int,
    asked: int,
) -> ReplicaHistory:
    """Return what the controller recommended and changed, as the schedules and its status tell."""
    behaviour = behaviour_of(spec)
    recent = [
        entry
        for entry in mappings(facts.status.get("recentChanges"))
        if instant_of(entry.get("time")) is not None and isinstance(entry.get("change"), int)
    ]
    changes = restore_changes({"recentChanges": recent}, asked, at, keep=behaviour.longest_period)
    since = instant_of(facts.status.get("lastScaleTime"))
    steps = _recommendations(spec, followed, at, asked, since)
    able = next((one for one in facts.conditions if one.type == "AbleToScale"), None)
    if able is not None and able.status == ConditionStatus.FALSE and able.reason.endswith("Stabilized"):
        # The controller was started, or the schedule was edited, within the window.
        window = behaviour.up.window if able.reason.startswith("ScaleUp") else behaviour.down.window
        end = end_named_in(able.message, at)
        if end is not None and end - window <= at:
            steps = RecommendationSteps(((at - behaviour.longest_window, asked), (end - window, steps.steps[-1][1])))
    return ReplicaHistory(steps, changes)


def _recommendations(
    spec: HorizontalAutoscalerSpec,
    followed: Sequence[FollowedSchedule],
    until: int,
    asked: int | None,
    since: int | None = None,
) -> RecommendationSteps:
    """Return the recommendations of the longest window that ends at an instant.

    `asked` is the scale since an instant, or for all the time; before it, the scale is not known.
    """
    found: list[tuple[int, int]] = []
    for at, values in _valued(followed, until - behaviour_of(spec).longest_window):
        if at > until:
            break
        replicas = _recommended(spec, followed, values, asked if since is None or at >= since else None)
        if not found or found[-1][1] != replicas:
            found.append((at, replicas))
    return RecommendationSteps(tuple(found))


def _recommended(
    spec: HorizontalAutoscalerSpec, followed: Sequence[FollowedSchedule], values: Sequence[int], asked: int | None
) -> int:
    """Return what the metrics recommend together; without a scale, as if there were no tolerance."""
    scale = ObservedScale(asked or 0, asked or 0)
    tolerance = ScalingTolerance() if asked is None else tolerance_of(spec)
    pairs = zip(followed, values, strict=True)
    return behaviour_of(spec).up.select.among(
        [recommend(one.source, Fraction(value), scale, tolerance).replicas for one, value in pairs]
    )


def _valued(followed: Sequence[FollowedSchedule], start: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the values of all schedules at an instant, and at every later one at which any of them changes."""
    merged = heapq.merge(*(_numbered(number, one.values.segments(start)) for number, one in enumerate(followed)))
    values = [0] * len(followed)
    last = start
    for at, number, value in merged:
        if at > last:
            yield last, list(values)
            last = at
        values[number] = value
    yield last, list(values)


def _numbered(number: int, segments: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    return ((at, number, value) for at, value in segments)


def _replay(
    spec: HorizontalAutoscalerSpec, followed: Sequence[FollowedSchedule], start: _ReplayStart
) -> Iterator[_ReplayedDecision]:
    """Yield the decisions from an instant on, without those that only repeat the one before."""
    changes = _valued(followed, start.at)
    at, values = next(changes)
    coming = next(changes, None)
    asked, history = start.asked, start.history
    changed_at: int | None = None
    held = ""
    while True:
        scale = ObservedScale(asked, asked)
        decision = decide(spec, scale, [Fraction(value) for value in values], history, at, pushed=True)
        yield _ReplayedDecision(at, decision, changed_at, held)
        able = decision.condition("AbleToScale")
        held = "" if able.status is ConditionStatus.TRUE else able.reason
        # The decision after one that changes something can differ although no schedule changes.
        repeats = _memory(decision.history) == _memory(history) and not decision.actions
        history = decision.history
        if decision.actions:
            history = history.changed(at, asked, decision.replicas)
            asked = decision.replicas
        again = decision.held_until if repeats else decision.requeue_at
        if coming is not None and (again is None or coming[0] <= again):
            at, values = coming
            changed_at = at
            coming = next(changes, None)
        elif again is not None:
            at = again
        else:
            return


def _memory(history: ReplicaHistory) -> tuple[int | None, int | None]:
    """Return what of the past decides, besides the times at which windows and policies end."""
    steps = history.recommendations.steps
    return steps[-1][1] if steps else None, history.overruled


def _upcoming(
    facts: ExplanationInput,
    spec: HorizontalAutoscalerSpec,
    followed: Sequence[FollowedSchedule],
    start: _ReplayStart,
    coming: Sequence[_ReplayedDecision],
) -> Iterator[UpcomingChange]:
    if not coming:
        return
    causes = [one.changed_at for one in coming if one.changed_at is not None]
    first, last = (min(causes) - 1, max(causes)) if causes else (start.at, start.at)
    query = ForecastQuery(first, last, default_zone=facts.default_zone, calendars=facts.calendars)
    reasons: dict[int, list[tuple[str, str]]] = {}
    zones = []
    for each in followed:
        outlook = forecast_schedule(each.producer, query)
        zones.append(outlook.zones[0])
        name = f"MetricsProducer `{each.producer.metadata.name}`: " if len(followed) > 1 else ""
        for change in outlook.lanes[0].changes:
            reasons.setdefault(change.at, []).append((name + change.because, outlook.zones[0]))
    for one in coming:
        cause = [] if one.changed_at is None else reasons.get(one.changed_at, [])
        because = "; ".join(text for text, _ in cause) or one.decision.reasons[0]
        zone = cause[0][1] if cause else zones[0]
        yield UpcomingChange(one.at, one.decision.replicas, "replicas", because + _limits(one, spec), zone)


def _limits(one: _ReplayedDecision, spec: HorizontalAutoscalerSpec) -> str:
    """Say what cuts, limits and delays a step."""
    asked = one.decision.history.recommendations.steps[-1][1]
    able = one.decision.condition("AbleToScale")
    cut = "" if bounds_of(spec).clamp(asked) == asked else f", {asked} cut to the bounds"
    limited = f", limited by {_limit(able.reason)}" if able.status is ConditionStatus.FALSE else ""
    delayed = f", delayed by {_limit(one.held)}" if one.held and one.at != one.changed_at else ""
    return f"{cut}{limited}{delayed}"


def _limit(reason: str) -> str:
    """Name what the reason of a condition AbleToScale means."""
    direction = "scaleUp" if reason.startswith("ScaleUp") else "scaleDown"
    return f"the {'stabilization window' if reason.endswith('Stabilized') else 'policies'} of {direction}"
