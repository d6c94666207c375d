"""Plans: which nodes to add for pods that have no room, at what cost, and why some pods cannot be placed.

`plan` tries several methods on the same demand and returns the best result for a strategy. Pods whose shapes read
counters are placed by `growth`, one decision after the other; all others are packed together by the solvers of
`patterns`, also into the room that the first leave. Floating-point solutions only propose: every pod is placed, and
every limit is kept, in whole numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from springtide.apis.core.pod_record import HostPort
from springtide.packing.bounds import resource_prices
from springtide.packing.columns import CPU, MEMORY, Amounts, Mask
from springtide.packing.dealing import Deal, Hand, deal
from springtide.packing.filling import FillingProblem, fill
from springtide.packing.greedy import greedy
from springtide.packing.growth import Growth
from springtide.packing.offerings import Offerings
from springtide.packing.patterns import best_of
from springtide.packing.problem import UNLIMITED, NodeGroup, NodeTypes, PodDemand
from springtide.packing.reasons import Explainer, of_group
from springtide.packing.replanning import Basis, Layout, adjusted, is_adjustable, is_unchanged, layout_of
from springtide.packing.shapes import Shape
from springtide.packing.snapshot import Snapshot
from springtide.packing.space import Ask, Space, Step, in_order, merged

if TYPE_CHECKING:
    from springtide.packing.rollout import Rollout

Strategy = Literal["least-cost", "least-waste", "least-nodes", "most-pods", "priority"]
STRATEGIES: tuple[Strategy, ...] = ("least-cost", "least-waste", "least-nodes", "most-pods", "priority")


@dataclass(frozen=True, slots=True)
class PlannedNodes:
    """Equal nodes to add."""

    offering: int
    """The number of the offering."""
    nodes: int
    pods: tuple[tuple[Shape, int], ...]
    """Shapes, and how many pods of each are on every one of the nodes."""
    price: int
    """Nano-dollars per hour of one node."""

    def single(self) -> PlannedNodes:
        """Return one of the nodes."""
        return replace(self, nodes=1)


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Pods that no node can take."""

    ask: Ask
    because: str = ""
    reasons: tuple[tuple[str, int], ...] = ()
    """Predicates, and how many instance types each refuses."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to add for a demand."""

    strategy: Strategy
    method: str
    offerings: Offerings
    space: Space
    """The existing nodes with what is placed on them."""
    placed: tuple[Step, ...] = ()
    """Pods on existing nodes, in the order in which they may be bound; `node` is a position in the space's order."""
    groups: tuple[PlannedNodes, ...] = ()
    """Planned nodes. They are numbered from 0 in this order, each group with as many numbers as it has nodes."""
    steps: tuple[Step, ...] = ()
    """Pods whose order matters, on planned nodes, in the order in which they may be bound, before all others."""
    unplaced: tuple[Unplaced, ...] = ()
    cost: int = 0
    """Nano-dollars per hour of the planned nodes."""
    lower_bound: int = 0
    """What any plan for the pods on planned nodes costs at least."""
    seconds: float = 0.0
    rollout: Rollout | None = None
    """What becomes of it without nominations; `springtide.packing.rollout` computes it for callers that want it."""
    growth: Growth | None = field(default=None, repr=False)
    """The limits and counters that decided about the last pods, if some were placed one decision after the other."""
    prices: ResourcePrices | None = field(default=None, repr=False)
    basis: Basis | None = field(default=None, repr=False)
    offerings_asked: Offerings | None = field(default=None, repr=False)
    layout: Layout | None = field(default=None, repr=False)

    @property
    def nodes(self) -> int:
        """How many nodes are added."""
        return sum(group.nodes for group in self.groups)

    @property
    def waste(self) -> int:
        """How much of the planned nodes is not requested: thousandths of the cpu and of the memory, added."""
        free, whole = np.zeros(2, np.int64), np.zeros(2, np.int64)
        for group in self.groups:
            allocatable = self.offerings.columns.allocatable[[CPU, MEMORY], group.offering] >> [0, 20]
            taken = sum(
                np.array([shape.amounts.get(CPU, 0), shape.amounts.get(MEMORY, 0) >> 20]) * pods
                for shape, pods in group.pods
            )
            free += (allocatable - taken) * group.nodes
            whole += allocatable * group.nodes
        return int((free * 1000 // np.maximum(whole, 1)).sum())

    def sequence(self) -> Iterator[Step]:
        """Yield the pods on planned nodes in an order in which kube-scheduler accepts each; nodes by their number."""
        yield from self.steps
        placed: dict[tuple[int, int], int] = {}
        for step in self.steps:
            mark = (step.node, step.shape.number)
            placed[mark] = placed.get(mark, 0) + step.pods
        first = 0
        for group in self.groups:
            for node in range(first, first + group.nodes):
                for shape, pods in group.pods:
                    rest = pods - placed.get((node, shape.number), 0)
                    if rest > 0:
                        yield Step(shape, node, rest)
            first += group.nodes


def plan(
    snapshot: Snapshot,
    asks: Sequence[Ask],
    offerings: Offerings,
    *,
    strategy: Strategy = "least-cost",
    without: Iterable[str] = (),
    previous: Plan | None = None,
    monotonic: Callable[[], float] = time.perf_counter,
) -> Plan:
    """Plan nodes for pods: first room on existing nodes, then the best nodes to add.

    Nodes of `without` are regarded as gone; their pods are asked for by the caller (`Snapshot.pods_on`). With
    `previous`, a plan of the same snapshot and offerings, what has not changed since is not planned again.
    """
    began = monotonic()
    snapshot.flush()
    offerings.widen()
    asks = _merged_asks(asks)
    gone = tuple(without)
    given, basis = offerings, Basis(snapshot.version, snapshot.nodes.version, snapshot.shapes, tuple(asks))
    if previous is not None and previous.strategy == strategy and not gone:
        again = previous if is_unchanged(previous, snapshot, asks, given) else adjusted(previous, snapshot, asks, given)
        if again is not None:
            bound = min(again.lower_bound, again.cost)
            fresh = previous.basis.fresh if previous.basis is not None else basis.fresh
            return replace(again, basis=replace(basis, fresh=fresh), lower_bound=bound, seconds=monotonic() - began)
    if strategy != "least-cost":
        offerings = offerings.preferring(strategy, [ask.shape for ask in asks])
    dropped: dict[str, str] = {}
    while True:
        kept = [ask for ask in asks if ask.group not in dropped]
        space = snapshot.fork(without=gone)
        best = _best(space, space.place(kept), offerings, strategy)
        unplaced = _attributed(kept, best)
        if unplaced and len({_tier(ask) for ask in kept}) > 1:
            tiered = _tier_by_tier(snapshot.fork(without=gone), kept, offerings, strategy)
            others = _attributed(kept, tiered)
            if _missing_by_tier(others) < _missing_by_tier(unplaced):
                best, unplaced = tiered, others
        failed = {each.ask.group: each for each in unplaced if each.ask.group}
        if not failed:
            break
        # All or nothing: of the groups that failed the one that is placed last gives way, and the others try again.
        group = max(failed)
        asked = sum(ask.count for ask in kept if ask.group == group)
        missing = sum(each.ask.count for each in unplaced if each.ask.group == group)
        dropped[group] = of_group(asked, asked - missing, failed[group].because)
    unplaced += [Unplaced(ask, dropped[ask.group]) for ask in in_order(asks) if ask.group in dropped]
    size = sum(shape.size * pods * group.nodes for group in best.groups for shape, pods in group.pods)
    basis = replace(basis, fresh=(best.cost, size))
    return replace(
        best,
        unplaced=tuple(unplaced),
        layout=layout_of(best, best.space.nodes.count) if is_adjustable(best) else None,
        basis=None if gone else basis,
        offerings_asked=given,
        seconds=monotonic() - began,
    )


def _tier(ask: Ask) -> tuple[bool, int]:
    """Rank asks by who goes first: real pods before virtual ones, high priority before low."""
    return ask.virtual, -ask.shape.priority


def _missing_by_tier(unplaced: Iterable[Unplaced]) -> list[tuple[tuple[bool, int], int]]:
    """Return how many pods of each tier have no place, so that lists compare as plans do: worse ones are greater."""
    missing: dict[tuple[bool, int], int] = {}
    for each in unplaced:
        missing[_tier(each.ask)] = missing.get(_tier(each.ask), 0) + each.ask.count
    # A pod of a high tier counts more than all pods of lower ones.
    return [((not tier[0], -tier[1]), count) for tier, count in sorted(missing.items())]


def _tier_by_tier(space: Space, asks: Sequence[Ask], offerings: Offerings, strategy: Strategy) -> Plan:
    """Plan for the first tier alone, and place the others beside it: where limits bind, these must not take room."""
    tiers: dict[tuple[bool, int], list[Ask]] = {}
    for ask in asks:
        tiers.setdefault(_tier(ask), []).append(ask)
    (_, first), *others = sorted(tiers.items(), key=lambda tier: tier[0])
    best = _best(space, space.place(first), offerings, strategy)
    growth = Growth(space, best.offerings, strict=True)
    growth.adopt([(group.offering, group.nodes) for group in best.groups], best.sequence())
    # From here on pods on existing and on planned nodes see each other.
    space.counters = growth.counters
    unplaced = [each.ask for each in best.unplaced]
    for _, tier in others:
        # Pods on existing nodes are bound before those on planned nodes: they must not need these, nor be counted by
        # them, which have been placed without them.
        counted = _read_by(growth)
        free = [
            ask
            for ask in tier
            if not (ask.shape.constraints.spreads or ask.shape.constraints.affinity)
            and counted.isdisjoint(ask.shape.bumps)
        ]
        unplaced += growth.place([*space.place(free), *(ask for ask in tier if ask not in free)])
    growth.right_size()
    together = _plan_of("tier by tier", growth, unplaced, best.lower_bound)
    return replace(together, strategy=strategy, placed=tuple(merged(space.steps)))


def _read_by(growth: Growth) -> set[int]:
    """Return the counters that the affinities and the spreads of pods on planned nodes read."""
    shapes = {step.shape.number: step.shape for step in growth.steps}
    return {
        growth.counters.definitions.find(key)
        for shape in shapes.values()
        for key in (*shape.constraints.affinity, *(each.counter for each in shape.constraints.spreads))
    }


def _attributed(asks: Sequence[Ask], found: Plan) -> list[Unplaced]:
    """Return which asks the pods without a place belong to: of those with the same shape the ones placed last."""
    missing: dict[int, int] = {}
    for each in found.unplaced:
        missing[each.ask.shape.number] = missing.get(each.ask.shape.number, 0) + each.ask.count
    if not missing:
        return []
    explainer = Explainer(found.space, found.offerings, found.growth)
    unplaced = []
    for ask in reversed(in_order(ask for ask in asks if ask.shape.number in missing)):
        pods = min(ask.count, missing[ask.shape.number])
        if pods:
            missing[ask.shape.number] -= pods
            unplaced.append(Unplaced(replace(ask, count=pods), *explainer.explain(ask.shape)))
    return unplaced[::-1]


def _merged_asks(asks: Iterable[Ask]) -> list[Ask]:
    counts: dict[tuple[int, bool, str], int] = {}
    shapes: dict[int, Shape] = {}
    for ask in asks:
        key = (ask.shape.number, ask.virtual, ask.group)
        counts[key] = counts.get(key, 0) + ask.count
        shapes[ask.shape.number] = ask.shape
    return [Ask(shapes[key[0]], count, key[1], key[2]) for key, count in counts.items() if count > 0]


_MOST_GROWN_PODS = 2_000
_GOOD_ENOUGH = 101
"""Percent of the lower bound: no other method is tried for a plan that costs no more."""
_MOST_GROWN = 300
"""With more shapes than this a plan is made by packing alone: growth looks at every pod."""


def _best(space: Space, left: list[Ask], offerings: Offerings, strategy: Strategy) -> Plan:
    """Return the best plan of all methods."""
    placed = tuple(merged(space.steps))
    if not left or not offerings.count:
        unplaced = tuple(Unplaced(ask) for ask in in_order(left))
        return Plan(strategy, "existing nodes", offerings, space, placed, unplaced=unplaced)
    offerings = offerings.without(~Growth(space, offerings).within_limits())
    useless = offerings.useless_domains(ask.shape for ask in left)
    best, bound = _compared(space, left, offerings.without(useless), strategy)
    others = []
    if useless.any() and best.unplaced:
        others.append(offerings)
    if best.unplaced and any(pool.limits for pool in offerings.pools):
        # Within limits more pods may have room on fewer nodes.
        others.append(offerings.without(useless).preferring("least-nodes"))
    for each in others:
        other, other_bound = _compared(space, left, each, strategy)
        if _RANKS[strategy](other) < _RANKS[strategy](best):
            best, bound = other, other_bound
    return replace(best, strategy=strategy, placed=placed, lower_bound=min(bound, best.cost))


def _compared(space: Space, left: list[Ask], offerings: Offerings, strategy: Strategy) -> tuple[Plan, int]:
    """Return the better plan of packing and of growth, and a lower bound."""
    best = _packed(space, left, offerings)
    bound = 0
    if strategy == "least-cost" and not best.unplaced and not space.nodes.count:
        bound = best.lower_bound
    prices = None
    if not bound:
        prices = _resource_prices(best)
        bound = prices.bound(_asked(best), best.space.free) if prices is not None else 0
    # What is placed on existing nodes is decided already: the bound of the solvers is about the rest.
    known = max(bound, best.lower_bound)
    tried = strategy == "least-cost" and not best.unplaced and best.cost * 100 <= known * _GOOD_ENOUGH
    pods = sum(ask.count for ask in left if ask.shape.is_constrained)
    if not tried and len(left) <= _MOST_GROWN and pods <= _MOST_GROWN_PODS:
        best = min(best, _grown(space, left, offerings), key=_RANKS[strategy])
        if best.method == "growth" and best.unplaced:
            bound = _aggregate_bound(best)
    return replace(best, prices=prices), bound


@dataclass(frozen=True, slots=True)
class ResourcePrices:
    """What resources are worth at most by the prices of offerings: of whole numbers, so that bounds are certain."""

    columns: tuple[int, ...]
    values: tuple[int, ...]
    cost: int
    """The cost of the offering that is most overvalued."""
    worth: int
    """What that offering is worth: everything is divided by this and multiplied by its cost."""

    def bound(self, asked: Mapping[int, int], free: Amounts) -> int:
        """Return what nodes cost at least that have what is asked, by resource, beyond all that is free elsewhere."""
        value = 0
        for column, each in zip(self.columns, self.values, strict=True):
            value += each * (asked.get(column, 0) - int(np.maximum(free[column], 0).sum()))
        return max(0, value * self.cost // self.worth)


def _aggregate_bound(found: Plan) -> int:
    """Return what any nodes cost at least that have the resources of all pods on the planned nodes together.

    Other pods might have been placed on the existing nodes: all of what is still free there could be used.
    """
    prices = _resource_prices(found)
    return prices.bound(_asked(found), found.space.free) if prices is not None else 0


def _asked(found: Plan) -> dict[int, int]:
    """Return what the pods on planned nodes request."""
    pods: dict[int, int] = {}
    shapes: dict[int, Shape] = {}
    for group in found.groups:
        for shape, count in group.pods:
            pods[shape.number] = pods.get(shape.number, 0) + count * group.nodes
            shapes[shape.number] = shape
    asked: dict[int, int] = {}
    for number, shape in shapes.items():
        for column, need in shape.amounts.items():
            asked[column] = asked.get(column, 0) + need * pods[number]
    return asked


def _resource_prices(found: Plan) -> ResourcePrices | None:
    """Return prices of resources by a small linear program, which only proposes them."""
    offerings, asked = found.offerings, _asked(found)
    if not asked:
        return None
    asked = {column: need - int(np.maximum(found.space.free[column], 0).sum()) for column, need in asked.items()}
    columns = sorted(asked)
    whole = np.maximum(offerings.columns.allocatable[columns, : offerings.count], 0).T
    # Of offerings with the same amounts only the cheapest matters.
    amounts, first = np.unique(np.concatenate([whole, offerings.cost[:, None]], axis=1), axis=0, return_index=True)
    cheapest = np.sort(first[np.concatenate([[True], (amounts[1:, :-1] != amounts[:-1, :-1]).any(axis=1)])])
    capacity, costs = whole[cheapest], offerings.cost[cheapest].tolist()
    values = resource_prices(capacity, offerings.cost[cheapest], [asked[column] for column in columns])
    worth = [sum(v * c for v, c in zip(values, row, strict=True)) for row in capacity.tolist()]
    overvalued = [number for number, each in enumerate(worth) if each]
    if not overvalued:
        return None
    most = min(overvalued, key=lambda number: Fraction(costs[number], worth[number]))
    return ResourcePrices(tuple(columns), tuple(values), costs[most], worth[most])


def _grown(space: Space, asks: Sequence[Ask], offerings: Offerings) -> Plan:
    """Grow nodes for all asks; again with stricter spreads if a later node made earlier steps impossible."""
    growth = Growth(space, offerings)
    left = growth.place(asks)
    if growth.relied:
        growth = Growth(space, offerings, strict=True)
        left = growth.place(asks)
    left = growth.close(left)
    growth.right_size()
    return _plan_of("growth", growth, left, 0)


def _packed(space: Space, asks: Sequence[Ask], offerings: Offerings) -> Plan:
    """Deal constrained pods out over domains, pack all together, and place what is left by growth."""
    limits = Growth(space, offerings, strict=True)
    dealt = deal(space, space.counters.fork(), asks, offerings, limits.within_limits())
    problem = _Problem(dealt, offerings, limits)
    contents, bound = problem.solve()
    first = 0
    nodes_of: dict[Hand, list[tuple[int, int]]] = {}
    groups: list[PlannedNodes] = []
    placed = np.zeros(len(problem.hands), np.int64)
    for group in contents:
        offering = int(problem.offerings[group.type])
        if not _keeps_choice(offerings, offering, [(problem.hands[number].shape, n) for number, n in group.pods]):
            continue
        nodes = limits.reserve(offering, group.nodes)
        if not nodes:
            continue
        pods = tuple((problem.hands[number].shape, count) for number, count in group.pods)
        groups.append(PlannedNodes(offering, nodes, pods, int(offerings.cost[offering])))
        for number, count in group.pods:
            placed[number] += count * nodes
            if problem.is_ordered[number]:
                nodes_of.setdefault(problem.hands[number], []).extend(
                    (node, count) for node in range(first, first + nodes)
                )
        first += nodes
    rest = problem.counts - placed
    left = [Ask(problem.hands[number].shape, int(rest[number])) for number in np.flatnonzero(rest).tolist()]
    steps = tuple(merged(_in_turn(dealt, nodes_of)))
    cost = sum(group.price * group.nodes for group in groups)
    result = Plan("least-cost", "packing", offerings, space, (), tuple(groups), steps, (), cost, bound)
    left += dealt.others
    if not left:
        return result
    # The rest needs the counters and the free room of what is packed.
    growth = Growth(space, offerings, strict=True)
    left += growth.adopt([(group.offering, group.nodes) for group in groups], result.sequence())
    unplaced = growth.close(growth.place(_merged_asks(left)))
    growth.right_size()
    return _plan_of("packing and growth", growth, unplaced, bound)


def _keeps_choice(offerings: Offerings, offering: int, pods: Sequence[tuple[Shape, int]]) -> bool:
    """Return whether the pods of a node leave as many instance types as its pool asks for."""
    if not offerings.pools[offerings.pool[offering]].min_values:
        return True
    used = np.zeros(len(offerings.columns.allocatable), np.int64)
    for shape, count in pods:
        used[shape.columns] += shape.needs * count
    return offerings.keeps_choice(offering, used, {shape.rule.number: shape.rule for shape, _ in pods}.values())


def _in_turn(dealt: Deal, nodes_of: dict[Hand, list[tuple[int, int]]]) -> Iterator[Step]:
    """Yield the pods whose order matters, each on a node that has room for its hand."""
    waiting = {hand: iter(nodes) for hand, nodes in nodes_of.items()}
    here: dict[Hand, tuple[int, int]] = {}
    for hand, pods in dealt.order:
        while pods:
            node, room = here.get(hand, (-1, 0))
            if not room:
                found = next(waiting.get(hand, iter(())), None)
                if found is None:
                    break
                node, room = found
            taken = min(room, pods)
            here[hand] = node, room - taken
            pods -= taken
            yield Step(hand.shape, node, taken)


def _plan_of(method: str, growth: Growth, left: Sequence[Ask], bound: int) -> Plan:
    """Return the plan that growth has come to; nodes that lost all of their pods are left out."""
    offerings, first = growth.offerings, growth.space.nodes.count
    contents: list[dict[int, tuple[Shape, int]]] = [{} for _ in range(growth.planned.count)]
    for step in growth.steps:
        there = contents[step.node - first]
        before = there.get(step.shape.number, (step.shape, 0))[1]
        there[step.shape.number] = (step.shape, before + step.pods)
    numbers: dict[int, int] = {}
    groups: list[PlannedNodes] = []
    for node, (offering, pods) in enumerate(zip(growth.planned.offering.tolist(), contents, strict=False)):
        if pods:
            numbers[node] = len(groups)
            groups.append(PlannedNodes(offering, 1, tuple(pods.values()), int(offerings.cost[offering])))
    steps = (Step(step.shape, numbers[step.node - first], step.pods) for step in growth.steps)
    return Plan(
        "least-cost",
        method,
        offerings,
        growth.space,
        groups=tuple(groups),
        steps=tuple(merged(steps)),
        unplaced=tuple(Unplaced(ask) for ask in in_order(left)),
        cost=sum(group.price for group in groups),
        lower_bound=bound,
        growth=growth,
    )


class _Problem:
    """What was dealt, and the offerings that matter for it, in numbers."""

    def __init__(self, dealt: Deal, offerings: Offerings, limits: Growth) -> None:
        self.hands = list(dealt.hands)
        self.counts = np.array(list(dealt.hands.values()), np.int64)
        ordered = {hand for hand, _ in dealt.order}
        self.is_ordered = [hand in ordered for hand in self.hands]
        shapes = [hand.shape for hand in self.hands]
        columns = offerings.columns.resources.in_order({column for shape in shapes for column in shape.amounts})
        position = {column: number for number, column in enumerate(columns)}
        requests = np.zeros((len(shapes), len(columns)), np.int64)
        for number, shape in enumerate(shapes):
            for column, need in shape.amounts.items():
                requests[number, position[column]] = need
        runs, kinds = self._runs(shapes, offerings, limits)
        self.offerings = self._distinct(runs, dealt.domains, offerings, limits, self._liked(offerings))
        roomy = offerings.roomy()
        amounts = offerings.columns.allocatable[:, : offerings.count] if roomy is None else roomy
        capacity = np.ascontiguousarray(np.maximum(amounts[:, self.offerings][columns].T, 0))
        runs = runs[:, self.offerings]
        weight = offerings.weight[self.offerings]
        if len(weight) and weight.min() != weight.max():
            # Of the offerings on which a pod fits, those of pools with the highest weight.
            anywhere = _heaviest(runs[kinds], requests, capacity, weight)
            runs, kinds = np.unique(anywhere, axis=0, return_inverse=True)
            kinds = kinds.reshape(-1)
        numbers = np.array([shape.number for shape in shapes], np.int64)
        takes = np.zeros((len(shapes), len(dealt.places)), np.bool_)
        for number, place in enumerate(dealt.places):
            takes[:, number] = np.isin(numbers, sorted(place.takers))
        # As many nodes as there are pods are no limit: solvers leave out more offerings where there is none.
        most = limits.most_nodes(self.offerings)
        self._available = np.where(most >= int(self.counts.sum()), UNLIMITED, most)
        self._numbers = FillingProblem(
            requests=requests,
            counts=self.counts,
            domains=np.array([hand.domain for hand in self.hands], np.int64),
            kinds=kinds,
            runs=runs,
            places=np.array([place.places for place in dealt.places], np.int64),
            takes=takes,
            capacity=capacity,
            price=offerings.price[self.offerings],
            offering_domains=dealt.domains[self.offerings],
            order=np.lexsort((offerings.rank[self.offerings], offerings.price[self.offerings])),
        )

    @staticmethod
    def _runs(shapes: Sequence[Shape], offerings: Offerings, limits: Growth) -> tuple[Mask, Amounts]:
        """Return on which offerings shapes may run, by rule and ports, and which of these rows each shape has."""
        numbers: dict[tuple[int, tuple[HostPort, ...]], int] = {}
        rows = np.array(
            [numbers.setdefault((shape.rule.number, shape.ports), len(numbers)) for shape in shapes], np.int64
        )
        examples = {(shape.rule.number, shape.ports): shape for shape in shapes}
        within = limits.within_limits()
        runs = np.zeros((len(numbers), offerings.count), np.bool_)
        for key, row in numbers.items():
            taken = offerings.taken_ports(examples[key]) if key[1] else None
            runs[row] = offerings.columns.allowed_by(examples[key].rule) & within
            if taken is not None:
                runs[row] &= ~taken
        return runs, rows

    def _liked(self, offerings: Offerings) -> Amounts:
        """Return how much preferred node affinities of all pods want each offering: it ranks equal prices."""
        liked = np.zeros(offerings.count, np.int64)
        for hand, count in zip(self.hands, self.counts.tolist(), strict=True):
            for weight, terms in hand.shape.preferences:
                liked += offerings.matching(terms) * (weight * count)
        return liked

    @staticmethod
    def _distinct(runs: Mask, domains: Amounts, offerings: Offerings, limits: Growth, liked: Amounts) -> Amounts:
        """Keep of offerings that differ in price only the cheapest, and all of which there are few."""
        usable = np.flatnonzero(runs.any(axis=0)) if len(runs) else np.zeros(0, np.int64)
        order = usable[np.lexsort((offerings.rank[usable], -liked[usable], offerings.price[usable]))]
        marks = np.stack(
            [*runs[:, order].astype(np.int64), domains[order], offerings.pool_of[order], offerings.type_of[order]]
        )
        _, first = np.unique(marks, axis=1, return_index=True)
        few = np.flatnonzero(limits.available[order] < UNLIMITED)
        kept: Amounts = order[np.unique(np.concatenate([first, few]))]
        return kept

    def solve(self) -> tuple[list[NodeGroup], int]:
        """Return groups of nodes with their pods, by hand, and a lower bound on the cost of any plan for them."""
        if not self.hands or not len(self.offerings):
            return [], 0
        numbers, available = self._numbers, self._available.copy()
        if len(self.offerings) == 1 and not len(numbers.places):
            # One type: greedy cannot be improved if it needs no more nodes than the sums of requests.
            packing = greedy(self._demand(self.counts), self._types(available))
            totals, capacity = self.counts @ numbers.requests, numbers.capacity[0]
            least = max((-(-int(t) // int(c)) for t, c in zip(totals, capacity, strict=True) if c > 0), default=0)
            if not packing.left and packing.nodes == least:
                return list(packing.groups), packing.cost
        nodes, left = fill(numbers, available) if len(numbers.places) else ([], self.counts)
        groups = [NodeGroup(node.offering, 1, tuple(sorted(node.pods.items()))) for node in nodes]
        bound = 0
        if left.any() or not nodes:
            packing, bound = best_of(self._demand(left), self._types(available))
            groups += packing.groups
        return groups, bound if not any(self.is_ordered) else 0

    def _demand(self, counts: Amounts) -> PodDemand:
        numbers = self._numbers
        there = (numbers.domains[:, None] < 0) | (numbers.domains[:, None] == numbers.offering_domains[None])
        per_node = np.full(len(counts), UNLIMITED, np.int64)
        return PodDemand(numbers.requests, counts, per_node, numbers.runs[numbers.kinds] & there)

    def _types(self, available: Amounts) -> NodeTypes:
        return NodeTypes(self._numbers.capacity, self._numbers.price, available)


def _heaviest(allowed: Mask, requests: Amounts, capacity: Amounts, weight: Amounts) -> Mask:
    """Keep for each shape the offerings with the highest weight of those on which it fits."""
    if not len(weight) or weight.min() == weight.max():
        return allowed
    fits = allowed & (requests[:, None, :] <= capacity[None, :, :]).all(axis=2)
    highest = np.where(fits, weight[None], -1).max(axis=1)
    heaviest: Mask = fits & (weight[None] == highest[:, None])
    return heaviest


def _by_cost(each: Plan) -> tuple[int, ...]:
    return _missing(each), each.cost, each.nodes


def _by_nodes(each: Plan) -> tuple[int, ...]:
    return _missing(each), each.nodes, each.cost


def _by_waste(each: Plan) -> tuple[int, ...]:
    return _missing(each), each.waste, each.cost


def _missing(each: Plan) -> int:
    return sum(unplaced.ask.count for unplaced in each.unplaced)


_RANKS: dict[Strategy, Callable[[Plan], tuple[int, ...]]] = {
    "least-cost": _by_cost,
    "least-waste": _by_waste,
    "least-nodes": _by_nodes,
    "most-pods": _by_cost,
    "priority": _by_cost,
}
