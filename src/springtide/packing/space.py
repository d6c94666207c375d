"""A space: the nodes of a fork with their free room, and the placement of pods on nodes that exist.

Pods of one shape are placed together. A shape that reads no counter fills nodes in bulk, in the order of their names;
one with constraints is placed where its counters allow, a few pods at a time. Every placement is a step; in the order
of the steps the kube-scheduler would accept each pod on its node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from springtide.packing.columns import ATTACHABLE, AffinityTerms, Amounts, Mask, NodeRule, Nodes, View
from springtide.packing.counters import HOSTNAME, Counters, SpreadState, pod_refusals
from springtide.packing.shapes import CounterKey, Shape, Spread

if TYPE_CHECKING:
    from springtide.packing.snapshot import Snapshot

_FEW_DOMAINS = 64
"""Up to so many domains of a spread constraint are compared one by one for each pod."""
_MOST_ONE_BY_ONE = 5_000
_CHUNK = 512
"""How many nodes are looked at together while a shape is placed in bulk: most shapes are done after the first."""


@dataclass(frozen=True, slots=True)
class Step:
    """Pods of one shape that are placed on one node, one after the other."""

    shape: Shape
    node: int
    """The position in the space's order of nodes; planned nodes follow the existing ones."""
    pods: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Pods of a shape that ask for room."""

    shape: Shape
    count: int
    virtual: bool = False
    """Whether they exist only as a promise, such as the chunks of a buffer: real pods are placed first."""
    group: str = ""
    """Asks of one group are placed all or none; empty: each pod by itself."""


def in_order(asks: Iterable[Ask]) -> list[Ask]:
    """Sort asks as they are placed: real pods, high priority, constrained shapes, then large ones first.

    The order is total and depends on what is asked only, never on when it was first seen.
    """
    return sorted(asks, key=_order)


def _order(ask: Ask) -> tuple[object, ...]:
    shape = ask.shape
    return (
        ask.virtual,
        -shape.priority,
        ask.group,
        _freedom(shape),
        0 if shape.rule.volumes else 1,
        -shape.size,
        shape.order,
    )


def _freedom(shape: Shape) -> int:
    """Rank shapes by how little choice they have."""
    own = shape.constraints
    if own.affinity:
        return 0
    if shape.refused:
        return 1
    return 2 if own.spreads else 3 if shape.is_constrained else 4


class Space:
    """Existing nodes of a fork: placements change it, and dropping it undoes them."""

    def __init__(
        self,
        snapshot: Snapshot,
        counters: Counters,
        order: Amounts,
        promised: Mapping[int, Sequence[Shape]] | None = None,
    ) -> None:
        """Show the nodes of a snapshot at these positions, in this order; `promised` are those of preempting pods."""
        self.snapshot = snapshot
        self.resources = snapshot.resources
        self.counters = counters
        self.nodes = View(snapshot.nodes, order)
        self.order = order
        free = snapshot.nodes.allocatable[:, : snapshot.nodes.count] - snapshot.nodes.used[:, : snapshot.nodes.count]
        reserved = snapshot.reserved()
        if reserved.any():
            free -= reserved
        self.free = np.ascontiguousarray(free[:, order])
        for driver, volumes in counters.attached(order).items():
            self.free[self.resources.column(ATTACHABLE + driver)] -= volumes
        self.steps: list[Step] = []
        self._promised: list[tuple[int, Sequence[Shape]]] = []
        if promised:
            rows = {int(place): row for row, place in enumerate(order)}
            self._promised = sorted((rows[place], shapes) for place, shapes in promised.items())

    def names(self) -> list[str]:
        """List the names of the nodes in the order of their positions."""
        return [self.snapshot.nodes.names[row] for row in self.order]

    def place(self, asks: Iterable[Ask]) -> list[Ask]:
        """Place pods on existing nodes; gives those for which there is no room.

        Pods that need others near them are tried again once these are placed.
        """
        tried = in_order(asks)
        if not self.nodes.count:
            return tried
        left: list[Ask] = []
        while tried:
            again: list[Ask] = []
            placed = False
            for ask in tried:
                rest = self.place_shape(ask.shape, ask.count)
                placed = placed or rest < ask.count
                if rest:
                    own = ask.shape.constraints
                    may_fit_later = own.affinity or own.spreads or ask.shape.volumes.shared
                    (again if may_fit_later else left).append(Ask(ask.shape, rest, ask.virtual, ask.group))
            tried = again
            if not placed:
                break
        return in_order([*left, *tried])

    def place_shape(self, shape: Shape, count: int) -> int:
        """Place pods of one shape; gives how many are left."""
        if shape.blocked or not self.nodes.count:
            return count
        allowed = self.nodes.allowed_by(shape.rule)
        if not prefers(shape):
            return self._place_among(shape, count, allowed)
        # Pods that prefer to be near or away from each other are placed one by one, as long as they are not too many.
        together = 1 if prefers_pods(shape) and count <= _MOST_ONE_BY_ONE else count
        while count:
            liked = self._liked(shape)
            left = min(together, count)
            begun = left
            for level in np.unique(liked[allowed & self.fits(shape)])[::-1].tolist():
                left = self._place_among(shape, left, allowed & (liked == level))
                if not left:
                    break
            if left == begun:
                break
            count -= begun - left
        return count

    def _place_among(self, shape: Shape, count: int, allowed: Mask) -> int:
        """Place pods on some of the nodes; gives how many are left."""
        if shape.is_constrained:
            return self._place_constrained(shape, count, allowed)
        return self._place_in_bulk(shape, count, allowed)

    def _liked(self, shape: Shape) -> Amounts:
        return liking(
            shape,
            self.nodes,
            self.counters,
            lambda terms: self.nodes.derived(("matching", terms), NodeRule(affinity=terms).affinity_mask),
        )

    def _place_in_bulk(self, shape: Shape, count: int, allowed: Mask) -> int:
        """Fill nodes in their order, a chunk at a time."""
        columns, needs, room = shape.columns, shape.needs, self.room(shape)
        for begin in range(0, self.nodes.count, _CHUNK):
            here = slice(begin, begin + _CHUNK)
            mask = allowed[here]
            for column, need in zip(columns, needs, strict=True):
                mask = mask & (room[column, here] >= need)
            rows = np.flatnonzero(mask)
            if not len(rows):
                continue
            rows += begin
            most = room[columns[0], rows] // needs[0]
            for column, need in zip(columns[1:], needs[1:], strict=True):
                np.minimum(most, room[column, rows] // need, out=most)
            before = np.cumsum(most) - most
            taken = np.clip(count - before, 0, most)
            used = taken > 0
            self.take(shape, rows[used], taken[used])
            count -= int(taken.sum())
            if not count:
                break
        return count

    def _place_constrained(self, shape: Shape, count: int, allowed: Mask) -> int:
        if self._is_independent(shape):
            if not shape.constraints.spreads:
                return self._place_on_each(shape, count, allowed & self.fits(shape))
            left = self._place_spread(shape, count, allowed & self.fits(shape))
            if left is not None:
                return left
        while count:
            mask = allowed & self.fits(shape)
            row = self.choose(shape, mask)
            if row is None:
                break
            most = min(count, self.most_on(shape, row))
            self.take(shape, np.array([row]), np.array([most]))
            count -= most
        return count

    def _is_independent(self, shape: Shape) -> bool:
        """Return whether pods of a shape on one node do not change where others can go, or only by spreads."""
        own = shape.constraints
        if own.affinity or shape.volumes.shared or self._promises(shape):
            return False
        keys = self.counters.definitions.keys
        return all(keys[number].topology in ("", HOSTNAME) for number in set(shape.refused) & set(shape.bumps))

    def _capacities(self, shape: Shape, mask: Mask) -> tuple[Amounts, Amounts]:
        """Return the nodes that counters leave open, and how many pods each takes: one, if they refuse each other."""
        refused = self.counters.refused_mask(shape, self.nodes)
        if refused is not None:
            mask &= ~refused
        rows = np.flatnonzero(mask)
        mutual = sorted(set(shape.refused) & set(shape.bumps))
        for number in mutual:
            domains = self.counters.domains_of(number, self.nodes)[rows]
            _, first = np.unique(domains, return_index=True)
            rows = rows[np.union1d(first, np.flatnonzero(domains < 0))]
        most = (self.free[shape.columns][:, rows] // shape.needs[:, None]).min(axis=0)
        for number in mutual:
            # Nodes without the label are in no domain, where pods do not refuse each other.
            most[self.counters.domains_of(number, self.nodes)[rows] >= 0] = 1
        return rows, most

    def _place_on_each(self, shape: Shape, count: int, mask: Mask) -> int:
        """Place pods on as many nodes as it takes."""
        rows, most = self._capacities(shape, mask)
        taken = np.clip(count - (np.cumsum(most) - most), 0, most)
        used = taken > 0
        self.take(shape, rows[used], taken[used])
        return count - int(taken.sum())

    # Spreads: each pod goes to the first node in an emptiest domain, as in `choose`, but nodes are looked at once.

    def _place_spread(self, shape: Shape, count: int, mask: Mask) -> int | None:
        """Place pods with spread constraints; None if there are too many domains for this way."""
        spreads = shape.constraints.spreads
        domains = [self.nodes.codes(each.counter.topology) for each in spreads]
        for codes in domains:
            mask &= codes >= 0
        rows, most = self._capacities(shape, mask)
        if not len(rows):
            return count
        states = [self.counters.spread(each, self.nodes) for each in spreads]
        if max(state.domains for state in states) <= _FEW_DOMAINS:
            sequence = self._deal(shape, count, rows, most, states)
        elif len(spreads) == 1 and len(np.unique(domains[0][rows])) == len(rows):
            sequence = self._deal_in_rounds(shape, count, rows, most, states[0])
        else:
            return None
        self._take_in_sequence(shape, sequence)
        return count - len(sequence)

    def _deal(self, shape: Shape, count: int, rows: Amounts, most: Amounts, states: Sequence[SpreadState]) -> list[int]:
        """Choose nodes for pods one by one; nodes in the same domains are alike but for their order."""
        spreads = shape.constraints.spreads
        marks = [self.nodes.codes(each.counter.topology)[rows] for each in spreads]
        raised = [self._raised(shape, each)[rows] for each in spreads]
        kinds, inverse = np.unique(np.stack([*marks, *raised], axis=1), axis=0, return_inverse=True)
        inverse = inverse.reshape(-1)
        cells = []
        for number, kind in enumerate(kinds.tolist()):
            here = inverse == number
            nodes = rows[here].repeat(np.minimum(most[here], count))[:count].tolist()
            nodes.reverse()
            cells.append((kind[: len(spreads)], kind[len(spreads) :], nodes))
        counts = [state.counts.tolist() for state in states]
        eligible = [np.flatnonzero(state.eligible).tolist() for state in states]
        least = [state.least for state in states]
        sequence: list[int] = []
        while len(sequence) < count:
            best: tuple[tuple[int, ...], int] | None = None
            for number, (here, _, nodes) in enumerate(cells):
                if not nodes:
                    continue
                found = [each[domain] for each, domain in zip(counts, here, strict=True)]
                if all(
                    one + each.self_match - low <= each.max_skew
                    for one, low, each in zip(found, least, spreads, strict=True)
                ):
                    best = (
                        min(best, ((*found, nodes[-1]), number)) if best is not None else ((*found, nodes[-1]), number)
                    )
            if best is None:
                break
            here, bumps, nodes = cells[best[1]]
            sequence.append(nodes.pop())
            for position, (domain, bump) in enumerate(zip(here, bumps, strict=True)):
                if bump:
                    counts[position][domain] += 1
                    if states[position].domains >= spreads[position].min_domains:
                        least[position] = min((counts[position][each] for each in eligible[position]), default=0)
        return sequence

    def _deal_in_rounds(self, shape: Shape, count: int, rows: Amounts, most: Amounts, state: SpreadState) -> list[int]:
        """Choose nodes, each of which is a domain: in every round one pod for each of the emptiest."""
        (spread,) = shape.constraints.spreads
        domains = self.nodes.codes(spread.counter.topology)[rows]
        raised = self._raised(shape, spread)[rows]
        most, counts, least = most.copy(), state.counts.copy(), state.least
        sequence: list[int] = []
        while len(sequence) < count:
            open_ = np.flatnonzero(most > 0)
            if not len(open_):
                break
            found = counts[domains[open_]]
            lowest = int(found.min())
            if lowest + spread.self_match - least > spread.max_skew:
                break
            chosen = open_[found == lowest][: count - len(sequence)]
            sequence += rows[chosen].tolist()
            most[chosen] -= 1
            counts[domains[chosen]] += raised[chosen]
            if state.domains >= spread.min_domains:
                least = int(counts[: len(state.eligible)][state.eligible].min())
        return sequence

    def _raised(self, shape: Shape, spread: Spread) -> Amounts:
        """Return 1 for the nodes on which a pod of a shape raises the counter of its spread constraint."""
        scope = spread.counter.scope
        if scope is None or self.counters.definitions.find(spread.counter) not in shape.bumps:
            return np.zeros(self.nodes.count, np.int64)
        return self.nodes.in_scope(scope).astype(np.int64)

    def _take_in_sequence(self, shape: Shape, sequence: Sequence[int]) -> None:
        """Place one pod after the other."""
        if sequence:
            rows, amounts = np.unique(np.array(sequence, np.int64), return_counts=True)
            kept = len(self.steps)
            self.take(shape, rows, amounts.astype(np.int64))
            self.steps[kept:] = merged(Step(shape, row, 1) for row in sequence)

    def choose(self, shape: Shape, mask: Mask) -> int | None:
        """Choose a node for one pod: of those that the counters allow the first in an emptiest domain."""
        refused = self.counters.refused_mask(shape, self.nodes)
        if refused is not None:
            mask &= ~refused
        near = self.counters.affinity_mask(shape, self.nodes)
        if near is not None:
            mask &= near
        states = {n: self.counters.spread(each, self.nodes) for n, each in enumerate(shape.constraints.spreads)}
        spread = self.counters.spread_mask(shape, self.nodes, states)
        if spread is not None:
            mask &= spread
        self.share_volumes(shape, mask)
        for row, refusing in self.refused_for_promises(shape, mask):
            if refusing:
                mask[row] = False
        rows = np.flatnonzero(mask)
        if not len(rows):
            return None
        for state, each in zip(states.values(), shape.constraints.spreads, strict=True):
            counts = state.counts[self.nodes.codes(each.counter.topology)[rows]]
            rows = rows[counts == counts.min()]
        return int(rows[0])

    def most_on(self, shape: Shape, row: int) -> int:
        """Return how many pods of a shape may be placed on a node at once: one, if they affect each other."""
        own = shape.constraints
        if own.spreads or shape.volumes.shared or set(shape.refused) & set(shape.bumps) or self._promises(shape):
            return 1
        return int((self.free[shape.columns, row] // shape.needs).min())

    def share_volumes(self, shape: Shape, mask: Mask) -> None:
        """Refuse nodes without room for volumes that are not attached there already."""
        by_driver: dict[str, list[str]] = {}
        for driver, handle in shape.volumes.shared:
            by_driver.setdefault(driver, []).append(handle)
        for driver, handles in by_driver.items():
            column = self.resources.column(ATTACHABLE + driver)
            if column >= len(self.free):
                continue
            own = dict(shape.volumes.attached).get(driver, 0)
            new = np.full(self.nodes.count, own, np.int64)
            for handle in handles:
                new += ~self._has_volume((driver, handle))
            mask &= (new == 0) | (self.free[column] >= new)
            for row, others in self._promises(shape):
                there = {volume for other in others for volume in other.volumes.shared if volume[0] == driver}
                coming = own + sum(
                    (driver, handle) not in there and not self._has_volume((driver, handle))[row] for handle in handles
                )
                taken = sum(dict(other.volumes.attached).get(driver, 0) for other in others)
                taken += sum(not self._has_volume(volume)[row] for volume in there)
                mask[row] &= coming == 0 or self.free[column, row] >= coming + taken

    def _has_volume(self, volume: tuple[str, str]) -> Mask:
        """Return the nodes to which a volume that several pods use is attached."""
        number = self.counters.definitions.find(CounterKey("attached", volume=volume))
        found: Mask = self.counters.counts(number, self.nodes)[self.nodes.positions()] > 0
        return found

    # Pods that preemption has promised a node: kube-scheduler regards those of the same or a higher priority twice, as
    # if they were there already and as if not, and lets a pod on their node only if it fits both times.

    def _promises(self, shape: Shape) -> list[tuple[int, list[Shape]]]:
        """Return the nodes with pods that are promised them and to which pods of a shape must yield."""
        found = []
        for row, shapes in self._promised:
            stronger = [other for other in shapes if other.priority >= shape.priority]
            if stronger:
                found.append((row, stronger))
        return found

    def room(self, shape: Shape) -> Amounts:
        """Return what is free for pods of a shape, by resource and node."""
        promises = self._promises(shape)
        if not promises:
            return self.free
        room = self.free.copy()
        for row, others in promises:
            for other in others:
                room[other.columns, row] -= other.needs
            for volume in sorted({volume for other in others for volume in other.volumes.shared}):
                room[self.resources.column(ATTACHABLE + volume[0]), row] -= not self._has_volume(volume)[row]
        return room

    def refused_for_promises(self, shape: Shape, among: Mask | None = None) -> Iterator[tuple[int, list[str]]]:
        """Yield nodes, and the predicates that refuse a pod as soon as the pods are there that are promised them."""
        for row, others in self._promises(shape):
            if among is not None and not among[row]:
                continue
            counters = self.counters.fork()
            for other in others:
                for number in other.promised_bumps:
                    counters.add(number, self.nodes, np.array([row]), 1)
            states = {n: counters.spread(each, self.nodes) for n, each in enumerate(shape.constraints.spreads)}
            here = View(self.snapshot.nodes, self.order[row : row + 1])
            refused = pod_refusals(counters, shape, here, states=states)
            if self._skips_affinity(shape):
                del refused["InterPodAffinity"]
            yield row, [name for name, mask in refused.items() if mask[0]]

    def _skips_affinity(self, shape: Shape) -> bool:
        """Return whether kube-scheduler leaves affinity out for a pod: no term of its own or of bound pods is on it."""
        if shape.constraints.affinity or shape.constraints.refused:
            return False
        keys = self.counters.definitions.keys
        return not any(
            keys[number].kind == "holders" and self.counters.total(number, self.nodes) for number in shape.refused
        )

    def fits(self, shape: Shape) -> Mask:
        """Return the nodes with enough free resources."""
        room = self.room(shape)
        mask: Mask = room[shape.columns[0]] >= shape.needs[0]
        for column, need in zip(shape.columns[1:], shape.needs[1:], strict=True):
            mask &= room[column] >= need
        return mask

    def take(self, shape: Shape, rows: Amounts, amounts: Amounts) -> None:
        """Place pods of a shape on nodes, so many on each; the nodes must differ."""
        for column, need in zip(shape.columns, shape.needs, strict=True):
            self.free[column, rows] -= need * amounts
        for volume in shape.volumes.shared:
            self.free[self.resources.column(ATTACHABLE + volume[0]), rows] -= ~self._has_volume(volume)[rows]
        for number in shape.bumps:
            self.counters.add(number, self.nodes, rows, amounts)
        self.steps.extend(Step(shape, row, pods) for row, pods in zip(rows.tolist(), amounts.tolist(), strict=True))


def prefers(shape: Shape) -> bool:
    """Return whether a shape prefers some nodes that it may run on."""
    return bool(shape.preferences) or prefers_pods(shape)


def prefers_pods(shape: Shape) -> bool:
    """Return whether which nodes a shape prefers depends on pods."""
    return bool(shape.constraints.preferred or shape.constraints.soft_spreads)


def liking(shape: Shape, nodes: Nodes, counters: Counters, matching: Callable[[AffinityTerms], Mask]) -> Amounts:
    """Return how much a shape prefers each node: weights of its preferred terms, less the pods to spread away from.

    `matching` says which nodes the terms of a node affinity match.
    """
    liked = np.zeros(nodes.count, np.int64)
    for weight, terms in shape.preferences:
        liked += weight * matching(terms)
    for weight, key in shape.constraints.preferred:
        number = counters.definitions.find(key)
        liked += weight * (counters.counts(number, nodes)[counters.domains_of(number, nodes)] > 0)
    for spread in shape.constraints.soft_spreads:
        number = counters.definitions.find(spread.counter)
        liked -= counters.counts(number, nodes)[counters.domains_of(number, nodes)]
    return liked


def merged(steps: Iterable[Step]) -> Iterator[Step]:
    """Merge steps that follow each other on one node with one shape."""
    last: Step | None = None
    for step in steps:
        if last is not None and last.shape is step.shape and last.node == step.node:
            last = Step(last.shape, last.node, last.pods + step.pods)
            continue
        if last is not None:
            yield last
        last = step
    if last is not None:
        yield last
