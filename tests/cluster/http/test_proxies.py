"""Proxies: which servers are reached through one, and how."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from tests.cluster.http.certificates import Authority
from tests.cluster.http.scripted_server import PODS, Asked, Server, answers, connected, playing, raw, read_request

from springtide.cluster.errors import ConnectionLost
from springtide.cluster.http import AccessError, ClusterAccess, HttpTransport, ServerTrust
from springtide.cluster.http.access import proxy_for
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Write


@pytest.mark.parametrize(
    ("server", "no_proxy", "used"),
    [
        ("https://api.example.com", "", True),
        ("https://api.example.com", "*", False),
        ("https://api.example.com", "example.com", False),
        ("https://api.example.com", ".example.com", False),
        ("https://api.example.com", "*.example.com", False),
        ("https://example.com", "example.com", False),
        ("https://example.com", ".example.com", True),
        ("https://badexample.com", "example.com", True),
        ("https://api.example.com:6443", "other, api.example.com:6443", False),
        ("https://api.example.com:6443", "api.example.com:443", True),
        ("https://api.example.com", "api.example.com:443", False),
        ("https://API.Example.com", "example.COM", False),
        ("https://10.1.2.3", "10.0.0.0/8", False),
        ("https://11.1.2.3", "10.0.0.0/8", True),
        ("https://10.1.2.3:6443", "10.1.2.3", False),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", False),
        ("https://10.1.2.3:6443", "10.1.2.3:1", True),
        ("https://[fd00::1]:6443", "fd00::/16", False),
        ("https://[fd00::1]:6443", "fd00::1", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://[fd00::2]:6443", "fd00::1", True),
        ("https://api.example.com", "10.0.0.0/8,nonsense/99, ,", True),
        ("https://127.0.0.1:6443", "", False),
        ("https://localhost:6443", "", False),
        ("https://[::1]:6443", "", False),
    ],
)
def test_no_proxy_is_read_as_kubectl_reads_it(server: str, no_proxy: str, used: bool) -> None:
    environment = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": no_proxy}

    assert proxy_for(server, environment) == ("http://proxy:3128" if used else "")


def test_each_scheme_has_its_own_proxy_in_either_case_of_letters() -> None:
    environment = {"https_proxy": "secure:1", "HTTP_PROXY": "http://plain:2"}

    assert proxy_for("https://x", environment) == "http://secure:1"
    assert proxy_for("http://x", environment) == "http://plain:2"
    assert proxy_for("https://x", {}) == ""


def test_an_unusable_proxy_is_an_error() -> None:
    with pytest.raises(AccessError, match="HTTPS_PROXY: 'socks5://x' is not a proxy that can be used"):
        proxy_for("https://x", {"HTTPS_PROXY": "socks5://x"})


@asynccontextmanager
async def proxying(
    *, refusal: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, list[tuple[str, str]]]]:
    """Run a tunnelling proxy; give its port, and the requests with their Proxy-Authorization."""
    asked: list[tuple[str, str]] = []
    pumps: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader, 0)
        if request is None:
            return
        asked.append((f"{request.method} {request.target}", request.headers.get("proxy-authorization", "")))
        if refusal:
            writer.write(raw(refusal, b""))
            writer.close()
            return
        host, _, port = request.target.rpartition(":")
        inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        pumps.append(asyncio.create_task(pump(reader, inner_writer)))
        pumps.append(asyncio.create_task(pump(inner_reader, writer)))

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as listener:
        yield listener.sockets[0].getsockname()[1], asked
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_is_reached_through_a_tunnel(scheme: str) -> None:
    authority = Authority()
    tls = authority.serving("127.0.0.1")

    async def play() -> tuple[Server, list[tuple[str, str]]]:
        through = proxying(tls=tls if scheme == "https" else None)
        async with playing(answers({}), tls=tls) as server, through as (port, asked):
            proxy = f"{scheme}://jane:pass%20word@127.0.0.1:{port}"
            async with connected(server, trust=ServerTrust(authority.content), proxy=proxy) as transport:
                await transport.delete(PODS, Key("default", "web"), Write("me"))
                await transport.get(PODS, Key("default", "web"))
            return server, asked

    server, asked = asyncio.run(play())

    assert [request.method for request in server.asked] == ["DELETE", "GET"]
    assert asked == [(f"CONNECT 127.0.0.1:{server.port}", "Basic amFuZTpwYXNzIHdvcmQ=")]


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        pytest.param(407, "the proxy refuses with 407", id="refuses"),
        pytest.param(0, "cannot connect to the proxy 127.0.0.1:1: Conn", id="unreachable"),
    ],
)
def test_a_refusal_of_the_proxy_is_an_error(refusal: int, message: str) -> None:
    async def play() -> None:
        async with proxying(refusal=refusal) as (port, _):
            proxy = f"http://127.0.0.1:{port if refusal else 1}"
            server = Server(port=1, secure=True)
            async with connected(server, trust=ServerTrust(insecure=True), proxy=proxy) as transport:
                await transport.get(PODS, Key("default", "web"))

    with pytest.raises(ConnectionLost, match=message):
        asyncio.run(play())


def test_requests_to_a_server_without_tls_have_the_absolute_url() -> None:
    """The answer comes compressed, as it may from servers that are not on this machine."""
    packed = answers(gzip.compress(b'{"kind": "Pod"}'), Content_Encoding="gzip")

    async def play() -> tuple[Asked, Object]:
        async with playing(packed) as proxy:
            access = ClusterAccess("http://api.example.com", proxy=f"http://jane:x@127.0.0.1:{proxy.port}")
            async with HttpTransport(access, random=Random(1)) as transport:
                found = await transport.get(PODS, Key("default", "web"))
        return proxy.asked[0], found

    asked, found = asyncio.run(play())

    assert asked.target == "http://api.example.com/api/v1/namespaces/default/pods/web"
    assert (asked.headers["proxy-authorization"], asked.headers["accept-encoding"]) == ("Basic amFuZTp4", "gzip")
    assert found == {"kind": "Pod"}
