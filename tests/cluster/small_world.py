"""A cluster in memory with little in it, and a line to it that tests can meddle with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from random import Random
from typing import Any, cast

from springtide.apis.crds import Flavour, all_crds
from springtide.cluster.clock import Clock
from springtide.cluster.port import (
    UNCONDITIONAL,
    Event,
    Page,
    Patch,
    Precondition,
    Propagation,
    Write,
)
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.simulator.api.direct import DirectTransport
from springtide.simulator.api.server import ApiServer, Written

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
EVENTS = Resource("", "v1", "events", "Event")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
USER = Write("user")
START = 1_767_571_200  # 2026-01-05T00:00:00Z

Meddler = Callable[[str, Resource, Key], Awaitable[None]]
"""Is told the verb, the resource and the key; waits or raises as it likes."""


async def leave_alone(verb: str, resource: Resource, key: Key) -> None:
    """Do nothing."""


class SmallWorld:
    """A server with two namespaces, and a list of every write that took effect."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.server = ApiServer(now=clock.now, random=Random(1))
        for namespace in ("work", "springtide-system"):
            self.server.create(NAMESPACES, {"metadata": {"name": namespace}}, USER)
        self.writes: list[Written] = []
        self.server.observers.append(self.writes.append)

    def line(self) -> Line:
        """Connect somebody."""
        return Line(DirectTransport(self.server))

    def install_calendars(self) -> None:
        """Teach the server our own kinds."""
        for crd in all_crds(Flavour.EXTENDED):
            if crd["spec"]["names"]["kind"] == "Calendar":
                self.server.create(CRDS, crd, USER)
        self.writes.clear()

    def config_map(self, name: str, namespace: str = "work", **data: str) -> Object:
        """Create a ConfigMap."""
        body = {"metadata": {"name": name, "namespace": namespace}, "data": data}
        return self.server.create(CONFIG_MAPS, body, USER, namespace=namespace)

    def change(self, name: str, namespace: str = "work", resource: Resource = CONFIG_MAPS, **parts: Any) -> Object:
        """Change an object as a user would, by a merge patch."""
        return self.server.patch(resource, Key(namespace, name), Patch.merge(parts), USER)

    def written(self, *ignoring: str) -> list[tuple[str, str, str]]:
        """List who wrote what, but for users and for some kinds."""
        return [
            (one.write.manager, one.verb, f"{one.resource.kind} {one.key}")
            for one in self.writes
            if one.write.manager != "user" and one.resource.kind not in ignoring
        ]

    def events(self) -> list[Object]:
        """List the events that were written, by what they are about."""
        items = self.server.list(Selection(EVENTS)).items
        return sorted(items, key=lambda item: (item["involvedObject"]["name"], item["reason"], item["message"]))


class Line:
    """A transport that lets tests act just before a request leaves and just after it took effect."""

    def __init__(self, inner: DirectTransport) -> None:
        self._inner = inner
        self.before: Meddler = leave_alone
        self.after: Meddler = leave_alone
        self.asked: list[str] = []
        """Verbs and resources of all requests but watches."""
        self.flowing = asyncio.Event()
        """Whether watches deliver."""
        self.flowing.set()

    def cut(self) -> None:
        """Let nothing more take effect."""
        self._inner.cut()

    async def _through(self, verb: str, resource: Resource, key: Key, send: Callable[[], Awaitable[Any]]) -> Any:
        self.asked.append(f"{verb} {resource}")
        await self.before(verb, resource, key)
        answer = await send()
        await self.after(verb, resource, key)
        return answer

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read."""
        answer = await self._through(
            "get", resource, key, lambda: self._inner.get(resource, key, subresource=subresource)
        )
        return cast("Object", answer)

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> Page:
        """Read many."""
        answer = await self._through(
            "list",
            selection.resource,
            Key(selection.namespace, ""),
            lambda: self._inner.list(selection, limit=limit, continue_=continue_, version=version, exact=exact),
        )
        return cast("Page", answer)

    async def watch(
        self, selection: Selection, *, version: str = "", initial_events: bool = False, timeout: float | None = None
    ) -> AsyncGenerator[Event, None]:
        """Watch, when the line is flowing."""
        stream = self._inner.watch(selection, version=version, initial_events=initial_events, timeout=timeout)
        async with aclosing(stream) as events:
            async for event in events:
                await self.flowing.wait()
                yield event

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
        """Create."""
        key = Key(namespace, name or body["metadata"]["name"])
        answer = await self._through(
            "create",
            resource,
            key,
            lambda: self._inner.create(resource, body, write, namespace=namespace, name=name, subresource=subresource),
        )
        return cast("Object", answer)

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
        """Patch."""
        answer = await self._through(
            "patch",
            resource,
            key,
            lambda: self._inner.patch(resource, key, patch, write, subresource=subresource, precondition=precondition),
        )
        return cast("Object", answer)

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
        """Delete."""
        await self._through(
            "delete",
            resource,
            key,
            lambda: self._inner.delete(
                resource, key, write, precondition=precondition, propagation=propagation, grace_seconds=grace_seconds
            ),
        )
