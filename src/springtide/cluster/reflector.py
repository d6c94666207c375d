"""Keeps a store equal to a cluster: reads everything once, then follows what happens.

    read everything ──► follow a watch ──► its stream ends: watch again from the store's version
          ▲                   │
          └───────────────────┘ the version is compacted (`Gone`): read everything again, tell the difference

Everything is read as a WatchList, or in pages where the server knows no WatchList. What fails is tried again, with
growing pauses; whoever reads the store notices nothing but that it is older for a while.

A server that was restored from a backup, and is at a lower version than it showed before, is not followed: what was
decided and written since stands in nobody's books any more, and a store never goes back. The store stays as it is, a
warning is logged with every try, and `last_error` says so; a restart of the process begins anew. A watch shows nothing
of it: a server that is asked what happens after a version which it has not reached waits until it has. So one from
which not even a bookmark came is asked where it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import msgspec

from springtide.cluster.clock import Backoff, Clock
from springtide.cluster.errors import (
    ApiError,
    BadRequest,
    ClusterError,
    ConnectionLost,
    Gone,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ServerError,
    TooManyRequests,
)
from springtide.cluster.resources import Key, Selection, key_of, version_of
from springtide.cluster.store import Store
from springtide.cluster.transport import INITIAL_EVENTS_END, Transport, WatchEvent, WatchEventType

log = logging.getLogger(__name__)

_RETRIES = Backoff(first=0.8, longest=30.0, jitter=1.0)
_JUST_NOW = 5.0
"""Seconds: a version that is compacted so soon after everything was read will be so again, and is not read at once."""
_HOPELESS = 5
"""After so many failures in a row a server that still fails to watch from our version is asked for everything."""


class VersionWentBack(ServerError):
    """The server shows an older state than it did before: a replica that lags behind, or a backup."""


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """How a reflector talks to its server. The defaults are those of Kubernetes' own clients."""

    page_size: int = 500
    """Objects in one answer, where everything is read in pages. More are quicker, and keep the loop busy for longer."""
    shortest_watch: int = 300
    """Seconds after which a watch may be begun anew, so that clients spread over the servers there are."""
    longest_watch: int = 600
    """Seconds after which a watch is begun anew at the latest; each watch draws its own time."""
    retries: Backoff = _RETRIES
    """Pauses after failures in a row. An event of a watch, its orderly end, or a long life of it is a success."""
    hasty: float = 1.0
    """A watch that ends within so many seconds, before anything came, counts as a failure: it would begin anew at once,
    over and over."""
    steady: float = 60.0
    """A watch that lived for so many seconds was a success, also if nothing came and it was cut in the end."""


_DEFAULTS = ReflectorSettings()


