"""The assignment relaxation, and a lower bound of cost that does not depend on floating point.

The relaxation lets pods and nodes be split: pods of shape s on type t and nodes of type t are amounts that respect
demand, the capacity of the nodes of a type together, and caps per node. HiGHS solves it. Its primal amounts propose a
packing; its dual prices are what a unit of each resource costs on each type.

`certified_bound` takes such prices from any source. It makes them integers, scales them until no type is worth more
than its price, which is checked exactly, and adds up what the true pods are worth by them. A node then never holds pods
that are worth more than it costs, so no packing of these pods is cheaper than the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from springtide.packing.problem import (
    UNLIMITED,
    Int64,
    NodeTypes,
    PodDemand,
    fitting,
    most_pods,
)

if TYPE_CHECKING:
    from highspy import Highs

Float64 = NDArray[np.float64]

_UNPLACED = 1_000
"""A pod that stays out costs as much as so many of the dearest nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """A solution of the assignment relaxation: proposed amounts and prices, all of them inexact."""

    pods: Float64
    """[shapes, types]"""
    nodes: Float64
    """[types]"""
    share_price: Float64
    """[types, resources]: what the whole of a resource of one node is worth."""
    cap_price: Float64
    """[shapes, types]: what one place below the cap per node is worth."""
    scarcity: Float64
    """[types]: what one more node of a type of which few are available is worth."""
    extra_node: Float64
    """[1]: what asking for one node less would save."""


def relax(demand: PodDemand, types: NodeTypes, at_least: int = 0, iterations: int = 100_000) -> Relaxation | None:
    """Solve the assignment relaxation; None if it was not solved within so many iterations of the simplex method."""
    import highspy

    shapes, resources = demand.requests.shape
    number = len(types.price)
    fits = fitting(demand, types)
    shape, type_ = np.nonzero(fits & (demand.counts > 0)[:, None])
    pairs = len(shape)
    scale = float(max(1, int(types.price.max(initial=1))))

    most = np.empty((shapes, number), dtype=np.int64)
    for s in range(shapes):
        most[s] = most_pods(types.capacity, demand.requests[s])
    capped = np.flatnonzero(demand.per_node[shape] < most[shape, type_])

    # Rows: demand of each shape; each resource of each type, in nodes; caps per node; the number of nodes.
    share = demand.requests[shape] / np.maximum(types.capacity[type_], 1)
    used_pair, used_resource = np.nonzero(share)
    cap_rows = shapes + number * resources + np.arange(len(capped))
    last = shapes + number * resources + len(capped)
    has_capacity = np.flatnonzero(types.capacity.ravel() > 0)
    row = np.concatenate(
        (
            shape,
            shapes + type_[used_pair] * resources + used_resource,
            cap_rows,
            shapes + has_capacity,
            cap_rows,
            np.full(number, last),
            np.arange(shapes),
        )
    )
    column = np.concatenate(
        (
            np.arange(pairs),
            used_pair,
            capped,
            pairs + has_capacity // resources,
            pairs + type_[capped],
            pairs + np.arange(number),
            pairs + number + np.arange(shapes),
        )
    )
    value = np.concatenate(
        (
            np.ones(pairs),
            share[used_pair, used_resource],
            np.ones(len(capped)),
            -np.ones(len(has_capacity)),
            -demand.per_node[shape[capped]].astype(np.float64),
            np.ones(number),
            np.ones(shapes),
        )
    )
    order = np.lexsort((row, column))
    columns = pairs + number + shapes
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, last + 1
    cost = types.price / scale
    unplaced = np.where(demand.counts > 0, _UNPLACED * max(1.0, float(cost.max(initial=1.0))), 0.0)
    lp.col_cost_ = np.concatenate((np.zeros(pairs), cost, unplaced))
    lp.col_lower_ = np.zeros(columns)
    limits = np.where(types.available < UNLIMITED, types.available.astype(np.float64), highspy.kHighsInf)
    lp.col_upper_ = np.concatenate((np.full(pairs, highspy.kHighsInf), limits, np.full(shapes, highspy.kHighsInf)))
    lower = np.full(last + 1, -highspy.kHighsInf)
    lower[:shapes] = demand.counts
    lower[last] = min(float(at_least), float(limits.sum()))
    upper = np.zeros(last + 1)
    upper[:shapes] = highspy.kHighsInf
    upper[last] = highspy.kHighsInf
    lp.row_lower_, lp.row_upper_ = lower, upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.searchsorted(column[order], np.arange(columns + 1)).astype(np.int32)
    lp.a_matrix_.index_ = row[order].astype(np.int32)
    lp.a_matrix_.value_ = value[order]

    solver = single_threaded_solver()
    solver.setOptionValue("simplex_iteration_limit", iterations)
    solver.passModel(lp)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    solution = solver.getSolution()
    amounts = np.array(solution.col_value)
    duals = np.array(solution.row_dual) * scale
    reduced = np.array(solution.col_dual) * scale
    pods = np.zeros((shapes, number))
    pods[shape, type_] = np.maximum(amounts[:pairs], 0)
    cap_price = np.zeros((shapes, number))
    cap_price[shape[capped], type_[capped]] = np.maximum(-duals[cap_rows], 0)
    return Relaxation(
        pods=pods,
        nodes=np.maximum(amounts[pairs : pairs + number], 0),
        share_price=np.maximum(-duals[shapes : shapes + number * resources], 0).reshape(number, resources),
        cap_price=cap_price,
        scarcity=np.where(types.available < UNLIMITED, np.maximum(-reduced[pairs : pairs + number], 0), 0),
        extra_node=np.maximum(duals[last:], 0),
    )


