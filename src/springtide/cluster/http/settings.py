"""How patiently, and with how many connections, the HTTP transport talks to a server."""

from __future__ import annotations

from dataclasses import dataclass, field

from springtide.cluster.backoff import Backoff


@dataclass(frozen=True, slots=True)
class Retries:
    """When a request that failed without effect is sent again by the transport itself.

    Only what cannot be done twice is: reads, writes of which no byte has left, and writes that the server refused
    because it was busy. Everything else is for the caller, who can look at what has become of it.
    """

    attempts: int = 4
    """How often a request is sent at most; 1 means never again."""
    pauses: Backoff = field(default=Backoff(first=0.1, longest=5.0, jitter=1.0))
    """Pauses after failures in a row. The server may ask for longer ones."""
    patience: float = 20.0
    """Seconds after the first attempt at which no other is begun; a server that asks for a longer pause is not asked
    again, and its answer goes to the caller."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Limits of the HTTP transport. All times are of the wall: a simulation's clock does not hurry the network."""

    component: str = "springtide"
    """Who we are, in the User-Agent and so in the server's audit log."""
    connections: int = 64
    """Connections for requests at most. Watches have their own, as many as there are watches, and starve nobody."""
    connect: float = 10.0
    """Seconds for a connection to be made, the TLS handshake included."""
    request: float = 30.0
    """Seconds for a request and its answer."""
    listing: float = 120.0
    """Seconds for a list, whose answer may be hundreds of megabytes."""
    silence: float = 90.0
    """Seconds after which a watch that says nothing is ended, so that the next one shows whether the server is still
    there. Most servers send a bookmark about every minute."""
    overtime: float = 30.0
    """Seconds that a server may go on with a watch for after the time that it was asked for."""
    idle: float = 60.0
    """Seconds for which a connection is kept that nobody uses; servers keep theirs for longer."""
    largest: int = 512 * 1024 * 1024
    """Bytes of one answer, or of one event of a watch, beyond which it is refused."""
    retries: Retries = field(default=Retries())
