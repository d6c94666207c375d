"""The faults of single requests, drawn before a request leaves from the random source of its connection."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from springtide.cluster.errors import (
    ClusterError,
    Conflict,
    ConnectionLost,
    RequestTimeout,
    ServerError,
    TooManyRequests,
)
from springtide.simulator.faults.profile import Faults, ServerAvailability

_PATIENCE = (2.0, 10.0)
"""How long a client waits for an answer that never arrives."""


@dataclass(frozen=True, slots=True)
class RequestFault:
    """The delays of a request, and the error that it ends with, if any."""

    queued: float = 0.0
    """How long it waits before it leaves the process."""
    there: float = 0.0
    back: float = 0.0
    refused: ClusterError | None = None
    """The error of a request that takes no effect."""
    lost: ClusterError | None = None
    """The error that the client sees although the request took effect."""
    client_timeout: float | None = None
    """When the client times out although an answer is on its way."""


class RequestFaultSource:
    """Draws the faults of the requests of one connection."""

    def __init__(self, availability: ServerAvailability, random: Random) -> None:
        self._availability = availability
        self._random = random

    @property
    def faults(self) -> Faults:
        """The current fault profile."""
        return self._availability.faults

    def happens(self, probability: float) -> bool:
        """Return True with a probability."""
        return probability > 0 and self._random.random() < probability

    def up_to(self, most: float) -> float:
        """Draw a time from 0 to `most`."""
        return self._random.random() * most

    def below(self, most: int) -> int:
        """Draw a whole number from 0 to one less than `most`."""
        return self._random.randrange(most)

    def between(self, times: tuple[float, float]) -> float:
        """Draw a time from a range."""
        low, high = times
        return low + self.up_to(high - low)

    def draw(self, *, conditional: bool) -> RequestFault:
        """Draw the fault of a request; only a conditional write can fail with a conflict."""
        faults = self.faults
        queued, there, back = (self.up_to(faults.latency) for _ in range(3))
        refused: ClusterError | None = None
        lost: ClusterError | None = None
        client_timeout: float | None = None
        if self.happens(faults.slow):
            queued, there = self.up_to(faults.longest_travel), self.up_to(faults.longest_travel)
            if self.happens(0.5):
                client_timeout = self.up_to(faults.longest_travel)
        if conditional and self.happens(faults.conflict):
            refused = Conflict(
                "the object has been modified; please apply your changes to the latest version and try again"
            )
        elif self.happens(faults.throttled):
            refused = TooManyRequests("too many requests, please try again later", retry_after=1.0 + self.below(5))
        elif self.happens(faults.timeout_before):
            refused, back = RequestTimeout("nothing came back in time"), self.between(_PATIENCE)
        elif self.happens(faults.failed_before):
            refused = self._failure()
        elif self.happens(faults.failed_after):
            lost = self._failure()
            if self.happens(0.3):
                lost, back = RequestTimeout("nothing came back in time"), self.between(_PATIENCE)
        return RequestFault(queued, there, back, refused, lost, client_timeout)

    def _failure(self) -> ClusterError:
        match self.below(3):
            case 0:
                return ServerError("etcdserver: request timed out")
            case 1:
                return ServerError("apiserver not ready", reason="ServiceUnavailable")
            case _:
                return ConnectionLost("connection reset by peer")
