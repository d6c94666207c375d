"""Producers that tell how much of a group of nodes is reserved: who asks for which group, and when they are told."""

from __future__ import annotations

from springtide.apis.scheduled.producer import ReservedCapacitySpec
from springtide.cluster.controller import Again
from springtide.cluster.resources import Key
from springtide.cluster.tools import Tools
from springtide.controllers.metrics_producer.node_records import ALL_NODES, ALL_PODS
from springtide.controllers.metrics_producer.occupancy import Label, Occupancy
from springtide.controllers.metrics_producer.outcomes import Outcome
from springtide.controllers.metrics_producer.reserved_outcomes import decide

PAUSE = 1.0
"""Seconds between two looks at a group: pods come and go by the hundred."""


class Reservations:
    """All producers of this kind."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._labels: dict[Key, Label] = {}
        self._users: dict[Label, dict[Key, None]] = {}
        self._woken: set[Key] = set()
        """Who is on the way to look already."""
        self._looked: dict[Key, float] = {}
        self._occupancy = Occupancy(self._changed)
        tools.follow(ALL_NODES, self._occupancy.node_changed)
        tools.follow(ALL_PODS, self._occupancy.pod_changed)

    def produce(self, key: Key, spec: ReservedCapacitySpec) -> Outcome | Again:
        """Tell what is reserved now, or when to ask again: not so soon after the last time."""
        ((name, value),) = spec.node_selector.items()
        if self._labels.get(key) != (name, value):
            self._adopt(key, (name, value))
        present = self._tools.clock.monotonic()
        wait = self._looked.get(key, present - PAUSE) + PAUSE - present
        if wait > 0:
            return Again(after=wait)
        self._looked[key] = present
        self._woken.discard(key)
        return decide((name, value), self._occupancy.of((name, value)))

    def forget(self, key: Key) -> None:
        """Keep nothing of a producer that is gone, or tells something else now."""
        label = self._labels.pop(key, None)
        if label is None:
            return
        self._looked.pop(key, None)
        self._woken.discard(key)
        users = self._users[label]
        del users[key]
        if not users:
            del self._users[label]
            self._occupancy.forget(label)

    def _adopt(self, key: Key, label: Label) -> None:
        self.forget(key)
        self._labels[key] = label
        self._users.setdefault(label, {})[key] = None
        self._occupancy.keep(label)

    def _changed(self, label: Label) -> None:
        for key in self._users.get(label, ()):
            if key not in self._woken:
                self._woken.add(key)
                self._tools.wake(key)
