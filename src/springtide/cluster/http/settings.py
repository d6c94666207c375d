"""How patiently, and with how many connections, the HTTP transport talks to a server.

Which requests the transport sends again by itself, and when.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

from springtide.cluster.clock import Backoff
from springtide.cluster.errors import ApiError, ClusterError, ServerError, TooManyRequests, TransportError


@dataclass(frozen=True, slots=True)
class RetrySettings:
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
    retries: RetrySettings = field(default=RetrySettings())


_VERSION_AHEAD = "ResourceVersionTooLarge"


class RetryBudget:
    """How often one request has been tried, and whether it is tried once more."""

    def __init__(self, retries: RetrySettings, random: Random, *, began: float) -> None:
        self._retries = retries
        self._random = random
        self._began = began
        self._failures = 0

    def pause_after(self, error: ClusterError, *, repeatable: bool, now: float) -> float:
        """Give the seconds to wait before the next attempt, or infinity where there is none."""
        self._failures += 1
        if not repeatable or self._failures >= self._retries.attempts:
            return math.inf
        pause = self._retries.pauses.after(self._failures, random=self._random.random())
        if isinstance(error, ApiError) and error.retry_after is not None:
            pause = max(pause, error.retry_after)
        return pause if now + pause - self._began <= self._retries.patience else math.inf


def is_read_retryable(error: ClusterError) -> bool:
    """Tell whether a read that failed so may go better the next time.

    A server that lags behind the version that is asked for has waited for it already; the caller can ask for less.
    """
    if isinstance(error, ApiError) and any(cause.reason == _VERSION_AHEAD for cause in error.causes):
        return False
    return isinstance(error, TransportError | ServerError | TooManyRequests)


def is_write_retryable(error: ClusterError, *, sent: bool, evicting: bool) -> bool:
    """Tell whether a write that failed so had certainly no effect, and may go better the next time.

    A busy server says when to come back. An eviction that is refused now is an answer: a disruption budget gave it.
    """
    if isinstance(error, TransportError):
        return not sent
    return isinstance(error, TooManyRequests) and error.retry_after is not None and not evicting
