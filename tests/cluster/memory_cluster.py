"""A small cluster in memory, and connections to it in which tests can intercept requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from random import Random
from typing import Any, TypeVar

from springtide.apis.crds import Flavour, all_crds
from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.server import ApiServer, CommittedWrite
from springtide.cluster.clock import Clock
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import ApiRequest, Patch, WatchEvent, WrappingTransport, Write

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
EVENTS = Resource("", "v1", "events", "Event")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
USER = Write("user")
START = 1_767_571_200  # 2026-01-05T00:00:00Z

T = TypeVar("T")
Interceptor = Callable[[str, Resource, Key], Awaitable[None]]
"""Called with the verb, the resource and the key of a request; it may wait or raise."""


async def do_nothing(verb: str, resource: Resource, key: Key) -> None:
    """Do nothing."""


class MemoryCluster:
    """A server with two namespaces, and a list of every write that took effect."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.server = ApiServer(now=clock.now, random=Random(1))
        for namespace in ("work", "springtide-system"):
            self.server.create(NAMESPACES, {"metadata": {"name": namespace}}, USER)
        self.writes: list[CommittedWrite] = []
        self.server.observers.append(self.writes.append)

    def line(self) -> Line:
        """Open a connection."""
        return Line(DirectTransport(self.server))

    def install_calendars(self) -> None:
        """Install the CRD of Calendars."""
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
        """List the field manager, verb and object of writes, without users and some kinds."""
        return [
            (one.write.manager, one.verb, f"{one.resource.kind} {one.key}")
            for one in self.writes
            if one.write.manager != "user" and one.resource.kind not in ignoring
        ]

    def events(self) -> list[Object]:
        """List the events that were written, sorted by object."""
        items = self.server.list(Selection(EVENTS)).items
        return sorted(items, key=lambda item: (item["involvedObject"]["name"], item["reason"], item["message"]))


class Line(WrappingTransport):
    """A transport that lets tests act just before a request leaves and just after it took effect."""

    def __init__(self, inner: DirectTransport) -> None:
        super().__init__(inner)
        self._direct = inner
        self.before: Interceptor = do_nothing
        self.after: Interceptor = do_nothing
        self.asked: list[str] = []
        """Verbs and resources of all requests without watches."""
        self.flowing = asyncio.Event()
        """Whether watches deliver."""
        self.flowing.set()

    def cut(self) -> None:
        """Break the connection: nothing more takes effect."""
        self._direct.cut()

    async def intercept(self, request: ApiRequest, send: Callable[[], Awaitable[T]]) -> T:
        self.asked.append(f"{request.verb} {request.resource}")
        name = request.key.name or (request.body["metadata"]["name"] if request.body else "")
        key = Key(request.key.namespace, name)
        await self.before(request.verb, request.resource, key)
        answer = await send()
        await self.after(request.verb, request.resource, key)
        return answer

    async def intercept_watch(
        self, request: ApiRequest, events: AsyncGenerator[WatchEvent, None]
    ) -> AsyncGenerator[WatchEvent, None]:
        """Deliver events while `flowing` is set."""
        async with aclosing(events) as stream:
            async for event in stream:
                await self.flowing.wait()
                yield event
