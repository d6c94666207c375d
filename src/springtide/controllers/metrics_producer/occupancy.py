"""How much of groups of nodes is reserved, kept up to date change by change.

A pod that comes or goes costs the same in a cluster of ten pods and in one of a hundred thousand: its node is found,
and the sums of the groups that the node belongs to. Only a group that is new here is added up node by node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from springtide.cluster.store import Delta
from springtide.controllers.metrics_producer.node_records import NONE, Amounts, NodeRecord, PodRecord

Label: TypeAlias = tuple[str, str]
"""The label, and its value, that tells the nodes of a group from all others."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What the nodes of a group have, and what is taken of it."""

    nodes: int = 0
    reserved: Amounts = NONE
    capacity: Amounts = NONE


@dataclass(slots=True)
class _Account:
    """One node: what pods take of it, what it is, and to which groups it belongs."""

    used: Amounts = NONE
    node: NodeRecord | None = None
    groups: list[Label] = field(default_factory=list)


class Occupancy:
    """The sums of all groups that somebody asks for."""

    def __init__(self, changed: Callable[[Label], None]) -> None:
        """`changed` is told of every group whose sums have changed."""
        self._changed = changed
        self._accounts: dict[str, _Account] = {}
        self._totals: dict[Label, Totals] = {}

    def keep(self, label: Label) -> None:
        """Keep the sums of a group from now on."""
        if label in self._totals:
            return
        self._totals[label] = Totals()
        for account in self._accounts.values():
            if account.node is not None and _belongs(account.node, label):
                account.groups.append(label)
                self._count(account, label)

    def forget(self, label: Label) -> None:
        """Keep them no more."""
        if self._totals.pop(label, None) is not None:
            for account in self._accounts.values():
                if label in account.groups:
                    account.groups.remove(label)

    def of(self, label: Label) -> Totals:
        """Give the sums of a group that is kept."""
        return self._totals[label]

    def node_changed(self, delta: Delta[NodeRecord]) -> None:
        """Take a node out of the sums of its groups, and into those of the groups that it belongs to now."""
        name = delta.key.name
        account = self._accounts.setdefault(name, _Account())
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
        if delta.old is not None and delta.old.node:
            self._use(delta.old.node, NONE - delta.old.needs)
            self._drop_empty(delta.old.node)
        if delta.new is not None and delta.new.node:
            self._use(delta.new.node, delta.new.needs)

    def _use(self, node: str, needs: Amounts) -> None:
        account = self._accounts.setdefault(node, _Account())
        account.used += needs
        for label in account.groups:
            totals = self._totals[label]
            self._totals[label] = Totals(totals.nodes, totals.reserved + needs, totals.capacity)
            self._changed(label)

    def _count(self, account: _Account, label: Label) -> None:
        totals, node = self._totals[label], account.node or _NOWHERE
        self._totals[label] = Totals(totals.nodes + 1, totals.reserved + account.used, totals.capacity + node.capacity)

    def _discount(self, account: _Account, label: Label) -> None:
        totals, node = self._totals[label], account.node or _NOWHERE
        self._totals[label] = Totals(totals.nodes - 1, totals.reserved - account.used, totals.capacity - node.capacity)

    def _drop_empty(self, name: str) -> None:
        account = self._accounts[name]
        if account.node is None and account.used == NONE:
            del self._accounts[name]


_NOWHERE = NodeRecord({}, usable=False, capacity=NONE)


def _belongs(node: NodeRecord, label: Label) -> bool:
    """Tell whether a node counts as one of a group: it has the label, is ready, and takes new pods."""
    return node.usable and node.labels.get(label[0]) == label[1]
