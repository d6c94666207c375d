"""Reflectors against the API server in memory: every store is a state that the server had."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest

from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import Gone, Invalid
from springtide.cluster.reflector import Reflector, ReflectorSettings
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.store import Delta, Store
from springtide.cluster.transport import Patch, Write
from springtide.simulator.virtual_time import VirtualClock, run

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
BLUE = "color=blue"
SETTINGS = ReflectorSettings(page_size=3, shortest_watch=20, longest_watch=40)


class WithoutWatchList(DirectTransport):
    """A connection to a server that is older than WatchList."""

    async def watch(self, selection: Selection, *, initial_events: bool = False, **options: Any) -> Any:
        """Refuse initial events."""
        if initial_events:
            raise Invalid("sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch")
        async for event in super().watch(selection, **options):
            yield event


class Watched:
    """A server, what it held at every version, and one store of all nodes and one of the blue ones."""

    def __init__(self, clock: VirtualClock, seed: int, transport: type[DirectTransport]) -> None:
        self.random = Random(seed)
        self.server = ApiServer(now=clock.now, random=Random(seed))
        self.history: list[dict[str, Object]] = [{}]
        self.server.observers.append(lambda written: self._remember())
        self.transport = transport(self.server, bookmark_seconds=10)
        self.stores: list[Store[Object]] = []
        self.odd: list[Delta[Object]] = []
        """Changes after which a store was not what the server had been; a listener's own failure would be hidden."""
        self.reflectors: list[Reflector] = []
        for number, labels in enumerate(("", BLUE)):
            store: Store[Object] = Store(indexes={"color": lambda node: (color(node),)})
            store.listen(partial(self._note, store, labels))
            self.stores.append(store)
            self.reflectors.append(
                Reflector(
                    self.transport,
                    Selection(NODES, labels=labels),
                    store,
                    clock=clock,
                    random=Random(seed + number),
                    settings=SETTINGS,
                )
            )

    def _remember(self) -> None:
        present = {item["metadata"]["name"]: item for item in self.server.list(Selection(NODES)).items}
        self.history.extend([present] * (self.server.revision + 1 - len(self.history)))

    def _note(self, store: Store[Object], labels: str, delta: Delta[Object]) -> None:
        if contents(store) != self.expected(store, labels):
            self.odd.append(delta)

    def expected(self, store: Store[Object], labels: str) -> dict[str, Object]:
        """Return what the server held at the version of a store."""
        return {name: node for name, node in self.history[store.version].items() if not labels or color(node) == "blue"}

    def check_all(self) -> None:
        """Compare every store with the server as it was at the store's version."""
        for store, labels in zip(self.stores, ("", BLUE), strict=True):
            assert contents(store) == self.expected(store, labels)
        assert self.odd == []

    def write(self) -> None:
        """Create, change or delete a node."""
        name, write = f"node-{self.random.randrange(8)}", Write("test")
        labels = {"color": self.random.choice(["blue", "red"])}
        metadata = {"name": name, "labels": labels}
        if name not in self.history[-1]:
            self.server.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata}, write)
        elif self.random.random() < 0.4:
            self.server.delete(NODES, Key("", name), write)
        else:
            self.server.patch(NODES, Key("", name), Patch.merge({"metadata": {"labels": labels}}), write)


def contents(store: Store[Object]) -> dict[str, Object]:
    return {key.name: node for key, node in zip(store.keys(), store.values(), strict=True)}


def color(node: Object) -> str:
    value: str = node["metadata"]["labels"]["color"]
    return value


def with_reflectors(
    story: Callable[[Watched, VirtualClock], Awaitable[None]],
    *,
    seed: int = 0,
    transport: type[DirectTransport] = DirectTransport,
) -> None:
    """Tell a story while the reflectors run."""

    async def main(clock: VirtualClock) -> None:
        watched = Watched(clock, seed, transport)
        running = [asyncio.create_task(reflector.run()) for reflector in watched.reflectors]
        await story(watched, clock)
        for task in running:
            assert not task.done()
            task.cancel()

    run(main)


