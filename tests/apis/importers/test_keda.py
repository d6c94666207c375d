"""The importer of KEDA: the new objects scale as KEDA does."""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.apis.importers.conversions import NOW, applied_at, converted, errors_of, replicas_at, views_of, warnings_of

from springtide.apis.importers import ConversionOptions, convert_keda


def scaled_object(*triggers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "shop", "namespace": "web", "labels": {"team": "a"}},
        "spec": {"scaleTargetRef": {"name": "shop"}, **spec, "triggers": list(triggers)},
    }


def cron(start: str, end: str, replicas: Any = "5", zone: str = "UTC", **fields: Any) -> dict[str, Any]:
    metadata = {"timezone": zone, "start": start, "end": end, "desiredReplicas": replicas}
    return {"type": "cron", "metadata": metadata, **fields}


def without(field: str) -> dict[str, Any]:
    trigger = cron("0 8 * * *", "0 18 * * *")
    return {**trigger, "metadata": {name: text for name, text in trigger["metadata"].items() if name != field}}


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        pytest.param({"type": "cron"}, "no `metadata`", id="no-metadata"),
        pytest.param(without("desiredReplicas"), "no `desiredReplicas`", id="no-replicas"),
        pytest.param(without("timezone"), "no `timezone`", id="no-zone"),
        pytest.param(cron("-30 * * * *", "0 18 * * *"), "minute '-30'", id="negative-minute"),
        pytest.param(cron("0 8 * -3 *", "0 18 * * *"), "month '-3'", id="negative-month"),
        pytest.param(cron("0 8 * * *", "0 8 * * *"), "start and end are the same", id="start-is-end"),
        pytest.param(without("start"), "no `start`", id="no-start"),
        pytest.param(without("end"), "no `end`", id="no-end"),
        pytest.param(cron("@daily", "0 18 * * *"), "does not read '@daily'", id="macro"),
        pytest.param(cron("0 8 * * 7", "0 18 * * *"), "day of week '7'", id="seven"),
        pytest.param(cron("0 8 30 2 *", "0 18 * * *"), "never fires", id="impossible"),
        pytest.param(cron("0 8 * * *", "0 18 * * *", "0"), "not a number of replicas", id="zero"),
        pytest.param(cron("0 8 * * *", "0 18 * * *", "many"), "not a number of replicas", id="text"),
        pytest.param(cron("0 8 * * *", "0 18 * * *", zone="Mars/One"), "is unknown", id="unknown-zone"),
        pytest.param(cron("0 8 * * *", "0 18 * * *", metricType="Value"), "depend on the current ones", id="value"),
        pytest.param(cron("0 8 1 * 1", "0 18 * * *"), 'by "or"', id="either-in-start-only"),
        pytest.param(cron("0 20 1 * 1", "0 6 1 * 1"), 'by "or"', id="either-over-midnight"),
    ],
)
def test_an_error_leaves_the_object_unchanged(trigger: dict[str, Any], said: str) -> None:
    value = scaled_object(trigger)
    conversion = converted(convert_keda, value)
    assert [message for message in errors_of(conversion) if said in message], conversion.problems
    assert (conversion.kept, conversion.made) == (value, ())
    assert all(problem.path[:3] == ("spec", "triggers", 0) for problem in conversion.problems)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param({"maxReplicaCount": 1, "minReplicaCount": 3}, "smaller than minReplicaCount", id="bounds"),
        pytest.param({"minReplicaCount": -1}, "not a number of replicas", id="negative"),
        pytest.param({"scaleTargetRef": {}}, "no name", id="target"),
        pytest.param({"advanced": {"scalingModifiers": {"formula": "a+b"}}}, "formula", id="formula"),
    ],
)
def test_specs_without_an_equivalent(spec: dict[str, Any], said: str) -> None:
    conversion = converted(convert_keda, {**scaled_object(cron("0 8 * * *", "0 18 * * *"), **spec)})
    assert [message for message in errors_of(conversion) if said in message], conversion.problems


