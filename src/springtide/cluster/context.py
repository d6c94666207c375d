"""What a process offers its controllers besides the cluster: metrics, providers of nodes, whom it trusts.

The runtime knows none of these. Whoever puts a process together offers them, and a controller asks for the one that it
needs by its type, so that it is given the same in every world.

What a controller is given to work with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from springtide.cluster.client import Client, WriteBarrier
from springtide.cluster.clock import Clock
from springtide.cluster.compute import Compute
from springtide.cluster.controller import Cached
from springtide.cluster.events import EventRecorder
from springtide.cluster.resources import Key, Resource
from springtide.cluster.store import Delta, Store

T = TypeVar("T")


class Services:
    """Things that are offered, found by what they are."""

    def __init__(self, *offered: object) -> None:
        self._offered = offered

    def get(self, kind: type[T]) -> T:
        """Give the first that is of a type; a `LookupError` says that nobody has offered one."""
        for one in self._offered:
            if isinstance(one, kind):
                return one
        names = ", ".join(type(one).__name__ for one in self._offered) or "nothing"
        msg = f"this process offers no {kind.__name__}, only {names}"
        raise LookupError(msg)


NO_SERVICES = Services()


def _no_queue(key: Key) -> None:
    """Wake nobody: there is no worker yet."""


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """The cluster, time, and ways to tell people: all that a controller may touch."""

    client: Client
    events: EventRecorder
    clock: Clock
    compute: Compute
    default_zone: str
    """The time zone of objects that name none."""
    log: logging.Logger
    stores: Mapping[Cached, Store[Any]]
    barrier: WriteBarrier
    services: Services = NO_SERVICES
    """What the process offers besides the cluster: `services.get(SeriesBook)`."""
    _wake: list[Callable[[Key], None]] = field(default_factory=lambda: [_no_queue], init=False)
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
        self.on_release(store.listen(follower, replay=True))

    def wake(self, key: Key) -> None:
        """Reconcile a key soon, because of something that is not in the cluster."""
        self._wake[-1](key)

    def woken_by(self, wake: Callable[[Key], None]) -> None:
        """Say who queues the keys that are woken; the worker does."""
        self._wake[-1] = wake

    def on_release(self, ending: Callable[[], None]) -> None:
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
