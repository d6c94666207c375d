"""Credentials for a server: an Authorization header, a client certificate, or both.

Credentials expire while the process runs, so the transport asks for them before every request. When the server
rejects them with 401, the transport asks once for newer ones. Files with tokens and certificates are read again when
they change.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from springtide.cluster.errors import ClusterError


class ChangingFile:
    """The content of a file, read again whenever the file has changed.

    A stat call costs microseconds, so the file is checked before every request, and the lifetime of a token need not
    be known. While a file is missing, as it may be while it is being replaced, its last content is used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = b""
        self._seen: tuple[int, int, int] | None = None

    def read(self, *, force: bool = False) -> bytes:
        """Return the content; `force` reads the file even if it looks unchanged."""
        try:
            found = self.path.stat()
            seen = (found.st_mtime_ns, found.st_ino, found.st_size)
            if force or seen != self._seen:
                self._content, self._seen = self.path.read_bytes(), seen
        except OSError:
            if self._seen is None:
                raise
        return self._content


class AccessError(ClusterError):
    """The configuration does not say how to reach a server or how to authenticate; the message says what to fix."""

    retriable = True  # a file or a plugin may be fixed while the process runs


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A client certificate and its key, in PEM."""

    chain: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Authentication:
    """What one request authenticates with."""

    authorization: str = field(default="", repr=False)
    """The value of the Authorization header."""
    certificate: ClientCertificate | None = None


class ClusterCredentials(Protocol):
    """A source of authentications."""

    async def authenticate(self) -> Authentication:
        """Return an authentication that should be valid now; raises `AccessError`."""
        ...

    async def renew(self, rejected: Authentication) -> bool:
        """Look for an authentication newer than a rejected one, and tell whether there is one."""
        ...


class ContentSource(Protocol):
    """Content of a file, or given inline in a configuration."""

    def read(self, *, force: bool = False) -> bytes:
        """Return the content."""
        ...


@dataclass(frozen=True, slots=True)
class InlineContent:
    """Content given inline in a configuration."""

    content: bytes = field(repr=False)

    def read(self, *, force: bool = False) -> bytes:  # noqa: ARG002 - it never changes
        """Return the content."""
        return self.content


class StaticCredentials:
    """A token, a password or a client certificate, given inline or in files that other programs keep up to date."""

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

    async def authenticate(self) -> Authentication:
        """Return the credentials as the files are now."""
        return self._read(force=False)

    async def renew(self, rejected: Authentication) -> bool:
        """Read the files again."""
        return self._read(force=True) != rejected

    def _read(self, *, force: bool) -> Authentication:
        certificate = None
        if self._certificate is not None:
            chain, key = self._certificate
            certificate = ClientCertificate(read_content(chain, force=force), read_content(key, force=force))
        return Authentication(self._authorization(force=force), certificate)

    def _authorization(self, *, force: bool) -> str:
        if self._token is not None:
            return bearer_header(read_content(self._token, force=force).decode(errors="replace"))
        if self._password is not None:
            return "Basic " + base64.b64encode(":".join(self._password).encode()).decode()
        return ""


def read_content(content: ContentSource, *, force: bool = False) -> bytes:
    """Read content that must be there."""
    try:
        return content.read(force=force)
    except OSError as failure:
        place = content.path if isinstance(content, ChangingFile) else "the configuration"
        raise AccessError(f"cannot read {place}: {failure.strerror}") from failure


def bearer_header(token: str) -> str:
    """Format a token as an Authorization header; surrounding white space is not part of it."""
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise AccessError("the token has characters that no token has: is it the right file?")
    return f"Bearer {token}" if token else ""
