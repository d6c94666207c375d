"""Growth: placing pods on nodes that are planned, each placement at the least additional cost.

A planned node is made of an offering, which is exchanged for a larger one of the same pool and zone while pods are
added. For each pod the planner looks for free room first. Without any it compares the price of enlarging a planned
node with the price of a new one. Whatever the counters of constraints refuse is left out before prices are compared,
so every step would be accepted by kube-scheduler in its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from springtide.packing.catalogue import HOSTNAME_LABEL, ZONE_LABEL
from springtide.packing.columns import CPU, MEMORY, MOST, Amounts, Codes, Mask, NodeRule, Nodes, Scope
from springtide.packing.counters import Counters, SpreadState
from springtide.packing.offerings import UNLIMITED, Offerings
from springtide.packing.shapes import Shape
from springtide.packing.space import Ask, Space, Step, in_order, liking, prefers

_LOOKED_AT = 8
"""How many planned nodes are compared when one must become larger."""
_START = 64
_SHIFT = 20


class Planned:
    """The planned nodes, as a view that grows."""

    def __init__(self, space: Space, offerings: Offerings) -> None:
        self._offered = offerings.columns
        self._labels = space.snapshot.labels
        self._first = space.snapshot.nodes.count
        width = len(space.resources)
        self.count = 0
        self.offering: Amounts = np.zeros(_START, np.int64)
        self.free: Amounts = np.zeros((width, _START), np.int64)
        self.used: Amounts = np.zeros((width, _START), np.int64)
        self._hosts: Codes = np.zeros(_START, np.int32)

    def open(self, offering: int, nodes: int = 1) -> range:
        """Add nodes of an offering; gives their positions."""
        first, self.count = self.count, self.count + nodes
        if self.count > len(self.offering):
            size = 2 * self.count
            self.offering, self._hosts = _wide(self.offering, size), _wide(self._hosts, size)
            self.free, self.used = _wide(self.free, size), _wide(self.used, size)
        new = slice(first, self.count)
        self.offering[new] = offering
        self.free[:, new] = self._offered.allocatable[:, offering, None]
        self.used[:, new] = 0
        code = self._labels.code
        self._hosts[new] = [code(HOSTNAME_LABEL, f"\0new-{number}") for number in range(first, self.count)]
        return range(first, self.count)

    def resize(self, row: int, offering: int) -> None:
        """Make a node of another offering."""
        self.offering[row] = offering
        self.free[:, row] = self._offered.allocatable[:, offering] - self.used[:, row]

    def codes(self, key: str) -> Codes:
        """Return the codes of a label; -1 where it is absent."""
        if key == HOSTNAME_LABEL:
            return self._hosts[: self.count]
        return self._offered.codes(key)[self.offering[: self.count]]

    def allowed_by(self, rule: NodeRule) -> Mask:
        """Return the nodes that an interned rule allows."""
        return self._offered.allowed_by(rule)[self.offering[: self.count]]

    def in_scope(self, scope: Scope) -> Mask:
        """Return the nodes in the scope of a spread constraint."""
        return self._offered.in_scope(scope)[self.offering[: self.count]]

    def positions(self) -> Codes:
        """Return a number for each node that no other node has, existing ones included."""
        return np.arange(self._first, self._first + self.count, dtype=np.int32)

    @property
    def last_position(self) -> int:
        """One more than the highest of `positions`."""
        return self._first + self.count


IntegerT = TypeVar("IntegerT", bound=np.integer[Any])


def _wide(array: npt.NDArray[IntegerT], size: int) -> npt.NDArray[IntegerT]:
    new = np.zeros((*array.shape[:-1], size), array.dtype)
    new[..., : array.shape[-1]] = array
    return new


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The offerings that a planned node can become, by price."""

    offerings: Amounts
    price: Amounts
    allocatable: Amounts