@pytest.mark.parametrize(
    "spec",
    [
        {"cooldownPeriod": 60},
        {"pollingInterval": 5},
        {"fallback": {"failureThreshold": 3, "replicas": 6}},
        {"advanced": {"restoreToOriginalReplicaCount": True}},
    ],
    ids=["cooldown", "polling", "fallback", "restore"],
)
def test_a_field_without_an_equivalent_is_a_warning(spec: dict[str, Any]) -> None:
    conversion = converted(convert_keda, scaled_object(cron("0 8 * * *", "0 18 * * *"), **spec))
    assert len(conversion.made) == 2
    assert any("has no equivalent" in message for message in warnings_of(conversion))


def test_a_scaled_job_is_not_converted() -> None:
    job = {**scaled_object(cron("0 8 * * *", "0 18 * * *")), "kind": "ScaledJob"}
    conversion = converted(convert_keda, job)
    assert (conversion.kept, conversion.made) == (job, ())
    (said,) = warnings_of(conversion)
    assert "has no replicas" in said


def test_a_pause_is_a_warning_with_the_annotation_to_write() -> None:
    paused = scaled_object(cron("0 8 * * *", "0 18 * * *"))
    paused["metadata"]["annotations"] = {"autoscaling.keda.sh/paused-replicas": "0"}
    (problem,) = converted(convert_keda, paused).problems
    assert "springtide.dev/paused" in problem.hint


def test_defaults_are_those_of_keda() -> None:
    conversion = converted(convert_keda, scaled_object(cron("0 8 * * *", "0 18 * * *")))
    producer, autoscaler = views_of(conversion)
    assert producer.spec.schedule.default_replicas == 0
    assert (autoscaler.spec.min_replicas, autoscaler.spec.max_replicas) == (0, 100)
    assert autoscaler.spec.scale_target_ref.api_version == "apps/v1"
    assert autoscaler.spec.scale_target_ref.kind == "Deployment"
    assert autoscaler.metadata.labels == {"team": "a"}


def test_each_zone_has_a_schedule_and_the_highest_counts() -> None:
    conversion = converted(
        convert_keda,
        scaled_object(
            cron("0 8 * * *", "0 18 * * *", "3", "Asia/Tokyo"), cron("0 8 * * *", "0 18 * * *", "7", "Asia/Kolkata")
        ),
    )
    *producers, autoscaler = views_of(conversion)
    assert [view.metadata.name for view in producers] == ["shop-asia-tokyo", "shop-asia-kolkata"]
    assert len(autoscaler.spec.metrics) == 2
    at = replicas_at(conversion)
    midnight = NOW  # 09:00 in Tokyo, 05:30 in Kolkata
    assert [at(midnight + hour * 3600) for hour in (0, 3, 8, 10, 13)] == [3, 7, 7, 7, 0]


def test_where_windows_overlap_the_highest_counts() -> None:
    outer, inner = cron("0 8 * * *", "0 18 * * *", "3"), cron("0 12 * * *", "0 14 * * *", "7")
    lower = cron("0 12 * * *", "0 14 * * *", "2")
    for triggers in ((outer, inner, lower), (lower, inner, outer), (inner, outer, lower)):
        at = replicas_at(converted(convert_keda, scaled_object(*triggers)))
        assert [at(NOW + hour * 3600) for hour in (7, 8, 12, 14, 18)] == [0, 3, 7, 3, 0]


def test_scaling_behavior_is_converted() -> None:
    behavior = {
        "scaleDown": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Min",
            "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}],
        }
    }
    advanced = {"horizontalPodAutoscalerConfig": {"behavior": behavior}}
    conversion = converted(convert_keda, scaled_object(cron("0 8 * * *", "0 18 * * *"), advanced=advanced))
    down = views_of(conversion)[1].spec.behavior.scale_down
    assert (down.stabilization_window_seconds, down.select_policy, down.policies[0].type) == (0, "Min", "Count")


def test_beside_other_triggers_cron_rules_move_the_minimum() -> None:
    queue = {"type": "rabbitmq", "metadata": {"queueName": "a"}}
    value = scaled_object(queue, cron("0 8 * * 1-5", "0 18 * * 1-5", "6"), minReplicaCount=2)
    conversion = converted(convert_keda, value)
    assert conversion.kept is not None
    assert conversion.kept["spec"]["triggers"] == [queue]
    at = applied_at(conversion)
    assert at(NOW + 8 * 3600) == {"min": 6}
    assert at(NOW + 18 * 3600) == {"min": 2}
    (warning,) = warnings_of(conversion)
    assert warning.endswith("a window that is open already raises nothing until it begins again")


