"""Why a HorizontalAutoscaler asks for as many replicas as it does, and what holds it back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from springtide.apis.explaining.explanation import Coming, Explanation, Stop
from springtide.apis.explaining.facts import Facts, TargetState, instant_of
from springtide.apis.explaining.producer import upcoming
from springtide.apis.explaining.stops import common_stops
from springtide.apis.forecast import Lane, Outlook, format_instant
from springtide.apis.references import Role
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler, MetricTarget, PrometheusMetricSource
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.scheduled.readers import reads, reads_only
from springtide.quantity import Quantity
from springtide.scaling import Tolerance, per_replica

_NANO = 10**9


def explain_autoscaler(facts: Facts) -> Explanation:
    """Explain an autoscaler by what it saw, what follows from that, and what was made of it."""
    view = facts.object.view
    autoscaler = view if isinstance(view, HorizontalAutoscaler) else None
    desired = _count(facts, "desiredReplicas")
    if desired is None and autoscaler is not None:
        desired = _computed(facts, autoscaler)
    coming = tuple(_next(facts, autoscaler)) if autoscaler is not None and facts.object.sound else ()
    return Explanation(
        subject=facts.subject,
        zone=coming[0].zone if coming else facts.default_zone,
        wants={"replicas": desired},
        headline="not known yet" if desired is None else f"{desired} replica{'' if desired == 1 else 's'}",
        because=tuple(_because(facts, autoscaler)) if autoscaler is not None else (),
        next=coming,
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


def target_words(target: TargetState) -> str:
    """Say how a target is now."""
    values = [f"{name} {value}" for name, value in target.values.items() if name != "replicas"]
    if "replicas" in target.values:
        asked = target.values["replicas"]
        there = f", {target.observed} of them there" if target.observed not in (None, asked) else ""
        values.insert(0, f"{asked} replica{'' if asked == 1 else 's'}{there}")
    return f"{target.label} has {', '.join(values) or 'nothing set'}"


def _because(facts: Facts, autoscaler: HorizontalAutoscaler) -> Iterator[str]:
    spec = autoscaler.spec
    active = next((one for one in facts.conditions if one.type == "Active"), None)
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
    if facts.target is not None and not facts.target.trouble:
        yield target_words(facts.target)
    if (last := instant_of(facts.status.get("lastScaleTime"))) is not None:
        yield f"it scaled last at {format_instant(last)}"


def _choice(autoscaler: HorizontalAutoscaler) -> str:
    behavior = autoscaler.spec.behavior
    rules = (behavior.scale_up, behavior.scale_down) if behavior is not None else (None, None)
    up, down = ("lowest" if one is not None and one.select_policy == "Min" else "highest" for one in rules)
    return up if up == down else f"{up} on the way up and the {down} on the way down"


def _unread(source: PrometheusMetricSource, facts: Facts) -> str:
    """Say what a metric that nobody has read will be, where its schedule tells."""
    value = _scheduled(source, facts)
    if value is None:
        return f"`{source.query}` has not been read yet"
    asked = recommendation(value, source.target)
    outcome = f", which recommends {asked}" if asked is not None else ""
    return f"`{source.query}` has not been read yet; its schedule says {value}{outcome}"


def recommendation(value: int, target: MetricTarget) -> int | None:
    """Tell how many replicas a value asks for; None where that depends on how many there will be then."""
    goal = target.value if target.value is not None else target.average_value
    if target.type != "AverageValue" or goal is None or (amount := Quantity.parse(goal)).sign <= 0:
        return None
    return per_replica(Fraction(value * _NANO, amount.nano), present=0, tolerance=Tolerance())


def _count(facts: Facts, name: str) -> int | None:
    found = facts.status.get(name)
    return found if isinstance(found, int) else None


def _computed(facts: Facts, autoscaler: HorizontalAutoscaler) -> int | None:
    """Tell what the only metric asks for where it is a schedule, for want of a controller that has read it."""
    source = _only_source(autoscaler)
    value = _scheduled(source, facts) if source is not None else None
    asked = recommendation(value, source.target) if source is not None and value is not None else None
    return None if asked is None else _bounded(asked, autoscaler)


def _only_source(autoscaler: HorizontalAutoscaler) -> PrometheusMetricSource | None:
    """Give the metric of an autoscaler that follows nothing else."""
    sources = [one.prometheus for one in autoscaler.spec.metrics or () if one.prometheus is not None]
    return sources[0] if len(sources) == 1 else None


def _schedule(source: PrometheusMetricSource, facts: Facts) -> tuple[Outlook, Lane] | None:
    """Look ahead at the schedule that a query reads, and reads as it is."""
    for producer in _producers(facts):
        if reads_only(source.query, facts.object.namespace, producer):
            return upcoming(producer, facts)
    return None


def _scheduled(source: PrometheusMetricSource, facts: Facts) -> int | None:
    """Give the value of such a schedule now."""
    ahead = _schedule(source, facts)
    return ahead[1].current if ahead is not None and isinstance(ahead[1].current, int) else None


def _bounded(replicas: int, autoscaler: HorizontalAutoscaler) -> int:
    return min(max(replicas, autoscaler.spec.min_replicas), autoscaler.spec.max_replicas)


def _next(facts: Facts, autoscaler: HorizontalAutoscaler) -> Iterator[Coming]:
    """Tell what a schedule will ask for, where it is the only metric and is asked for as it is."""
    source = _only_source(autoscaler)
    ahead = _schedule(source, facts) if source is not None else None
    if source is None or ahead is None:
        return
    outlook, lane = ahead
    for change in lane.changes:
        asked = recommendation(change.value, source.target) if isinstance(change.value, int) else None
        if asked is not None:
            value = _bounded(asked, autoscaler)
            bounded = "" if value == asked else f", {asked} cut to the bounds"
            yield Coming(change.at, value, "replicas", change.because + bounded, outlook.zones[0])


def _sources(facts: Facts, autoscaler: HorizontalAutoscaler) -> Iterator[str]:
    """Say which producers the metrics come from, and what those do next."""
    for metric in autoscaler.spec.metrics or ():
        for producer in _producers(facts):
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


def _producers(facts: Facts) -> Iterator[MetricsProducer]:
    for other in facts.others:
        if isinstance(other.view, MetricsProducer) and other.sound:
            yield other.view


def _rivals(facts: Facts) -> Iterator[Stop]:
    for other in facts.contenders(Role.SCALES):
        label = facts.target.label if facts.target is not None else "its target"
        why = f"{other.kind.kind} `{other.name}` scales it too: they undo each other's work; keep one of them"
        yield Stop(f"{label} has another master", why)
