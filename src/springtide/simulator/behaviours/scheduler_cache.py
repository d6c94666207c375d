"""Pods that no node takes, and that wait until one may.

The scheduler's books: what every node has left, who waits for a node, and who waits in vain.

The books are kept from the changes of the stores, one entry at a time. Nothing in them is needed after a restart: they
are written anew from the stores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from springtide.cluster.resources import Key, Object, key_of
from springtide.cluster.store import Delta
from springtide.quantity import Quantity
from springtide.simulator.behaviours.pod_status import created_at, is_finished, is_terminating, is_true
from springtide.simulator.behaviours.predicates import (
    Amounts,
    NodeInfo,
    PodClass,
    effective_taints,
    pod_class_of,
    refusals,
)


class UnschedulablePod(NamedTuple):
    """A pod that waits, and what it waits for."""

    demand: PodClass
    pod: Object


class UnschedulablePods:
    """Pods that wait in vain, in groups that ask for the same: what is no help to one is none to its group."""

    def __init__(self) -> None:
        self._parked: dict[Key, UnschedulablePod] = {}
        self._groups: dict[PodClass, dict[Key, None]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._parked

    def keys(self) -> list[Key]:
        """List who waits."""
        return list(self._parked)

    def put(self, demand: PodClass, pod: Object) -> None:
        """Let a pod wait."""
        key = key_of(pod)
        self.drop(key)
        self._parked[key] = UnschedulablePod(demand, pod)
        self._groups.setdefault(demand, {})[key] = None

    def renew(self, key: Key, pod: Object) -> None:
        """Take note that a pod has changed, but not in what it asks for."""
        self._parked[key] = self._parked[key]._replace(pod=pod)

    def drop(self, key: Key) -> None:
        """Let a pod wait no more, if it does."""
        parked = self._parked.pop(key, None)
        if parked is not None:
            group = self._groups[parked.demand]
            del group[key]
            if not group:
                del self._groups[parked.demand]

    def release(self, helps: Callable[[PodClass], bool]) -> dict[Key, Object]:
        """Give the pods that something helps: they wait no more."""
        helped = [demand for demand in self._groups if helps(demand)]
        return {key: self._parked.pop(key).pod for demand in helped for key in self._groups.pop(demand)}


SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True)
class _Placement:
    """What a pod takes of the node that it is on, or is about to be on."""

    node: str
    needs: Amounts


@dataclass(slots=True)
class _NodeUsage:
    used: dict[str, int]
    pods: int = 0


class SchedulerCache:
    """The books."""

    def __init__(self) -> None:
        self.waiting: dict[Key, Object] = {}
        """Pods that should be tried."""
        self.parked = UnschedulablePods()
        """Pods that no node took; what gives them another chance puts them back into `waiting`."""
        self.chances = 0
        """How often something happened that may let a pod fit that did not fit before."""
        self._nodes: dict[str, Object] = {}
        self._accounts: dict[str, _NodeUsage] = {}
        self._places: dict[Key, _Placement] = {}
        self._rooms: dict[str, NodeInfo] = {}
        self._order: list[str] | None = None

    def queue(self) -> list[Object]:
        """List the pods to try: by priority, then by age, then by name."""
        return sorted(self.waiting.values(), key=lambda pod: (-_priority(pod), created_at(pod), key_of(pod)))

    def rooms(self) -> list[NodeInfo]:
        """List what the nodes have left, in the order of their names."""
        if self._order is None:
            self._order = sorted(self._nodes)
        return [self._room(name) for name in self._order]

    def node_changed(self, delta: Delta[Object]) -> None:
        """Enter a change of a node."""
        name = delta.key.name
        self._rooms.pop(name, None)
        if delta.new is None:
            self._nodes.pop(name, None)
            self._order = None
            return
        if name not in self._nodes:
            self._order = None
        self._nodes[name] = delta.new
        if delta.old is None or _offer(delta.old) != _offer(delta.new):
            # Also those whom it is no help want to tell why the node is no help.
            self._another_chance(lambda _: True)

    def pod_changed(self, delta: Delta[Object]) -> None:
        """Enter a change of a pod."""
        key, old, pod = delta
        if old is not None and pod is not None and old["metadata"].get("uid") != pod["metadata"].get("uid"):
            # One went and another came under its name, and we were told of both at once.
            self.leave(key)
        if key in self.parked and old is not None and pod is not None and _same_class(old, pod):
            self.parked.renew(key, pod)
            return
        self.parked.drop(key)
        self.waiting.pop(key, None)
        if pod is None or is_finished(pod):
            self.leave(key)
        elif pod["spec"].get("nodeName"):
            self._take(key, pod["spec"]["nodeName"], pod)
        elif key not in self._places and _is_ours(pod):
            self.waiting[key] = pod

    def take(self, pod: Object, node: str) -> None:
        """Reckon with a pod on a node before the store shows it there."""
        self.waiting.pop(key_of(pod), None)
        self._take(key_of(pod), node, pod)

    def leave(self, key: Key) -> None:
        """Reckon with a pod on no node any more: others may fit there now."""
        place = self._places.pop(key, None)
        if place is None:
            return
        self._book(place, -1)
        if place.node in self._nodes:
            room = self._room(place.node)
            self._another_chance(lambda demand: not refusals(demand, room))

    def reconsider(self, key: Key, pod: Object | None) -> None:
        """Reckon with a pod as the store has it, and no more with where it was about to go."""
        self.leave(key)
        self.pod_changed(Delta(key, None, pod))

    def forget(self, pod: Object) -> None:
        """Try a pod no more that is gone; if it is another one by now, that waits in its own right."""
        if self.waiting.get(key_of(pod)) is pod:
            del self.waiting[key_of(pod)]

    def park(self, pod: Object, demand: PodClass, *, chances: int) -> None:
        """Let a pod wait until something happens, unless something has happened since `chances` were counted.

        Nor does it wait if it is another one by now, be it only for what we wrote on it: it is judged as what it is.
        """
        if chances == self.chances and self.waiting.get(key_of(pod)) is pod:
            del self.waiting[key_of(pod)]
            self.parked.put(demand, pod)

    def _another_chance(self, helps: Callable[[PodClass], bool]) -> None:
        self.chances += 1
        self.waiting.update(self.parked.release(helps))

    def _take(self, key: Key, node: str, pod: Object) -> None:
        before = self._places.get(key)
        needs = pod_class_of(pod).needs if before is None else before.needs
        place = _Placement(node, needs)
        if before == place:
            return
        self.leave(key)
        self._places[key] = place
        self._book(place, 1)

    def _book(self, place: _Placement, sign: int) -> None:
        account = self._accounts.setdefault(place.node, _NodeUsage({}))
        for name, amount in place.needs.items():
            account.used[name] = account.used.get(name, 0) + sign * amount
        account.pods += sign
        self._rooms.pop(place.node, None)

    def _room(self, name: str) -> NodeInfo:
        """Measure a node, or give what was measured if nothing has happened since."""
        known = self._rooms.get(name)
        if known is not None:
            return known
        node = self._nodes[name]
        offered = {
            resource: Quantity.parse(amount)
            for resource, amount in ((node.get("status") or {}).get("allocatable") or {}).items()
        }
        most_pods = offered.pop("pods", Quantity(0)).units
        account = self._accounts.get(name) or _NodeUsage({})
        allocatable = {resource: amount.nano for resource, amount in offered.items()}
        room = NodeInfo(node, effective_taints(node), allocatable, most_pods, dict(account.used), account.pods)
        self._rooms[name] = room
        return room


def _is_ours(pod: Object) -> bool:
    return not is_terminating(pod) and pod["spec"].get("schedulerName", SCHEDULER) == SCHEDULER


def _same_class(old: Object, new: Object) -> bool:
    """Tell whether a change of a pod that waits leaves everything as it was that decides about it."""
    return bool(
        old["metadata"].get("uid") == new["metadata"].get("uid")
        and old["spec"] == new["spec"]
        and not is_terminating(new)
        and not is_finished(new)
    )


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def _offer(node: Object) -> tuple[object, ...]:
    """Give all of a node that decides whether pods fit."""
    metadata, status = node["metadata"], node.get("status") or {}
    return (metadata.get("labels"), node.get("spec"), status.get("allocatable"), is_true(node, "Ready"))