def test_beside_other_triggers_a_window_is_limited_to_the_bounds() -> None:
    queue = {"type": "cpu", "metadata": {"value": "50"}}
    alone, beside = (
        converted(convert_keda, scaled_object(*others, cron("0 8 * * *", "0 18 * * *", "6"), maxReplicaCount=4))
        for others in ((), (queue,))
    )
    cut = "6 replicas are outside the bounds 0 to 4: the window has 4"
    assert cut in warnings_of(alone)
    assert cut in warnings_of(beside)
    assert applied_at(beside)(NOW + 8 * 3600) == {"min": 4}


def test_beside_other_triggers_windows_may_meet_but_not_overlap() -> None:
    queue = {"type": "cpu", "metadata": {"value": "50"}}
    meeting = scaled_object(queue, cron("0 8 * * *", "0 12 * * *", "3"), cron("0 12 * * *", "0 18 * * *", "9"))
    at = applied_at(converted(convert_keda, meeting))
    assert [at(NOW + hour * 3600) for hour in (8, 12, 18)] == [{"min": 3}, {"min": 9}, {"min": 0}]
    overlapping = scaled_object(queue, cron("0 8 * * *", "0 13 * * *", "3"), cron("0 12 * * *", "0 18 * * *", "9"))
    assert "overlaps that of triggers[1]" in errors_of(converted(convert_keda, overlapping))[0]
    idle = scaled_object(queue, cron("0 8 * * *", "0 12 * * *"), minReplicaCount=1, idleReplicaCount=0)
    assert "idle" in errors_of(converted(convert_keda, idle))[0]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(scaled_object({"type": "cpu"}), id="no-cron"),
        pytest.param({**scaled_object(cron("0 8 * * *", "0 9 * * *")), "apiVersion": "example.com/v1"}, id="group"),
        pytest.param({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject"}, id="empty"),
    ],
)
def test_objects_that_are_not_handled(value: dict[str, Any]) -> None:
    assert convert_keda(value, ConversionOptions(NOW)) is None


# KEDA's own rule, walked by hand: active while the next end comes no later than the next start.


@dataclass(frozen=True)
class Field:
    """Draw a field of a cron expression and its values."""

    text: str
    values: frozenset[int]

    @property
    def star(self) -> bool:
        return self.text == "*"


@dataclass(frozen=True)
class Expression:
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def text(self) -> str:
        return " ".join(field.text for field in (self.minute, self.hour, self.day, self.month, self.weekday))

    @property
    def either(self) -> bool:
        return not self.day.star and not self.weekday.star

    def hits(self, first: datetime.date, days: int, offset: int) -> list[int]:
        found = []
        for number in range(days):
            date = first + datetime.timedelta(days=number)
            by_day, by_weekday = date.day in self.day.values, date.isoweekday() % 7 in self.weekday.values
            matches = (by_day or by_weekday) if self.either else (by_day and by_weekday)
            if date.month in self.month.values and matches:
                midnight = (date - datetime.date(1970, 1, 1)).days * 86400 - offset
                found += [midnight + h * 3600 + m * 60 for h in self.hour.values for m in self.minute.values]
        return sorted(found)


def field(low: int, high: int, *, star: bool) -> st.SearchStrategy[Field]:
    numbers = st.integers(low, high)
    listed = st.sets(numbers, min_size=1, max_size=3).map(
        lambda chosen: Field(",".join(str(value) for value in sorted(chosen)), frozenset(chosen))
    )
    ranged = st.tuples(numbers, numbers, st.integers(1, 4)).map(_ranged)
    stepped = st.integers(2, 4).map(lambda step: Field(f"{low}-{high}/{step}", frozenset(range(low, high + 1, step))))
    every = st.just(Field("*", frozenset(range(low, high + 1))))
    return st.one_of(every, listed, ranged, stepped) if star else st.one_of(listed, ranged, stepped)


def _ranged(drawn: tuple[int, int, int]) -> Field:
    low, high, step = min(drawn[:2]), max(drawn[:2]), drawn[2]
    ending = f"/{step}" if step > 1 else ""
    return Field(f"{low}-{high}{ending}", frozenset(range(low, high + 1, step)))


