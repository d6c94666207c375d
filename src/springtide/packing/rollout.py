"""Rollouts: what a plan costs when kube-scheduler, which does not know the plan, binds the pods.

All planned nodes are ready at once beside the existing ones, no pod is nominated for a node, and pods are bound in a
random order, by the default scores. These spread pods evenly, so that some of the large ones find no node with enough
room: they are stranded. For these nodes are planned again, and the pods are bound again. The result is the worst of a
few seeds. Whichever plan has the cheapest rollout is the best where the autoscaler cannot nominate pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import numpy.typing as npt

from springtide.packing.catalogue import HOSTNAME_LABEL
from springtide.packing.columns import MEMORY, Amounts, AnyScalar, Codes, Mask, NodeColumns, NodeRule, Scope, View
from springtide.packing.offerings import Offerings
from springtide.packing.planning import Plan, Strategy, plan
from springtide.packing.scoring import ScoreBoard, defaults_of
from springtide.packing.shapes import Shape
from springtide.packing.snapshot import Snapshot
from springtide.packing.space import Ask, Space

SEEDS = (0, 1, 2)
_ROUNDS = 3
"""How often nodes are planned for stranded pods; what is stranded then counts as planned."""
_FEW = 50_000_000
_MOST = 250_000_000
"""Pods times nodes: above the first number only one seed is tried, above the second none."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What becomes of a plan without nominations."""

    cost_per_hour: int
    """Nano-dollars per hour of the planned nodes, and of those that stranded pods need besides."""
    stranded: int
    """How many pods find no room on the nodes of the plan."""
    note: str = ""
    """Why less was computed than usual; empty: nothing was left out."""


def rollout(of: Plan, *, seeds: Sequence[int] = SEEDS) -> Rollout:
    """Return cost and stranded pods in the worst of the rollouts with these seeds."""
    asks = _asks(of)
    work = sum(ask.count for ask in asks) * (of.space.nodes.count + of.nodes)
    if work > _MOST:
        return Rollout(of.cost, 0, "the plan is too large to be rolled out")
    note = ""
    if work > _FEW and len(seeds) > 1:
        seeds, note = seeds[:1], "the plan is large: one order of the pods was tried"
    found = [_rolled_out(of, asks, Random(seed), _ROUNDS) for seed in seeds]  # noqa: S311 - repeatable, no secret
    return Rollout(max(cost for cost, _ in found), max(stranded for _, stranded in found), note)


def plan_without_nominations(
    snapshot: Snapshot,
    asks: Sequence[Ask],
    offerings: Offerings,
    *,
    without: Sequence[str] = (),
    seeds: Sequence[int] = SEEDS,
) -> Plan:
    """Return the plan with the cheapest rollout among those of several strategies, with its rollout.

    For clusters where pods cannot be nominated for nodes: there, a plan that fills its nodes to the last is not the
    cheapest one, because the pods will not go where it has put them.
    """
    plans = [plan(snapshot, asks, offerings, strategy=strategy, without=without) for strategy in _STRATEGIES]
    best, found = cheapest_after_rollout(plans, seeds=seeds)
    return replace(best, rollout=found)


_STRATEGIES: tuple[Strategy, ...] = ("least-cost", "least-nodes", "least-waste")


def cheapest_after_rollout(plans: Iterable[Plan], *, seeds: Sequence[int] = SEEDS) -> tuple[Plan, Rollout]:
    """Return the plan that places the most pods at the least cost after its rollout; the first of equals."""
    rolled = [(each, rollout(each, seeds=seeds)) for each in plans]
    return min(rolled, key=lambda each: (sum(one.ask.count for one in each[0].unplaced), each[1].cost_per_hour))


def _asks(of: Plan) -> list[Ask]:
    """Return all pods that the plan has placed, on existing and on planned nodes."""
    counts: dict[Shape, int] = {}
    for step in of.placed:
        counts[step.shape] = counts.get(step.shape, 0) + step.pods
    for group in of.groups:
        for shape, pods in group.pods:
            counts[shape] = counts.get(shape, 0) + pods * group.nodes
    ordered = sorted(counts, key=lambda shape: shape.order)
    return [Ask(shape, counts[shape]) for shape in ordered]


def _rolled_out(of: Plan, asks: Sequence[Ask], random: Random, rounds: int) -> tuple[int, int]:
    """Return the cost after a rollout, and how many pods were stranded first."""
    left = bind(board_of(of), asks, random)
    stranded = sum(ask.count for ask in left)
    if not stranded:
        return of.cost, 0
    # Existing nodes have no room for these: they were tried. Their pods do not count in constraints here.
    more = plan(of.space.snapshot, left, of.offerings, strategy=of.strategy, without=of.space.names())
    if rounds <= 1:
        return of.cost + more.cost, stranded
    further, _ = _rolled_out(more, _asks(more), random, rounds - 1)
    return of.cost + further, stranded


