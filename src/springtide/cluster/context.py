"""What a controller is given to work with: the cluster, time, its shared state, and what the process offers besides.

The runtime knows none of the latter (metrics, providers of nodes, grants policy). The assembly of a process offers them
as `Services`; a controller names the types that it needs in its class, and the manager checks at start that they are
offered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from springtide.cluster.client import Client, WriteBarrier
from springtide.cluster.clock import Clock
from springtide.cluster.compute import Compute
from springtide.cluster.controller import Cached, Controller
from springtide.cluster.events import EventRecorder
from springtide.cluster.resources import Key, Resource
from springtide.cluster.store import Delta, Store

if TYPE_CHECKING:
    from springtide.cluster.state import SharedState, SharedStates


T = TypeVar("T")
StateT = TypeVar("StateT", bound="SharedState[Any]")
ChangeT = TypeVar("ChangeT")


class Services:
    """What a process offers besides the cluster, by type."""

    def __init__(self, *offered: object) -> None:
        self._offered = offered

    def find(self, kind: type[T]) -> T | None:
        """Return the first object of a type, if the process offers one."""
        return next((each for each in self._offered if isinstance(each, kind)), None)

    def get(self, kind: type[T]) -> T:
        """Return the first object of a type; raises `LookupError` if the process offers none."""
        return self.require(kind, "a controller")

    def require(self, kind: type[T], user: str) -> T:
        """Return the first object of a type; the `LookupError` names the user that needs it."""
        found = self.find(kind)
        if found is None:
            names = ", ".join(type(each).__name__ for each in self._offered) or "nothing"
            msg = f"{user} needs a {kind.__name__}, but this process offers no {kind.__name__}, only {names}"
            raise LookupError(msg)
        return found


NO_SERVICES = Services()


def check_needs(controllers: Iterable[type[Controller]], services: Services) -> None:
    """Raise `LookupError` for the first controller that needs what the process does not offer."""
    for controller in controllers:
        for need in controller.needs:
            services.require(need, f"controller {controller.name}")


@dataclass(slots=True, eq=False)
class ControllerContext:
    """All that a controller may use during one leadership term."""

    kind: type[Controller]
    client: Client
    events: EventRecorder
    clock: Clock
    compute: Compute
    default_zone: str
    """The time zone of objects that name none."""
    log: logging.Logger
    stores: Mapping[Cached, Store[Any]]
    barrier: WriteBarrier
    states: SharedStates
    services: Services = NO_SERVICES
    _enqueue: Callable[[Key], None] | None = field(default=None, init=False)
    _on_release: list[Callable[[], None]] = field(default_factory=list, init=False)

    def store(self, cached: Cached) -> Store[Any]:
        """Return the cache of something that the controller watches, or that one of its shared states is built from."""
        return self.stores[cached]

    def state(self, kind: type[StateT]) -> StateT:
        """Return a shared state that the controller declares in `states` or `provides`."""
        declared = (*self.kind.provides, *(each if isinstance(each, type) else each.state for each in self.kind.states))
        if kind not in declared:
            msg = f"controller {self.kind.name} uses the state {kind.__name__}, expected it in its `states`"
            raise LookupError(msg)
        return self.states.get(kind)

    def subscribe(self, kind: type[SharedState[ChangeT]], reader: Callable[[ChangeT], None]) -> None:
        """Call a function after every change of a shared state, until the term ends."""
        self.on_release(self.state(kind).subscribe(reader))

    def dependency(self, kind: type[T]) -> T:
        """Return what the process offers of a type that the controller declares in `needs`."""
        self._check_declared(kind, self.kind.needs, "needs")
        return self.services.require(kind, f"controller {self.kind.name}")

    def optional_dependency(self, kind: type[T]) -> T | None:
        """Return what the process offers of a type that the controller declares in `optional_needs`, if it does."""
        self._check_declared(kind, self.kind.optional_needs, "optional_needs")
        return self.services.find(kind)

    def follow(self, cached: Cached, follower: Callable[[Delta[Any]], None]) -> None:
        """Replay every record of a cache as an addition, then pass on every delta, until the term ends.

        For indexes of the controller's own; what several controllers derive is a `SharedState`. A record on which the
        follower fails is logged, and all others are passed on.
        """
        self.on_release(self.stores[cached].listen(follower, replay=True))

    def enqueue(self, key: Key) -> None:
        """Reconcile a key soon, because of something that is not in the cluster."""
        if self._enqueue is not None:
            self._enqueue(key)

    def set_queue(self, enqueue: Callable[[Key], None]) -> None:
        """Set where `enqueue` puts keys; the runner calls it once the controller has a queue."""
        self._enqueue = enqueue

    def on_release(self, ending: Callable[[], None]) -> None:
        """Call a function when the term is over, the last one first."""
        self._on_release.append(ending)

    def release(self) -> None:
        """End what was begun for the controller: the term is over."""
        while self._on_release:
            self._on_release.pop()()

    async def wait_for_object(self, key: Key) -> None:
        """Wait until the caches show this controller's own last writes of one object."""
        await self.barrier.wait_for_object(key)

    async def wait_for_writes(self, *resources: Resource) -> None:
        """Wait until the caches show this controller's own last writes: of these resources, else of all.

        The worker does so before every reconcile; it is needed only between two decisions of one reconcile.
        """
        await self.barrier.wait_for_writes(*resources)

    def _check_declared(self, kind: type, declared: tuple[type, ...], where: str) -> None:
        if kind not in declared:
            msg = f"controller {self.kind.name} uses a {kind.__name__}, expected it in its `{where}`"
            raise LookupError(msg)
