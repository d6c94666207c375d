"""Packing by patterns, its knapsack, certified bounds, and the best of all solvers."""

from __future__ import annotations

import numpy as np
import pytest
from bench.packing.solvers import large_pods, mixed_families
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packing.problems import broken_rules, demand_of, most_worth, nodes_for, optimum, problems, types_of

from springtide.packing import patterns as module
from springtide.packing.assignment import lower_bound
from springtide.packing.bounds import Float64, Relaxation, certified_bound
from springtide.packing.greedy import greedy
from springtide.packing.patterns import FAST, THOROUGH, best_of, patterns
from springtide.packing.problem import UNLIMITED, NodeTypes, PodDemand


@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_the_best_is_never_worse_than_greedy_and_never_below_the_bound(data: st.DataObject) -> None:
    demand, types = data.draw(problems())
    open_nodes = data.draw(nodes_for(demand))
    at_least = data.draw(st.integers(0, 6))

    packing, bound = best_of(demand, types, open_nodes, at_least)

    assert broken_rules(demand, types, packing, open_nodes) == []
    assert packing.rank <= greedy(demand, types, open_nodes, at_least).rank
    assert bound <= packing.cost


@given(problem=problems(most_pods=6, limits=False))
@settings(max_examples=150, deadline=None)
def test_tiny_problems_are_between_the_bound_and_little_above_the_optimum(problem: tuple[PodDemand, NodeTypes]) -> None:
    demand, types = problem
    best = optimum(demand, types)
    packing, bound = best_of(demand, types)
    if best is None:
        assert packing.left
        return

    assert packing.left == ()
    assert bound <= best <= packing.cost <= best * 3 // 2
    assert lower_bound(demand, types) <= best


@given(problem=problems(most_pods=6, limits=False), data=st.data())
@settings(max_examples=150, deadline=None)
def test_the_bound_holds_for_any_prices(problem: tuple[PodDemand, NodeTypes], data: st.DataObject) -> None:
    demand, types = problem
    best = optimum(demand, types)
    amount = st.floats(0, 1e12) | st.sampled_from([0.0, 1e300, float("inf"), float("nan")])

    def drawn(*shape: int) -> Float64:
        return np.array([data.draw(amount) for _ in range(int(np.prod(shape)))]).reshape(shape)

    shapes, resources = demand.requests.shape
    number = len(types.price)
    prices = Relaxation(
        pods=np.zeros((shapes, number)),
        nodes=np.zeros(number),
        share_price=drawn(number, resources),
        cap_price=drawn(shapes, number),
        scarcity=drawn(number),
        extra_node=drawn(1),
    )
    if best is not None:
        assert certified_bound(demand, types, prices) <= best


