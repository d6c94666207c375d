"""Closing a client leaves no socket open, even if the server does not answer the TLS shutdown."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeAlias

import aiohttp
import pytest
from tests.cluster.http.certificates import Authority
from tests.cluster.http.scripted_server import raw

from springtide.cluster.http.connections import TrackedConnector

AUTHORITY = Authority()
BEGUN = raw(200, b"a" * 20)[:-10]
"""An answer of which half has come."""
Left: TypeAlias = Callable[[aiohttp.ClientSession, str], Awaitable[None]]


@contextmanager
def deaf_server(said: bytes, *, tls: bool) -> Iterator[str]:
    """Serve on another thread, as another process would: read a request, send some bytes, and read no more."""
    over = threading.Event()

    def serve(made: socket.socket) -> None:
        with suppress(OSError), made:
            made.recv(10_000)
            made.sendall(said)
            over.wait(20)

    def accept(listener: socket.socket) -> None:
        talks = []
        with suppress(OSError):
            while True:
                made, _ = listener.accept()
                talks.append(threading.Thread(target=serve, args=(made,)))
                talks[-1].start()
        for talk in talks:
            talk.join()

    with socket.create_server(("127.0.0.1", 0)) as plain:
        listener = AUTHORITY.serving("127.0.0.1").wrap_socket(plain, server_side=True) if tls else plain
        host, port = listener.getsockname()
        thread = threading.Thread(target=accept, args=(listener,))
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://{host}:{port}/"
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            listener.close()


@asynccontextmanager
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    trust = ssl.create_default_context(cadata=AUTHORITY.pair.certificate.decode())
    async with aiohttp.ClientSession(connector=TrackedConnector(ssl=trust)) as made:
        yield made


async def in_the_middle_of_an_answer(made: aiohttp.ClientSession, url: str) -> None:
    async with made.get(url) as answer:
        await answer.content.readany()


async def before_an_answer(made: aiohttp.ClientSession, url: str) -> None:
    with pytest.raises(TimeoutError):
        await made.get(url, timeout=aiohttp.ClientTimeout(total=0.2))


async def with_a_cancelled_reader(made: aiohttp.ClientSession, url: str) -> None:
    heard = asyncio.Event()

    async def read() -> None:
        async with made.get(url) as answer:
            heard.set()
            await answer.read()

    reader = asyncio.create_task(read())
    await heard.wait()
    reader.cancel()
    with suppress(asyncio.CancelledError):
        await reader


@pytest.mark.parametrize("tls", [True, False], ids=["TLS", "plain"])
@pytest.mark.parametrize(
    ("said", "left"),
    [
        pytest.param(BEGUN, in_the_middle_of_an_answer, id="in the middle of an answer"),
        pytest.param(BEGUN, with_a_cancelled_reader, id="cancelled in the middle of an answer"),
        pytest.param(b"", before_an_answer, id="before an answer"),
    ],
)
def test_nothing_is_left_open(said: bytes, left: Left, tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(url: str) -> None:
        async with session() as made:
            await left(made, url)

    gc.collect()
    found: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda received: found.append(str(received.exc_value)))
    with deaf_server(said, tls=tls) as url:
        asyncio.run(play(url))
        gc.collect()

    assert found == []
