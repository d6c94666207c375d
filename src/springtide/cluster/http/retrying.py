"""Which requests the transport sends again by itself, and when."""

from __future__ import annotations

import math
from random import Random

from springtide.cluster.errors import ApiError, ClusterError, ServerError, TooManyRequests, TransportError
from springtide.cluster.http.settings import Retries

_VERSION_AHEAD = "ResourceVersionTooLarge"


class Persistence:
    """How often one request has been tried, and whether it is tried once more."""

    def __init__(self, retries: Retries, random: Random, *, began: float) -> None:
        self._retries = retries
        self._random = random
        self._began = began
        self._failures = 0

    def pause_after(self, error: ClusterError, *, repeatable: bool, now: float) -> float:
        """Give the seconds to wait before the next attempt, or infinity where there is none."""
        self._failures += 1
        if not repeatable or self._failures >= self._retries.attempts:
            return math.inf
        pause = self._retries.pauses.after(self._failures, luck=self._random.random())
        if isinstance(error, ApiError) and error.retry_after is not None:
            pause = max(pause, error.retry_after)
        return pause if now + pause - self._began <= self._retries.patience else math.inf


def can_be_read_again(error: ClusterError) -> bool:
    """Tell whether a read that failed so may go better the next time.

    A server that lags behind the version that is asked for has waited for it already; the caller can ask for less.
    """
    if isinstance(error, ApiError) and any(cause.reason == _VERSION_AHEAD for cause in error.causes):
        return False
    return isinstance(error, TransportError | ServerError | TooManyRequests)


def can_be_written_again(error: ClusterError, *, sent: bool, evicting: bool) -> bool:
    """Tell whether a write that failed so had certainly no effect, and may go better the next time.

    A busy server says when to come back. An eviction that is refused now is an answer: a disruption budget gave it.
    """
    if isinstance(error, TransportError):
        return not sent
    return isinstance(error, TooManyRequests) and error.retry_after is not None and not evicting
