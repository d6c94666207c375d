"""The caches of a process: one store for everything that is watched, however many controllers watch it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from springtide.cluster.catching_up import catch_up
from springtide.cluster.clock import Clock
from springtide.cluster.controller import Cached
from springtide.cluster.health import CacheHealth
from springtide.cluster.port import Transport
from springtide.cluster.reflector import Reflector, ReflectorSettings
from springtide.cluster.store import Store
from springtide.cluster.waiting import first_of

RESTART = 30.0
"""Seconds after which a cache begins anew that a bug has stopped."""

log = logging.getLogger(__name__)


def plain_store(cached: Cached) -> Store[Any]:
    """Make the store of something that is watched."""
    return Store(cached.record, cached.indexes)


class Caches:
    """Stores by what they hold, and the reflectors that fill them."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        cached: Sequence[Cached],
        *,
        optional: Collection[Cached] = (),
        random: Random,
        settings: ReflectorSettings,
        make_store: Callable[[Cached], Store[Any]],
    ) -> None:
        """Make a store of everything that is named, once; what is optional may not be installed."""
        self._transport = transport
        self._clock = clock
        self.stores: dict[Cached, Store[Any]] = {}
        self._optional = optional
        self._reflectors: dict[Cached, Reflector] = {}
        self._tasks: list[asyncio.Task[None]] = []
        for one in cached:
            if one not in self.stores:
                indexes = _indexes(other for other in cached if other == one)
                store = self.stores[one] = make_store(replace(one, indexes=indexes))
                dice = Random(random.getrandbits(64))  # noqa: S311 - spreads requests, hides nothing
                self._reflectors[one] = Reflector(
                    transport,
                    one.selection,
                    store,
                    clock=clock,
                    random=dice,
                    settings=settings,
                    optional=one in optional,
                )

    def start(self) -> None:
        """Begin to fill the stores."""
        self._tasks = [asyncio.ensure_future(self._reflect(reflector)) for reflector in self._reflectors.values()]

    async def wait_settled(self) -> None:
        """Wait until every store has held everything once, or is known to hold nothing and may."""
        for cached, store in self.stores.items():
            if cached in self._optional:
                await first_of(store.wait_synced(), self.wait_absent(cached))
            else:
                await store.wait_synced()

    async def wait_absent(self, cached: Cached) -> None:
        """Wait until the server has said that it does not know the kind."""
        await self._reflectors[cached].absent.wait()

    async def catch_up(self, cached: Cached, *, asking: bool) -> None:
        """Wait until a store is complete and, if we ask, until it shows all that the server holds by now."""
        store = self.stores[cached]
        await store.wait_synced()
        if asking:
            await catch_up(self._transport, cached.selection, store, self._clock)

    def health(self) -> tuple[CacheHealth, ...]:
        """Tell how the caches are doing, in their order."""
        return tuple(
            CacheHealth(
                str(reflector.selection),
                reflector.store.synced,
                reflector.store.version,
                len(reflector.store),
                len(reflector.store.unreadable),
                reflector.relists,
                reflector.last_contact,
                "" if reflector.last_error is None else str(reflector.last_error),
                reflector.last_event,
                self._is_dispensable(cached),
            )
            for cached, reflector in self._reflectors.items()
        )

    def missing(self) -> list[str]:
        """Name what has not come yet."""
        return [
            str(cached.selection)
            for cached, store in self.stores.items()
            if not store.synced and not self._is_dispensable(cached)
        ]

    def _is_dispensable(self, cached: Cached) -> bool:
        return cached in self._optional and self._reflectors[cached].absent.is_set()

    def stop(self) -> None:
        """Follow the cluster no more."""
        for task in self._tasks:
            task.cancel()

    async def _reflect(self, reflector: Reflector) -> None:
        while True:
            try:
                await reflector.run()
            except Exception:
                # A bug in one cache must not stop those who watch something else.
                log.exception("the cache of %s is broken, and begins anew in %d s", reflector.selection, RESTART)
                await self._clock.sleep(RESTART)


def _indexes(alike: Iterable[Cached]) -> dict[str, Callable[[Any], Iterable[Hashable]]]:
    """Join the look-ups of all who share a cache."""
    joined: dict[str, Callable[[Any], Iterable[Hashable]]] = {}
    for cached in alike:
        for name, values in cached.indexes.items():
            if joined.setdefault(name, values) is not values:
                msg = f"the cache of {cached.selection} has two different indexes named {name!r}, expected one"
                raise ValueError(msg)
    return joined
