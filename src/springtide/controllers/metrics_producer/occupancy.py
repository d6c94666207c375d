"""What is kept of nodes and pods to tell how much of a group of nodes is reserved: little, for there are many.

How much of groups of nodes is reserved, kept up to date change by change.

A pod that comes or goes costs the same in a cluster of ten pods and in one of a hundred thousand: its node is found,
and the sums of the groups that the node belongs to. Only a group that is new here is added up node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import Any, TypeAlias

import msgspec

from springtide.apis.core.interning import intern_labels
from springtide.apis.core.pods import PodSpec, pod_requests
from springtide.apis.core.resources import amounts
from springtide.cluster.controller import Cached, Permission
from springtide.cluster.resources import Resource, Selection
from springtide.cluster.store import Delta
from springtide.quantity import AmountError, Quantity

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
PERMISSIONS = (Permission(NODES, ("get", "list", "watch")), Permission(PODS, ("get", "list", "watch")))

_TEMPLATES = 4096
"""How many different demands are kept in mind: most pods are made of few templates."""
_FINISHED = ("Succeeded", "Failed")
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


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """A node that pods may be put on, or may not."""

    labels: Mapping[str, str]
    usable: bool
    """Whether it is ready, and takes new pods."""
    capacity: ResourceAmounts
    """What pods may ask for."""


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """What a pod takes away, and from which node; nothing, from none, where it has no node or has ended."""

    node: str
    needs: ResourceAmounts


_RESERVES_NOTHING = PodRecord("", NO_RESOURCES)


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""


class _NodeSpec(msgspec.Struct, gc=False):
    unschedulable: bool | None = None


class _NodeStatus(msgspec.Struct, gc=False):
    allocatable: dict[str, str | int | float] | None = None
    conditions: list[_Condition] | None = None


class _Node(msgspec.Struct, gc=False):
    metadata: _Meta
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class _Container(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    name: str = ""
    resources: dict[str, Any] | None = None
    restart_policy: str | None = None


class _PodSpec(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    containers: list[_Container]
    init_containers: list[_Container] | None = None
    resources: dict[str, Any] | None = None
    overhead: dict[str, Any] | None = None
    node_name: str | None = None


class _PodStatus(msgspec.Struct, gc=False):
    phase: str | None = None


class _Pod(msgspec.Struct, gc=False):
    metadata: _Meta
    spec: _PodSpec
    status: _PodStatus | None = None


def _node_record(node: _Node) -> NodeRecord:
    status = node.status or _NodeStatus()
    ready = any(one.type == "Ready" and one.status == "True" for one in status.conditions or ())
    cordoned = node.spec is not None and bool(node.spec.unschedulable)
    allocatable = amounts(status.allocatable)
    pods = allocatable.get("pods", _NOTHING).units
    capacity = ResourceAmounts(_nano(allocatable, "cpu"), _nano(allocatable, "memory"), pods)
    return NodeRecord(intern_labels(node.metadata.labels), ready and not cordoned, capacity)


def _pod_record(pod: _Pod) -> PodRecord:
    node, phase = pod.spec.node_name, pod.status.phase if pod.status is not None else None
    if not node or phase in _FINISHED:
        return _RESERVES_NOTHING
    demand = msgspec.structs.replace(pod.spec, node_name=None)
    return PodRecord(intern(node), _requests_of(msgspec.json.encode(demand)))


@lru_cache(maxsize=_TEMPLATES)
def _requests_of(demand: bytes) -> ResourceAmounts:
    """Read what pods of a template need; one that cannot be read, as no server takes it, counts as a pod."""
    try:
        requests = pod_requests(msgspec.json.decode(demand, type=PodSpec))
    except (msgspec.ValidationError, AmountError):
        return ResourceAmounts(pods=1)
    return ResourceAmounts(_nano(requests, "cpu"), _nano(requests, "memory"), 1)


def _nano(quantities: Mapping[str, Quantity], name: str) -> int:
    return quantities.get(name, _NOTHING).nano


ALL_NODES = Cached(Selection(NODES, view=_Node), record=_node_record)
ALL_PODS = Cached(Selection(PODS, view=_Pod), record=_pod_record)


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
        if delta.old is not None and delta.old.node:
            self._use(delta.old.node, NO_RESOURCES - delta.old.needs)
            self._drop_empty(delta.old.node)
        if delta.new is not None and delta.new.node:
            self._use(delta.new.node, delta.new.needs)

    def _use(self, node: str, needs: ResourceAmounts) -> None:
        account = self._accounts.setdefault(node, _NodeUsage())
        account.used += needs
        for label in account.groups:
            totals = self._totals[label]
            self._totals[label] = GroupTotals(totals.nodes, totals.reserved + needs, totals.capacity)
            self._changed(label)

    def _count(self, account: _NodeUsage, label: GroupLabel) -> None:
        totals, node = self._totals[label], account.node or _NO_NODE
        self._totals[label] = GroupTotals(
            totals.nodes + 1, totals.reserved + account.used, totals.capacity + node.capacity
        )

    def _discount(self, account: _NodeUsage, label: GroupLabel) -> None:
        totals, node = self._totals[label], account.node or _NO_NODE
        self._totals[label] = GroupTotals(
            totals.nodes - 1, totals.reserved - account.used, totals.capacity - node.capacity
        )

    def _drop_empty(self, name: str) -> None:
        account = self._accounts[name]
        if account.node is None and account.used == NO_RESOURCES:
            del self._accounts[name]


_NO_NODE = NodeRecord({}, usable=False, capacity=NO_RESOURCES)


def _belongs(node: NodeRecord, label: GroupLabel) -> bool:
    """Tell whether a node counts as one of a group: it has the label, is ready, and takes new pods."""
    return node.usable and node.labels.get(label[0]) == label[1]
