"""Verification of client certificates, for servers that only API servers may call.

TLS verifies that a certificate is signed by one of the trusted authorities; who it is for is checked for each request,
by the names in it. Server certificate and authorities change while the server runs. OpenSSL cannot remove authorities
from a context, so every change makes a new context, and new connections switch to it; open ones go on.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.x509.oid import NameOID
from starlette.responses import PlainTextResponse

from springtide.cluster.certificates.issuance import CertificatePair
from springtide.cluster.serving import TlsIdentity

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)


class InvalidAuthorities(ValueError):
    """There are no certificate authorities to verify clients by; the message says why."""


def check_authorities(pem: str) -> str:
    """Return authorities in PEM for OpenSSL; raises `InvalidAuthorities` if they are none, or if OpenSSL refuses them.

    OpenSSL takes ASCII only, so other characters, which comments may have, are replaced.
    """
    accepted = pem.encode("ascii", "replace").decode("ascii")
    try:
        x509.load_pem_x509_certificates(accepted.encode())
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=accepted)
    except (ValueError, ssl.SSLError) as failure:
        raise InvalidAuthorities(f"no certificates in PEM: {failure}") from None
    return accepted


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """What a client certificate says."""

    name: str
    """Its common name; empty if it has none."""
    dns_names: tuple[str, ...]
    begins: int
    ends: int

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the client."""
        return (self.name, *self.dns_names) if self.name else self.dns_names


@lru_cache(maxsize=64)
def read_client_certificate(pem: str) -> ClientCertificate:
    """Read a client certificate, which TLS has verified."""
    certificate = x509.load_der_x509_certificate(ssl.PEM_cert_to_DER_cert(pem))
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return ClientCertificate(
        str(common[0].value) if common else "",
        tuple(_dns_names(certificate)),
        int(certificate.not_valid_before_utc.timestamp()),
        int(certificate.not_valid_after_utc.timestamp()),
    )


def certificate_of(scope: Scope) -> str:
    """Return the client certificate of a request in PEM; empty if the client has sent none."""
    return next(iter(scope.get("extensions", {}).get("tls", {}).get("client_cert_chain", ())), "")


