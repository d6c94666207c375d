"""What `springtide explain` says about a HorizontalAutoscaler.

Recommendations, bounds and the choice among several metrics come from the functions of `decide`. What lies ahead is
known where each metric is the schedule of a MetricsProducer, shared out among replicas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from springtide.almanac import Timeline, maximum, minimum
from springtide.almanac.search_budget import limit_search
from springtide.apis.forecast import ForecastQuery, format_instant
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler, PrometheusMetricSource
from springtide.apis.scheduled.cross_object_checks import producers_named_in, query_is_only, query_reads
from springtide.apis.scheduled.producer import MetricsProducer, ScheduleSpec
from springtide.apis.scheduled.schedule import compile_schedule, forecast_schedule, zone_of
from springtide.controllers.decision import ObservedScale
from springtide.controllers.explanation import (
    Explanation,
    ExplanationInput,
    UpcomingChange,
    common_blockers,
    conflict_blockers,
    instant_of,
    target_blockers,
    target_label,
    target_sentences,
)
from springtide.controllers.horizontal_autoscaler.decide import (
    CONFLICT_REMEDY,
    behaviour_of,
    bounds_of,
    sources_of,
    tolerance_of,
)
from springtide.controllers.horizontal_autoscaler.recommendation import is_proportional, recommend
from springtide.controllers.metrics_producer.explain import upcoming
from springtide.scaling import PolicySelect, ScalingTolerance

_LISTED = 5
_MOST_STEPS = 2_000_000
"""Of the search for what comes next: some seconds."""
_ANY_SCALE = ObservedScale(0, 0)
"""The scale for recommendations that do not depend on it."""


@dataclass(frozen=True, slots=True)
class ScheduleForecast:
    """What an autoscaler wants at the explained time and what it will want, or why that is not known."""

    wants: int | None = None
    coming: tuple[UpcomingChange, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class _FollowedSchedule:
    """A schedule, and the replicas that its value recommends."""

    producer: MetricsProducer
    asked: Timeline[int]


def explain_autoscaler(facts: ExplanationInput) -> Explanation:
    """Explain an autoscaler by what it read, what follows from that, and what delays or prevents it."""
    view = facts.object.view
    autoscaler = view if isinstance(view, HorizontalAutoscaler) else None
    ahead = (
        forecast_replicas(facts, autoscaler) if autoscaler is not None and facts.object.sound else ScheduleForecast()
    )
    reported = facts.status.get("desiredReplicas") if facts.present else None
    desired = reported if isinstance(reported, int) else ahead.wants
    return Explanation(
        subject=facts.subject,
        zone=ahead.coming[0].zone if ahead.coming else facts.default_zone,
        wants={"replicas": desired},
        headline=facts.not_known if desired is None else f"{desired} replica{'' if desired == 1 else 's'}",
        because=tuple(_because(facts, autoscaler)) if autoscaler is not None else (),
        next=ahead.coming,
        next_unknown=ahead.unknown,
        stopped=(
            *common_blockers(facts, "horizontal-autoscaler"),
            *target_blockers(facts),
            *conflict_blockers(facts, lambda _: CONFLICT_REMEDY),
        ),
        conditions=facts.conditions,
        history=facts.events,
        notes=(
            *(_producer_notes(facts, autoscaler) if autoscaler is not None else ()),
            *_rule_notes(facts),
            *facts.unknown,
        ),
    )


def forecast_replicas(facts: ExplanationInput, autoscaler: HorizontalAutoscaler) -> ScheduleForecast:
    """Look ahead for an autoscaler without errors."""
    spec = autoscaler.spec
    followed: list[_FollowedSchedule] = []
    for source in sources_of(spec):
        found = _followed_schedule(source, facts)
        if isinstance(found, str):
            return ScheduleForecast(unknown=found)
        followed.append(found)
    if not followed:
        return ScheduleForecast()
    behaviour = behaviour_of(spec)
    up, down = (_choice(rules.select) for rules in (behaviour.up, behaviour.down))
    if len(followed) > 1 and up != down:
        unknown = "which of its metrics counts depends on whether it goes up or down from where it is"
        return ScheduleForecast(unknown=unknown)
    asked = (minimum if up == "lowest" else maximum)([one.asked for one in followed])
    wants = bounds_of(spec).clamp(asked.at(facts.at))
    directions = {"scaleUp": behaviour.up, "scaleDown": behaviour.down}
    disabled = [name for name, rules in directions.items() if rules.select is PolicySelect.DISABLED]
    if disabled:
        unknown = f"`{disabled[0]}` is disabled, so that it depends on where it is then"
        return ScheduleForecast(wants, unknown=unknown)
    if tolerance_of(spec) != ScalingTolerance():
        return ScheduleForecast(wants, unknown="a `tolerance` is set, so that it depends on where it is then")
    with limit_search(_MOST_STEPS) as budget:
        coming = tuple(_upcoming(facts, autoscaler, followed, asked))
    if budget.exhausted and len(coming) < _LISTED:
        unknown = "what comes then, since the search was given up after many changes without effect"
        return ScheduleForecast(wants, coming, unknown)
    return ScheduleForecast(wants, coming)


def _followed_schedule(source: PrometheusMetricSource, facts: ExplanationInput) -> _FollowedSchedule | str:
    """Compile a metric, or say why its next change is unknown."""
    producer = _schedule_read_by(source, facts)
    schedule = producer.spec.schedule if producer is not None else None
    if producer is None or schedule is None:
        return _why_unknown(source, facts)
    if is_proportional(source):
        return (
            f"what `{source.query}` asks for depends on how many replicas there are then (target {source.target.type})"
        )

    def asked(value: int) -> int:
        return recommend(source, Fraction(value), _ANY_SCALE, ScalingTolerance()).replicas

    return _FollowedSchedule(producer, _timeline(schedule, facts).map(asked))


def _why_unknown(source: PrometheusMetricSource, facts: ExplanationInput) -> str:
    known = {(one.metadata.namespace or "default", one.metadata.name) for one in _producers(facts)}
    named = producers_named_in(source.query, facts.object.namespace)
    missing = [name for namespace, name in named if (namespace, name) not in known]
    if missing and "MetricsProducer" not in facts.unseen:
        return f"no MetricsProducer `{missing[0]}` exists, so the next change is unknown"
    return f"`{source.query}` is not just the schedule of one MetricsProducer, so the next change is unknown"


def _schedule_read_by(source: PrometheusMetricSource, facts: ExplanationInput) -> MetricsProducer | None:
    return next((one for one in _producers(facts) if query_is_only(source.query, facts.object.namespace, one)), None)


def _producers(facts: ExplanationInput) -> Iterator[MetricsProducer]:
    for other in facts.others:
        if isinstance(other.view, MetricsProducer) and other.sound:
            yield other.view


def _timeline(schedule: ScheduleSpec, facts: ExplanationInput) -> Timeline[int]:
    return compile_schedule(schedule, zone_of(schedule, facts.default_zone), facts.calendars)


def _upcoming(
    facts: ExplanationInput,
    autoscaler: HorizontalAutoscaler,
    followed: Sequence[_FollowedSchedule],
    asked: Timeline[int],
) -> Iterator[UpcomingChange]:
    ahead = list(islice(asked.segments(facts.at), 1, _LISTED + 1))
    if not ahead:
        return
    question = ForecastQuery(facts.at, ahead[-1][0], default_zone=facts.default_zone, calendars=facts.calendars)
    reasons: dict[int, list[tuple[str, str]]] = {}
    for one in followed:
        outlook = forecast_schedule(one.producer, question)
        name = f"MetricsProducer `{one.producer.metadata.name}`: " if len(followed) > 1 else ""
        for change in outlook.lanes[0].changes:
            reasons.setdefault(change.at, []).append((name + change.because, outlook.zones[0]))
    for at, replicas in ahead:
        value = bounds_of(autoscaler.spec).clamp(replicas)
        cut = "" if value == replicas else f", {replicas} cut to the bounds"
        because = "; ".join(text for text, _ in reasons[at])
        yield UpcomingChange(at, value, "replicas", because + cut, reasons[at][0][1])


def _because(facts: ExplanationInput, autoscaler: HorizontalAutoscaler) -> Iterator[str]:
    spec = autoscaler.spec
    active = next((one for one in facts.conditions if one.type == "Active" and facts.present), None)
    if active is None:
        yield from (_unread_metric(source, facts) for source in sources_of(spec))
    elif active.status == "True":
        # What the controller decided: one sentence for each metric, which begins with its query.
        yield from re.split(r"; (?=`)", active.message)
    if not spec.metrics:
        yield "it has no metrics: the target is left alone"
    elif len(spec.metrics) > 1:
        yield f"of several recommendations the {_choices(autoscaler)} counts"
    yield f"the bounds are {spec.min_replicas} and {spec.max_replicas}"
    yield from target_sentences(facts)
    if facts.present and (last := instant_of(facts.status.get("lastScaleTime"))) is not None:
        yield f"it scaled last at {format_instant(last)}"


def _choices(autoscaler: HorizontalAutoscaler) -> str:
    behaviour = behaviour_of(autoscaler.spec)
    up, down = _choice(behaviour.up.select), _choice(behaviour.down.select)
    return up if up == down else f"{up} on the way up and the {down} on the way down"


def _choice(select: PolicySelect) -> str:
    return "lowest" if select is PolicySelect.MIN else "highest"


def _unread_metric(source: PrometheusMetricSource, facts: ExplanationInput) -> str:
    """Say what a metric recommends that no controller has read, where its schedule tells."""
    producer = _schedule_read_by(source, facts)
    schedule = producer.spec.schedule if producer is not None else None
    state = "has not been read yet" if facts.present else "is not read for another time than the present"
    if schedule is None:
        return f"`{source.query}` {state}"
    value = _timeline(schedule, facts).at(facts.at)
    outcome = ""
    if facts.object.sound and not is_proportional(source):
        asked = recommend(source, Fraction(value), _ANY_SCALE, ScalingTolerance())
        outcome = f", which recommends {asked.replicas}"
    return f"`{source.query}` {state}; its schedule says {value}{outcome}"


def _producer_notes(facts: ExplanationInput, autoscaler: HorizontalAutoscaler) -> Iterator[str]:
    """Say which producers the metrics come from, and what those do next."""
    for source in sources_of(autoscaler.spec):
        for producer in _producers(facts):
            if not query_reads(source.query, facts.object.namespace, producer):
                continue
            note = f"`{source.query}` reads what MetricsProducer `{producer.metadata.name}` makes"
            ahead = upcoming(producer, facts)
            if ahead is not None:
                note += f": {ahead[1].current} now"
                if (coming := ahead[1].next) is not None:
                    note += f", {coming.value} from {format_instant(coming.at)} on"
            yield note


def _rule_notes(facts: ExplanationInput) -> Iterator[str]:
    """Name the CronFederatedHPAs whose rules set the same target at their times."""
    for other in facts.conflicting_rules():
        label = target_label(facts)
        yield f"{other.kind.kind} `{other.name}` sets {label} too, when its rules fire, and this one then undoes it"
