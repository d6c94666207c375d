"""Offerings: every node that the pools could add, as columns beside those of the nodes that exist.

An offering is a pool, an instance type, a zone and a capacity type. Its labels are those that the node would have, and
what pods can use is what is allocatable less the pods of DaemonSets that would run there. The same rules are evaluated
on offerings and on nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from springtide.apis.core.nodes import NodeTaint
from springtide.apis.core.pod_record import HostPort
from springtide.packing.catalogue import (
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    ZONE_LABEL,
    InstanceType,
    Offering,
)
from springtide.packing.columns import (
    ATTACHABLE,
    CPU,
    MEMORY,
    MOST,
    AffinityTerms,
    Amounts,
    Codes,
    Mask,
    NodeColumns,
    NodeRule,
)
from springtide.packing.predicates import FRESH, Requirement, holds
from springtide.packing.shapes import Shape, ports_conflict
from springtide.packing.snapshot import Snapshot
from springtide.quantity import Quantity

_MOST_CUSTOM_VALUES = 16
"""How many combinations of custom labels a pool is expanded to."""
UNLIMITED = 1 << 62
_EVERY_NODE = 1 << 40
_MOST_KEPT = 4_096
"""For how many shapes it is kept on which offerings they can run."""
_TIE_BITS = 20
_MEBIBYTE = 20


@dataclass(frozen=True, slots=True)
class Pool:
    """A NodePool, as far as nodes can be added to it."""

    name: str
    requirements: tuple[Requirement, ...] = ()
    min_values: Mapping[str, int] = field(default_factory=dict)
    """How many values of a label the instance types that remain for a node must have."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[NodeTaint, ...] = ()
    weight: int = 0
    limits: Mapping[str, Quantity] = field(default_factory=dict)
    used: Mapping[str, Quantity] = field(default_factory=dict)
    """What its nodes have of the limited resources; `nodes` is their number."""


class Offered(NodeColumns):
    """The columns of offerings: no pod is on them, so they have no position."""

    def positions(self) -> Codes:
        """Return -1 for each: a new node has no counted pods."""
        return np.full(self.count, -1, np.int32)

    @property
    def last_position(self) -> int:
        """No position is in use."""
        return 0

    def masked(self, gone: Mask) -> Offered:
        """Return the same columns as if some offerings were not there."""
        other = copy(self)
        other.alive = self.alive.copy()
        other.alive[: self.count] &= ~gone
        other._masks = {}
        return other


