"""Watches: streams in chunks of any size, streams that break, time out, or never end."""

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.http.scripted_server import (
    HASTY,
    PODS,
    Asked,
    Step,
    connected,
    cuts,
    hangs,
    line,
    playing,
    pod,
    raw,
    refuses,
    status,
    streams,
)

from springtide.cluster.errors import BadRequest, ClusterError, ConnectionLost, Gone, Invalid, ServerError, Unauthorized
from springtide.cluster.http import ClusterAccess, HttpSettings, StaticCredentials
from springtide.cluster.http.credentials import Authentication, ChangingFile
from springtide.cluster.http.rest_client import HttpRequest, RestClient
from springtide.cluster.http.transport import LineSplitter, WatchDeadline
from springtide.cluster.resources import Selection
from springtide.cluster.transport import WatchEvent, WatchEventType


class Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str
    namespace: str = ""
    uid: str = ""


class View(msgspec.Struct):
    metadata: Metadata


EVERYTHING = [
    line("ADDED", pod("a", 1)),
    line("MODIFIED", pod("a", 2) | {"spec": {"text": "ü\\n" * 5000}}),
    line("DELETED", pod("a", 3)),
    line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "4"}}),
]


async def watched(
    *steps: Step, view: type[Any] = dict, settings: HttpSettings = HASTY, **options: Any
) -> tuple[list[WatchEvent], Exception | None]:
    """Watch to the end, and return the events and the error."""
    access = {name: options.pop(name) for name in ("credentials",) if name in options}
    events: list[WatchEvent] = []
    async with playing(*steps) as server, connected(server, settings=settings, **access) as transport:
        try:
            async for event in transport.watch(Selection(PODS, view=view), version="1", **options):
                events.append(event)  # noqa: PERF401 - those before a failure count
        except (ClusterError, msgspec.ValidationError) as error:
            return events, error
    return events, None


def received(events: list[WatchEvent]) -> list[tuple[WatchEventType, str]]:
    return [
        (event.change, event.object["metadata"]["resourceVersion"])
        if isinstance(event.object, dict)
        else (event.change, event.object.metadata.resource_version)
        for event in events
    ]


@pytest.mark.parametrize("view", [pytest.param(dict, id="whole objects"), pytest.param(View, id="a view")])
@pytest.mark.parametrize("size", [1000, 4096, 10**6])
def test_all_events_come_in_order_however_they_are_cut(view: type[Any], size: int) -> None:
    text = b"".join(EVERYTHING)
    chunks = [text[at : at + size] for at in range(0, len(text), size)]

    events, error = asyncio.run(watched(streams(*chunks), view=view))

    assert error is None
    assert received(events) == [
        (WatchEventType.ADDED, "1"),
        (WatchEventType.MODIFIED, "2"),
        (WatchEventType.DELETED, "3"),
        (WatchEventType.BOOKMARK, "4"),
    ]
    assert [type(event.object) for event in events] == [view, view, view, dict]


@given(st.lists(st.binary(max_size=6).map(lambda piece: piece.replace(b"\r", b"\n")), max_size=12))
def test_runs_of_lines_are_the_stream_up_to_its_last_line(chunks: list[bytes]) -> None:
    cutter = LineSplitter(1000)
    whole, given_so_far = b"", b""
    for chunk in chunks:
        whole += chunk
        given_so_far += cutter.feed(chunk)

        assert given_so_far == whole[: whole.rfind(b"\n") + 1]


def test_a_line_that_grows_too_long_is_refused_before_its_end_comes() -> None:
    cutter = LineSplitter(10)
    cutter.feed(b"x" * 10)

    with pytest.raises(ServerError, match="larger than 10 bytes"):
        cutter.feed(b"x")


def test_the_size_of_a_line_is_counted_from_its_beginning() -> None:
    cutter = LineSplitter(10)

    for _ in range(9):
        assert cutter.feed(b"c\nab").endswith(b"c\n")
        assert cutter.feed(b"") == b""


