"""Schedules that leave the bounds of the autoscaler that follows them, and the forecast of such autoscalers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from springtide.apis.forecast import Forecast, ForecastQuery, format_instant
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import parse_instant
from springtide.apis.objects import LoadedObject, load, with_calendars
from springtide.apis.problems import format_path
from springtide.apis.references import check_cross_object
from springtide.apis.scheduled.follower_forecast import forecast_follower
from springtide.apis.scheduled.followers import read_followers

NOW = parse_instant("2026-11-26T00:00:00Z")
CONTEXT = ValidationContext(now=NOW)

SALE = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: sale}
spec:
  schedule:
    timezone: Europe/Berlin
    defaultReplicas: 2
    behaviors:
    - {name: black-friday, replicas: 20, from: 2026-11-27T05:00:00Z, until: 2026-11-27T21:00:00Z}
"""
WEB = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: HorizontalAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 3
  metrics:
  - prometheus: {query: 'karpenter_scheduled_capacity{name="sale"}', target: {type: AverageValue, value: 1}}
"""
POD_AUTOSCALER = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 3
  metrics:
  - type: External
    external:
      metric: {name: karpenter_scheduled_capacity, selector: {matchLabels: {name: sale}}}
      target: {type: AverageValue, averageValue: "1"}
"""
SCALED_OBJECT = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web}
spec:
  scaleTargetRef: {name: web}
  maxReplicaCount: 3
  triggers:
  - type: prometheus
    metadata: {serverAddress: "http://prom:9090", query: 'karpenter_scheduled_capacity{name="sale"}', threshold: "1"}
