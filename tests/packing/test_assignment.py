"""Greedy packing, packing by the assignment relaxation, right-sizing and open nodes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from bench.packing.solvers import binpacking_estimate, distinct_shapes, mixed_families
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packing.problems import broken_rules, demand_of, nodes_for, optimum, problems, types_of

from springtide.packing import assignment
from springtide.packing.assignment import assign, lower_bound
from springtide.packing.greedy import greedy
from springtide.packing.patterns import patterns
from springtide.packing.problem import UNLIMITED, NodeGroup, NodeTypes, OpenNodes, Packing, PodDemand, undominated

Solver = Callable[..., Packing]
SOLVERS = [pytest.param(solver, id=solver.__name__) for solver in (greedy, assign, patterns)]


@pytest.mark.parametrize("solver", SOLVERS)
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_every_pod_is_placed_once_and_every_limit_is_kept(solver: Solver, data: st.DataObject) -> None:
    demand, types = data.draw(problems())
    open_nodes = data.draw(nodes_for(demand))
    at_least = data.draw(st.integers(0, 8))

    packing = solver(demand, types, open_nodes, at_least)

    assert broken_rules(demand, types, packing, open_nodes) == []
    usable = [int(types.available[t]) for t in undominated(demand, types)]
    assert packing.nodes >= min(at_least, sum(usable))


@pytest.mark.parametrize("solver", SOLVERS)
@given(problem=problems(limits=False))
@settings(max_examples=60, deadline=None)
def test_without_limits_only_pods_that_fit_nowhere_are_left(
    solver: Solver, problem: tuple[PodDemand, NodeTypes]
) -> None:
    demand, types = problem

    packing = solver(demand, types)

    fits = (demand.requests[:, None, :] <= types.capacity[None]) | (demand.requests[:, None, :] == 0)
    nowhere = ~(fits.all(axis=2) & demand.allowed).any(axis=1) & (demand.counts > 0)
    assert [shape for shape, _ in packing.left] == np.flatnonzero(nowhere).tolist()


@pytest.mark.parametrize("solver", SOLVERS)
@given(problem=problems(), seed=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_order_of_shapes_and_types_makes_no_difference(
    solver: Solver, problem: tuple[PodDemand, NodeTypes], seed: Random
) -> None:
    demand, types = problem
    shapes, order = list(range(len(demand.counts))), list(range(len(types.price)))
    seed.shuffle(shapes)
    seed.shuffle(order)
    shuffled = PodDemand(
        demand.requests[shapes], demand.counts[shapes], demand.per_node[shapes], demand.allowed[np.ix_(shapes, order)]
    )

    first = solver(demand, types)
    second = solver(shuffled, NodeTypes(types.capacity[order], types.price[order], types.available[order]))

    assert _described(first, demand, types) == _described(second, shuffled, types, order)


def _described(packing: Packing, demand: PodDemand, types: NodeTypes, order: list[int] | None = None) -> object:
    """A packing by the amounts of its shapes and types, so that equal ones are the same whatever their numbers."""

    def shape(s: int) -> tuple[object, ...]:
        return (*demand.requests[s].tolist(), int(demand.per_node[s]))

    numbers = order or list(range(len(types.price)))
    groups = [
        (
            types.capacity[numbers[group.type]].tolist(),
            int(types.price[numbers[group.type]]),
            group.nodes,
            sorted((*shape(s), n) for s, n in group.pods),
        )
        for group in packing.groups
    ]
    return packing.cost, packing.nodes, sorted(groups), sorted((*shape(s), n) for s, n in packing.left)


@given(problem=problems(most_pods=6, limits=False))
@settings(max_examples=150, deadline=None)
def test_tiny_problems_are_between_the_bound_and_twice_the_optimum(problem: tuple[PodDemand, NodeTypes]) -> None:
    demand, types = problem
    best = optimum(demand, types)
    packing = assign(demand, types)
    if best is None:
        assert packing.left
        return

    assert packing.left == ()
    assert lower_bound(demand, types) <= best <= packing.cost <= 2 * best


def test_binpacking_estimate_needs_exactly_2595_nodes_in_few_groups() -> None:
    demand, types = binpacking_estimate()

    packing = greedy(demand, types)

    assert (packing.nodes, packing.left) == (2_595, ())
    assert packing.groups == (NodeGroup(0, 100, ((0, 1), (1, 10))), NodeGroup(0, 2_495, ((0, 20),)))


@pytest.mark.parametrize("seed", range(3))
def test_mixed_families_are_packed_close_to_the_bound(seed: int) -> None:
    demand, types = mixed_families(seed)

    packing = assign(demand, types)

    assert broken_rules(demand, types, packing) == []
    assert packing.left == ()
    bound = lower_bound(demand, types)
    assert bound <= packing.cost <= bound * 1015 // 1000
    assert packing.cost < greedy(demand, types).cost


def test_many_distinct_shapes_are_packed_close_to_the_bound() -> None:
    demand, types = distinct_shapes()
    some = slice(0, 2_000)
    demand = PodDemand(demand.requests[some], demand.counts[some], demand.per_node[some], demand.allowed[some])

    packing = assign(demand, types)

    assert broken_rules(demand, types, packing) == []
    assert lower_bound(demand, types) <= packing.cost <= lower_bound(demand, types) * 105 // 100


@pytest.mark.parametrize(
    ("capacity", "price", "available", "expected"),
    [
        pytest.param([[4, 4], [8, 8]], [2, 1], None, [1], id="larger-and-cheaper"),
        pytest.param([[4, 4], [8, 8]], [1, 2], None, [0, 1], id="smaller-is-cheaper"),
        pytest.param([[4, 4], [4, 4]], [1, 1], None, [0], id="equal"),
        pytest.param([[4, 4], [8, 8]], [2, 1], [UNLIMITED, 3], [1, 0], id="few-of-the-better-one"),
        pytest.param([[4, 4], [1, 1]], [2, 1], None, [0], id="too-small-for-every-pod"),
        pytest.param([[4, 8], [8, 4]], [1, 1], None, [0, 1], id="neither-has-more"),
    ],
)
def test_dominated_types_are_left_out(
    capacity: list[list[int]], price: list[int], available: list[int] | None, expected: list[int]
) -> None:
    demand = demand_of([[2, 2]], [5], types=2)

    assert undominated(demand, types_of(capacity, price, available)).tolist() == expected


def test_a_larger_type_does_not_dominate_one_that_runs_other_shapes() -> None:
    demand = demand_of([[2], [2]], [1, 1], allowed=[[True, True], [True, False]], types=2)

    assert sorted(undominated(demand, types_of([[4], [8]], [2, 1])).tolist()) == [0, 1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_open_nodes_are_filled_before_nodes_are_added(solver: Solver) -> None:
    demand, types = demand_of([[3]], [5]), types_of([[6]], [1])
    open_nodes = OpenNodes(np.array([[7], [2], [3]]), np.array([[UNLIMITED] * 3]))

    packing = solver(demand, types, open_nodes)

    assert packing.open_pods == ((0, 0, 2), (2, 0, 1))
    assert packing.groups == (NodeGroup(0, 1, ((0, 2),)),)


@pytest.mark.parametrize("solver", SOLVERS)
def test_reserved_nodes_are_used_first_and_only_as_many_as_there_are(solver: Solver) -> None:
    demand = demand_of([[4]], [5], types=2)
    types = types_of([[4], [4]], [0, 7], [3, UNLIMITED])

    packing = solver(demand, types)

    assert [(group.type, group.nodes) for group in packing.groups] == [(0, 3), (1, 2)]
    assert packing.cost == 14


@pytest.mark.parametrize("solver", SOLVERS)
def test_nodes_get_the_cheapest_type_that_holds_them(solver: Solver) -> None:
    demand = demand_of([[8], [1]], [3, 1], types=2)
    types = types_of([[16], [4]], [10, 4])

    packing = solver(demand, types)

    assert packing.cost == 20


@pytest.mark.parametrize("solver", SOLVERS)
def test_caps_per_node_force_more_nodes(solver: Solver) -> None:
    demand = demand_of([[1]], [7], per_node=[2])

    assert solver(demand, types_of([[100]], [3])).nodes == 4


@pytest.mark.parametrize("solver", SOLVERS)
def test_at_least_so_many_nodes_are_added(solver: Solver) -> None:
    demand = demand_of([[1]], [4], types=2)

    packing = solver(demand, types_of([[1], [8]], [1, 3]), None, 6)

    assert packing.nodes == 6
    assert packing.cost == (8 if solver is greedy else 6)


def test_huge_counts_stay_groups() -> None:
    demand = demand_of([[300, 700], [500, 200]], [10**9, 10**9 + 7], types=2)
    types = types_of([[16_000, 32_000], [8_000, 32_000]], [10**9, 6 * 10**8])

    packing = assign(demand, types)

    assert broken_rules(demand, types, packing) == []
    assert len(packing.groups) < 5_000
    bound = lower_bound(demand, types)
    assert bound <= packing.cost <= bound * 103 // 100


def test_without_a_solution_of_the_relaxation_greedy_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    demand, types = mixed_families(0)
    monkeypatch.setattr(assignment, "relax", lambda *_: None)

    assert assign(demand, types) == greedy(demand, types)


@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_to_pack(solver: Solver) -> None:
    assert solver(demand_of([[1]], [0]), types_of([[4]], [1])).rank == (0, 0, 0)
    assert solver(demand_of([[5]], [2]), types_of([[4]], [1])).left == ((0, 2),)
    assert solver(demand_of([[5]], [2], types=0), _no_types()).left == ((0, 2),)


def _no_types() -> NodeTypes:
    return NodeTypes(np.zeros((0, 1), dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
