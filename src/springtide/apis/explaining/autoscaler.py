"""Why a HorizontalAutoscaler asks for as many replicas as it does, and what holds it back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from springtide.apis.explaining.explanation import Explanation, Stop
from springtide.apis.explaining.facts import Facts, TargetState, instant_of
from springtide.apis.explaining.foresight import (
    Foresight,
    choices,
    foresee,
    producers,
    recommendation,
    scheduled_value,
)
from springtide.apis.explaining.producer import upcoming
from springtide.apis.explaining.stops import common_stops
from springtide.apis.forecast import format_instant
from springtide.apis.references import Role
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler, PrometheusMetricSource
from springtide.apis.scheduled.readers import reads


def explain_autoscaler(facts: Facts) -> Explanation:
    """Explain an autoscaler by what it saw, what follows from that, and what was made of it."""
    view = facts.object.view
    autoscaler = view if isinstance(view, HorizontalAutoscaler) else None
    ahead = foresee(facts, autoscaler) if autoscaler is not None and facts.object.sound else Foresight()
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
        stopped=(*common_stops(facts, "horizontal-autoscaler"), *target_stops(facts), *_rivals(facts)),
        conditions=facts.conditions,
        history=facts.events,
        notes=(
            *(_sources(facts, autoscaler) if autoscaler is not None else ()),
            *_crons(facts),
            *facts.unknown,
        ),
    )


def target_stops(facts: Facts) -> Iterator[Stop]:
    """Find a target that cannot be had."""
    if facts.target is not None and facts.target.trouble:
        yield Stop(f"{facts.target.label} cannot be scaled", facts.target.trouble)


def target_words(facts: Facts) -> Iterator[str]:
    """Say how the target is now, where that is known."""
    if facts.target is not None and not facts.target.trouble:
        yield f"{'' if facts.present else 'at present '}{_state_words(facts.target)}"


def _state_words(target: TargetState) -> str:
    values = [f"{name} {value}" for name, value in target.values.items() if name != "replicas"]
    if "replicas" in target.values:
        asked = target.values["replicas"]
        there = f", {target.observed} of them there" if target.observed not in (None, asked) else ""
        values.insert(0, f"{asked} replica{'' if asked == 1 else 's'}{there}")
    return f"{target.label} has {', '.join(values) or 'nothing set'}"


def _because(facts: Facts, autoscaler: HorizontalAutoscaler) -> Iterator[str]:
    spec = autoscaler.spec
    active = next((one for one in facts.conditions if one.type == "Active" and facts.present), None)
    if active is None:
        yield from (_unread(one.prometheus, facts) for one in spec.metrics or () if one.prometheus is not None)
    elif active.status == "True":
        # The controller's own words: what each metric was, and what it asks for.
        yield from re.split(r"; (?=`)", active.message)
    if not spec.metrics:
        yield "it has no metrics: the target is left alone"
    elif len(spec.metrics) > 1:
        yield f"of several recommendations the {_choice(autoscaler)} counts"
    yield f"the bounds are {spec.min_replicas} and {spec.max_replicas}"
    yield from target_words(facts)
    if facts.present and (last := instant_of(facts.status.get("lastScaleTime"))) is not None:
        yield f"it scaled last at {format_instant(last)}"


def _choice(autoscaler: HorizontalAutoscaler) -> str:
    up, down = choices(autoscaler)
    return up if up == down else f"{up} on the way up and the {down} on the way down"


def _unread(source: PrometheusMetricSource, facts: Facts) -> str:
    """Say what a metric that nobody has read will be, where its schedule tells."""
    value = scheduled_value(source, facts)
    state = "has not been read yet" if facts.present else "is not read for another time than the present"
    if value is None:
        return f"`{source.query}` {state}"
    asked = recommendation(value, source.target)
    outcome = f", which recommends {asked}" if asked is not None else ""
    return f"`{source.query}` {state}; its schedule says {value}{outcome}"


def _count(facts: Facts, name: str) -> int | None:
    found = facts.status.get(name)
    return found if isinstance(found, int) else None


def _sources(facts: Facts, autoscaler: HorizontalAutoscaler) -> Iterator[str]:
    """Say which producers the metrics come from, and what those do next."""
    for metric in autoscaler.spec.metrics or ():
        for producer in producers(facts):
            if metric.prometheus is None or not reads(metric.prometheus.query, facts.object.namespace, producer):
                continue
            said = f"`{metric.prometheus.query}` reads what MetricsProducer `{producer.metadata.name}` makes"
            ahead = upcoming(producer, facts)
            if ahead is not None:
                said += f": {ahead[1].current} now"
                if (coming := ahead[1].next) is not None:
                    said += f", {coming.value} from {format_instant(coming.at)} on"
            yield said


def _crons(facts: Facts) -> Iterator[str]:
    """Say whose rules set the same target at their times."""
    for other in facts.contenders(Role.CRON):
        label = facts.target.label if facts.target is not None else "its target"
        yield f"{other.kind.kind} `{other.name}` sets {label} too, when its rules fire, and this one then undoes it"


def _rivals(facts: Facts) -> Iterator[Stop]:
    if facts.has_reported("Unopposed"):
        return  # the controller has looked, and what it found is told
    for other in facts.contenders(Role.SCALES):
        label = facts.target.label if facts.target is not None else "its target"
        why = f"{other.kind.kind} `{other.name}` scales it too: they undo each other's work; keep one of them"
        yield Stop(f"{label} has another master", why)