class Reflector:
    """Fills one store from one selection, for as long as it runs."""

    def __init__(
        self,
        transport: Transport,
        selection: Selection,
        store: Store[Any],
        *,
        clock: Clock,
        random: Random,
        settings: ReflectorSettings = _DEFAULTS,
        optional: bool = False,
    ) -> None:
        """Fill a store; what is `optional` may not be installed, and nobody is warned of that."""
        self.selection = selection
        self.store = store
        self.last_contact: float | None = None
        """When the server last told us anything, by the monotonic clock."""
        self.last_event: float | None = None
        """When the server last told us of an object, by the monotonic clock."""
        self.last_error: ClusterError | None = None
        """What went wrong last; None when the server has told us something since."""
        self.absent = asyncio.Event()
        """Set while the server says that it does not know the kind."""
        self.relists = 0
        """How often everything was read again, after the first time."""
        self._transport = transport
        self._clock = clock
        self._random = random
        self._settings = settings
        self._optional = optional
        self._failures = 0
        self._put_off = False
        """Whether the server has answered last that it is not ready yet, and when it will be."""
        self._complete = False
        """Whether the store is what the server held at the store's version, so that a watch can go on from there."""
        self._knows_watch_list = True
        self._ask_for_newest = False
        self._in_pages = True
        self._asked = selection
        self._began = 0.0
        self._last_read = float("-inf")
        self._expired = 0
        """How often in a row our version was compacted as soon as everything had been read."""

    async def run(self) -> None:
        """Keep the store up to date until cancelled. Nothing but a bug raises."""
        while True:
            try:
                await self._follow()
            except ClusterError as error:
                if self._clock.monotonic() - self._began >= self._settings.steady:
                    self._failures = 0
                pause = self._pause_after(error)
            except msgspec.ValidationError as error:
                if self._asked.view is dict:
                    raise
                self._decode_one_by_one(error)
                continue
            else:
                self._failures = 0
                continue
            if pause:
                await self._clock.sleep(pause)

    async def _follow(self) -> None:
        """Follow one watch to its end, reading everything first where that is needed."""
        self._began = self._clock.monotonic()
        if not self._complete and not self._knows_watch_list:
            await self._list()
            self._began = self._clock.monotonic()
        initial: dict[Key, Any] | None = None if self._complete else {}
        heard = False
        async with aclosing(self._watch(initial_events=initial is not None)) as events:
            async for event in events:
                heard = True
                self._contact()
                if initial is None:
                    self._failures = 0
                    if event.change is not WatchEventType.BOOKMARK:
                        self.last_event = self.last_contact
                    self.store.apply(event)
                elif event.change is not WatchEventType.BOOKMARK:
                    self._collect(initial, event)
                elif _ends_initial_events(event):
                    self._replace(initial, version_of(event.object))
                    initial = None
        if initial is not None:
            msg = f"the watch of {self.selection} ended before all objects had come"
            raise ConnectionLost(msg)
        lasted = self._clock.monotonic() - self._began
        if not heard and lasted < self._settings.hasty:
            msg = f"the watch of {self.selection} ended as soon as it began"
            raise ConnectionLost(msg)
        if not heard and lasted >= self._settings.steady:
            await self._ask_where_it_is()

    async def _ask_where_it_is(self) -> None:
        """Ask a server that has said nothing for long how far it is; one that is behind us says nothing on its own."""
        page = await self._transport.list(self._asked, limit=1)
        self._contact()
        self._complete = int(page.version) >= self.store.version
        self._refuse_the_past(int(page.version))

    def _watch(self, *, initial_events: bool) -> AsyncGenerator[WatchEvent, None]:
        return self._transport.watch(
            self._asked,
            version=self._not_older_than() if initial_events else str(self.store.version),
            initial_events=initial_events,
            timeout=self._random.randint(self._settings.shortest_watch, self._settings.longest_watch),
        )

    def _collect(self, initial: dict[Key, Any], event: WatchEvent) -> None:
        # Records are made at once: the objects themselves would take many times the memory until the last has come.
        key = key_of(event.object)
        if event.change is WatchEventType.DELETED:
            initial.pop(key, None)
        else:
            initial[key] = self.store.read(event.object)

    async def _list(self) -> None:
        """Read everything in pages; at once where the version of the pages was compacted before the last one came."""
        limit = self._settings.page_size if self._in_pages else 0
        self._in_pages = True
        records: dict[Key, Any] = {}
        page = await self._transport.list(self._asked, limit=limit, version=self._not_older_than())
        while True:
            self._contact()
            for item in page.items:
                records[key_of(item)] = self.store.read(item)
            if not page.continue_:
                break
            try:
                page = await self._transport.list(self._asked, limit=limit, continue_=page.continue_)
            except Gone:
                self._in_pages = False
                raise
        self._replace(records, int(page.version))

    def _decode_one_by_one(self, error: msgspec.ValidationError) -> None:
        """Read whole objects from now on, so that one that does not fit the view fails by itself."""
        log.warning("%s is read as whole objects: one does not fit its view: %s", self.selection, error)
        record, view = self.store.record, self.selection.view
        self.store.record = lambda item: record(msgspec.convert(item, view))
        self._asked = replace(self.selection, view=dict)

    def _not_older_than(self) -> str:
        """Give the version that a full reading must reach: what we have seen, or the newest there is.

        Never `0`, which may take us back in time. Where a server cannot serve what we have seen, because it lags behind
        or has compacted it, the newest is what it can always serve.
        """
        seen = self.store.version
        return str(seen) if seen and not self._ask_for_newest else ""

    def _replace(self, records: dict[Key, Any], version: int) -> None:
        self._refuse_the_past(version)
        if self.store.synced:
            self.relists += 1
        self.store.replace_records(records, version)
        if records:
            self.last_event = self.last_contact
        self._complete = True
        self._ask_for_newest = False
        self._last_read = self._clock.monotonic()

    def _refuse_the_past(self, version: int) -> None:
        seen = self.store.version
        if version < seen:
            msg = f"the server lists {self.selection} at version {version}, although it showed {seen} before"
            raise VersionWentBack(msg)

    def _contact(self) -> None:
        self.last_contact = self._clock.monotonic()
        self.last_error = None
        self.absent.clear()

    def _pause_after(self, error: ClusterError) -> float:
        """Take note of a failure; tell how many seconds to wait before going on."""
        if not self._complete and self._knows_watch_list and isinstance(error, BadRequest | Invalid | MethodNotAllowed):
            log.info("no WatchList of %s, it is listed in pages: %s", self.selection, error)
            self._knows_watch_list = False
            return 0.0
        known_absent = self.absent.is_set()
        if isinstance(error, NotFound):
            # Of a list or a watch: it is not an object that is missing.
            resource = self.selection.resource
            self.absent.set()
            error = NotFound(f"{resource.api_version} {resource.kind} is not served, is its CRD installed? ({error})")
        put_off = isinstance(error, TooManyRequests) and error.retry_after is not None
        if put_off and not self._put_off:
            # The server is there, and knows when it will serve us. What failed before, because it was away or the kind
            # was not installed yet, says nothing about that.
            self._failures = 0
        self._put_off = put_off
        self.last_error = error
        self._failures += 1
        if not self._complete:
            self._ask_for_newest = True
        if not error.retriable or (isinstance(error, ServerError) and self._failures >= _HOPELESS):
            self._complete = False
        if isinstance(error, Gone):
            recently = self._clock.monotonic() - self._last_read < _JUST_NOW
            self._expired = self._expired + 1 if recently else 0
            if self._failures == 1 and not recently:
                log.info("%s is read again: %s", self.selection, error)
                return 0.0
        pause = self._settings.retries.after(max(self._failures, self._expired), random=self._random.random())
        if isinstance(error, ApiError) and error.retry_after is not None:
            pause = max(pause, error.retry_after)
        passing = (error.retriable or isinstance(error, Gone)) and not isinstance(error, VersionWentBack)
        level = logging.INFO if passing else logging.WARNING
        if self._optional and self.absent.is_set():
            level = logging.DEBUG if known_absent else logging.INFO
        log.log(level, "watching %s failed, next try in %.1f s: %s", self.selection, pause, error)
        return pause


def _ends_initial_events(bookmark: WatchEvent) -> bool:
    annotations = bookmark.object["metadata"].get("annotations") or {}
    return annotations.get(INITIAL_EVENTS_END) == "true"
