"""The controller in a simulated world: scale changes, their timing, and the status."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.horizontal_autoscaler.harness import (
    LOAD,
    QUEUED,
    SCHEDULED,
    AutoscalerHarness,
    autoscaler,
    conditions,
    deployment,
    metric,
    scaled,
)

from springtide.cluster.client import Client, Mode
from springtide.cluster.errors import Forbidden
from springtide.cluster.kinds import CUSTOM_RESOURCE_DEFINITIONS
from springtide.cluster.resources import Object
from springtide.controllers.conflicts import FEDERATED_HPAS, HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS
from springtide.controllers.grant.state import GRANTS
from springtide.controllers.horizontal_autoscaler import HORIZONTAL_AUTOSCALERS, HorizontalAutoscalerController
from springtide.simulator.scenario import crash, create, delete, edit, scale
from springtide.simulator.scenario.actions import Action
from springtide.simulator.world import World

MANAGER = "springtide-horizontal-autoscaler"
BUSY = 'karpenter_reserved_capacity_cpu_utilization{name="peak"}'
AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}
LOWEST = {"scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Min"}}


@pytest.mark.parametrize(
    ("written", "replicas", "values", "expected", "unmet"),
    [
        pytest.param(
            autoscaler(metric(BUSY, "Utilization", 60), least=3, most=23),
            5,
            [(0, BUSY, "0.6"), (60, BUSY, "0.85"), (61, BUSY, "0.6")],
            [(60, 8)],
            {},
            id="utilization above its target scales up",
        ),
        pytest.param(
            autoscaler(metric(BUSY, "Utilization", 60), least=3, most=23),
            5,
            [(0, BUSY, "0.6"), (60, BUSY, "0.85")],
            [(60, 8), (75, 12), (90, 17), (105, 23)],
            {"ScalingUnbounded": "TooManyReplicas"},
            id="proportional metric scales once a period",
        ),
        pytest.param(
            autoscaler(metric(BUSY, "Utilization", 60), most=100),
            5,
            [(0, BUSY, "0.6"), *((60 + turn, BUSY, f"0.85{turn}") for turn in range(9)), (70, BUSY, "0.6")],
            [(60, 8)],
            {},
            id="frequent value changes do not scale a proportional metric sooner",
        ),
        pytest.param(
            autoscaler(metric(QUEUED, value=4)), 1, [(0, QUEUED, 41)], [(0, 11)], {}, id="average value of a queue"
        ),
        pytest.param(
            autoscaler(metric()),
            3,
            [(0, SCHEDULED, 3), (100, SCHEDULED, 5), (160, SCHEDULED, 3)],
            [(100, 5)],
            {"AbleToScale": "ScaleDownStabilized"},
            id="scale down is held by the stabilization window",
        ),
        pytest.param(
            autoscaler(metric()),
            3,
            [(0, SCHEDULED, 3), (100, SCHEDULED, 5), (105, SCHEDULED, 8)],
            [(100, 5), (105, 8)],
            {},
            id="second scale up follows at once",
        ),
        pytest.param(
            autoscaler(metric(), least=1, most=10),
            5,
            [(0, SCHEDULED, 12)],
            [(0, 10)],
            {"ScalingUnbounded": "TooManyReplicas"},
            id="clamped to maxReplicas",
        ),
        pytest.param(
            autoscaler(metric(), metric(QUEUED), behavior=AT_ONCE),
            5,
            [(0, SCHEDULED, 3), (0, QUEUED, 4)],
            [(0, 4)],
            {},
            id="highest of two metrics",
        ),
        pytest.param(
            autoscaler(metric(), metric(QUEUED), behavior=LOWEST),
            5,
            [(0, SCHEDULED, 3), (0, QUEUED, 4)],
            [(0, 3)],
            {},
            id="lowest of two metrics",
        ),
        pytest.param(
            autoscaler(metric(), behavior={"scaleUp": {"selectPolicy": "Disabled"}}),
            5,
            [(0, SCHEDULED, 8)],
            [],
            {"ScalingUnbounded": "ScaleUpDisabled"},
            id="scale up disabled",
        ),
        pytest.param(autoscaler(), 5, [], [], {"Active": "NoMetrics"}, id="no metrics"),
        pytest.param(autoscaler(metric()), 0, [(0, SCHEDULED, 4)], [(0, 4)], {}, id="from zero replicas"),
        pytest.param(
            autoscaler(metric(), behavior=AT_ONCE), 4, [(0, SCHEDULED, 0)], [(0, 0)], {}, id="to zero replicas"
        ),
        pytest.param(
            autoscaler(
                metric(), behavior={"scaleUp": {"policies": [{"type": "Count", "value": 2, "periodSeconds": 40}]}}
            ),
            1,
            [(0, SCHEDULED, 6)],
            [(0, 3), (40, 5), (80, 6)],
            {},
            id="policy periods end on the second",
        ),
        pytest.param(
            autoscaler(metric(), behavior={"scaleDown": {"stabilizationWindowSeconds": 50}}),
            4,
            [(0, SCHEDULED, 4), (107, SCHEDULED, 3), (120, SCHEDULED, 1)],
            [(157, 3), (170, 1)],
            {},
            id="stabilization windows end on the second",
        ),
        pytest.param(
            autoscaler(metric(), behavior={"scaleDown": {"stabilizationWindowSeconds": 50}}),
            5,
            [(0, SCHEDULED, 5), *((100 + turn, SCHEDULED, 3 + turn % 2) for turn in range(0, 61, 3))],
            [(150, 4), (210, 3)],
            {},
            id="value changes do not shorten the stabilization window",
        ),
    ],
)
def test_scale_follows_the_metric_values(
    written: Object,
    replicas: int,
    values: list[tuple[int, str, Any]],
    expected: list[tuple[int, int]],
    unmet: dict[str, str],
) -> None:
    harness = AutoscalerHarness()
    scenario = harness.scenario(deployment(replicas), written)
    for at, query, value in values:
        if at:
            scenario = scenario.at(f"{at}s", harness.metric_change(query, value))
        else:
            harness.set_metric(query, value)
    outcome = scenario.run("300s")

    assert scaled(outcome) == expected
    reported = {kind: one["reason"] for kind, one in conditions(outcome).items() if one["status"] == "False"}
    assert {kind: reason for kind, reason in reported.items() if kind != "Ready"} == unmet
    assert ("Ready" in reported) is bool(unmet)


def test_status_has_all_fields() -> None:
    """Metrics, replicas, times and conditions; the Deployment has its pods."""
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    outcome = harness.scenario(deployment(3), autoscaler(metric(), least=1, most=10)).run("60s")

    status = outcome.object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    expected_text = f"`{SCHEDULED}` is 5, at 1 for each replica: 5 replicas"
    true = {"status": "True", "lastTransitionTime": "2026-06-01T00:00:00Z"}
    able, bounds = "what the metrics ask for can be done now", "what is asked for lies between minReplicas 1 and"
    assert status == {
        "currentReplicas": 5,
        "desiredReplicas": 5,
        "lastScaleTime": "2026-06-01T00:00:00Z",
        "currentMetrics": [{"prometheus": {"query": SCHEDULED, "current": {"value": "5", "averageValue": "1"}}}],
        "conditions": [
            {
                "type": "Ready",
                "reason": "Ready",
                "message": f"{expected_text}; {able}; {bounds} maxReplicas 10",
                **true,
            },
            {"type": "Active", "reason": "MetricsRead", "message": expected_text, **true},
            {"type": "AbleToScale", "reason": "ReadyForNewScale", "message": able, **true},
            {
                "type": "ScalingUnbounded",
                "reason": "WithinBounds",
                "message": f"{bounds} maxReplicas 10",
                **true,
            },
            {
                "type": "Unopposed",
                "reason": "NoOtherAutoscaler",
                "message": "no other autoscaler is known to scale Deployment web",
                **true,
            },
        ],
    }
    (event,) = [one for one in outcome.objects("Event") if one["involvedObject"]["kind"] == "HorizontalAutoscaler"]
    assert (event["type"], event["reason"]) == ("Normal", "SuccessfulRescale")
    assert event["message"] == f"scaled Deployment web from 3 to 5: {expected_text}"
    assert sum(pod["metadata"]["namespace"] == "shop" for pod in outcome.objects("Pod")) == 5


def test_unchanged_metrics_cause_no_writes() -> None:
    """Reconciles every fifteen seconds for six hours write nothing."""
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 3)
    harness.set_metric(LOAD, "1/3")
    outcome = harness.scenario(deployment(3), autoscaler(metric(), metric(LOAD))).run("6h")

    writes = [entry.at for entry in outcome.trace if entry.actor == MANAGER]
    # The first status is written before the pods exist, the second one after.
    assert 1 <= len(writes) <= 2
    assert all(at < outcome.world.clock.start + 60 for at in writes)


def test_server_metrics_are_polled_every_period() -> None:
    """The server does not notify about changes."""
    harness = AutoscalerHarness()
    harness.set_metric(LOAD, 3)
    outcome = (
        harness.scenario(deployment(3), autoscaler(metric(LOAD))).at("20s", harness.metric_change(LOAD, 7)).run("60s")
    )

    assert scaled(outcome) == [(30, 7)]


def test_scale_set_by_another_client_is_reverted() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    outcome = (
        harness.scenario(deployment(5), autoscaler(metric()))
        .at("100s", scale("Deployment", "web", 2, namespace="shop"))
        .at("1000s", scale("Deployment", "web", 9, namespace="shop"))
        .run("1200s")
    )

    # The recommendation was five for the whole window, so nothing is held back. A change of an own series enqueues the
    # autoscaler, so the target itself is polled only once a minute.
    assert scaled(outcome) == [(120, 5), (1035, 5)]


def test_restart_begins_a_new_stabilization_window() -> None:
    """Neither the window of the former process nor `lastScaleTime` counts."""
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    scenario = (
        harness.scenario(deployment(3), autoscaler(metric()))
        .at("1000s", harness.metric_change(SCHEDULED, 3))
        .at("1200s", crash("springtide-0", downtime=10))
    )
    held = scenario.run("1400s")
    harness.set_metric(SCHEDULED, 5)
    done = scenario.run("1600s")

    able = conditions(held)["AbleToScale"]
    assert (able["status"], able["reason"]) == ("False", "ScaleDownStabilized")
    assert able["message"] == (
        "fewer than 5 not before 2026-06-01T00:25:10Z: the metrics have not been watched for 300 s yet"
    )
    assert scaled(done) == [(0, 5), (1510, 3)]


def test_missing_metric_does_not_scale_down() -> None:
    """A condition and an event say why; when the metric is back, a new stabilization window begins."""
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    scenario = (
        harness.scenario(deployment(5), autoscaler(metric()))
        .at("400s", harness.metric_change(SCHEDULED, None))
        .at("900s", harness.metric_change(SCHEDULED, 2))
    )
    blind = scenario.run("901s")
    harness.set_metric(SCHEDULED, 5)
    done = scenario.run("1300s")

    assert scaled(blind) == []
    assert scaled(done) == [(1200, 2)]
    (event,) = [one for one in done.objects("Event") if one["reason"] == "NoSample"]
    assert (event["type"], event["message"]) == (
        "Warning",
        f"`{SCHEDULED}` cannot be read: there is no series peak; nothing is scaled down meanwhile",
    )


@pytest.mark.parametrize(
    ("reference", "reason", "expected_text"),
    [
        pytest.param(
            {"apiVersion": "shop.example.com/v1", "kind": "Till"}, "UnknownKind", "no kind Till", id="unknown kind"
        ),
        pytest.param(
            {"apiVersion": "autoscaling.karpenter.sh/v1alpha1", "kind": "MetricsProducer"},
            "NotScalable",
            "no scale",
            id="no scale subresource",
        ),
        pytest.param({"apiVersion": "apps/v1", "kind": "StatefulSet"}, "NotFound", "not found", id="missing target"),
        pytest.param(
            {"apiVersion": "karpenter.sh/v1", "kind": "NodePool"},
            "NotScalable",
            "no namespace",
            id="cluster-scoped target",
        ),
    ],
)
def test_target_that_cannot_be_scaled_is_reported(reference: Object, reason: str, expected_text: str) -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    outcome = harness.scenario(autoscaler(metric(), scaleTargetRef={**reference, "name": "web"})).run("60s")

    reported = conditions(outcome)
    assert (reported["AbleToScale"]["status"], reported["AbleToScale"]["reason"]) == ("False", reason)
    assert expected_text in reported["AbleToScale"]["message"]
    assert (reported["Active"]["status"], reported["Ready"]["reason"]) == ("Unknown", reason)
    status = outcome.object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    assert set(status) == {"conditions"}
    assert [one["type"] for one in outcome.objects("Event") if one["reason"] == reason] == ["Warning"]


@pytest.mark.parametrize(("method", "reason"), [("get", "Forbidden"), ("scale", "FailedRescale")])
def test_missing_permission_is_reported(method: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No scale change is claimed, also when another client makes the same change."""

    async def refuse(*positional: object, **named: object) -> None:
        raise Forbidden('User "springtide" cannot touch resource "deployments/scale"')

    monkeypatch.setattr(Client, method, refuse)
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    scenario = harness.scenario(deployment(3), autoscaler(metric()))
    outcome = scenario.run("60s")
    helped = scenario.at("20s", scale("Deployment", "web", 5, namespace="shop")).run("60s")

    able = conditions(outcome)["AbleToScale"]
    assert (able["status"], able["reason"]) == ("False", reason)
    assert not [one for one in helped.objects("Event") if one["reason"] == "SuccessfulRescale"]
    assert able["message"].endswith(
        'cannot touch resource "deployments/scale": rights on */scale are given by group in the chart, list apps there'
    )
    assert [one["reason"] for one in outcome.objects("Event") if one["source"]["component"] == MANAGER] == [reason]


