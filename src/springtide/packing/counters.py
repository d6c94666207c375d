"""Counters: how many pods each topology domain has of those that some constraint counts.

A constraint between pods is a condition on a few numbers: an anti-affinity term needs zero matching pods in the domain
of the node, an affinity term at least one, a spread constraint not too many more than the emptiest domain has. Equal
terms of many pods share one counter. A shape lists the counters that it reads and those that it raises; only shapes
that read none are placed in bulk.

Domains are the codes of the topology label's values. The last element of every array belongs to no domain and stays
zero, so that nodes without the label, whose code is -1, need no case of their own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from springtide.packing.columns import Amounts, Labels, Mask, Nodes
from springtide.packing.predicates import FRESH
from springtide.packing.shapes import CounterKey, NamespaceLabels, Shape, Spread, ports_conflict

HOSTNAME = "kubernetes.io/hostname"
_ROOM = 16
_Numbers = tuple[list[int], list[int], list[int], list[int], list[int]]


class Definitions:
    """The counters that exist, shared by a snapshot and its forks."""

    def __init__(self) -> None:
        self.keys: list[CounterKey] = []
        self._numbers: dict[CounterKey, int] = {}
        self._by_labels: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[int, _Numbers]] = {}
        self._ports: list[int] = []
        self._disks: list[int] = []
        # The counters that can count pods with a label, and those that can count any, in ascending order.
        self._by_label: dict[tuple[str, str], list[int]] = {}
        self._of_any: list[int] = []

    def number(self, key: CounterKey) -> int:
        """Return the number of a counter, a new one for a new key."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.keys)
            self.keys.append(key)
            if key.kind == "ports":
                self._ports.append(number)
            elif key.kind == "disks":
                self._disks.append(number)
            self._index(number, key)
        return number

    def _index(self, number: int, key: CounterKey) -> None:
        if not key.matchers:
            return
        for label, operator, values in key.matchers[0].selector or ():
            if operator == "In":
                for value in values:
                    self._by_label.setdefault((label, value), []).append(number)
                return
        self._of_any.append(number)

    def _candidates(self, start: int, labels: Mapping[str, str]) -> list[int]:
        """Return the counters from a number on that can count pods with these labels."""
        found = self._of_any[bisect_left(self._of_any, start) :]
        for label in labels.items():
            numbers = self._by_label.get(label)
            if numbers is not None and numbers[-1] >= start:
                found = found + numbers[bisect_left(numbers, start) :]
        return sorted(found)

    def find(self, key: CounterKey) -> int:
        """Return the number of a counter that exists."""
        return self._numbers[key]

    def link(self, shape: Shape, known: NamespaceLabels) -> None:
        """List the counters that a shape raises and those that must be zero for it, among all that exist."""
        counted, terminating, holders, wanted_by, promised = self._matching(shape.namespace, shape.labels, known)
        size = len(promised) + len(holders) + len(wanted_by)
        size += (len(self._ports) if shape.ports else 0) + (len(self._disks) if shape.volumes.disks else 0)
        if shape.linked == size:
            return  # nothing new concerns it
        shape.linked = size
        shape.wanted_by = list(wanted_by)
        own = [self._numbers[key] for key in shape.constraints.holds]
        shape.bumps = [*counted, *own]
        shape.terminating_bumps = [*terminating, *own]
        exclusive = [number for number in own if self.keys[number].kind == "claims"]
        # A claim is in use as soon as its pod is bound, not while the pod is only promised a node.
        shape.promised_bumps = [*promised, *(number for number in own if number not in exclusive)]
        refused = [*(self._numbers[key] for key in shape.constraints.refused), *holders, *exclusive]
        for port in shape.ports:
            for number in self._ports:
                taken = self.keys[number].port
                if taken is not None and ports_conflict(port, taken):
                    refused.append(number)
        for disk in shape.volumes.disks:
            for number in self._disks:
                used = self.keys[number].disk
                if used is not None and disk.conflicts_with(used):
                    refused.append(number)
        shape.refused = list(dict.fromkeys(refused))

    def forget_matches(self) -> None:
        """Match labels again: the labels of namespaces have changed."""
        self._by_labels.clear()

    def _matching(self, namespace: str, labels: Mapping[str, str], known: NamespaceLabels) -> _Numbers:
        """Return the counters that count pods with these labels: always, while terminating, those of terms on them, and
        those that count a pod which is promised a node.
        """
        identity = (namespace, tuple(sorted(labels.items())))
        start, numbers = self._by_labels.get(identity) or (0, ([], [], [], [], []))
        counted, terminating, holders, wanted_by, promised = numbers
        if start == len(self.keys):
            return numbers
        for number in self._candidates(start, labels):
            key = self.keys[number]
            listed = key.kind == "matching"
            if not all(each.matches(namespace, labels, known, listed=listed) for each in key.matchers):
                continue
            if key.kind in ("spread", "matching"):
                promised.append(number)
            if key.kind == "spread" and key.matchers[0].selector == ():
                continue  # kube-scheduler counts no pod for an empty selector, unless it is promised the node
            if key.kind == "holders":
                holders.append(number)
            elif key.kind == "preferring":
                wanted_by.append(number)
            else:
                counted.append(number)
                if key.kind == "matching":
                    terminating.append(number)
        self._by_labels[identity] = (len(self.keys), numbers)
        return numbers


