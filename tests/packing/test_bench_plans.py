"""The benchmark of plans runs: small sizes of each of its measurements."""

from __future__ import annotations

import asyncio
import dataclasses

import msgspec
import pytest
from bench.packing import plans
from bench.packing.solvers import binpacking_estimate, distinct_shapes, large_pods, mixed_families

from springtide.apis.core.pod_record import PodView, pod_record


def small(problem: plans.Problem, shapes: int, pods: int) -> plans.Problem:
    """Return the first shapes of a problem, with few pods each."""
    demand, types = problem
    parts = {field.name: getattr(demand, field.name)[:shapes] for field in dataclasses.fields(demand)}
    return dataclasses.replace(demand, **{**parts, "counts": parts["counts"].clip(max=pods)}), types


@pytest.mark.parametrize("preferences", [False, True])
def test_karpenters_pods(preferences: bool) -> None:
    row = plans.karpenter_mix(20, 1000.0, 1000, preferences=preferences)

    assert row.nodes
    assert [kept for _, kept in row.goals] == [True] * 3


def test_binpacking_from_a_snapshot_and_from_json() -> None:
    # 20 pods of 50m or 10 of 95m fill a node.
    rows = list(plans.binpacking(small(binpacking_estimate(), 2, 20), 3))

    assert [row.nodes for row in rows] == [3, 3]
    assert [dict(row.goals)["3 nodes"] for row in rows] == [True, True]


def test_listed_pods_are_those_of_the_records() -> None:
    pods = plans.records_of(small(large_pods(), 3, 2)[0])
    views = msgspec.json.decode(plans.pod_list(pods))["items"]

    listed = [pod_record(msgspec.convert(view, PodView)) for view in views]

    assert [record.requests for record in listed] == [record.requests for _, record in pods]
    assert [record.labels for record in listed] == [record.labels for _, record in pods]


def test_pods_without_a_controller() -> None:
    assert plans.run_once(120).nodes == 3


def test_existing_nodes() -> None:
    names = [row.name.partition(" ")[0] for row in plans.existing_nodes(plans.Existing(300, 3, 5), rounds=2)]

    assert names == ["(d)", "(d)", "(f)", "(f)"]


def test_plans_that_follow_each_other() -> None:
    come, go = plans.drift(plans.Existing(300, 3, 5), rounds=2)

    assert come.nodes >= go.nodes > 0


def test_solver_problems() -> None:
    many = small(distinct_shapes(), 20, 1)
    for row in (
        plans.distinct(many, plans.types_of(many[1]), "few"),
        plans.families(small(mixed_families(0), 10, 5), "few"),
        plans.large(small(large_pods(), 3, 5), "few"),
    ):
        assert row.nodes
        assert 0 < row.bound <= row.cost
        assert "all placed" not in str(row)


def test_lag() -> None:
    row = asyncio.run(plans.lag("few", plans.mix_planner(20), times=1))

    assert row.seconds > 0


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            plans.Row("a", 0.001, 2, 3.0, 2.0, (("< 5 ms", True),)),
            ["1.0 ms", "2 nodes", "50.00 % above", "kept: < 5 ms"],
        ),
        (plans.Row("a", 0.001, 2, 3.0), ["no bound"]),
        (plans.Row("a", 0.01, goals=(("< 5 ms", False),)), ["10.0 ms", "MISSED: < 5 ms"]),
    ],
    ids=["kept", "no bound", "missed"],
)
def test_a_row_says_what_is_reached(row: plans.Row, expected: list[str]) -> None:
    assert [part for part in expected if part not in str(row)] == []
