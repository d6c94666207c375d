"""What a controller that comes back still knows, and what it does not take for known."""

from __future__ import annotations

import pytest
from tests.controllers.horizontal_autoscaler.harness import (
    LOAD,
    SCHEDULED,
    Stage,
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
def test_policies_hold_over_restarts(behavior: Object, replicas: int, wanted: int, expected: list[int]) -> None:
    stage = Stage()
    stage.tell(SCHEDULED, wanted)
    outcome = (
        stage.scenario(deployment(replicas), autoscaler(metric(), behavior=behavior))
        .at("60s", crash("springtide-0", downtime=5))
        .at("120s", crash("springtide-0", downtime=5))
        .run("700s")
    )

    assert [size for _, size in scaled(outcome)] == expected
    first, second = (at for at, _ in scaled(outcome))
    assert second - first >= 600


def test_the_status_keeps_changes_as_long_as_a_policy_counts_them() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 4)
    story = stage.scenario(deployment(2), autoscaler(metric(), behavior={"scaleUp": _policy(5, 300)}))

    status = story.run("100s").object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    assert [entry["change"] for entry in status["recentChanges"]] == [2]
    status = story.run("400s").object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    assert "recentChanges" not in status


def test_when_it_was_scaled_last_is_known_after_a_restart() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 4)
    story = stage.scenario(deployment(2), autoscaler(metric()))

    before = story.run("60s").object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    story = story.at("100s", crash("springtide-0", downtime=5)).at("200s", stage.telling(SCHEDULED, None))
    after = story.run("400s").object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    assert before["lastScaleTime"] == after["lastScaleTime"]


NOW = 1_780_272_000  # 2026-06-01T00:00:00Z


@pytest.mark.parametrize(
    ("status", "keep", "changes"),
    [
        pytest.param({}, 600, ReplicaChanges(), id="a-new-one"),
        pytest.param({"desiredReplicas": 5}, 600, ReplicaChanges(), id="nothing-happened"),
        pytest.param({"desiredReplicas": 3}, 600, ReplicaChanges((), ((NOW, 2),)), id="somebody-added"),
        pytest.param({"desiredReplicas": 9}, 600, ReplicaChanges((), ((NOW, -4),)), id="somebody-took-away"),
        pytest.param({"desiredReplicas": 3}, 0, ReplicaChanges(), id="no-policy-asks"),
        pytest.param(
            {"desiredReplicas": 5, "recentChanges": [{"time": "2026-05-31T23:59:00Z", "change": -2}]},
            600,
            ReplicaChanges(((NOW - 60, -2),)),
            id="what-is-told",
        ),
        pytest.param(
            {"desiredReplicas": 5, "recentChanges": [{"time": "2026-06-01T00:00:00+99:99", "change": -2}]},
            600,
            ReplicaChanges(),
            id="of-no-certain-time",
        ),
    ],
)
def test_what_is_recalled(status: Object, keep: int, changes: ReplicaChanges) -> None:
    """The target is asked for five."""
    assert restore_changes(status, 5, NOW, keep=keep) == changes


def test_what_is_told_has_an_end_and_loses_nothing() -> None:
    many = ReplicaChanges(tuple((NOW - ago, 1) for ago in range(200, 0, -1)))
    entries = recent_changes_field(many, NOW, keep=150)

    assert entries is not None
    assert (len(entries), sum(entry["change"] for entry in entries)) == (50, 149)
    assert recent_changes_field(many, NOW, keep=0) is None


def test_what_was_doubtful_stays_so_over_the_next_restart() -> None:
    changes = ReplicaChanges(((NOW - 60, 2),), ((NOW, -7),))
    entries = recent_changes_field(changes, NOW, keep=600)

    assert restore_changes({"desiredReplicas": 5, "recentChanges": entries}, 5, NOW, keep=600) == changes


@pytest.mark.parametrize("crashes", [("100s",), ("100s", "130s")], ids=["one", "two"])
def test_what_hands_took_away_meanwhile_gives_a_policy_no_room(crashes: tuple[str, ...]) -> None:
    """Seven go while nobody is there, and two may come in ten minutes, however often the process starts."""
    stage = Stage()
    stage.tell(SCHEDULED, 10)
    story = stage.scenario(deployment(10), autoscaler(metric(), behavior={"scaleUp": _policy(2, 600)}))
    for at in crashes:
        story = story.at(at, crash("springtide-0", downtime=15))
    taken = edit("Deployment", "web", {"spec": {"replicas": 3}}, namespace="shop")

    outcome = story.at("110s", taken).run("400s")

    assert [size for _, size in scaled(outcome)] == [5]


def test_after_a_pause_a_whole_window_is_watched_again() -> None:
    """What was asked for meanwhile is not known."""
    stage = Stage()
    stage.tell(LOAD, 5)

    def paused(value: str | None) -> Object:
        return {"metadata": {"annotations": {"springtide.dev/paused": value}}}

    outcome = (
        stage.scenario(deployment(5), autoscaler(metric(LOAD)))
        .at("1000s", stage.telling(LOAD, 2))
        .at("1016s", edit("HorizontalAutoscaler", "web", paused("true"), namespace="shop"))
        .at("1100s", stage.telling(LOAD, 9))
        .at("1980s", stage.telling(LOAD, 2))
        .at("2000s", edit("HorizontalAutoscaler", "web", paused(None), namespace="shop"))
        .run("2400s")
    )

    assert [(at >= 2300, size) for at, size in scaled(outcome)] == [(True, 2)]


def test_what_is_being_deleted_scales_nothing() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 3)
    outcome = (
        stage.scenario(deployment(3), autoscaler(metric()))
        .at("10s", edit("HorizontalAutoscaler", "web", FINALIZED, namespace="shop"))
        .at("20s", delete("HorizontalAutoscaler", "web", namespace="shop"))
        .at("30s", stage.telling(SCHEDULED, 9))
        .run("300s")
    )

    assert outcome.object("HorizontalAutoscaler", "web", namespace="shop")["metadata"]["deletionTimestamp"]
    assert scaled(outcome) == []
