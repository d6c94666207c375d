"""Bin packing in numbers: pods of shapes, nodes of types, and packings as groups of equal nodes.

The solvers of this package (`greedy`, `assignment`, `patterns`, `bounds`) read and return only what is declared here.
All amounts are int64, one column per resource; prices are nano-dollars per hour. A constraint that counts pods of
several shapes on one node (anti-affinity, host ports, attach limits) is one more column: its capacity is the limit, and
each pod of these shapes requests 1 of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

UNLIMITED = 2**62
"""A `per_node` or `available` without a limit."""

_EVERY_REQUEST_FITS = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class PodDemand:
    """How many pods of each shape are to be packed, and what limits them."""

    requests: Int64
    """[shapes, resources]: what one pod takes; the column of pods is 1."""
    counts: Int64
    """[shapes]: how many pods."""
    per_node: Int64
    """[shapes]: at most so many pods of the shape on one node."""
    allowed: Bool
    """[shapes, types]: whether the shape may run on the type, its resources apart."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeTypes:
    """The types of nodes that can be added."""

    capacity: Int64
    """[types, resources]: what pods can use; allocatable minus the overhead of DaemonSets."""
    price: Int64
    """[types]: nano-dollars per hour of one node."""
    available: Int64
    """[types]: at most so many nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenNodes:
    """Nodes that exist or are planned already: their free room costs nothing."""

    free: Int64
    """[nodes, resources]"""
    room: Int64
    """[shapes, nodes]: at most so many pods of the shape on the node; 0 where it may not run."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Equal nodes: the same type and the same pods on each."""

    type: int
    nodes: int
    pods: tuple[tuple[int, int], ...]
    """(shape, pods on each node), by shape."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Which nodes to add, and what runs on them."""

    groups: tuple[NodeGroup, ...]
    open_pods: tuple[tuple[int, int, int], ...]
    """(open node, shape, pods)"""
    left: tuple[tuple[int, int], ...]
    """(shape, pods) that could not be placed."""
    cost: int
    method: str

    @property
    def nodes(self) -> int:
        """How many nodes are added."""
        return sum(group.nodes for group in self.groups)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Lower is better: pods that are left, then cost, then nodes."""
        return sum(pods for _, pods in self.left), self.cost, self.nodes


def fitting(demand: PodDemand, types: NodeTypes) -> Bool:
    """[shapes, types]: whether one pod of the shape fits on an empty node of the type and may run there."""
    result = demand.allowed & (types.available > 0)[None, :] & (demand.per_node > 0)[:, None]
    for resource in range(demand.requests.shape[1]):
        asked = demand.requests[:, resource]
        # A request of 0 fits even where overhead has taken more than there is.
        result &= (asked[:, None] <= types.capacity[None, :, resource]) | (asked == 0)[:, None]
    return result


def most_pods(free: Int64, request: Int64) -> Int64:
    """How many pods with this request fit into each row of free amounts."""
    result = np.full(len(free), _EVERY_REQUEST_FITS, dtype=np.int64)
    for resource in np.flatnonzero(request):
        np.minimum(result, free[:, resource] // request[resource], out=result)
    return np.maximum(result, 0)


def undominated(demand: PodDemand, types: NodeTypes) -> Int64:
    """Types that can be part of a cheapest packing, in a total order that does not depend on the input's order.

    A type is left out if another one has at least its capacity, costs no more, runs at least the same shapes and is
    there without limit; and if no shape fits on it.
    """
    fits = fitting(demand, types)
    rows = np.unique(np.packbits(fits, axis=1), axis=0)
    classes = np.unpackbits(rows, axis=1, count=fits.shape[1])
    weight = fits.sum(axis=0)
    # Types that differ only in the shapes that they run are ordered by what these request; the sums may wrap around.
    by_requests = fits.T.astype(np.int64) @ (demand.requests + demand.counts[:, None])
    keys = [*by_requests.T, weight, np.minimum(types.available, UNLIMITED), *types.capacity.T[::-1], types.price]
    order = np.lexsort(keys)
    order = order[weight[order] > 0]
    capacity, price = np.maximum(types.capacity[order], 0), types.price[order]
    classes = classes[:, order]
    # Counts of shapes that only the first of two types runs; below 2**24 they are exact. Small products in integers:
    # the first product of floats starts the threads of a library.
    kind = np.float32 if classes.size * len(order) > 1_000_000 else np.int32
    only_first = classes.T.astype(kind) @ (1 - classes).astype(kind)
    dominated = only_first == 0
    for resource in range(capacity.shape[1]):
        dominated &= capacity[:, None, resource] <= capacity[None, :, resource]
    dominated &= (price[:, None] >= price[None, :]) & (types.available[order] >= UNLIMITED)[None, :]
    # Of types that dominate each other the first stays.
    mutual = dominated & dominated.T & (types.available[order] >= UNLIMITED)[:, None]
    dominated &= ~(mutual & np.tri(len(order), dtype=bool).T)
    np.fill_diagonal(dominated, False)
    kept: Int64 = order[~dominated.any(axis=1)]
    return kept


def shape_order(demand: PodDemand, types: NodeTypes, kept: Int64) -> Int64:
    """Shapes from large to small, in a total order that does not depend on the input's order.

    Large is what takes a large share of the largest node in its most wanted resource.
    """
    shares = np.zeros(len(demand.counts), dtype=np.int64)
    for resource in range(demand.requests.shape[1]):
        asked = demand.requests[:, resource]
        most = int(types.capacity[kept, resource].max(initial=0))
        shift = max(0, max(most, int(asked.max(initial=0))).bit_length() - 40)
        shares = np.maximum(shares, ((asked >> shift) << 20) // max(1, most >> shift))
    limits = np.packbits(demand.allowed[:, kept], axis=1)
    keys = [-demand.counts, *limits.T[::-1], demand.per_node, *(-demand.requests.T[::-1]), -shares]
    order: Int64 = np.lexsort(keys)
    return order


def reordered(
    demand: PodDemand, types: NodeTypes, shapes: Int64, kept: Int64, counts: Int64
) -> tuple[PodDemand, NodeTypes]:
    """The same problem with these shapes and types, in this order, and these counts of the original shapes."""
    return (
        PodDemand(
            requests=np.ascontiguousarray(demand.requests[shapes]),
            counts=counts[shapes],
            per_node=np.minimum(demand.per_node[shapes], UNLIMITED),
            allowed=np.ascontiguousarray(demand.allowed[np.ix_(shapes, kept)]),
        ),
        NodeTypes(
            capacity=np.ascontiguousarray(np.maximum(types.capacity[kept], 0)),
            price=types.price[kept],
            available=np.minimum(types.available[kept], UNLIMITED),
        ),
    )


def renumbered(packing: Packing, shapes: Int64, kept: Int64) -> Packing:
    """A packing of a reordered problem in the numbers of the original one."""
    groups = [
        NodeGroup(int(kept[group.type]), group.nodes, tuple(sorted((int(shapes[s]), n) for s, n in group.pods)))
        for group in packing.groups
    ]
    return replace(
        packing,
        groups=tuple(groups),
        open_pods=tuple(sorted((node, int(shapes[s]), n) for node, s, n in packing.open_pods)),
        left=tuple(sorted((int(shapes[s]), n) for s, n in packing.left)),
    )