def test_target_created_later_is_scaled() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    outcome = harness.scenario(autoscaler(metric())).at("20s", create(deployment(1))).run("60s")

    assert scaled(outcome) == [(30, 5)]
    assert conditions(outcome)["Ready"]["status"] == "True"


def test_any_kind_with_a_scale_subresource_is_scaled() -> None:
    """For example a ScalableNodeGroup."""
    group = {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "ScalableNodeGroup",
        "metadata": {"name": "workers", "namespace": "shop"},
        "spec": {"type": "Simulated", "id": "workers", "replicas": 1},
    }
    reference = {key: group[key] for key in ("apiVersion", "kind")} | {"name": "workers"}
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    outcome = harness.scenario(group, autoscaler(metric(), scaleTargetRef=reference)).run("60s")

    assert scaled(outcome, "workers", "ScalableNodeGroup") == [(0, 5)]


def test_invalid_object_does_not_scale_until_it_is_corrected() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    scenario = harness.scenario(deployment(1), autoscaler(metric(value=0))).at(
        "100s", edit("HorizontalAutoscaler", "web", {"spec": {"metrics": [metric()]}}, namespace="shop")
    )
    wrong, corrected = scenario.run("100s"), scenario.run("200s")

    active = conditions(wrong)["Active"]
    assert (active["status"], active["reason"]) == ("False", "Invalid")
    assert "spec.metrics[0].prometheus.target.value: a target must be positive" in active["message"]
    assert scaled(corrected) == [(100, 5)]