def single_threaded_solver() -> Highs:
    """A solver that always takes the same steps."""
    from highspy import Highs

    solver: Highs = Highs()  # type: ignore[no-untyped-call]
    for name, value in (("output_flag", False), ("threads", 1), ("parallel", "off"), ("solver", "simplex")):
        solver.setOptionValue(name, value)
    return solver


def certified_bound(
    demand: PodDemand, types: NodeTypes, relaxation: Relaxation, at_least: int = 0, clusters: Int64 | None = None
) -> int:
    """What these pods cost at least, in nano-dollars per hour, whatever the given prices are worth.

    Shapes that fit nowhere count nothing. `clusters` says which row of the relaxation stands for each shape.
    """
    fits = fitting(demand, types)
    placeable = np.flatnonzero(fits.any(axis=1) & (demand.counts > 0))
    dearest = int(types.price.max(initial=0))
    if not len(placeable) or not dearest:
        return 0
    # Amounts in coarser units where sums would not fit into 64 bits: requests are rounded down, capacity up.
    shifts = [max(0, int(most).bit_length() - 36) for most in types.capacity.max(axis=0)]
    requests = demand.requests[placeable] >> np.array(shifts)
    capacity = [[-(-int(c) >> shift) for c, shift in zip(row, shifts, strict=True)] for row in types.capacity]
    unit = 1 << max(0, 60 - dearest.bit_length())

    def integer(price: float) -> int:
        return int(min(max(price, 0.0), float(dearest)) * unit) if np.isfinite(price) else 0

    rows = clusters[placeable] if clusters is not None else placeable
    limited = types.available < UNLIMITED
    scarcity = [integer(p) if limit else 0 for p, limit in zip(relaxation.scarcity, limited, strict=True)]
    cheapest = min(int(price) for price in types.price) * unit
    at_least = min(at_least, sum(int(n) for n in types.available))
    extra_node = min(integer(float(relaxation.extra_node[0])), cheapest) if at_least else 0

    worth = np.full(len(placeable), 2**62, dtype=np.int64)
    for type_ in range(len(types.price)):
        budget = int(types.price[type_]) * unit + scarcity[type_] - extra_node
        prices = [
            integer(p) // c if c else 0
            for p, c in zip(relaxation.share_price[type_].tolist(), capacity[type_], strict=True)
        ]
        priced = np.flatnonzero(relaxation.cap_price[rows, type_] > 0)
        caps = {int(i): integer(float(relaxation.cap_price[rows[i], type_])) for i in priced}
        spent = sum(p * c for p, c in zip(prices, capacity[type_], strict=True))
        spent += sum(min(int(demand.per_node[placeable[i]]), UNLIMITED) * p for i, p in caps.items())
        if spent:
            # Scaled to what the node costs: down so that it holds, up so that nothing is given away.
            prices = [p * budget // spent for p in prices]
            caps = {i: p * budget // spent for i, p in caps.items()}
        value = (requests * np.array(prices, dtype=np.int64)).sum(axis=1)
        value[list(caps)] += np.array(list(caps.values()), dtype=np.int64)
        runs = fits[placeable, type_]
        worth[runs] = np.minimum(worth[runs], value[runs])
    total = sum(int(count) * int(value) for count, value in zip(demand.counts[placeable], worth, strict=True))
    total += at_least * extra_node - sum(int(n) * p for n, p in zip(types.available, scarcity, strict=True) if p)
    return max(0, total // unit)


def resource_prices(capacity: Int64, price: Int64, asked: list[int]) -> list[int]:
    """Whole prices of resources that make what is asked worth most while no type is worth more than its price.

    They only propose: who relies on them divides by what the most overvalued type is worth.
    """
    import highspy

    shares = np.maximum(capacity.max(axis=0), 1)
    solver = single_threaded_solver()
    resources, number = capacity.shape[1], len(price)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = resources, number
    lp.col_cost_ = -np.array([amount / int(share) for amount, share in zip(asked, shares, strict=True)])
    lp.col_lower_, lp.col_upper_ = np.zeros(resources), np.full(resources, highspy.kHighsInf)
    scale = float(max(1, int(price.max(initial=1))))
    lp.row_lower_, lp.row_upper_ = np.full(number, -highspy.kHighsInf), price / scale
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = (np.arange(number + 1) * resources).astype(np.int32)
    lp.a_matrix_.index_ = np.tile(np.arange(resources), number).astype(np.int32)
    lp.a_matrix_.value_ = (capacity / shares).reshape(-1)
    solver.passModel(lp)
    solver.run()
    found = np.maximum(np.array(solver.getSolution().col_value), 0) if number else np.zeros(resources)
    return [int(value * (1 << 60)) // int(share) for value, share in zip(found, shares, strict=True)]
