"""The `Transport` of a cluster over HTTP: live clusters, and the embedded cluster of another process.

`rest_client` performs one exchange, `requests` and `responses` translate. This module authenticates requests, renews
credentials after a 401, retries what had no effect, and splits the stream of a watch into lines.

Lines are split here because aiohttp's limit for a line is far below the size of an object. All complete lines of a
chunk are decoded in one call, and nothing is awaited between their events.
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
        client, self._open = self._client, None
        await client.close()

    @property
    def server_time(self) -> int | None:
        """The time of the server at its last response; None where that did not say."""
        return self._client.server_time

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
        """Read a path that is not an object: `/version`, discovery, OpenAPI."""
        return await self._read(path, {}, self._settings.request, accept)

    async def watch(
        self,
        selection: Selection,
        *,
        version: str = "",
        initial_events: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield the events after a resourceVersion."""
        request = HttpRequest(
            "GET",
            path_of(selection.resource, Key(selection.namespace, "")),
            watch_query(selection, version=version, initial_events=initial_events, timeout=timeout),
            read_timeout=self._settings.watch_read_timeout,
        )
        async with AsyncExitStack() as stack:
            answer = await self._begin(request, stack)
            end = WatchDeadline(None if timeout is None else timeout + self._settings.watch_grace, answer.close)
            stack.callback(end.cancel)
            splitter = LineSplitter(self._settings.max_bytes)
            try:
                async for chunk in answer.content.iter_any():
                    for event in events_of(splitter.feed(chunk), selection.view):
                        yield event
                splitter.finish()
            except SocketTimeoutError:
                # Bookmarks are not guaranteed: some servers send none for a kind that never changes. So a read timeout
                # ends the watch without an error, and the next watch shows whether the server is reachable.
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
            timeout=self._settings.request,
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
        """Patch one object; server-side apply creates it if it does not exist."""
        request = HttpRequest(
            "PATCH",
            object_path(resource, key, subresource),
            write_query(write, patch),
            timeout=self._settings.request,
        )
        try:
            return object_of(
                await self._write(request, with_precondition(patch, precondition), patch.type.value, write)
            )
        except Invalid as error:
            if means_conflict(error, precondition):
                raise Conflict(error.message, causes=error.causes) from error
            if may_mean_conflict(error, patch, precondition):
                # The server does not say which operation failed; the current object shows whether the test did.
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
        """Delete an object."""
        request = HttpRequest("DELETE", object_path(resource, key), {}, timeout=self._settings.request)
        await self._write(request, delete_options(write, precondition, propagation, grace_seconds), JSON, write)

    @property
    def _client(self) -> RestClient:
        if self._open is None:
            raise ConnectionLost(f"the connection to {self.access.server} is closed")
        return self._open

    async def _begin(self, request: HttpRequest, stack: AsyncExitStack) -> ClientResponse:
        """Start a watch; if the server answers 401, once more with newer credentials."""
        credentials = self.access.credentials
        authentication = await credentials.authenticate()
        try:
            return await stack.enter_async_context(self._client.stream(request, authentication))
        except Unauthorized:
            if not await credentials.renew(authentication):
                raise
        return await stack.enter_async_context(self._client.stream(request, await credentials.authenticate()))

    async def _read(self, path: str, query: Query, timeout: float, accept: str = JSON) -> bytes:
        return await self._send(HttpRequest("GET", path, query, accept, timeout), lambda: None)

    async def _write(
        self, request: HttpRequest, body: Any, content_type: str, write: Write, *, evicting: bool = False
    ) -> bytes:
        content = msgspec.json.encode(body)
        return await self._send(
            request, lambda: PermittedPayload(content, content_type, write.permit), evicting=evicting
        )

    async def _send(
        self, request: HttpRequest, make_payload: Callable[[], PermittedPayload | None], *, evicting: bool = False
    ) -> bytes:
        """Send a request until it succeeds, or fails in a way that cannot or must not be retried."""
        credentials = self.access.credentials
        loop = asyncio.get_running_loop()
        budget = RetryBudget(self._settings.retries, self._random, began=loop.time())
        renewed = False
        while True:
            authentication = await credentials.authenticate()
            payload = make_payload()
            try:
                return await self._client.exchange(request, authentication, payload)
            except Unauthorized:
                if renewed or not await credentials.renew(authentication):
                    raise
                renewed = True
                continue
            except ClusterError as error:
                if payload is None:
                    repeatable = is_read_retryable(error)
                else:
                    repeatable = is_write_retryable(error, sent=payload.sent, evicting=evicting)
                pause = budget.pause_after(error, repeatable=repeatable, now=loop.time())
                if pause == math.inf:
                    raise
            await asyncio.sleep(pause)


class LineSplitter:
    """Turns chunks into runs of complete lines."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> bytes:
        """Add a chunk, and return all lines that are complete now."""
        end = chunk.rfind(b"\n") + 1
        run = b"".join((*self._rest, chunk[:end])) if end else b""
        if end:
            self._rest, self._size = [], 0
        self._rest.append(chunk[end:])
        self._size += len(chunk) - end
        if not run:
            self._check_size()
        return run

    def finish(self) -> None:
        """Raise an error if the stream ended within a line."""
        self._check_size()
        if b"".join(self._rest).strip():
            raise ConnectionLost("the watch ended in the middle of a line")

    def _check_size(self) -> None:
        if self._size > self._max_bytes:
            raise ServerError(f"an event is larger than {self._max_bytes} bytes, and is not read")


class WatchDeadline:
    """Ends a watch that the server keeps open long after its timeout."""

    def __init__(self, seconds: float | None, end: Callable[[], None]) -> None:
        self.passed = False
        self._end = end
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self._pass)

    def _pass(self) -> None:
        self.passed = True
        self._end()

    def cancel(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
