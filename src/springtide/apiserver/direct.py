"""The cluster port by direct calls into an API server in the same process.

Each call yields to the event loop once before it takes effect, as a request over a network does; nothing runs between
`permit` and the effect. `cut` closes a connection as a crash does: calls in flight do not arrive. With a
`WriteExecutor`, writes pass the same admission as those of other clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextvars import Context
from dataclasses import replace
from typing import TypeVar

import msgspec

from springtide.apiserver.admission import ADMIN, User, WriteExecutor
from springtide.apiserver.list_watch import WatchSubscription
from springtide.apiserver.server import ApiServer, CommittedWrite
from springtide.cluster.errors import ConnectionLost
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import (
    UNCONDITIONAL,
    ListPage,
    Patch,
    Precondition,
    Propagation,
    WatchEvent,
    WatchEventType,
    Write,
)

BOOKMARK_SECONDS = 60.0
"""How long after a change a bookmark is sent to watches that had no event for it."""

T = TypeVar("T")


class DirectTransport:
    """A connection to an API server in this process."""

    def __init__(
        self,
        server: ApiServer,
        *,
        bookmark_seconds: float = BOOKMARK_SECONDS,
        executor: WriteExecutor | None = None,
        user: User = ADMIN,
    ) -> None:
        self._server = server
        self._executor = executor
        self._user = user
        self._bookmark_seconds = bookmark_seconds
        self._cut = False
        self._open: list[WatchSubscription] = []
        self._bookmarks: asyncio.TimerHandle | None = None
        server.observers.append(self._on_write)

    def cut(self) -> None:
        """Close the connection for good: each call and stream fails with `ConnectionLost`, without effect."""
        if self._cut:
            return
        self._cut = True
        self._server.observers.remove(self._on_write)
        if self._bookmarks is not None:
            self._bookmarks.cancel()
        for subscription in list(self._open):
            subscription.end()

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read one object, or its scale."""
        return await self._call(lambda: self._server.get(resource, key, subresource=subresource))

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> ListPage:
        """Read a page of objects."""
        page = await self._call(
            lambda: self._server.list(selection, limit=limit, continue_=continue_, version=version, exact=exact)
        )
        if selection.view is dict:
            return page
        return replace(page, items=[msgspec.convert(item, selection.view) for item in page.items])

    async def watch(
        self,
        selection: Selection,
        *,
        version: str = "",
        initial_events: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield the events after a version."""
        subscription = await self._call(
            lambda: self._server.watch(selection, version=version, initial_events=initial_events)
        )
        self._open.append(subscription)
        loop = asyncio.get_running_loop()
        ending = None if timeout is None else loop.call_later(timeout, subscription.end, context=Context())
        view = selection.view
        try:
            events = subscription.events
            while True:
                if not events:
                    await subscription.wait()
                self._check()
                if not events:
                    return
                event = events.popleft()
                if view is not dict and event.change is not WatchEventType.BOOKMARK:
                    event = WatchEvent(event.change, msgspec.convert(event.object, view))
                yield event
        finally:
            if ending is not None:
                ending.cancel()
            self._open.remove(subscription)
            subscription.end()

    async def create(
        self,
        resource: Resource,
        body: Object,
        write: Write,
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
    ) -> Object:
        """Create an object; with a name and a subresource, an eviction or a binding of that object."""
        return await self._call(
            lambda: self._server.create(resource, body, write, namespace=namespace, name=name, subresource=subresource),
            write,
        )

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Patch,
        write: Write,
        *,
        subresource: str = "",
        precondition: Precondition = UNCONDITIONAL,
    ) -> Object:
        """Change one object; an apply creates it where it is not there."""
        return await self._call(
            lambda: self._server.patch(resource, key, patch, write, subresource=subresource, precondition=precondition),
            write,
        )

    async def delete(
        self,
        resource: Resource,
        key: Key,
        write: Write,
        *,
        precondition: Precondition = UNCONDITIONAL,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Delete an object."""
        await self._call(
            lambda: self._server.delete(
                resource,
                key,
                write,
                precondition=precondition,
                propagation=propagation,
                grace_seconds=grace_seconds,
            ),
            write,
        )

    async def _call(self, effect: Callable[[], T], write: Write | None = None) -> T:
        self._check()
        await asyncio.sleep(0)
        if write is None:
            self._check()
            return effect()

        def permitted() -> T:
            self._check()
            write.permit()
            return effect()

        if self._executor is None:
            return permitted()
        return (await self._executor(permitted, self._user)).value

    def _check(self) -> None:
        if self._cut:
            raise ConnectionLost("the connection to the server is closed")

    def _on_write(self, written: CommittedWrite) -> None:  # noqa: ARG002
        """Schedule a bookmark for open watches; one timer serves all writes until it fires."""
        if self._open and self._bookmarks is None:
            loop = asyncio.get_running_loop()
            # In a context of its own: the timer belongs to the server, not to the task that happened to write.
            self._bookmarks = loop.call_later(self._bookmark_seconds, self._bookmark, context=Context())

    def _bookmark(self) -> None:
        self._bookmarks = None
        for subscription in self._open:
            subscription.bookmark(self._server.revision)
