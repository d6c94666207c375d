"""Settings of the HTTP transport: time limits, connections, and which requests are retried."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

from springtide.cluster.clock import Backoff
from springtide.cluster.errors import ApiError, ClusterError, ServerError, TooManyRequests, TransportError


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """When the transport retries a request that failed without effect.

    It retries reads, writes of which no byte was sent, and writes that a busy server refused: none of them can take
    effect twice. All other failures are raised, and the caller can read the object to see what became of the write.
    """

    attempts: int = 4
    """How often a request is sent at most; 1: no retries."""
    pauses: Backoff = field(default=Backoff(first=0.1, longest=5.0, jitter=1.0))
    """Pauses after failures in a row. The server may ask for longer ones."""
    max_elapsed: float = 20.0
    """Seconds after the first attempt beyond which no further one begins. Where the server asks for a longer pause,
    its answer is raised instead."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Limits of the HTTP transport. All times are wall time, whatever the speed of a simulated clock."""

    component: str = "springtide"
    """Part of the User-Agent, and so of the server's audit log."""
    connections: int = 64
    """The largest number of connections for requests. Every watch has a connection of its own besides."""
    connect: float = 10.0
    """Seconds for connecting, including the TLS handshake."""
    request: float = 30.0
    """Seconds for a request and its answer."""
    listing: float = 120.0
    """Seconds for a list, whose response may be hundreds of megabytes."""
    watch_read_timeout: float = 90.0
    """Seconds without any data after which a watch ends, so that the next one shows whether the server is reachable.
    Most servers send a bookmark about every minute."""
    watch_grace: float = 30.0
    """Seconds that a watch may last beyond the timeout it was started with."""
    idle: float = 60.0
    """Seconds for which an unused connection is kept; servers keep theirs for longer."""
    max_bytes: int = 512 * 1024 * 1024
    """The largest response, and the largest event of a watch, that is read."""
    retries: RetrySettings = field(default=RetrySettings())


_VERSION_AHEAD = "ResourceVersionTooLarge"


class RetryBudget:
    """The attempts of one request so far, and whether there is another one."""

    def __init__(self, retries: RetrySettings, random: Random, *, began: float) -> None:
        self._retries = retries
        self._random = random
        self._began = began
        self._failures = 0

    def pause_after(self, error: ClusterError, *, repeatable: bool, now: float) -> float:
        """Return the seconds to wait before the next attempt; infinity: there is none."""
        self._failures += 1
        if not repeatable or self._failures >= self._retries.attempts:
            return math.inf
        pause = self._retries.pauses.after(self._failures, random=self._random.random())
        if isinstance(error, ApiError) and error.retry_after is not None:
            pause = max(pause, error.retry_after)
        return pause if now + pause - self._began <= self._retries.max_elapsed else math.inf


def is_read_retryable(error: ClusterError) -> bool:
    """Return whether a failed read may succeed the next time.

    A server that lags behind the requested resourceVersion has waited for it already; the caller can request less.
    """
    if isinstance(error, ApiError) and any(cause.reason == _VERSION_AHEAD for cause in error.causes):
        return False
    return isinstance(error, TransportError | ServerError | TooManyRequests)


def is_write_retryable(error: ClusterError, *, sent: bool, evicting: bool) -> bool:
    """Return whether a failed write certainly had no effect, and may succeed the next time.

    A busy server says when to retry. A refused eviction is an answer: a PodDisruptionBudget does not allow it now.
    """
    if isinstance(error, TransportError):
        return not sent
    return isinstance(error, TooManyRequests) and error.retry_after is not None and not evicting
