"""The direct transport: when calls take effect, how streams end, and lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from tests.apiserver.objects import CONFIG_MAPS, PODS, START, WRITE, config_map, key, make_server, pod

from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.server import ApiServer, CommittedWrite
from springtide.cluster.errors import ClusterError, ConnectionLost, Gone, NotFound, NotLeader
from springtide.cluster.resources import Selection
from springtide.cluster.transport import INITIAL_EVENTS_END, Patch, WatchEvent, WatchEventType, Write
from springtide.simulator.virtual_time import VirtualClock, run

_ALL = Selection(CONFIG_MAPS)


def _played(story: Callable[[ApiServer, DirectTransport, VirtualClock], Coroutine[Any, Any, None]]) -> None:
    async def main(clock: VirtualClock) -> None:
        server = make_server(now=clock.now)
        await story(server, DirectTransport(server, bookmark_seconds=60), clock)

    run(main, start=START)


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""


class _View(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str]


async def _collect(transport: DirectTransport, into: list[WatchEvent], **ask: Any) -> None:
    async with aclosing(transport.watch(**ask)) as stream:
        async for event in stream:
            into += [event]


def test_a_call_takes_effect_after_yielding_once() -> None:
    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        before = server.revision
        call = asyncio.ensure_future(transport.create(CONFIG_MAPS, config_map(), WRITE, namespace="default"))
        await asyncio.sleep(0)
        assert server.revision == before
        await call
        assert server.revision == before + 1

    _played(story)


def test_a_refused_permit_has_no_effect() -> None:
    def no() -> None:
        raise NotLeader("not any more")

    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
        before = server.revision
        write = Write("old leader", permit=no)
        for call in (
            transport.create(CONFIG_MAPS, config_map("b"), write, namespace="default"),
            transport.patch(CONFIG_MAPS, key("a"), Patch.merge({"data": None}), write),
            transport.delete(CONFIG_MAPS, key("a"), write),
        ):
            with pytest.raises(NotLeader):
                await call
        assert server.revision == before

    _played(story)


def test_permit_is_called_right_before_the_effect() -> None:
    """No other task runs between the permission and the write."""
    seen: list[int] = []

    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        other = asyncio.ensure_future(transport.create(CONFIG_MAPS, config_map("other"), WRITE, namespace="default"))
        write = Write("leader", permit=lambda: seen.append(server.revision))
        made = await transport.create(CONFIG_MAPS, config_map(), write, namespace="default")
        await other
        assert seen == [int(made["metadata"]["resourceVersion"]) - 1]

    _played(story)


def test_views_are_decoded() -> None:
    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        made = server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
        selection = Selection(CONFIG_MAPS, view=_View)
        (item,) = (await transport.list(selection)).items
        events: list[WatchEvent] = []
        await _collect(transport, events, selection=selection, initial_events=True, timeout=1)
        for view in (item, events[0].object):
            assert isinstance(view, _View)
            assert (view.metadata.uid, view.data) == (made["metadata"]["uid"], {"k": "v"})
        assert INITIAL_EVENTS_END in events[1].object["metadata"]["annotations"]

    _played(story)


def test_a_stream_ends_at_its_timeout() -> None:
    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        events: list[WatchEvent] = []
        task = asyncio.ensure_future(_collect(transport, events, selection=_ALL, version="0", timeout=30))
        await clock.sleep(29)
        server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
        await clock.sleep(0.5)
        assert not task.done()
        await task
        assert clock.now() == START + 30
        assert [event.change for event in events] == [WatchEventType.ADDED]

    _played(story)


def test_bookmarks_follow_other_changes_without_idle_timers() -> None:
    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        events: list[WatchEvent] = []
        task = asyncio.ensure_future(_collect(transport, events, selection=_ALL, version="0"))
        await clock.sleep(3600)
        assert events == []
        server.create(PODS, pod(), WRITE, namespace="default")
        await clock.sleep(59)
        assert events == []
        await clock.sleep(2)
        assert [event.object["metadata"]["resourceVersion"] for event in events] == [str(server.revision)]
        await clock.sleep(3600)
        assert len(events) == 1
        task.cancel()

    _played(story)


def test_a_compacted_version_raises_from_the_stream() -> None:
    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
        server.compact()
        with pytest.raises(Gone):
            await _collect(transport, [], selection=_ALL, version="1")

    _played(story)


def test_a_cut_connection_has_no_further_effect() -> None:
    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        events: list[WatchEvent] = []
        stream = asyncio.ensure_future(_collect(transport, events, selection=_ALL, version="0"))
        await clock.sleep(1)
        under_way = asyncio.ensure_future(
            transport.create(CONFIG_MAPS, config_map("never"), WRITE, namespace="default")
        )
        await asyncio.sleep(0)
        transport.cut()
        transport.cut()
        before = server.revision
        calls: list[Coroutine[Any, Any, Any]] = [
            transport.get(CONFIG_MAPS, key("a")),
            transport.list(_ALL),
            transport.create(CONFIG_MAPS, config_map(), WRITE, namespace="default"),
            transport.patch(CONFIG_MAPS, key("a"), Patch.merge({}), WRITE),
            transport.delete(CONFIG_MAPS, key("a"), WRITE),
            _collect(transport, [], selection=_ALL),
        ]
        for call in (under_way, stream, *calls):
            with pytest.raises(ConnectionLost):
                await call
        assert server.revision == before
        assert server.observers == []

    _played(story)


def test_queued_events_are_lost_with_the_connection() -> None:
    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        events: list[WatchEvent] = []
        stream = asyncio.ensure_future(_collect(transport, events, selection=_ALL, version="0"))
        await clock.sleep(1)
        server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
        transport.cut()
        with pytest.raises(ConnectionLost):
            await stream
        assert events == []

    _played(story)


def test_a_closed_stream_removes_its_subscription() -> None:
    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        task = asyncio.ensure_future(_collect(transport, [], selection=_ALL, version="0", timeout=3600))
        await clock.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert all(not collection.subscriptions for _, collection in server.storage.collections())

    _played(story)


def test_errors_are_cluster_errors() -> None:
    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        with pytest.raises(ClusterError) as caught:
            await transport.get(CONFIG_MAPS, key("a"))
        assert type(caught.value) is NotFound

    _played(story)


def test_observers_are_called_for_each_committed_write() -> None:
    async def story(server: ApiServer, transport: DirectTransport, clock: VirtualClock) -> None:
        heard: list[CommittedWrite] = []
        server.observers.append(heard.append)
        write = Write("writer", because="test")
        await transport.create(CONFIG_MAPS, config_map(), write, namespace="default")
        await transport.patch(CONFIG_MAPS, key("a"), Patch.merge({"data": {"k": "w"}}), write)
        await transport.patch(CONFIG_MAPS, key("a"), Patch.merge({"data": {"k": "w"}}), write)
        await transport.delete(CONFIG_MAPS, key("a"), write)
        with pytest.raises(NotFound):
            await transport.delete(CONFIG_MAPS, key("a"), write)
        assert [each.verb for each in heard] == ["create", "patch", "delete"]
        first = heard[0].revision
        assert [each.revision for each in heard] == [first, first + 1, first + 2]
        assert [each.old for each in heard] == [None, heard[0].new, heard[1].new]
        assert heard[2].new is None
        assert all((each.at, each.write, each.key) == (START, write, key("a")) for each in heard)
        server.create(PODS, pod(), write, namespace="default")
        server.patch(PODS, key("p"), Patch.merge({"status": {"phase": "Running"}}), write, subresource="status")
        assert heard[-1].verb == "patch/status"

    _played(story)
