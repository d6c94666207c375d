"""Who we are to a server, and how we prove it: a header, a certificate, or both.

Proofs run out while we work, so they are asked for with every request. A server that does not accept one says so with
401; then whoever gave the proof is asked once whether there is a newer one.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Protocol

from springtide.cluster.errors import ClusterError
from springtide.cluster.http.files import ChangingFile


class AccessError(ClusterError):
    """We do not know how to reach a server, or how to prove who we are; the message says where and what to do."""

    retriable = True  # a file or a plugin may be mended while we run


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate and its key, in PEM."""

    chain: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Proof:
    """What one request shows to prove who sends it."""

    authorization: str = field(default="", repr=False)
    """The header of that name."""
    certificate: Certificate | None = None


class Credentials(Protocol):
    """Where proofs come from."""

    async def proof(self) -> Proof:
        """Give a proof that should be accepted now; `AccessError` where there is none."""
        ...

    async def renew(self, rejected: Proof) -> bool:
        """Look for something newer than a proof that was rejected, and tell whether there is."""
        ...


class Content(Protocol):
    """Something that stands in a file, or in a configuration itself."""

    def read(self, *, anew: bool = False) -> bytes:
        """Give the content."""
        ...


@dataclass(frozen=True, slots=True)
class Given:
    """Content that stands in a configuration itself."""

    content: bytes = field(repr=False)

    def read(self, *, anew: bool = False) -> bytes:  # noqa: ARG002 - it never changes
        """Give the content."""
        return self.content


class Known:
    """A token, a password or a certificate that we have, or that others keep fresh in a file for us."""

    def __init__(
        self,
        *,
        token: Content | None = None,
        password: tuple[str, str] | None = None,
        certificate: tuple[Content, Content] | None = None,
    ) -> None:
        self._token = token
        self._password = password
        self._certificate = certificate

    async def proof(self) -> Proof:
        """Give what we have, as the files are now."""
        return self._read(anew=False)

    async def renew(self, rejected: Proof) -> bool:
        """Read the files again."""
        return self._read(anew=True) != rejected

    def _read(self, *, anew: bool) -> Proof:
        certificate = None
        if self._certificate is not None:
            chain, key = self._certificate
            certificate = Certificate(read(chain, anew=anew), read(key, anew=anew))
        return Proof(self._authorization(anew=anew), certificate)

    def _authorization(self, *, anew: bool) -> str:
        if self._token is not None:
            return bearer(read(self._token, anew=anew).decode(errors="replace"))
        if self._password is not None:
            return "Basic " + base64.b64encode(":".join(self._password).encode()).decode()
        return ""


def read(content: Content, *, anew: bool = False) -> bytes:
    """Read content that must be there."""
    try:
        return content.read(anew=anew)
    except OSError as failure:
        place = content.path if isinstance(content, ChangingFile) else "the configuration"
        raise AccessError(f"cannot read {place}: {failure.strerror}") from failure


def bearer(token: str) -> str:
    """Write a token as a header; line ends around it are not part of it."""
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise AccessError("the token has characters that no token has: is it the right file?")
    return f"Bearer {token}" if token else ""
