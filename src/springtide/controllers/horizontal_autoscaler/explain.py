"""What schedules will make an autoscaler ask for: known where each of its metrics is a schedule as it stands.

Why a HorizontalAutoscaler asks for as many replicas as it does, and what holds it back.
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
from springtide.apis.references import ReferenceRole
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler, MetricTarget, PrometheusMetricSource
from springtide.apis.scheduled.cross_object_checks import query_is_only, query_reads
from springtide.apis.scheduled.producer import MetricsProducer, ScheduleSpec
from springtide.apis.scheduled.schedule import compile_schedule, forecast_schedule, zone_of
from springtide.controllers.explanation import (
    Blocker,
    Explanation,
    ExplanationInput,
    TargetState,
    UpcomingChange,
    common_blockers,
    instant_of,
)
from springtide.controllers.metrics_producer.explain import upcoming
from springtide.quantity import Quantity
from springtide.scaling import ScalingTolerance, average_value_replicas

_NANO = 10**9
_LISTED = 5
_MOST_STEPS = 2_000_000
"""Of the search for what comes next: some seconds."""


@dataclass(frozen=True, slots=True)
class ScheduleForecast:
    """What an autoscaler wants at the time that is explained and what it will want, or why that is not known."""

    wants: int | None = None
    coming: tuple[UpcomingChange, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class _FollowedSchedule:
    """A schedule, and the replicas that its value asks for."""

    producer: MetricsProducer
    asked: Timeline[int]


def forecast_replicas(facts: ExplanationInput, autoscaler: HorizontalAutoscaler) -> ScheduleForecast:
    """Look ahead for an autoscaler whose metrics are plain schedules, shared out among replicas."""
    sources = [metric.prometheus for metric in autoscaler.spec.metrics or () if metric.prometheus is not None]
    followed: list[_FollowedSchedule] = []
    for source in sources:
        found = _followed(source, facts)
        if isinstance(found, str):
            return ScheduleForecast(unknown=found)
        followed.append(found)
    if not followed:
        return ScheduleForecast()
    up, down = choices(autoscaler)
    if len(followed) > 1 and up != down:
        return ScheduleForecast(
            unknown="which of its metrics counts depends on whether it goes up or down from where it is"
        )
    asked = (minimum if up == "lowest" else maximum)([one.asked for one in followed])
    wants = bounded(asked.at(facts.at), autoscaler)
    if disabled := _disabled(autoscaler):
        return ScheduleForecast(wants, unknown=f"`{disabled}` is disabled, so that it depends on where it is then")
    with limit_search(_MOST_STEPS) as effort:
        coming = tuple(_upcoming(facts, autoscaler, followed, asked))
    if effort.exhausted and len(coming) < _LISTED:
        unknown = "what comes then, since the search was given up after many changes without effect"
        return ScheduleForecast(wants, coming, unknown)
    return ScheduleForecast(wants, coming)


def choices(autoscaler: HorizontalAutoscaler) -> tuple[str, str]:
    """Say which of several recommendations counts, on the way up and on the way down."""
    behavior = autoscaler.spec.behavior
    rules = (behavior.scale_up, behavior.scale_down) if behavior is not None else (None, None)
    up, down = ("lowest" if one is not None and one.select_policy == "Min" else "highest" for one in rules)
    return up, down


def _disabled(autoscaler: HorizontalAutoscaler) -> str:
    behavior = autoscaler.spec.behavior
    rules = {"scaleUp": behavior.scale_up, "scaleDown": behavior.scale_down} if behavior is not None else {}
    return next((name for name, rule in rules.items() if rule is not None and rule.select_policy == "Disabled"), "")


def recommendation(value: int, target: MetricTarget) -> int | None:
    """Tell how many replicas a value asks for; None where that depends on how many there will be then."""
    goal = target.value if target.value is not None else target.average_value
    if target.type != "AverageValue" or goal is None or (amount := Quantity.parse(goal)).sign <= 0:
        return None
    return average_value_replicas(Fraction(value * _NANO, amount.nano), current=0, tolerance=ScalingTolerance())


def bounded(replicas: int, autoscaler: HorizontalAutoscaler) -> int:
    """Cut a recommendation to the bounds."""
    return min(max(replicas, autoscaler.spec.min_replicas), autoscaler.spec.max_replicas)


def scheduled_value(source: PrometheusMetricSource, facts: ExplanationInput) -> int | None:
    """Give the value of the schedule that a query reads as it is, at the time that is explained."""
    producer = _schedule_read_by(source, facts)
    schedule = producer.spec.schedule if producer is not None else None
    return None if schedule is None else _timeline(schedule, facts).at(facts.at)


def producers(facts: ExplanationInput) -> Iterator[MetricsProducer]:
    """Give the producers that may matter."""
    for other in facts.others:
        if isinstance(other.view, MetricsProducer) and other.sound:
            yield other.view


def _followed(source: PrometheusMetricSource, facts: ExplanationInput) -> _FollowedSchedule | str:
    """Compile a metric, or say why it cannot be foreseen."""
    producer = _schedule_read_by(source, facts)
    schedule = producer.spec.schedule if producer is not None else None
    if producer is None or schedule is None:
        return f"`{source.query}` is not the schedule of a MetricsProducer as it stands"
    if recommendation(0, source.target) is None:
        return (
            f"what `{source.query}` asks for depends on how many replicas there are then (target {source.target.type})"
        )

    def asked(value: int) -> int:
        return recommendation(value, source.target) or 0

    return _FollowedSchedule(producer, _timeline(schedule, facts).map(asked))


def _schedule_read_by(source: PrometheusMetricSource, facts: ExplanationInput) -> MetricsProducer | None:
    return next((one for one in producers(facts) if query_is_only(source.query, facts.object.namespace, one)), None)


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
        value = bounded(replicas, autoscaler)
        cut = "" if value == replicas else f", {replicas} cut to the bounds"
        because = "; ".join(text for text, _ in reasons[at])
        yield UpcomingChange(at, value, "replicas", because + cut, reasons[at][0][1])


def explain_autoscaler(facts: ExplanationInput) -> Explanation:
    """Explain an autoscaler by what it saw, what follows from that, and what was made of it."""
    view = facts.object.view
    autoscaler = view if isinstance(view, HorizontalAutoscaler) else None
    ahead = (
        forecast_replicas(facts, autoscaler) if autoscaler is not None and facts.object.sound else ScheduleForecast()
    )
    desired = _count(facts, "desiredReplicas") if facts.present else None
    if desired is None:
        desired = ahead.wants
    return Explanation(
        subject=facts.subject,
        zone=ahead.coming[0].zone if ahead.coming else facts.default_zone,
        wants={"replicas": desired},
        headline=facts.not_known if desired is None else f"{desired} replica{'' if desired == 1 else 's'}",
        because=tuple(_because(facts, autoscaler)) if autoscaler is not None else (),
        next=ahead.coming,
        next_unknown=ahead.unknown,
        stopped=(*common_blockers(facts, "horizontal-autoscaler"), *target_blockers(facts), *_conflicts(facts)),
        conditions=facts.conditions,
        history=facts.events,
        notes=(
            *(_sources(facts, autoscaler) if autoscaler is not None else ()),
            *_cron_notes(facts),
            *facts.unknown,
        ),
    )


def target_blockers(facts: ExplanationInput) -> Iterator[Blocker]:
    """Find a target that cannot be had."""
    if facts.target is not None and facts.target.trouble:
        yield Blocker(f"{facts.target.label} cannot be scaled", facts.target.trouble)


def target_sentences(facts: ExplanationInput) -> Iterator[str]:
    """Say how the target is now, where that is known."""
    if facts.target is not None and not facts.target.trouble:
        yield f"{'' if facts.present else 'at present '}{_target_sentence(facts.target)}"


def _target_sentence(target: TargetState) -> str:
    values = [f"{name} {value}" for name, value in target.values.items() if name != "replicas"]
    if "replicas" in target.values:
        asked = target.values["replicas"]
        there = f", {target.observed} of them there" if target.observed not in (None, asked) else ""
        values.insert(0, f"{asked} replica{'' if asked == 1 else 's'}{there}")
    return f"{target.label} has {', '.join(values) or 'nothing set'}"


def _because(facts: ExplanationInput, autoscaler: HorizontalAutoscaler) -> Iterator[str]:
    spec = autoscaler.spec
    active = next((one for one in facts.conditions if one.type == "Active" and facts.present), None)
    if active is None:
        yield from (_unread_metric(one.prometheus, facts) for one in spec.metrics or () if one.prometheus is not None)
    elif active.status == "True":
        # The controller's own words: what each metric was, and what it asks for.
        yield from re.split(r"; (?=`)", active.message)
    if not spec.metrics:
        yield "it has no metrics: the target is left alone"
    elif len(spec.metrics) > 1:
        yield f"of several recommendations the {_choice(autoscaler)} counts"
    yield f"the bounds are {spec.min_replicas} and {spec.max_replicas}"
    yield from target_sentences(facts)
    if facts.present and (last := instant_of(facts.status.get("lastScaleTime"))) is not None:
        yield f"it scaled last at {format_instant(last)}"


def _choice(autoscaler: HorizontalAutoscaler) -> str:
    up, down = choices(autoscaler)
    return up if up == down else f"{up} on the way up and the {down} on the way down"


def _unread_metric(source: PrometheusMetricSource, facts: ExplanationInput) -> str:
    """Say what a metric that nobody has read will be, where its schedule tells."""
    value = scheduled_value(source, facts)
    state = "has not been read yet" if facts.present else "is not read for another time than the present"
    if value is None:
        return f"`{source.query}` {state}"
    asked = recommendation(value, source.target)
    outcome = f", which recommends {asked}" if asked is not None else ""
    return f"`{source.query}` {state}; its schedule says {value}{outcome}"


def _count(facts: ExplanationInput, name: str) -> int | None:
    found = facts.status.get(name)
    return found if isinstance(found, int) else None


def _sources(facts: ExplanationInput, autoscaler: HorizontalAutoscaler) -> Iterator[str]:
    """Say which producers the metrics come from, and what those do next."""
    for metric in autoscaler.spec.metrics or ():
        for producer in producers(facts):
            if metric.prometheus is None or not query_reads(metric.prometheus.query, facts.object.namespace, producer):
                continue
            said = f"`{metric.prometheus.query}` reads what MetricsProducer `{producer.metadata.name}` makes"
            ahead = upcoming(producer, facts)
            if ahead is not None:
                said += f": {ahead[1].current} now"
                if (coming := ahead[1].next) is not None:
                    said += f", {coming.value} from {format_instant(coming.at)} on"
            yield said


def _cron_notes(facts: ExplanationInput) -> Iterator[str]:
    """Say whose rules set the same target at their times."""
    for other in facts.conflicting(ReferenceRole.CRON):
        label = facts.target.label if facts.target is not None else "its target"
        yield f"{other.kind.kind} `{other.name}` sets {label} too, when its rules fire, and this one then undoes it"


def _conflicts(facts: ExplanationInput) -> Iterator[Blocker]:
    if facts.has_reported("Unopposed"):
        return  # the controller has looked, and what it found is told
    for other in facts.conflicting(ReferenceRole.SCALES):
        label = facts.target.label if facts.target is not None else "its target"
        why = f"{other.kind.kind} `{other.name}` scales it too: they undo each other's work; keep one of them"
        yield Blocker(f"{label} has another master", why)
