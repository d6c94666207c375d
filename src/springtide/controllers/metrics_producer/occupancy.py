"""How much of each group of nodes is reserved by pods, updated by deltas of nodes and pods.

A pod that comes or goes costs the same in a cluster of ten pods and of a hundred thousand: only its node and the sums
of the groups of that node change. A group that is asked for the first time is added up node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from springtide.apis.core.nodes import NodeRecord
from springtide.apis.core.pod_record import PodRecord
from springtide.cluster.store import Delta
from springtide.quantity import Quantity

_NOTHING = Quantity(0)


class ResourceAmounts(msgspec.Struct, frozen=True, gc=False):
    """Amounts of resources: CPU in billionths of a core, memory in billionths of a byte."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0

    def __add__(self, other: ResourceAmounts) -> ResourceAmounts:
        return ResourceAmounts(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def __sub__(self, other: ResourceAmounts) -> ResourceAmounts:
        return ResourceAmounts(self.cpu - other.cpu, self.memory - other.memory, self.pods - other.pods)


NO_RESOURCES = ResourceAmounts()


@dataclass(frozen=True, slots=True)
class PodReservation:
    """The requests of a pod on its node."""

    node: str
    amounts: ResourceAmounts


GroupLabel: TypeAlias = tuple[str, str]
"""The label and its value that the nodes of a group have."""


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """The allocatable resources of a group of nodes, and how much of them is reserved."""

    nodes: int = 0
    reserved: ResourceAmounts = NO_RESOURCES
    capacity: ResourceAmounts = NO_RESOURCES


@dataclass(slots=True)
class _NodeUsage:
    """One node: the requests of its pods, its record, and its groups."""

    used: ResourceAmounts = NO_RESOURCES
    node: NodeRecord | None = None
    groups: list[GroupLabel] = field(default_factory=list)


class GroupOccupancy:
    """The sums of all groups that producers ask for."""

    def __init__(self, changed: Callable[[GroupLabel], None]) -> None:
        """`changed` is called with every group whose sums have changed."""
        self._changed = changed
        self._nodes: dict[str, _NodeUsage] = {}
        self._totals: dict[GroupLabel, GroupTotals] = {}

    def keep(self, label: GroupLabel) -> None:
        """Keep the sums of a group from now on."""
        if label in self._totals:
            return
        self._totals[label] = GroupTotals()
        for usage in self._nodes.values():
            if usage.node is not None and _belongs(usage.node, label):
                usage.groups.append(label)
                self._count(usage, label)

    def forget(self, label: GroupLabel) -> None:
        """Drop the sums of a group."""
        if self._totals.pop(label, None) is not None:
            for usage in self._nodes.values():
                if label in usage.groups:
                    usage.groups.remove(label)

    def of(self, label: GroupLabel) -> GroupTotals:
        """Return the sums of a group that is kept."""
        return self._totals[label]

    def node_changed(self, delta: Delta[NodeRecord]) -> None:
        """Subtract a node from its former groups, and add it to its present ones."""
        name = delta.key.name
        usage = self._nodes.setdefault(name, _NodeUsage())
        for label in usage.groups:
            self._discount(usage, label)
        left, usage.node = usage.groups, delta.new
        usage.groups = [label for label in self._totals if delta.new is not None and _belongs(delta.new, label)]
        for label in usage.groups:
            self._count(usage, label)
        self._drop_empty(name)
        for label in dict.fromkeys((*left, *usage.groups)):
            self._changed(label)

    def pod_changed(self, delta: Delta[PodRecord]) -> None:
        """Subtract the former requests of a pod, and add the present ones."""
        old, new = reserved_by(delta.old), reserved_by(delta.new)
        if old == new:
            return
        if old is not None:
            self._use(old.node, NO_RESOURCES - old.amounts)
            self._drop_empty(old.node)
        if new is not None:
            self._use(new.node, new.amounts)

    def _use(self, node: str, needs: ResourceAmounts) -> None:
        usage = self._nodes.setdefault(node, _NodeUsage())
        usage.used += needs
        for label in usage.groups:
            totals = self._totals[label]
            self._totals[label] = GroupTotals(totals.nodes, totals.reserved + needs, totals.capacity)
            self._changed(label)

    def _count(self, usage: _NodeUsage, label: GroupLabel) -> None:
        totals, capacity = self._totals[label], _capacity_of(usage.node)
        self._totals[label] = GroupTotals(totals.nodes + 1, totals.reserved + usage.used, totals.capacity + capacity)

    def _discount(self, usage: _NodeUsage, label: GroupLabel) -> None:
        totals, capacity = self._totals[label], _capacity_of(usage.node)
        self._totals[label] = GroupTotals(totals.nodes - 1, totals.reserved - usage.used, totals.capacity - capacity)

    def _drop_empty(self, name: str) -> None:
        usage = self._nodes[name]
        if usage.node is None and usage.used == NO_RESOURCES:
            del self._nodes[name]


def reserved_by(pod: PodRecord | None) -> PodReservation | None:
    """Return the requests of a pod on its node; None where it is not scheduled or has ended."""
    if pod is None or not pod.node or pod.is_finished:
        return None
    requests = pod.pod_class.requests
    return PodReservation(pod.node, ResourceAmounts(_nano(requests, "cpu"), _nano(requests, "memory"), 1))


def _capacity_of(node: NodeRecord | None) -> ResourceAmounts:
    if node is None:
        return NO_RESOURCES
    allocatable = node.allocatable
    pods = allocatable.get("pods", _NOTHING).units
    return ResourceAmounts(_nano(allocatable, "cpu"), _nano(allocatable, "memory"), pods)


def _nano(quantities: Mapping[str, Quantity], name: str) -> int:
    return quantities.get(name, _NOTHING).nano


def _belongs(node: NodeRecord, label: GroupLabel) -> bool:
    """Return whether a node counts as one of a group: it has the label and is usable."""
    return node.is_usable and node.labels.get(label[0]) == label[1]