@pytest.mark.parametrize("transport", [DirectTransport, WithoutWatchList])
@pytest.mark.parametrize("seed", range(6))
def test_stores_follow_through_closed_streams_and_compaction(seed: int, transport: type[DirectTransport]) -> None:
    async def story(watched: Watched, clock: VirtualClock) -> None:
        random = watched.random
        versions = [0, 0]
        for _ in range(300):
            for _ in range(random.randrange(4)):
                watched.write()
            if random.random() < 0.2:
                for _, collection in watched.server.storage.collections():
                    for subscription in list(collection.subscriptions):
                        subscription.end()
                for _ in range(random.randrange(4)):
                    watched.write()
            if random.random() < 0.2:
                watched.server.compact()
            await clock.sleep(random.choice([0, 0, 0.5, 3, 30]))
            watched.check_all()
            now = [store.version for store in watched.stores]
            assert all(after >= before for after, before in zip(now, versions, strict=True))
            versions = now
        await clock.sleep(120)
        watched.check_all()

        assert [store.version for store in watched.stores] == [watched.server.revision] * 2
        assert sum(reflector.relists for reflector in watched.reflectors) > 3

    with_reflectors(story, seed=seed, transport=transport)


def test_bookmarks_advance_a_store_past_other_writes() -> None:
    """A barrier ends although nothing of the selection has changed."""

    async def story(watched: Watched, clock: VirtualClock) -> None:
        await watched.stores[1].wait_synced()
        body: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "red", "labels": {"color": "red"}}}
        created = await watched.transport.create(NODES, body, Write("test"))
        await watched.stores[1].wait_for_version(int(created["metadata"]["resourceVersion"]))

        assert clock.monotonic() == 10
        assert len(watched.stores[1]) == 0

    with_reflectors(story)


class Metadata(msgspec.Struct, rename="camel"):
    """The metadata that every view must have."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class View(msgspec.Struct):
    """A node of which nothing but the metadata is read."""

    metadata: Metadata


@pytest.mark.parametrize("transport", [DirectTransport, WithoutWatchList])
def test_views_and_whole_objects_give_the_same_records(transport: type[DirectTransport]) -> None:
    async def main(clock: VirtualClock) -> None:
        watched = Watched(clock, 1, transport)
        watched.write()
        store: Store[View] = Store()
        selection = Selection(NODES, view=View)
        reflector = Reflector(watched.transport, selection, store, clock=clock, random=Random(0))
        running = asyncio.create_task(reflector.run())
        await store.wait_synced()
        for _ in range(20):
            watched.write()
        await clock.sleep(1)

        assert {view.metadata.name for view in store.values()} == set(watched.history[-1])
        assert store.version == watched.server.revision
        running.cancel()

    run(main)


def test_the_server_ends_a_stream_with_gone() -> None:
    """The reflectors above recover from what this server really answers."""

    async def main(clock: VirtualClock) -> None:
        watched = Watched(clock, 1, DirectTransport)
        for _ in range(5):
            watched.write()
        watched.server.compact()
        stream = watched.transport.watch(Selection(NODES), version="1")
        with pytest.raises(Gone):
            await anext(stream)

    run(main)


class Sized(msgspec.Struct):
    """A view that demands more of a node than the API does."""

    metadata: Any
    size: int


def test_an_object_that_does_not_fit_the_view_is_left_out() -> None:
    """The others are decoded one by one then; when it is repaired, it appears."""

    async def main(clock: VirtualClock) -> None:
        server = ApiServer(now=clock.now, random=Random(1))
        for name, size in (("good", 1), ("bad", "large")):
            body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "size": size}
            server.create(NODES, body, Write("test"))
        store: Store[int] = Store(lambda node: node.size)
        selection = Selection(NODES, view=Sized)
        reflector = Reflector(DirectTransport(server), selection, store, clock=clock, random=Random(1))
        running = asyncio.create_task(reflector.run())
        await clock.sleep(5)
        assert (store.keys(), list(store.unreadable)) == ([Key("", "good")], [Key("", "bad")])

        server.patch(NODES, Key("", "bad"), Patch.merge({"size": 2}), Write("test"))
        await clock.sleep(5)
        assert (store.values(), store.unreadable) == ([2, 1], {})
        assert not running.done()
        running.cancel()

    run(main)
