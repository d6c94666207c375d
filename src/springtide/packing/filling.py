"""Filling: nodes that constraints force to exist, filled one after the other with what goes together best.

Where pods refuse each other on a node, their number decides how many nodes there are, and each node should be as large
as its share of all pods. Nodes are opened one by one. The size of the next one follows from what is left for each of
the nodes that are still needed; then those pods are put on it that use the free room in its own proportions, until none
fits. Pods without a place to keep are left to the other solvers once all places are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from springtide.packing.columns import Amounts, Mask

_BITS = 10
_NEVER = 1 << 62
_NONE = -1


@dataclass(frozen=True, slots=True)
class FillingProblem:
    """Hands of pods and the offerings that they may run on, in numbers."""

    requests: Amounts
    """[hands, resources]"""
    counts: Amounts
    domains: Amounts
    """[hands]: the domain that a hand was dealt to; -1: any."""
    kinds: Amounts
    """[hands]: the row of `runs`."""
    runs: Mask
    """[kinds, offerings]"""
    places: Amounts
    """[places]: how many a node has."""
    takes: Mask
    """[hands, places]"""
    capacity: Amounts
    """[offerings, resources]"""
    price: Amounts
    offering_domains: Amounts
    order: Amounts
    """Offerings by price, in a total order."""


@dataclass(slots=True)
class FilledNode:
    """A node and the pods on it, by hand."""

    offering: int
    pods: dict[int, int]


def fill(problem: FillingProblem, available: Amounts) -> tuple[list[FilledNode], Amounts]:
    """Open nodes until every pod that takes a place has one; gives them and the counts that are left.

    `available` says how many nodes of each offering there may be; it is decremented. Small problems are solved for
    several numbers of nodes: the fewest that places allow are not always the cheapest.
    """
    best: tuple[int, list[FilledNode], Amounts, Amounts] | None = None
    for percent, whole in _attempts(problem):
        rest = available.copy()
        filling = _Filling(problem, rest, percent, whole)
        nodes, left = filling.run()
        if nodes:
            left = mend(problem, nodes, left, rest)
            right_sized(problem, nodes, rest)
        cost = filling.estimate(nodes, left)
        if best is None or cost < best[0]:
            best = cost, nodes, left, rest
        if percent == _PERCENT[0] and not left.any() and len(nodes) <= filling.forced and not _is_small(problem):
            break
    assert best is not None  # noqa: S101 - there is always one attempt
    available[:] = best[3]
    return best[1], best[2]


def _attempts(problem: FillingProblem) -> Iterator[tuple[int, bool]]:
    """Yield for how many nodes, and by which rule, their sizes are chosen."""
    for percent in _PERCENT if _is_small(problem) else _PERCENT[:1]:
        yield percent, False
        yield percent, True


def _is_small(problem: FillingProblem) -> bool:
    return int(problem.counts.sum()) <= _MOST_TRIED


_SLACK = 6
"""Shares are larger by this power of one half, so that the last nodes need not take what fits nowhere else."""
_COMPACTED_EVERY = 64
_LOOKED_AT = 8
_FEW_HANDS = 6
_PERCENT = (100, 115, 133, 160, 200, 300)
"""For how many nodes sizes are chosen, in percent of the fewest that places allow."""
_MOST_TRIED = 600
"""For no more pods than this several numbers of nodes are tried."""


class _Candidates:
    """The hands that may go to one domain, as arrays of their own; those without pods are dropped now and then."""

    def __init__(self, problem: FillingProblem, need: Amounts, left: Amounts, domain: int) -> None:
        self._problem, self._need, self._left = problem, need, left
        self.hands = np.flatnonzero((problem.domains == domain) | (problem.domains == _NONE))
        self._uses = 0
        self._compact()

    def _compact(self) -> None:
        problem = self._problem
        self.hands = self.hands[self._left[self.hands] > 0]
        self.requests = [np.ascontiguousarray(column) for column in problem.requests[self.hands].T]
        self.takes = [np.ascontiguousarray(column) for column in problem.takes[self.hands].T]
        self.need = [np.ascontiguousarray(column) for column in self._need[self.hands].T]
        self.kinds = problem.kinds[self.hands]

    def fitting(self, offering: int, free: Sequence[int], places: Sequence[int]) -> Amounts:
        """Return the positions of hands of which a pod fits."""
        self._uses += 1
        if not self._uses % _COMPACTED_EVERY:
            self._compact()
        mask = self._left[self.hands] > 0
        for column, amount in zip(self.requests, free, strict=True):
            mask &= column <= amount
        if len(self._problem.runs) > 1:
            mask &= self._problem.runs[:, offering][self.kinds]
        for takes, rest in zip(self.takes, places, strict=True):
            if rest <= 0:
                mask &= ~takes
        return np.flatnonzero(mask)

    def still_fitting(self, rows: Amounts, free: Sequence[int], places: Sequence[int], spent: int) -> Amounts:
        """Return those of some positions of which a pod fits after another one was put on the node."""
        mask = self._left[self.hands[rows]] > 0
        for column, amount in zip(self.requests, free, strict=True):
            mask &= column[rows] <= amount
        for number, (takes, rest) in enumerate(zip(self.takes, places, strict=True)):
            if rest <= 0 and spent >> number & 1:
                mask &= ~takes[rows]
        return rows[mask]


class _Filling:
    def __init__(self, problem: FillingProblem, available: Amounts, percent: int, whole: bool) -> None:
        """Fill nodes of so many percent of the number that places ask for.

        Sizes have the best price for what the share of a node uses of them, or (`whole`) the best for all of it.
        """
        self.problem, self.available, self._percent, self._whole = problem, available, percent, whole
        self.forced = 0
        """How many nodes places ask for."""
        self.left = problem.counts.copy()
        self.nodes: list[FilledNode] = []
        largest = np.maximum(problem.capacity.max(axis=0, initial=1), 1)
        self._shift = np.array([max(0, int(each).bit_length() - 30) for each in largest], np.int64)
        self._total = (problem.requests * self.left[:, None]).sum(axis=0)
        self._weights = self._resource_weights()
        """What a unit of each resource is worth beside the others, by what there is of them."""
        self._need = self._weighted(problem.requests)
        domains = int(problem.offering_domains.max(initial=0)) + 1
        self._load = [
            int(self._need[problem.domains == domain].sum(axis=1) @ self.left[problem.domains == domain])
            for domain in range(domains)
        ]
        self._left_places: list[int] = (problem.takes * self.left[:, None]).sum(axis=0).tolist()
        self._places: list[int] = problem.places.tolist()
        self._requests: list[list[int]] = problem.requests.tolist()
        self._taken: list[list[int]] = [np.flatnonzero(row).tolist() for row in problem.takes]
        self._cheapest: dict[tuple[int, int], tuple[Amounts, Amounts, Amounts]] = {}
        self._able: dict[int, list[int]] = {}
        self._hands: dict[int, _Candidates] = {}

    def _resource_weights(self) -> Amounts:
        """Weigh resources so that what all offerings have of each counts the same, and scarce ones count more."""
        whole = np.maximum(self.problem.capacity.sum(axis=0) >> self._shift, 1)
        asked = ((self._total >> self._shift) << _BITS) // whole
        scarcity = (asked << _BITS) // max(1, int(asked.max(initial=1)))
        weights = ((int(whole.max()) << 4) // whole) * (scarcity * scarcity >> _BITS) >> _BITS
        return np.asarray(weights, np.int64)

    def _weighted(self, amounts: Amounts) -> Amounts:
        return np.asarray((amounts >> self._shift) * self._weights >> 4, np.int64)

    def run(self) -> tuple[list[FilledNode], Amounts]:
        """Open and fill nodes until no pod that takes a place is left."""
        problem = self.problem
        blocked = np.zeros(len(self.left), np.bool_)
        most, forced = _few_of(self.left), -1
        self.forced = max(self._wanted(), default=0)
        while self._places:
            wanted = self._wanted()
            place = wanted.index(max(wanted))
            forced = -(-wanted[place] * self._percent // 100) if forced < 0 else forced
            if not wanted[place] or (len(self.nodes) >= forced and int(self.left.sum()) <= most):
                break
            takers = np.flatnonzero(problem.takes[:, place] & (self.left > 0) & ~blocked)
            if not len(takers):
                self._left_places[place] = 0
                continue
            first = int(takers[np.argmax(self._need[takers].sum(axis=1))])
            node = self._open(first, wanted[place])
            if node is None:
                blocked[first] = True
                for number in self._taken[first]:
                    self._left_places[number] -= int(self.left[first])
                continue
            self._fill(node, first, wanted[place])
            self.nodes.append(node)
        return self.nodes, self.left

    def _wanted(self) -> list[int]:
        """Return how many nodes each kind of place still asks for."""
        return [-(-left // places) for left, places in zip(self._left_places, self._places, strict=True)]

    def estimate(self, nodes: Sequence[FilledNode], left: Amounts) -> int:
        """Return what nodes cost, and those for the pods that are left at the same price for their size."""
        cost = sum(int(self.problem.price[node.offering]) for node in nodes)
        rest = int(self._need.sum(axis=1) @ left)
        placed = int(self._need.sum(axis=1) @ (self.problem.counts - left))
        return cost + (cost * rest // placed if placed else rest << _BITS)

    def _open(self, first: int, nodes: int) -> FilledNode | None:
        """Open a node for a pod, of the size that its share of everything asks for."""
        problem = self.problem
        domain, kind = int(problem.domains[first]), int(problem.kinds[first])
        if domain == _NONE:
            able = self._domains_of(kind)
            if not able:
                return None
            domain = max(able, key=lambda each: (self._load[each], -each))
        share = -(-self._total * 100 // (nodes * self._percent))
        target = np.maximum(share + (share >> _SLACK), problem.requests[first])
        candidates, capacity, price = self._candidates(kind, domain)
        usable = (capacity >= problem.requests[first]).all(axis=1) & (self.available[candidates] > 0)
        useful = ((np.minimum(capacity, target) >> self._shift) * self._weights >> 4).sum(axis=1)
        # The best price for what will be used; of equal ones the larger, which leaves fewer remainders.
        each = price // np.maximum(useful, 1)
        if self._whole:
            usable &= useful == useful.max(where=usable, initial=0)
            each = price
        each = np.where(usable, each, _NEVER)
        best = np.flatnonzero(each == each.min(initial=_NEVER))
        if not len(best) or each[best[0]] == _NEVER:
            return None
        offering = int(candidates[best[np.argmax(useful[best])]])
        self.available[offering] -= 1
        return FilledNode(offering, {})

    def _domains_of(self, kind: int) -> list[int]:
        known = self._able.get(kind)
        if known is None:
            known = self._able[kind] = np.unique(self.problem.offering_domains[self.problem.runs[kind]]).tolist()
        return known

    def _candidates(self, kind: int, domain: int) -> tuple[Amounts, Amounts, Amounts]:
        """Return the offerings of a domain for pods of a kind, by price, with their capacity and their scaled price."""
        key = (kind, domain)
        known = self._cheapest.get(key)
        if known is None:
            problem = self.problem
            order = problem.order
            chosen = order[problem.runs[kind][order] & (problem.offering_domains[order] == domain)]
            known = self._cheapest[key] = chosen, problem.capacity[chosen], problem.price[chosen] << _BITS
        return known

    def _fill(self, node: FilledNode, first: int, nodes: int) -> None:
        """Put pods on a node, each time the one that uses what is free in its own proportions."""
        problem = self.problem
        domain = int(problem.offering_domains[node.offering])
        hands = self._hands.get(domain)
        if hands is None:
            hands = self._hands[domain] = _Candidates(problem, self._need, self.left, domain)
        free: list[int] = problem.capacity[node.offering].tolist()
        places = self._places.copy()
        weights, shifts = self._weights.tolist(), self._shift.tolist()
        pick, rows, spent = first, None, 0
        while True:
            self._put(node, pick, free, places)
            for number in self._taken[pick]:
                spent |= 1 << number
            if rows is None:
                rows = hands.fitting(node.offering, free, places)
            else:
                rows = hands.still_fitting(rows, free, places, spent)
            if not len(rows):
                return
            pressing = self._pressing(hands, rows, nodes)
            choice = rows if pressing is None else pressing
            score = np.zeros(len(choice), np.int64)
            for column, amount, weight, shift in zip(hands.need, free, weights, shifts, strict=True):
                if weight:
                    score += column[choice] * ((amount >> shift) * weight >> 4 >> _BITS)
            pick = self._of_equals(hands.hands[choice[score == score.max()]])

    def _of_equals(self, hands: Amounts) -> int:
        """Choose among hands that go together with a node equally well: the one of whose place most are left."""
        if len(hands) == 1:
            return int(hands[0])
        left = self._left_places
        if len(hands) > _FEW_HANDS:
            most = np.where(self.problem.takes[hands], np.array(left, np.int64), 0).max(axis=1, initial=0)
            return int(hands[np.argmax(most)])
        found: int = max(hands.tolist(), key=lambda hand: max((left[n] for n in self._taken[hand]), default=0))
        return found

    def _pressing(self, hands: _Candidates, rows: Amounts, nodes: int) -> Amounts | None:
        """Return the hands whose places are so many that every remaining node must take one; None: there are none."""
        left, places = self._left_places, self._places
        pressing = [number for number in range(len(left)) if left[number] >= places[number] * nodes]
        for number in sorted(pressing, key=lambda each: -left[each]):
            found: Amounts = rows[hands.takes[number][rows]]
            if len(found):
                return found
        return None

    def _put(self, node: FilledNode, pick: int, free: list[int], places: list[int]) -> None:
        self.left[pick] -= 1
        node.pods[pick] = node.pods.get(pick, 0) + 1
        for column, amount in enumerate(self._requests[pick]):
            free[column] -= amount
        self._total -= self.problem.requests[pick]
        domain = int(self.problem.domains[pick])
        if domain >= 0:
            self._load[domain] -= int(self._need[pick].sum())
        for number in self._taken[pick]:
            places[number] -= 1
            self._left_places[number] -= 1


def _few_of(counts: Amounts) -> int:
    """Return how many pods may be placed one by one without much effort."""
    return max(128, int(counts.sum()) // 20)


def mend(problem: FillingProblem, nodes: list[FilledNode], left: Amounts, available: Amounts) -> Amounts:
    """Place a few pods one by one: into free room, by enlarging a node, or on a new one, whatever costs least.

    Gives the counts that are left: all of them if they are many.
    """
    if not left.any() or int(left.sum()) > _few_of(problem.counts):
        return left
    return _Mending(problem, nodes, available).run(left.copy())


class _Mending:
    def __init__(self, problem: FillingProblem, nodes: list[FilledNode], available: Amounts) -> None:
        self.problem, self.nodes, self.available = problem, nodes, available
        size = len(nodes) + _few_of(problem.counts)
        self._used = np.zeros((size, problem.requests.shape[1]), np.int64)
        self._free = np.zeros_like(self._used)
        self._places = np.zeros((size, len(problem.places)), np.int64)
        self._domain = np.full(size, -2, np.int64)
        self._kinds: list[set[int]] = []
        self._sizes: dict[tuple[int, tuple[int, ...]], tuple[Amounts, Amounts]] = {}
        capacity = np.maximum(problem.capacity.max(axis=0, initial=1), 1)
        self._shift = np.array([max(0, int(each).bit_length() - 20) for each in capacity], np.int64)
        self._scale = (1 << 30) // np.maximum(capacity >> self._shift, 1)
        for row, node in enumerate(nodes):
            hands, pods = np.array(list(node.pods), np.int64), np.array(list(node.pods.values()), np.int64)
            self._used[row] = (problem.requests[hands] * pods[:, None]).sum(axis=0)
            self._places[row] = problem.places - (problem.takes[hands] * pods[:, None]).sum(axis=0)
            self._kinds.append(set(problem.kinds[hands].tolist()))
            self._settle(row, node.offering)

    def _settle(self, row: int, offering: int) -> None:
        self._free[row] = self.problem.capacity[offering] - self._used[row]
        self._domain[row] = self.problem.offering_domains[offering]

    def run(self, left: Amounts) -> Amounts:
        """Place pods, the large ones first; gives the counts that are left."""
        size = ((self.problem.requests >> self._shift) * self._scale).sum(axis=1)
        hands = np.flatnonzero(left)
        for hand in hands[np.lexsort((hands, -size[hands]))].tolist():
            while left[hand] and self._place(hand):
                left[hand] -= 1
        return left

    def _place(self, hand: int) -> bool:
        problem, count = self.problem, len(self.nodes)
        need, domain, kind = problem.requests[hand], int(problem.domains[hand]), int(problem.kinds[hand])
        able = np.ones(count, np.bool_) if domain == _NONE else self._domain[:count] == domain
        takes = problem.takes[hand]
        if takes.any():
            able &= (self._places[:count, takes] > 0).all(axis=1)
        rows = np.flatnonzero(able)
        lack = ((np.maximum(need - self._free[rows], 0) >> self._shift) * self._scale).sum(axis=1)
        best = (1 << 62, 0, -1, -1)
        for _ in range(min(_LOOKED_AT, len(rows))):
            position = int(np.argmin(lack))
            row = int(rows[position])
            found = self._cheapest(row, kind, need)
            if found >= 0:
                price = int(problem.price[found] - problem.price[self.nodes[row].offering])
                best = min(best, (price, position, row, found))
            lack[position] = 1 << 62
        new = self._new(kind, domain, need)
        if new >= 0 and int(problem.price[new]) < best[0] and count < len(self._domain):
            self.available[new] -= 1
            self.nodes.append(FilledNode(new, {}))
            self._kinds.append(set())
            self._places[count] = problem.places
            best = (0, 0, count, new)
        elif best[2] < 0:
            return False
        else:
            self.available[self.nodes[best[2]].offering] += 1
            self.available[best[3]] -= 1
        row, node = best[2], self.nodes[best[2]]
        node.offering = best[3]
        node.pods[hand] = node.pods.get(hand, 0) + 1
        self._kinds[row].add(kind)
        self._used[row] += need
        self._places[row] -= takes
        self._settle(row, best[3])
        return True

    def _cheapest(self, row: int, kind: int, need: Amounts) -> int:
        """Return the cheapest offering that takes what is on a node and one more pod; -1: none."""
        current = self.nodes[row].offering
        if (need <= self._free[row]).all() and self.problem.runs[kind, current]:
            return current
        offerings, capacity = self._offerings(int(self._domain[row]), tuple(sorted(self._kinds[row] | {kind})))
        fits = (capacity >= self._used[row] + need).all(axis=1) & (self.available[offerings] > 0)
        found = np.flatnonzero(fits)
        return int(offerings[found[0]]) if len(found) else -1

    def _new(self, kind: int, domain: int, need: Amounts) -> int:
        domains = [domain] if domain != _NONE else np.unique(self.problem.offering_domains).tolist()
        best = -1
        for each in domains:
            offerings, capacity = self._offerings(each, (kind,))
            found = np.flatnonzero((capacity >= need).all(axis=1) & (self.available[offerings] > 0))
            if len(found) and (best < 0 or self.problem.price[offerings[found[0]]] < self.problem.price[best]):
                best = int(offerings[found[0]])
        return best

    def _offerings(self, domain: int, kinds: tuple[int, ...]) -> tuple[Amounts, Amounts]:
        known = self._sizes.get((domain, kinds))
        if known is None:
            problem = self.problem
            mask = problem.offering_domains == domain
            for kind in kinds:
                mask &= problem.runs[kind]
            chosen = problem.order[mask[problem.order]]
            known = self._sizes[domain, kinds] = chosen, np.ascontiguousarray(problem.capacity[chosen])
        return known


def right_sized(problem: FillingProblem, nodes: Sequence[FilledNode], available: Amounts) -> None:
    """Make each node of the cheapest offering in its domain that takes what it has."""
    by_domain: dict[int, Amounts] = {}
    for domain in np.unique(problem.offering_domains).tolist():
        order = problem.order
        by_domain[domain] = order[problem.offering_domains[order] == domain]
    for node in nodes:
        hands = np.array(list(node.pods), np.int64)
        used = (problem.requests[hands] * np.array(list(node.pods.values()), np.int64)[:, None]).sum(axis=0)
        candidates = by_domain[int(problem.offering_domains[node.offering])]
        fits = (problem.capacity[candidates] >= used).all(axis=1) & (available[candidates] > 0)
        for kind in np.unique(problem.kinds[hands]).tolist():
            fits &= problem.runs[kind][candidates]
        found = np.flatnonzero(fits)
        if len(found):
            offering = int(candidates[found[0]])
            if problem.price[offering] < problem.price[node.offering]:
                available[node.offering] += 1
                available[offering] -= 1
                node.offering = offering