class Growth:
    """Planned nodes, and the placement of pods on them at the least additional cost."""

    def __init__(self, space: Space, offerings: Offerings, *, strict: bool = False) -> None:
        """Plan nodes beside those of a space; with `strict` spreads over nodes rely on no node being full."""
        self.space = space
        self.offerings = offerings
        self.strict = strict
        self.closed = False
        """Whether no node is added any more."""
        self.planned = Planned(space, offerings)
        self.counters: Counters = space.counters.fork()
        self.remaining = offerings.remaining()
        self.available = offerings.available.copy()
        self.steps: list[Step] = []
        self.relied = False
        """Whether a spread over nodes relied on every planned node having a pod, and a node was opened later."""
        self._relied_on: list[tuple[Scope, int]] = []
        self._rules: list[frozenset[int]] = []
        self._rule_objects: dict[int, NodeRule] = {}
        self._sizes: dict[tuple[int, frozenset[int]], _Sizes] = {}
        self._signed: Amounts | None = None
        self._choosy = any(pool.min_values for pool in offerings.pools)
        capacity = offerings.columns.allocatable[:, : offerings.count]
        cpus, memory = int(capacity[CPU].sum()), int((capacity[MEMORY] >> _SHIFT).sum())
        self._memory_weight = max(1, (cpus << 10) // max(1, memory))

    def place(self, asks: Iterable[Ask]) -> list[Ask]:
        """Place pods on planned nodes; gives those that cannot be placed.

        Pods that need others near them are tried again once these are placed, before pods of a lower priority.
        """
        left: list[Ask] = []
        waiting: list[Ask] = []
        for _, tier in groupby(in_order(asks), key=lambda ask: (ask.virtual, ask.shape.priority)):
            tried, placed = [*waiting, *tier], True
            while placed and tried:
                waiting, placed = [], False
                for ask in tried:
                    rest = self.place_shape(ask.shape, ask.count)
                    placed = placed or rest < ask.count
                    if rest:
                        own = ask.shape.constraints
                        (waiting if own.affinity or own.spreads else left).append(replace(ask, count=rest))
                tried = waiting
        return in_order([*left, *waiting])

    def close(self, left: Iterable[Ask]) -> list[Ask]:
        """Add no more nodes, and try pods that have no place once more; gives those that still have none.

        So far domains without a node counted, because a node could have been added there. The scheduler knows only
        the domains of nodes that there are.
        """
        left = list(left)
        if not any(ask.shape.constraints.spreads for ask in left):
            return left
        self.closed = True
        return self.place(left)

    def place_shape(self, shape: Shape, count: int) -> int:
        """Place pods of one shape; gives how many are left."""
        if shape.blocked or not self.offerings.count:
            return count
        offered = self.offerings.capable_of(shape)
        if self.closed:
            offered = np.zeros_like(offered)
        while count:
            placed = self._place_some(shape, count, offered)
            if not placed:
                break
            count -= placed
        return count

    def _place_some(self, shape: Shape, count: int, offered: Mask) -> int:
        """Place at least one pod; gives how many were placed, 0 if none can be."""
        states = self._states(shape)
        rows_ok, offers_ok = self._allowed(shape, offered, states)
        single = self._one_at_a_time(shape)
        fit = rows_ok.copy()
        for column, need in zip(shape.columns, shape.needs, strict=True):
            fit &= self.planned.free[column, : self.planned.count] >= need
        rows = np.flatnonzero(fit)
        if len(rows) and self._choosy:
            rows = np.array([row for row in rows.tolist() if self._keeps_choice(row, None, shape)], np.int64)
            single = True
        if len(rows):
            return self._into_free_room(shape, count, rows, states, single)
        return self._enlarge_or_open(shape, count, rows_ok, offers_ok, states, single)

    # What constraints allow.

    def _states(self, shape: Shape) -> list[SpreadState]:
        states = []
        for spread in shape.constraints.spreads:
            by_host = spread.counter.topology == HOSTNAME_LABEL
            known = by_host or self.closed
            views: tuple[Nodes, ...] = (self.planned,) if known else (self.planned, self.offerings.columns)
            state = self.counters.spread(spread, self.space.nodes, views)
            if by_host and state.least and not self.closed:
                if self.strict:
                    state.least = 0
                elif spread.counter.scope is not None:
                    self._relied_on.append((spread.counter.scope, self.planned.count))
            states.append(state)
        return states

    def _allowed(self, shape: Shape, offered: Mask, states: Sequence[SpreadState]) -> tuple[Mask, Mask]:
        """Return the planned nodes and the offerings that rules and counters allow."""
        found = []
        known: Mapping[int, SpreadState] = dict(enumerate(states))
        for nodes, mask in (
            (self.planned, self.planned.allowed_by(shape.rule)),
            (self.offerings.columns, offered.copy()),
        ):
            refused = self.counters.refused_mask(shape, nodes)
            if refused is not None:
                mask = mask & ~refused
            near = self.counters.affinity_mask(shape, nodes)
            if near is not None:
                mask = mask & near
            spread = self.counters.spread_mask(shape, nodes, known)
            if spread is not None:
                mask = mask & spread
            found.append(mask)
        return found[0], found[1]

    def _one_at_a_time(self, shape: Shape) -> bool:
        own = shape.constraints
        return bool(own.spreads or own.affinity or set(shape.refused) & set(shape.bumps))

    # Free room.

    def _into_free_room(
        self, shape: Shape, count: int, rows: Amounts, states: Sequence[SpreadState], single: bool
    ) -> int:
        rows = self._emptiest(shape, rows, self.planned, states)
        if prefers(shape):
            # A preference chooses among the nodes with room; it never opens another one.
            matching = self.offerings.matching
            chosen = self.planned.offering[: self.planned.count]
            liked = liking(shape, self.planned, self.counters, lambda terms: matching(terms)[chosen])[rows]
            rows = rows[liked == liked.max()]
        slack = self._slack(self.planned.free[:, rows])
        if single:
            if self._spreads_freely(shape):
                order = rows[np.argsort(slack, kind="stable")][:count]
                self._take(shape, order, np.ones(len(order), np.int64))
                return len(order)
            self._take(shape, rows[np.argmin(slack)][None], _ONE)
            return 1
        order = rows[np.argsort(slack, kind="stable")]
        most = np.full(len(order), count, np.int64)
        for column, need in zip(shape.columns, shape.needs, strict=True):
            np.minimum(most, self.planned.free[column, order] // need, out=most)
        taken = np.clip(count - (np.cumsum(most) - most), 0, most)
        used = taken > 0
        self._take(shape, order[used], taken[used])
        return int(taken.sum())

    def _emptiest(self, shape: Shape, rows: Amounts, nodes: Nodes, states: Sequence[SpreadState]) -> Amounts:
        """Keep the rows in the emptiest domains of the spread constraints."""
        for state, spread in zip(states, shape.constraints.spreads, strict=True):
            topology = spread.counter.topology
            if topology == HOSTNAME_LABEL or not len(rows):
                continue
            counts = state.counts[nodes.codes(topology)[rows]]
            rows = rows[counts == counts.min()]
        return rows

    def _spreads_freely(self, shape: Shape) -> bool:
        """Return whether several pods of a shape may be placed at once on different nodes."""
        own = shape.constraints
        if own.affinity or own.spreads:
            return False
        mutual = set(shape.refused) & set(shape.bumps)
        keys = self.counters.definitions.keys
        return all(keys[number].topology in (HOSTNAME_LABEL, "") for number in mutual)

    def _slack(self, free: Amounts) -> Amounts:
        """Value free room, with memory weighed by what offerings have of it for each cpu."""
        value: Amounts = (free[CPU] << 10) + (free[MEMORY] >> _SHIFT) * self._memory_weight
        return value

    # New room.

    def _enlarge_or_open(
        self,
        shape: Shape,
        count: int,
        rows_ok: Mask,
        offers_ok: Mask,
        states: Sequence[SpreadState],
        single: bool,
    ) -> int:
        allowed = np.flatnonzero(offers_ok & self.within_limits())
        allowed = self._heaviest(self._emptiest(shape, allowed, self.offerings.columns, states))
        rows = self._emptiest(shape, np.flatnonzero(rows_ok), self.planned, states)
        best_row, best_size, least = -1, -1, 1 << 62
        if len(rows):
            best_row, best_size, least = self._cheapest_enlargement(shape, rows)
        if self._choosy:
            empty = np.zeros(len(self.planned.free), np.int64)
            empty[shape.columns] = shape.needs
            keeps = {
                pool: self.offerings.keeps_choice(
                    int(np.flatnonzero(self.offerings.pool_of == pool)[0]), empty, [shape.rule]
                )
                for pool in np.unique(self.offerings.pool_of[allowed]).tolist()
            }
            allowed = np.array([each for each in allowed.tolist() if keeps[self.offerings.pool[each]]], np.int64)
            single = True
        if len(allowed):
            offering, pods, price = self._cheapest_opening(shape, allowed, 1 if single else count)
            if best_row < 0 or price < least * pods:
                nodes = 1
                if not single:
                    nodes = max(1, count // pods)
                elif self._spreads_freely(shape) and set(shape.refused) & set(shape.bumps):
                    nodes = count
                nodes = min(nodes, self._most_nodes(offering))
                opened = self._open(offering, nodes)
                rows = np.arange(opened.start, opened.stop)
                self._take(shape, rows, np.full(nodes, pods, np.int64))
                return pods * nodes
        if best_row < 0:
            return 0
        self._resize(best_row, best_size)
        self._take(shape, np.array([best_row]), _ONE)
        return 1

    def _cheapest_enlargement(self, shape: Shape, rows: Amounts) -> tuple[int, int, int]:
        """Return the node, its new offering and the additional price, of those that need little more room."""
        planned = self.planned
        short_cpu = np.maximum(0, shape.amounts.get(CPU, 0) - planned.free[CPU, rows])
        short_memory = np.maximum(0, shape.amounts.get(MEMORY, 0) - planned.free[MEMORY, rows])
        lack = self._slack(np.stack([short_cpu, short_memory]))
        best = (1 << 62, 1 << 62, -1, -1)
        for _ in range(min(_LOOKED_AT, len(rows))):
            position = int(np.argmin(lack))
            row = int(rows[position])
            found = self._enlarged(shape, row)
            if found is not None:
                offering, price = found
                rest = int(
                    self._slack((self.offerings.columns.allocatable[:, offering] - planned.used[:, row])[:, None])[0]
                )
                best = min(best, (price, rest, row, offering))
            lack[position] = 1 << 62
        return best[2], best[3], best[0]

    def _enlarged(self, shape: Shape, row: int) -> tuple[int, int] | None:
        """Return the cheapest offering that takes one more pod on a node, and the additional price."""
        rules = self._rules[row]
        if shape.rule.number not in rules:
            self._rule_objects[shape.rule.number] = shape.rule
            rules = rules | {shape.rule.number}
        current = int(self.planned.offering[row])
        sizes = self._sizes_of(self._families[current], rules)
        fit = self._sized_for(sizes, self.planned.used[:, row], shape)
        pool = self.offerings.pool[current]
        for number in np.flatnonzero(fit):
            offering = int(sizes.offerings[number])
            more = self.offerings.capacity[offering] - self.offerings.capacity[current]
            if self.available[offering] > 0 and (more <= self.remaining[pool]).all():
                if self._choosy and not self._keeps_choice(row, offering, shape):
                    continue
                return offering, int(sizes.price[number] - self.offerings.price[current])
        return None

    def _keeps_choice(self, row: int, offering: int | None, shape: Shape) -> bool:
        """Return whether enough instance types remain for a node with one more pod."""
        rules = [self._rule_objects[number] for number in sorted(self._rules[row])]
        used = self.planned.used[:, row].copy()
        used[shape.columns] += shape.needs
        here = int(self.planned.offering[row]) if offering is None else offering
        return self.offerings.keeps_choice(here, used, [*rules, shape.rule])

    def _sized_for(self, sizes: _Sizes, used: Amounts, shape: Shape | None) -> Mask:
        fit = np.ones(len(sizes.offerings), np.bool_)
        for column in range(len(used)):
            need = int(used[column]) + (shape.amounts.get(column, 0) if shape is not None else 0)
            if need:
                fit &= sizes.allocatable[column] >= need
        return fit

    def _sizes_of(self, family: int, rules: frozenset[int]) -> _Sizes:
        known = self._sizes.get((family, rules))
        if known is None:
            mask = self._families == family
            for number in sorted(rules):
                mask &= self.offerings.columns.allowed_by(self._rule_objects[number])
            by_price = self.offerings.by_price
            chosen = by_price[mask[by_price]]
            known = _Sizes(
                chosen,
                self.offerings.price[chosen],
                np.ascontiguousarray(self.offerings.columns.allocatable[:, chosen]),
            )
            self._sizes[family, rules] = known
        return known

    def _cheapest_opening(self, shape: Shape, allowed: Amounts, count: int) -> tuple[int, int, int]:
        """Return the offering with the lowest price for each pod, how many pods go on it, and its price."""
        allocatable = self.offerings.columns.allocatable
        most = np.full(len(allowed), count, np.int64)
        if count > 1:
            for column, need in zip(shape.columns, shape.needs, strict=True):
                np.minimum(most, allocatable[column, allowed] // need, out=most)
        price = self.offerings.price[allowed]
        each = (price << 10) // most
        number = int(np.lexsort((self.offerings.rank[allowed], price, each))[0])
        return int(allowed[number]), int(most[number]), int(price[number])

    def within_limits(self) -> Mask:
        """Return the offerings of which the limits allow one more node."""
        rest = self.remaining[self.offerings.pool_of]
        mask: Mask = (self.offerings.capacity <= rest).all(axis=1) & (self.available > 0)
        return mask

    def most_nodes(self, offerings: Amounts) -> Amounts:
        """Return how many nodes of each of some offerings alone the limits allow."""
        capacity, rest = self.offerings.capacity[offerings], self.remaining[self.offerings.pool_of[offerings]]
        most = np.where(rest >= MOST, UNLIMITED, rest // np.maximum(capacity, 1))
        most = np.where(capacity > 0, most, UNLIMITED)
        allowed: Amounts = np.minimum(most.min(axis=1, initial=UNLIMITED), self.available[offerings])
        return allowed

    def _heaviest(self, offerings: Amounts) -> Amounts:
        """Keep the offerings of pools with the highest weight."""
        if not len(offerings):
            return offerings
        weight = self.offerings.weight[offerings]
        heaviest: Amounts = offerings[weight == weight.max()]
        return heaviest

    def _most_nodes(self, offering: int) -> int:
        capacity = self.offerings.capacity[offering]
        rest = self.remaining[self.offerings.pool[offering]]
        asked = capacity > 0
        return int(min((rest[asked] // capacity[asked]).min(), self.available[offering]))

    def _open(self, offering: int, nodes: int) -> range:
        self.remaining[self.offerings.pool[offering]] -= self.offerings.capacity[offering] * nodes
        self._use(offering, nodes)
        opened = self.planned.open(offering, nodes)
        self._rules.extend([_NO_RULES] * nodes)
        if self._relied_on:
            self.relied = self.relied or any(
                bool(self.offerings.columns.in_scope(scope)[offering]) for scope, _ in self._relied_on
            )
        return opened

    def _use(self, offering: int, nodes: int) -> None:
        """Count nodes against a reservation, which several pools may share."""
        reservation = self.offerings.reservation[offering]
        if reservation >= 0:
            self.available[self.offerings.reservation == reservation] -= nodes

    def _resize(self, row: int, offering: int) -> None:
        current = int(self.planned.offering[row])
        pool = self.offerings.pool[current]
        self.remaining[pool] += self.offerings.capacity[current] - self.offerings.capacity[offering]
        self._use(current, -1)
        self._use(offering, 1)
        self.planned.resize(row, offering)

    def _take(self, shape: Shape, rows: Amounts, amounts: Amounts) -> None:
        planned = self.planned
        for column, need in zip(shape.columns, shape.needs, strict=True):
            planned.free[column, rows] -= need * amounts
            planned.used[column, rows] += need * amounts
        for number in shape.bumps:
            self.counters.add(number, planned, rows, amounts)
        number, first = shape.rule.number, self.space.nodes.count
        self._rule_objects[number] = shape.rule
        for row, pods in zip(rows.tolist(), amounts.tolist(), strict=True):
            rules = self._rules[row]
            if number not in rules:
                self._rules[row] = rules | {number}
            self.steps.append(Step(shape, first + row, pods))

    @property
    def _families(self) -> Amounts:
        """The number of what each offering keeps when a node of it is enlarged."""
        if self._signed is None:
            self._signed = self._signatures()
        return self._signed

    def _signatures(self) -> Amounts:
        """Number the offerings by what a planned node keeps when it is enlarged: pool, zone and topology labels."""
        keys = sorted({ZONE_LABEL, *(key.topology for key in self.counters.definitions.keys)} - {HOSTNAME_LABEL, ""})
        columns: list[npt.NDArray[Any]] = [self.offerings.pool_of, *(self.offerings.columns.codes(key) for key in keys)]
        stacked = np.stack(columns, axis=1) if self.offerings.count else np.zeros((0, 1), np.int64)
        _, numbers = np.unique(stacked, axis=0, return_inverse=True)
        return np.asarray(numbers, np.int64).reshape(-1)

    def adopt(self, nodes: Iterable[tuple[int, int]], steps: Iterable[Step]) -> list[Ask]:
        """Plan nodes that were packed elsewhere, so many of each offering, with their pods in this order.

        Gives the pods that counters refuse at their turn, because pods before them have found no place.
        """
        for offering, count in nodes:
            self._open(offering, count)
        refused, nowhere = [], np.zeros(self.offerings.count, np.bool_)
        for step in steps:
            if not step.shape.is_constrained:
                self._take(step.shape, np.array([step.node]), np.array([step.pods]))
                continue
            for _ in range(step.pods):
                shape = step.shape
                allowed, _ = self._allowed(shape, nowhere, self._states(shape))
                if allowed[step.node]:
                    self._take(shape, np.array([step.node]), _ONE)
                else:
                    refused.append(Ask(shape, 1))
        return refused

    def reserve(self, offering: int, nodes: int) -> int:
        """Count nodes that are planned elsewhere against the limits; gives how many of them the limits allow."""
        nodes = min(nodes, self._most_nodes(offering))
        self.remaining[self.offerings.pool[offering]] -= self.offerings.capacity[offering] * nodes
        self._use(offering, nodes)
        return nodes

    def right_size(self) -> None:
        """Make each planned node of the cheapest offering that takes what it has."""
        for row in range(self.planned.count):
            current = int(self.planned.offering[row])
            sizes = self._sizes_of(self._families[current], self._rules[row])
            for number in np.flatnonzero(self._sized_for(sizes, self.planned.used[:, row], None)):
                offering = int(sizes.offerings[number])
                if offering == current:
                    break
                more = self.offerings.capacity[offering] - self.offerings.capacity[current]
                rest = self.remaining[self.offerings.pool[current]]
                if self.available[offering] > 0 and (more <= rest).all():
                    self._resize(row, offering)
                    break

    @property
    def cost(self) -> int:
        """The price of the planned nodes."""
        return int(self.offerings.price[self.planned.offering[: self.planned.count]].sum())


_ONE = np.ones(1, np.int64)
_NO_RULES: frozenset[int] = frozenset()
