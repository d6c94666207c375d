"""What a watch is to the server: a queue of events, and one waiter.

A watch of everything gets the very event objects that the store made; only watches with a selector or of another
version of the kind have events made for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from springtide.cluster.port import INITIAL_EVENTS_END, Change, Event
from springtide.cluster.resources import Object, Resource
from springtide.simulator.api.storage import Collection, Stored, at_version

Matches: TypeAlias = Callable[[Object], bool]
Telling: TypeAlias = Callable[[Stored], Event | None]


class Subscription:
    """One open watch; whoever opened it takes from `events`, and closes it."""

    __slots__ = ("_collection", "_resource", "_telling", "_waiter", "ended", "events", "version")

    def __init__(self, collection: Collection, resource: Resource, *, version: int, telling: Telling | None) -> None:
        self.events: deque[Event] = deque()
        self.version = version
        """The version up to which everything has been told."""
        self.ended = False
        """Nothing more will come than what is in `events`."""
        self._collection = collection
        self._resource = resource
        self._telling = telling
        self._waiter: asyncio.Future[None] | None = None
        collection.subscriptions.append(self)

    def deliver(self, change: Stored) -> None:
        """Tell a change, if it is any business of this watch."""
        event = change.event if self._telling is None else self._telling(change)
        if event is not None:
            self.version = change.revision
            self.events.append(event)
            if self._waiter is not None:
                self._wake()

    def begin(self, items: Iterable[Object], *, end: bool) -> None:
        """Tell the objects that exist already, and, if asked, that these were all."""
        self.events.extend(Event(Change.ADDED, item) for item in items)
        if end:
            self._bookmark({"annotations": {INITIAL_EVENTS_END: "true"}})

    def bookmark(self, version: int) -> None:
        """Tell that nothing else has happened up to a version."""
        if version > self.version and not self.ended:
            self.version = version
            self._bookmark({})
            self._wake()

    def end(self) -> None:
        """Let the watch end after what it has been told."""
        if not self.ended:
            self.ended = True
            self._collection.subscriptions.remove(self)
            self._wake()

    async def arrived(self) -> None:
        """Wait until there are events, or the watch has ended."""
        if not self.events and not self.ended:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def _bookmark(self, metadata: Object) -> None:
        resource = self._resource
        metadata = {"resourceVersion": str(self.version), "creationTimestamp": None, **metadata}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        self.events.append(Event(Change.BOOKMARK, body))

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def telling(namespace: str, matches: Matches | None, serve: Callable[[Object], Object] | None) -> Telling | None:
    """Make the way in which a watch tells changes; None where it tells all of them as they are."""
    if not namespace and matches is None and serve is None:
        return None

    def tell(change: Stored) -> Event | None:
        if namespace and change.key.namespace != namespace:
            return None
        event = change.event
        if matches is not None:
            told = _selected(change, matches)
            if told is None:
                return None
            event = told
        if serve is None:
            return event
        served = serve(event.object)
        return event if served is event.object else Event(event.change, served)

    return tell


def _selected(change: Stored, matches: Matches) -> Event | None:
    """Tell a change to somebody who sees only what matches: what stops matching is gone for them."""
    before = change.old is not None and matches(change.old)
    after = change.new is not None and matches(change.new)
    if before and after:
        return change.event
    if after:
        return change.event if change.old is None else Event(Change.ADDED, change.new)
    if before and change.old is not None:
        return change.event if change.new is None else Event(Change.DELETED, at_version(change.old, change.revision))
    return None
