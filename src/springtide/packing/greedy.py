"""First fit with the largest shapes first, and the cheapest type for nodes whose pods are known.

Equal nodes are one group with a number, so a shape of 50,000 pods costs as much as a shape of one. The result is what
the other solvers must not exceed, and the last resort where they give up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

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
    renumbered,
    reordered,
    shape_order,
    undominated,
)


def greedy(demand: PodDemand, types: NodeTypes, open_nodes: OpenNodes | None = None, at_least: int = 0) -> Packing:
    """Pack the largest shapes first, each into the first nodes with room, then onto the type that is cheapest per pod.

    Nodes end on the cheapest type that holds their pods. At least `at_least` nodes are added, as far as so many are
    available, even if some of them stay empty.
    """
    problem = Prepared.of(demand, types, open_nodes)
    return problem.original(first_fit_decreasing(problem, at_least))


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A problem in total order, without dominated types, and without the pods that open nodes have room for."""

    demand: PodDemand
    types: NodeTypes
    shapes: Int64
    kept: Int64
    open_pods: list[tuple[int, int, int]]

    @classmethod
    def of(cls, demand: PodDemand, types: NodeTypes, open_nodes: OpenNodes | None) -> Prepared:
        """Order a problem and fill its open nodes."""
        kept = undominated(demand, types)
        shapes = shape_order(demand, types, kept)
        ordered, candidates = reordered(demand, types, shapes, kept, demand.counts)
        open_pods, counts = fill_open_nodes(ordered, reordered_nodes(open_nodes, shapes))
        return cls(replace(ordered, counts=counts), candidates, shapes, kept, open_pods)

    def packing(self, rows: list[GroupRow], left: Int64, method: str) -> Packing:
        """The packing with these nodes, each of them right-sized."""
        return finished(self.demand, self.types, rows, self.open_pods, left, method)

    def original(self, packing: Packing) -> Packing:
        """A packing in the numbers of the original problem."""
        return renumbered(packing, self.shapes, self.kept)


def first_fit_decreasing(problem: Prepared, at_least: int) -> Packing:
    """`greedy` for a prepared problem."""
    groups = GroupedNodes(problem.types)
    left = first_fit(problem.demand, problem.types, problem.demand.counts, groups)
    rows = groups.rows()
    available = problem.types.available.copy()
    for row in rows:
        available[row.type] -= row.nodes
    rows += empty_nodes(available, at_least - sum(row.nodes for row in rows))
    return problem.packing(rows, left, "greedy")


def reordered_nodes(open_nodes: OpenNodes | None, shapes: Int64) -> OpenNodes | None:
    """Open nodes for shapes in another order; None if there are none."""
    if open_nodes is None or not len(open_nodes.free):
        return None
    return OpenNodes(np.array(open_nodes.free, dtype=np.int64), open_nodes.room[shapes])


def fill_open_nodes(demand: PodDemand, open_nodes: OpenNodes | None) -> tuple[list[tuple[int, int, int]], Int64]:
    """Put pods into free room, first fit: (node, shape, pods), and how many of each shape remain."""
    counts = demand.counts.copy()
    placed: list[tuple[int, int, int]] = []
    if open_nodes is None:
        return placed, counts
    free = np.array(open_nodes.free)
    for shape in np.flatnonzero(counts):
        most = np.minimum(most_pods(free, demand.requests[shape]), open_nodes.room[shape])
        most = np.minimum(np.maximum(most, 0), min(int(demand.per_node[shape]), int(counts[shape])))
        nodes = np.flatnonzero(most)
        if not len(nodes):
            continue
        taken = taken_in_order(most[nodes], int(counts[shape]))
        nodes, taken = nodes[taken > 0], taken[taken > 0]
        free[nodes] -= taken[:, None] * demand.requests[shape]
        counts[shape] -= taken.sum()
        placed.extend((int(node), int(shape), int(n)) for node, n in zip(nodes, taken, strict=True))
    return placed, counts


def taken_in_order(most: Int64, count: int) -> Int64:
    """How much each takes of a count, the first as much as it can; `most` is at most `count` each."""
    before = np.cumsum(most) - most
    taken: Int64 = np.clip(count - before, 0, most)
    return taken


@dataclass(slots=True)
class GroupRow:
    """Equal nodes while they are filled."""

    type: int
    nodes: int
    pods: dict[int, int]


