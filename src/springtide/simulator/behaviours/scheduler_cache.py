"""The cache of the scheduler: free resources of nodes, pending pods and unschedulable pods.

It is updated by deltas of the informer caches, and rebuilt from them after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from springtide.apis.core.nodes import NodeRecord
from springtide.apis.core.pod_record import PodSchedulingClass, pod_class_of
from springtide.cluster.resources import Key, Object, key_of
from springtide.cluster.store import Delta
from springtide.quantity import Quantity
from springtide.simulator.behaviours.pod_status import created_at, is_finished, is_terminating
from springtide.simulator.behaviours.predicates import NodeInfo, effective_taints, refusals


class UnschedulablePod(NamedTuple):
    """An unschedulable pod and its class."""

    pod_class: PodSchedulingClass
    pod: Object


class UnschedulablePods:
    """Unschedulable pods, grouped by class: an event that does not help one pod helps none of its class."""

    def __init__(self) -> None:
        self._pods: dict[Key, UnschedulablePod] = {}
        self._groups: dict[PodSchedulingClass, dict[Key, None]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._pods

    def keys(self) -> list[Key]:
        """List the unschedulable pods."""
        return list(self._pods)

    def put(self, pod_class: PodSchedulingClass, pod: Object) -> None:
        """Add a pod."""
        key = key_of(pod)
        self.drop(key)
        self._pods[key] = UnschedulablePod(pod_class, pod)
        self._groups.setdefault(pod_class, {})[key] = None

    def renew(self, key: Key, pod: Object) -> None:
        """Replace a pod that changed but kept its class."""
        self._pods[key] = self._pods[key]._replace(pod=pod)

    def drop(self, key: Key) -> None:
        """Remove a pod, if present."""
        unschedulable = self._pods.pop(key, None)
        if unschedulable is not None:
            group = self._groups[unschedulable.pod_class]
            del group[key]
            if not group:
                del self._groups[unschedulable.pod_class]

    def release(self, helps: Callable[[PodSchedulingClass], bool]) -> dict[Key, Object]:
        """Remove and return the pods of the classes that an event helps."""
        helped = [pod_class for pod_class in self._groups if helps(pod_class)]
        return {key: self._pods.pop(key).pod for pod_class in helped for key in self._groups.pop(pod_class)}


SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True)
class _Placement:
    """The node that a pod is bound to or assumed on, and its requests."""

    node: str
    requests: Mapping[str, Quantity]


@dataclass(slots=True)
class _NodeUsage:
    used: dict[str, int]
    pods: int = 0


class SchedulerCache:
    """Free resources of nodes, pending pods and unschedulable pods."""

    def __init__(self) -> None:
        self.pending: dict[Key, Object] = {}
        """Pods to schedule."""
        self.unschedulable = UnschedulablePods()
        """Pods that fit no node; an event that may help moves them to `pending`."""
        self.move_cycle = 0
        """The number of events that may have made pods schedulable."""
        self._nodes: dict[str, NodeRecord] = {}
        self._usage: dict[str, _NodeUsage] = {}
        self._placements: dict[Key, _Placement] = {}
        self._node_infos: dict[str, NodeInfo] = {}
        self._order: list[str] | None = None

    def queue(self) -> list[Object]:
        """List pending pods by priority, age and name."""
        return sorted(self.pending.values(), key=lambda pod: (-_priority(pod), created_at(pod), key_of(pod)))

    def node_infos(self) -> list[NodeInfo]:
        """List the nodes with their free resources, ordered by name."""
        if self._order is None:
            self._order = sorted(self._nodes)
        return [self._node_info(name) for name in self._order]

    def node_changed(self, delta: Delta[NodeRecord]) -> None:
        """Apply a change of a node."""
        name = delta.key.name
        self._node_infos.pop(name, None)
        if delta.new is None:
            self._nodes.pop(name, None)
            self._order = None
            return
        if name not in self._nodes:
            self._order = None
        self._nodes[name] = delta.new
        if delta.old is None or _scheduling_state(delta.old) != _scheduling_state(delta.new):
            # All pods, since the message of those that still do not fit changes.
            self._move_to_pending(lambda _: True)

    def pod_changed(self, delta: Delta[Object]) -> None:
        """Apply a change of a pod."""
        key, old, pod = delta
        if old is not None and pod is not None and old["metadata"].get("uid") != pod["metadata"].get("uid"):
            # The pod was deleted and another created with its name, in one delta.
            self.remove(key)
        if key in self.unschedulable and old is not None and pod is not None and _same_class(old, pod):
            self.unschedulable.renew(key, pod)
            return
        self.unschedulable.drop(key)
        self.pending.pop(key, None)
        if pod is None or is_finished(pod):
            self.remove(key)
        elif pod["spec"].get("nodeName"):
            self._add(key, pod["spec"]["nodeName"], pod)
        elif key not in self._placements and _is_ours(pod):
            self.pending[key] = pod

    def assume(self, pod: Object, node: str) -> None:
        """Assume a pod on a node before the informer cache shows the binding."""
        self.pending.pop(key_of(pod), None)
        self._add(key_of(pod), node, pod)

    def remove(self, key: Key) -> None:
        """Remove a pod from its node; unschedulable pods that fit there become pending."""
        place = self._placements.pop(key, None)
        if place is None:
            return
        self._account(place, -1)
        if place.node in self._nodes:
            info = self._node_info(place.node)
            self._move_to_pending(lambda pod_class: not refusals(pod_class, info))

    def sync(self, key: Key, pod: Object | None) -> None:
        """Drop the assumption about a pod, and use its state in the informer cache."""
        self.remove(key)
        self.pod_changed(Delta(key, None, pod))

    def drop(self, pod: Object) -> None:
        """Drop a pending pod that no longer exists, unless the cache has a newer version."""
        if self.pending.get(key_of(pod)) is pod:
            del self.pending[key_of(pod)]

    def mark_unschedulable(self, pod: Object, pod_class: PodSchedulingClass, *, move_cycle: int) -> None:
        """Mark a pod unschedulable, unless an event after `move_cycle` may have made it schedulable.

        A pod with a newer version in the cache, even if only by our status write, stays pending.
        """
        if move_cycle == self.move_cycle and self.pending.get(key_of(pod)) is pod:
            del self.pending[key_of(pod)]
            self.unschedulable.put(pod_class, pod)

    def _move_to_pending(self, helps: Callable[[PodSchedulingClass], bool]) -> None:
        self.move_cycle += 1
        self.pending.update(self.unschedulable.release(helps))

    def _add(self, key: Key, node: str, pod: Object) -> None:
        before = self._placements.get(key)
        requests = pod_class_of(pod["spec"]).requests if before is None else before.requests
        place = _Placement(node, requests)
        if before == place:
            return
        self.remove(key)
        self._placements[key] = place
        self._account(place, 1)

    def _account(self, place: _Placement, sign: int) -> None:
        account = self._usage.setdefault(place.node, _NodeUsage({}))
        for name, amount in place.requests.items():
            account.used[name] = account.used.get(name, 0) + sign * amount.nano
        account.pods += sign
        self._node_infos.pop(place.node, None)

    def _node_info(self, name: str) -> NodeInfo:
        """Return the free resources of a node, computed only after changes."""
        known = self._node_infos.get(name)
        if known is not None:
            return known
        node = self._nodes[name]
        most_pods = node.allocatable.get("pods", Quantity(0)).units
        account = self._usage.get(name) or _NodeUsage({})
        allocatable = {resource: amount.nano for resource, amount in node.allocatable.items() if resource != "pods"}
        info = NodeInfo(node, effective_taints(node), allocatable, most_pods, dict(account.used), account.pods)
        self._node_infos[name] = info
        return info


def _is_ours(pod: Object) -> bool:
    return not is_terminating(pod) and pod["spec"].get("schedulerName", SCHEDULER) == SCHEDULER


def _same_class(old: Object, new: Object) -> bool:
    """Whether a change of a pod leaves its schedulability unchanged."""
    return bool(
        old["metadata"].get("uid") == new["metadata"].get("uid")
        and old["spec"] == new["spec"]
        and not is_terminating(new)
        and not is_finished(new)
    )


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def _scheduling_state(node: NodeRecord) -> tuple[object, ...]:
    """Return the parts of a node that decide whether pods fit."""
    return (node.labels, node.taints, node.unschedulable, node.allocatable, node.ready)
