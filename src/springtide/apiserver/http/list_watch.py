"""List and watch responses.

A list may be half a gigabyte, so it is written in chunks, between which other tasks run. A watch writes all waiting
events as one chunk. A client that falls too far behind gets 410 Gone, as if its version were compacted, and lists
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from random import Random

from springtide.apiserver.http.requests import HttpApiRequest, ListOptions
from springtide.apiserver.http.responses import Response
from springtide.apiserver.http.routes import RequestTarget
from springtide.apiserver.http.views import CLOSING, ObjectView, failure_line
from springtide.apiserver.kinds import collection_id
from springtide.apiserver.list_watch import ListSnapshot, WatchSubscription, selection_filter
from springtide.apiserver.server import ApiServer, CommittedWrite
from springtide.cluster.errors import Gone
from springtide.cluster.resources import Object, Selection
from springtide.cluster.transport import INITIAL_EVENTS_END, ListPage, WatchEvent, WatchEventType

_SLICE_BYTES = 256 * 1024
_SLICE_OBJECTS = 5000

BOOKMARK_SECONDS = 60.0
MIN_SECONDS = 1800
"""The minimum duration of a watch without a timeout; up to twice as long, so that clients do not reconnect together."""
MAX_WAITING = 100_000
"""How many events a watch may be behind."""
_CHECK_EVERY = 1000
_CHUNK_BYTES = 256 * 1024
_TOO_SLOW = "too old resource version: the client reads events too slowly"


def selection_of(target: RequestTarget, options: ListOptions) -> Selection:
    """Return the selection of a list or a watch."""
    return Selection(target.kind.resource, target.namespace, options.labels, options.fields)


async def list_response(server: ApiServer, target: RequestTarget, options: ListOptions, view: ObjectView) -> Response:
    """Return a list response."""
    selection = selection_of(target, options)
    if options.limit or options.continue_ or options.exact:
        page = server.list(
            selection,
            limit=options.limit,
            continue_=options.continue_,
            version=options.version,
            exact=options.exact,
        )
    else:
        snapshot = snapshot_of(server, target, selection, options.version)
        page = ListPage(await collect_slices(snapshot), str(snapshot.revision))
    return Response(_list_chunks(page, view))


def snapshot_of(server: ApiServer, target: RequestTarget, selection: Selection, version: str) -> ListSnapshot:
    """Return a snapshot of a selection."""
    kind = target.kind
    return ListSnapshot(
        server.storage,
        server.storage.collection(collection_id(kind.resource)),
        selection,
        selection_filter(selection, server.catalogue.selectable(kind)),
        server.versions.serving(kind),
        version=version,
    )


async def collect_slices(snapshot: ListSnapshot) -> list[Object]:
    """Collect the objects of a snapshot; other tasks run between slices."""
    items: list[Object] = []
    for part in snapshot.slices(_SLICE_OBJECTS):
        items += part
        await asyncio.sleep(0)
    return items


async def _list_chunks(page: ListPage, view: ObjectView) -> AsyncGenerator[bytes, None]:
    pieces, size = [view.opening(page)], 0
    comma = b""
    for item in page.items:
        entry = view.entry(item)
        pieces += (comma, entry)
        comma = b","
        size += len(entry)
        if size >= _SLICE_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
            await asyncio.sleep(0)
    pieces.append(CLOSING)
    yield b"".join(pieces)


class WatchStreams:
    """The open watches."""

    def __init__(self, server: ApiServer, random: Random, *, max_waiting: int = MAX_WAITING) -> None:
        self._server = server
        self._random = random
        self._max_waiting = max_waiting
        self._open: set[WatchSubscription] = set()
        self._too_slow: set[WatchSubscription] = set()
        self._writes = 0
        self._bookmarks: asyncio.TimerHandle | None = None
        self._closed = False
        server.observers.append(self._on_write)

    def close(self) -> None:
        """End all watches after their queued events, and refuse new ones."""
        if self._closed:
            return
        self._closed = True
        self._server.observers.remove(self._on_write)
        if self._bookmarks is not None:
            self._bookmarks.cancel()
        for subscription in list(self._open):
            subscription.end()

    def __len__(self) -> int:
        return len(self._open)

    async def watch_response(
        self, request: HttpApiRequest, target: RequestTarget, options: ListOptions, view: ObjectView
    ) -> Response:
        """Return a watch response."""
        selection = selection_of(target, options)
        starts_with_objects = options.initial_events or (
            options.initial_events is None and options.version in ("", "0")
        )
        if not starts_with_objects:
            version = str(self._server.revision) if options.version in ("", "0") else options.version
            return Response(
                self._stream(request, self._server.watch(selection, version=version), (), options, view), endless=True
            )
        # Existing objects are read in slices, while new events wait in the subscription.
        snapshot = snapshot_of(self._server, target, selection, options.version)
        subscription = self._server.watch(selection, version=str(snapshot.revision))
        try:
            items = await collect_slices(snapshot)
        except BaseException:
            subscription.end()
            raise
        initial: Iterable[bytes] = map(view.initial, items)
        if options.initial_events and options.bookmarks:
            initial = chain(initial, map(view.change, (_initial_events_end(target, snapshot.revision),)))
        return Response(self._stream(request, subscription, initial, options, view), endless=True)

    async def _stream(
        self,
        request: HttpApiRequest,
        subscription: WatchSubscription,
        initial: Iterable[bytes],
        options: ListOptions,
        view: ObjectView,
    ) -> AsyncGenerator[bytes, None]:
        if self._closed:
            subscription.end()
        self._open.add(subscription)
        self._schedule_bookmark()
        loop = asyncio.get_running_loop()
        seconds = options.timeout or MIN_SECONDS * (1 + self._random.random())
        ending = loop.call_later(seconds, subscription.end)
        disconnect = asyncio.create_task(_end_on_disconnect(request, subscription), name="watch for a disconnect")
        try:
            for chunk in _joined(initial):
                yield chunk
                await asyncio.sleep(0)
            while True:
                await subscription.wait()
                if subscription in self._too_slow:
                    yield failure_line(Gone(_TOO_SLOW))
                    return
                if not subscription.events:
                    return
                for chunk in _joined(_lines(subscription, view, bookmarks=options.bookmarks)):
                    yield chunk
                    await asyncio.sleep(0)
        finally:
            ending.cancel()
            disconnect.cancel()
            subscription.end()
            self._open.discard(subscription)
            self._too_slow.discard(subscription)
            with suppress(asyncio.CancelledError):
                await disconnect

    def _on_write(self, written: CommittedWrite) -> None:  # noqa: ARG002
        self._writes += 1
        if self._writes % _CHECK_EVERY == 0:
            self._end_slow_watches()
        self._schedule_bookmark()

    def _end_slow_watches(self) -> None:
        for subscription in self._open:
            if len(subscription.events) > self._max_waiting:
                self._too_slow.add(subscription)
                subscription.events.clear()
                subscription.end()

    def _schedule_bookmark(self) -> None:
        """Schedule a bookmark for open watches; one timer serves all until it fires."""
        if self._open and self._bookmarks is None and not self._closed:
            self._bookmarks = asyncio.get_running_loop().call_later(BOOKMARK_SECONDS, self._bookmark)

    def _bookmark(self) -> None:
        self._bookmarks = None
        for subscription in self._open:
            subscription.bookmark(self._server.revision)
        self._schedule_bookmark()


def _lines(subscription: WatchSubscription, view: ObjectView, *, bookmarks: bool) -> Iterator[bytes]:
    """Write the queued events."""
    events = subscription.events
    while events:
        event = events.popleft()
        if bookmarks or event.change is not WatchEventType.BOOKMARK:
            yield view.change(event)


def _joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines into chunks."""
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _CHUNK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def _initial_events_end(target: RequestTarget, revision: int) -> WatchEvent:
    """Return the bookmark that ends initial events."""
    resource = target.kind.resource
    metadata = {
        "resourceVersion": str(revision),
        "annotations": {INITIAL_EVENTS_END: "true"},
    }
    body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return WatchEvent(WatchEventType.BOOKMARK, body)


async def _end_on_disconnect(request: HttpApiRequest, subscription: WatchSubscription) -> None:
    await request.disconnected()
    subscription.events.clear()
    subscription.end()
