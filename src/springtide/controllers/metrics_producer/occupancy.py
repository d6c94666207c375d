"""How much of groups of nodes is reserved, kept up to date change by change.

A pod that comes or goes costs the same in a cluster of ten pods and in one of a hundred thousand: its node is found,
and the sums of the groups that the node belongs to. Only a group that is new here is added up node by node.
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
    """Amounts of what is counted; CPU in cores and memory in bytes, both in billionths."""

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
    """What a pod takes of the node that it is bound to."""

    node: str
    amounts: ResourceAmounts


GroupLabel: TypeAlias = tuple[str, str]
"""The label, and its value, that tells the nodes of a group from all others."""


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """What the nodes of a group have, and what is taken of it."""

    nodes: int = 0
    reserved: ResourceAmounts = NO_RESOURCES
    capacity: ResourceAmounts = NO_RESOURCES


@dataclass(slots=True)
class _NodeUsage:
    """One node: what pods take of it, what it is, and to which groups it belongs."""

    used: ResourceAmounts = NO_RESOURCES
    node: NodeRecord | None = None
    groups: list[GroupLabel] = field(default_factory=list)


class GroupOccupancy:
    """The sums of all groups that somebody asks for."""

    def __init__(self, changed: Callable[[GroupLabel], None]) -> None:
        """`changed` is told of every group whose sums have changed."""
        self._changed = changed
        self._accounts: dict[str, _NodeUsage] = {}
        self._totals: dict[GroupLabel, GroupTotals] = {}

    def keep(self, label: GroupLabel) -> None:
        """Keep the sums of a group from now on."""
        if label in self._totals:
            return
        self._totals[label] = GroupTotals()
        for account in self._accounts.values():
            if account.node is not None and _belongs(account.node, label):
                account.groups.append(label)
                self._count(account, label)

    def forget(self, label: GroupLabel) -> None:
        """Keep them no more."""
        if self._totals.pop(label, None) is not None:
            for account in self._accounts.values():
                if label in account.groups:
                    account.groups.remove(label)

    def of(self, label: GroupLabel) -> GroupTotals:
        """Give the sums of a group that is kept."""
        return self._totals[label]

    def node_changed(self, delta: Delta[NodeRecord]) -> None:
        """Take a node out of the sums of its groups, and into those of the groups that it belongs to now."""
        name = delta.key.name
        account = self._accounts.setdefault(name, _NodeUsage())
        for label in account.groups:
            self._discount(account, label)
        left, account.node = account.groups, delta.new
        account.groups = [label for label in self._totals if delta.new is not None and _belongs(delta.new, label)]
        for label in account.groups:
            self._count(account, label)
        self._drop_empty(name)
        for label in dict.fromkeys((*left, *account.groups)):
            self._changed(label)

    def pod_changed(self, delta: Delta[PodRecord]) -> None:
        """Give back what a pod took, and take what it takes now."""
        old, new = reserved_by(delta.old), reserved_by(delta.new)
        if old == new:
            return
        if old is not None:
            self._use(old.node, NO_RESOURCES - old.amounts)
            self._drop_empty(old.node)
        if new is not None:
            self._use(new.node, new.amounts)

    def _use(self, node: str, needs: ResourceAmounts) -> None:
        account = self._accounts.setdefault(node, _NodeUsage())
        account.used += needs
        for label in account.groups:
            totals = self._totals[label]
            self._totals[label] = GroupTotals(totals.nodes, totals.reserved + needs, totals.capacity)
            self._changed(label)

    def _count(self, account: _NodeUsage, label: GroupLabel) -> None:
        totals, capacity = self._totals[label], _capacity_of(account.node)
        self._totals[label] = GroupTotals(totals.nodes + 1, totals.reserved + account.used, totals.capacity + capacity)

    def _discount(self, account: _NodeUsage, label: GroupLabel) -> None:
        totals, capacity = self._totals[label], _capacity_of(account.node)
        self._totals[label] = GroupTotals(totals.nodes - 1, totals.reserved - account.used, totals.capacity - capacity)

    def _drop_empty(self, name: str) -> None:
        account = self._accounts[name]
        if account.node is None and account.used == NO_RESOURCES:
            del self._accounts[name]


def reserved_by(pod: PodRecord | None) -> PodReservation | None:
    """Tell what a pod takes of its node; None where it has no node or has ended."""
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
    """Tell whether a node counts as one of a group: it has the label, is ready, and is not cordoned."""
    return node.is_usable and node.labels.get(label[0]) == label[1]
