"""The stream of a watch: from chunks, as they come, to runs of whole lines; and its end, where the server forgets it.

Lines are cut out of the chunks by hand: aiohttp's own limit for a line is far below the size of an object. All whole
lines that are there make one run, which is decoded at once, and nothing is awaited between its events.

The cluster port over HTTP: every live cluster, and the embedded one in another process.

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

from springtide.cluster.errors import ClusterError, Conflict, ConnectionLost, Invalid, ServerError, Unauthorized
from springtide.cluster.http.access import ClusterAccess
from springtide.cluster.http.requests import (
    Query,
    conflict_message,
    delete_options,
    is_met,
    list_query,
    may_mean_conflict,
    means_conflict,
    object_path,
    path_of,
    watch_query,
    with_precondition,
    write_query,
)
from springtide.cluster.http.responses import events_of, object_of, page_of
from springtide.cluster.http.rest_client import JSON, HttpRequest, PermittedPayload, RestClient
from springtide.cluster.http.settings import HttpSettings, RetryBudget, is_read_retryable, is_write_retryable
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import UNCONDITIONAL, ListPage, Patch, Precondition, Propagation, WatchEvent, Write


class LineSplitter:
    """Puts the pieces of lines together."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk, and give all whole lines that are there now."""
        end = chunk.rfind(b"\n") + 1
        run = b"".join((*self._rest, chunk[:end])) if end else b""
        if end:
            self._rest, self._size = [], 0
        self._rest.append(chunk[end:])
        self._size += len(chunk) - end
        if not run:
            self._refuse_giants()
        return run

    def finish(self) -> None:
        """Make sure that the stream did not end within a line."""
        self._refuse_giants()
        if b"".join(self._rest).strip():
            raise ConnectionLost("the watch ended in the middle of a line")

    def _refuse_giants(self) -> None:
        if self._size > self._largest:
            raise ServerError(f"an event is larger than {self._largest} bytes, and is not read")


class WatchDeadline:
    """Ends a watch that goes on for much longer than it was asked to."""

    def __init__(self, seconds: float | None, end: Callable[[], None]) -> None:
        self.passed = False
        self._end = end
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self._pass)

    def _pass(self) -> None:
        self.passed = True
        self._end()

    def cancel(self) -> None:
        """Leave the watch alone."""
        if self._timer is not None:
            self._timer.cancel()


_DEFAULTS = HttpSettings()


class HttpTransport:
    """A connection to a server, within an `async with` block."""

    def __init__(self, access: ClusterAccess, *, settings: HttpSettings = _DEFAULTS, random: Random) -> None:
        self.access = access
        self._settings = settings
        self._random = random
        self._open: RestClient | None = None

    async def __aenter__(self) -> Self:
        self._open = RestClient(self.access, self._settings)
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
    ) -> ListPage:
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
    ) -> AsyncGenerator[WatchEvent, None]:
        """Tell what happens after a version."""
        request = HttpRequest(
            "GET",
            path_of(selection.resource, Key(selection.namespace, "")),
            watch_query(selection, version=version, initial_events=initial_events, timeout=timeout),
            silence=self._settings.silence,
        )
        async with AsyncExitStack() as stack:
            answer = await self._begin(request, stack)
            end = WatchDeadline(None if timeout is None else timeout + self._settings.overtime, answer.close)
            stack.callback(end.cancel)
            cutter = LineSplitter(self._settings.largest)
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
        request = HttpRequest(
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
        request = HttpRequest(
            "PATCH",
            object_path(resource, key, subresource),
            write_query(write, patch),
            seconds=self._settings.request,
        )
        try:
            return object_of(
                await self._write(request, with_precondition(patch, precondition), patch.type.value, write)
            )
        except Invalid as error:
            if means_conflict(error, precondition):
                raise Conflict(error.message, causes=error.causes) from error
            if may_mean_conflict(error, patch, precondition):
                # The server does not say which operation failed; the object as it is now does.
                found = await self.get(resource, key)
                if not is_met(precondition, found):
                    raise Conflict(conflict_message(resource, key)) from error
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
        request = HttpRequest("DELETE", object_path(resource, key), {}, seconds=self._settings.request)
        await self._write(request, delete_options(write, precondition, propagation, grace_seconds), JSON, write)

    @property
    def _wire(self) -> RestClient:
        if self._open is None:
            raise ConnectionLost(f"the connection to {self.access.server} is closed")
        return self._open

    async def _begin(self, request: HttpRequest, stack: AsyncExitStack) -> ClientResponse:
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
        return await self._send(HttpRequest("GET", path, query, accept, seconds), lambda: None)

    async def _write(
        self, request: HttpRequest, body: Any, content_type: str, write: Write, *, evicting: bool = False
    ) -> bytes:
        content = msgspec.json.encode(body)
        return await self._send(
            request, lambda: PermittedPayload(content, content_type, write.permit), evicting=evicting
        )

    async def _send(
        self, request: HttpRequest, pack: Callable[[], PermittedPayload | None], *, evicting: bool = False
    ) -> bytes:
        """Send a request until there is an answer, or a failure that sending it again cannot or must not mend."""
        credentials = self.access.credentials
        loop = asyncio.get_running_loop()
        persistence = RetryBudget(self._settings.retries, self._random, began=loop.time())
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
                    repeatable = is_read_retryable(error)
                else:
                    repeatable = is_write_retryable(error, sent=parcel.sent, evicting=evicting)
                pause = persistence.pause_after(error, repeatable=repeatable, now=loop.time())
                if pause == math.inf:
                    raise
            await asyncio.sleep(pause)
