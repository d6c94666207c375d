"""Packing by patterns: which sets of pods fill one node, and how many nodes of each set (Gilmore and Gomory).

Where nodes hold few pods, amounts that are split over nodes promise too much: three pods of 3 cpu do not fit into
8 cpu twice. A pattern is the contents of one node. The master problem chooses how often each known pattern is used; its
dual prices say what a pod is worth, and a knapsack finds for each type the contents that are worth most. If they are
worth more than the node costs they are a new pattern.

The knapsack is solved on a grid over the two resources that are asked for most, exactly where amounts are multiples of
the grid's cells; contents are checked with true amounts in all resources. The same knapsack with requests rounded down
is worth at least as much as any node, which makes the dual prices a certified bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import gcd

import numpy as np
from numpy.typing import NDArray

from springtide.packing.assignment import assigned, certified, solved
from springtide.packing.bounds import single_threaded_solver
from springtide.packing.greedy import GroupedNodes, GroupRow, Prepared, empty_nodes, first_fit, first_fit_decreasing
from springtide.packing.problem import (
    UNLIMITED,
    Bool,
    Int64,
    NodeGroup,
    NodeTypes,
    OpenNodes,
    Packing,
    PodDemand,
    fitting,
    most_pods,
)

FAST, THOROUGH = 96, 320
"""Cells of the grid in each of its two resources."""

_VALUE_BITS = 27  # of the dearest node; the contents of a node mostly fit into int32
Float64 = NDArray[np.float64]
_SLACK = 1 << 7
_FEW_PODS = 16
_MOST_SHAPES, _FEW_SHAPES = 512, 64
_MOST_ADDED = 8
_WORTH_THE_WORK = 33
"""Nodes that cost less than this part of the packing are not worth the search for patterns."""
_CLOSE = 0.002
_FEWEST_ROUNDS = 4
_COLUMNS, _FEWEST_COLUMNS = 64, 24
"""So many patterns are added in one round at most; of one table always some, as a table takes longer than they."""
_NO_LIMIT = 2**62
_WORK = {FAST: 200_000_000, THOROUGH: 1_000_000_000}
"""How many cells of knapsacks are filled at most: some tenths of a second, and some seconds."""

_Pattern = tuple[int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """One table for types that run the same shapes: what contents of each size are worth at most."""

    types: list[int]
    shapes: Int64
    weights: Int64
    """[shapes, 2]: cells that a pod takes, as patterns count them."""
    low_weights: Int64
    """[shapes, 2]: never more than its true share."""
    cells: Int64
    """[types, 2]"""

    @property
    def exact(self) -> bool:
        """Whether cells are units of which all requests are multiples."""
        return self.weights is self.low_weights


def _grids(demand: PodDemand, types: NodeTypes, size: int) -> list[_Grid]:
    groups: dict[tuple[tuple[int, int], bytes], tuple[Bool, list[int]]] = {}
    fits = fitting(demand, types)
    wanted = fits.any(axis=1) & (demand.counts > 0)
    for type_ in range(len(types.price)):
        pair = _scarcest(demand, types.capacity[type_], fits[:, type_] & wanted)
        # Pods that are too large in one of the two resources are left out by the size of the table.
        runs = demand.allowed[:, type_] & (types.available[type_] > 0) & wanted
        for resource in range(demand.requests.shape[1]):
            if resource not in pair:
                asked = demand.requests[:, resource]
                runs &= (asked <= types.capacity[type_, resource]) | (asked == 0)
        if runs.any():
            groups.setdefault((pair, runs.tobytes()), (runs, []))[1].append(type_)
    result: list[_Grid] = []
    for (pair, _), (runs, members) in groups.items():
        columns = list(pair)
        shapes = np.flatnonzero(runs)
        units = np.array([gcd(*(int(a) for a in demand.requests[shapes, r])) or 1 for r in pair])
        cells = types.capacity[members][:, columns] // units
        largest = cells.max(axis=0)
        if int(largest[0] + 1) * int(largest[1] + 1) <= size * size * (len(members) + 1):
            weights = demand.requests[shapes][:, columns] // units
            result.append(_Grid(members, shapes, weights, weights, cells))
            continue
        for type_ in members:
            own = shapes[fits[shapes, type_]]
            if not len(own):
                continue
            low, near = [], []
            for r in pair:
                capacity = max(1, int(types.capacity[type_, r]))
                amounts = [int(a) for a in demand.requests[own, r]]
                low.append([a * size // capacity for a in amounts])
                near.append([(2 * a * size + capacity) // (2 * capacity) for a in amounts])
            # A pod that takes no cell would be taken in any number.
            weights = np.array(near).T
            weights[(weights == 0).all(axis=1)] = 1
            result.append(_Grid([type_], own, weights, np.array(low).T, np.array([[size, size]])))
    return result


def _scarcest(demand: PodDemand, capacity: Int64, fits: Bool) -> tuple[int, int]:
    """The two resources of which the pods that fit on a node ask most, in nodes."""
    counts, asked = demand.counts[fits].tolist(), demand.requests[fits].T.tolist()
    nodes = [
        (-sum(n * a for n, a in zip(counts, column, strict=True)) // max(1, most), resource)
        for resource, (column, most) in enumerate(zip(asked, capacity.tolist(), strict=True))
    ]
    chosen = sorted(resource for _, resource in sorted(nodes)[:2])
    return chosen[0], chosen[-1]


@dataclass(slots=True)
class _Stage:
    """One step of the knapsack: a shape in any number, or so many pods of it once."""

    shape: int
    weight: tuple[int, int]
    times: int
    repeated: bool
    table: Int64 = field(init=False)


def _knapsack(grid: _Grid, values: Int64, limits: Int64, weights: Int64, keep: bool) -> tuple[Int64, list[_Stage]]:
    """The table of what is worth most in each size, and the steps that lead to it."""
    rows, columns = (int(n) + 1 for n in grid.cells.max(axis=0))
    stages: list[_Stage] = []
    with_one = np.maximum(weights, 1)
    most = np.minimum(
        np.where(weights[:, 0] > 0, (rows - 1) // with_one[:, 0], UNLIMITED),
        np.where(weights[:, 1] > 0, (columns - 1) // with_one[:, 1], UNLIMITED),
    )
    limits = np.minimum(limits, most)
    useful = np.flatnonzero((values > 0) & (limits > 0))
    plenty = (limits == most) & (most < UNLIMITED)
    by_size = weights.max(axis=1)
    densest = (values // np.maximum(by_size, 1) + 1).max(initial=0) * (rows + columns)
    table = np.zeros((rows, columns), dtype=np.int32 if densest < 2**31 and by_size.min(initial=1) else np.int64)
    for i in useful[_undominated_items(values[useful], plenty[useful], weights[useful])]:
        weight = (int(weights[i, 0]), int(weights[i, 1]))
        for stage in _stages(int(i), weight, int(limits[i]), bool(plenty[i])):
            if keep:
                stage.table = table.copy()
            _apply(table, stage, int(values[i]))
            stages.append(stage)
    return table, stages


def _undominated_items(values: Int64, plenty: Bool, weights: Int64) -> Int64:
    """Items for which no other takes no more, is worth no less and is there as often as a node can hold."""
    order = np.lexsort((np.arange(len(values)), weights.sum(axis=1), -values))
    weights, values, plenty = weights[order], values[order], plenty[order]
    better = (weights[:, None] <= weights[None, :]).all(axis=2) & plenty[:, None]
    # Only earlier items, which are worth no less, so that of equal ones the first stays.
    kept: Int64 = order[~np.triu(better, 1).any(axis=0)]
    return kept


def _stages(shape: int, weight: tuple[int, int], limit: int, repeated: bool) -> list[_Stage]:
    if repeated and limit > 2:
        return [_Stage(shape, weight, 1, True)]
    result, times = [], 1
    while limit > 0:
        times = min(times, limit)
        result.append(_Stage(shape, weight, times, False))
        limit -= times
        times *= 2
    return result


def _apply(table: Int64, stage: _Stage, value: int) -> None:
    a, b = (stage.times * w for w in stage.weight)
    value *= stage.times
    rows, columns = table.shape
    if a >= rows or b >= columns:
        return
    if not stage.repeated:
        better = table[: rows - a, : columns - b] + table.dtype.type(value)
        np.maximum(table[a:, b:], better, out=table[a:, b:])
    elif a:
        for start in range(a, rows, a):
            stop = min(start + a, rows)
            better = table[start - a : stop - a, : columns - b] + table.dtype.type(value)
            np.maximum(table[start:stop, b:], better, out=table[start:stop, b:])
    else:
        for start in range(b, columns, b):
            stop = min(start + b, columns)
            better = table[:, start - b : stop - b] + table.dtype.type(value)
            np.maximum(table[:, start:stop], better, out=table[:, start:stop])


def _contents(table: Int64, stages: list[_Stage], cell: tuple[int, int]) -> dict[int, int]:
    """Which items make up the worth of a cell."""
    items: dict[int, int] = {}
    after, (row, column) = table, cell
    for stage in reversed(stages):
        while after[row, column] != stage.table[row, column]:
            row, column = row - stage.times * stage.weight[0], column - stage.times * stage.weight[1]
            items[stage.shape] = items.get(stage.shape, 0) + stage.times
            if not stage.repeated:
                break
        after = stage.table
    return items


class _Master:
    """The choice among known patterns as a linear program that grows."""

    def __init__(self, demand: PodDemand, types: NodeTypes, at_least: int) -> None:
        import highspy

        self.demand, self.types = demand, types
        self.patterns: list[_Pattern] = []
        self.known: set[_Pattern] = set()
        self.scale = float(max(1, int(types.price.max(initial=1))))
        self.limited = [int(t) for t in np.flatnonzero(types.available < UNLIMITED)]
        self.solver = single_threaded_solver()
        self.solver.setOptionValue("presolve", "off")
        self.infinity = highspy.kHighsInf
        self.shapes = len(demand.counts)
        for count in demand.counts.tolist():
            self.solver.addRow(float(count), self.infinity, 0, np.array([], dtype=np.int32), np.array([]))
        for type_ in self.limited:
            limit = float(types.available[type_])
            self.solver.addRow(-self.infinity, limit, 0, np.array([], dtype=np.int32), np.array([]))
        self.solver.addRow(float(at_least), self.infinity, 0, np.array([], dtype=np.int32), np.array([]))
        self.last = self.shapes + len(self.limited)
        penalty = 1_000.0
        for shape in range(self.shapes):
            self.solver.addCol(penalty, 0.0, self.infinity, 1, np.array([shape], dtype=np.int32), np.ones(1))
        self.solver.addCol(penalty, 0.0, self.infinity, 1, np.array([self.last], dtype=np.int32), np.ones(1))
        self.others = self.shapes + 1

    def add(self, pattern: _Pattern) -> bool:
        """Add a pattern unless it is known."""
        if pattern in self.known:
            return False
        self.known.add(pattern)
        self.patterns.append(pattern)
        type_, pods = pattern
        rows, values = [s for s, _ in pods], [float(n) for _, n in pods]
        if type_ in self.limited:
            rows.append(self.shapes + self.limited.index(type_))
            values.append(1.0)
        rows.append(self.last)
        values.append(1.0)
        cost = float(self.types.price[type_]) / self.scale
        self.solver.addCol(cost, 0.0, self.infinity, len(rows), np.array(rows, dtype=np.int32), np.array(values))
        return True

    def empty(self) -> Bool:
        """Which patterns have no pods: nodes that are only asked for, and that are added at the end."""
        return np.array([not pods for _, pods in self.patterns], dtype=np.bool_)

    def require(self, counts: Int64, available: Int64, at_least: int) -> None:
        """Change how many pods there are of each shape, nodes of each type, and nodes at least."""
        for shape, count in enumerate(counts.tolist()):
            self.solver.changeRowBounds(shape, float(count), self.infinity)
        for row, type_ in enumerate(self.limited, self.shapes):
            self.solver.changeRowBounds(row, -self.infinity, float(available[type_]))
        self.solver.changeRowBounds(self.last, float(max(0, at_least)), self.infinity)

    def solve(self) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """The cost, how often each pattern is used, and the dual prices of the rows."""
        self.solver.run()
        solution = self.solver.getSolution()
        uses = np.array(solution.col_value)[self.others :]
        return self.solver.getObjectiveValue(), uses, np.array(solution.row_dual)


@dataclass(frozen=True, slots=True, eq=False)
class _Prices:
    """Dual prices as integers; the dearest node costs `2**_VALUE_BITS`."""

    worth: Int64
    """[shapes]"""
    budgets: list[int]
    """[types]: what contents must be worth more than."""
    scarcity: list[int]
    extra_node: int


class _Search:
    """Column generation for one problem."""

    def __init__(self, problem: Prepared, at_least: int, size: int, work: int) -> None:
        self.demand, self.types, self.at_least = problem.demand, problem.types, at_least
        self.dearest = max(1, int(problem.types.price.max(initial=1)))
        self.fits = fitting(self.demand, self.types)
        self.grids = _grids(self.demand, self.types, size)
        self.master = _Master(self.demand, self.types, at_least)
        self.bound = 0
        # A step costs some thousand cells, however small its table is, and so does each pattern.
        cells = sum(len(grid.shapes) * (int((grid.cells.max(axis=0) + 1).prod()) + 4_000) for grid in self.grids)
        cells += max(_COLUMNS, _FEWEST_COLUMNS * len(self.grids)) * 50_000
        self.rounds = min(60 if size <= FAST else 400, 3 * work // max(1, cells))
        self.rounds_left = self.rounds + self.rounds // 2
        if self.rounds < _FEWEST_ROUNDS:
            return
        if at_least:
            for empty in range(len(self.types.price)):
                self.master.add((empty, ()))
        for shape in np.flatnonzero(self.demand.counts):
            most = np.minimum(most_pods(self.types.capacity, self.demand.requests[shape]), self.demand.per_node[shape])
            most = np.where(self.fits[shape], np.minimum(most, self.demand.counts[shape]), 0)
            for type_ in np.flatnonzero(most):
                self.master.add((int(type_), ((int(shape), int(most[type_])),)))

    def prices(self, duals: Float64) -> _Prices:
        """Make dual prices of the master integers."""
        rows = [max(0, int(abs(dual) * 2**_VALUE_BITS)) for dual in duals.tolist()]
        scarcity = [0] * len(self.types.price)
        for row, type_ in enumerate(self.master.limited, self.master.shapes):
            scarcity[type_] = rows[row]
        budgets = [
            (int(price) << _VALUE_BITS) // self.dearest + scarce
            for price, scarce in zip(self.types.price, scarcity, strict=True)
        ]
        # A node without pods costs no less than it saves.
        extra_node = min(rows[-1], *budgets) if self.at_least else 0
        budgets = [budget - extra_node for budget in budgets]
        return _Prices(np.array(rows[: self.master.shapes], dtype=np.int64), budgets, scarcity, extra_node)

    def improve(self, counts: Int64, rounds: int, close_enough: bool = False) -> Float64:
        """Add patterns until none is worth more than its node, or for so many rounds: how often each is used."""
        whole = bool((counts == self.demand.counts).all())
        cost, uses, duals = self.master.solve()
        for _ in range(min(rounds, self.rounds_left)):
            self.rounds_left -= 1
            prices = self.prices(duals)
            limits = np.minimum(self.demand.per_node, counts)
            added = False
            most_worth: dict[int, int] = {}
            for grid in self.grids:
                own = prices.worth[grid.shapes]
                table, stages = _knapsack(grid, own, limits[grid.shapes], grid.weights, keep=True)
                for type_, cell in zip(grid.types, grid.cells.tolist(), strict=True):
                    most_worth[type_] = int(table[cell[0], cell[1]])
                for type_, items in self._worthwhile(grid, table, stages, prices, limits):
                    pods = self._feasible(type_, items, prices, limits)
                    if sum(int(prices.worth[s]) * n for s, n in pods) > prices.budgets[type_] + _SLACK:
                        added |= self.master.add((type_, pods))
            if whole and all(grid.exact for grid in self.grids):
                self._raise_bound(prices, most_worth)
            if not added or (close_enough and cost * self.dearest * (1 - _CLOSE) <= self.bound):
                break
            cost, uses, duals = self.master.solve()
        return uses

    def _worthwhile(
        self, grid: _Grid, table: Int64, stages: list[_Stage], prices: _Prices, limits: Int64
    ) -> list[tuple[int, dict[int, int]]]:
        """The best contents of each type, and for each shape the best that have a pod of it, where worth the node."""
        best: list[tuple[int, int, dict[int, int], tuple[int, int]]] = []
        gains = np.full(len(grid.shapes), _SLACK, dtype=np.int64)
        chosen = np.full(len(grid.shapes), -1, dtype=np.int64)
        for index, (type_, cell) in enumerate(zip(grid.types, grid.cells.tolist(), strict=True)):
            gain = int(table[cell[0], cell[1]]) - prices.budgets[type_]
            if gain > _SLACK:
                best.append((-gain, type_, {}, (cell[0], cell[1])))
                row, column = (cell - grid.weights).T
                inside = (row >= 0) & (column >= 0) & self.fits[grid.shapes, type_] & (limits[grid.shapes] > 0)
                with_one = np.where(inside, table[np.maximum(row, 0), np.maximum(column, 0)], 0)
                with_one = np.where(inside, with_one + prices.worth[grid.shapes] - prices.budgets[type_], 0)
                chosen[with_one > gains] = index
                np.maximum(gains, with_one, out=gains)
        for i in np.flatnonzero(chosen >= 0).tolist():
            row, column = (grid.cells[chosen[i]] - grid.weights[i]).tolist()
            best.append((-int(gains[i]), grid.types[chosen[i]], {i: 1}, (row, column)))
        best.sort(key=lambda found: (found[0], found[1], sorted(found[2])))
        result = []
        for _, type_, items, cell in best[: max(_COLUMNS // len(self.grids), _FEWEST_COLUMNS)]:
            contents = _contents(table, stages, cell)
            for i in items:
                contents[i] = contents.get(i, 0) + 1
            pods = {int(grid.shapes[i]): n for i, n in contents.items()}
            result.append((type_, {s: min(n, int(limits[s])) for s, n in pods.items()}))
        return result

    def certify(self) -> int:
        """The best bound so far, with the prices of the master and a knapsack that is worth too much, if anything."""
        _, _, duals = self.master.solve()
        prices = self.prices(duals)
        limits = np.minimum(self.demand.per_node, self.demand.counts)
        most_worth = {}
        for grid in self.grids:
            own = prices.worth[grid.shapes]
            table, _ = _knapsack(grid, own, limits[grid.shapes], grid.low_weights, keep=False)
            # What takes no cell is not in the table.
            table += int((own * limits[grid.shapes])[(grid.low_weights == 0).all(axis=1)].sum())
            for type_, cell in zip(grid.types, grid.cells.tolist(), strict=True):
                most_worth[type_] = int(table[cell[0], cell[1]])
        self._raise_bound(prices, most_worth)
        return self.bound

    def _raise_bound(self, prices: _Prices, most_worth: dict[int, int]) -> None:
        """Scale the prices until no node holds more than it costs: all pods together then cost at least their worth."""
        scale = min(
            (Fraction(max(0, prices.budgets[t]), worth) for t, worth in most_worth.items() if worth), default=Fraction()
        )
        total = sum(int(n) * int(w) for n, w in zip(self.demand.counts, prices.worth, strict=True)) * scale
        total += min(self.at_least, sum(int(n) for n in self.types.available)) * prices.extra_node
        total -= sum(int(n) * p for n, p in zip(self.types.available, prices.scarcity, strict=True) if p)
        self.bound = max(self.bound, int(total * self.dearest / 2**_VALUE_BITS))

    def _feasible(
        self, type_: int, items: dict[int, int], prices: _Prices, limits: Int64
    ) -> tuple[tuple[int, int], ...]:
        """Contents that fit by their true amounts: pods are taken off until they do, and added in free room."""
        requests, capacity = self.demand.requests, self.types.capacity[type_]
        pods = {s: n for s, n in items.items() if self.fits[s, type_]}
        free = capacity - sum((requests[s] * n for s, n in pods.items()), np.zeros_like(capacity))
        while (free < 0).any():
            resource = int(np.flatnonzero(free < 0)[0])
            worst = min((s for s in pods if requests[s, resource]), key=lambda s: (int(prices.worth[s]), s))
            fewer = min(pods[worst], -(int(free[resource]) // int(requests[worst, resource])))
            pods[worst] -= fewer
            free = free + fewer * requests[worst]
            if not pods[worst]:
                del pods[worst]
        useful = self.fits[:, type_] & (prices.worth > 0) & (limits > 0)
        for shape in pods:
            useful[shape] &= pods[shape] < limits[shape]
        for _ in range(_MOST_ADDED):
            runs = np.flatnonzero(useful & (requests <= free).all(axis=1))
            if not len(runs):
                break
            shape = int(runs[prices.worth[runs].argmax()])
            more = min(int(most_pods(free[None], requests[shape])[0]), int(limits[shape]) - pods.get(shape, 0))
            pods[shape] = pods.get(shape, 0) + more
            free = free - more * requests[shape]
            useful[shape] = False
        return tuple(sorted(pods.items()))

    def round(self, uses: Float64, rounds: int) -> tuple[list[GroupRow], Int64]:
        """Turn uses into whole nodes: first what is whole, then the most used pattern again and again."""
        counts, available = self.demand.counts.copy(), self.types.available.copy()
        at_least = self.at_least
        rows: list[GroupRow] = []
        while True:
            uses = np.where(self.master.empty()[: len(uses)], 0, uses)
            times = np.floor(uses + 1e-6).astype(np.int64)
            if not times.any():
                if not len(uses) or uses.max() < 1e-6:
                    break
                most = np.round(uses, 6)
                times[int(most.argmax())] = 1
                if not self.rounds_left:
                    # No more patterns will be found, so that deciding one at a time is not worth the time.
                    times[most >= most.max() / 2] = 1
            before = len(rows)
            for i in np.flatnonzero(times):
                type_, pods = self.master.patterns[i]
                for row in _taken(type_, pods, min(int(times[i]), int(available[type_])), counts):
                    rows.append(row)
                    available[type_] -= row.nodes
                    at_least -= row.nodes
            if not counts.any() or len(rows) == before:
                break
            self.master.require(counts, available, at_least)
            uses = self.improve(counts, rounds)
        return rows, counts


def _taken(type_: int, pods: tuple[tuple[int, int], ...], nodes: int, counts: Int64) -> list[GroupRow]:
    """Nodes with the contents of a pattern, as far as there are such pods; takes them off the counts."""
    rows = []
    while nodes:
        here = {s: min(n, int(counts[s])) for s, n in pods if counts[s]}
        if not here:
            break
        times = min(nodes, *(int(counts[s]) // n for s, n in here.items()))
        for s, n in here.items():
            counts[s] -= n * times
        rows.append(GroupRow(type_, times, here))
        nodes -= times
    return rows


def patterns(
    demand: PodDemand,
    types: NodeTypes,
    open_nodes: OpenNodes | None = None,
    at_least: int = 0,
    grid: int = FAST,
) -> Packing:
    """Pack by column generation; never worse than `assign`. For nodes that hold few pods."""
    problem = Prepared.of(demand, types, open_nodes)
    start = assigned(problem, solved(problem, at_least), at_least)
    if start is None:
        return problem.original(first_fit_decreasing(problem, at_least))
    return problem.original(_improved(problem, start, at_least, grid, _NO_LIMIT)[0])


def best_of(
    demand: PodDemand,
    types: NodeTypes,
    open_nodes: OpenNodes | None = None,
    at_least: int = 0,
    grid: int = FAST,
) -> tuple[Packing, int]:
    """The cheapest packing of all solvers, and what any packing of the pods that it adds nodes for costs at least.

    Patterns are generated for the pods on nodes that hold few, as far as that is not too much work for the grid.
    """
    problem = Prepared.of(demand, types, open_nodes)
    best = first_fit_decreasing(problem, at_least)
    solution = solved(problem, at_least)
    start = assigned(problem, solution, at_least)
    if start is None:
        return problem.original(best), 0
    improved, bound = _with_patterns(problem, start, at_least, grid)
    best = min(best, start, improved, key=lambda packing: packing.rank)
    if best.left:
        # The bound is of the pods that are placed.
        counts = problem.demand.counts.copy()
        for shape, pods in best.left:
            counts[shape] -= pods
        problem, bound = replace(problem, demand=replace(problem.demand, counts=counts)), 0
    return problem.original(best), max(bound, certified(problem, solution, at_least))


def _with_patterns(problem: Prepared, start: Packing, at_least: int, grid: int) -> tuple[Packing, int]:
    """Pack the pods on nodes that hold few by patterns; a bound only if that is all of them."""
    few: list[NodeGroup] = []
    others: list[NodeGroup] = []
    for group in start.groups:
        (few if 0 < sum(n for _, n in group.pods) <= _FEW_PODS else others).append(group)
    counts, available = np.zeros_like(problem.demand.counts), problem.types.available.copy()
    for group in few:
        for shape, pods in group.pods:
            counts[shape] += group.nodes * pods
    for group in others:
        available[group.type] -= group.nodes if available[group.type] < UNLIMITED else 0
        at_least -= group.nodes
    cost = sum(int(problem.types.price[group.type]) * group.nodes for group in few)
    shapes = int(np.count_nonzero(counts))
    if cost * _WORTH_THE_WORK < start.cost or not few:
        return start, 0
    if shapes > _MOST_SHAPES or (shapes > _FEW_SHAPES and int(counts.sum()) < 3 * shapes):
        # Patterns are used more than once only where shapes have many pods.
        return start, 0
    part = replace(
        problem,
        demand=replace(problem.demand, counts=counts),
        types=replace(problem.types, available=available),
        open_pods=[],
    )
    partial = Packing(tuple(few), (), (), cost, start.method)
    at_least = max(0, at_least)
    improved, bound = _improved(part, partial, at_least, grid, _WORK[grid])
    if improved.rank >= partial.rank:
        return start, 0 if others or start.left else bound
    left = np.zeros_like(counts)
    for shape, pods in start.left:
        left[shape] = pods
    rows = [GroupRow(group.type, group.nodes, dict(group.pods)) for group in (*others, *improved.groups)]
    return replace(
        problem.packing(rows, left, improved.method), open_pods=start.open_pods
    ), 0 if others or start.left else bound


def _improved(problem: Prepared, start: Packing, at_least: int, grid: int, work: int) -> tuple[Packing, int]:
    """Column generation from a packing: the cheaper one of both, and a certified bound."""
    search = _Search(problem, at_least, grid, work)
    if search.rounds < _FEWEST_ROUNDS:
        return start, 0
    for group in start.groups:
        search.master.add((group.type, group.pods))
    uses = search.improve(problem.demand.counts, search.rounds, close_enough=grid <= FAST)
    bound = search.certify()
    rows, left = search.round(uses, 1 if grid <= FAST else 5)
    groups = GroupedNodes(problem.types)
    for row in rows:
        used = sum(
            (problem.demand.requests[s] * n for s, n in row.pods.items()), np.zeros_like(problem.types.capacity[0])
        )
        groups.add(row.type, row.nodes, problem.types.capacity[row.type] - used, row.pods)
    left = first_fit(problem.demand, problem.types, left, groups)
    filled = groups.rows()
    available = problem.types.available.copy()
    for row in filled:
        available[row.type] -= row.nodes
    filled += empty_nodes(available, at_least - sum(row.nodes for row in filled))
    packing = problem.packing(filled, left, "patterns")
    return min(start, packing, key=lambda packing: packing.rank), bound
