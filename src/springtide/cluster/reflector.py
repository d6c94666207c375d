"""The reflector of an informer: keeps a store equal to the server by a list and a watch.

    list everything ──► watch ──► its stream ends: watch again from the store's resourceVersion
          ▲               │
          └───────────────┘ the resourceVersion is compacted (`Gone`): list everything again, apply the difference

The list is a WatchList, or pages where the server has no WatchList. Failures are retried with backoff; meanwhile the
store stays as it is.

A server that was restored from a backup, and is at a lower resourceVersion than before, is not followed: a store never
goes back. The store stays as it is, every try logs a warning, and `last_error` says so; restart the process to start
again from the restored state. A watch does not reveal this: a server that is asked for events after a resourceVersion
that it has not reached waits until it has. So a server that has not even sent a bookmark is asked for its version.
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
"""Seconds: a version that is compacted so soon after a full list will be so again; the next list waits for backoff."""
_RELIST_AFTER = 5
"""After so many consecutive server errors on a watch from the store's version, everything is listed again."""


class VersionWentBack(ServerError):
    """The server shows an older state than it did before: a replica that lags behind, or a backup."""


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """How a reflector talks to its server. The defaults are those of Kubernetes' own clients."""

    page_size: int = 500
    """Objects in one page of a list. Larger pages are faster, and block the event loop for longer."""
    shortest_watch: int = 300
    """Seconds after which a watch is restarted at the earliest, so that clients spread over all API servers."""
    longest_watch: int = 600
    """Seconds after which a watch is restarted at the latest; each watch draws its own time."""
    retries: Backoff = _RETRIES
    """Backoff after consecutive failures. An event of a watch, its orderly end, or a long duration is a success."""
    too_short: float = 1.0
    """A watch that ends within so many seconds, without an event, counts as a failure: without backoff it would be
    restarted in a loop."""
    long_enough: float = 60.0
    """A watch that lasted so many seconds was a success, also without an event and if the connection broke."""


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
        """Fill a store; an `optional` kind may not be installed, which is no warning."""
        self.selection = selection
        self.store = store
        self.last_contact: float | None = None
        """When the server last sent anything, by the monotonic clock."""
        self.last_event: float | None = None
        """When the server last sent an object, by the monotonic clock."""
        self.last_error: ClusterError | None = None
        """The last error; None when the server has sent something since."""
        self.absent = asyncio.Event()
        """Set while the server answers that it does not serve the kind."""
        self.relists = 0
        """Full lists after the first one."""
        self._transport = transport
        self._clock = clock
        self._random = random
        self._settings = settings
        self._optional = optional
        self._failures = 0
        self._throttled = False
        """Whether the last answer was to retry later, with a time."""
        self._complete = False
        """Whether the store is a complete state as of its version, so that a watch can continue from there."""
        self._has_watch_list = True
        self._ask_for_newest = False
        self._in_pages = True
        self._asked = selection
        self._began = 0.0
        self._last_read = float("-inf")
        self._expired = 0
        """How often in a row the version was compacted right after a full list."""

    async def run(self) -> None:
        """Keep the store up to date until cancelled. Raises only if there is a bug."""
        while True:
            try:
                await self._follow()
            except ClusterError as error:
                if self._clock.monotonic() - self._began >= self._settings.long_enough:
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
        """Run one watch to its end, after a full list if that is needed."""
        self._began = self._clock.monotonic()
        if not self._complete and not self._has_watch_list:
            await self._list()
            self._began = self._clock.monotonic()
        initial: dict[Key, Any] | None = None if self._complete else {}
        received = False
        async with aclosing(self._watch(initial_events=initial is not None)) as events:
            async for event in events:
                received = True
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
            msg = f"the watch of {self.selection} ended before the initial events were complete"
            raise ConnectionLost(msg)
        lasted = self._clock.monotonic() - self._began
        if not received and lasted < self._settings.too_short:
            msg = f"the watch of {self.selection} ended right after its start"
            raise ConnectionLost(msg)
        if not received and lasted >= self._settings.long_enough:
            await self._check_server_version()

    async def _check_server_version(self) -> None:
        """Ask a silent server for its version: one that is behind the store sends no events."""
        page = await self._transport.list(self._asked, limit=1)
        self._contact()
        self._complete = int(page.version) >= self.store.version
        self._check_version(int(page.version))

    def _watch(self, *, initial_events: bool) -> AsyncGenerator[WatchEvent, None]:
        return self._transport.watch(
            self._asked,
            version=self._not_older_than() if initial_events else str(self.store.version),
            initial_events=initial_events,
            timeout=self._random.randint(self._settings.shortest_watch, self._settings.longest_watch),
        )

    def _collect(self, initial: dict[Key, Any], event: WatchEvent) -> None:
        # Records are made at once: keeping the objects until the last one came would take many times the memory.
        key = key_of(event.object)
        if event.change is WatchEventType.DELETED:
            initial.pop(key, None)
        else:
            initial[key] = self.store.read(event.object)

    async def _list(self) -> None:
        """List everything in pages; in one page if the version was compacted before the last page was read."""
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
        """Decode whole objects from now on, so that only an object that does not fit the view fails."""
        log.warning(
            "%s: an object does not fit its view, whole objects are decoded from now on: %s", self.selection, error
        )
        record, view = self.store.record, self.selection.view
        self.store.record = lambda item: record(msgspec.convert(item, view))
        self._asked = replace(self.selection, view=dict)

    def _not_older_than(self) -> str:
        """Return the minimum version of a full list: that of the store, or the newest.

        Never `0`, which may go back in time. If a server cannot serve the store's version, because it lags behind or
        has compacted it, it can always serve its newest.
        """
        seen = self.store.version
        return str(seen) if seen and not self._ask_for_newest else ""

    def _replace(self, records: dict[Key, Any], version: int) -> None:
        self._check_version(version)
        if self.store.synced:
            self.relists += 1
        self.store.replace_records(records, version)
        if records:
            self.last_event = self.last_contact
        self._complete = True
        self._ask_for_newest = False
        self._last_read = self._clock.monotonic()

    def _check_version(self, version: int) -> None:
        seen = self.store.version
        if version < seen:
            msg = f"the server lists {self.selection} at version {version}, although it showed {seen} before"
            raise VersionWentBack(msg)

    def _contact(self) -> None:
        self.last_contact = self._clock.monotonic()
        self.last_error = None
        self.absent.clear()

    def _pause_after(self, error: ClusterError) -> float:
        """Note a failure, and give the seconds to wait before the next try."""
        if not self._complete and self._has_watch_list and isinstance(error, BadRequest | Invalid | MethodNotAllowed):
            log.info("the server has no WatchList of %s, it is listed in pages: %s", self.selection, error)
            self._has_watch_list = False
            return 0.0
        known_absent = self.absent.is_set()
        if isinstance(error, NotFound):
            # For a list or a watch this means that the kind is not served.
            resource = self.selection.resource
            self.absent.set()
            error = NotFound(f"{resource.api_version} {resource.kind} is not served, is its CRD installed? ({error})")
        throttled = isinstance(error, TooManyRequests) and error.retry_after is not None
        if throttled and not self._throttled:
            # The server answers, and says when it will serve. Failures before, because it was down or the kind was not
            # installed, must not lengthen the backoff.
            self._failures = 0
        self._throttled = throttled
        self.last_error = error
        self._failures += 1
        if not self._complete:
            self._ask_for_newest = True
        if not error.retriable or (isinstance(error, ServerError) and self._failures >= _RELIST_AFTER):
            self._complete = False
        if isinstance(error, Gone):
            recently = self._clock.monotonic() - self._last_read < _JUST_NOW
            self._expired = self._expired + 1 if recently else 0
            if self._failures == 1 and not recently:
                log.info("%s is listed again: %s", self.selection, error)
                return 0.0
        pause = self._settings.retries.after(max(self._failures, self._expired), random=self._random.random())
        if isinstance(error, ApiError) and error.retry_after is not None:
            pause = max(pause, error.retry_after)
        transient = (error.retriable or isinstance(error, Gone)) and not isinstance(error, VersionWentBack)
        level = logging.INFO if transient else logging.WARNING
        if self._optional and self.absent.is_set():
            level = logging.DEBUG if known_absent else logging.INFO
        log.log(level, "watching %s failed, next try in %.1f s: %s", self.selection, pause, error)
        return pause


def _ends_initial_events(bookmark: WatchEvent) -> bool:
    annotations = bookmark.object["metadata"].get("annotations") or {}
    return annotations.get(INITIAL_EVENTS_END) == "true"