class Offerings:
    """All offerings of some pools, for one snapshot."""

    def __init__(self, snapshot: Snapshot, pools: Sequence[Pool], types: Sequence[InstanceType]) -> None:
        """Expand pools and types; the order of neither matters."""
        self.snapshot = snapshot
        self.pools = tuple(sorted(pools, key=lambda pool: (-pool.weight, pool.name)))
        self.types = tuple(sorted(types, key=lambda each: each.name))
        self.columns = Offered(snapshot.resources, snapshot.labels)
        self.pool: list[int] = []
        self.type: list[int] = []
        self.offering: list[Offering] = []
        self.missing: dict[str, int] = {}
        """How many types of each pool have no available offering."""
        self._ports: list[tuple[HostPort, Mask]] = []
        self._matching: dict[AffinityTerms, Mask] = {}
        self._capable: dict[object, Mask] = {}
        prices: list[int] = []
        available: list[int] = []
        amounts = [snapshot.resources.amounts(each.allocatable) for each in self.types]
        snapshot.nodes.widen()
        for number, pool in enumerate(self.pools):
            for type_number, each in enumerate(self.types):
                found = 0
                for labels, offering in _expanded(pool, each):
                    if not offering.available or offering.count == 0:
                        continue
                    found += 1
                    self.columns.add(FRESH, labels, pool.taints, amounts[type_number])
                    self.pool.append(number)
                    self.type.append(type_number)
                    self.offering.append(offering)
                    prices.append(offering.price)
                    available.append(UNLIMITED if offering.count is None else offering.count)
                if not found:
                    self.missing[pool.name] = self.missing.get(pool.name, 0) + 1
        self.cost = np.array(prices, np.int64)
        """Nano-dollars per hour of one node."""
        self.price = self.cost
        """What a strategy minimizes: the cost, unless `preferring` says otherwise."""
        self.available = np.array(available, np.int64)
        kinds: dict[tuple[int, str, str], int] = {}
        self.reservation = np.array(
            [
                -1 if one.count is None else kinds.setdefault((number, one.zone, one.capacity_type), len(kinds))
                for number, one in zip(self.type, self.offering, strict=True)
            ],
            np.int64,
        )
        """The number of the reservation that an offering uses, which pools share; -1: none."""
        self.pool_of = np.array(self.pool, np.int64)
        self.type_of = np.array(self.type, np.int64)
        self.weight = np.array([self.pools[number].weight for number in self.pool], np.int64)
        self._widened = False
        self.widen()
        self._subtract_daemons()
        # A total order: price, then names.
        keys = [self._name(number) for number in range(self.columns.count)]
        ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        self.rank = np.array([ranks[key] for key in keys], np.int64)
        self.by_price = np.lexsort((self.rank, self.price)) if keys else np.zeros(0, np.int64)
        names = sorted({name for pool in self.pools for name in pool.limits if name != "nodes"})
        self.limited = tuple(names)
        """Resources that some pool limits."""
        self.capacity = np.array(
            [[_amount(name, self.types[number].capacity.get(name)) for name in names] + [1] for number in self.type],
            np.int64,
        ).reshape(self.columns.count, len(names) + 1)
        """What a node of an offering counts against the limits; the last column is the node itself."""

        self._values = self._labels_with_min_values()

    @property
    def count(self) -> int:
        """How many offerings there are."""
        return self.columns.count

    def preferring(self, strategy: str, shapes: Sequence[Shape] = ()) -> Offerings:
        """Return the same offerings with the prices and the order of pools that a strategy minimizes.

        least-nodes: every node costs the same. least-waste: a node costs what it has, whatever its price. most-pods:
        pools that can run more of the shapes come first. priority: the pools one after the other, by weight and name.
        """
        other = copy(self)
        if strategy == "least-nodes":
            other.price = _EVERY_NODE + self.cost // max(1, int(self.cost.max(initial=1)) >> _TIE_BITS)
        elif strategy == "least-waste":
            amounts = self.columns.allocatable[:, : self.count]
            cpus, memory = amounts[CPU], amounts[MEMORY] >> _MEBIBYTE
            other.price = np.maximum(cpus + memory * max(1, int(cpus.sum())) // max(1, int(memory.sum())), 1)
        elif strategy == "most-pods":
            runs = np.zeros(self.count, np.int64)
            for shape in shapes:
                runs += self.capable_of(shape)
            most = np.zeros(len(self.pools), np.int64)
            np.maximum.at(most, self.pool_of, runs)
            other.weight = self.weight * (len(shapes) + 1) + most[self.pool_of]
        elif strategy == "priority":
            other.weight = len(self.pools) - self.pool_of
        other.by_price = np.lexsort((other.rank, other.price)) if self.count else self.by_price
        return other

    def without(self, gone: Mask) -> Offerings:
        """Return the same offerings, by the same numbers, of which some cannot be used."""
        if not gone.any():
            return self
        other = copy(self)
        other.columns, other._capable = self.columns.masked(gone), {}
        return other

    def useless_domains(self, shapes: Iterable[Shape]) -> Mask:
        """Return the offerings in domains that a spread constraint would count and that cannot take its pods.

        Without them the constraint does not have to keep its pods as few as none.
        """
        gone = np.zeros(self.count, np.bool_)
        for shape in shapes:
            capable = self.capable_of(shape) if shape.constraints.spreads else gone
            for spread in shape.constraints.spreads:
                codes, scope = self.columns.codes(spread.counter.topology), spread.counter.scope
                if spread.counter.topology == HOSTNAME_LABEL or scope is None or not capable.any():
                    continue
                unable = self.columns.in_scope(scope) & ~capable
                if unable.any():
                    # The last element is that of offerings without the label, whose code is -1.
                    able = np.zeros(int(codes.max(initial=0)) + 2, np.bool_)
                    able[codes[capable]] = True
                    gone |= unable & ~able[codes]
        return gone

    def remaining(self) -> Amounts:
        """Return what the limits of each pool still allow, by limited resource and for the number of nodes."""
        rows = []
        for pool in self.pools:
            row = []
            for name in (*self.limited, "nodes"):
                limit, used = pool.limits.get(name), pool.used.get(name)
                rest = _amount(name, limit) - _amount(name, used) if limit is not None else MOST
                row.append(max(0, rest))
            rows.append(row)
        return np.array(rows, np.int64).reshape(len(self.pools), len(self.limited) + 1)

    def _name(self, number: int) -> tuple[str, str, str, str, tuple[tuple[str, str], ...]]:
        offering = self.offering[number]
        return (
            self.pools[self.pool[number]].name,
            self.types[self.type[number]].name,
            offering.zone,
            offering.capacity_type,
            tuple(sorted(self.columns.labels[number].items())),
        )

    def widen(self) -> None:
        """Add the columns of resources that were seen since; volumes of new nodes have no known limit."""
        known = len(self.columns.allocatable) if self._widened else 0
        self.columns.widen()
        for column, name in enumerate(self.columns.resources.names):
            if column >= known and name.startswith(ATTACHABLE):
                self.columns.allocatable[column] = MOST
        self._widened = True

    def _subtract_daemons(self) -> None:
        """Set room aside for the DaemonSets that would run on a node of each offering."""
        self.columns.widen()
        for rule, amounts, record in self.snapshot.daemon_needs():
            here = self.columns.allowed_by(rule)
            for column, amount in amounts.items():
                self.columns.allocatable[column, : self.count][here] -= amount
            self._ports += [(port, here) for port in record.pod_class.host_ports]

    def matching(self, terms: AffinityTerms) -> Mask:
        """Return the offerings that one of some node affinity terms matches."""
        known = self._matching.get(terms)
        if known is None:
            known = self._matching[terms] = NodeRule(affinity=terms).affinity_mask(self.columns)
        return known

    def capable_of(self, shape: Shape) -> Mask:
        """Return the offerings on which one pod of a shape can run when the node is empty; it must not be changed."""
        key = (shape.rule, tuple(shape.amounts.items()), shape.ports)
        known = self._capable.get(key)
        if known is not None:
            return known
        columns = self.columns
        mask = columns.allowed_by(shape.rule).copy()
        for column, need in zip(shape.columns.tolist(), shape.needs, strict=True):
            mask &= columns.allocatable[column, : columns.count] >= need
        taken = self.taken_ports(shape) if shape.ports else None
        if taken is not None:
            mask &= ~taken
        if len(self._capable) >= _MOST_KEPT:
            self._capable.clear()
        self._capable[key] = mask
        return mask

    # Pools with `minValues`: enough instance types must remain that can take all pods of a node.

    def _labels_with_min_values(self) -> dict[int, list[tuple[int, Codes]]]:
        """Return for each pool with minValues how many values of which labels must remain."""
        return {
            number: [(least, self.columns.codes(key)) for key, least in sorted(pool.min_values.items())]
            for number, pool in enumerate(self.pools)
            if pool.min_values
        }

    def keeps_choice(self, offering: int, used: Amounts, rules: Iterable[NodeRule]) -> bool:
        """Return whether a node of an offering with these pods leaves as many values as its pool asks for."""
        asked = self._values.get(self.pool[offering])
        if not asked:
            return True
        mask = self.pool_of == self.pool[offering]
        for column in np.flatnonzero(used).tolist():
            mask &= self.columns.allocatable[column, : self.count] >= used[column]
        for rule in rules:
            mask &= self.columns.allowed_by(rule)
        return all(len(np.unique(codes[mask & (codes >= 0)])) >= least for least, codes in asked)

    def roomy(self) -> Amounts | None:
        """Return what pods may use of each offering so that minValues hold whatever they are; None: no pool asks.

        For each label the largest types with so many values are compared, and the least of what they have counts.
        """
        if not self._values:
            return None
        amounts = np.maximum(self.columns.allocatable[:, : self.count], 0).copy()
        for pool, asked in self._values.items():
            here = np.flatnonzero(self.pool_of == pool)
            for least, codes in asked:
                largest: dict[int, int] = {}
                for offering in here[
                    np.lexsort((self.rank[here], -amounts[MEMORY, here], -amounts[CPU, here]))
                ].tolist():
                    if codes[offering] >= 0:
                        largest.setdefault(int(codes[offering]), offering)
                kept = list(largest.values())[:least]
                most = amounts[:, kept].min(axis=1) if len(kept) == least else np.zeros(len(amounts), np.int64)
                amounts[:, here] = np.minimum(amounts[:, here], most[:, None])
        return amounts

    def taken_ports(self, shape: Shape) -> Mask | None:
        """Return the offerings on which a DaemonSet has a host port of the shape; None: on none."""
        mask: Mask | None = None
        for taken, here in self._ports:
            if any(ports_conflict(port, taken) for port in shape.ports):
                mask = here if mask is None else mask | here
        return mask


def _amount(name: str, quantity: Quantity | None) -> int:
    if quantity is None:
        return 0
    return min(quantity.milli if name == "cpu" else quantity.units, MOST)


def _expanded(pool: Pool, type_: InstanceType) -> Iterator[tuple[dict[str, str], Offering]]:
    """Yield the labels and the offering of every node that a pool could make of an instance type."""
    labels = {**type_.labels, **pool.labels, INSTANCE_TYPE_LABEL: type_.name, NODEPOOL_LABEL: pool.name}
    per_offering = (ZONE_LABEL, CAPACITY_TYPE_LABEL)
    custom: dict[str, tuple[str, ...]] = {}
    for key, operator, values in pool.requirements:
        if key in per_offering:
            continue
        if key in labels or operator != "In":
            if not holds(operator, labels.get(key), values) and not (operator == "Exists" and key not in labels):
                return
        else:
            custom[key] = tuple(value for value in custom.get(key, values) if value in values)
    combinations = list(product(*custom.values()))[:_MOST_CUSTOM_VALUES]
    for offering in type_.offerings:
        own = {ZONE_LABEL: offering.zone, CAPACITY_TYPE_LABEL: offering.capacity_type}
        if all(holds(op, own[key], values) for key, op, values in pool.requirements if key in per_offering):
            for chosen in combinations:
                yield {**labels, **own, **dict(zip(custom, chosen, strict=True)), HOSTNAME_LABEL: FRESH}, offering


def is_allowed(pool: Pool, type_: InstanceType) -> bool:
    """Return whether the requirements of a pool allow some offering of an instance type, available or not."""
    return next(_expanded(pool, type_), None) is not None
