"""Files that others replace while we run: tokens and certificates.

Who we are to a server, and how we prove it: a header, a certificate, or both.

Proofs run out while we work, so they are asked for with every request. A server that does not accept one says so with
401; then whoever gave the proof is asked once whether there is a newer one.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from springtide.cluster.errors import ClusterError


class ChangingFile:
    """The content of a file, read again whenever the file has changed.

    Looking costs microseconds, so everybody looks with every request, and nobody has to guess how long a token lasts.
    A file that is away for a moment, while it is being replaced, is taken as it was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = b""
        self._seen: tuple[int, int, int] | None = None

    def read(self, *, anew: bool = False) -> bytes:
        """Give the content; `anew` where the file is suspected to have changed although it looks the same."""
        try:
            found = self.path.stat()
            seen = (found.st_mtime_ns, found.st_ino, found.st_size)
            if anew or seen != self._seen:
                self._content, self._seen = self.path.read_bytes(), seen
        except OSError:
            if self._seen is None:
                raise
        return self._content


class AccessError(ClusterError):
    """We do not know how to reach a server, or how to prove who we are; the message says where and what to do."""

    retriable = True  # a file or a plugin may be mended while we run


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A client certificate and its key, in PEM."""

    chain: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Authentication:
    """What one request shows to prove who sends it."""

    authorization: str = field(default="", repr=False)
    """The header of that name."""
    certificate: ClientCertificate | None = None


class ClusterCredentials(Protocol):
    """Where proofs come from."""

    async def proof(self) -> Authentication:
        """Give a proof that should be accepted now; `AccessError` where there is none."""
        ...

    async def renew(self, rejected: Authentication) -> bool:
        """Look for something newer than a proof that was rejected, and tell whether there is."""
        ...


class ContentSource(Protocol):
    """Something that stands in a file, or in a configuration itself."""

    def read(self, *, anew: bool = False) -> bytes:
        """Give the content."""
        ...


@dataclass(frozen=True, slots=True)
class InlineContent:
    """Content that stands in a configuration itself."""

    content: bytes = field(repr=False)

    def read(self, *, anew: bool = False) -> bytes:  # noqa: ARG002 - it never changes
        """Give the content."""
        return self.content


class StaticCredentials:
    """A token, a password or a certificate that we have, or that others keep fresh in a file for us."""

    def __init__(
        self,
        *,
        token: ContentSource | None = None,
        password: tuple[str, str] | None = None,
        certificate: tuple[ContentSource, ContentSource] | None = None,
    ) -> None:
        self._token = token
        self._password = password
        self._certificate = certificate

    async def proof(self) -> Authentication:
        """Give what we have, as the files are now."""
        return self._read(anew=False)

    async def renew(self, rejected: Authentication) -> bool:
        """Read the files again."""
        return self._read(anew=True) != rejected

    def _read(self, *, anew: bool) -> Authentication:
        certificate = None
        if self._certificate is not None:
            chain, key = self._certificate
            certificate = ClientCertificate(read_content(chain, anew=anew), read_content(key, anew=anew))
        return Authentication(self._authorization(anew=anew), certificate)

    def _authorization(self, *, anew: bool) -> str:
        if self._token is not None:
            return bearer_header(read_content(self._token, anew=anew).decode(errors="replace"))
        if self._password is not None:
            return "Basic " + base64.b64encode(":".join(self._password).encode()).decode()
        return ""


def read_content(content: ContentSource, *, anew: bool = False) -> bytes:
    """Read content that must be there."""
    try:
        return content.read(anew=anew)
    except OSError as failure:
        place = content.path if isinstance(content, ChangingFile) else "the configuration"
        raise AccessError(f"cannot read {place}: {failure.strerror}") from failure


def bearer_header(token: str) -> str:
    """Write a token as a header; line ends around it are not part of it."""
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise AccessError("the token has characters that no token has: is it the right file?")
    return f"Bearer {token}" if token else ""
