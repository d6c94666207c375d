"""Serving an application: coalesced writes, limits for clients, TLS, and an orderly end."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from springtide.cluster.certificates import make_authority, make_serving
from springtide.cluster.serving import CoalescedWrites, RunningServer, ServingFailed, TlsIdentity, serving

END = b"(closed)"


class Line(asyncio.Transport):
    """Records what is sent, and the close."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.sent.append(END)
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def done(answer: CoalescedWrites, *parts: bytes) -> None:
    """Write the parts of an answer, and close the connection where the end is among them."""
    for part in parts:
        if part == END:
            answer.close()
        else:
            answer.write(part)


@pytest.mark.parametrize(
    ("turns", "sent"),
    [
        pytest.param([[b"head ", b"body"]], [b"head body"], id="head-and-body"),
        pytest.param([[b"head ", b""]], [b"head "], id="empty-body"),
        pytest.param([[b"head ", b"1", b"2"]], [b"head 1", b"2"], id="body-in-parts"),
        pytest.param([[b"head "], [b"body"]], [b"head ", b"body"], id="body-comes-later"),
        pytest.param([[b"head "]], [b"head "], id="no-body-yet"),
        pytest.param([[b"head ", END]], [b"head ", END], id="closed-after-head"),
        pytest.param([[b"head ", b"body", END]], [b"head body", END], id="closed-after-body"),
        pytest.param([[END]], [END], id="closed-at-once"),
    ],
)
def test_coalesced_writes(turns: list[list[bytes]], sent: list[bytes]) -> None:
    """The writes of each iteration of the event loop."""

    async def story() -> list[bytes]:
        line = Line()
        answer = CoalescedWrites(line, asyncio.get_running_loop())
        for turn in turns:
            done(answer, *turn)
            await asyncio.sleep(0)
        return line.sent

    assert sent == asyncio.run(story())


def test_a_head_is_not_sent_after_the_connection_was_closed() -> None:
    async def story() -> None:
        line = Line()
        answer = CoalescedWrites(line, asyncio.get_running_loop())
        answer.write(b"head ")
        line.close()
        await asyncio.sleep(0)
        assert (line.sent, answer.is_closing()) == ([END], True)

    asyncio.run(story())


GET = b"GET / HTTP/1.1\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
TOO_MUCH = b"x" * 2_000_000


class Echo:
    """Responds with the number of received bytes, and records disconnects."""

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


def served(story: Callable[[RunningServer, Echo], Awaitable[None]]) -> None:
    async def exchange() -> None:
        echo = Echo()
        async with serving(echo) as server:
            await story(server, echo)

    asyncio.run(asyncio.wait_for(exchange(), 30))


async def said(server: RunningServer, data: bytes, *, drip: bytes = b"") -> bytes:
    """Send bytes, then further ones slowly, and give all responses until the server closes the connection."""
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
        pytest.param(b"GET /" + TOO_MUCH, id="an endless URL"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + TOO_MUCH, id="an endless header"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 300, id="endless headers"),
        pytest.param(POST + b"0\r\n" + b"X: y\r\n" * 300, id="endless trailers"),
        pytest.param(POST + b"0\r\nX: " + TOO_MUCH, id="an endless trailer"),
        pytest.param(POST + b"1;" + TOO_MUCH, id="an endless chunk extension"),
        pytest.param(GET * 100_000, id="endless pipelined requests"),
    ],
)
def test_endless_requests_are_cut_off_and_other_clients_are_served(data: bytes) -> None:
    async def story(server: RunningServer, _: Echo) -> None:
        await said(server, data)
        assert (await said(server, LAST)).startswith(b"HTTP/1.1 200")

    served(story)


def test_a_long_body_is_accepted() -> None:
    async def story(server: RunningServer, _: Echo) -> None:
        head = b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        assert (await said(server, head % len(TOO_MUCH) + TOO_MUCH)).endswith(b"\r\n\r\n2000000")

    served(story)


