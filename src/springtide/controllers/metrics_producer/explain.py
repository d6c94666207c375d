"""Why a MetricsProducer has its value, and when it will have another one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from springtide.apis.forecast import ForecastQuery, Lane, Outlook, format_instant
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.apis.scheduled.cross_object_checks import queries_of, query_reads
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.scheduled.schedule import (
    active_behaviors,
    compile_behaviors,
    compile_schedule,
    forecast_schedule,
    zone_of,
)
from springtide.apis.springtide.grants import GrantedResource
from springtide.controllers.explanation import (
    Blocker,
    Explanation,
    ExplanationInput,
    UpcomingChange,
    common_blockers,
    instant_of,
)

_LISTED = 5
_WEEK = 7 * 86_400
_SOURCES = ("schedule", "queue", "reservedCapacity", "pendingCapacity")


def explain_producer(facts: ExplanationInput) -> Explanation:
    """Explain the value of a producer: from its schedule, or as its controller has seen it."""
    view = facts.object.view
    producer = view if isinstance(view, MetricsProducer) and facts.object.sound else None
    if producer is not None and producer.spec.schedule is not None:
        return _explain_schedule(facts, producer)
    return _explain_observation(facts, producer)


def upcoming(producer: MetricsProducer, facts: ExplanationInput) -> tuple[Outlook, Lane] | None:
    """Look ahead over the next changes of a schedule; None for other producers."""
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
    assert schedule is not None  # noqa: S101 - the caller has looked
    assert ahead is not None  # noqa: S101 - it follows from that
    outlook, lane = ahead
    zone = zone_of(schedule, facts.default_zone)
    winners = active_behaviors(compile_behaviors(schedule, zone, facts.calendars), facts.at)
    winner = winners[0].behavior.name or f"behaviors[{winners[0].position}]" if winners else None
    assert isinstance(lane.current, int)  # noqa: S101 - the lane of a schedule is a number
    return Explanation(
        subject=facts.subject,
        zone=zone.name,
        wants={"replicas": lane.current, "behavior": winner, "timezone": zone.name},
        headline=f"{lane.current} replica{'' if lane.current == 1 else 's'}",
        because=(
            lane.because,
            *(one.text for one in outlook.collisions if one.at <= facts.at),
            *(f"{label} is suspended" for label in _suspended(producer)),
        ),
        next=tuple(UpcomingChange(one.at, one.value, lane.name, one.because, zone.name) for one in lane.changes),
        stopped=(*common_blockers(facts, "metrics-producer"), *_lag(facts, lane.current)),
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


def _suspended(producer: MetricsProducer) -> Iterator[str]:
    for position, behavior in enumerate(producer.spec.schedule.behaviors if producer.spec.schedule else ()):
        if behavior.suspend:
            yield f"behaviour `{behavior.name}`" if behavior.name else f"`behaviors[{position}]`"


def _lag(facts: ExplanationInput, value: int) -> Iterator[Blocker]:
    """Find a controller that has not followed the schedule."""
    reported = facts.status.get("scheduledCapacity")
    shown = reported.get("currentValue") if isinstance(reported, dict) else None
    if not facts.present or not isinstance(reported, dict) or shown is None or shown == value:
        return
    due = instant_of(reported.get("nextValueTime"))
    since = f" since {format_instant(due)}" if due is not None and due <= facts.at else ""
    yield Blocker(
        f"the metric is still {shown}",
        f"the schedule says {value}{since}, and the controller has not written so: see that it runs and leads",
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
        headline=", ".join(f"{name} {value}" for name, value in _flat(wants))
        or ("nothing yet" if facts.present else facts.not_known),
        because=(f"it is what the controller has seen of its {source} last",) if wants else (),
        stopped=tuple(common_blockers(facts, "metrics-producer")),
        conditions=facts.conditions,
        history=facts.events,
        notes=(
            *(_queue_grants(facts, producer) if producer is not None else ()),
            *(_reader_notes(facts, producer) if producer is not None else ()),
            *facts.unknown,
        ),
    )


def _flat(wants: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for seen in wants.values():
        yield from ((name, value) for name, value in seen.items() if not isinstance(value, list))


def _queue_grants(facts: ExplanationInput, producer: MetricsProducer) -> Iterator[str]:
    queue = producer.spec.queue
    if queue is None or queue.type == "Prometheus":
        return
    reach = GrantedResource.URL if queue.type == "HTTP" else GrantedResource.QUEUE
    yield from grant_notes(facts, reach, queue.id)


def grant_notes(facts: ExplanationInput, reach: GrantedResource, target: str) -> Iterator[str]:
    """Say which Grants allow to reach a target, or that none does where no controller has told whether one must."""
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