@pytest.mark.parametrize(
    ("ending", "error"),
    [
        pytest.param(streams(EVERYTHING[0], then=cuts), ConnectionLost, id="cut"),
        pytest.param(streams(EVERYTHING[0] + b'{"type": "ADD', then=cuts), ConnectionLost, id="cut within a line"),
        pytest.param(streams(EVERYTHING[0] + b'{"type": "ADD'), ConnectionLost, id="ended within a line"),
        pytest.param(streams(EVERYTHING[0] + b"<html>\n"), ConnectionLost, id="garbage"),
        pytest.param(streams(EVERYTHING[0] + b'{"type": 7}\n'), ConnectionLost, id="not an event"),
        pytest.param(streams(EVERYTHING[0] + line("NEWS", {})), ConnectionLost, id="an unknown type"),
        pytest.param(streams(EVERYTHING[0] + line("ADDED", [])), ConnectionLost, id="not an object"),
        pytest.param(streams(EVERYTHING[0] + line("ERROR", status(410, "Expired"))), Gone, id="410"),
        pytest.param(streams(EVERYTHING[0] + line("ERROR", status(500, "InternalError"))), ServerError, id="500"),
        pytest.param(streams(EVERYTHING[0] + b"x" * 200_000), ServerError, id="an event that is too large"),
    ],
)
def test_events_before_a_failure_are_delivered(ending: Step, error: type[ClusterError]) -> None:
    events, raised = asyncio.run(watched(ending))

    assert received(events) == [(WatchEventType.ADDED, "1")]
    assert type(raised) is error


def test_empty_lines_mean_nothing() -> None:
    events, raised = asyncio.run(watched(streams(b"\n", b"\r\n \n" + EVERYTHING[0], b"\n\n")))

    assert (received(events), raised) == ([(WatchEventType.ADDED, "1")], None)


def test_events_before_an_object_that_does_not_fit_the_view_are_delivered() -> None:
    chunk = b"".join((EVERYTHING[0], line("ADDED", {"metadata": {"name": 7}}), EVERYTHING[2]))

    events, raised = asyncio.run(watched(streams(chunk), view=View))

    assert received(events) == [(WatchEventType.ADDED, "1")]
    assert isinstance(raised, msgspec.ValidationError)


@pytest.mark.parametrize(
    ("step", "error"),
    [
        pytest.param(refuses(410, "Expired"), Gone, id="410"),
        pytest.param(refuses(422, "Invalid"), Invalid, id="no WatchList"),
        pytest.param(refuses(400, "BadRequest"), BadRequest, id="a bad selector"),
        pytest.param(refuses(401, "Unauthorized"), Unauthorized, id="401"),
        pytest.param(refuses(503, "ServiceUnavailable"), ServerError, id="503"),
    ],
)
def test_a_watch_that_is_refused_is_not_tried_again(step: Step, error: type[ClusterError]) -> None:
    events, raised = asyncio.run(watched(step, streams(*EVERYTHING)))

    assert events == []
    assert type(raised) is error


def test_a_stream_without_data_ends() -> None:
    """It is no failure: some servers send no bookmarks for a kind that never changes."""
    settings = replace(HASTY, watch_read_timeout=0.05)

    events, raised = asyncio.run(watched(streams(EVERYTHING[0], then=hangs), settings=settings))

    assert (received(events), raised) == ([(WatchEventType.ADDED, "1")], None)


def test_a_watch_that_is_not_answered_is_lost() -> None:
    events, raised = asyncio.run(watched(hangs, settings=replace(HASTY, watch_read_timeout=0.05)))

    assert events == []
    assert isinstance(raised, ConnectionLost)
    assert "no data for 0.05 seconds" in str(raised)


