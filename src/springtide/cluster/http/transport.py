"""The cluster port over HTTP: every live cluster, and the embedded one in another process.

`wire` does one exchange, `addresses`, `demands`, `answers` and `decoding` translate, and this module puts them
together: it asks for proofs, renews them after a 401, and tries again what had no effect.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from random import Random
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import ClientError, ClientResponse, SocketTimeoutError

from springtide.cluster.errors import ClusterError, Conflict, ConnectionLost, Invalid, Unauthorized
from springtide.cluster.http.addresses import Query, list_query, object_path, path_of, watch_query, write_query
from springtide.cluster.http.decoding import events_of, object_of, page_of
from springtide.cluster.http.demands import (
    delete_options,
    demanding,
    is_met,
    may_mean_conflict,
    means_conflict,
    modified,
)
from springtide.cluster.http.parcel import Parcel
from springtide.cluster.http.retrying import Persistence, can_be_read_again, can_be_written_again
from springtide.cluster.http.server_access import Access
from springtide.cluster.http.settings import HttpSettings
from springtide.cluster.http.watching import Deadline, LineCutter
from springtide.cluster.http.wire import JSON, Request, Wire
from springtide.cluster.port import UNCONDITIONAL, Event, Page, Patch, Precondition, Propagation, Write
from springtide.cluster.resources import Key, Object, Resource, Selection

_DEFAULTS = HttpSettings()


class HttpTransport:
    """A connection to a server, within an `async with` block."""

    def __init__(self, access: Access, *, settings: HttpSettings = _DEFAULTS, random: Random) -> None:
        self.access = access
        self._settings = settings
        self._random = random
        self._open: Wire | None = None

    async def __aenter__(self) -> Self:
        self._open = Wire(self.access, self._settings)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        wire, self._open = self._wire, None
        await wire.close()

    @property
    def server_time(self) -> int | None:
        """What time it was on the server at its last answer, in its own opinion; None where it has none."""
        return self._wire.server_time

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read one object, or its scale."""
        return object_of(await self._read(object_path(resource, key, subresource), {}, self._settings.request))

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> Page:
        """Read a page of objects."""
        query = list_query(selection, limit=limit, continue_=continue_, version=version, exact=exact)
        path = path_of(selection.resource, Key(selection.namespace, ""))
        return page_of(await self._read(path, query, self._settings.listing), selection)

    async def fetch(self, path: str, *, accept: str = JSON) -> bytes:
        """Read what is no object: `/version`, discovery, OpenAPI."""
        return await self._read(path, {}, self._settings.request, accept)

    async def watch(
        self,
        selection: Selection,
        *,
        version: str = "",
        initial_events: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Tell what happens after a version."""
        request = Request(
            "GET",
            path_of(selection.resource, Key(selection.namespace, "")),
            watch_query(selection, version=version, initial_events=initial_events, timeout=timeout),
            silence=self._settings.silence,
        )
        async with AsyncExitStack() as stack:
            answer = await self._begin(request, stack)
            end = Deadline(None if timeout is None else timeout + self._settings.overtime, answer.close)
            stack.callback(end.cancel)
            cutter = LineCutter(self._settings.largest)
            try:
                async for chunk in answer.content.iter_any():
                    for event in events_of(cutter.feed(chunk), selection.view):
                        yield event
                cutter.finish()
            except SocketTimeoutError:
                # Servers promise no bookmarks, and of a kind of which nothing ever happens some send none. So silence
                # is no failure: the watch is over, and whoever begins the next one learns whether the server is there.
                return
            except (ClientError, OSError):
                if not end.passed:
                    raise

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
        request = Request(
            "POST",
            path_of(resource, Key(namespace, name), subresource),
            write_query(write),
            seconds=self._settings.request,
        )
        return object_of(await self._write(request, body, JSON, write, evicting=subresource == "eviction"))

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
        request = Request(
            "PATCH",
            object_path(resource, key, subresource),
            write_query(write, patch),
            seconds=self._settings.request,
        )
        try:
            return object_of(await self._write(request, demanding(patch, precondition), patch.type.value, write))
        except Invalid as error:
            if means_conflict(error, precondition):
                raise Conflict(error.message, causes=error.causes) from error
            if may_mean_conflict(error, patch, precondition):
                # The server does not say which operation failed; the object as it is now does.
                found = await self.get(resource, key)
                if not is_met(precondition, found):
                    raise Conflict(modified(resource, key)) from error
            raise

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
        """Ask an object to go."""
        request = Request("DELETE", object_path(resource, key), {}, seconds=self._settings.request)
        await self._write(request, delete_options(write, precondition, propagation, grace_seconds), JSON, write)

    @property
    def _wire(self) -> Wire:
        if self._open is None:
            raise ConnectionLost(f"the connection to {self.access.server} is closed")
        return self._open

    async def _begin(self, request: Request, stack: AsyncExitStack) -> ClientResponse:
        """Begin a watch; where the proof is not accepted, once more with a newer one."""
        credentials = self.access.credentials
        proof = await credentials.proof()
        try:
            return await stack.enter_async_context(self._wire.stream(request, proof))
        except Unauthorized:
            if not await credentials.renew(proof):
                raise
        return await stack.enter_async_context(self._wire.stream(request, await credentials.proof()))

    async def _read(self, path: str, query: Query, seconds: float, accept: str = JSON) -> bytes:
        return await self._send(Request("GET", path, query, accept, seconds), lambda: None)

    async def _write(
        self, request: Request, body: Any, content_type: str, write: Write, *, evicting: bool = False
    ) -> bytes:
        content = msgspec.json.encode(body)
        return await self._send(request, lambda: Parcel(content, content_type, write.permit), evicting=evicting)

    async def _send(self, request: Request, pack: Callable[[], Parcel | None], *, evicting: bool = False) -> bytes:
        """Send a request until there is an answer, or a failure that sending it again cannot or must not mend."""
        credentials = self.access.credentials
        loop = asyncio.get_running_loop()
        persistence = Persistence(self._settings.retries, self._random, began=loop.time())
        renewed = False
        while True:
            proof = await credentials.proof()
            parcel = pack()
            try:
                return await self._wire.exchange(request, proof, parcel)
            except Unauthorized:
                if renewed or not await credentials.renew(proof):
                    raise
                renewed = True
                continue
            except ClusterError as error:
                if parcel is None:
                    repeatable = can_be_read_again(error)
                else:
                    repeatable = can_be_written_again(error, sent=parcel.sent, evicting=evicting)
                pause = persistence.pause_after(error, repeatable=repeatable, now=loop.time())
                if pause == math.inf:
                    raise
            await asyncio.sleep(pause)
