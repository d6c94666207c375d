"""Random packing problems, the rules that every packing keeps, and the optimum of tiny ones by exhaustion."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from hypothesis import strategies as st

from springtide.packing.problem import UNLIMITED, NodeTypes, OpenNodes, Packing, PodDemand


def demand_of(
    requests: list[list[int]],
    counts: list[int],
    per_node: list[int] | None = None,
    allowed: list[list[bool]] | None = None,
    types: int = 1,
) -> PodDemand:
    """A demand; without caps and limits unless they are given."""
    shapes = len(counts)
    return PodDemand(
        requests=np.array(requests, dtype=np.int64).reshape(shapes, -1),
        counts=np.array(counts, dtype=np.int64),
        per_node=np.array(per_node or [UNLIMITED] * shapes, dtype=np.int64),
        allowed=np.array(allowed or [[True] * types] * shapes, dtype=np.bool_).reshape(shapes, types),
    )


def types_of(capacity: list[list[int]], price: list[int], available: list[int] | None = None) -> NodeTypes:
    """Types; without limits unless they are given."""
    return NodeTypes(
        capacity=np.array(capacity, dtype=np.int64),
        price=np.array(price, dtype=np.int64),
        available=np.array(available or [UNLIMITED] * len(price), dtype=np.int64),
    )


@st.composite
def problems(draw: st.DrawFn, most_pods: int = 60, limits: bool = True) -> tuple[PodDemand, NodeTypes]:
    """Up to 6 shapes and 5 types of 3 resources, in small and in very large units."""
    units = [1, draw(st.sampled_from([1, 3, 2**20, 10**15])), 1]
    shapes, types = draw(st.integers(1, 6)), draw(st.integers(1, 5))

    def table(rows: int, low: tuple[int, int, int], high: tuple[int, int, int]) -> list[list[int]]:
        return [
            [draw(st.integers(a, b)) * unit for a, b, unit in zip(low, high, units, strict=True)] for _ in range(rows)
        ]

    requests = [[*row[:2], 1] for row in table(shapes, (0, 0, 1), (12, 12, 1))]
    counts = [draw(st.integers(0, most_pods // shapes)) for _ in range(shapes)]
    caps = [draw(st.sampled_from([UNLIMITED, UNLIMITED, 1, 2, 5])) if limits else UNLIMITED for _ in range(shapes)]
    allowed = [[draw(st.sampled_from([True, True, True, False])) for _ in range(types)] for _ in range(shapes)]
    capacity = table(types, (0, 0, 1), (40, 40, 12))
    price = [draw(st.integers(0 if limits else 1, 50)) * 10**9 for _ in range(types)]
    few = [draw(st.sampled_from([UNLIMITED, UNLIMITED, UNLIMITED, 0, 1, 3])) if limits else UNLIMITED for _ in price]
    demand = demand_of(requests, counts, caps, allowed, types)
    return demand, NodeTypes(np.array(capacity), np.array(price), np.array(few))


@st.composite
def nodes_for(draw: st.DrawFn, demand: PodDemand) -> OpenNodes:
    """Up to 4 open nodes for a demand."""
    number = draw(st.integers(0, 4))
    unit = np.maximum(demand.requests.max(axis=0) // 12, 1)
    free = np.array([[draw(st.integers(-3, 30)) for _ in unit] for _ in range(number)], dtype=np.int64)
    room = [[draw(st.sampled_from([0, 1, 2, UNLIMITED])) for _ in range(number)] for _ in demand.counts]
    return OpenNodes(
        free.reshape(number, len(unit)) * unit,
        np.minimum(np.array(room, dtype=np.int64).reshape(len(demand.counts), number), demand.per_node[:, None]),
    )


def broken_rules(
    demand: PodDemand, types: NodeTypes, packing: Packing, open_nodes: OpenNodes | None = None
) -> list[str]:
    """Which rules a packing breaks; counted pod by pod in Python integers."""
    found = []
    shapes, resources = demand.requests.shape
    placed, nodes, cost = [0] * shapes, [0] * len(types.price), 0
    for group in packing.groups:
        used = [0] * resources
        nodes[group.type] += group.nodes
        cost += int(types.price[group.type]) * group.nodes
        if group.nodes < 1:
            found.append(f"group without nodes: {group}")
        if len({shape for shape, _ in group.pods}) != len(group.pods):
            found.append(f"shape twice in one group: {group}")
        for shape, pods in group.pods:
            placed[shape] += pods * group.nodes
            if pods < 1 or pods > demand.per_node[shape]:
                found.append(f"cap per node: {group}")
            if not demand.allowed[shape, group.type]:
                found.append(f"type not allowed: {group}")
            used = [a + int(b) * pods for a, b in zip(used, demand.requests[shape], strict=True)]
        if any(a > c for a, c in zip(used, types.capacity[group.type], strict=True) if a):
            found.append(f"over capacity: {group}")
    free = open_nodes.free.tolist() if open_nodes else []
    seen = set()
    for node, shape, pods in packing.open_pods:
        assert open_nodes
        placed[shape] += pods
        if pods > open_nodes.room[shape, node] or (node, shape) in seen:
            found.append(f"no room on open node {node}")
        seen.add((node, shape))
        free[node] = [a - int(b) * pods for a, b in zip(free[node], demand.requests[shape], strict=True)]
        if any(a < 0 for a, b in zip(free[node], demand.requests[shape], strict=True) if b):
            found.append(f"open node {node} over capacity")
    for shape, pods in packing.left:
        placed[shape] += pods
    if placed != demand.counts.tolist():
        found.append(f"pods placed or left: {placed}, wanted {demand.counts.tolist()}")
    if any(n > a for n, a in zip(nodes, types.available, strict=True)):
        found.append(f"more nodes than available: {nodes}")
    if cost != packing.cost:
        found.append(f"cost: {packing.cost}, really {cost}")
    return found


def optimum(demand: PodDemand, types: NodeTypes) -> int | None:
    """The lowest cost of tiny demands by trying every partition; None if a pod fits nowhere. Types without limits."""
    pods = [s for s, count in enumerate(demand.counts) for _ in range(int(count))]
    best: int | None = None
    for parts in _partitions(len(pods)):
        costs = [_cheapest(demand, types, [pods[i] for i in part]) for part in parts]
        if None not in costs:
            total = sum(cost for cost in costs if cost is not None)
            best = total if best is None or total < best else best
    return best


def _partitions(number: int) -> Iterator[list[list[int]]]:
    if not number:
        yield []
        return
    for parts in _partitions(number - 1):
        for i in range(len(parts)):
            yield [*parts[:i], [*parts[i], number - 1], *parts[i + 1 :]]
        yield [*parts, [number - 1]]


def _cheapest(demand: PodDemand, types: NodeTypes, pods: list[int]) -> int | None:
    if any(pods.count(s) > demand.per_node[s] for s in pods):
        return None
    used = [sum(int(demand.requests[s, r]) for s in pods) for r in range(demand.requests.shape[1])]
    prices = [
        int(types.price[t])
        for t in range(len(types.price))
        if all(demand.allowed[s, t] for s in pods)
        and all(a <= c for a, c in zip(used, types.capacity[t], strict=True) if a)
    ]
    return min(prices, default=None)


def most_worth(values: list[int], weights: list[tuple[int, int]], limits: list[int], cells: tuple[int, int]) -> int:
    """The most that contents of one node are worth, by trying all."""
    return max(
        sum(n * v for n, v in zip(chosen, values, strict=True))
        for chosen in product(*(range(limit + 1) for limit in limits))
        if all(sum(n * w[r] for n, w in zip(chosen, weights, strict=True)) <= cells[r] for r in range(2))
    )