def bind(board: ScoreBoard, asks: Iterable[Ask], random: Random) -> list[Ask]:
    """Bind pods one after the other as kube-scheduler does, in a random order by priority; gives those stranded."""
    by_priority: dict[int, list[Shape]] = {}
    left: dict[Shape, int] = {}
    for ask in asks:
        by_priority.setdefault(ask.shape.priority, []).extend([ask.shape] * ask.count)
        left[ask.shape] = left.get(ask.shape, 0) + ask.count
    stranded: dict[Shape, int] = {}
    for _, pods in sorted(by_priority.items(), reverse=True):
        random.shuffle(pods)
        for shape in pods:
            rows = board.best(shape)
            if len(rows):
                board.add(shape, int(rows[int(random.random() * len(rows))]))
            else:
                stranded[shape] = stranded.get(shape, 0) + 1
            left[shape] -= 1
            if not left[shape]:
                board.forget(shape)
    return [Ask(shape, count) for shape, count in stranded.items()]


def board_of(of: Plan) -> ScoreBoard:
    """Return the existing and the planned nodes of a plan, ready and without the pods of the plan."""
    space, offerings = of.space, of.offerings
    offering = np.repeat(
        np.array([group.offering for group in of.groups], np.int64), [group.nodes for group in of.groups]
    )
    existing, width = space.nodes.count, len(space.resources)
    nodes = _ReadyNodes(space, offerings, offering)
    allocatable = np.zeros((width, nodes.count), np.int64)
    allocatable[:, :existing] = _padded(space.snapshot.nodes.allocatable[:, space.order], width)
    capacity = np.array([_whole(space, offerings, number) for number in dict.fromkeys(offering.tolist())], np.int64)
    position = {number: row for row, number in enumerate(dict.fromkeys(offering.tolist()))}
    for node, number in enumerate(offering.tolist()):
        allocatable[: MEMORY + 1, existing + node] = capacity[position[number]]
    free = np.zeros((width, nodes.count), np.int64)
    free[:, :existing] = _padded(space.free, width)
    free[:, existing:] = _padded(offerings.columns.allocatable[:, offering], width)
    defaults = np.zeros((MEMORY + 1, nodes.count), np.int64)
    defaults[:, :existing] = defaults_of(space)

    def refused(shape: Shape) -> Mask | None:
        taken = offerings.taken_ports(shape) if shape.ports else None
        if taken is None:
            return None
        return np.concatenate([np.zeros(existing, np.bool_), taken[offering]])

    board = ScoreBoard(
        nodes, allocatable, free, defaults, space.counters.fork(), space.resources.names, refused=refused
    )
    for step in space.steps:
        board.add(step.shape, step.node, -step.pods)
    return board


def _whole(space: Space, offerings: Offerings, number: int) -> list[int]:
    """Return cpu and memory of a planned node, the part that its DaemonSets will take included."""
    amounts = space.resources.amounts(offerings.types[offerings.type[number]].allocatable)
    return [amounts.get(column, 0) for column in range(MEMORY + 1)]


def _padded(amounts: Amounts, width: int) -> Amounts:
    found = np.zeros((width, amounts.shape[1]), np.int64)
    found[: min(width, len(amounts))] = amounts[:width]
    return found


class _ReadyNodes(View):
    """Existing nodes, followed by planned ones, each made of an offering."""

    def __init__(self, space: Space, offerings: Offerings, offering: Amounts) -> None:
        super().__init__(space.snapshot.nodes, space.order)
        self._existing = space.nodes
        self._offered = View(offerings.columns, offering)
        self._first = space.snapshot.nodes.count
        self._planned = len(offering)
        planned = np.arange(self._first, self._first + self._planned, dtype=np.int32)
        self._positions = np.concatenate([self._existing.positions(), planned])
        code = space.snapshot.labels.code
        self._hosts = np.array([code(HOSTNAME_LABEL, f"\0new-{number}") for number in range(self._planned)], np.int32)

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return self._existing.count + self._planned

    def codes(self, key: str) -> Codes:
        """Return the codes of a label; -1 where it is absent."""
        planned = self._hosts if key == HOSTNAME_LABEL else self._offered.codes(key)
        return self._joined(("codes", key), self._existing.codes(key), planned)

    def allowed_by(self, rule: NodeRule) -> Mask:
        """Return the nodes that an interned rule allows."""
        return self._joined(rule.number, self._existing.allowed_by(rule), self._offered.allowed_by(rule))

    def in_scope(self, scope: Scope) -> Mask:
        """Return the nodes in the scope of a spread constraint."""
        return self._joined(scope, self._existing.in_scope(scope), self._offered.in_scope(scope))

    def derived(self, key: object, compute: Callable[[NodeColumns], npt.NDArray[AnyScalar]]) -> npt.NDArray[AnyScalar]:
        """Return what is computed of the labels or taints of all nodes."""
        return self._joined(key, self._existing.derived(key, compute), self._offered.derived(key, compute))

    def positions(self) -> Codes:
        """Return a number for each node that no other node has."""
        return self._positions

    @property
    def last_position(self) -> int:
        """One more than the highest of `positions`."""
        return self._first + self._planned

    def _joined(
        self, key: object, existing: npt.NDArray[AnyScalar], planned: npt.NDArray[AnyScalar]
    ) -> npt.NDArray[AnyScalar]:
        return self._kept(key, lambda: np.concatenate([existing, planned]))