def test_pipelined_requests_are_answered_in_order() -> None:
    async def story(server: RunningServer, _: Echo) -> None:
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
def test_slow_requests_are_cut_off(data: bytes, drip: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.cluster.serving.ARRIVAL_SECONDS", 0.2)

    async def story(server: RunningServer, _: Echo) -> None:
        async with asyncio.timeout(10):
            answer = await said(server, data, drip=drip)
        assert b"HTTP/1.1 408" in answer or data.startswith(POST)

    served(story)


def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.cluster.serving.IDLE_SECONDS", 0.2)

    async def story(server: RunningServer, _: Echo) -> None:
        assert await said(server, b"") == b""
        assert (await said(server, GET)).startswith(b"HTTP/1.1 200")

    served(story)


def test_connections_are_limited_and_closed_ones_free_their_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.cluster.serving.MOST_CONNECTIONS", 5)

    async def story(server: RunningServer, _: Echo) -> None:
        held = [await asyncio.open_connection(server.host, server.port) for _ in range(5)]
        assert await said(server, LAST) == b""
        for _reader, writer in held:
            writer.close()
            await writer.wait_closed()
        while not (await said(server, LAST)).startswith(b"HTTP/1.1 200"):
            await asyncio.sleep(0.01)

    served(story)


def test_one_peer_cannot_occupy_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.cluster.serving.MOST_CONNECTIONS", 5)
    monkeypatch.setattr("springtide.cluster.serving.MOST_PER_PEER", 3)

    async def story(server: RunningServer, _: Echo) -> None:
        held = [await connected(server, "127.0.0.2") for _number in range(10)]
        refused = [reader for reader, _ in held if await is_closed(reader)]
        assert len(refused) == 7
        # Another peer has the places that are left.
        for _number in range(2):
            held.append(await connected(server, "127.0.0.3"))
            assert not await is_closed(held[-1][0])
        assert await said(server, LAST) == b""
        for _reader, writer in held:
            writer.close()
            await writer.wait_closed()
        while not (await said(server, LAST)).startswith(b"HTTP/1.1 200"):
            await asyncio.sleep(0.01)

    served(story)


def test_silent_connections_are_closed_before_idle_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.cluster.serving.SILENT_SECONDS", 0.1)

    async def story(server: RunningServer, _: Echo) -> None:
        reader, silent = await connected(server, "127.0.0.1")
        used, writer = await connected(server, "127.0.0.1")
        writer.write(GET)
        await used.readuntil(b"\r\n\r\n")
        assert await reader.read() == b""
        assert not await is_closed(used)
        for each in (silent, writer):
            each.close()
            await each.wait_closed()

    served(story)


def test_connections_without_a_tls_handshake_are_closed_as_silent_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither silence nor a part of a handshake keeps a place."""
    monkeypatch.setattr("springtide.cluster.serving.SILENT_SECONDS", 0.1)
    now = int(time.time())
    authority = make_authority("test", now=now, seconds=3600)
    identity = TlsIdentity(make_serving(authority, ["127.0.0.1"], now=now, seconds=3600))

    async def story() -> None:
        async with asyncio.timeout(30), serving(Echo(), identity=identity) as server:
            for begun in (b"", b"\x16\x03\x01"):
                reader, writer = await connected(server, "127.0.0.1")
                writer.write(begun)
                assert await reader.read() == b""
                writer.close()

    asyncio.run(story())


async def connected(server: RunningServer, source: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect from an address of loopback."""
    return await asyncio.open_connection(server.host, server.port, local_addr=(source, 0))


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Return whether the server closes a connection instead of waiting for a request."""
    try:
        async with asyncio.timeout(0.2):
            while await reader.read(4096):
                pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def test_a_client_that_disconnects_with_pipelined_requests_is_noticed() -> None:
    async def story(server: RunningServer, echo: Echo) -> None:
        _, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(b"GET /wait HTTP/1.1\r\n\r\n" + GET)
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.close()
        while echo.gone != 1:
            await asyncio.sleep(0.01)

    served(story)


DAY = 86_400


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


async def endless(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": b".", "more_body": True})
        await asyncio.sleep(0.01)


def trusting(authority: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.decode())


async def fetch(url: str, context: ssl.SSLContext | bool = True) -> str:
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
        return await answer.text()


def test_an_application_is_served_on_loopback_within_the_block() -> None:
    async def story() -> None:
        async with serving(hello) as served:
            assert served.url.startswith("http://127.0.0.1:")
            assert await fetch(served.url) == "hello"
        with pytest.raises(aiohttp.ClientConnectionError):
            await fetch(served.url)

    asyncio.run(story())


def test_the_certificate_is_verified_under_every_name_and_no_other() -> None:
    now = int(time.time())
    authority = make_authority("test authority", now=now, seconds=DAY)
    pair = make_serving(authority, ["localhost", "127.0.0.1"], now=now, seconds=DAY)

    async def story() -> None:
        async with serving(hello, identity=TlsIdentity(pair)) as served:
            trusted = trusting(authority.certificate)
            assert await fetch(served.url, trusted) == "hello"
            assert await fetch(f"https://localhost:{served.port}", trusted) == "hello"
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await fetch(f"https://elsewhere.test:{served.port}", trusted)

    with pytest.MonkeyPatch.context() as patch:
        _resolve_everything_to_loopback(patch)
        asyncio.run(story())


def test_a_replaced_certificate_is_used_for_new_connections() -> None:
    now = int(time.time())
    first, second = (make_authority(name, now=now, seconds=DAY) for name in ("first", "second"))

    async def story() -> None:
        identity = TlsIdentity(make_serving(first, ["127.0.0.1"], now=now, seconds=DAY))
        async with serving(hello, identity=identity) as served:
            assert await fetch(served.url, trusting(first.certificate)) == "hello"
            identity.replace(make_serving(second, ["127.0.0.1"], now=now, seconds=DAY))
            assert await fetch(served.url, trusting(second.certificate)) == "hello"
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await fetch(served.url, trusting(first.certificate))

    asyncio.run(story())


def test_an_expired_certificate_is_refused() -> None:
    past = int(time.time()) - 10 * DAY
    authority = make_authority("test authority", now=past, seconds=DAY)
    pair = make_serving(authority, ["127.0.0.1"], now=past, seconds=DAY)
    assert pair.valid_until() == past + DAY

    async def story() -> None:
        async with serving(hello, identity=TlsIdentity(pair)) as served:
            with pytest.raises(aiohttp.ClientConnectorCertificateError, match="expired"):
                await fetch(served.url, trusting(authority.certificate))

    asyncio.run(story())


def test_a_port_in_use_is_reported() -> None:
    async def story() -> None:
        async with serving(hello) as served:
            with pytest.raises(ServingFailed, match=f"cannot listen on 127.0.0.1:{served.port}: "):
                async with serving(hello, port=served.port):
                    raise AssertionError

    asyncio.run(story())


def test_an_endless_response_does_not_keep_the_server_from_stopping() -> None:
    async def story() -> None:
        async with aiohttp.ClientSession() as session:
            async with serving(endless, grace=1) as served:
                answer = await session.get(served.url)
                assert await answer.content.readexactly(1) == b"."
            answer.close()

    asyncio.run(asyncio.wait_for(story(), 30))


def test_unfinished_requests_do_not_make_the_stop_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def patient(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def story() -> None:
        async with serving(patient, grace=1) as served:
            _, writer = await asyncio.open_connection(served.host, served.port)
            writer.write(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf")
            await writer.drain()
            await asyncio.sleep(0.05)
        writer.close()

    asyncio.run(asyncio.wait_for(story(), 30))
    assert caplog.records == []


def _resolve_everything_to_loopback(patch: pytest.MonkeyPatch) -> None:
    import socket

    real = socket.getaddrinfo

    def resolved(host: Any, *args: Any, **kwargs: Any) -> Any:
        return real("127.0.0.1", *args, **kwargs)

    patch.setattr(socket, "getaddrinfo", resolved)