ANY_DAY = Field("*", frozenset(range(1, 32)))
ANY_WEEKDAY = Field("*", frozenset(range(7)))
MINUTES = st.sampled_from([Field("0", frozenset({0})), Field("30", frozenset({30})), Field("*/30", frozenset({0, 30}))])
MONTHS = st.one_of(st.just(Field("*", frozenset(range(1, 13)))), field(1, 12, star=False))
DAYS = st.one_of(  # either or both of the two fields, or none of them
    st.just((ANY_DAY, ANY_WEEKDAY)),
    field(1, 28, star=False).map(lambda day: (day, ANY_WEEKDAY)),
    field(0, 6, star=False).map(lambda weekday: (ANY_DAY, weekday)),
    field(0, 6, star=False).map(lambda weekday: (ANY_DAY, weekday)),
)
BOTH_DAYS = st.tuples(field(1, 28, star=False), field(0, 6, star=False))


@st.composite
def windows(draw: st.DrawFn) -> tuple[Expression, Expression]:
    """Draw any start and end, and sometimes a start and end on one day that names both day fields."""
    hours = field(0, 23, star=True)
    if not draw(st.integers(0, 3)):
        months, (day, weekday) = draw(MONTHS), draw(BOTH_DAYS)
        edges = [Expression(draw(MINUTES), draw(hours), day, months, weekday) for _ in range(2)]
        return edges[0], edges[1]
    start, end = (Expression(draw(MINUTES), draw(hours), *_ordered(draw(DAYS), draw(MONTHS))) for _ in range(2))
    return start, end


def _ordered(days: tuple[Field, Field], months: Field) -> tuple[Field, Field, Field]:
    return days[0], months, days[1]


ZONES = {"Asia/Kolkata": 19800, "America/Bogota": -18000}


@dataclass(frozen=True)
class Trigger:
    start: Expression
    end: Expression
    replicas: int
    zone: str

    def active(self) -> Callable[[int], bool]:
        first = datetime.date(2026, 1, 1)
        starts, ends = (edge.hits(first, 800, ZONES[self.zone]) for edge in (self.start, self.end))
        return lambda at: ends[bisect_right(ends, at)] <= starts[bisect_right(starts, at)]


TRIGGERS = st.builds(
    lambda window, replicas, zone: Trigger(window[0], window[1], replicas, zone),
    windows(),
    st.integers(1, 9),
    st.sampled_from(sorted(ZONES)),
).filter(lambda trigger: trigger.start.text != trigger.end.text)


@given(
    triggers=st.lists(TRIGGERS, min_size=1, max_size=3),
    least=st.integers(0, 3),
    most=st.integers(4, 10),
    idle=st.sampled_from([None, 0]),
    hours=st.lists(st.integers(0, 60 * 24), min_size=30, max_size=60, unique=True),
)
def test_the_new_objects_scale_as_keda_does(
    triggers: list[Trigger], least: int, most: int, idle: int | None, hours: list[int]
) -> None:
    spec: dict[str, Any] = {"minReplicaCount": least, "maxReplicaCount": most}
    if idle is not None:
        spec["idleReplicaCount"] = idle
    listed = [cron(one.start.text, one.end.text, str(one.replicas), one.zone) for one in triggers]
    conversion = converted(convert_keda, scaled_object(*listed, **spec))
    if errors_of(conversion):
        assert any(one.start.either or one.end.either for one in triggers)
        event("inexpressible")
        return
    event("both day fields" if any(one.start.either for one in triggers) else "plain")
    at = replicas_at(conversion)
    active = [(one.active(), one.replicas) for one in triggers]
    for instant in (NOW + hour * 3600 + second for hour in hours for second in (-1, 0, 1800)):
        sizes = [replicas for holds, replicas in active if holds(instant)]
        expected = min(max(least, *sizes), most) if sizes else (least if idle is None else idle)
        assert at(instant) == expected, datetime.datetime.fromtimestamp(instant, datetime.UTC)


def test_weekdays_are_listed_from_monday() -> None:
    """Cron counts them from Sunday, which is the last day of a weekend."""
    conversion = converted(convert_keda, scaled_object(cron("0 8 * * 0,1,6", "0 18 * * 0,1,6")))

    (behavior,) = conversion.made[0]["spec"]["schedule"]["behaviors"]
    assert behavior["start"]["weekdays"] == "Mon,Sat,Sun"