def _dns_names(certificate: x509.Certificate) -> Iterator[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return
    yield from found.value.get_values_for_type(x509.DNSName)


class ClientVerifyingTls(TlsIdentity):
    """The server certificate, and the authorities that may sign client certificates."""

    def __init__(self, pair: CertificatePair, *, required: bool, authorities: Callable[[], str] | None = None) -> None:
        """Ask clients for a certificate; if it is not `required`, the application sees which clients have sent none.

        `authorities` returns the trusted ones for each new connection and must not raise; otherwise `trust` sets them.
        """
        self._pair = pair
        self._mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
        self._authorities = authorities
        self._trusted = "" if authorities is None else authorities()
        self._reported: set[str] = set()
        """Why handshakes have failed since the authorities changed."""
        super().__init__(pair)
        self.context.sslobject_class = self._reported_handshake()
        # What is negotiated before the switch to the newest context is read from this one.
        self._request_client_certificates(self.context)
        self.context.sni_callback = self._switch_context

    def replace(self, pair: CertificatePair) -> None:
        """Use another server certificate for new connections."""
        super().replace(pair)
        self._pair = pair
        self._renew(self._trusted)

    def trust(self, authorities: str) -> None:
        """Accept only client certificates of these authorities, in PEM, on new connections.

        Raises `ssl.SSLError` if OpenSSL refuses them; the former ones count then.
        """
        if authorities != self._trusted:
            self._renew(authorities)
            self._trusted = authorities

    def _reported_handshake(self) -> type[ssl.SSLObject]:
        """Make a class of connections whose failed verification is logged: the client often sees only an EOF."""
        report = self._report

        class Handshake(ssl.SSLObject):
            """One connection."""

            def do_handshake(self) -> None:
                """Go on with the handshake."""
                try:
                    super().do_handshake()
                except ssl.SSLCertVerificationError as failure:
                    report(f"its certificate is not valid for the authorities of clients: {failure.verify_message}")
                    raise
                except ssl.SSLError as failure:
                    if failure.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
                        report("it has sent no certificate")
                    raise

        return Handshake

    def _report(self, problem: str) -> None:
        if problem not in self._reported:
            self._reported.add(problem)
            log.warning("a client cannot connect: %s", problem)

    def _renew(self, authorities: str) -> None:
        newest = TlsIdentity(self._pair).context
        self._request_client_certificates(newest)
        if authorities:
            newest.load_verify_locations(cadata=authorities)
        self._reported.clear()
        self._newest = newest

    def _switch_context(self, connection: ssl.SSLObject, name: str | None, entered: ssl.SSLContext) -> None:  # noqa: ARG002
        if self._authorities is not None:
            self.trust(self._authorities())
        connection.context = self._newest

    def _request_client_certificates(self, context: ssl.SSLContext) -> None:
        context.verify_mode = self._mode
        # No session tickets: a resumed session would skip the verification of the client certificate.
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.num_tickets = 0


class AuthoritiesFile:
    """The authorities in a file, read again when it has changed.

    While it is missing or invalid, as it may be while it is being replaced, the last valid ones count.
    """

    def __init__(self, path: Path) -> None:
        """Read the file; raises `InvalidAuthorities`."""
        self._path = path
        self._problem = ""
        self._seen = self._state()
        self._valid = self._read()

    def __call__(self) -> str:
        """Return the authorities in PEM. A stat call costs microseconds, so this is done for every connection."""
        try:
            if (seen := self._state()) != self._seen:
                self._valid, self._seen = self._read(), seen
                log.info(
                    "the authorities of clients in %s have changed: new connections are verified by them", self._path
                )
            self._problem = ""
        except InvalidAuthorities as failure:
            if str(failure) != self._problem:
                self._problem = str(failure)
                log.warning("%s; clients are still verified by the former authorities", failure)
        return self._valid

    def _state(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError as failure:
            raise InvalidAuthorities(f"cannot read {self._path}: {failure.strerror}") from None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _read(self) -> str:
        try:
            return check_authorities(self._path.read_text(encoding="utf-8"))
        except OSError as failure:
            raise InvalidAuthorities(f"cannot read {self._path}: {failure.strerror}") from None
        except ValueError as failure:
            raise InvalidAuthorities(f"{self._path} names no certificate authority: {failure}") from None


@dataclass(frozen=True, slots=True)
class ClientVerification:
    """How the clients of a server are verified."""

    authorities: AuthoritiesFile
    names: tuple[str, ...] = ()
    """The allowed names, common or DNS names; empty: every client with a certificate of the authorities."""


class VerifiedClients:
    """An ASGI application that passes on only requests of verified clients."""

    def __init__(self, app: ASGIApp, names: Sequence[str], now: Callable[[], int]) -> None:
        self._app = app
        self._names = frozenset(names)
        self._now = now
        self._refused = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it before its body is read and close the connection."""
        if problem := self._problem(certificate_of(scope)):
            if problem != self._refused:
                self._refused = problem
                log.warning("a request at %s is refused: %s", scope["path"], problem)
            await PlainTextResponse(problem, 403, headers={"Connection": "close"})(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _problem(self, pem: str) -> str:
        if not pem:
            return "the client has sent no certificate"
        client = read_client_certificate(pem)
        # TLS has verified this when the connection was opened, which may have been days ago.
        if not client.begins <= self._now() < client.ends:
            return f"the certificate of the client {client.name!r} is not valid now"
        if self._names and self._names.isdisjoint(client.names):
            return f"the client {' or '.join(map(repr, client.names)) or 'without a name'} is not allowed to call"
        return ""
