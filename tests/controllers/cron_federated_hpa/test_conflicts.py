"""Other autoscalers of the same target: a condition, one event, and what to do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.cron_federated_hpa.harness import (
    DEPLOYMENT,
    FEDERATED,
    HPA,
    KEDA,
    autoscaler,
    condition,
    cron,
    deployment,
    events,
    federated,
    rule,
    scaled_object,
)

from springtide.cluster.resources import Object
from springtide.controllers.conflicts import ScaleTargetKey, autoscalers_among
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.simulator.scenario import Scenario, create, delete

HOURLY = rule("r", "30 * * * *", 7)
BY_KEDA: dict[str, Any] = {
    "ownerReferences": [{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "shop", "uid": "1"}]
}


def cron_scenario(*objects: Object) -> Scenario:
    return Scenario("cron", start="2026-06-05T08:00:00Z").given(*objects).running(CronFederatedHPAController)


def horizontal_autoscaler(of: Object) -> Object:
    metric = {"prometheus": {"query": "karpenter_scheduled_capacity", "target": {"type": "AverageValue", "value": "1"}}}
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "HorizontalAutoscaler",
        "metadata": {"name": "shop"},
        "spec": {"scaleTargetRef": of, "minReplicas": 1, "maxReplicas": 10, "metrics": [metric]},
    }


BOUNDS = "and rules set its bounds with `targetMinReplicas` and `targetMaxReplicas`"


@pytest.mark.parametrize(
    ("others", "expected_text"),
    [
        pytest.param(
            [autoscaler()],
            "Deployment `shop` is also scaled by HorizontalPodAutoscaler `shop`, and each undoes what the other sets:"
            f" let `scaleTargetRef` name HorizontalPodAutoscaler `shop`, {BOUNDS}",
            id="HorizontalPodAutoscaler",
        ),
        pytest.param([federated()], f"let `scaleTargetRef` name FederatedHPA `shop`, {BOUNDS}", id="FederatedHPA"),
        pytest.param(
            [KEDA, scaled_object()],
            f"let `scaleTargetRef` name ScaledObject `shop`, {BOUNDS}",
            id="ScaledObject",
        ),
        pytest.param(
            [KEDA, scaled_object(), autoscaler(**BY_KEDA)],
            "is also scaled by ScaledObject `shop`, and each undoes",
            id="ScaledObject and its HorizontalPodAutoscaler",
        ),
        pytest.param(
            [horizontal_autoscaler(DEPLOYMENT)],
            "is also scaled by HorizontalAutoscaler `shop`, and each undoes what the other sets: remove one of the two",
            id="HorizontalAutoscaler",
        ),
        pytest.param(
            [autoscaler(), federated()],
            "is also scaled by HorizontalPodAutoscaler `shop` and by FederatedHPA `shop`",
            id="two autoscalers",
        ),
    ],
)
def test_condition_names_other_autoscalers_of_the_target(others: list[Object], expected_text: str) -> None:
    """The message says how to resolve the conflict."""
    outcome = cron_scenario(deployment(), *others, cron(HOURLY)).run("3h")

    conflict = condition(outcome, "Unopposed")
    assert (conflict["status"], conflict["reason"]) == ("False", "AlsoScaled")
    assert expected_text in conflict["message"]
    assert events(outcome, "AlsoScaled") == [conflict["message"]]
    assert [one["count"] for one in outcome.objects("Event") if one["reason"] == "AlsoScaled"] == [1]


@pytest.mark.parametrize(
    ("others", "made"),
    [
        pytest.param(
            [autoscaler(of={**DEPLOYMENT, "name": "other"})],
            cron(HOURLY),
            id="another target",
        ),
        pytest.param(
            [autoscaler(of={**DEPLOYMENT, "kind": "StatefulSet"})],
            cron(HOURLY),
            id="another kind",
        ),
        pytest.param(
            [{**autoscaler(), "metadata": {"name": "shop", "namespace": "elsewhere"}}],
            cron(HOURLY),
            id="another namespace",
        ),
        pytest.param(
            [federated()],
            cron(rule("r", "30 8 * * *", targetMinReplicas=2), target=FEDERATED),
            id="autoscaler is the target",
        ),
    ],
)
def test_autoscalers_of_other_targets_do_not_conflict(others: list[Object], made: Object) -> None:
    """Group, kind, namespace and name of the target must be equal."""
    outcome = cron_scenario(deployment(), *others, made).run("1h")

    assert condition(outcome, "Unopposed")["status"] == "True"


def test_hpa_created_by_keda_is_rejected_as_a_target() -> None:
    """KEDA reverts it to the bounds of its ScaledObject."""
    made = cron(rule("r", "30 8 * * *", targetMinReplicas=2), target=HPA)
    outcome = cron_scenario(autoscaler(**BY_KEDA), made).run("10m")

    conflict = condition(outcome, "Unopposed")
    assert conflict["status"] == "False"
    assert "is made by ScaledObject `shop`, which undoes what rules set" in conflict["message"]


def test_target_claimed_by_a_scaled_object_is_reported_at_once() -> None:
    """The condition does not wait for the next firing."""
    made = cron(rule("r", "30 9 * * *", targetMinReplicas=3), target=HPA)
    outcome = cron_scenario(made).at("5m", create(autoscaler(**BY_KEDA))).run("10m")

    assert condition(outcome, "Unopposed")["status"] == "False"


def test_conflict_condition_follows_the_autoscalers_at_once() -> None:
    """It changes when the other autoscaler is created or deleted, not at the next firing."""
    scenario = cron_scenario(deployment(), cron(rule("r", "0 0 1 1 *", 7))).at("10m", create(autoscaler()))

    assert condition(scenario.run("11m"), "Unopposed")["lastTransitionTime"] == "2026-06-05T08:10:00Z"
    gone = scenario.at("20m", delete("HorizontalPodAutoscaler", "shop")).run("21m")
    assert condition(gone, "Unopposed")["status"] == "True"
    assert condition(gone, "Unopposed")["lastTransitionTime"] == "2026-06-05T08:20:00Z"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(ScaleTargetKey("default", "autoscaling", HPA["kind"], "shop"), ["shop"], id="made-by-keda"),
        pytest.param(ScaleTargetKey("default", "autoscaling", HPA["kind"], "other"), [], id="another-autoscaler"),
        pytest.param(ScaleTargetKey("default", "apps", "Deployment", "shop"), ["shop"], id="the-target-of-it"),
        pytest.param(ScaleTargetKey("default", "apps", "StatefulSet", "shop"), [], id="another-kind"),
    ],
)
def test_autoscalers_of_a_target_are_found_among_objects(target: ScaleTargetKey, expected: list[str]) -> None:
    """An autoscaler that KEDA has made is itself scaled by KEDA."""
    items = [stored(autoscaler(**BY_KEDA))]

    assert [one.name for one in autoscalers_among(items, target)] == expected


def stored(item: Object) -> Object:
    return {**item, "metadata": {"namespace": "default", **item["metadata"]}}
