"""The transport against the embedded API server over HTTPS, through a real socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from springtide.apis.core.nodes import Node
from springtide.apiserver.admission import ADMIN
from springtide.apiserver.http import ApiApp, kubeconfig
from springtide.apiserver.server import ApiServer
from springtide.cluster.certificates import make_authority, make_serving
from springtide.cluster.clock import WallClock
from springtide.cluster.errors import AlreadyExists, Conflict, Gone, Invalid, NotFound, Unauthorized
from springtide.cluster.http import (
    ClusterAccess,
    HttpTransport,
    InlineContent,
    ServerTrust,
    StaticCredentials,
    load_kubeconfig,
)
from springtide.cluster.http.discovery import discover
from springtide.cluster.reflector import Reflector, ReflectorSettings
from springtide.cluster.resources import Key, Resource, Selection, key_of
from springtide.cluster.serving import TlsIdentity, serving
from springtide.cluster.store import Store
from springtide.cluster.transport import Patch, Precondition, Write

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
WRITE = Write("me")
TOKEN = "secret"


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[tuple[ApiServer, HttpTransport]]:
    """Serve an API server, and connect to it as its kubeconfig says."""
    now = int(time.time())
    authority = make_authority("test", now=now, seconds=3600)
    identity = TlsIdentity(make_serving(authority, ["127.0.0.1"], now=now, seconds=3600))
    server = ApiServer(now=WallClock().now, random=Random(1))
    app = ApiApp(server, authenticate=lambda token: ADMIN if token == TOKEN else None)
    async with serving(app, identity=identity, dated=False) as served:
        path = folder / "config"
        path.write_text(kubeconfig(served.url, authority.certificate, TOKEN))
        async with HttpTransport(load_kubeconfig(path, environment={}), random=Random(1)) as transport:
            try:
                yield server, transport
            finally:
                app.close()


def play(folder: Path, scenario: Callable[[ApiServer, HttpTransport], Awaitable[None]]) -> None:
    async def run() -> None:
        async with embedded(folder) as (server, transport):
            await scenario(server, transport)

    asyncio.run(run())


def test_objects_are_created_changed_and_deleted(tmp_path: Path) -> None:
    async def scenario(server: ApiServer, transport: HttpTransport) -> None:
        made = await transport.create(NODES, node("a"), WRITE)
        with pytest.raises(AlreadyExists, match='nodes "a" already exists'):
            await transport.create(NODES, node("a"), WRITE)
        exact = Precondition(made["metadata"]["resourceVersion"], made["metadata"]["uid"])
        patch = Patch.merge({"metadata": {"labels": {"x": "y"}}})
        changed = await transport.patch(NODES, Key("", "a"), patch, WRITE, precondition=exact)
        assert changed == server.get(NODES, Key("", "a"))
        for stale in (patch, Patch.json({"op": "remove", "path": "/metadata/labels"})):
            with pytest.raises(Conflict):
                await transport.patch(NODES, Key("", "a"), stale, WRITE, precondition=exact)
        with pytest.raises(Conflict):
            await transport.delete(NODES, Key("", "a"), WRITE, precondition=exact)
        with pytest.raises(Invalid) as caught:
            await transport.create(NODES, node("b", x="not a label!"), WRITE)
        assert [cause.field for cause in caught.value.causes] == ["metadata.labels"]
        await transport.delete(NODES, Key("", "a"), WRITE)
        with pytest.raises(NotFound, match='nodes "a" not found'):
            await transport.get(NODES, Key("", "a"))

    play(tmp_path, scenario)


@pytest.mark.parametrize("view", [pytest.param(dict, id="whole objects"), pytest.param(Node, id="a view")])
def test_a_store_follows_the_server(tmp_path: Path, view: type[Any]) -> None:
    async def scenario(server: ApiServer, transport: HttpTransport) -> None:
        for number in range(50):
            server.create(NODES, node(f"n{number}"), WRITE)
        store: Store[Any] = Store(record=lambda item: type(item))
        reflector = Reflector(
            transport,
            Selection(NODES, view=view),
            store,
            clock=WallClock(),
            random=Random(1),
            settings=ReflectorSettings(shortest_watch=1, longest_watch=1),
        )
        running = asyncio.create_task(reflector.run())
        for number in range(200):
            if number % 3:
                server.create(NODES, node(f"later-{number}"), WRITE)
            elif number < 50:
                server.delete(NODES, Key("", f"n{number}"), WRITE)
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            while store.version < server.revision:
                await asyncio.sleep(0.01)
        assert set(store.keys()) == {key_of(item) for item in server.list(Selection(NODES)).items}
        assert set(store.values()) == {view}
        assert reflector.relists == 0
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    play(tmp_path, scenario)


def test_pages_show_one_version(tmp_path: Path) -> None:
    async def scenario(server: ApiServer, transport: HttpTransport) -> None:
        for number in range(7):
            server.create(NODES, node(f"n{number}"), WRITE)
        page = await transport.list(Selection(NODES, view=Node), limit=3)
        server.create(NODES, node("n9"), WRITE)
        names, versions = [], set()
        while True:
            names += [item.metadata.name for item in page.items]
            versions.add(page.version)
            if not page.continue_:
                break
            page = await transport.list(Selection(NODES, view=Node), limit=3, continue_=page.continue_)
        assert names == [f"n{number}" for number in range(7)]
        assert len(versions) == 1

    play(tmp_path, scenario)


def test_discovery_finds_the_kinds(tmp_path: Path) -> None:
    async def scenario(server: ApiServer, transport: HttpTransport) -> None:
        found = await discover(transport)
        assert found.named("no") == NODES
        assert found.resource_of("apps/v1", "Deployment") == Resource("apps", "v1", "deployments", "Deployment")

    play(tmp_path, scenario)


def test_a_wrong_token_is_rejected(tmp_path: Path) -> None:
    async def scenario(server: ApiServer, transport: HttpTransport) -> None:
        wrong = ClusterAccess(
            transport.access.server,
            trust=ServerTrust(insecure=True),
            credentials=StaticCredentials(token=InlineContent(b"wrong")),
        )
        async with HttpTransport(wrong, random=Random(1)) as other:
            with pytest.raises(Unauthorized):
                await other.get(NODES, Key("", "a"))

    play(tmp_path, scenario)


def test_a_version_that_is_compacted_is_gone(tmp_path: Path) -> None:
    async def scenario(server: ApiServer, transport: HttpTransport) -> None:
        server.create(NODES, node("a"), WRITE)
        server.compact(server.revision)
        server.create(NODES, node("b"), WRITE)
        with pytest.raises(Gone):
            async for _ in transport.watch(Selection(NODES), version="1"):
                pass

    play(tmp_path, scenario)
