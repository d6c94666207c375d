"""The steps of a rollout."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.behaviours.objects import deployment, replica_set

from springtide.cluster.resources import Object
from springtide.simulator.behaviours import deployment_rollout as rollout
from springtide.simulator.behaviours.deployment_rollout import RolloutBounds, bounds


def sizes(steps: rollout.ReplicaSetSizes) -> dict[str, int]:
    return {item["metadata"]["name"]: size for item, size in steps}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        pytest.param(10, "25%", "25%", (13, 8), id="up and down"),
        pytest.param(3, "25%", "25%", (4, 3), id="nothing may be missing"),
        pytest.param(1, 0, "25%", (1, 0), id="both nothing"),
        pytest.param(4, 0, 0, (4, 3), id="both zero"),
        pytest.param(2, "200%", 5, (6, 0), id="more than there are"),
        pytest.param(0, "25%", "25%", (0, 0), id="none wanted"),
    ],
)
def test_bounds_are_read(replicas: int, surge: Any, unavailable: Any, expected: tuple[int, int]) -> None:
    found = bounds(deployment(replicas, surge, unavailable))
    assert (found.most, found.least) == expected


@pytest.mark.parametrize(
    ("limits", "new", "olds", "expected"),
    [
        pytest.param(RolloutBounds(10, 3, 2, False), replica_set("n", 0), [replica_set("o", 10)], {"n": 3}, id="begin"),
        pytest.param(
            RolloutBounds(10, 3, 2, False), replica_set("n", 3, 0), [replica_set("o", 10)], {"o": 8}, id="make room"
        ),
        pytest.param(
            RolloutBounds(10, 3, 2, False),
            replica_set("n", 5, 3),
            [replica_set("o", 8, 8)],
            {"o": 5},
            id="as many as came",
        ),
        pytest.param(RolloutBounds(10, 3, 2, False), replica_set("n", 5, 0), [replica_set("o", 8)], {}, id="wait"),
        pytest.param(
            RolloutBounds(10, 0, 2, False),
            replica_set("n", 0),
            [replica_set("o", 6, 6, age=200), replica_set("p", 4, 1)],
            {"p": 2},
            id="broken pods go first",
        ),
        pytest.param(
            RolloutBounds(4, 0, 4, False),
            replica_set("n", 0),
            [replica_set("o", 2, 2, age=200), replica_set("p", 2, 2)],
            {"o": 0, "p": 0},
            id="the oldest first",
        ),
        pytest.param(RolloutBounds(2, 1, 0, False), replica_set("n", 3), [], {"n": 2}, id="too many"),
        pytest.param(RolloutBounds(2, 1, 0, False), replica_set("n", 2), [replica_set("o", 0)], {}, id="done"),
        pytest.param(RolloutBounds(3, 0, 0, True), replica_set("n", 0), [replica_set("o", 3)], {"o": 0}, id="recreate"),
    ],
)
def test_a_step_goes_as_far_as_the_bounds_allow(
    limits: RolloutBounds, new: Object, olds: list[Object], expected: dict[str, int]
) -> None:
    assert sizes(rollout.next_sizes(limits, new, olds)) == expected


@pytest.mark.parametrize(
    ("limits", "new", "olds", "expected"),
    [
        pytest.param(RolloutBounds(5, 1, 0, False), replica_set("n", 2, desired=2), [], {"n": 5}, id="only one"),
        pytest.param(
            RolloutBounds(20, 5, 2, False),
            replica_set("n", 5, 0, desired=10, most=13),
            [replica_set("o", 8, desired=10, most=13)],
            {"o": 15, "n": 10},
            id="in proportion",
        ),
        pytest.param(
            RolloutBounds(5, 2, 1, False),
            replica_set("n", 5, 0, desired=10, most=13),
            [replica_set("o", 8, desired=10, most=13)],
            {"o": 4, "n": 3},
            id="down in proportion",
        ),
        pytest.param(
            RolloutBounds(0, 0, 0, False),
            replica_set("n", 5, 0, desired=10, most=13),
            [replica_set("o", 8, desired=10, most=13)],
            {"o": 0, "n": 0},
            id="to nothing",
        ),
        pytest.param(
            RolloutBounds(3, 1, 0, False),
            replica_set("n", 3, 3, desired=3),
            [replica_set("o", 2, desired=2)],
            {"o": 0},
            id="the new one has all",
        ),
    ],
)
def test_a_new_size_is_divided_between_replica_sets(
    limits: RolloutBounds, new: Object, olds: list[Object], expected: dict[str, int]
) -> None:
    assert rollout.was_scaled(limits, [new, *olds])
    assert sizes(rollout.scaled_sizes(limits, new, olds)) == expected


@given(
    wanted=st.integers(1, 12),
    surge=st.integers(0, 6),
    unavailable=st.integers(0, 6),
    old=st.integers(0, 12),
    order=st.lists(st.sampled_from(["step", "ready", "break"]), max_size=60),
)
def test_a_rollout_ends_within_its_bounds_in_any_order_of_events(
    wanted: int, surge: int, unavailable: int, old: int, order: list[str]
) -> None:
    limits = bounds(deployment(wanted, surge, unavailable))
    new, olds = replica_set("n", 0, 0), [replica_set("o", min(old, wanted), age=200), replica_set("p", 0)]
    olds[1]["spec"]["replicas"] = olds[1]["status"]["availableReplicas"] = wanted - min(old, wanted)
    broken = False

    def available() -> int:
        return sum(item["status"]["availableReplicas"] for item in (new, *olds))

    def do(what: str) -> None:
        nonlocal broken
        if what == "ready" and new["status"]["availableReplicas"] < new["spec"]["replicas"]:
            new["status"]["availableReplicas"] += 1
        elif what == "break" and not broken and olds[0]["status"]["availableReplicas"]:
            broken = True
            olds[0]["status"]["availableReplicas"] -= 1
        elif what == "step":
            for item, size in rollout.next_sizes(limits, new, olds):
                useful = item["status"]["availableReplicas"]
                unuseful = item["spec"]["replicas"] - useful
                # A ReplicaSet deletes pods that are not ready before others.
                item["status"]["availableReplicas"] = useful - max(0, item["spec"]["replicas"] - size - unuseful)
                item["spec"]["replicas"] = size

    for what in [*order, *["step", "ready", "step"] * 3 * wanted]:
        do(what)
        assert sum(item["spec"]["replicas"] for item in (new, *olds)) <= max(limits.most, wanted)
        assert available() >= limits.least - broken
    assert (new["spec"]["replicas"], new["status"]["availableReplicas"]) == (wanted, wanted)
    assert [item["spec"]["replicas"] for item in olds] == [0, 0]
