"""What a stranger may take from a server: bytes, time and places all have an end, and others are served meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from springtide.cluster import connections
from springtide.cluster.serving import Serving, serving

GET = b"GET / HTTP/1.1\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
TOO_MUCH = b"x" * 2_000_000


class Echo:
    """Answers with the number of bytes it was sent, and remembers who went away."""

    def __init__(self) -> None:
        self.gone = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone += 1
                return
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        if scope["path"] == "/wait":
            while (await receive())["type"] != "http.disconnect":
                pass
            self.gone += 1
            return
        body = str(size).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def served(story: Callable[[Serving, Echo], Awaitable[None]]) -> None:
    async def told() -> None:
        echo = Echo()
        async with serving(echo) as server:
            await story(server, echo)

    asyncio.run(asyncio.wait_for(told(), 30))


async def said(server: Serving, data: bytes, *, drip: bytes = b"") -> bytes:
    """Send something, then drip on, and give all that is answered until the server hangs up."""
    reader, writer = await asyncio.open_connection(server.host, server.port)

    async def dripping() -> None:
        while drip:
            writer.write(drip)
            await asyncio.sleep(0.02)

    task = asyncio.create_task(dripping())
    answer = b""
    try:
        writer.write(data)
        while part := await reader.read(65536):
            answer += part
    except ConnectionError:
        pass
    finally:
        task.cancel()
        writer.close()
    return answer


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET /" + TOO_MUCH, id="an address without end"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + TOO_MUCH, id="a header without end"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 300, id="headers without end"),
        pytest.param(POST + b"0\r\n" + b"X: y\r\n" * 300, id="trailers without end"),
        pytest.param(POST + b"0\r\nX: " + TOO_MUCH, id="a trailer without end"),
        pytest.param(POST + b"1;" + TOO_MUCH, id="an extension of a chunk without end"),
        pytest.param(GET * 100_000, id="requests sent ahead without end"),
    ],
)
def test_what_never_ends_is_cut_and_others_are_served(data: bytes) -> None:
    async def story(server: Serving, _: Echo) -> None:
        await said(server, data)
        assert (await said(server, LAST)).startswith(b"HTTP/1.1 200")

    served(story)


def test_a_long_body_is_no_long_head() -> None:
    async def story(server: Serving, _: Echo) -> None:
        head = b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        assert (await said(server, head % len(TOO_MUCH) + TOO_MUCH)).endswith(b"\r\n\r\n2000000")

    served(story)


def test_some_requests_may_be_sent_ahead_and_are_answered_in_order() -> None:
    async def story(server: Serving, _: Echo) -> None:
        posts = b"".join(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (n, b"x" * n) for n in range(9))
        answer = await said(server, posts + LAST)
        assert [part[-1:] for part in answer.split(b"HTTP/1.1 200 ")[1:]] == [*(b"%d" % n for n in range(9)), b"0"]

    served(story)


@pytest.mark.parametrize(
    ("data", "drip"),
    [
        pytest.param(b"", b"\r\n", id="empty lines"),
        pytest.param(b"GET / HTTP/1.1\r\nX: ", b"x", id="a header, byte by byte"),
        pytest.param(POST, b"1\r\nx\r\n", id="a body, byte by byte"),
        pytest.param(GET, b"\r\n", id="empty lines after a request"),
        pytest.param(GET + b"GET", b"", id="half a request after a whole one"),
    ],
)
def test_whoever_takes_too_long_is_hung_up_on(data: bytes, drip: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ARRIVAL_SECONDS", 0.2)

    async def story(server: Serving, _: Echo) -> None:
        async with asyncio.timeout(10):
            answer = await said(server, data, drip=drip)
        assert b"HTTP/1.1 408" in answer or data.startswith(POST)

    served(story)


def test_whoever_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.cluster.serving.IDLE_SECONDS", 0.2)

    async def story(server: Serving, _: Echo) -> None:
        assert await said(server, b"") == b""
        assert (await said(server, GET)).startswith(b"HTTP/1.1 200")

    served(story)


def test_there_are_so_many_places_and_one_that_is_left_is_given_away_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.cluster.serving.MOST_CONNECTIONS", 5)

    async def story(server: Serving, _: Echo) -> None:
        held = [await asyncio.open_connection(server.host, server.port) for _ in range(5)]
        assert await said(server, LAST) == b""
        for _reader, writer in held:
            writer.close()
            await writer.wait_closed()
        while not (await said(server, LAST)).startswith(b"HTTP/1.1 200"):
            await asyncio.sleep(0.01)

    served(story)


def test_who_leaves_with_requests_sent_ahead_is_missed_by_the_one_that_is_answered() -> None:
    async def story(server: Serving, echo: Echo) -> None:
        _, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(b"GET /wait HTTP/1.1\r\n\r\n" + GET)
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.close()
        while echo.gone != 1:
            await asyncio.sleep(0.01)

    served(story)
