"""What `springtide explain` says about a HorizontalAutoscaler, with the functions of `decide`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from springtide.apis.forecast import format_instant
from springtide.apis.scheduled.autoscaler import (
    HorizontalAutoscaler,
    PrometheusMetricSource,
    behaviour_of,
    is_proportional,
    sources_of,
)
from springtide.apis.scheduled.cross_object_checks import query_reads
from springtide.apis.scheduled.schedule import compile_schedule, zone_of
from springtide.apis.schema import nearest
from springtide.controllers.decision import ObservedScale
from springtide.controllers.explanation import (
    Blocker,
    Explanation,
    ExplanationInput,
    common_blockers,
    conflict_blockers,
    instant_of,
    target_blockers,
    target_label,
    target_sentences,
)
from springtide.controllers.horizontal_autoscaler.decide import CONFLICT_REMEDY
from springtide.controllers.horizontal_autoscaler.forecast import (
    ReplicaForecast,
    forecast_replicas,
    missing_producers,
    producers,
    schedule_read_by,
)
from springtide.controllers.horizontal_autoscaler.recommendation import recommend
from springtide.controllers.metrics_producer.explain import upcoming
from springtide.scaling import PolicySelect, ScalingTolerance

_ANY_SCALE = ObservedScale(0, 0)
"""The scale for recommendations that do not depend on it."""


def explain_autoscaler(facts: ExplanationInput) -> Explanation:
    """Explain an autoscaler by what it read, what follows from that, and what delays or prevents it."""
    view = facts.object.view
    autoscaler = view if isinstance(view, HorizontalAutoscaler) else None
    ahead = forecast_replicas(facts, autoscaler) if autoscaler is not None and facts.object.sound else ReplicaForecast()
    reported = facts.status.get("desiredReplicas") if facts.present else None
    idle = autoscaler is not None and not autoscaler.spec.metrics
    desired = None if idle else reported if isinstance(reported, int) else ahead.wants
    unknown = "nothing: it has no metrics" if idle else facts.not_known
    return Explanation(
        subject=facts.subject,
        zone=ahead.coming[0].zone if ahead.coming else facts.default_zone,
        wants={"replicas": desired},
        headline=unknown if desired is None else f"{desired} replica{'' if desired == 1 else 's'}",
        because=tuple(_because(facts, autoscaler)) if autoscaler is not None else (),
        next=ahead.coming,
        next_unknown=ahead.unknown,
        stopped=(
            *common_blockers(facts, "horizontal-autoscaler"),
            *target_blockers(facts),
            *(_metric_blockers(facts, autoscaler) if autoscaler is not None else ()),
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


def _metric_blockers(facts: ExplanationInput, autoscaler: HorizontalAutoscaler) -> Iterator[Blocker]:
    """Report metrics of producers that do not exist, unless the controller has reported about its metrics."""
    if facts.present and any(one.type == "Active" and one.status != "Unknown" for one in facts.conditions):
        return
    for source in sources_of(autoscaler.spec):
        for name in missing_producers(source, facts):
            close = nearest(name, [one.name for one in facts.others if one.kind.kind == "MetricsProducer"])
            hint = f" (did you mean {close}?)" if close is not None else ""
            yield Blocker(f"`{source.query}` cannot be read", f"there is no MetricsProducer `{name}`{hint}")


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
    schedule = schedule_read_by(source, facts)
    state = "has not been read yet" if facts.present else "is not read for another time than the present"
    if schedule is None:
        return f"`{source.query}` {state}"
    value = compile_schedule(schedule, zone_of(schedule, facts.default_zone), facts.calendars).at(facts.at)
    outcome = ""
    if facts.object.sound and not is_proportional(source):
        asked = recommend(source, Fraction(value), _ANY_SCALE, ScalingTolerance())
        outcome = f", which recommends {asked.replicas}"
    return f"`{source.query}` {state}; its schedule says {value}{outcome}"


def _producer_notes(facts: ExplanationInput, autoscaler: HorizontalAutoscaler) -> Iterator[str]:
    """Say which producers the metrics come from, and what those do next."""
    for source in sources_of(autoscaler.spec):
        for producer in producers(facts):
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