def test_server_is_not_queried_without_a_grant() -> None:
    """A new Grant takes effect at once."""
    harness = AutoscalerHarness(everything=False)
    harness.set_metric(LOAD, 5)
    grant = {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Grant",
        "metadata": {"name": "shop"},
        "spec": {"namespaces": ["shop"], "urls": ["https://prom.example.com/"]},
    }
    scenario = harness.scenario(deployment(1), autoscaler(metric(LOAD))).at("100s", create(grant))
    refused, granted = scenario.run("100s"), scenario.run("200s")

    active = conditions(refused)["Active"]
    assert (active["status"], active["reason"]) == ("False", "NotGranted")
    assert "https://prom.example.com/" in active["message"]
    assert scaled(granted) == [(100, 5)]


def test_deleted_autoscaler_leaves_the_scale_unchanged() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    outcome = (
        harness.scenario(deployment(5), autoscaler(metric()))
        .at("50s", delete("HorizontalAutoscaler", "web", namespace="shop"))
        .at("60s", harness.metric_change(SCHEDULED, 9))
        .run("200s")
    )

    assert scaled(outcome) == []


def test_recreated_autoscaler_has_no_scaling_history() -> None:
    """An object of the same name with another UID begins a new stabilization window."""
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    outcome = (
        harness.scenario(deployment(5), autoscaler(metric()))
        .at("900s", harness.metric_change(SCHEDULED, 3))
        .at("1000s", _replace(autoscaler(metric())))
        .run("1400s")
    )

    assert scaled(outcome) == [(1300, 3)]


