"""Catching up with the cluster when a term begins: a cache must show what was written before it.

A process that takes over has followed the cluster while it stood by, but its watches may lag behind what its
predecessor did last, or what it did itself in an earlier term. It therefore asks once what there is, and waits until
its stores have come as far. The version of that answer would not do: it grows with every write of any kind, and a store
hears of those that do not concern it by bookmarks alone, a minute apart. The versions of the objects do: each is one
that a watch tells.

The caches of a process: one store for everything that is watched, however many controllers watch it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import msgspec

from springtide.cluster.clock import Backoff, Clock, first_of
from springtide.cluster.controller import Cached
from springtide.cluster.errors import ClusterError
from springtide.cluster.health import CacheHealth
from springtide.cluster.reflector import Reflector, ReflectorSettings
from springtide.cluster.resources import Key, Selection, key_of, version_of
from springtide.cluster.store import Store
from springtide.cluster.transport import Transport

_PAGE = 500
_RETRIES = Backoff(first=0.5, longest=30.0)

log = logging.getLogger(__name__)


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")


class _Version(msgspec.Struct, frozen=True):
    """As little of an object as tells its version."""

    metadata: _Metadata


async def wait_until_fresh(transport: Transport, selection: Selection, store: Store[Any], clock: Clock) -> None:
    """Wait until a store shows everything that the server holds now, whoever wrote it."""
    failures = 0
    while True:
        try:
            present, version = await _present(transport, replace(selection, view=_Version))
            break
        except ClusterError as failure:
            failures += 1
            pause = _RETRIES.after(failures)
            log.info("what there is of %s is asked again in %.1f s: %s", selection, pause, failure)
            await clock.sleep(pause)
    await store.reached(max(present.values(), default=0))
    for key in store.keys():  # noqa: SIM118 - a store is no dictionary: its keys are in order
        if key not in present:
            await store.lost(key, version)


async def _present(transport: Transport, selection: Selection) -> tuple[dict[Key, int], int]:
    """Ask for the versions of all objects, and for that at which they were read."""
    page = await transport.list(selection, limit=_PAGE)
    present = {key_of(item): version_of(item) for item in page.items}
    while page.continue_:
        page = await transport.list(selection, limit=_PAGE, continue_=page.continue_)
        present |= {key_of(item): version_of(item) for item in page.items}
    return present, int(page.version)


RESTART_DELAY = 30.0
"""Seconds after which a cache begins anew that a bug has stopped."""


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
            await wait_until_fresh(self._transport, cached.selection, store, self._clock)

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
                log.exception("the cache of %s is broken, and begins anew in %d s", reflector.selection, RESTART_DELAY)
                await self._clock.sleep(RESTART_DELAY)


def _indexes(alike: Iterable[Cached]) -> dict[str, Callable[[Any], Iterable[Hashable]]]:
    """Join the look-ups of all who share a cache."""
    joined: dict[str, Callable[[Any], Iterable[Hashable]]] = {}
    for cached in alike:
        for name, values in cached.indexes.items():
            if joined.setdefault(name, values) is not values:
                msg = f"the cache of {cached.selection} has two different indexes named {name!r}, expected one"
                raise ValueError(msg)
    return joined
