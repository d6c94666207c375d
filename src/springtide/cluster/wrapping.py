"""A transport around another one, for whoever looks at requests and need not know them all: meters, guards, tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from springtide.cluster.port import UNCONDITIONAL, Event, Page, Patch, Precondition, Propagation, Transport, Write
from springtide.cluster.resources import Key, Object, Resource, Selection

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """One request, in the words of the API."""

    verb: str
    resource: Resource
    key: Key
    """What its path is about; without a name where that is several, or one that is yet to be created."""
    subresource: str = ""
    fields: str = ""
    """The field selector of a list or a watch."""
    patch: Patch | None = None
    body: Object | None = None
    """What is to be created."""


class WrappingTransport:
    """Passes everything on; those who inherit from it override `through`, and `streaming` for watches."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner

    async def through(self, request: Request, send: Callable[[], Awaitable[T]]) -> T:  # noqa: ARG002
        """Let a request pass, by calling `send` for its answer."""
        return await send()

    async def streaming(self, request: Request, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:  # noqa: ARG002
        """Let a watch pass."""
        async with aclosing(events) as told:
            async for event in told:
                yield event

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read one object, or its scale."""
        request = Request("get", resource, key, subresource)
        return await self.through(request, lambda: self.inner.get(resource, key, subresource=subresource))

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> Page:
        """Read a page of objects."""
        return await self.through(
            _of_many("list", selection),
            lambda: self.inner.list(selection, limit=limit, continue_=continue_, version=version, exact=exact),
        )

    def watch(
        self, selection: Selection, *, version: str = "", initial_events: bool = False, timeout: float | None = None
    ) -> AsyncGenerator[Event, None]:
        """Tell what happens after a version."""
        events = self.inner.watch(selection, version=version, initial_events=initial_events, timeout=timeout)
        return self.streaming(_of_many("watch", selection), events)

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
        return await self.through(
            Request("create", resource, Key(namespace, name), subresource, body=body),
            lambda: self.inner.create(resource, body, write, namespace=namespace, name=name, subresource=subresource),
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
        return await self.through(
            Request("patch", resource, key, subresource, patch=patch),
            lambda: self.inner.patch(resource, key, patch, write, subresource=subresource, precondition=precondition),
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
        """Ask an object to go."""
        await self.through(
            Request("delete", resource, key),
            lambda: self.inner.delete(
                resource, key, write, precondition=precondition, propagation=propagation, grace_seconds=grace_seconds
            ),
        )


def _of_many(verb: str, selection: Selection) -> Request:
    return Request(verb, selection.resource, Key(selection.namespace, ""), fields=selection.fields)