def _replace(written: Object) -> Action:
    """Delete an autoscaler and create it again, before the controller can observe the deletion."""

    async def act(world: World) -> None:
        await delete("HorizontalAutoscaler", "web", namespace="shop")(world)
        await create(written)(world)

    return act


def test_changed_target_has_no_scaling_history() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    reference = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}}
    outcome = (
        harness.scenario(deployment(5), deployment(5, "api"), autoscaler(metric()))
        .at("900s", harness.metric_change(SCHEDULED, 3))
        .at("1000s", edit("HorizontalAutoscaler", "web", {"spec": reference}, namespace="shop"))
        .run("1400s")
    )

    assert (scaled(outcome), scaled(outcome, "api")) == ([], [(1300, 3)])


def test_unrelated_series_enqueue_no_autoscaler() -> None:
    """Neither series of other namespaces nor series that the query does not read."""
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)

    async def others(world: World) -> None:
        harness.set_metric(SCHEDULED, 9, namespace="elsewhere")
        harness.set_metric(QUEUED, 9)

    undisturbed = harness.scenario(deployment(5), autoscaler(metric())).run("60s")
    disturbed = harness.scenario(deployment(5), autoscaler(metric())).at("20s", others).run("60s")

    assert undisturbed.trace_bytes() == disturbed.trace_bytes()


