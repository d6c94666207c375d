"""Client certificates: which clients a server accepts, on real TLS connections, and when that changes."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tests.e2e.identities import make_client

from springtide.cluster.certificates import CertificatePair, make_authority, make_serving
from springtide.cluster.certificates.clients import (
    AuthoritiesFile,
    ClientVerifyingTls,
    InvalidAuthorities,
    VerifiedClients,
)
from springtide.cluster.serving import serving

NOW = int(time.time())
DAY = 86_400
AUTHORITY = make_authority("clients", now=NOW, seconds=DAY)
SUCCESSOR = make_authority("clients, renewed", now=NOW, seconds=DAY)
STRANGERS = make_authority("strangers", now=NOW, seconds=DAY)
SERVER = make_serving(make_authority("server", now=NOW, seconds=DAY), ("127.0.0.1",), now=NOW, seconds=DAY)
API_SERVER = make_client(AUTHORITY, "kube-apiserver")
REFUSED_BY_TLS = -1
CUT = SUCCESSOR.certificate + AUTHORITY.certificate[:200]
"""OpenSSL refuses this bundle; other parsers read the certificate that is whole."""


@dataclass
class Server:
    """A running server that verifies its clients."""

    url: str
    folder: Path
    identity: ClientVerifyingTls
    clock: int = NOW

    async def status(self, client: CertificatePair | None, path: str = "/") -> int:
        """Send a request on a new connection; return its status."""
        async with aiohttp.ClientSession() as session:
            return (await self.answer(session, client, path))[0]

    async def answer(
        self, session: aiohttp.ClientSession, client: CertificatePair | None, path: str = "/"
    ) -> tuple[int, str]:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if client is not None:
            file = self.folder / "client.pem"
            file.write_bytes(client.key + client.certificate)
            context.load_cert_chain(file)
        try:
            async with session.post(self.url + path, data=b"{}", ssl=context) as answer:
                return answer.status, await answer.text()
        except aiohttp.ClientError:
            return REFUSED_BY_TLS, ""


def play(
    folder: Path,
    scenario: Callable[[Server, Path], Awaitable[None]],
    *names: str,
    required: bool = True,
) -> None:
    """Run a test with its own server; the authorities are in a file."""
    file = folder / "ca.pem"
    file.write_bytes(AUTHORITY.certificate)

    async def ok(request: Request) -> Response:
        return PlainTextResponse("ok")

    async def main() -> None:
        identity = ClientVerifyingTls(SERVER, required=required, authorities=AuthoritiesFile(file))
        app = VerifiedClients(Starlette(routes=[Route("/", ok, methods=["POST"])]), names, lambda: made.clock)
        async with asyncio.timeout(30), serving(app, identity=identity) as served:
            made = Server(served.url, folder, identity)
            await scenario(made, file)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("client", "names", "expected"),
    [
        pytest.param(None, (), REFUSED_BY_TLS, id="no-certificate"),
        pytest.param(make_client(STRANGERS, "kube-apiserver"), (), REFUSED_BY_TLS, id="another-authority"),
        pytest.param(
            make_serving(AUTHORITY, ("kube-apiserver",), now=NOW, seconds=DAY),
            (),
            REFUSED_BY_TLS,
            id="server-certificate",
        ),
        pytest.param(API_SERVER, (), 200, id="any-name"),
        pytest.param(API_SERVER, ("other", "kube-apiserver"), 200, id="an-allowed-name"),
        pytest.param(
            make_client(AUTHORITY, "", dns_names=("a.example", "b.example")),
            ("b.example",),
            200,
            id="an-allowed-dns-name",
        ),
        pytest.param(make_client(AUTHORITY, "", ("admins",)), ("admins",), 403, id="no-name"),
        pytest.param(make_client(AUTHORITY, "jane"), ("kube-apiserver",), 403, id="another-name"),
    ],
)
def test_only_allowed_clients_are_answered(
    tmp_path: Path, client: CertificatePair | None, names: tuple[str, ...], expected: int
) -> None:
    async def scenario(server: Server, file: Path) -> None:
        assert await server.status(client) == expected

    play(tmp_path, scenario, *names)


def test_the_refusal_names_the_client_and_closes_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: Server, file: Path) -> None:
        async with aiohttp.ClientSession() as session:
            for _ in range(3):
                status, text = await server.answer(session, make_client(AUTHORITY, "jane"), "/validate")
                assert (status, text) == (403, "the client 'jane' is not allowed to call")
        assert caplog.messages.count("a request at /validate is refused: the client 'jane' is not allowed to call") == 1

    with caplog.at_level(logging.WARNING):
        play(tmp_path, scenario, "kube-apiserver")


@pytest.mark.parametrize(
    ("client", "words"),
    [
        pytest.param(None, "it has sent no certificate", id="no-certificate"),
        pytest.param(
            make_client(STRANGERS, "kube-apiserver"),
            "its certificate is not valid for the authorities of clients: ",
            id="another-authority",
        ),
    ],
)
def test_a_failed_verification_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, client: CertificatePair | None, words: str
) -> None:
    """The client sees only that the connection ends."""

    async def scenario(server: Server, file: Path) -> None:
        assert [await server.status(client) for _ in range(3)] == [REFUSED_BY_TLS] * 3
        assert [f"a client cannot connect: {words}" in message for message in caplog.messages] == [True]
        replace(file, AUTHORITY.certificate + SUCCESSOR.certificate)
        assert await server.status(client) == REFUSED_BY_TLS
        assert len([message for message in caplog.messages if words in message]) == 2

    with caplog.at_level(logging.WARNING):
        play(tmp_path, scenario)


def test_an_application_can_refuse_clients_without_a_certificate_itself(tmp_path: Path) -> None:
    async def scenario(server: Server, file: Path) -> None:
        assert await server.status(None) == 403
        assert await server.status(make_client(STRANGERS, "kube-apiserver")) == REFUSED_BY_TLS

    play(tmp_path, scenario, required=False)


def test_a_certificate_that_ends_while_its_connection_is_open_is_refused(tmp_path: Path) -> None:
    async def scenario(server: Server, file: Path) -> None:
        assert await server.status(API_SERVER) == 200
        server.clock += 10 * DAY
        assert await server.status(API_SERVER) == 403

    play(tmp_path, scenario)


def test_authorities_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    """As a rotation does it: both authorities for a while, then the new one alone."""
    successor = make_client(SUCCESSOR, "kube-apiserver")

    async def scenario(server: Server, file: Path) -> None:
        assert [await server.status(client) for client in (API_SERVER, successor)] == [200, REFUSED_BY_TLS]
        replace(file, AUTHORITY.certificate + SUCCESSOR.certificate)
        assert [await server.status(client) for client in (API_SERVER, successor)] == [200, 200]
        replace(file, SUCCESSOR.certificate)
        assert [await server.status(client) for client in (API_SERVER, successor)] == [REFUSED_BY_TLS, 200]

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "cannot read", id="missing"),
        pytest.param(b"", "names no certificate authority", id="empty"),
        pytest.param(b"\xff\xfe", "names no certificate authority", id="not-text"),
        pytest.param(AUTHORITY.key, "names no certificate authority", id="a-key"),
        pytest.param(CUT, "names no certificate authority", id="cut-within-the-second"),
    ],
)
def test_an_invalid_file_is_reported_once_and_the_former_authorities_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes | None, words: str
) -> None:
    async def scenario(server: Server, file: Path) -> None:
        if content is None:
            file.unlink()
        else:
            replace(file, content)
        assert [await server.status(API_SERVER) for _ in range(3)] == [200] * 3
        assert [words in message for message in caplog.messages] == [True]
        assert await server.status(None) == REFUSED_BY_TLS
        replace(file, SUCCESSOR.certificate)
        assert await server.status(API_SERVER) == REFUSED_BY_TLS

    with caplog.at_level(logging.WARNING):
        play(tmp_path, scenario)


def test_a_comment_of_any_language_is_read(tmp_path: Path) -> None:
    async def scenario(server: Server, file: Path) -> None:
        replace(file, "# Autorität für Clients\n".encode() + SUCCESSOR.certificate)
        clients = (API_SERVER, make_client(SUCCESSOR, "kube-apiserver"))
        assert [await server.status(client) for client in clients] == [REFUSED_BY_TLS, 200]

    play(tmp_path, scenario)


def test_authorities_that_openssl_refuses_are_refused_each_time() -> None:
    """Were they stored, the second call would change nothing, silently, and the former ones would count for good."""
    identity = ClientVerifyingTls(SERVER, required=True)
    identity.trust(AUTHORITY.certificate.decode())
    for _ in range(2):
        with pytest.raises(ssl.SSLError):
            identity.trust(CUT.decode())
    identity.replace(SERVER)  # with the authorities that were valid


def test_a_server_does_not_start_without_authorities(tmp_path: Path) -> None:
    """Otherwise a misspelled path would mean that every client is refused, or none."""
    for content in (None, b"none"):
        if content is not None:
            (tmp_path / "ca.pem").write_bytes(content)
        with pytest.raises(InvalidAuthorities, match=r"ca\.pem"):
            AuthoritiesFile(tmp_path / "ca.pem")


def replace(file: Path, content: bytes) -> None:
    """Replace a file as volumes of Secrets are: the new one takes its name."""
    new = file.with_suffix(".new")
    new.write_bytes(content)
    os.replace(new, file)


def test_no_tls_session_tickets_are_issued() -> None:
    """A resumed session would skip the verification of the client certificate."""
    client_hears, server_hears = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    identity = ClientVerifyingTls(SERVER, required=False)
    identity.trust(AUTHORITY.certificate.decode())
    server = identity.context.wrap_bio(server_hears, client_hears, server_side=True)
    client = context.wrap_bio(client_hears, server_hears, server_hostname="springtide")
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    server.write(b"hello")

    # Tickets come before the first words.
    assert client.read(5) == b"hello"
    assert client.session is not None
    assert not client.session.has_ticket
