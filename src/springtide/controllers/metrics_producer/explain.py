"""What `springtide explain` says about a MetricsProducer, from the same `decide` as its controller."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from springtide.apis.forecast import ForecastQuery, Lane, Outlook, format_instant
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.apis.scheduled.cross_object_checks import queries_of, query_reads
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.scheduled.schedule import compile_schedule, forecast_schedule, zone_of
from springtide.apis.springtide.grants import GrantedResource
from springtide.controllers.calendar.state import CompiledCalendar
from springtide.controllers.explanation import (
    Blocker,
    Explanation,
    ExplanationInput,
    UpcomingChange,
    common_blockers,
    instant_of,
)
from springtide.controllers.metrics_producer.compiled_spec import (
    LISTED_CHANGES,
    THOROUGH_BUDGET,
    calendars_used,
    compile_with_calendars,
)
from springtide.controllers.metrics_producer.decide import decide_schedule, replica_count

_LISTED = 5
_WEEK = 7 * 86_400
_SOURCES = ("schedule", "queue", "reservedCapacity", "pendingCapacity")


def explain_producer(facts: ExplanationInput) -> Explanation:
    """Explain the value of a producer: from its schedule, or from what its controller reported."""
    view = facts.object.view
    producer = view if isinstance(view, MetricsProducer) and facts.object.sound else None
    if producer is not None and producer.spec.schedule is not None:
        return _explain_schedule(facts, producer)
    return _explain_observation(facts, producer)


def upcoming(producer: MetricsProducer, facts: ExplanationInput) -> tuple[Outlook, Lane] | None:
    """Forecast the next changes of a schedule; None for other sources."""
    schedule = producer.spec.schedule
    if schedule is None:
        return None
    timeline = compile_schedule(schedule, zone_of(schedule, facts.default_zone), facts.calendars)
    ahead = list(islice(timeline.segments(facts.at), 1, _LISTED + 1))
    until = ahead[-1][0] if ahead else facts.at + _WEEK
    question = ForecastQuery(facts.at, until, default_zone=facts.default_zone, calendars=facts.calendars)
    outlook = forecast_schedule(producer, question)
    return outlook, outlook.lanes[0]


def _explain_schedule(facts: ExplanationInput, producer: MetricsProducer) -> Explanation:
    schedule, ahead = producer.spec.schedule, upcoming(producer, facts)
    assert schedule is not None  # noqa: S101 - the caller has checked it
    assert ahead is not None  # noqa: S101 - a schedule always has a forecast
    outlook, lane = ahead
    compiled = compile_with_calendars(
        schedule, facts.default_zone, calendars_used(schedule, lambda name: _calendar(facts, name))
    )
    state = compiled.at(facts.at, LISTED_CHANGES, THOROUGH_BUDGET)
    decision = decide_schedule(compiled, state, None, {}, facts.at)
    shown = decision.status["scheduledCapacity"]
    value, zone = shown["currentValue"], shown["timezone"]
    return Explanation(
        subject=facts.subject,
        zone=zone,
        wants={"replicas": value, "behavior": shown.get("activeBehavior"), "timezone": zone},
        headline=replica_count(value),
        because=(
            decision.reasons[0],
            *(one.text for one in outlook.collisions if one.at <= facts.at),
            *decision.reasons[1:],
        ),
        next=tuple(UpcomingChange(one.at, one.value, lane.name, one.because, zone) for one in lane.changes),
        stopped=(*common_blockers(facts, "metrics-producer"), *_lag(facts, value)),
        conditions=facts.conditions,
        history=facts.events,
        notes=(
            *facts.unusable_calendars,
            *(
                f"from {format_instant(one.at)} on {one.text}"
                for one in sorted(outlook.collisions, key=lambda one: one.at)
                if one.at > facts.at
            ),
            *_reader_notes(facts, producer),
            *facts.unknown,
        ),
    )


def _calendar(facts: ExplanationInput, name: str) -> CompiledCalendar | None:
    known = any(other.kind.kind == "Calendar" and other.name == name for other in facts.others)
    return CompiledCalendar(name, None, facts.calendars.get(name)) if known else None


def _lag(facts: ExplanationInput, value: int) -> Iterator[Blocker]:
    """Report that the controller has not followed the schedule."""
    reported = facts.status.get("scheduledCapacity")
    shown = reported.get("currentValue") if isinstance(reported, dict) else None
    if not facts.present or not isinstance(reported, dict) or shown is None or shown == value:
        return
    due = instant_of(reported.get("nextValueTime"))
    since = f" since {format_instant(due)}" if due is not None and due <= facts.at else ""
    yield Blocker(
        f"the metric is still {shown}",
        f"the schedule says {value}{since}, and the controller has not exported it: check that it runs and leads",
    )


def _explain_observation(facts: ExplanationInput, producer: MetricsProducer | None) -> Explanation:
    spec = facts.object.value.get("spec")
    source = next((name for name in _SOURCES if isinstance(spec, dict) and name in spec), "schedule")
    seen = facts.status.get("scheduledCapacity" if source == "schedule" else source)
    wants: dict[str, Any] = {source: seen} if isinstance(seen, dict) and facts.present else {}
    return Explanation(
        subject=facts.subject,
        zone=facts.default_zone,
        wants=wants,
        headline=", ".join(f"{name} {value}" for name, value in _values(wants))
        or ("nothing yet" if facts.present else facts.not_known),
        because=(f"it is what the controller last read of its {source}",) if wants else (),
        stopped=tuple(common_blockers(facts, "metrics-producer")),
        conditions=facts.conditions,
        history=facts.events,
        notes=(
            *(_queue_grants(facts, producer) if producer is not None else ()),
            *(_reader_notes(facts, producer) if producer is not None else ()),
            *facts.unknown,
        ),
    )


def _values(wants: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for seen in wants.values():
        yield from ((name, value) for name, value in seen.items() if not isinstance(value, list))


def _queue_grants(facts: ExplanationInput, producer: MetricsProducer) -> Iterator[str]:
    queue = producer.spec.queue
    if queue is None or queue.type == "Prometheus":
        return
    reach = GrantedResource.URL if queue.type == "HTTP" else GrantedResource.QUEUE
    yield from grant_notes(facts, reach, queue.id)


def grant_notes(facts: ExplanationInput, reach: GrantedResource, target: str) -> Iterator[str]:
    """Name the Grants that allow a target; or say that none does, where no controller has reported on it."""
    grants = facts.grants_for(reach, target)
    if grants:
        yield f'the {reach.noun} "{target}" is allowed by Grant {", ".join(f"`{name}`" for name in grants)}'
    elif not facts.status and "Grant" not in facts.unseen:
        yield (
            f'no Grant allows the {reach.noun} "{target}": outside an embedded cluster one must list it under'
            f" `{reach.field}` for namespace {facts.object.namespace}"
        )


def _reader_notes(facts: ExplanationInput, producer: MetricsProducer) -> Iterator[str]:
    found = False
    for other in facts.others:
        if not isinstance(other.view, HorizontalAutoscaler):
            continue
        query = next((one for one in queries_of(other.view) if query_reads(one, other.namespace, producer)), None)
        if query is None:
            continue
        found = True
        target = other.view.spec.scale_target_ref
        where = "" if other.namespace == facts.object.namespace else f" in namespace {other.namespace}"
        yield f"HorizontalAutoscaler `{other.name}`{where} follows it for {target.kind} `{target.name}`: {query}"
    if not found and "HorizontalAutoscaler" not in facts.unseen:
        yield "no HorizontalAutoscaler follows it; whatever reads Prometheus still may"
