"""How much of each group of nodes is reserved by pods, updated by deltas of nodes and pods.

A pod that comes or goes costs the same in a cluster of ten pods and of a hundred thousand: only its node and the sums
of the groups of that node change. A group that is asked for the first time is added up node by node.
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
"""How many different pod specs are cached: most pods are made from few templates."""
_FINISHED = ("Succeeded", "Failed")
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


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """A node."""

    labels: Mapping[str, str]
    usable: bool
    """Whether it is ready and schedulable."""
    capacity: ResourceAmounts
    """What is allocatable."""


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """The requests of a pod and its node; none of both where it is not scheduled or has ended."""

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
    """Read the requests of a pod spec; a malformed one, which API servers refuse, counts as one pod."""
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
        """Give the sums of a group that is kept."""
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
        if delta.old is not None and delta.old.node:
            self._use(delta.old.node, NO_RESOURCES - delta.old.needs)
            self._drop_empty(delta.old.node)
        if delta.new is not None and delta.new.node:
            self._use(delta.new.node, delta.new.needs)

    def _use(self, node: str, needs: ResourceAmounts) -> None:
        usage = self._nodes.setdefault(node, _NodeUsage())
        usage.used += needs
        for label in usage.groups:
            totals = self._totals[label]
            self._totals[label] = GroupTotals(totals.nodes, totals.reserved + needs, totals.capacity)
            self._changed(label)

    def _count(self, usage: _NodeUsage, label: GroupLabel) -> None:
        totals, node = self._totals[label], usage.node or _NO_NODE
        self._totals[label] = GroupTotals(
            totals.nodes + 1, totals.reserved + usage.used, totals.capacity + node.capacity
        )

    def _discount(self, usage: _NodeUsage, label: GroupLabel) -> None:
        totals, node = self._totals[label], usage.node or _NO_NODE
        self._totals[label] = GroupTotals(
            totals.nodes - 1, totals.reserved - usage.used, totals.capacity - node.capacity
        )

    def _drop_empty(self, name: str) -> None:
        usage = self._nodes[name]
        if usage.node is None and usage.used == NO_RESOURCES:
            del self._nodes[name]


_NO_NODE = NodeRecord({}, usable=False, capacity=NO_RESOURCES)


def _belongs(node: NodeRecord, label: GroupLabel) -> bool:
    """Tell whether a node counts for a group: it has the label, is ready and schedulable."""
    return node.usable and node.labels.get(label[0]) == label[1]
