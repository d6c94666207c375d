"""Producers of reserved capacity: which group of nodes each one needs, and when it is decided again."""

from __future__ import annotations

from springtide.apis.scheduled.producer import ReservedCapacitySpec
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Result
from springtide.cluster.pods_and_nodes import ALL_NODES, ALL_PODS
from springtide.cluster.resources import Key, Object
from springtide.controllers.decision import Decision
from springtide.controllers.metrics_producer.decide import SeriesAction, decide_reserved_capacity
from springtide.controllers.metrics_producer.occupancy import GroupLabel, GroupOccupancy

RECOMPUTE_PAUSE = 1.0
"""Seconds between two decisions about a group: pods come and go by the hundred."""


class ReservedCapacity:
    """Producers of reserved capacity: which group each one needs, and which producers a change of a group enqueues."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._labels: dict[Key, GroupLabel] = {}
        self._users: dict[GroupLabel, dict[Key, None]] = {}
        self._queued: set[Key] = set()
        """Producers that are in the work queue already."""
        self._decided: dict[Key, float] = {}
        self._occupancy = GroupOccupancy(self._changed)
        context.follow(ALL_NODES, self._occupancy.node_changed)
        context.follow(ALL_PODS, self._occupancy.pod_changed)

    def decide(
        self, key: Key, spec: ReservedCapacitySpec, status: Object
    ) -> tuple[Decision[SeriesAction] | None, Result | None]:
        """Decide about a producer; or only requeue it, shortly after the last decision."""
        ((name, value),) = spec.node_selector.items()
        if self._labels.get(key) != (name, value):
            self._track(key, (name, value))
        present = self._context.clock.monotonic()
        wait = self._decided.get(key, present - RECOMPUTE_PAUSE) + RECOMPUTE_PAUSE - present
        if wait > 0:
            return None, Result(requeue_after=wait)
        self._decided[key] = present
        self._queued.discard(key)
        return decide_reserved_capacity((name, value), self._occupancy.of((name, value)), status), None

    def forget(self, key: Key) -> None:
        """Drop a producer that is gone, or has another source now."""
        label = self._labels.pop(key, None)
        if label is None:
            return
        self._decided.pop(key, None)
        self._queued.discard(key)
        users = self._users[label]
        del users[key]
        if not users:
            del self._users[label]
            self._occupancy.forget(label)

    def _track(self, key: Key, label: GroupLabel) -> None:
        self.forget(key)
        self._labels[key] = label
        self._users.setdefault(label, {})[key] = None
        self._occupancy.keep(label)

    def _changed(self, label: GroupLabel) -> None:
        for key in self._users.get(label, ()):
            if key not in self._queued:
                self._queued.add(key)
                self._context.enqueue(key)