@given(
    items=st.lists(
        st.tuples(st.integers(1, 30), st.integers(0, 5), st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=4
    ),
    rows=st.integers(1, 9),
    columns=st.integers(1, 9),
)
@settings(max_examples=300, deadline=None)
def test_the_knapsack_is_worth_as_much_as_the_best_of_all_contents(
    items: list[tuple[int, int, int, int]], rows: int, columns: int
) -> None:
    items = [item for item in items if item[1] or item[2]] or [(1, 1, 0, 1)]
    values, weights = [item[0] for item in items], [(item[1], item[2]) for item in items]
    limits = [item[3] if item[3] < 4 else 20 for item in items]
    grid = module._Grid(
        [0], np.arange(len(items)), np.array(weights), np.array(weights), np.array([[rows, columns]], dtype=np.int64)
    )

    table, stages = module._knapsack(grid, np.array(values), np.array(limits), grid.weights, keep=True)
    contents = module._contents(table, stages, (rows, columns))

    within = [
        min(n, *(c // w for c, w in zip((rows, columns), weight, strict=True) if w))
        for n, weight in zip(limits, weights, strict=True)
    ]
    assert table[rows, columns] == most_worth(values, weights, within, (rows, columns))
    assert sum(values[i] * n for i, n in contents.items()) == table[rows, columns]
    assert all(n <= limits[i] for i, n in contents.items())
    for r, most in enumerate((rows, columns)):
        assert sum(weights[i][r] * n for i, n in contents.items()) <= most


@pytest.mark.parametrize(
    ("grid", "permille"), [pytest.param(FAST, 25, id="fast"), pytest.param(THOROUGH, 7, id="thorough")]
)
def test_large_pods_on_small_nodes_are_packed_close_to_the_pattern_bound(grid: int, permille: int) -> None:
    demand, types = large_pods()

    packing, bound = best_of(demand, types, grid=grid)

    assert (packing.method, packing.left) == ("patterns", ())
    assert broken_rules(demand, types, packing) == []
    assert bound <= packing.cost <= bound * (1000 + permille) // 1000
    assert bound >= lower_bound(demand, types)


def test_amounts_that_are_no_multiples_of_cells_are_packed_by_true_amounts() -> None:
    demand, types = large_pods(2)
    odd = np.random.default_rng(1).integers(0, 100, (40, 2)) * np.array([1, 2**20 + 1])
    requests = demand.requests.copy()
    requests[:, :2] += odd
    demand = PodDemand(requests, demand.counts, demand.per_node, demand.allowed)

    packing, bound = best_of(demand, types)

    assert packing.method == "patterns"
    assert broken_rules(demand, types, packing) == []
    assert bound <= packing.cost <= bound * 105 // 100


def test_three_pods_of_three_cpu_need_more_than_nine_cpu_on_nodes_of_eight() -> None:
    demand, types = demand_of([[3]], [6]), types_of([[8]], [10])

    packing, bound = best_of(demand, types)

    assert (packing.cost, bound) == (30, 30)
    assert lower_bound(demand, types) == 22


def test_a_node_that_can_be_had_once_is_not_planned_twice() -> None:
    demand = demand_of([[3], [5]], [4, 4], types=2)
    types = types_of([[8], [8]], [1, 10], [1, UNLIMITED])

    packing, bound = best_of(demand, types)

    assert {group.type: group.nodes for group in packing.groups} == {0: 1, 1: 3}
    assert bound <= packing.cost == 31


def test_a_type_that_holds_none_of_the_pods_may_be_the_cheapest_empty_node() -> None:
    demand, types = demand_of([[0, 1], [1, 1]], [0, 5], types=3), types_of([[0, 1], [3, 3], [1, 1]], [1, 3, 1])
    types = NodeTypes(types.capacity, types.price, np.array([UNLIMITED, UNLIMITED, 1]))

    packing, bound = best_of(demand, types, at_least=3)

    assert (packing.nodes, packing.left) == (3, ())
    assert bound <= packing.cost == 7


def test_the_bound_is_of_the_pods_that_are_placed() -> None:
    demand = demand_of([[4]], [5])
    types = NodeTypes(np.array([[4]]), np.array([7]), np.array([2]))

    packing, bound = best_of(demand, types)

    assert packing.left == ((0, 3),)
    assert bound <= packing.cost == 14


def test_nodes_with_few_pods_are_packed_by_patterns_beside_nodes_with_many() -> None:
    demand, types = mixed_families(0)
    large = large_pods()[0]
    both = PodDemand(
        requests=np.concatenate((demand.requests, np.pad(large.requests, ((0, 0), (0, 1))))),
        counts=np.concatenate((demand.counts, large.counts)),
        per_node=np.concatenate((demand.per_node, large.per_node)),
        allowed=np.concatenate((np.tile([True] * 20 + [False], (200, 1)), np.tile([False] * 20 + [True], (40, 1)))),
    )
    types = NodeTypes(
        np.concatenate((types.capacity, [[15_800, 63 * 2**30, 0, 110, 0]])),
        np.append(types.price, 10**9),
        np.append(types.available, UNLIMITED),
    )

    packing, bound = best_of(both, types)

    assert packing.method == "patterns"
    assert broken_rules(both, types, packing) == []
    assert bound <= packing.cost


def test_patterns_of_empty_demands() -> None:
    assert patterns(demand_of([[1]], [0]), types_of([[4]], [1])).rank == (0, 0, 0)
    assert best_of(demand_of([[5]], [1]), types_of([[4]], [1]))[0].left == ((0, 1),)
