"""Packing by the assignment relaxation: it chooses the mix of types, integers choose the nodes.

The relaxation says how many nodes of each type there should be and which pods belong on them. The pods of a type are
dealt evenly over its nodes, the largest first, so that these nodes look alike and fill up in all resources together.
What does not fit goes into free room elsewhere, then onto new nodes that are worth most for their price. At the end
each node gets the cheapest type that holds it.

The relaxation works with floating point and only proposes; every amount that decides is an integer.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

import numpy as np

from springtide.packing.bounds import Float64, Relaxation, certified_bound, relax
from springtide.packing.greedy import (
    GroupRow,
    Prepared,
    empty_nodes,
    first_fit_decreasing,
    taken_in_order,
)
from springtide.packing.problem import (
    UNLIMITED,
    Bool,
    Int64,
    NodeTypes,
    OpenNodes,
    Packing,
    PodDemand,
    fitting,
    most_pods,
)

_METHOD = "assignment"
_MOST_SHAPES, _CLUSTERS = 256, 128
"""More shapes than this are put into so many clusters for the relaxation."""
_ONE = np.ones(1, dtype=np.int64)
_BLOCK = 2_048
"""More nodes than this are packed as a block of so many, which is repeated."""

_Placed = list[tuple[Int64, Int64]]


class _Nodes:
    """Nodes while they are filled, and which pods were put where."""

    def __init__(self, demand: PodDemand, types: NodeTypes, fits: Bool, number: int) -> None:
        self.demand, self.types, self.fits = demand, types, fits
        self.size = 0
        self.type: Int64 = np.zeros(number, dtype=np.int64)
        self.free: Int64 = np.zeros((types.capacity.shape[1], number), dtype=np.int64)
        self.available = types.available.copy()
        self.placed: dict[int, _Placed] = {}
        # Scores are sums of shares of a node with 20 bits, times shares with 31 bits.
        bits = [int(most).bit_length() for most in types.capacity.max(axis=0)]
        self.shifts = np.array([max(0, n - 31) for n in bits], dtype=np.int64)
        self.capacity = np.maximum(types.capacity >> self.shifts, 1)

    def open(self, type_: int, number: int) -> range:
        """Add empty nodes."""
        block = range(self.size, self.size + number)
        if block.stop > len(self.type):
            room = max(number, len(self.type), 64)
            self.type = np.concatenate((self.type, np.zeros(room, dtype=np.int64)))
            self.free = np.concatenate((self.free, np.zeros((len(self.free), room), dtype=np.int64)), axis=1)
        self.type[block.start : block.stop] = type_
        self.free[:, block.start : block.stop] = self.types.capacity[type_][:, None]
        self.available[type_] -= number
        self.size = block.stop
        return block

    def put(self, rows: Int64, shape: int, pods: Int64) -> None:
        """Put pods of a shape on nodes, each row at most once."""
        for resource in np.flatnonzero(self.demand.requests[shape]):
            self.free[resource, rows] -= pods * self.demand.requests[shape, resource]
        self.placed.setdefault(shape, []).append((rows, pods))

    def deal(self, block: range, type_: int, shape: int, count: int) -> int:
        """Deal pods evenly over equal nodes and return how many did not fit; the emptiest nodes take the remainder.

        The nodes must not have pods of this shape yet.
        """
        if count == 1:
            return self._deal_one(block, type_, shape)
        total = count
        request = self.demand.requests[shape]
        free = self.free[:, block.start : block.stop]
        asked = np.flatnonzero(request)
        taken = np.zeros(len(block), dtype=np.int64)
        # Whether a pod fits is cheaper to know than how many do, and mostly enough.
        most = np.ones(len(block), dtype=np.int64)
        known = count >= len(block)
        if known:
            most = np.minimum(most_pods(free.T, request), self.demand.per_node[shape])
        else:
            for resource in asked:
                most[free[resource] < request[resource]] = 0
        while count:
            more = np.flatnonzero(most > taken)
            if not len(more):
                if known:
                    break
                known, most = True, np.minimum(most_pods(free.T, request), self.demand.per_node[shape])
                continue
            each = count // len(more)
            if each:
                taken[more] += np.minimum(most[more] - taken[more], each)
            else:
                # The emptiest nodes by how much free room there is where the request needs it.
                weights = self._weights(type_, request)
                score = np.zeros(len(more), dtype=np.int64)
                for resource in asked:
                    room = free[resource, more] - taken[more] * request[resource]
                    score -= (room >> self.shifts[resource]) * weights[resource]
                taken[more[np.argsort(score, kind="stable")[:count]]] += 1
            count = total - int(taken.sum())
        rows = np.flatnonzero(taken)
        if len(rows):
            self.put(block.start + rows, shape, taken[rows])
        return count

    def _weights(self, type_: int, request: Int64) -> Int64:
        capacity = self.capacity[type_]
        weights: Int64 = ((((request >> self.shifts) << 20) // capacity) << 31) // capacity
        return weights

    def _deal_one(self, block: range, type_: int, shape: int) -> int:
        """`deal` for a single pod, with fewer steps: there can be ten thousand shapes with one pod each."""
        request = self.demand.requests[shape]
        weights = self._weights(type_, request).tolist()
        score: Int64 = np.zeros(len(block), dtype=np.int64)
        fit = np.ones(len(block), dtype=np.bool_)
        for resource, asked in enumerate(request.tolist()):
            if asked:
                free = self.free[resource, block.start : block.stop]
                fit &= free >= asked
                score += (free >> self.shifts[resource]) * weights[resource]
        score[~fit] = -1
        node = int(score.argmax())
        if not fit[node]:
            return 1
        self.free[:, block.start + node] -= request
        self.placed.setdefault(shape, []).append((np.array([block.start + node]), _ONE))
        return 0

    def fill(self, shape: int, count: int) -> int:
        """Put pods into free room anywhere, the fullest nodes first, and return how many did not fit."""
        request = self.demand.requests[shape]
        most = most_pods(self.free[:, : self.size].T, request)
        if self.demand.per_node[shape] < UNLIMITED:
            most = np.minimum(most, self.demand.per_node[shape] - self._pods_of(shape))
        most[~self.fits[shape][self.type[: self.size]]] = 0
        rows = np.flatnonzero(most > 0)
        if not len(rows):
            return count
        room = ((self.free[:, rows].T >> self.shifts) << 20) // self.capacity[self.type[rows]]
        rows = rows[np.argsort(room.sum(axis=1), kind="stable")]
        taken = taken_in_order(np.minimum(most[rows], count), count)
        rows, taken = rows[taken > 0], taken[taken > 0]
        self.put(rows, shape, taken)
        return count - int(taken.sum())

    def _pods_of(self, shape: int) -> Int64:
        pods = np.zeros(self.size, dtype=np.int64)
        for rows, number in self.placed.get(shape, ()):
            pods[rows] += number
        return pods

    def open_by_worth(self, left: Int64, worth: Int64) -> None:
        """Open nodes for what is left: always the type whose contents are worth most for its price."""
        while True:
            wanted = np.flatnonzero(left)
            number = len(self.types.price)
            free = self.types.capacity.copy()
            value = np.zeros(number, dtype=np.int64)
            contents = np.zeros((len(wanted), number), dtype=np.int64)
            for i, shape in enumerate(wanted):
                request = self.demand.requests[shape]
                most = np.minimum(most_pods(free, request), min(int(self.demand.per_node[shape]), int(left[shape])))
                most[~self.fits[shape] | (self.available <= 0)] = 0
                free -= most[:, None] * request
                contents[i] = most
                value += np.minimum(most, 2**20) * worth[shape]
            best: int | None = None
            for type_ in np.flatnonzero(contents.any(axis=0)):
                if best is None or (
                    int(value[type_]) * int(self.types.price[best]) > int(value[best]) * int(self.types.price[type_])
                ):
                    best = int(type_)
            if best is None:
                return
            pods = contents[:, best]
            times = min(int(self.available[best]), int((left[wanted[pods > 0]] // pods[pods > 0]).min()))
            rows = np.array(self.open(best, times), dtype=np.int64)
            for shape, each in zip(wanted[pods > 0].tolist(), pods[pods > 0].tolist(), strict=True):
                self.put(rows, shape, np.full(times, each, dtype=np.int64))
            left[wanted] -= pods * times

    def rows(self) -> list[GroupRow]:
        """What is on each node."""
        placements = [(rows, shape, pods) for shape, placed in self.placed.items() for rows, pods in placed]
        contents: list[dict[int, int]] = [{} for _ in range(self.size)]
        if placements:
            row = np.concatenate([rows for rows, _, _ in placements])
            shape = np.repeat([shape for _, shape, _ in placements], [len(rows) for rows, _, _ in placements])
            pods = np.concatenate([pods for _, _, pods in placements])
            order = np.lexsort((shape, row))
            row, shape, pods = row[order], shape[order], pods[order]
            first = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(shape, prepend=-1) != 0))
            totals = np.add.reduceat(pods, first).tolist()
            shapes, ends = shape[first].tolist(), np.searchsorted(row[first], np.arange(self.size + 1)).tolist()
            for node in range(self.size):
                part = slice(ends[node], ends[node + 1])
                contents[node] = dict(zip(shapes[part], totals[part], strict=True))
        return [GroupRow(int(self.type[i]), 1, contents[i]) for i in range(self.size)]


def _whole_amounts(amounts: Float64, counts: Int64) -> Int64:
    """Round rows of amounts to integers whose sums are the counts, or less where the amounts are less."""
    sums = amounts.sum(axis=1)
    totals = np.minimum(counts, np.floor(sums + 0.5).astype(np.int64))
    scaled = amounts * (totals / np.where(sums > 0, sums, 1))[:, None]
    whole: Int64 = np.floor(scaled + 1e-9).astype(np.int64)
    missing = totals - whole.sum(axis=1)
    order = np.argsort(-np.round(scaled - whole, 6), axis=1, kind="stable")
    for row in np.flatnonzero((missing != 0) & (sums > 0)):
        whole[row, order[row, : max(0, int(missing[row]))]] += 1
    return whole


def assign(demand: PodDemand, types: NodeTypes, open_nodes: OpenNodes | None = None, at_least: int = 0) -> Packing:
    """Pack by the assignment relaxation; by `greedy` if the relaxation is not solved within its limit of iterations.

    Free room of open nodes is used first. At least `at_least` nodes are added, as far as so many are available, even
    if some of them stay empty.
    """
    problem = Prepared.of(demand, types, open_nodes)
    result = assigned(problem, solved(problem, at_least), at_least)
    return problem.original(first_fit_decreasing(problem, at_least) if result is None else result)


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """A solution of the relaxation, of shapes or of clusters of them."""

    relaxation: Relaxation
    clusters: Int64 | None
    pods: Int64
    """[shapes, types]: how many pods belong on each type."""


def solved(problem: Prepared, at_least: int) -> Solved | None:
    """Solve the relaxation; of clusters of shapes if there are many shapes."""
    demand, types = problem.demand, problem.types
    if not len(types.price):
        return None
    if np.count_nonzero(demand.counts) <= _MOST_SHAPES:
        relaxation = relax(demand, types, at_least)
        if relaxation is None:
            return None
        return Solved(relaxation, None, _whole_amounts(relaxation.pods, demand.counts))
    clusters, clustered = _clustered(demand, types)
    relaxation = relax(clustered, types, at_least)
    if relaxation is None:
        return None
    amounts = _whole_amounts(relaxation.pods, clustered.counts)
    return Solved(relaxation, clusters, _spread(demand, fitting(demand, types), clusters, amounts))


def _spread(demand: PodDemand, fits: Bool, clusters: Int64, amounts: Int64) -> Int64:
    """Give the pods of clusters to types: laid out by size, cut by the amounts of the types."""
    pods = np.zeros(fits.shape, dtype=np.int64)
    order = np.argsort(clusters, kind="stable")
    ends = np.searchsorted(clusters[order], np.arange(len(amounts) + 1))
    for cluster, amount in enumerate(amounts):
        members = order[ends[cluster] : ends[cluster + 1]]
        high = np.cumsum(demand.counts[members])
        low = high - demand.counts[members]
        start = 0
        for type_ in np.flatnonzero(amount):
            stop = start + int(amount[type_])
            pods[members, type_] = np.maximum(np.minimum(high, stop) - np.maximum(low, start), 0)
            start = stop
    pods[~fits] = 0
    return pods


def _clustered(demand: PodDemand, types: NodeTypes) -> tuple[Int64, PodDemand]:
    """Shapes of like size and direction as one, with the mean of their requests; which cluster each shape is in.

    Only shapes that run on the same types and have the same cap are put together. Then the cluster whose shapes differ
    most, weighted by pods, is halved until there are enough.
    """
    fits = fitting(demand, types)
    limits = np.concatenate((np.packbits(demand.allowed, axis=1), demand.per_node[:, None].view(np.uint8)), axis=1)
    _, start = np.unique(limits, axis=0, return_inverse=True)
    # Shares of the largest request, with 20 bits, weighted by how much of each resource is asked for.
    shifts = np.array([max(0, int(most).bit_length() - 40) for most in demand.requests.max(axis=0)])
    shares = ((demand.requests >> shifts) << 20) // np.maximum(demand.requests.max(axis=0) >> shifts, 1)
    heap: list[tuple[int, int, int, Int64]] = []

    def push(members: Int64, number: int) -> None:
        own = shares[members]
        spread = own.max(axis=0) - own.min(axis=0)
        widest = int(spread.argmax())
        weight = int(spread[widest]) * int(demand.counts[members].sum())
        heapq.heappush(heap, (-weight, number, widest, members))

    number = 0
    for value in range(int(start.max()) + 1):
        members = np.flatnonzero((start == value) & (demand.counts > 0))
        if len(members):
            push(members, number)
            number += 1
    while len(heap) < _CLUSTERS and heap[0][0] < 0:
        _, _, widest, members = heapq.heappop(heap)
        members = members[np.argsort(demand.requests[members, widest], kind="stable")]
        half = len(members) // 2
        for part in (members[:half], members[half:]):
            push(np.sort(part), number)
            number += 1
    clusters = np.zeros(len(demand.counts), dtype=np.int64)
    rows = sorted((int(members[0]), members) for _, _, _, members in heap)
    requests, counts, caps, allowed = [], [], [], []
    for cluster, (_, members) in enumerate(rows):
        clusters[members] = cluster
        n = demand.counts[members]
        columns = demand.requests[members].T.tolist()
        totals = [sum(a * b for a, b in zip(n.tolist(), column, strict=True)) for column in columns]
        requests.append([-(-total // int(n.sum())) for total in totals])
        counts.append(int(n.sum()))
        caps.append(min(UNLIMITED, sum(int(cap) for cap in demand.per_node[members])))
        every = fits[members].all(axis=0)
        allowed.append(every if every.any() else fits[members].any(axis=0))
    return clusters, PodDemand(
        np.array(requests, dtype=np.int64),
        np.array(counts, dtype=np.int64),
        np.array(caps, dtype=np.int64),
        np.array(allowed),
    )


def assigned(problem: Prepared, solution: Solved | None, at_least: int) -> Packing | None:
    """Round a solution of the relaxation in several ways and keep the cheapest packing."""
    if solution is None:
        return None
    times = -(-int(solution.relaxation.nodes.sum()) // _BLOCK)
    if times > 1:
        return _repeated(problem, times, at_least)
    demand, types = problem.demand, problem.types
    fits = fitting(demand, types)
    worth = _worth(demand, types, fits, solution)
    best: Packing | None = None
    for rounding in (0.5, 0.999, 0.0) if solution.clusters is None else (0.5,):
        number = np.minimum(np.floor(solution.relaxation.nodes + rounding + 1e-6).astype(np.int64), types.available)
        nodes = _Nodes(demand, types, fits, int(number.sum()))
        left = demand.counts - solution.pods.sum(axis=1) + solution.pods[:, number == 0].sum(axis=1)
        for type_ in np.flatnonzero(number):
            block = nodes.open(int(type_), int(number[type_]))
            for shape in np.flatnonzero(solution.pods[:, type_]):
                left[shape] += nodes.deal(block, int(type_), int(shape), int(solution.pods[shape, type_]))
        for shape in np.flatnonzero(left):
            left[shape] = nodes.fill(int(shape), int(left[shape]))
        nodes.open_by_worth(left, worth)
        packing = problem.packing([*nodes.rows(), *empty_nodes(nodes.available, at_least - nodes.size)], left, _METHOD)
        best = packing if best is None or packing.rank < best.rank else best
    return best


def _repeated(problem: Prepared, times: int, at_least: int) -> Packing | None:
    """Pack a fraction of the problem, repeat it, and pack the rest."""
    limited = problem.types.available < UNLIMITED
    part = replace(
        problem,
        demand=replace(problem.demand, counts=problem.demand.counts // times),
        types=replace(problem.types, available=np.where(limited, problem.types.available // times, UNLIMITED)),
        open_pods=[],
    )
    block = assigned(part, solved(part, at_least // times), at_least // times)
    if block is None:
        return None
    rows = [GroupRow(group.type, group.nodes * times, dict(group.pods)) for group in block.groups]
    counts, available = problem.demand.counts.copy(), problem.types.available.copy()
    for row in rows:
        available[row.type] -= row.nodes if limited[row.type] else 0
        at_least -= row.nodes
        for shape, pods in row.pods.items():
            counts[shape] -= pods * row.nodes
    rest = replace(
        problem,
        demand=replace(problem.demand, counts=counts),
        types=replace(problem.types, available=available),
        open_pods=[],
    )
    remaining = assigned(rest, solved(rest, max(0, at_least)), max(0, at_least))
    if remaining is None:
        return None
    rows += [GroupRow(group.type, group.nodes, dict(group.pods)) for group in remaining.groups]
    left = np.zeros_like(counts)
    for shape, pods in remaining.left:
        left[shape] = pods
    return problem.packing(rows, left, _METHOD)


def lower_bound(demand: PodDemand, types: NodeTypes, at_least: int = 0) -> int:
    """What all pods that fit somewhere cost at least, in nano-dollars per hour; 0 if the relaxation is not solved."""
    problem = Prepared.of(demand, types, None)
    return certified(problem, solved(problem, at_least), at_least)


def certified(problem: Prepared, solution: Solved | None, at_least: int) -> int:
    """What the pods of a prepared problem cost at least, by the prices of the relaxation."""
    if solution is None:
        return 0
    return certified_bound(problem.demand, problem.types, solution.relaxation, at_least, solution.clusters)


def _worth(demand: PodDemand, types: NodeTypes, fits: Bool, solution: Solved) -> Int64:
    """[shapes]: what a pod costs by the prices of the relaxation."""
    relaxation = solution.relaxation
    unit = relaxation.share_price / np.maximum(types.capacity, 1)
    value = relaxation.cap_price if solution.clusters is None else relaxation.cap_price[solution.clusters]
    # Not a matrix product: its sums differ in the last bit from machine to machine.
    for resource in range(unit.shape[1]):
        value = value + demand.requests[:, resource, None] * unit[None, :, resource]
    value = np.where(fits, value, np.inf).min(axis=1)
    return np.where(np.isfinite(value), np.clip(value, 1, 2.0**40), 1).astype(np.int64)
