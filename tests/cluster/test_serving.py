"""Serving an application: on loopback, with TLS that can be replaced, and an end to it."""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Any

import aiohttp
import pytest

from springtide.cluster.certificates import make_authority, make_serving
from springtide.cluster.serving import ServingFailed, TlsIdentity, serving

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


def test_an_application_is_reached_on_loopback_for_as_long_as_the_block_lasts() -> None:
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


def test_a_replaced_certificate_is_shown_to_whoever_connects_next() -> None:
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


def test_a_certificate_that_has_ended_is_not_believed() -> None:
    past = int(time.time()) - 10 * DAY
    authority = make_authority("test authority", now=past, seconds=DAY)
    pair = make_serving(authority, ["127.0.0.1"], now=past, seconds=DAY)
    assert pair.valid_until() == past + DAY

    async def story() -> None:
        async with serving(hello, identity=TlsIdentity(pair)) as served:
            with pytest.raises(aiohttp.ClientConnectorCertificateError, match="expired"):
                await fetch(served.url, trusting(authority.certificate))

    asyncio.run(story())


def test_a_port_that_is_taken_is_told_in_words() -> None:
    async def story() -> None:
        async with serving(hello) as served:
            with pytest.raises(ServingFailed, match=f"cannot listen on 127.0.0.1:{served.port}: "):
                async with serving(hello, port=served.port):
                    raise AssertionError

    asyncio.run(story())


def test_an_answer_that_never_ends_does_not_keep_the_server_from_ending() -> None:
    async def story() -> None:
        async with aiohttp.ClientSession() as session:
            async with serving(endless, grace=1) as served:
                answer = await session.get(served.url)
                assert await answer.content.readexactly(1) == b"."
            answer.close()

    asyncio.run(asyncio.wait_for(story(), 30))


def test_clients_that_never_finish_do_not_make_the_end_a_failure(caplog: pytest.LogCaptureFixture) -> None:
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
