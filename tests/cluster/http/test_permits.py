"""The permit of a write is checked once the connection is made, immediately before the request is sent."""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.cluster.http.certificates import Authority
from tests.cluster.http.scripted_server import PODS, Server, answers, connected, cuts, playing, pod, refuses

from springtide.cluster.errors import ConnectionLost, NotLeader, NotSent
from springtide.cluster.http import HttpTransport, ServerTrust
from springtide.cluster.resources import Key
from springtide.cluster.transport import Patch, Write

WEB = Key("default", "web")
Call = Callable[[HttpTransport, Write], Awaitable[Any]]
WRITES = [
    pytest.param(lambda t, write: t.create(PODS, pod("web"), write, namespace="default"), id="create"),
    pytest.param(lambda t, write: t.patch(PODS, WEB, Patch.merge({"x": "y" * 300_000}), write), id="a large patch"),
    pytest.param(lambda t, write: t.delete(PODS, WEB, write), id="delete"),
]


class Lease:
    """A permit that expires."""

    def __init__(self, *, permits: int) -> None:
        self.permits = permits
        self.asked = 0

    def permit(self) -> None:
        self.asked += 1
        if self.asked > self.permits:
            raise NotLeader("the lease is lost")

    def write(self) -> Write:
        return Write("me", permit=self.permit)


@pytest.mark.parametrize("call", WRITES)
def test_a_write_without_permission_sends_nothing(call: Call) -> None:
    async def play() -> None:
        received: list[bytes] = []

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            received.append(await reader.read())
            writer.close()

        async with await asyncio.start_server(listen, "127.0.0.1", 0) as listener:
            async with connected(Server(port=listener.sockets[0].getsockname()[1])) as transport:
                lease = Lease(permits=0)
                with pytest.raises(NotLeader, match="the lease is lost"):
                    await call(transport, lease.write())
                await asyncio.sleep(0.02)
            assert (received, lease.asked) == ([b""], 1)

    asyncio.run(play())


@pytest.mark.parametrize("call", WRITES)
def test_the_permit_is_checked_after_a_slow_handshake(call: Call) -> None:
    """The lease is lost during the TLS handshake; the write must not be sent."""
    authority = Authority()

    async def play() -> None:
        lost = False

        def permit() -> None:
            if lost:
                raise NotSent("too late")

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal lost
            hello = await reader.read(65536)
            await asyncio.sleep(0.05)
            lost = True
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", server.port)
            inner_writer.write(hello)
            await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))

        async with playing(answers({}), tls=authority.serving("127.0.0.1")) as server:
            async with await asyncio.start_server(relay, "127.0.0.1", 0) as slow:
                reached = Server(port=slow.sockets[0].getsockname()[1], secure=True)
                async with connected(reached, trust=ServerTrust(authority.content)) as transport:
                    with pytest.raises(NotSent, match="too late"):
                        await call(transport, Write("me", permit=permit))
                await asyncio.sleep(0.02)
            assert lost
            assert server.asked == []

    asyncio.run(play())


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()


@pytest.mark.parametrize("call", WRITES)
def test_the_permit_is_checked_for_every_attempt(call: Call) -> None:
    async def play() -> tuple[int, int]:
        busy = refuses(429, "TooManyRequests", Retry_After="0")
        async with playing(busy, answers({})) as server, connected(server) as transport:
            lease = Lease(permits=1)
            with pytest.raises(NotLeader):
                await call(transport, lease.write())
            return lease.asked, len(server.asked)

    assert asyncio.run(play()) == (2, 1)


@pytest.mark.parametrize("call", WRITES)
def test_a_permitted_write_whose_connection_is_cut_is_not_sent_a_second_time(call: Call) -> None:
    """The client library would send a DELETE again by itself."""

    async def play() -> tuple[int, int]:
        async with playing(cuts, answers({})) as server, connected(server) as transport:
            lease = Lease(permits=9)
            with pytest.raises(ConnectionLost):
                await call(transport, lease.write())
            return lease.asked, len(server.asked)

    assert asyncio.run(play()) == (1, 1)


def test_a_write_that_is_cut_while_it_leaves_is_not_sent_a_second_time() -> None:
    """A part of it has arrived, and sending the rest fails."""

    async def play() -> tuple[int, int]:
        connections = 0

        async def cuts_early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            await reader.readuntil(b"\r\n\r\n")
            writer.transport.abort()

        lease = Lease(permits=9)
        async with (
            await asyncio.start_server(cuts_early, "127.0.0.1", 0) as listener,
            connected(Server(port=listener.sockets[0].getsockname()[1])) as transport,
        ):
            with pytest.raises(ConnectionLost):
                await transport.create(PODS, {"x": "y" * 20_000_000}, lease.write(), namespace="default")
        return lease.asked, connections

    assert asyncio.run(play()) == (1, 1)


def test_no_other_task_runs_between_the_permit_and_the_send() -> None:
    """A task scheduled by the permit runs after the bytes were handed to the socket."""

    async def play() -> list[str]:
        seen: list[str] = []
        async with playing(answers({})) as server, connected(server) as transport:
            await transport.get(PODS, WEB)

            def permit() -> None:
                seen.append("permit")
                asyncio.get_running_loop().call_soon(lambda: seen.append(f"then {_unread(server.writers[0])}"))

            await transport.delete(PODS, WEB, Write("me", permit=permit))
        return seen

    assert asyncio.run(play()) == ["permit", "then True"]


def _unread(writer: asyncio.StreamWriter) -> bool:
    """Return whether bytes have arrived at the server's socket."""
    return bool(select.select([writer.get_extra_info("socket").fileno()], [], [], 0)[0])


def test_a_failure_of_the_permit_itself_is_not_hidden() -> None:
    def permit() -> None:
        raise LookupError("a bug")

    async def play() -> None:
        async with playing(answers({})) as server, connected(server) as transport:
            with pytest.raises(LookupError, match="a bug"):
                await transport.delete(PODS, WEB, Write("me", permit=permit))

    asyncio.run(play())
