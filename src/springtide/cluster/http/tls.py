"""TLS contexts: whom we trust and what we show, made anew only when one of the two has changed."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from springtide.cluster.http.credentials import AccessError, Certificate, Content, read


@dataclass(frozen=True, slots=True)
class Trust:
    """How we make sure that the server is the one that is meant."""

    authority: Content | None = None
    """Certificates of authorities, in PEM; without them, those that the machine trusts."""
    insecure: bool = False
    """Whether any certificate will do."""
    server_name: str = ""
    """The name that the certificate must be for, where it is not that of the address."""


class TlsContexts:
    """The context for the next connection.

    Connections are kept by context, so that one that was made with an older certificate is not used with a newer one.
    """

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._made_from: tuple[bytes, Certificate | None] | None = None
        self._context: ssl.SSLContext | None = None

    def context(self, certificate: Certificate | None) -> ssl.SSLContext:
        """Give the context in which this certificate is shown."""
        authority = b"" if self._trust.authority is None else read(self._trust.authority)
        if self._context is None or self._made_from != (authority, certificate):
            self._context = _context(authority, certificate, insecure=self._trust.insecure)
            self._made_from = (authority, certificate)
        return self._context


def _context(authority: bytes, certificate: Certificate | None, *, insecure: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    except (ssl.SSLError, UnicodeDecodeError) as failure:
        raise AccessError(f"the certificate authority is not in PEM: {failure}") from failure
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Strict checks came with Python 3.13; certificate authorities of many clusters lack an extension that they demand,
    # and no other client of Kubernetes does.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _show(context, certificate)
    return context


def _show(context: ssl.SSLContext, certificate: Certificate) -> None:
    # The ssl module reads certificates from files only; the folder is readable by nobody else.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.touch(0o600)
        path.write_bytes(certificate.key.rstrip() + b"\n" + certificate.chain)
        try:
            context.load_cert_chain(path, password=_no_password)
        except (ssl.SSLError, ValueError) as failure:
            raise AccessError(f"the client certificate and its key do not make a pair in PEM: {failure}") from failure


def _no_password() -> str:
    raise ValueError("the key is encrypted")