"""
TOO_MANY = "{} `web` sets at most 3 replicas, but behaviour `black-friday` of MetricsProducer `sale` asks for {}"
FIRST = ", first at Fri 2026-11-27 06:00 Europe/Berlin"
RAISE = "raise `maxReplicas` to 20, or lower `replicas` of the behaviour to 3"


def objects(*texts: str) -> list[LoadedObject]:
    found = [item for text in texts for item in load(text, CONTEXT)]
    assert all(isinstance(item, LoadedObject) and item.sound for item in found), found
    return [item for item in found if isinstance(item, LoadedObject)]


def told(*texts: str) -> list[tuple[str, str, str]]:
    """List path, message and hint of the problems about bounds."""
    problems = [problem for listed in check_cross_object(objects(*texts), CONTEXT) for problem in listed]
    return [
        (format_path(one.path), one.message, one.hint)
        for one in problems
        if re.search("sets at (most|least)", one.message)
    ]


@pytest.mark.parametrize(
    ("autoscaler", "kind", "path", "hint"),
    [
        pytest.param(WEB, "HorizontalAutoscaler", "spec.maxReplicas", RAISE, id="horizontal-autoscaler"),
        pytest.param(POD_AUTOSCALER, "HorizontalPodAutoscaler", "spec.maxReplicas", RAISE, id="pod-autoscaler"),
        pytest.param(
            SCALED_OBJECT,
            "ScaledObject",
            "spec.maxReplicaCount",
            RAISE.replace("Replicas`", "ReplicaCount`"),
            id="keda",
        ),
    ],
)
def test_a_schedule_beyond_the_maximum_is_a_warning_about_its_follower(
    autoscaler: str, kind: str, path: str, hint: str
) -> None:
    assert told(SALE, autoscaler) == [(path, TOO_MANY.format(kind, 20) + FIRST, hint)]


@pytest.mark.parametrize(
    ("change", "told_of"),
    [
        pytest.param(("value: 1}", "value: 2}"), "20 (10 replicas)", id="two-for-each-replica"),
        pytest.param(("value: 1}", "averageValue: 800m}"), "20 (25 replicas)", id="a-fraction-for-each-replica"),
        pytest.param(("'karpenter", "'max(karpenter", "\"}'", "\"})'"), "20", id="the-highest-of-one-sample"),
        pytest.param(("scheduled_capacity", "scheduled_replicas_value"), "20", id="the-other-name-of-the-metric"),
        pytest.param(("value: 1}", "value: 7}"), "", id="seven-for-each-replica"),
        pytest.param(("maxReplicas: 3", "maxReplicas: 20"), "", id="bounds-that-hold"),
        pytest.param(("AverageValue", "Value"), "", id="a-proportional-target"),
        pytest.param(("'karpenter", "'2 * karpenter"), "", id="arithmetic"),
        pytest.param(('"sale"', '"other"'), "", id="another-producer"),
        pytest.param(("{name: web}", "{name: web, namespace: shop}"), "", id="another-namespace"),
        pytest.param(
            ("  metrics:", "  behavior: {scaleUp: {selectPolicy: Disabled}}\n  metrics:"), "", id="never-scaled-up"
        ),
    ],
)
def test_only_what_is_certain_is_reported(change: tuple[str, ...], told_of: str) -> None:
    autoscaler = WEB
    for old, new in zip(change[::2], change[1::2], strict=True):
        assert old in autoscaler
        autoscaler = autoscaler.replace(old, new)
    messages = [message for _, message, _ in told(SALE, autoscaler)]
    assert messages == ([TOO_MANY.format("HorizontalAutoscaler", told_of) + FIRST] if told_of else [])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(("name: sale}}}", "name: sale, namespace: default}}}"), True, id="its-namespace"),
        pytest.param(("name: sale}}}", "name: sale, namespace: shop}}}"), False, id="another-namespace"),
        pytest.param(("matchLabels: {name: sale}", "matchLabels: {}"), False, id="any-producer"),
        pytest.param(("AverageValue", "Value", "averageValue", "value"), False, id="a-proportional-target"),
        pytest.param(("scheduled_capacity", "queue_length"), False, id="another-metric"),
    ],
)
def test_which_external_metrics_are_schedules(change: tuple[str, ...], expected: bool) -> None:
    autoscaler = POD_AUTOSCALER
    for old, new in zip(change[::2], change[1::2], strict=True):
        assert old in autoscaler
        autoscaler = autoscaler.replace(old, new)
    assert bool(told(SALE, autoscaler)) is expected


@pytest.mark.parametrize(
    "behavior",
    [
        "{scaleUp: {policies: [{type: Pods, value: 4, periodSeconds: 0}]}}",
        "{scaleUp: {policies: [{type: Pods, value: many, periodSeconds: 60}]}}",
        "{scaleUp: {policies: [4]}}",
        "{scaleUp: {selectPolicy: Most}}",
        "{scaleUp: {selectPolicy: [Max]}}",
        "{scaleDown: {stabilizationWindowSeconds: -1}}",
        "{scaleDown: {tolerance: some}}",
    ],
)
def test_nothing_is_certain_of_a_behavior_that_the_api_server_refuses(behavior: str) -> None:
    loaded = [item for text in (SALE, f"{POD_AUTOSCALER}  behavior: {behavior}\n") for item in load(text, CONTEXT)]
    assert list(read_followers([item for item in loaded if isinstance(item, LoadedObject)])) == []


def test_other_metrics_can_only_ask_for_more() -> None:
    """A second metric does not help against a maximum; against a minimum it may."""
    other = WEB + "  - prometheus: {query: up, target: {type: AverageValue, value: 1}}\n"
    assert told(SALE, other)
    raised = other.replace("minReplicas: 1", "minReplicas: 3")
    assert [path for path, _, _ in told(SALE, raised)] == ["spec.maxReplicas"]


def test_a_schedule_below_the_minimum_is_a_warning() -> None:
    ((path, message, hint),) = told(SALE, WEB.replace("minReplicas: 1", "minReplicas: 5").replace("s: 3", "s: 20"))
    assert path == "spec.minReplicas"
    assert message == (
        "HorizontalAutoscaler `web` sets at least 5 replicas, but the default of MetricsProducer `sale` asks for 2, now"
    )
    assert hint == "lower `minReplicas` to 2, or raise `defaultReplicas` to 5"


def test_no_replicas_need_a_feature_gate_of_a_pod_autoscaler() -> None:
    ((_, _, hint),) = told(SALE.replace("Replicas: 2", "Replicas: 0"), POD_AUTOSCALER.replace("s: 3", "s: 20"))
    assert hint == (
        "lower `minReplicas` to 0 (which needs the feature gate HPAScaleToZero), or raise `defaultReplicas` to 1"
    )


@pytest.mark.parametrize(
    ("behaviors", "default", "expected"),
    [
        pytest.param("{replicas: 9, start: {hours: 9}, end: {hours: 18}, suspend: true}", 2, 0, id="suspended"),
        pytest.param("{replicas: 9, from: 2026-11-01T00:00:00Z, until: 2026-11-02T00:00:00Z}", 2, 0, id="over"),
        pytest.param("{replicas: 9, from: 2029-11-01T00:00:00Z, until: 2029-11-02T00:00:00Z}", 2, 1, id="far-ahead"),
        pytest.param(
            "{replicas: 2, start: {hours: 6}, end: {hours: 18}}, {replicas: 3, start: {hours: 18}, end: {hours: 6}}",
            9,
            0,
            id="a-default-that-never-applies",
        ),
        pytest.param(
            "{replicas: 9, start: {hours: 6}, end: {hours: 18}, calendars: [{name: unknown}]}",
            2,
            0,
            id="days-that-are-not-known",
        ),
        pytest.param(
            "{replicas: 9, start: {hours: 6}, end: {hours: 9}},"
            " {name: top, replicas: 12, start: {hours: 9}, end: {hours: 18}}",
            2,
            1,
            id="the-highest-is-named",
        ),
    ],
)
def test_only_values_that_take_effect_count(behaviors: str, default: int, expected: int) -> None:
    schedule = f"{{timezone: UTC, defaultReplicas: {default}, behaviors: [{behaviors}]}}"
    head = "{apiVersion: autoscaling.karpenter.sh/v1alpha1, kind: MetricsProducer, metadata: {name: sale},\n"
    found = told(f"{head} spec: {{schedule: {schedule}}}}}", WEB)
    assert len(found) == expected
    if "top" in behaviors:
        assert found[0][1].endswith(
            "behaviour `top` of MetricsProducer `sale` asks for 12, first at Thu 2026-11-26 09:00 UTC; so does another"
        )
        assert found[0][2].startswith("raise `maxReplicas` to 12")


def test_rules_that_move_the_bounds_leave_nothing_certain() -> None:
    rules = """
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: day}
spec:
  scaleTargetRef: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, name: web}
  rules: [{name: up, schedule: "0 5 * * *", targetMaxReplicas: 30}]