def empty_nodes(available: Int64, number: int) -> list[GroupRow]:
    """So many nodes without pods, as far as they are available, the cheapest first."""
    rows = []
    for type_, most in enumerate(available.tolist()):
        if min(number, most) > 0:
            rows.append(GroupRow(type_, min(number, most), {}))
            number -= rows[-1].nodes
    return rows


@dataclass(slots=True)
class GroupedNodes:
    """Groups of equal nodes with their free room; a group is split when only some of its nodes take a pod."""

    types: NodeTypes
    size: int = 0
    type: Int64 = field(init=False)
    nodes: Int64 = field(init=False)
    free: Int64 = field(init=False)
    """[resources, groups]"""
    pods: list[dict[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.type = np.zeros(64, dtype=np.int64)
        self.nodes = np.zeros(64, dtype=np.int64)
        self.free = np.zeros((self.types.capacity.shape[1], 64), dtype=np.int64)

    def add(self, type: int, nodes: int, free: Int64, pods: dict[int, int]) -> None:  # noqa: A002
        """Append a group."""
        if self.size == len(self.type):
            self.type = np.concatenate((self.type, np.zeros_like(self.type)))
            self.nodes = np.concatenate((self.nodes, np.zeros_like(self.nodes)))
            self.free = np.concatenate((self.free, np.zeros_like(self.free)), axis=1)
        self.type[self.size], self.nodes[self.size], self.free[:, self.size] = type, nodes, free
        self.pods.append(pods)
        self.size += 1

    def put(self, group: int, nodes: int, shape: int, pods: int, request: Int64) -> None:
        """Put so many pods on each of so many nodes of a group; its other nodes become a group of their own."""
        others = int(self.nodes[group]) - nodes
        if others:
            self.add(int(self.type[group]), others, self.free[:, group].copy(), dict(self.pods[group]))
            self.nodes[group] = nodes
        self.free[:, group] -= pods * request
        self.pods[group][shape] = self.pods[group].get(shape, 0) + pods

    def rows(self) -> list[GroupRow]:
        """The groups without their free room."""
        return [GroupRow(int(self.type[i]), int(self.nodes[i]), self.pods[i]) for i in range(self.size)]


def first_fit(demand: PodDemand, types: NodeTypes, counts: Int64, groups: GroupedNodes) -> Int64:
    """Pack shapes in order into groups and new groups; what remains of each shape."""
    fits = fitting(demand, types)
    available = types.available.copy()
    np.subtract.at(available, groups.type[: groups.size], groups.nodes[: groups.size])
    inside = {shape for pods in groups.pods for shape in pods}
    left = counts.copy()
    for shape in np.flatnonzero(left).tolist():
        request, cap = demand.requests[shape], int(demand.per_node[shape])
        remaining = _into_groups(groups, fits[shape], shape, request, cap, int(left[shape]), shape in inside)
        if not remaining:
            left[shape] = 0
            continue
        most = np.where(fits[shape], np.minimum(most_pods(types.capacity, request), cap), 0)
        while remaining:
            type_ = _cheapest_per_pod(types.price, np.where(available > 0, np.minimum(most, remaining), 0))
            if type_ is None:
                break
            each = min(int(most[type_]), remaining)
            nodes = min(remaining // each, int(available[type_]))
            groups.add(type_, nodes, types.capacity[type_] - each * request, {shape: each})
            remaining -= nodes * each
            available[type_] -= nodes
        left[shape] = remaining
    return left


def _into_groups(
    groups: GroupedNodes, fits: Bool, shape: int, request: Int64, cap: int, count: int, inside: bool
) -> int:
    """Put pods into groups in order and return how many did not fit; `inside` if groups may have pods of the shape."""
    size = groups.size
    has_room = fits[groups.type[:size]]
    for resource in np.flatnonzero(request):
        has_room &= groups.free[resource, :size] >= request[resource]
    if inside and cap < UNLIMITED:
        has_room &= np.array([pods.get(shape, 0) < cap for pods in groups.pods], dtype=np.bool_)
    # Every group takes at least one pod.
    first = np.flatnonzero(has_room)[:count]
    most = np.minimum(most_pods(groups.free[:, first].T, request), min(cap, count))
    if inside and cap < UNLIMITED:
        most = np.minimum(most, np.array([cap - groups.pods[i].get(shape, 0) for i in first], dtype=np.int64))
    for group, each in zip(first.tolist(), most.tolist(), strict=True):
        nodes = int(groups.nodes[group])
        if not count:
            break
        whole = min(count // each, nodes)
        if whole:
            groups.put(group, whole, shape, each, request)
            count -= whole * each
        if whole < nodes and count:
            # The rest goes to one more node: of the nodes that were split off, or of the group itself.
            groups.put(groups.size - 1 if whole else group, 1, shape, count, request)
            count = 0
    return count


def _cheapest_per_pod(price: Int64, most: Int64) -> int | None:
    if not most.any():
        return None
    shift = max(0, 62 - int(price.max()).bit_length())
    each = np.where(most > 0, (price << shift) // np.maximum(most, 1), np.iinfo(np.int64).max)
    return int(each.argmin())


def finished(
    demand: PodDemand,
    types: NodeTypes,
    rows: list[GroupRow],
    open_pods: list[tuple[int, int, int]],
    left: Int64,
    method: str,
) -> Packing:
    """Right-size the nodes, merge equal ones, and add up what they cost."""
    merged: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
    for row in rows:
        if row.nodes:
            key = (row.type, tuple(sorted((s, n) for s, n in row.pods.items() if n)))
            merged[key] = merged.get(key, 0) + row.nodes
    resized: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
    for (_, pods), type_, nodes in right_sized(demand, types, list(merged.items())):
        resized[type_, pods] = resized.get((type_, pods), 0) + nodes
    groups = tuple(NodeGroup(type_, nodes, pods) for (type_, pods), nodes in sorted(resized.items()))
    return Packing(
        groups=groups,
        open_pods=tuple(sorted(open_pods)),
        left=tuple((int(s), int(left[s])) for s in np.flatnonzero(left)),
        cost=sum(int(types.price[group.type]) * group.nodes for group in groups),
        method=method,
    )


_Contents = tuple[int, tuple[tuple[int, int], ...]]


def right_sized(
    demand: PodDemand, types: NodeTypes, contents: list[tuple[_Contents, int]]
) -> list[tuple[_Contents, int, int]]:
    """Give nodes with known pods the cheapest types that hold them: (contents, type, nodes).

    Types without limit first; then the nodes that save most move to types of which few are available. A node without
    pods keeps its type.
    """
    if not contents:
        return []
    number = np.array([nodes for _, nodes in contents], dtype=np.int64)
    now = np.array([type_ for (type_, _), _ in contents], dtype=np.int64)
    pods = [pods for (_, pods), _ in contents]
    owner = np.repeat(np.arange(len(pods)), [len(row) for row in pods])
    flat = np.array([pair for row in pods for pair in row], dtype=np.int64).reshape(-1, 2)
    used = np.zeros((len(pods), demand.requests.shape[1]), dtype=np.int64)
    np.add.at(used, owner, demand.requests[flat[:, 0]] * flat[:, 1:])
    holds = np.ones((len(pods), len(types.price)), dtype=bool)
    for resource in range(used.shape[1]):
        holds &= (used[:, None, resource] <= types.capacity[None, :, resource]) | (used[:, resource] == 0)[:, None]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    if len(starts):
        holds[owner[starts]] &= np.logical_and.reduceat(demand.allowed[flat[:, 0]], starts, axis=0)
    empty = np.ones(len(pods), dtype=bool)
    empty[owner] = False
    holds[empty] = False
    # Types are in order of price, so the first that holds is the cheapest.
    limited = types.available < UNLIMITED
    unlimited = holds & ~limited[None, :]
    first = unlimited.argmax(axis=1)
    cheaper = unlimited.any(axis=1) & (types.price[first] < types.price[now])
    now = np.where(cheaper, first, now)
    available = types.available.copy()
    np.subtract.at(available, now, number)
    result = [(i, int(now[i]), int(number[i])) for i in range(len(pods))]
    for type_ in np.flatnonzero(limited):
        result = _moved_to_limited(int(type_), result, holds, types.price, available)
    return [(contents[i][0], type_, nodes) for i, type_, nodes in result if nodes]


def _moved_to_limited(
    type_: int, rows: list[tuple[int, int, int]], holds: Bool, price: Int64, available: Int64
) -> list[tuple[int, int, int]]:
    room = int(available[type_])
    if room <= 0:
        return rows
    savings = [(int(price[type_] - price[t]), i, t, n) for i, t, n in rows if holds[i, type_]]
    moved: dict[tuple[int, int], int] = {}
    for saving, i, t, n in sorted(savings):
        if saving >= 0 or not room:
            break
        moved[i, t] = min(n, room)
        room -= moved[i, t]
        available[t] += moved[i, t]
    available[type_] = room
    result = []
    for i, t, n in rows:
        m = moved.get((i, t), 0)
        result += [(i, type_, m), (i, t, n - m)] if m else [(i, t, n)]
    return result
