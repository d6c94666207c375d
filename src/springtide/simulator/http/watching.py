"""Watches: streams of lines, one for each event, for as long as both sides want.

Everything that is waiting goes out as one chunk. A client that does not read as fast as things happen is told at some
point that it has missed too much, as if the versions that it lacks were compacted; it then lists again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from random import Random

from springtide.cluster.errors import Gone
from springtide.cluster.port import INITIAL_EVENTS_END, Change, Event
from springtide.simulator.api.server import ApiServer, Written
from springtide.simulator.api.subscriptions import Subscription
from springtide.simulator.http.answer import Answer
from springtide.simulator.http.lists import gathered, selection_of, snapshot_of
from springtide.simulator.http.options import ListOptions
from springtide.simulator.http.request import Request
from springtide.simulator.http.routes import Target
from springtide.simulator.http.views import View, failure_line

BOOKMARK_SECONDS = 60.0
LEAST_SECONDS = 1800
"""How long a watch lasts that does not say; up to twice as long, so that clients do not all come back at once."""
MOST_WAITING = 100_000
"""How many events a watch may be behind."""
_LOOK_EVERY = 1000
_CHUNK_BYTES = 256 * 1024
_MISSED = "too old resource version: the client reads more slowly than things happen"


class Watches:
    """All watches that are open."""

    def __init__(self, server: ApiServer, random: Random, *, most_waiting: int = MOST_WAITING) -> None:
        self._server = server
        self._random = random
        self._most_waiting = most_waiting
        self._open: set[Subscription] = set()
        self._missed: set[Subscription] = set()
        self._writes = 0
        self._bookmarks: asyncio.TimerHandle | None = None
        self._closed = False
        server.observers.append(self._on_write)

    def close(self) -> None:
        """End all watches after what they have been told, and begin no others."""
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

    async def watched(self, request: Request, target: Target, options: ListOptions, view: View) -> Answer:
        """Answer with a watch."""
        selection = selection_of(target, options)
        begins = options.initial_events or (options.initial_events is None and options.version in ("", "0"))
        if not begins:
            version = str(self._server.revision) if options.version in ("", "0") else options.version
            return Answer(
                self._stream(request, self._server.watch(selection, version=version), (), options, view), endless=True
            )
        # What exists is taken in slices, and what happens meanwhile waits in the subscription.
        snapshot = snapshot_of(self._server, target, selection, options.version)
        subscription = self._server.watch(selection, version=str(snapshot.revision))
        try:
            items = await gathered(snapshot)
        except BaseException:
            subscription.end()
            raise
        beginning: Iterable[bytes] = map(view.beginning, items)
        if options.initial_events and options.bookmarks:
            beginning = chain(beginning, map(view.change, (_all_told(target, snapshot.revision),)))
        return Answer(self._stream(request, subscription, beginning, options, view), endless=True)

    async def _stream(
        self,
        request: Request,
        subscription: Subscription,
        beginning: Iterable[bytes],
        options: ListOptions,
        view: View,
    ) -> AsyncGenerator[bytes, None]:
        if self._closed:
            subscription.end()
        self._open.add(subscription)
        self._plan_bookmarks()
        loop = asyncio.get_running_loop()
        seconds = options.timeout or LEAST_SECONDS * (1 + self._random.random())
        ending = loop.call_later(seconds, subscription.end)
        leaving = asyncio.create_task(_end_with_client(request, subscription), name="watching a client")
        try:
            for chunk in _chunks(beginning):
                yield chunk
                await asyncio.sleep(0)
            while True:
                await subscription.arrived()
                if subscription in self._missed:
                    yield failure_line(Gone(_MISSED))
                    return
                if not subscription.events:
                    return
                for chunk in _chunks(_lines(subscription, view, bookmarks=options.bookmarks)):
                    yield chunk
                    await asyncio.sleep(0)
        finally:
            ending.cancel()
            leaving.cancel()
            subscription.end()
            self._open.discard(subscription)
            self._missed.discard(subscription)
            with suppress(asyncio.CancelledError):
                await leaving

    def _on_write(self, written: Written) -> None:  # noqa: ARG002
        self._writes += 1
        if self._writes % _LOOK_EVERY == 0:
            self._end_the_slow()
        self._plan_bookmarks()

    def _end_the_slow(self) -> None:
        for subscription in self._open:
            if len(subscription.events) > self._most_waiting:
                self._missed.add(subscription)
                subscription.events.clear()
                subscription.end()

    def _plan_bookmarks(self) -> None:
        """See that open watches hear of the present version some time later; one timer serves all until then."""
        if self._open and self._bookmarks is None and not self._closed:
            self._bookmarks = asyncio.get_running_loop().call_later(BOOKMARK_SECONDS, self._bookmark)

    def _bookmark(self) -> None:
        self._bookmarks = None
        for subscription in self._open:
            subscription.bookmark(self._server.revision)
        self._plan_bookmarks()


def _lines(subscription: Subscription, view: View, *, bookmarks: bool) -> Iterator[bytes]:
    """Take what is waiting."""
    events = subscription.events
    while events:
        event = events.popleft()
        if bookmarks or event.change is not Change.BOOKMARK:
            yield view.change(event)


def _chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Put lines together, as many as make a good chunk."""
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


def _all_told(target: Target, revision: int) -> Event:
    """Make the bookmark that ends initial events."""
    resource = target.kind.resource
    metadata = {
        "resourceVersion": str(revision),
        "annotations": {INITIAL_EVENTS_END: "true"},
    }
    body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return Event(Change.BOOKMARK, body)


async def _end_with_client(request: Request, subscription: Subscription) -> None:
    await request.gone()
    subscription.events.clear()
    subscription.end()
