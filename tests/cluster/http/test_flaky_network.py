"""A store and a writer behind a network that keeps breaking: both converge with the server, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import count
from random import Random

import pytest
from tests.cluster.http.scripted_server import HASTY

from springtide.apiserver.admission import ADMIN
from springtide.apiserver.http import ApiApp
from springtide.apiserver.server import ApiServer
from springtide.cluster.clock import Backoff, WallClock
from springtide.cluster.errors import TransportError
from springtide.cluster.http import ClusterAccess, HttpTransport, InlineContent, StaticCredentials
from springtide.cluster.reflector import Reflector, ReflectorSettings
from springtide.cluster.resources import Key, Object, Resource, Selection, key_of, version_of
from springtide.cluster.serving import serving
from springtide.cluster.store import Store
from springtide.cluster.transport import Write

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SETTINGS = ReflectorSettings(shortest_watch=1, longest_watch=1, retries=Backoff(0.001, 0.01), too_short=0.0)
WRITES = 100
"""How many objects are created at least; then more, until the answer of one was lost."""
MOST_WRITES = 2_000
HANGING = 120
"""Seconds after which a store that does not converge is given up; it needs less than one."""


@asynccontextmanager
async def cutting(port: int, seed: int) -> AsyncIterator[tuple[str, list[bool]]]:
    """Relay to a port; break every connection after some bytes of either direction, as long as the list says so."""
    pumps: set[asyncio.Task[None]] = set()
    breaking = [True]
    accepted = count()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Each direction has numbers of its own: in which order they are relayed depends on the load of the machine.
        number = next(accepted)
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        left = [Random(f"{seed}-{number}").choice((1, 200, 2_000, 20_000, 200_000))]

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, random: Random) -> None:
            try:
                with suppress(ConnectionError):
                    while data := await source.read(random.choice((100, 10_000))):
                        left[0] -= len(data)
                        if breaking[0] and left[0] < 0:
                            sink.write(data[: random.randrange(len(data))])
                            await sink.drain()
                            break
                        sink.write(data)
                        await sink.drain()
            finally:
                for end in (writer, inner_writer):
                    end.close()

        for name, source, sink in (("request", reader, inner_writer), ("answer", inner_reader, writer)):
            task = asyncio.create_task(pump(source, sink, Random(f"{seed}-{number}-{name}")))
            pumps.add(task)
            task.add_done_callback(pumps.discard)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", breaking
        for task in list(pumps):
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


@pytest.mark.parametrize("seed", range(3))
def test_store_and_writer_converge_with_the_server(seed: int) -> None:
    random = Random(seed)
    server = ApiServer(now=WallClock().now, random=Random(seed))
    acknowledged: dict[Key, int] = {}
    unsure: set[Key] = set()
    went_back: list[Key] = []

    async def write(transport: HttpTransport) -> None:
        for number in range(MOST_WRITES):
            if number >= WRITES and unsure:
                break
            key = Key("default", f"map-{number}")
            body: Object = {"metadata": {"name": key.name}, "data": {"text": "x" * random.randrange(3000)}}
            try:
                made = await transport.create(MAPS, body, Write("me"), namespace="default")
                acknowledged[key] = version_of(made)
            except TransportError:
                unsure.add(key)

    async def play() -> None:
        app = ApiApp(server, authenticate=lambda token: ADMIN)
        async with serving(app, dated=False) as served, cutting(served.port, seed) as (url, breaking):
            access = ClusterAccess(url, credentials=StaticCredentials(token=InlineContent(b"secret")))
            settings = replace(HASTY, retries=replace(HASTY.retries, attempts=3))
            async with HttpTransport(access, settings=settings, random=Random(seed)) as transport:
                store: Store[int] = Store(record=version_of)
                store.listen(
                    lambda delta: (
                        went_back.append(delta.key)
                        if delta.old is not None and delta.new is not None and delta.new < delta.old
                        else None
                    )
                )
                reflector = Reflector(
                    transport,
                    Selection(MAPS),
                    store,
                    clock=WallClock(),
                    random=Random(seed),
                    settings=SETTINGS,
                )
                running = asyncio.create_task(reflector.run())
                await write(transport)
                breaking[0] = False
                async with asyncio.timeout(HANGING):
                    await store.wait_synced()
                    await store.wait_for_version(server.revision)
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running
            app.close()
            present = {key_of(item): version_of(item) for item in server.list(Selection(MAPS)).items}
            assert dict(zip(store.keys(), store.values(), strict=True)) == present
            assert acknowledged.items() <= present.items()
            assert present.keys() <= acknowledged.keys() | unsure

    asyncio.run(play())

    assert went_back == []
    assert unsure, "the network never broke: this test shows nothing"
