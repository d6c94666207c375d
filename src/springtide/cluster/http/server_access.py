"""Where a server is, how it is reached, and who we are to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from springtide.cluster.http.credentials import Credentials, Known
from springtide.cluster.http.tls import Trust


@dataclass(frozen=True, slots=True)
class Access:
    """Everything that it takes to talk to one cluster."""

    server: str
    """The URL of the server, without a slash at its end; it may have a path."""
    origin: str = "given"
    """Where this was found, in words."""
    trust: Trust = field(default=Trust())
    credentials: Credentials = field(default_factory=Known)
    namespace: str = "default"
    """The namespace that is meant where none is named."""
    proxy: str = field(default="", repr=False)
    """The URL of the proxy that the server is reached through."""
    compress: bool = True
    """Whether long answers may come compressed, which costs less than a slow network does."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers that go with every request: on whose behalf we act."""
