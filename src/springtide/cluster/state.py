"""Shared state: what several controllers derive from the caches, computed once for all of them.

A `SharedState` lives as long as its process; its contents belong to one leadership term:

    term begins ──► sources are synced ──► built: every record is replayed as an addition, then deltas follow
                                             │
                    providers, if any ───────┤ have attempted every key of their initial list once
                                             ▼
                                          complete: readers start ──► term ends, all controllers stopped: reset

A controller names the states that it reads in `states`, those that it writes itself in `provides`, and gets them from
`context.state(...)`. A reader never sees a state that is incomplete, so it need not guess whether something is missing
or has not been computed yet. If no provider runs in this process, a state is complete when it is built.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar, cast

from springtide.cluster.context import Services
from springtide.cluster.controller import Cached, Controller
from springtide.cluster.resources import Key
from springtide.cluster.store import Delta, Store

ChangeT = TypeVar("ChangeT")
StateT = TypeVar("StateT", bound="SharedState[Any]")

_NO_STORES: Mapping[Cached, Store[Any]] = MappingProxyType({})

log = logging.getLogger(__name__)


class SharedState(Generic[ChangeT]):
    """State that is derived from caches, or written by a provider; subclasses say what a change of it is.

    Readers must not change it. It is made once per process, with an object of each type in `needs` as its arguments;
    if the process offers an instance among its services, that one is used.
    """

    sources: ClassVar[tuple[Cached, ...]] = ()
    """The caches that it is built from."""
    optional_sources: ClassVar[tuple[Cached, ...]] = ()
    """The same, for kinds that may not be installed."""
    needs: ClassVar[tuple[type, ...]] = ()
    """Types of the arguments of the constructor."""

    _stores: Mapping[Cached, Store[Any]] = _NO_STORES
    _readers: tuple[Callable[[ChangeT], None], ...] = ()

    def apply(self, cached: Cached, delta: Delta[Any]) -> None:
        """Take one change of a source; at the beginning of a term every record comes as one that was added.

        A record on which this fails is logged and left out; all others are applied.
        """

    def reset(self) -> None:
        """Forget everything: the leadership term is over."""

    def store(self, cached: Cached) -> Store[Any]:
        """Return the cache of a source, for states that look records up there instead of copying them."""
        return self._stores[cached]

    def bind(self, stores: Mapping[Cached, Store[Any]]) -> None:
        """Set the caches of the sources; the manager calls it once."""
        self._stores = {cached: stores[cached] for cached in (*self.sources, *self.optional_sources)}

    def subscribe(self, reader: Callable[[ChangeT], None]) -> Callable[[], None]:
        """Call a function after every change, when the state shows it already; gives the function that unsubscribes."""
        self._readers = (*self._readers, reader)

        def unsubscribe() -> None:
            self._readers = tuple(each for each in self._readers if each is not reader)

        return unsubscribe

    def publish(self, change: ChangeT) -> None:
        """Notify all readers of a change; a reader that fails is logged, and the others are called."""
        for reader in self._readers:
            try:
                reader(change)
            except Exception:
                log.exception("a reader of %s failed on a change; others go on", type(self).__name__)


@dataclass(frozen=True, slots=True)
class StateWatch(Generic[ChangeT]):
    """A shared state that a controller reads, and the keys that a change of it enqueues."""

    state: type[SharedState[ChangeT]]
    keys: Callable[[ChangeT], Iterable[Key]]


def states_read_by(kind: type[Controller]) -> tuple[type[SharedState[Any]], ...]:
    """List the shared states that a controller reads."""
    return tuple(each.state if isinstance(each, StateWatch) else each for each in kind.states)


def sources_of(kind: type[Controller]) -> list[tuple[Cached, bool]]:
    """List the caches that the shared states of a controller are built from, each with whether it is optional."""
    states = (*states_read_by(kind), *kind.provides)
    required = [(cached, False) for state in states for cached in state.sources]
    return required + [(cached, True) for state in states for cached in state.optional_sources]


class SharedStates:
    """The shared states of one process."""

    def __init__(self, controllers: Sequence[type[Controller]], services: Services) -> None:
        """Make every state that one of the controllers reads or provides."""
        self._providers: dict[type[SharedState[Any]], list[type[Controller]]] = {}
        for controller in controllers:
            for kind in states_read_by(controller):
                self._providers.setdefault(kind, [])
            for kind in controller.provides:
                self._providers.setdefault(kind, []).append(controller)
        _check_order(controllers, self._providers)
        self._states = {kind: _make(kind, services) for kind in self._providers}
        self._built: dict[type[SharedState[Any]], asyncio.Task[None]] = {}
        self._complete: dict[type[SharedState[Any]], asyncio.Task[None]] = {}
        self._unfollow: list[Callable[[], None]] = []

    def get(self, kind: type[StateT]) -> StateT:
        """Return the state of a type."""
        return cast("StateT", self._states[kind])

    def bind(self, stores: Mapping[Cached, Store[Any]]) -> None:
        """Set the caches that the states are built from."""
        for state in self._states.values():
            state.bind(stores)

    def begin(
        self,
        synced: Callable[[Cached, bool], Awaitable[None]],
        former_gone: Callable[[type[Controller]], Awaitable[None]],
        first_pass: Callable[[type[Controller]], Awaitable[None]],
    ) -> None:
        """Begin a term: build each state when its sources are synced.

        `synced` waits for a cache, which may be optional; `former_gone` waits until reconciles of a provider from an
        earlier term have ended, which could write the state; `first_pass` waits until a provider has attempted every
        key of its initial list, or has failed as a whole.
        """
        for kind in self._states:
            self._built[kind] = asyncio.create_task(self._build(kind, synced, former_gone))
            self._complete[kind] = asyncio.create_task(self._finish(kind, first_pass))

    async def built(self, kind: type[SharedState[Any]]) -> None:
        """Wait until a state is built from its sources, so that its provider may write it."""
        await asyncio.shield(self._built[kind])

    async def complete(self, kind: type[SharedState[Any]]) -> None:
        """Wait until a state is complete, so that its readers may start."""
        await asyncio.shield(self._complete[kind])

    def release(self) -> None:
        """End the term: follow the caches no more, and forget everything."""
        for task in (*self._built.values(), *self._complete.values()):
            task.cancel()
        self._built.clear()
        self._complete.clear()
        while self._unfollow:
            self._unfollow.pop()()
        for kind, state in self._states.items():
            try:
                state.reset()
            except Exception:
                log.exception("the shared state %s could not be reset", kind.__name__)

    async def _build(
        self,
        kind: type[SharedState[Any]],
        synced: Callable[[Cached, bool], Awaitable[None]],
        former_gone: Callable[[type[Controller]], Awaitable[None]],
    ) -> None:
        state = self._states[kind]
        for provider in self._providers[kind]:
            await former_gone(provider)
        # Again: a reconcile that was left behind may have written since the end of its term.
        state.reset()
        for cached in state.sources:
            await synced(cached, False)
        for cached in state.optional_sources:
            await synced(cached, True)
        for cached in (*state.sources, *state.optional_sources):
            follower = _follower(state, cached)
            self._unfollow.append(state.store(cached).listen(follower, replay=True))

    async def _finish(
        self, kind: type[SharedState[Any]], first_pass: Callable[[type[Controller]], Awaitable[None]]
    ) -> None:
        await asyncio.shield(self._built[kind])
        for provider in self._providers[kind]:
            await first_pass(provider)


def _follower(state: SharedState[Any], cached: Cached) -> Callable[[Delta[Any]], None]:
    return lambda delta: state.apply(cached, delta)


def _make(kind: type[SharedState[Any]], services: Services) -> SharedState[Any]:
    offered = services.find(kind)
    if offered is not None:
        return offered
    dependencies: list[Any] = [services.require(need, f"the shared state {kind.__name__}") for need in kind.needs]
    return kind(*dependencies)


def _check_order(
    controllers: Sequence[type[Controller]], providers: Mapping[type[SharedState[Any]], Sequence[type[Controller]]]
) -> None:
    """Refuse controllers that would wait for each other's first pass."""
    awaited = {
        controller: [
            provider
            for kind in states_read_by(controller)
            for provider in providers[kind]
            if provider is not controller
        ]
        for controller in controllers
    }

    def follow(controller: type[Controller], path: tuple[type[Controller], ...]) -> None:
        if controller in path:
            names = " -> ".join(each.name for each in (*path[path.index(controller) :], controller))
            msg = f"controllers wait for each other's shared state ({names}), expected an order in which they can start"
            raise ValueError(msg)
        for provider in awaited[controller]:
            follow(provider, (*path, controller))

    for controller in controllers:
        follow(controller, ())