def test_a_watch_that_the_server_does_not_end_is_ended() -> None:
    """It is no failure: the watch has lasted as long as requested."""

    async def play() -> tuple[list[WatchEvent], Exception | None]:
        async with asyncio.timeout(20):
            settings = replace(HASTY, watch_read_timeout=50)
            return await watched(streams(EVERYTHING[0], then=hangs), settings=settings, timeout=0.01)

    events, raised = asyncio.run(play())

    assert (received(events), raised) == ([(WatchEventType.ADDED, "1")], None)


def test_a_watch_that_ends_cancels_its_deadline() -> None:
    """Otherwise the timer would keep its objects alive for minutes."""

    async def play() -> list[str]:
        ended: list[str] = []
        kept, forgotten = (
            WatchDeadline(0.001, lambda: ended.append("kept")),
            WatchDeadline(0.0, lambda: ended.append("gone")),
        )
        forgotten.cancel()
        while not kept.passed:
            await asyncio.sleep(0.001)
        return ended

    assert asyncio.run(play()) == ["kept"]


def test_a_watch_that_is_closed_cancels_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: list[bool] = []
    monkeypatch.setattr(WatchDeadline, "cancel", lambda end: cancelled.append(end.passed))

    asyncio.run(watched(streams(*EVERYTHING), timeout=0.01))

    assert cancelled == [False]


def test_a_token_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    seen: list[str] = []

    async def rejects(asked: Asked, writer: asyncio.StreamWriter) -> None:
        seen.append(asked.headers["authorization"])
        path.write_text("newer")
        writer.write(raw(401, b"{}"))

    async def accepts(asked: Asked, writer: asyncio.StreamWriter) -> None:
        seen.append(asked.headers["authorization"])
        await streams(*EVERYTHING)(asked, writer)

    events, raised = asyncio.run(watched(rejects, accepts, credentials=StaticCredentials(token=ChangingFile(path))))

    assert (len(events), raised, seen) == (4, None, ["Bearer old", "Bearer newer"])


def test_closing_the_stream_closes_the_connection() -> None:
    async def play() -> bool:
        closed = asyncio.Event()

        async def waits(asked: Asked, writer: asyncio.StreamWriter) -> None:
            while not writer.transport.is_closing():
                writer.write(b"1\r\n\n\r\n")
                await asyncio.sleep(0.005)
            closed.set()
            raise ConnectionResetError

        async with playing(streams(EVERYTHING[0], then=waits)) as server, connected(server) as transport:
            async with aclosing(transport.watch(Selection(PODS))) as events:
                async for _ in events:
                    break
            await asyncio.wait_for(closed.wait(), 2)
        return closed.is_set()

    assert asyncio.run(play())


def test_many_watches_leave_room_for_requests() -> None:
    """More watches than the pool has connections for requests."""

    async def play() -> int:
        begun = 0

        async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
            if "watch" not in asked.query:
                writer.write(raw(200, b'{"items": [], "metadata": {}}'))
                return
            await streams(EVERYTHING[0], then=hangs)(asked, writer)

        async def follow() -> None:
            nonlocal begun
            async for _ in transport.watch(Selection(PODS)):
                begun += 1

        settings = replace(HASTY, connections=2)
        async with playing(answer) as server, connected(server, settings=settings) as transport:
            following = [asyncio.create_task(follow()) for _ in range(8)]
            while begun < len(following):
                await asyncio.sleep(0.001)
            await asyncio.gather(*(transport.list(Selection(PODS)) for _ in range(8)))
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
        return begun

    assert asyncio.run(play()) == 8


def test_tcp_keep_alive_is_on() -> None:
    """A machine that lost its power sends nothing, and a watch would notice only after its read timeout."""

    async def play() -> int:
        async with playing(streams(EVERYTHING[0], then=hangs)) as server:
            wire = RestClient(ClusterAccess(server.url), HASTY)
            async with wire.stream(HttpRequest("GET", "/", {}), Authentication()) as answer:
                assert answer.connection is not None
                assert answer.connection.transport is not None
                connection = answer.connection.transport.get_extra_info("socket")
                asks = connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            await wire.close()
        return int(asks)

    assert asyncio.run(play()) == 1
