"""Disruption budgets: how many pods may go, by the formulas of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from springtide.apis.forecast import format_instant
from springtide.cluster.resources import Object
from springtide.simulator.behaviours.disruption_budgets import NoScale, decide, failed

NOW = 1_800_000_000


def _pod(name: str, *, owner: str = "rs", ready: bool = True, going: bool = False) -> Object:
    metadata: Object = {"name": name, "namespace": "d"}
    if owner:
        metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    if going:
        metadata["deletionTimestamp"] = format_instant(NOW)
    return {
        "metadata": metadata,
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def _pods(count: int, **more: Any) -> list[Object]:
    return [_pod(f"p{number}", **more) for number in range(count)]


def _budget(status: Object | None = None, **spec: Any) -> Object:
    return {"metadata": {"name": "b", "namespace": "d", "generation": 3}, "spec": spec, "status": status or {}}


@pytest.mark.parametrize(
    ("spec", "pods", "scale", "expected"),
    [
        pytest.param({"minAvailable": 2}, _pods(3), 3, (3, 2, 3, 1), id="count"),
        pytest.param({"minAvailable": 2}, _pods(2), 9, (2, 2, 2, 0), id="a-count-looks-at-pods-only"),
        pytest.param({"minAvailable": 5}, _pods(3), 3, (3, 5, 3, 0), id="never-negative"),
        pytest.param({"minAvailable": 0}, [], 0, (0, 0, 0, 0), id="no-pods"),
        pytest.param({"minAvailable": "50%"}, _pods(5), 5, (5, 3, 5, 2), id="share-rounded-up"),
        pytest.param({"minAvailable": "50%"}, _pods(3), 10, (10, 5, 3, 0), id="share-of-the-scale"),
        pytest.param({"minAvailable": "100%"}, _pods(3), 3, (3, 3, 3, 0), id="everything"),
        pytest.param({"maxUnavailable": 1}, _pods(4), 4, (4, 3, 4, 1), id="one-at-a-time"),
        pytest.param({"maxUnavailable": 9}, _pods(4), 4, (4, 0, 4, 4), id="all-at-once"),
        pytest.param({"maxUnavailable": "30%"}, _pods(7), 7, (7, 4, 7, 3), id="unavailable-share-rounded-up"),
        pytest.param({"maxUnavailable": "1%"}, _pods(2), 2, (2, 1, 2, 1), id="a-part-of-one-is-one"),
        pytest.param({"maxUnavailable": 1}, _pods(2, owner=""), 2, (0, 0, 2, 0), id="pods-without-owner"),
        pytest.param({"maxUnavailable": 1}, [*_pods(2), _pod("x", ready=False)], 3, (3, 2, 2, 0), id="one-unready"),
        pytest.param({"maxUnavailable": 1}, [*_pods(2), _pod("x", going=True)], 3, (3, 2, 2, 0), id="one-going"),
        pytest.param({}, _pods(2), 2, (0, 0, 2, 0), id="no-bound"),
    ],
)
def test_arithmetic(spec: Object, pods: Sequence[Object], scale: int, expected: tuple[int, int, int, int]) -> None:
    """Expected pods, desired healthy, current healthy and disruptions allowed."""
    status = decide(_budget(**spec), pods, {"rs": scale}, NOW).status

    names = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    assert tuple(status[name] for name in names) == expected


def test_every_controller_counts_once() -> None:
    pods = [_pod("a", owner="one"), _pod("b", owner="one"), _pod("c", owner="two")]

    assert decide(_budget(maxUnavailable=1), pods, {"one": 2, "two": 5}, NOW).status["expectedPods"] == 7


def test_pods_of_an_unknown_controller() -> None:
    with pytest.raises(NoScale, match='found no controllers for pod "p0"'):
        decide(_budget(maxUnavailable=1), _pods(1), {}, NOW)


def test_a_failed_computation_allows_no_disruption() -> None:
    status = failed(_budget({"disruptionsAllowed": 3, "observedGeneration": 2}), "why", NOW).status

    assert status["disruptionsAllowed"] == 0
    assert status["conditions"] == [
        {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "SyncFailed",
            "message": "why",
            "observedGeneration": 2,
            "lastTransitionTime": format_instant(NOW),
        }
    ]


@pytest.mark.parametrize(
    ("ago", "healthy", "listed", "overdue"),
    [
        pytest.param(0, 2, {"p0"}, (), id="just-evicted"),
        pytest.param(119, 2, {"p0"}, (), id="any-moment"),
        pytest.param(120, 3, {"p0"}, (), id="at-the-end-of-patience"),
        pytest.param(121, 3, set(), ("p0",), id="did-not-go"),
    ],
)
def test_evicted_pods_count_as_gone_for_two_minutes(
    ago: int, healthy: int, listed: set[str], overdue: tuple[str, ...]
) -> None:
    evicted = {"p0": format_instant(NOW - ago), "gone": format_instant(NOW)}
    standing = decide(_budget({"disruptedPods": evicted}, minAvailable=1), _pods(3), {}, NOW)
    kept = {name for name, at in (standing.status["disruptedPods"] or {}).items() if at is not None}

    assert (standing.status["currentHealthy"], kept, standing.overdue) == (healthy, listed, overdue)
    assert standing.again == (NOW - ago + 121 if listed else None)


def test_deleted_pods_are_removed_from_disrupted_pods() -> None:
    """A merge patch takes an entry away by null, and the whole map where nothing is left."""
    evicted = {"p0": format_instant(NOW), "gone": format_instant(NOW)}
    some = decide(_budget({"disruptedPods": evicted}, minAvailable=1), _pods(1), {}, NOW).status
    none = decide(_budget({"disruptedPods": evicted}, minAvailable=1), [], {}, NOW).status

    assert (some["disruptedPods"], none["disruptedPods"]) == ({"gone": None, "p0": format_instant(NOW)}, None)


@pytest.mark.parametrize(
    ("healthy", "status", "reason"),
    [pytest.param(2, "True", "SufficientPods", id="enough"), pytest.param(1, "False", "InsufficientPods", id="few")],
)
def test_the_condition(healthy: int, status: str, reason: str) -> None:
    (condition,) = decide(_budget(minAvailable=1), _pods(healthy), {}, NOW).status["conditions"]

    assert (condition["status"], condition["reason"], condition["observedGeneration"]) == (status, reason, 3)
