"""The scheduler's books: what every node has left, who waits for a node, and who waits in vain.

The books are kept from the changes of the stores, one entry at a time. Nothing in them is needed after a restart: they
are written anew from the stores.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from springtide.apis.core.pods import PodSpec
from springtide.apis.core.requests import pod_requests
from springtide.cluster.resources import Key, Object, key_of
from springtide.cluster.store import Delta
from springtide.quantity import AmountError, Quantity
from springtide.simulator.behaviours.conditions import is_true
from springtide.simulator.behaviours.pods import created_at, is_finished, is_terminating
from springtide.simulator.behaviours.predicates import Amounts, Room, effective_taints

SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True)
class _Place:
    """What a pod takes of the node that it is on, or is about to be on."""

    node: str
    needs: Amounts


@dataclass(slots=True)
class _Account:
    used: dict[str, int]
    pods: int = 0


def needs_of(pod: Object) -> Amounts:
    """Tell what a pod asks for; nothing where that cannot be read, as no server takes such a pod."""
    try:
        requests = pod_requests(msgspec.convert(pod["spec"], PodSpec))
    except (msgspec.ValidationError, AmountError):
        return {}
    return {name: amount.nano for name, amount in requests.items()}


class Ledger:
    """The books."""

    def __init__(self) -> None:
        self.waiting: dict[Key, Object] = {}
        """Pods that should be tried."""
        self.parked: dict[Key, Object] = {}
        """Pods that no node took; what gives a pod another chance puts them all back into `waiting`."""
        self.chances = 0
        """How often something happened that may let a pod fit that did not fit before."""
        self._nodes: dict[str, Object] = {}
        self._accounts: dict[str, _Account] = {}
        self._places: dict[Key, _Place] = {}
        self._rooms: dict[str, Room] = {}
        self._order: list[str] | None = None

    def queue(self) -> list[Object]:
        """List the pods to try: by priority, then by age, then by name."""
        return sorted(self.waiting.values(), key=lambda pod: (-_priority(pod), created_at(pod), key_of(pod)))

    def rooms(self) -> list[Room]:
        """List what the nodes have left, in the order of their names."""
        if self._order is None:
            self._order = sorted(self._nodes)
        return [self._rooms.get(name) or self._measure(name) for name in self._order]

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
            self._another_chance()

    def pod_changed(self, delta: Delta[Object]) -> None:
        """Enter a change of a pod."""
        key, old, pod = delta
        if old is not None and pod is not None and old["metadata"].get("uid") != pod["metadata"].get("uid"):
            # One went and another came under its name, and we were told of both at once.
            self.leave(key)
        if pod is None or is_finished(pod):
            self.waiting.pop(key, None)
            self.parked.pop(key, None)
            self.leave(key)
        elif pod["spec"].get("nodeName"):
            self.waiting.pop(key, None)
            self.parked.pop(key, None)
            self._take(key, pod["spec"]["nodeName"], pod)
        elif is_terminating(pod) or pod["spec"].get("schedulerName", SCHEDULER) != SCHEDULER:
            self.waiting.pop(key, None)
            self.parked.pop(key, None)
        elif key in self.parked and old is not None and old["spec"] == pod["spec"]:
            self.parked[key] = pod
        elif key not in self._places:
            self.parked.pop(key, None)
            self.waiting[key] = pod

    def take(self, pod: Object, node: str) -> None:
        """Reckon with a pod on a node before the store shows it there."""
        self.waiting.pop(key_of(pod), None)
        self._take(key_of(pod), node, pod)

    def leave(self, key: Key) -> None:
        """Reckon with a pod on no node any more."""
        place = self._places.pop(key, None)
        if place is not None:
            self._book(place, -1)
            self._another_chance()

    def park(self, pod: Object, *, chances: int) -> None:
        """Let a pod wait until something happens, unless something has happened since `chances` were counted."""
        if chances == self.chances and self.waiting.pop(key_of(pod), None) is not None:
            self.parked[key_of(pod)] = pod

    def _another_chance(self) -> None:
        self.chances += 1
        if self.parked:
            self.waiting.update(self.parked)
            self.parked.clear()

    def _take(self, key: Key, node: str, pod: Object) -> None:
        before = self._places.get(key)
        needs = needs_of(pod) if before is None else before.needs
        place = _Place(node, needs)
        if before == place:
            return
        self.leave(key)
        self._places[key] = place
        self._book(place, 1)

    def _book(self, place: _Place, sign: int) -> None:
        account = self._accounts.setdefault(place.node, _Account({}))
        for name, amount in place.needs.items():
            account.used[name] = account.used.get(name, 0) + sign * amount
        account.pods += sign
        self._rooms.pop(place.node, None)

    def _measure(self, name: str) -> Room:
        node = self._nodes[name]
        offered = {
            resource: Quantity.parse(amount)
            for resource, amount in ((node.get("status") or {}).get("allocatable") or {}).items()
        }
        most_pods = offered.pop("pods", Quantity(0)).units
        account = self._accounts.get(name) or _Account({})
        allocatable = {resource: amount.nano for resource, amount in offered.items()}
        room = Room(node, effective_taints(node), allocatable, most_pods, dict(account.used), account.pods)
        self._rooms[name] = room
        return room


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def _offer(node: Object) -> tuple[object, ...]:
    """Give all of a node that decides whether pods fit."""
    metadata, status = node["metadata"], node.get("status") or {}
    return (metadata.get("labels"), node.get("spec"), status.get("allocatable"), is_true(node, "Ready"))
