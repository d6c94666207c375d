"""Decisions of HorizontalAutoscalers as tables: recommendations, replicas and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers.horizontal_autoscaler.harness import LOAD, QUEUED, SCHEDULED, autoscaler, metric, spec_of

from springtide.cluster.conditions import ConditionStatus
from springtide.cluster.resources import Object
from springtide.controllers.decision import ObservedScale
from springtide.controllers.horizontal_autoscaler.decide import (
    HorizontalAutoscalerDecision,
    decide,
    decide_not_scalable,
)
from springtide.controllers.horizontal_autoscaler.recommendation import MissingMetric
from springtide.scaling import RecommendationSteps, ReplicaChanges, ReplicaHistory

NOW = 1_780_272_000  # 2026-06-01T00:00:00Z
UNREAD = MissingMetric("NoSample", "there is no sample")


def past(*steps: tuple[int, int], changes: Sequence[tuple[int, int]] = ()) -> ReplicaHistory:
    """Build a history from recommendations since, and changes at, so many seconds ago."""
    return ReplicaHistory(
        RecommendationSteps(tuple((NOW - ago, replicas) for ago, replicas in steps)),
        ReplicaChanges(tuple((NOW - ago, change) for ago, change in changes)),
    )


def settled(replicas: int) -> ReplicaHistory:
    """Build the history of an autoscaler whose recommendation has been the same for long."""
    return past((10_000, replicas))


def decided(
    written: Object,
    readings: Sequence[str | int | MissingMetric],
    scale: int | tuple[int, int],
    history: ReplicaHistory | None = None,
) -> HorizontalAutoscalerDecision:
    """Decide from readings; `scale` is the wanted number, or the wanted and the present numbers of replicas."""
    asked, present = scale if isinstance(scale, tuple) else (scale, scale)
    values = [one if isinstance(one, MissingMetric) else Fraction(one) for one in readings]
    return decide(spec_of(written), ObservedScale(asked, present), values, history or settled(asked), NOW)


def condition_reasons(decision: HorizontalAutoscalerDecision) -> dict[str, str]:
    """Return the reasons of the conditions, prefixed with `!` unless the status is True."""
    return {
        one.type: one.reason if one.status is ConditionStatus.TRUE else f"!{one.reason}"
        for one in decision.conditions
        if one.type not in ("Ready", "Unopposed")
    }


DOWN_MIN = {"scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Min"}}
DOWN_AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}
UP_DISABLED = {"scaleUp": {"selectPolicy": "Disabled"}}
TWO = (metric(), metric(QUEUED))


@pytest.mark.parametrize(
    ("written", "readings", "scale", "history", "expected"),
    [
        pytest.param(autoscaler(metric(value=50)), ["304"], 1, None, 7, id="average value from one replica"),
        pytest.param(autoscaler(metric(value=50)), ["304"], 0, None, 7, id="average value from zero replicas"),
        pytest.param(
            autoscaler(metric(type="Utilization", value=50)), ["0.6"], 2, None, 3, id="utilization from two replicas"
        ),
        pytest.param(
            autoscaler(metric(type="Utilization", value=50)), ["0.6"], 0, None, 1, id="utilization from zero replicas"
        ),
        pytest.param(
            autoscaler(metric(type="Utilization", value=60), least=3, most=23),
            ["0.85"],
            5,
            None,
            8,
            id="utilization above its target",
        ),
        pytest.param(
            autoscaler(metric(QUEUED, value=4), least=0, most=1000), [41], 1, None, 11, id="average value of a queue"
        ),
        pytest.param(
            autoscaler(metric()),
            [3],
            5,
            past((10_000, 5), changes=[(60, 2)]),
            5,
            id="scale down held by the stabilization window",
        ),
        pytest.param(
            autoscaler(metric()), [8], 5, past((10_000, 5), changes=[(5, 2)]), 8, id="second scale up follows at once"
        ),
        pytest.param(autoscaler(metric(), least=1, most=10), [12], 5, None, 10, id="clamped to maxReplicas"),
        pytest.param(autoscaler(*TWO, behavior=DOWN_AT_ONCE), [3, 4], 5, None, 4, id="highest of two metrics"),
        pytest.param(autoscaler(*TWO, behavior=DOWN_MIN), [3, 4], 5, None, 3, id="lowest of two metrics"),
        pytest.param(autoscaler(metric(), behavior=UP_DISABLED), [8], 5, None, 5, id="scale up disabled"),
        pytest.param(autoscaler(), [], 5, None, 5, id="no metrics"),
        pytest.param(
            autoscaler(metric(type="Utilization", value=55)), ["0.55"], 7, None, 7, id="utilization at its target"
        ),
        pytest.param(autoscaler(metric(type="Value", value=10)), ["15"], 4, None, 6, id="value-in-proportion"),
        pytest.param(autoscaler(metric(type="Value", value="500m")), ["0.75"], 4, None, 6, id="value-as-a-quantity"),
        pytest.param(
            autoscaler(metric(type="Value", value=10), behavior=DOWN_AT_ONCE),
            [0],
            4,
            None,
            1,
            id="value target never scales to zero",
        ),
        pytest.param(autoscaler(metric(), behavior=DOWN_AT_ONCE), [0], 4, None, 0, id="average value scales to zero"),
        pytest.param(
            autoscaler(metric(type="Value", value=10)),
            [20],
            (2, 4),
            None,
            8,
            id="value target multiplies the present replicas",
        ),
    ],
)
def test_replicas_by_metric_and_behavior(
    written: Object, readings: list[Any], scale: int | tuple[int, int], history: ReplicaHistory | None, expected: int
) -> None:
    assert decided(written, readings, scale, history).replicas == expected


@pytest.mark.parametrize(
    ("target", "readings", "expected"),
    [
        pytest.param({"type": "AverageValue", "averageValue": 4}, "41", 11, id="averageValue"),
        pytest.param({"type": "Utilization", "averageUtilization": 60}, "0.85", 8, id="averageUtilization"),
        pytest.param({"type": "AverageValue", "value": 4, "averageValue": 1}, "41", 11, id="value takes precedence"),
    ],
)
def test_target_is_read_from_value_or_the_field_of_its_type(target: Object, readings: str, expected: int) -> None:
    assert decided(autoscaler({"prometheus": {"query": "q", "target": target}}), [readings], 5).replicas == expected


RATE = {"scaleUp": {"policies": [{"type": "Count", "value": 2, "periodSeconds": 60}]}}
HALVING = {
    "scaleDown": {
        "stabilizationWindowSeconds": 0,
        "policies": [{"type": "Percent", "value": 50, "periodSeconds": 90}],
    }
}
HEALTHY = {"Active": "MetricsRead", "AbleToScale": "ReadyForNewScale", "ScalingUnbounded": "WithinBounds"}


@pytest.mark.parametrize(
    ("written", "readings", "scale", "history", "replicas", "reasons", "held_until"),
    [
        pytest.param(autoscaler(metric()), [5], 5, None, 5, {}, None, id="on target"),
        pytest.param(
            autoscaler(metric()), [3], 5, None, 5, {"AbleToScale": "!ScaleDownStabilized"}, 300, id="held-by-a-window"
        ),
        pytest.param(
            autoscaler(metric()),
            [3],
            5,
            past((500, 5), (100, 3)),
            5,
            {"AbleToScale": "!ScaleDownStabilized"},
            200,
            id="held for the rest of a window",
        ),
        pytest.param(autoscaler(metric()), [3], 5, past((500, 5), (300, 3)), 3, {}, None, id="window over"),
        pytest.param(
            autoscaler(metric()),
            [3],
            5,
            ReplicaHistory(),
            5,
            {"AbleToScale": "!ScaleDownStabilized"},
            300,
            id="not watched for a whole window yet",
        ),
        pytest.param(autoscaler(metric()), [8], 5, ReplicaHistory(), 8, {}, None, id="scale up needs no history"),
        pytest.param(
            autoscaler(metric(), behavior=RATE),
            [9],
            5,
            None,
            7,
            {"AbleToScale": "!ScaleUpLimited"},
            60,
            id="limited by a policy",
        ),
        pytest.param(
            autoscaler(metric(), behavior=RATE),
            [9],
            6,
            past((10_000, 9), changes=[(40, 1)]),
            7,
            {"AbleToScale": "!ScaleUpLimited"},
            20,
            id="policy partly used",
        ),
        pytest.param(
            autoscaler(metric(), behavior=HALVING),
            [1],
            9,
            None,
            4,
            {"AbleToScale": "!ScaleDownLimited"},
            90,
            id="scale down limited by a percentage",
        ),
        pytest.param(
            autoscaler(metric(), most=4), [9], 2, None, 4, {"ScalingUnbounded": "!TooManyReplicas"}, None, id="too-many"
        ),
        pytest.param(
            autoscaler(metric(), least=2), [0], 2, None, 2, {"ScalingUnbounded": "!TooFewReplicas"}, None, id="too-few"
        ),
        pytest.param(
            autoscaler(metric(), behavior=UP_DISABLED),
            [8],
            5,
            None,
            5,
            {"ScalingUnbounded": "!ScaleUpDisabled"},
            None,
            id="disabled",
        ),
        pytest.param(
            autoscaler(metric(), most=4),
            [4],
            9,
            ReplicaHistory(),
            4,
            {},
            None,
            id="above maxReplicas is corrected at once",
        ),
        pytest.param(
            autoscaler(metric(), least=3),
            [3],
            1,
            ReplicaHistory(),
            3,
            {},
            None,
            id="below minReplicas is corrected at once",
        ),
        pytest.param(autoscaler(metric()), [UNREAD], 5, None, 5, {"Active": "!NoSample"}, None, id="missing metric"),
        pytest.param(
            autoscaler(*TWO, behavior=DOWN_AT_ONCE),
            [3, UNREAD],
            5,
            None,
            5,
            {"Active": "!NoSample"},
            None,
            id="no scale down while a metric is missing",
        ),
        pytest.param(
            autoscaler(*TWO), [8, UNREAD], 5, None, 8, {"Active": "!NoSample"}, None, id="scale up by the known metrics"
        ),
        pytest.param(
            autoscaler(*TWO, behavior={"scaleUp": {"selectPolicy": "Min"}}),
            [8, UNREAD],
            5,
            None,
            5,
            {"Active": "!NoSample"},
            None,
            id="no decision by the lowest of incomplete metrics",
        ),
        pytest.param(
            autoscaler(metric(), most=4),
            [UNREAD],
            9,
            None,
            9,
            {"Active": "!NoSample", "ScalingUnbounded": "!TooManyReplicas"},
            None,
            id="no scale down to maxReplicas while a metric is missing",
        ),
        pytest.param(
            autoscaler(),
            [],
            5,
            None,
            5,
            {"Active": "!NoMetrics", "AbleToScale": "NoMetrics", "ScalingUnbounded": "NoMetrics"},
            None,
            id="no-metrics",
        ),
    ],
)
def test_conditions_and_requeue_by_situation(
    written: Object,
    readings: list[Any],
    scale: int,
    history: ReplicaHistory | None,
    replicas: int,
    reasons: dict[str, str],
    held_until: int | None,
) -> None:
    decision = decided(written, readings, scale, history)

    assert decision.replicas == replicas
    assert condition_reasons(decision) == HEALTHY | reasons
    assert (None if decision.held_until is None else decision.held_until - NOW) == held_until


def test_restored_metric_begins_a_new_stabilization_window() -> None:
    """While it was missing, the recommendation was the present number, which the window still contains."""
    written = autoscaler(metric(), behavior={"scaleDown": {"stabilizationWindowSeconds": 60}})
    blind = decided(written, [UNREAD], 5, past((1_000, 3)))
    back = decide(spec_of(written), ObservedScale(5, 5), [Fraction(3)], blind.history, NOW + 10)

    assert (blind.replicas, back.replicas, back.held_until) == (5, 5, NOW + 70)


@pytest.mark.parametrize(
    ("value", "target", "scale", "current"),
    [
        pytest.param("0.25", {"type": "Value", "value": 1}, 2, {"value": "250m"}, id="value"),
        pytest.param(
            "41", {"type": "AverageValue", "value": 4}, 4, {"value": "41", "averageValue": "10250m"}, id="average"
        ),
        pytest.param("41", {"type": "AverageValue", "value": 4}, 0, {"value": "41"}, id="average of zero replicas"),
        pytest.param(
            "0.855",
            {"type": "Utilization", "value": 60},
            5,
            {"value": "855m", "averageUtilization": 86},
            id="utilization",
        ),
        pytest.param("1/3", {"type": "Value", "value": 1}, 1, {"value": "333m"}, id="rounded to thousandths"),
    ],
)
def test_current_metrics_are_written_as_quantities(value: str, target: Object, scale: int, current: Object) -> None:
    decision = decided(autoscaler({"prometheus": {"query": LOAD, "target": target}}), [value], scale)

    assert tuple(decision.status["currentMetrics"]) == ({"prometheus": {"query": LOAD, "current": current}},)


def test_current_metrics_keep_the_order_of_the_spec() -> None:
    decision = decided(autoscaler(metric(LOAD), metric(SCHEDULED)), [UNREAD, 4], 4)

    assert [one["prometheus"] for one in decision.status["currentMetrics"]] == [
        {"query": LOAD, "current": {}},
        {"query": SCHEDULED, "current": {"value": "4", "averageValue": "1"}},
    ]


@pytest.mark.parametrize(
    ("written", "readings", "scale", "because"),
    [
        pytest.param(
            autoscaler(metric(LOAD)), [8], 5, "`cluster_load` is 8, at 1 for each replica: 8 replicas", id="average"
        ),
        pytest.param(
            autoscaler(metric(LOAD, "Utilization", 60)),
            ["0.85"],
            5,
            "`cluster_load` is 85 % with 5 replicas, target 60 %: 8 replicas",
            id="utilization",
        ),
        pytest.param(
            autoscaler(metric(LOAD), most=7),
            [8],
            5,
            "`cluster_load` is 8, at 1 for each replica: 8 replicas; 8 replicas are asked for, more than maxReplicas 7",
            id="clamped",
        ),
        pytest.param(
            autoscaler(metric(LOAD), behavior=RATE),
            [8],
            5,
            "`cluster_load` is 8, at 1 for each replica: 8 replicas; more than 7 not before 2026-06-01T00:01:00Z:"
            " the policies of scaleUp allow no more at once",
            id="limited",
        ),
    ],
)
def test_reason_of_a_scale_change(written: Object, readings: list[Any], scale: int, because: str) -> None:
    assert decided(written, readings, scale).reasons == tuple(because.split("; "))


@pytest.mark.parametrize(
    ("history", "message"),
    [
        pytest.param(
            None,
            "fewer than 5 not before 2026-06-01T00:05:00Z: within the last 300 s more replicas were asked for than now",
            id="held by the window",
        ),
        pytest.param(
            past((100, 3)),
            "fewer than 5 not before 2026-06-01T00:03:20Z: the metrics have not been watched for 300 s yet",
            id="not watched for a whole window yet",
        ),
    ],
)
def test_message_says_until_when_scale_down_is_held(history: ReplicaHistory | None, message: str) -> None:
    (able,) = [one for one in decided(autoscaler(metric()), [3], 5, history).conditions if one.type == "AbleToScale"]

    assert able.message == message


TOLERANT = {
    "scaleUp": {"tolerance": "100m"},
    "scaleDown": {"tolerance": 0.2, "stabilizationWindowSeconds": 0},
}


@pytest.mark.parametrize(
    ("target", "readings"),
    [
        pytest.param({"type": "Value", "value": 10}, {"11": 5, "11.1": 6, "8": 5, "7.9": 4}, id="Value"),
        pytest.param({"type": "AverageValue", "value": 2}, {"11": 5, "11.1": 6, "8": 5, "7.9": 4}, id="AverageValue"),
        pytest.param(
            {"type": "Utilization", "value": 50}, {"0.55": 5, "0.56": 6, "0.4": 5, "0.39": 4}, id="Utilization"
        ),
    ],
)
def test_tolerance_applies_in_each_direction(target: Object, readings: dict[str, int]) -> None:
    written = autoscaler({"prometheus": {"query": LOAD, "target": target}}, behavior=TOLERANT)

    assert {value: decided(written, [value], 5).replicas for value in readings} == readings


@pytest.mark.parametrize("behavior", [{"scaleUp": {"tolerance": "0.1"}}, {"scaleDown": {"tolerance": "0.1"}}, TOLERANT])
@pytest.mark.parametrize("present", [0, 19, 22])
def test_average_value_does_not_depend_on_the_present_replicas(behavior: Object, present: int) -> None:
    """During a rollout the number of present replicas differs, but the metric is on target."""
    rules = {**behavior, "scaleDown": {"stabilizationWindowSeconds": 0, **behavior.get("scaleDown", {})}}

    assert decided(autoscaler(metric(), behavior=rules), [20], (20, present)).replicas == 20


def test_without_tolerance_any_difference_scales() -> None:
    assert decided(autoscaler(metric(LOAD, "Value", 1000)), [1001], 5).replicas == 6


_READING = st.none() | st.fractions(-5, 60, max_denominator=20)
_DIRECTION = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.integers(0, 400),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "policies": st.lists(
            st.fixed_dictionaries(
                {
                    "type": st.sampled_from(["Count", "Percent"]),
                    "value": st.integers(1, 100),
                    "periodSeconds": st.integers(1, 300),
                }
            ),
            max_size=2,
        ),
    },
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 400), _READING, _READING), min_size=1, max_size=6),
    _DIRECTION,
    _DIRECTION,
    st.sampled_from(["Value", "AverageValue", "Utilization"]),
    st.integers(0, 5),
    st.integers(0, 20),
    st.integers(0, 30),
)
def test_decision_invariants(
    observations: list[tuple[int, Fraction | None, Fraction | None]],
    up: Object,
    down: Object,
    kind: str,
    least: int,
    room: int,
    current: int,
) -> None:
    """Replicas stay within bounds, do not decrease while a metric is missing, and every change has a reason."""
    behavior = {"scaleUp": up, "scaleDown": down}
    written = autoscaler(metric(LOAD, kind, 7), metric(QUEUED), least=least, most=least + room, behavior=behavior)
    spec, history, now = spec_of(written), ReplicaHistory(), NOW
    for wait, *values in observations:
        now += wait
        readings = [UNREAD if value is None else value for value in values]
        decision = decide(spec, ObservedScale(current, current), readings, history, now)
        blind = UNREAD in readings

        assert decision.replicas >= least
        assert decision.replicas <= (max(current, least + room) if blind else least + room)
        assert not blind or decision.replicas >= current
        assert (condition_reasons(decision)["Active"] == "!NoSample") is blind
        assert decision.reasons
        assert decision.held_until is None or decision.held_until > now
        history = decision.history
        if decision.replicas != current:
            history = history.changed(now, current, decision.replicas)
        current = decision.replicas


@pytest.mark.parametrize(
    ("value", "target", "expected_text"),
    [
        ("5/8", {"type": "Utilization", "value": 60}, "is 62.5 % with 4 replicas, target 60 %"),
        ("2/3", {"type": "Value", "value": "500m"}, "is 0.667 with 4 replicas, target 0.5"),
        ("12000", {"type": "AverageValue", "value": "3k"}, "is 12000, at 3000 for each replica"),
        ("-1/1000", {"type": "AverageValue", "value": 1}, "is -0.001, at 1 for each replica"),
        ("-1/100000", {"type": "AverageValue", "value": 1}, "is 0, at 1 for each replica"),
    ],
    ids=["a-percentage", "a-part", "thousands", "negative", "next-to-nothing"],
)
def test_numbers_in_messages_are_rounded(value: str, target: Object, expected_text: str) -> None:
    source = {"prometheus": {"query": SCHEDULED, "target": target}}
    decision = decide(spec_of(autoscaler(source)), ObservedScale(4, 4), [Fraction(value)], ReplicaHistory(), 1000)
    assert expected_text in decision.condition("Active").message


@pytest.mark.parametrize("scale", [0, 5, 2000])
def test_without_metrics_no_number_is_asked_for(scale: int) -> None:
    decision = decided(autoscaler(most=10), [], scale)
    assert decision.status["desiredReplicas"] is None
    assert not any(str(scale) in condition.message for condition in decision.conditions)
    assert not any("asked for" in condition.message for condition in decision.conditions)


def test_missing_metric_is_told_beside_a_missing_target() -> None:
    readings: list[Fraction | MissingMetric] = [
        MissingMetric("NoSample", "`a` has no sample"),
        Fraction(1),
        MissingMetric("NotGranted", "`b` is refused"),
    ]
    decision = decide_not_scalable(spec_of(autoscaler(metric())), "NotFound", "no Deployment web", readings, NOW)
    active, able = decision.condition("Active"), decision.condition("AbleToScale")
    assert (active.status, active.reason, active.message) == ("False", "NoSample", "`a` has no sample; `b` is refused")
    assert (able.status, able.message) == ("False", "no Deployment web")
    healthy = decide_not_scalable(spec_of(autoscaler(metric())), "NotFound", "no Deployment web", [Fraction(1)], NOW)
    assert healthy.condition("Active").status == "Unknown"
