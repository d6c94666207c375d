"""What schedules will make an autoscaler ask for: known where each of its metrics is a schedule as it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from springtide.almanac import Timeline, maximum, minimum
from springtide.almanac.effort import at_most
from springtide.apis.explaining.explanation import Coming
from springtide.apis.explaining.facts import Facts
from springtide.apis.forecast import Question
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler, MetricTarget, PrometheusMetricSource
from springtide.apis.scheduled.behaviors import ScheduleSpec
from springtide.apis.scheduled.outlook import forecast
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.scheduled.readers import reads_only
from springtide.apis.scheduled.schedule import compile_schedule, zone_of
from springtide.quantity import Quantity
from springtide.scaling import Tolerance, per_replica

_NANO = 10**9
_LISTED = 5
_MOST_STEPS = 2_000_000
"""Of the search for what comes next: some seconds."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """What an autoscaler wants at the time that is explained and what it will want, or why that is not known."""

    wants: int | None = None
    coming: tuple[Coming, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class _Followed:
    """A schedule, and the replicas that its value asks for."""

    producer: MetricsProducer
    asked: Timeline[int]


def foresee(facts: Facts, autoscaler: HorizontalAutoscaler) -> Foresight:
    """Look ahead for an autoscaler whose metrics are plain schedules, shared out among replicas."""
    sources = [metric.prometheus for metric in autoscaler.spec.metrics or () if metric.prometheus is not None]
    followed: list[_Followed] = []
    for source in sources:
        found = _followed(source, facts)
        if isinstance(found, str):
            return Foresight(unknown=found)
        followed.append(found)
    if not followed:
        return Foresight()
    up, down = choices(autoscaler)
    if len(followed) > 1 and up != down:
        return Foresight(unknown="which of its metrics counts depends on whether it goes up or down from where it is")
    asked = (minimum if up == "lowest" else maximum)([one.asked for one in followed])
    wants = bounded(asked.at(facts.at), autoscaler)
    if disabled := _disabled(autoscaler):
        return Foresight(wants, unknown=f"`{disabled}` is disabled, so that it depends on where it is then")
    with at_most(_MOST_STEPS) as effort:
        coming = tuple(_coming(facts, autoscaler, followed, asked))
    if effort.exhausted and len(coming) < _LISTED:
        unknown = "what comes then, since the search was given up after many changes without effect"
        return Foresight(wants, coming, unknown)
    return Foresight(wants, coming)


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
    return per_replica(Fraction(value * _NANO, amount.nano), current=0, tolerance=Tolerance())


def bounded(replicas: int, autoscaler: HorizontalAutoscaler) -> int:
    """Cut a recommendation to the bounds."""
    return min(max(replicas, autoscaler.spec.min_replicas), autoscaler.spec.max_replicas)


def scheduled_value(source: PrometheusMetricSource, facts: Facts) -> int | None:
    """Give the value of the schedule that a query reads as it is, at the time that is explained."""
    producer = _read_plainly(source, facts)
    schedule = producer.spec.schedule if producer is not None else None
    return None if schedule is None else _timeline(schedule, facts).at(facts.at)


def producers(facts: Facts) -> Iterator[MetricsProducer]:
    """Give the producers that may matter."""
    for other in facts.others:
        if isinstance(other.view, MetricsProducer) and other.sound:
            yield other.view


def _followed(source: PrometheusMetricSource, facts: Facts) -> _Followed | str:
    """Compile a metric, or say why it cannot be foreseen."""
    producer = _read_plainly(source, facts)
    schedule = producer.spec.schedule if producer is not None else None
    if producer is None or schedule is None:
        return f"`{source.query}` is not the schedule of a MetricsProducer as it stands"
    if recommendation(0, source.target) is None:
        return (
            f"what `{source.query}` asks for depends on how many replicas there are then (target {source.target.type})"
        )

    def asked(value: int) -> int:
        return recommendation(value, source.target) or 0

    return _Followed(producer, _timeline(schedule, facts).map(asked))


def _read_plainly(source: PrometheusMetricSource, facts: Facts) -> MetricsProducer | None:
    return next((one for one in producers(facts) if reads_only(source.query, facts.object.namespace, one)), None)


def _timeline(schedule: ScheduleSpec, facts: Facts) -> Timeline[int]:
    return compile_schedule(schedule, zone_of(schedule, facts.default_zone), facts.calendars)


def _coming(
    facts: Facts, autoscaler: HorizontalAutoscaler, followed: Sequence[_Followed], asked: Timeline[int]
) -> Iterator[Coming]:
    ahead = list(islice(asked.segments(facts.at), 1, _LISTED + 1))
    if not ahead:
        return
    question = Question(facts.at, ahead[-1][0], default_zone=facts.default_zone, calendars=facts.calendars)
    reasons: dict[int, list[tuple[str, str]]] = {}
    for one in followed:
        outlook = forecast(one.producer, question)
        name = f"MetricsProducer `{one.producer.metadata.name}`: " if len(followed) > 1 else ""
        for change in outlook.lanes[0].changes:
            reasons.setdefault(change.at, []).append((name + change.because, outlook.zones[0]))
    for at, replicas in ahead:
        value = bounded(replicas, autoscaler)
        cut = "" if value == replicas else f", {replicas} cut to the bounds"
        because = "; ".join(text for text, _ in reasons[at])
        yield Coming(at, value, "replicas", because + cut, reasons[at][0][1])
