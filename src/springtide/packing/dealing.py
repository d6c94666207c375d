"""Dealing: pods with constraints as a packing problem without any.

Constraints between pods are about two kinds of domains. Those of nodes (anti-affinity by hostname, spreads over nodes,
host ports) become resources of which every node has few: a node has one place for pods that refuse each other. For
those of zones and other labels the pods are dealt out first, in the order in which they will be bound: each pod is
given a domain where the counters allow it, and from then on may run only there. What remains is a packing problem with
amounts and allowed offerings, which the solvers pack as a whole instead of pod by pod.

Some constraints fit neither form, such as one workload that refuses another by hostname. Their shapes are left to
`growth`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from springtide.packing.catalogue import HOSTNAME_LABEL
from springtide.packing.columns import Amounts, Codes, Mask, Scope
from springtide.packing.counters import Counters
from springtide.packing.offerings import Offerings
from springtide.packing.shapes import Shape, Spread
from springtide.packing.space import Ask, Space, in_order

_NODE_LABELS = (HOSTNAME_LABEL, "")
"""Topologies in which each node is a domain."""
_BITS = 10
_NEVER = 1 << 58
_ALIKE = (10, 11)
"""Prices that differ by less than this ratio count as equal."""


@dataclass(frozen=True, slots=True)
class Hand:
    """Pods of a shape that were dealt to the offerings of one domain, or that may run anywhere (-1)."""

    shape: Shape
    domain: int


@dataclass(frozen=True, slots=True)
class PlacesPerNode:
    """A resource of which every node has few."""

    places: int
    takers: frozenset[int]
    """Numbers of the shapes of which a pod takes one place."""
    exact: bool
    """Whether any other plan must keep to it as well, so that a lower bound may rely on it."""


@dataclass(slots=True)
class Deal:
    """Pods by shape and domain, and the order in which those with constraints are bound."""

    hands: dict[Hand, int] = field(default_factory=dict)
    order: list[tuple[Hand, int]] = field(default_factory=list)
    """Pods with constraints, in the order in which they are bound; the others follow."""
    places: list[PlacesPerNode] = field(default_factory=list)
    others: list[Ask] = field(default_factory=list)
    """Asks that must be placed one decision after the other."""
    domains: Amounts = field(default_factory=lambda: np.zeros(0, np.int64))
    """The domain of each offering."""


def deal(space: Space, counters: Counters, asks: Sequence[Ask], offerings: Offerings, within: Mask) -> Deal:
    """Deal pods out over domains, and turn constraints by node into places.

    `within` are the offerings that the limits allow. The counters change: they count what is dealt, by domain.
    """
    asks = in_order(asks)
    shapes = {ask.shape.number: ask.shape for ask in asks}
    table = _Table(counters, shapes.values())
    by_domain = [ask for ask in asks if table.reads_domains(ask.shape)]
    dealer = _Dealer(space, counters, offerings, within, [ask.shape for ask in by_domain])
    odd = {number for number, shape in shapes.items() if shape.blocked or table.is_odd(shape) or dealer.is_mixed(shape)}
    result = Deal(domains=dealer.domains, others=[ask for ask in asks if ask.shape.number in odd])
    for ask in by_domain:
        if ask.shape.number not in odd:
            rest = dealer.deal(ask, result)
            if rest:
                result.others.append(Ask(ask.shape, rest, ask.virtual, ask.group))
    dealt = odd.union(ask.shape.number for ask in by_domain)
    for ask in asks:
        if ask.shape.number not in dealt:
            hand = Hand(ask.shape, -1)
            result.hands[hand] = result.hands.get(hand, 0) + ask.count
            if table.reads_nodes(ask.shape):
                result.order.append((hand, ask.count))
    result.places = table.places({hand.shape.number for hand, _ in result.order})
    return result


class _Table:
    """Which shapes read and raise which counters."""

    def __init__(self, counters: Counters, shapes: Iterable[Shape]) -> None:
        self._find = counters.definitions.find
        self._keys = counters.definitions.keys
        self._readers: dict[int, set[int]] = {}
        self._raisers: dict[int, set[int]] = {}
        self._spreads: dict[int, int] = {}
        """Counters of spreads over nodes, and the smallest skew that a reader allows."""
        for shape in shapes:
            for number in shape.refused:
                self._readers.setdefault(number, set()).add(shape.number)
            for number in shape.bumps:
                self._raisers.setdefault(number, set()).add(shape.number)
            for spread in shape.constraints.spreads:
                if spread.counter.topology in _NODE_LABELS:
                    number = self._find(spread.counter)
                    self._spreads[number] = min(self._spreads.get(number, spread.max_skew), spread.max_skew)

    def reads_domains(self, shape: Shape) -> bool:
        """Return whether pods in other domains than nodes decide where a shape can run."""
        own = shape.constraints
        return (
            any(key.topology not in _NODE_LABELS for key in own.affinity)
            or any(spread.counter.topology not in _NODE_LABELS for spread in own.spreads)
            or any(self._keys[number].topology not in _NODE_LABELS for number in shape.refused)
        )

    def reads_nodes(self, shape: Shape) -> bool:
        """Return whether pods on the same node decide."""
        return any(spread.counter.topology in _NODE_LABELS for spread in shape.constraints.spreads) or any(
            self._keys[number].topology in _NODE_LABELS and number in self._raisers for number in shape.refused
        )

    def is_odd(self, shape: Shape) -> bool:
        """Return whether a constraint by node is none that places can express."""
        if shape.volumes.shared or any(key.topology in _NODE_LABELS for key in shape.constraints.affinity):
            return True
        return any(
            self._keys[number].topology in _NODE_LABELS
            and number in self._raisers
            and self._raisers[number] != self._readers[number]
            for number in shape.refused
        )

    def places(self, ordered: set[int]) -> list[PlacesPerNode]:
        """Return the places of all constraints by node; `ordered` shapes are bound before all others."""
        found: dict[tuple[int, frozenset[int]], PlacesPerNode] = {}
        numbers = sorted(self._readers.keys() | self._spreads.keys(), key=lambda number: repr(self._keys[number]))
        for number in numbers:
            takers = frozenset(self._raisers.get(number, set()) & ordered)
            if self._keys[number].topology not in _NODE_LABELS or not takers:
                continue
            exact = number not in self._spreads
            places = 1 if exact else self._spreads[number]
            known = found.get((places, takers))
            if known is None or (exact and not known.exact):
                found[places, takers] = PlacesPerNode(places, takers, exact)
        return list(found.values())


class _Domains:
    """The domains of offerings as if each were one node."""

    def __init__(self, offerings: Offerings, within: Mask, shapes: Sequence[Shape], counters: Counters) -> None:
        keys = counters.definitions.keys
        topologies = {
            key.topology
            for shape in shapes
            for key in (
                *shape.constraints.affinity,
                *(spread.counter for spread in shape.constraints.spreads),
                *(keys[number] for number in shape.refused),
            )
        }
        columns = offerings.columns
        names = sorted(topologies - set(_NODE_LABELS))
        stacked = np.stack([columns.ranked(name) for name in names], axis=1) if names else None
        if stacked is None or not len(stacked):
            self.of_offering = np.zeros(offerings.count, np.int64)
            first = np.zeros(min(1, offerings.count), np.int64)
        else:
            _, first, inverse = np.unique(stacked, axis=0, return_index=True, return_inverse=True)
            self.of_offering = np.asarray(inverse, np.int64).reshape(-1)
        self.count = len(first)
        self._columns, self._within = columns, within
        self._codes = {name: columns.codes(name)[first] for name in names}
        self._none = np.full(self.count, -1, np.int32)
        self._scopes: dict[Scope, Mask] = {}

    def codes(self, key: str) -> Codes:
        """Return the codes of a label; -1 for labels of which each node has its own."""
        return self._codes.get(key, self._none)

    def positions(self) -> Codes:
        """Return -1 for each: they are no nodes."""
        return self._none

    @property
    def last_position(self) -> int:
        """No position is in use."""
        return 0

    def any_of(self, offerings: Mask) -> Mask:
        """Return the domains of offerings."""
        mask = np.zeros(self.count, np.bool_)
        mask[self.of_offering[offerings]] = True
        return mask

    def in_scope(self, scope: Scope) -> Mask:
        """Return the domains with offerings in the scope of a spread constraint."""
        known = self._scopes.get(scope)
        if known is None:
            known = self._scopes[scope] = self.any_of(self._columns.in_scope(scope) & self._within)
        return known

    def is_mixed(self, scope: Scope) -> bool:
        """Return whether a domain has offerings in the scope and others outside."""
        outside = self.any_of(~self._columns.in_scope(scope) & self._within)
        return bool((outside & self.in_scope(scope)).any())


class _Dealer:
    """Deals pods to the domains that counters allow: the emptiest, then the cheapest, then the least loaded one."""

    def __init__(
        self, space: Space, counters: Counters, offerings: Offerings, within: Mask, shapes: Sequence[Shape]
    ) -> None:
        self._space, self._counters, self._offerings, self._within = space, counters, offerings, within
        self._nodes = _Domains(offerings, within, shapes, counters)
        self._load = [0] * self._nodes.count
        self._mixed: dict[Scope, bool] = {}
        self._eligible: dict[int, Amounts] = {}
        self._capable: dict[tuple[int, tuple[tuple[int, int], ...], tuple[object, ...]], tuple[Mask, list[int]]] = {}
        self.domains = self._nodes.of_offering

    def is_mixed(self, shape: Shape) -> bool:
        """Return whether the scope of a spread constraint divides a domain."""
        for spread in self._by_domain(shape):
            scope = spread.counter.scope
            assert scope is not None  # noqa: S101 - spread counters have one
            known = self._mixed.get(scope)
            if known is None:
                known = self._mixed[scope] = self._nodes.is_mixed(scope)
            if known:
                return True
        return False

    def deal(self, ask: Ask, result: Deal) -> int:
        """Deal the pods of an ask; gives how many no domain can take."""
        shape, left = ask.shape, ask.count
        capable, prices = self._capable_of(shape)
        spreads = self._by_domain(shape)
        refused = self._refused_by_domain(shape)
        near = [key for key in shape.constraints.affinity if key.topology not in _NODE_LABELS]
        while left:
            mask = capable & ~refused() if refused is not None else capable
            if near:
                found = self._counters.affinity_mask(shape, self._nodes)
                mask = mask & found if found is not None else mask
            counts: list[Amounts] = []
            for spread in spreads:
                here, least = self._spread_over_domains(spread)
                mask = mask & (here + (spread.self_match - least) <= spread.max_skew)
                mask &= self._nodes.codes(spread.counter.topology) >= 0
                counts.append(here)
            chosen = np.flatnonzero(mask)
            if not len(chosen):
                break
            load = self._load
            domain = min(chosen.tolist(), key=lambda d: (*(int(each[d]) for each in counts), prices[d], load[d], d))
            pods = 1 if spreads or refused is not None else left
            self._give(shape, domain, pods, result)
            left -= pods
        return left

    def _spread_over_domains(self, spread: Spread) -> tuple[Amounts, int]:
        """Return the counts of a spread constraint in the domains, and the smallest of all that are eligible."""
        number, topology = self._counters.definitions.find(spread.counter), spread.counter.topology
        domains = self._nodes.codes(topology)
        counts = self._counters.counts(number, self._nodes)
        eligible = self._eligible.get(number)
        if eligible is None:
            found = self._counters.eligible_domains(spread.counter, self._space.nodes, (self._nodes,), len(counts))
            # Nodes and offerings stay the same while pods are dealt.
            eligible = self._eligible[number] = np.flatnonzero(found)
        enough = len(eligible) >= max(1, spread.min_domains)
        return counts[domains], int(counts[eligible].min()) if enough else 0

    def _give(self, shape: Shape, domain: int, pods: int, result: Deal) -> None:
        hand = Hand(shape, domain)
        result.hands[hand] = result.hands.get(hand, 0) + pods
        result.order.append((hand, pods))
        self._load[domain] += shape.size * pods
        rows = np.array([domain])
        for number in shape.bumps:
            if self._counters.definitions.keys[number].topology not in _NODE_LABELS:
                self._counters.add(number, self._nodes, rows, pods)

    def _by_domain(self, shape: Shape) -> list[Spread]:
        return [each for each in shape.constraints.spreads if each.counter.topology not in _NODE_LABELS]

    def _refused_by_domain(self, shape: Shape) -> Callable[[], Mask] | None:
        keys = self._counters.definitions.keys
        numbers = [number for number in shape.refused if keys[number].topology not in _NODE_LABELS]
        if not numbers:
            return None

        def refused() -> Mask:
            mask = np.zeros(self._nodes.count, np.bool_)
            for number in numbers:
                counts = self._counters.counts(number, self._nodes)
                mask |= counts[self._nodes.codes(keys[number].topology)] > 0
            return mask

        return refused

    def _capable_of(self, shape: Shape) -> tuple[Mask, list[int]]:
        """Return the domains with an offering on which a pod of the shape fits, and the least price for one there."""
        key = (shape.rule.number, tuple(shape.amounts.items()), shape.ports)
        known = self._capable.get(key)
        if known is None:
            offerings = self._offerings
            able = np.flatnonzero(offerings.capable_of(shape) & self._within)
            most = (offerings.columns.allocatable[shape.columns][:, able] // shape.needs[:, None]).min(axis=0)
            prices = np.full(self._nodes.count, _NEVER, np.int64)
            np.minimum.at(
                prices, self._nodes.of_offering[able], (offerings.price[able] << _BITS) // np.maximum(most, 1)
            )
            # Small differences matter less than domains that carry as much as the others.
            alike = prices * _ALIKE[0] <= prices.min(initial=_NEVER) * _ALIKE[1]
            known = self._capable[key] = prices < _NEVER, np.where(alike, 0, prices).tolist()
        return known