"""
    assert told(SALE, POD_AUTOSCALER)
    assert not told(SALE, POD_AUTOSCALER, rules)


def forecast(*texts: str, start: int = NOW, days: int = 3, always: bool = False) -> Forecast | None:
    loaded = objects(*texts)
    (follower,) = read_followers(loaded)
    query = with_calendars(ForecastQuery(start, start + days * 86400), loaded)
    return forecast_follower(follower, query, always=always)


def levels(found: Forecast | None) -> dict[str, list[tuple[str, object]]]:
    assert found is not None
    return {
        lane.name: [("", lane.current), *((format_instant(one.at)[8:-4], one.value) for one in lane.changes)]
        for lane in found.lanes
    }


def behavior(text: str) -> str:
    return f"{WEB}  behavior: {text}\n"


@pytest.mark.parametrize(
    ("autoscaler", "replicas"),
    [
        pytest.param(WEB, [("", 2), ("27T05:00", 3), ("27T21:05", 2)], id="the-default-window-for-scaling-down"),
        pytest.param(
            behavior("{scaleDown: {stabilizationWindowSeconds: 0}}"),
            [("", 2), ("27T05:00", 3), ("27T21:00", 2)],
            id="no-window",
        ),
        pytest.param(
            behavior("{scaleUp: {stabilizationWindowSeconds: 120}}"),
            [("", 2), ("27T05:02", 3), ("27T21:05", 2)],
            id="a-window-for-scaling-up",
        ),
        pytest.param(
            behavior("{scaleUp: {policies: [{type: Count, value: 4, periodSeconds: 600}]}}").replace("s: 3", "s: 12"),
            [("", 2), ("27T05:00", 6), ("27T05:10", 10), ("27T05:20", 12), ("27T21:05", 2)],
            id="a-policy",
        ),
        pytest.param(behavior("{scaleDown: {selectPolicy: Disabled}}"), [("", 2), ("27T05:00", 3)], id="never-down"),
        pytest.param(
            behavior('{scaleUp: {tolerance: "9"}}').replace("s: 3", "s: 9"), [("", 2)], id="within-the-tolerance"
        ),
        pytest.param(WEB.replace("minReplicas: 1", "minReplicas: 3"), [("", 3)], id="both-bounds"),
        pytest.param(POD_AUTOSCALER, [("", 2), ("27T05:00", 3), ("27T21:05", 2)], id="pod-autoscaler"),
    ],
)
def test_the_forecast_is_cut_to_the_bounds(autoscaler: str, replicas: list[tuple[str, object]]) -> None:
    assert levels(forecast(SALE, autoscaler, always=True))["replicas"] == replicas


def test_the_schedule_is_beside_the_replicas_on_the_same_scale() -> None:
    found = forecast(SALE, WEB)
    assert levels(found)["schedule"] == [("", 2), ("27T05:00", 20), ("27T21:00", 2)]
    assert found is not None
    assert [(lane.name, lane.most) for lane in found.lanes] == [("replicas", 20), ("schedule", 20)]
    assert found.zones == ("Europe/Berlin",)
    replicas = found.lanes[0]
    assert replicas.because == "no behaviour is active: the default of 2 (01:00 Europe/Berlin)"
    assert [change.because for change in replicas.changes] == [
        "behaviour `black-friday` starts (06:00 Europe/Berlin); 20 are asked for, cut to maxReplicas 3",
        "window of behaviour `black-friday` over (22:00 Europe/Berlin): back to the default of 2;"
        " after the stabilization window of 300 s",
    ]


def test_every_step_that_policies_allow_has_its_reason() -> None:
    policy = "{scaleUp: {policies: [{type: Count, value: 4, periodSeconds: 600}]}}"
    found = forecast(SALE, behavior(policy).replace("s: 3", "s: 12"))
    assert found is not None
    start = "behaviour `black-friday` starts (06:00 Europe/Berlin)"
    assert [change.because for change in found.lanes[0].changes[:3]] == [
        f"{start}; the policies of scaleUp allow no more at once",
        f"{start}; the policies of scaleUp allow no more at once",
        f"{start}; once the policies of scaleUp allow it; 20 are asked for, cut to maxReplicas 12",
    ]


def test_the_next_change_may_be_beyond_the_forecast() -> None:
    found = forecast(SALE, WEB, start=NOW - 86400 * 30, days=1, always=True)
    assert found is not None
    (lane,) = found.lanes
    assert lane.next is not None
    assert (format_instant(lane.next.at), lane.next.value) == ("2026-11-27T05:00:00Z", 3)


def test_a_forecast_can_begin_in_the_middle_of_a_window() -> None:
    """The window for scaling down has begun before the forecast does."""
    found = forecast(SALE, WEB, start=parse_instant("2026-11-27T21:02:00Z"), days=1, always=True)
    assert levels(found)["replicas"] == [("", 3), ("27T21:05", 2)]
    assert found is not None
    assert found.lanes[0].because == (
        "no behaviour is active: the default of 2 (22:02 Europe/Berlin); limited by the stabilization window of 300 s"
    )


def test_bounds_that_are_not_reached_are_not_drawn() -> None:
    held = WEB.replace("maxReplicas: 3", "maxReplicas: 20")
    assert forecast(SALE, held) is None
    assert list(levels(forecast(SALE, held, always=True))) == ["replicas"]


def test_an_autoscaler_with_other_metrics_has_no_forecast() -> None:
    other = WEB + "  - prometheus: {query: up, target: {type: AverageValue, value: 1}}\n"
    assert forecast(SALE, other, always=True) is None


def test_an_endless_schedule_within_equal_bounds_never_changes() -> None:
    daily = SALE.replace(
        "from: 2026-11-27T05:00:00Z, until: 2026-11-27T21:00:00Z", "start: {hours: 6}, end: {hours: 9}"
    )
    found = forecast(daily, WEB.replace("minReplicas: 1", "minReplicas: 3"))
    assert found is not None
    assert replace(found.lanes[0], most=None, because="").next is None
    assert found.lanes[1].next is not None
