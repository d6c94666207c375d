"""Pods that no node takes, and that wait until one may."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from springtide.cluster.resources import Key, Object, key_of
from springtide.simulator.behaviours.demands import Demand


class Parked(NamedTuple):
    """A pod that waits, and what it waits for."""

    demand: Demand
    pod: Object


class Parking:
    """Pods that wait in vain, in groups that ask for the same: what is no help to one is none to its group."""

    def __init__(self) -> None:
        self._parked: dict[Key, Parked] = {}
        self._groups: dict[Demand, dict[Key, None]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._parked

    def keys(self) -> list[Key]:
        """List who waits."""
        return list(self._parked)

    def put(self, demand: Demand, pod: Object) -> None:
        """Let a pod wait."""
        key = key_of(pod)
        self.drop(key)
        self._parked[key] = Parked(demand, pod)
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

    def release(self, helps: Callable[[Demand], bool]) -> dict[Key, Object]:
        """Give the pods that something helps: they wait no more."""
        helped = [demand for demand in self._groups if helps(demand)]
        return {key: self._parked.pop(key).pod for demand in helped for key in self._groups.pop(demand)}
