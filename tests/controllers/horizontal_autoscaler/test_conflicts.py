"""Two autoscalers of one target: both HorizontalAutoscalers report the conflict in a condition and an event."""

from __future__ import annotations

import pytest
from tests.controllers.horizontal_autoscaler.harness import (
    QUEUED,
    SCHEDULED,
    AutoscalerHarness,
    autoscaler,
    conditions,
    deployment,
    metric,
)

from springtide.cluster.resources import Object
from springtide.simulator.scenario import Outcome, create, delete

OTHER = autoscaler(metric(QUEUED), name="other")
ELSEWHERE = autoscaler(
    metric(QUEUED), name="other", scaleTargetRef={"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}
)
STOCK: Object = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "stock", "namespace": "shop"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 5,
    },
}


def _warned(outcome: Outcome, name: str = "web") -> list[tuple[str, int]]:
    return [
        (event["message"], event["count"])
        for event in outcome.objects("Event")
        if event["involvedObject"]["name"] == name and event["reason"] == "AlsoScaled"
    ]


@pytest.mark.parametrize(
    ("conflicting", "name"),
    [
        pytest.param(OTHER, "HorizontalAutoscaler `other`", id="another HorizontalAutoscaler"),
        pytest.param(STOCK, "HorizontalPodAutoscaler `stock`", id="a HorizontalPodAutoscaler"),
    ],
)
def test_conflict_is_reported_while_another_autoscaler_of_the_target_exists(conflicting: Object, name: str) -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 3)
    harness.set_metric(QUEUED, 3)
    scenario = harness.scenario(deployment(3), autoscaler(metric())).at("100s", create(conflicting))
    conflicted = scenario.run("105s")
    resolved = scenario.at("200s", delete(conflicting["kind"], conflicting["metadata"]["name"], namespace="shop")).run(
        "205s"
    )

    condition = conditions(conflicted)["Unopposed"]
    assert (condition["status"], condition["reason"]) == ("False", "AlsoScaled")
    assert condition["message"].startswith(
        f"Deployment web is also scaled by {name}, and each undoes what the other sets"
    )
    assert conditions(conflicted)["Ready"]["status"] == "True"
    assert _warned(conflicted) == [(condition["message"], 1)]
    assert conditions(resolved)["Unopposed"]["status"] == "True"


def test_both_conflicting_autoscalers_report_it_and_keep_their_interval() -> None:
    """The scale changes of one do not enqueue the other."""
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 3)
    harness.set_metric(QUEUED, 5)
    at_once = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    first, second = autoscaler(metric(), behavior=at_once), autoscaler(metric(QUEUED), name="other", behavior=at_once)
    outcome = harness.scenario(deployment(3), first, second).run("10m")

    assert [len(_warned(outcome, name)) for name in ("web", "other")] == [1, 1]
    changes = [
        entry
        for entry in outcome.trace
        if entry.actor == "springtide-horizontal-autoscaler" and entry.kind == "Deployment"
    ]
    assert len(changes) <= 2 * 600 // 15


def test_autoscalers_of_other_targets_do_not_conflict() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 3)
    outcome = harness.scenario(deployment(3), autoscaler(metric()), ELSEWHERE).run("2m")

    assert conditions(outcome)["Unopposed"]["status"] == "True"
    assert _warned(outcome) == []