@dataclass(slots=True)
class SpreadState:
    """What a spread constraint allows now."""

    counts: Amounts
    eligible: Mask
    """The domains that count."""
    least: int
    """The smallest number of an eligible domain; 0 if there are fewer than `minDomains`."""
    domains: int


class Counters:
    """The counts of a snapshot or of a fork of it; arrays are copied when a fork first changes them."""

    def __init__(self, definitions: Definitions, labels: Labels) -> None:
        self.definitions = definitions
        self._labels = labels
        self._counts: list[Amounts] = []
        self._own: list[bool] = []
        self._totals: list[int] = []
        self._attached: dict[str, Amounts] = {}

    def fork(self) -> Counters:
        """Return an independent copy."""
        other = Counters.__new__(Counters)
        other.definitions, other._labels = self.definitions, self._labels
        other._counts, other._totals = list(self._counts), list(self._totals)
        other._attached = dict(self._attached)
        self._own = [False] * len(self._counts)
        other._own = list(self._own)
        return other

    def counts(self, number: int, nodes: Nodes) -> Amounts:
        """Return the counts of a counter by domain, with room for all domains."""
        while number >= len(self._counts):
            self._counts.append(np.zeros(_ROOM, np.int64))
            self._own.append(True)
            self._totals.append(0)
        counts = self._counts[number]
        topology = self.definitions.keys[number].topology
        if topology:
            nodes.codes(topology)  # values that are seen now for the first time need room as well
        size = len(self._labels.values(topology)) if topology else nodes.last_position
        if size >= len(counts):
            grown = np.zeros(size + size // 8 + _ROOM, np.int64)
            grown[: len(counts)] = counts
            self._counts[number] = counts = grown
            self._own[number] = True
        return counts

    def total(self, number: int, nodes: Nodes) -> int:
        """Return the sum over all domains."""
        self.counts(number, nodes)
        return self._totals[number]

    def domains_of(self, number: int, nodes: Nodes) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        """Return the domain of each node for a counter; -1: none."""
        topology = self.definitions.keys[number].topology
        return nodes.codes(topology) if topology else nodes.positions()

    def add(self, number: int, nodes: Nodes, rows: Amounts, amounts: Amounts | int) -> None:
        """Add pods on nodes to a counter; those on nodes outside its scope do not count."""
        counts = self.counts(number, nodes)
        if not self._own[number]:
            counts = self._counts[number] = counts.copy()
            self._own[number] = True
        domains = self.domains_of(number, nodes)[rows]
        counted = domains >= 0
        scope = self.definitions.keys[number].scope
        if scope is not None:
            counted &= nodes.in_scope(scope)[rows]
        if not counted.all():
            domains = domains[counted]
            amounts = amounts if isinstance(amounts, int) else amounts[counted]
        volume = self.definitions.keys[number].volume
        before = counts > 0 if volume is not None else None
        np.add.at(counts, domains, amounts)
        self._totals[number] += int(amounts) * len(domains) if isinstance(amounts, int) else int(amounts.sum())
        if volume is not None and before is not None:
            self._attach(volume[0], before, counts > 0)

    def clear(self, number: int, nodes: Nodes) -> None:
        """Set a counter to zero, to count anew."""
        counts = self.counts(number, nodes)
        volume = self.definitions.keys[number].volume
        if volume is not None:
            self._attach(volume[0], counts > 0, np.zeros(len(counts), np.bool_))
        self._counts[number] = np.zeros_like(counts)
        self._own[number], self._totals[number] = True, 0

    def _attach(self, driver: str, before: Mask, after: Mask) -> None:
        """Note on which nodes a volume of a driver is attached that was not, or is not any more."""
        known = self._attached.get(driver)
        change = after.astype(np.int64) - before
        if known is not None:
            longer, shorter = (known, change) if len(known) > len(change) else (change, known)
            change = longer.copy()
            change[: len(shorter)] += shorter
        self._attached[driver] = change

    def attached(self, rows: Amounts) -> dict[str, Amounts]:
        """Return how many volumes that several pods use are attached to nodes at these positions, by driver."""
        found = {}
        for driver, numbers in self._attached.items():
            inside = rows < len(numbers)
            found[driver] = np.where(inside, numbers[np.where(inside, rows, 0)], 0)
        return found

    def spread(self, spread: Spread, nodes: Nodes, offered: Sequence[Nodes] = ()) -> SpreadState:
        """Return the state of a spread constraint over the nodes, and over the domains that offerings could add."""
        number = self.definitions.find(spread.counter)
        for columns in offered:
            columns.codes(spread.counter.topology)
        counts = self.counts(number, nodes)
        eligible = self.eligible_domains(spread.counter, nodes, offered, len(counts))
        found = counts[eligible]
        least = int(found.min()) if len(found) >= max(1, spread.min_domains) else 0
        return SpreadState(counts, eligible, least, len(found))

    def eligible_domains(self, key: CounterKey, nodes: Nodes, offered: Sequence[Nodes], size: int) -> Mask:
        """Return the domains of nodes in the scope of a constraint, and those that offerings in it could add."""
        scope, topology = key.scope, key.topology
        assert scope is not None  # noqa: S101 - spread counters have one
        eligible = np.zeros(size, np.bool_)
        for columns in (nodes, *offered):
            codes = columns.codes(topology)[columns.in_scope(scope)]
            eligible[codes[codes >= 0]] = True
        fresh = self._labels.code(topology, FRESH) if topology == HOSTNAME and offered else -1
        if fresh >= 0:
            eligible[fresh] = False
        return eligible

    def refused_mask(self, shape: Shape, nodes: Nodes) -> Mask | None:
        """Return the nodes where a counter that must be zero is not; None: no node."""
        mask: Mask | None = None
        for number in shape.refused:
            if self.total(number, nodes):
                found = self.counts(number, nodes)[self.domains_of(number, nodes)] > 0
                mask = found if mask is None else mask | found
        return mask

    def affinity_mask(self, shape: Shape, nodes: Nodes, everywhere: Nodes | None = None) -> Mask | None:
        """Return the nodes that meet the affinity terms; None: all do.

        Where no pod matches yet, a pod that matches its own terms may go to any node that has their labels.
        """
        terms = shape.constraints.affinity
        if not terms:
            return None
        whole = everywhere or nodes
        numbers = [self.definitions.find(key) for key in terms]
        first = shape.constraints.affinity_self and not any(self.total(number, whole) for number in numbers)
        mask = np.ones(nodes.count, np.bool_)
        for number in numbers:
            domains = self.domains_of(number, nodes)
            mask &= domains >= 0 if first else self.counts(number, whole)[domains] > 0
        return mask

    def spread_mask(self, shape: Shape, nodes: Nodes, states: Mapping[int, SpreadState]) -> Mask | None:
        """Return the nodes that the spread constraints allow; None: all. `states` are those of the constraints."""
        spreads = shape.constraints.spreads
        if not spreads:
            return None
        mask = np.ones(nodes.count, np.bool_)
        for position, spread in enumerate(spreads):
            state = states[position]
            domains = nodes.codes(spread.counter.topology)
            allowed = state.counts + (spread.self_match - state.least) <= spread.max_skew
            allowed[-1] = False
            mask &= allowed[domains]
        return mask


def pod_refusals(
    counters: Counters,
    shape: Shape,
    nodes: Nodes,
    offered: tuple[Nodes, ...] = (),
    states: Mapping[int, SpreadState] | None = None,
) -> dict[str, Mask]:
    """Return where the pods that are placed already leave no place for a pod."""
    found = {name: np.zeros(nodes.count, np.bool_) for name in _BY_PODS}
    for number in shape.refused:
        taken = counters.counts(number, nodes)[counters.domains_of(number, nodes)] > 0
        found[_REFUSED_BY.get(counters.definitions.keys[number].kind, "InterPodAffinity")] |= taken
    near = counters.affinity_mask(shape, nodes)
    if near is not None:
        found["InterPodAffinity"] |= ~near
    if states is None:
        states = {n: counters.spread(each, nodes, offered) for n, each in enumerate(shape.constraints.spreads)}
    spread = counters.spread_mask(shape, nodes, states)
    if spread is not None:
        found["PodTopologySpread"] |= ~spread
    return found


_REFUSED_BY = {"ports": "NodePorts", "disks": "VolumeRestrictions", "claims": "VolumeRestrictions"}
_BY_PODS = ("NodePorts", "VolumeRestrictions", "PodTopologySpread", "InterPodAffinity")


def bump(counters: Counters, shape: Shape, nodes: Nodes, rows: Amounts, amounts: Amounts | int) -> None:
    """Count pods of a shape on nodes."""
    for number in shape.bumps:
        counters.add(number, nodes, rows, amounts)


def topologies(shapes: Iterable[Shape]) -> set[str]:
    """Return the topology labels that shapes read."""
    return {
        key.topology
        for shape in shapes
        for key in (
            *shape.constraints.affinity,
            *shape.constraints.refused,
            *(spread.counter for spread in shape.constraints.spreads),
        )
    }
