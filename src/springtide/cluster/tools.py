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
from springtide.cluster.resources import Key, Resource
from springtide.cluster.services import NONE, Services
from springtide.cluster.store import Delta, Store


def _nobody(key: Key) -> None:
    """Wake nobody: there is no worker yet."""


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
    services: Services = NONE
    """What the process offers besides the cluster: `services.get(SeriesBook)`."""
    _wake: list[Callable[[Key], None]] = field(default_factory=lambda: [_nobody], init=False)
    _following: list[Callable[[], None]] = field(default_factory=list, init=False)

    def store(self, cached: Cached) -> Store[Any]:
        """Give the store of something that the controller watches."""
        return self.stores[cached]

    def follow(self, cached: Cached, follower: Callable[[Delta[Any]], None]) -> None:
        """Tell of every record that there is, as one that appears, and then of every change, for as long as we lead.

        For controllers that keep sums or indexes of their own instead of computing them anew each time. A follower that
        fails on one record is told of all others: nobody who writes one object keeps a controller from its work.
        """
        store = self.stores[cached]
        self.when_released(store.listen(follower, replay=True))

    def wake(self, key: Key) -> None:
        """Reconcile a key soon, because of something that is not in the cluster."""
        self._wake[-1](key)

    def woken_by(self, wake: Callable[[Key], None]) -> None:
        """Say who queues the keys that are woken; the worker does."""
        self._wake[-1] = wake

    def when_released(self, ending: Callable[[], None]) -> None:
        """Do something when the time of leading is over, such as taking back what was made known."""
        self._following.append(ending)

    def release(self) -> None:
        """End what was begun for the controller: its time of leading is over."""
        while self._following:
            self._following.pop()()

    async def shown(self, key: Key) -> None:
        """Wait until the stores show this controller's own last writes of one object."""
        await self.barrier.shows(key)

    async def caught_up(self, *resources: Resource) -> None:
        """Wait until the stores show this controller's own last writes: of these resources, else of all.

        The worker does so before every reconcile; it is needed only between two decisions of one reconcile.
        """
        await self.barrier.caught_up(*resources)
