"""TLS: server verification and client certificates, and both while their files change."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.http.certificates import Authority
from tests.cluster.http.scripted_server import PODS, Asked, Server, answers, connected, playing, raw

from springtide.cluster.errors import ConnectionLost
from springtide.cluster.http import AccessError, HttpTransport, InlineContent, ServerTrust, StaticCredentials
from springtide.cluster.http.connections import TlsContexts
from springtide.cluster.http.credentials import ChangingFile, ClientCertificate
from springtide.cluster.resources import Key

WEB = Key("default", "web")
OURS, OTHER = Authority(), Authority()


async def reach(tls: ssl.SSLContext, **access: Any) -> None:
    async with playing(answers({}), tls=tls) as server, connected(server, **access) as transport:
        await transport.get(PODS, WEB)


@pytest.mark.parametrize(
    "trust",
    [
        pytest.param(ServerTrust(OURS.content), id="the authority"),
        pytest.param(ServerTrust(InlineContent(OTHER.pair.certificate + OURS.pair.certificate)), id="a bundle"),
        pytest.param(ServerTrust(insecure=True), id="insecure"),
        pytest.param(ServerTrust(OTHER.content, insecure=True), id="insecure, with another authority"),
    ],
)
def test_a_server_is_trusted(trust: ServerTrust) -> None:
    asyncio.run(reach(OURS.serving("127.0.0.1"), trust=trust))


@pytest.mark.parametrize(
    ("trust", "names"),
    [
        pytest.param(ServerTrust(OTHER.content), ["127.0.0.1"], id="another authority"),
        pytest.param(ServerTrust(), ["127.0.0.1"], id="authorities of the system"),
        pytest.param(ServerTrust(OURS.content), ["elsewhere.example.com"], id="another name"),
        pytest.param(
            ServerTrust(OURS.content, server_name="api.example.com"), ["127.0.0.1"], id="not the name asked for"
        ),
    ],
)
def test_a_server_is_not_trusted(trust: ServerTrust, names: list[str]) -> None:
    with pytest.raises(ConnectionLost, match=r"certificate is not trusted: .*; the test says which authority is"):
        asyncio.run(reach(OURS.serving(*names), trust=trust, origin="the test"))


def test_the_name_of_a_server_may_differ_from_its_address() -> None:
    trust = ServerTrust(OURS.content, server_name="api.example.com")

    asyncio.run(reach(OURS.serving("api.example.com"), trust=trust))


def test_a_server_that_speaks_no_tls_is_a_lost_connection() -> None:
    async def speaks_plainly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(raw(400, b"Client sent an HTTP request to an HTTPS server."))
        writer.close()

    async def play() -> None:
        async with await asyncio.start_server(speaks_plainly, "127.0.0.1", 0) as listener:
            server = Server(port=listener.sockets[0].getsockname()[1], secure=True)
            async with connected(server, trust=ServerTrust(insecure=True)) as transport:
                with pytest.raises(ConnectionLost):
                    await transport.get(PODS, WEB)

    asyncio.run(play())


def test_a_replaced_client_certificate_is_used_at_once(tmp_path: Path) -> None:
    chain, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    seen: list[str] = []

    def write(name: str) -> None:
        pair = OURS.client(name)
        chain.write_bytes(pair.certificate)
        key.write_bytes(pair.key)

    async def tells(asked: Asked, writer: asyncio.StreamWriter) -> None:
        subject = writer.get_extra_info("peercert")["subject"]
        seen.append(dict(pair for part in subject for pair in part)["commonName"])
        writer.write(raw(200, b"{}"))

    async def twice(transport: HttpTransport) -> None:
        await transport.get(PODS, WEB)
        await transport.get(PODS, WEB)

    async def play() -> int:
        credentials = StaticCredentials(certificate=(ChangingFile(chain), ChangingFile(key)))
        write("first")
        async with playing(tells, tls=OURS.serving("127.0.0.1", clients=True)) as server:
            async with connected(server, trust=ServerTrust(OURS.content), credentials=credentials) as transport:
                await twice(transport)
                write("second")
                await twice(transport)
            return server.connections

    assert asyncio.run(play()) == 2
    assert seen == ["first", "first", "second", "second"]


def test_a_replaced_authority_is_trusted_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(OTHER.pair.certificate)

    async def play() -> None:
        trust = ServerTrust(ChangingFile(path))
        tls = OURS.serving("127.0.0.1")
        async with playing(answers({}), tls=tls) as server, connected(server, trust=trust) as transport:
            with pytest.raises(ConnectionLost):
                await transport.get(PODS, WEB)
            path.write_bytes(OURS.pair.certificate)
            await transport.get(PODS, WEB)

    asyncio.run(play())


def test_a_context_is_made_once_for_the_same_certificates() -> None:
    pair = OURS.client("me")
    contexts = TlsContexts(ServerTrust(OURS.content))
    first = contexts.context(ClientCertificate(pair.certificate, pair.key))

    assert contexts.context(ClientCertificate(pair.certificate, pair.key)) is first
    assert contexts.context(None) is not first


@pytest.mark.parametrize(
    ("trust", "certificate", "message"),
    [
        pytest.param(
            ServerTrust(InlineContent(b"nonsense")), None, "the certificate authority is not in PEM", id="authority"
        ),
        pytest.param(
            ServerTrust(InlineContent(b"\xff")),
            None,
            "the certificate authority is not in PEM",
            id="authority, binary",
        ),
        pytest.param(ServerTrust(), ClientCertificate(b"x", b"y"), "do not make a pair in PEM", id="certificate"),
        pytest.param(
            ServerTrust(),
            ClientCertificate(OURS.client("a").certificate, OURS.client("b").key),
            "do not make a pair in PEM",
            id="the key of another",
        ),
    ],
)
def test_an_invalid_certificate_is_an_error(
    trust: ServerTrust, certificate: ClientCertificate | None, message: str
) -> None:
    with pytest.raises(AccessError, match=message):
        TlsContexts(trust).context(certificate)