def test_observe_mode_does_not_scale_and_reports_no_scaling(caplog: pytest.LogCaptureFixture) -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    caplog.set_level("INFO", logger="springtide")
    outcome = harness.scenario(deployment(3), autoscaler(metric()), mode=Mode.OBSERVE).run("120s")

    assert outcome.object("Deployment", "web", namespace="shop")["spec"]["replicas"] == 3
    assert not [one for one in outcome.objects("Event") if one["reason"] == "SuccessfulRescale"]
    assert any(one.startswith("would scale Deployment shop/web from 3 to 5: ") for one in caplog.messages)


def test_controller_requests_only_permissions_that_it_uses() -> None:
    """Permissions on the scale of other groups are granted by the installation."""
    needed = {
        (permission.resource, verb, permission.subresource)
        for permission in HorizontalAutoscalerController.permissions
        for verb in permission.verbs
    }

    conflicting = (HORIZONTAL_POD_AUTOSCALERS, FEDERATED_HPAS, SCALED_OBJECTS)
    watched = (HORIZONTAL_AUTOSCALERS, CUSTOM_RESOURCE_DEFINITIONS, GRANTS, *conflicting)
    assert needed == {(resource, verb, "") for resource in watched for verb in ("get", "list", "watch")} | {
        (HORIZONTAL_AUTOSCALERS, "patch", "status")
    }
