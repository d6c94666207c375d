"""Restarts of the controller: scaling history that is restored, and history that is not assumed."""

from __future__ import annotations

import pytest
from tests.controllers.horizontal_autoscaler.harness import (
    LOAD,
    SCHEDULED,
    AutoscalerHarness,
    autoscaler,
    deployment,
    metric,
    scaled,
)

from springtide.cluster.resources import Object
from springtide.controllers.horizontal_autoscaler.scaling_history import recent_changes_field, restore_changes
from springtide.scaling import ReplicaChanges
from springtide.simulator.scenario import crash, delete, edit

HASTY = {"stabilizationWindowSeconds": 0}
FINALIZED = {"metadata": {"finalizers": ["example.com/hold"]}}


def _policy(value: int, seconds: int) -> Object:
    return {"policies": [{"type": "Count", "value": value, "periodSeconds": seconds}]}


@pytest.mark.parametrize(
    ("behavior", "replicas", "wanted", "expected"),
    [
        pytest.param({"scaleUp": _policy(2, 600)}, 2, 20, [4, 6], id="up"),
        pytest.param({"scaleDown": {**HASTY, **_policy(1, 600)}}, 10, 1, [9, 8], id="down"),
    ],
)
def test_policies_apply_across_restarts(behavior: Object, replicas: int, wanted: int, expected: list[int]) -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, wanted)
    outcome = (
        harness.scenario(deployment(replicas), autoscaler(metric(), behavior=behavior))
        .at("60s", crash("springtide-0", downtime=5))
        .at("120s", crash("springtide-0", downtime=5))
        .run("700s")
    )

    assert [size for _, size in scaled(outcome)] == expected
    first, second = (at for at, _ in scaled(outcome))
    assert second - first >= 600


def test_status_keeps_changes_within_the_policy_period() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 4)
    scenario = harness.scenario(deployment(2), autoscaler(metric(), behavior={"scaleUp": _policy(5, 300)}))

    status = scenario.run("100s").object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    assert [entry["change"] for entry in status["recentChanges"]] == [2]
    status = scenario.run("400s").object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    assert "recentChanges" not in status


def test_last_scale_time_is_kept_after_a_restart() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 4)
    scenario = harness.scenario(deployment(2), autoscaler(metric()))

    before = scenario.run("60s").object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    scenario = scenario.at("100s", crash("springtide-0", downtime=5)).at("200s", harness.metric_change(SCHEDULED, None))
    after = scenario.run("400s").object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    assert before["lastScaleTime"] == after["lastScaleTime"]


NOW = 1_780_272_000  # 2026-06-01T00:00:00Z


@pytest.mark.parametrize(
    ("status", "keep", "changes"),
    [
        pytest.param({}, 600, ReplicaChanges(), id="new object"),
        pytest.param({"desiredReplicas": 5}, 600, ReplicaChanges(), id="unchanged scale"),
        pytest.param(
            {"desiredReplicas": 3}, 600, ReplicaChanges((), ((NOW, 2),)), id="scaled up outside the controller"
        ),
        pytest.param(
            {"desiredReplicas": 9}, 600, ReplicaChanges((), ((NOW, -4),)), id="scaled down outside the controller"
        ),
        pytest.param({"desiredReplicas": 3}, 0, ReplicaChanges(), id="no policy"),
        pytest.param(
            {"desiredReplicas": 5, "recentChanges": [{"time": "2026-05-31T23:59:00Z", "change": -2}]},
            600,
            ReplicaChanges(((NOW - 60, -2),)),
            id="recorded changes",
        ),
        pytest.param(
            {"desiredReplicas": 5, "recentChanges": [{"time": "2026-06-01T00:00:00+99:99", "change": -2}]},
            600,
            ReplicaChanges(),
            id="changes with invalid times",
        ),
    ],
)
def test_changes_restored_from_the_status(status: Object, keep: int, changes: ReplicaChanges) -> None:
    """The present scale is five."""
    assert restore_changes(status, 5, NOW, keep=keep) == changes


def test_recorded_changes_are_bounded_and_keep_their_sum() -> None:
    many = ReplicaChanges(tuple((NOW - ago, 1) for ago in range(200, 0, -1)))
    entries = recent_changes_field(many, NOW, keep=150)

    assert entries is not None
    assert (len(entries), sum(entry["change"] for entry in entries)) == (50, 149)
    assert recent_changes_field(many, NOW, keep=0) is None


def test_uncertain_changes_stay_uncertain_after_another_restart() -> None:
    changes = ReplicaChanges(((NOW - 60, 2),), ((NOW, -7),))
    entries = recent_changes_field(changes, NOW, keep=600)

    assert restore_changes({"desiredReplicas": 5, "recentChanges": entries}, 5, NOW, keep=600) == changes


@pytest.mark.parametrize("crashes", [("100s",), ("100s", "130s")], ids=["one", "two"])
def test_scale_down_by_a_user_during_downtime_does_not_extend_a_policy(crashes: tuple[str, ...]) -> None:
    """Seven replicas are removed while no process runs; the policy still allows two in ten minutes after each start."""
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 10)
    scenario = harness.scenario(deployment(10), autoscaler(metric(), behavior={"scaleUp": _policy(2, 600)}))
    for at in crashes:
        scenario = scenario.at(at, crash("springtide-0", downtime=15))
    taken = edit("Deployment", "web", {"spec": {"replicas": 3}}, namespace="shop")

    outcome = scenario.at("110s", taken).run("400s")

    assert [size for _, size in scaled(outcome)] == [5]


def test_resuming_begins_a_new_stabilization_window() -> None:
    """Recommendations during the pause are not known."""
    harness = AutoscalerHarness()
    harness.set_metric(LOAD, 5)

    def paused(value: str | None) -> Object:
        return {"metadata": {"annotations": {"springtide.dev/paused": value}}}

    outcome = (
        harness.scenario(deployment(5), autoscaler(metric(LOAD)))
        .at("1000s", harness.metric_change(LOAD, 2))
        .at("1016s", edit("HorizontalAutoscaler", "web", paused("true"), namespace="shop"))
        .at("1100s", harness.metric_change(LOAD, 9))
        .at("1980s", harness.metric_change(LOAD, 2))
        .at("2000s", edit("HorizontalAutoscaler", "web", paused(None), namespace="shop"))
        .run("2400s")
    )

    assert [(at >= 2300, size) for at, size in scaled(outcome)] == [(True, 2)]


def test_autoscaler_being_deleted_does_not_scale() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 3)
    outcome = (
        harness.scenario(deployment(3), autoscaler(metric()))
        .at("10s", edit("HorizontalAutoscaler", "web", FINALIZED, namespace="shop"))
        .at("20s", delete("HorizontalAutoscaler", "web", namespace="shop"))
        .at("30s", harness.metric_change(SCHEDULED, 9))
        .run("300s")
    )

    assert outcome.object("HorizontalAutoscaler", "web", namespace="shop")["metadata"]["deletionTimestamp"]
    assert scaled(outcome) == []
