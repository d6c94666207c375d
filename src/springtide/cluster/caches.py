"""The informer caches of a process: one store for each selection and record, however many controllers watch it.

Cache freshness: when a leadership term begins, a cache must show what was written before it. A standby has followed the
cluster, but its watches may lag behind the last writes of the former leader, or its own of an earlier term. So the
process lists the keys once, and waits until its store has come as far. It does not wait for the resourceVersion of that
list: it grows with every write of any kind, and a watch reports those to other objects only by bookmarks, a minute
apart. It waits for the highest resourceVersion of the listed objects, each of which a watch reports.
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
    """The part of an object that holds its resourceVersion."""

    metadata: _Metadata


async def wait_until_fresh(transport: Transport, selection: Selection, store: Store[Any], clock: Clock) -> None:
    """Wait until a store shows everything that the server holds now."""
    failures = 0
    while True:
        try:
            present, version = await _present(transport, replace(selection, view=_Version))
            break
        except ClusterError as failure:
            failures += 1
            pause = _RETRIES.after(failures)
            log.info("listing %s failed, next try in %.1f s: %s", selection, pause, failure)
            await clock.sleep(pause)
    await store.wait_for_version(max(present.values(), default=0))
    for key in store.keys():  # noqa: SIM118 - a store is no dictionary: its keys are in order
        if key not in present:
            await store.wait_until_gone(key, version)


async def _present(transport: Transport, selection: Selection) -> tuple[dict[Key, int], int]:
    """List the resourceVersions of all objects, and that of the list."""
    page = await transport.list(selection, limit=_PAGE)
    present = {key_of(item): version_of(item) for item in page.items}
    while page.continue_:
        page = await transport.list(selection, limit=_PAGE, continue_=page.continue_)
        present |= {key_of(item): version_of(item) for item in page.items}
    return present, int(page.version)


RESTART_DELAY = 30.0
"""Seconds after which a reflector that a bug has stopped is started again."""


def plain_store(cached: Cached) -> Store[Any]:
    """Make the store of a cache."""
    return Store(cached.record, cached.indexes)


class Caches:
    """The stores, and the reflectors that fill them."""

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
        """Make one store for equal selections and records; kinds of optional caches may not be installed."""
        self._transport = transport
        self._clock = clock
        self.stores: dict[Cached, Store[Any]] = {}
        self._optional = optional
        self._reflectors: dict[Cached, Reflector] = {}
        self._tasks: list[asyncio.Task[None]] = []
        for each in cached:
            if each not in self.stores:
                indexes = _indexes(other for other in cached if other == each)
                store = self.stores[each] = make_store(replace(each, indexes=indexes))
                seeded = Random(random.getrandbits(64))  # noqa: S311 - jitter of requests, no secret
                self._reflectors[each] = Reflector(
                    transport,
                    each.selection,
                    store,
                    clock=clock,
                    random=seeded,
                    settings=settings,
                    optional=each in optional,
                )

    def start(self) -> None:
        """Start all reflectors."""
        self._tasks = [asyncio.ensure_future(self._reflect(reflector)) for reflector in self._reflectors.values()]

    async def wait_settled(self) -> None:
        """Wait until every store is synced, or is optional and its kind is not installed."""
        for cached, store in self.stores.items():
            if cached in self._optional:
                await first_of(store.wait_synced(), self.wait_absent(cached))
            else:
                await store.wait_synced()

    async def wait_absent(self, cached: Cached) -> None:
        """Wait until the server has answered that it does not serve the kind."""
        await self._reflectors[cached].absent.wait()

    async def catch_up(self, cached: Cached, *, asking: bool) -> None:
        """Wait until a store is synced and, if `asking`, until it shows all that the server holds now."""
        store = self.stores[cached]
        await store.wait_synced()
        if asking:
            await wait_until_fresh(self._transport, cached.selection, store, self._clock)

    def health(self) -> tuple[CacheHealth, ...]:
        """Return the state of every cache."""
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
                self._is_absent(cached),
            )
            for cached, reflector in self._reflectors.items()
        )

    def missing(self) -> list[str]:
        """Name the caches that are not synced."""
        return [
            str(cached.selection)
            for cached, store in self.stores.items()
            if not store.synced and not self._is_absent(cached)
        ]

    def _is_absent(self, cached: Cached) -> bool:
        return cached in self._optional and self._reflectors[cached].absent.is_set()

    def stop(self) -> None:
        """Stop all reflectors."""
        for task in self._tasks:
            task.cancel()

    async def _reflect(self, reflector: Reflector) -> None:
        while True:
            try:
                await reflector.run()
            except Exception:
                # A bug in one cache must not stop the others.
                log.exception(
                    "the cache of %s failed, and is started again in %d s", reflector.selection, RESTART_DELAY
                )
                await self._clock.sleep(RESTART_DELAY)


def _indexes(alike: Iterable[Cached]) -> dict[str, Callable[[Any], Iterable[Hashable]]]:
    """Join the indexes of all that share a cache."""
    joined: dict[str, Callable[[Any], Iterable[Hashable]]] = {}
    for cached in alike:
        for name, values in cached.indexes.items():
            if joined.setdefault(name, values) is not values:
                msg = f"the cache of {cached.selection} has two different indexes named {name!r}, expected one"
                raise ValueError(msg)
    return joined
