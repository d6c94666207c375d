"""What is kept of nodes and pods to tell how much of a group of nodes is reserved: little, for there are many."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Any

import msgspec

from springtide.apis.core.pods import PodSpec
from springtide.apis.core.requests import pod_requests
from springtide.apis.core.resources import amounts
from springtide.cluster.controller import Cached, Permission
from springtide.cluster.interning import intern_labels
from springtide.cluster.resources import Resource, Selection
from springtide.quantity import AmountError, Quantity

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
PERMISSIONS = (Permission(NODES, ("get", "list", "watch")), Permission(PODS, ("get", "list", "watch")))

_TEMPLATES = 4096
"""How many different demands are kept in mind: most pods are made of few templates."""
_FINISHED = ("Succeeded", "Failed")
_NOTHING = Quantity(0)


class Amounts(msgspec.Struct, frozen=True, gc=False):
    """Amounts of what is counted; CPU in cores and memory in bytes, both in billionths."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(self.cpu - other.cpu, self.memory - other.memory, self.pods - other.pods)


NONE = Amounts()


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """A node that pods may be put on, or may not."""

    labels: Mapping[str, str]
    usable: bool
    """Whether it is ready, and takes new pods."""
    capacity: Amounts
    """What pods may ask for."""


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """What a pod takes away, and from which node; nothing, from none, where it has no node or has ended."""

    node: str
    needs: Amounts


_TAKES_NOTHING = PodRecord("", NONE)


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
    capacity = Amounts(_nano(allocatable, "cpu"), _nano(allocatable, "memory"), pods)
    return NodeRecord(intern_labels(node.metadata.labels), ready and not cordoned, capacity)


def _pod_record(pod: _Pod) -> PodRecord:
    node, phase = pod.spec.node_name, pod.status.phase if pod.status is not None else None
    if not node or phase in _FINISHED:
        return _TAKES_NOTHING
    demand = msgspec.structs.replace(pod.spec, node_name=None)
    return PodRecord(intern(node), _needs(msgspec.json.encode(demand)))


@lru_cache(maxsize=_TEMPLATES)
def _needs(demand: bytes) -> Amounts:
    """Read what pods of a template need; one that cannot be read, as no server takes it, counts as a pod."""
    try:
        requests = pod_requests(msgspec.json.decode(demand, type=PodSpec))
    except (msgspec.ValidationError, AmountError):
        return Amounts(pods=1)
    return Amounts(_nano(requests, "cpu"), _nano(requests, "memory"), 1)


def _nano(quantities: Mapping[str, Quantity], name: str) -> int:
    return quantities.get(name, _NOTHING).nano


ALL_NODES = Cached(Selection(NODES, view=_Node), record=_node_record)
ALL_PODS = Cached(Selection(PODS, view=_Pod), record=_pod_record)
