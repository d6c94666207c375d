"""What a controller is given to work with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from springtide.cluster.barrier import Barrier
from springtide.cluster.client import Client
from springtide.cluster.clock import Clock
from springtide.cluster.compute import Compute
from springtide.cluster.controller import Cached
from springtide.cluster.events import Recorder
from springtide.cluster.resources import Resource
from springtide.cluster.store import Delta, Store


@dataclass(frozen=True, slots=True)
class Tools:
    """The cluster, time, and ways to tell people: all that a controller may touch."""

    client: Client
    events: Recorder
    clock: Clock
    compute: Compute
    default_zone: str
    """The time zone of objects that name none."""
    log: logging.Logger
    stores: Mapping[Cached, Store[Any]]
    barrier: Barrier
    _following: list[Callable[[], None]] = field(default_factory=list, init=False)

    def store(self, cached: Cached) -> Store[Any]:
        """Give the store of something that the controller watches."""
        return self.stores[cached]

    def follow(self, cached: Cached, follower: Callable[[Delta[Any]], None]) -> None:
        """Tell of every record that there is, as one that appears, and then of every change, for as long as we lead.

        For controllers that keep sums or indexes of their own instead of computing them anew each time.
        """
        store = self.stores[cached]
        for key in store.keys():  # noqa: SIM118 - a store is no dictionary: its keys are in order
            follower(Delta(key, None, store.get(key)))
        self._following.append(store.listen(follower))

    def release(self) -> None:
        """End what was begun for the controller: its time of leading is over."""
        while self._following:
            self._following.pop()()

    async def caught_up(self, *resources: Resource) -> None:
        """Wait until the stores show this controller's own last writes: of these resources, else of all.

        The worker does so before every reconcile; it is needed only between two decisions of one reconcile.
        """
        await self.barrier.caught_up(*resources)
