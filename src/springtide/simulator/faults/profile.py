"""Fault profiles: how often each fault occurs, and how long it lasts; and the availability of the API server.

Faults stay within the contract of the Kubernetes API. A write may fail before or after it took effect, an answer may
be lost, a stream may break, lag or repeat events, history may be compacted, a process may crash or pause. But an
acknowledged write is stored, events of one stream are in order, and resourceVersions never go back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from springtide.cluster.errors import ConnectionLost


class Severity(StrEnum):
    """The names of the profiles."""

    NONE = "none"
    LIGHT = "light"
    HEAVY = "heavy"


@dataclass(frozen=True, slots=True)
class Faults:
    """Probabilities are for each request or stream; times are seconds of virtual time; 0 switches a fault off."""

    latency: float = 0.0
    """The longest usual travel time of a request or an answer."""
    slow: float = 0.0
    """How often a request takes up to `longest_travel` instead, perhaps longer than its sender waits for the answer."""
    longest_travel: float = 4.0
    """The longest from leaving to taking effect; leadership is safe while it is shorter than the lease's margin."""

    conflict: float = 0.0
    """A conditional write is refused with 409, as if another client had written first."""
    throttled: float = 0.0
    """429 with Retry-After."""
    failed_before: float = 0.0
    """500, 503 or a broken connection, before the request took effect."""
    failed_after: float = 0.0
    """500, a broken connection or a timeout, after the write took effect."""
    timeout_before: float = 0.0
    """The request has no effect, and no answer arrives."""

    cut: float = 0.0
    """A stream breaks, or ends, after up to `stream_life` seconds."""
    stream_life: float = 120.0
    lag: float = 0.0
    """How often a stream lags; drawn for each stream."""
    longest_lag: float = 0.0
    replay: float = 0.0
    """A stream starts at an older version than requested, and repeats events."""
    expired: float = 0.0
    """A watch, or a further page of a list, is answered with 410."""
    stale: float = 0.0
    """A list at version 0 shows an older state."""
    no_watch_list: float = 0.0
    """How often the API server does not support WatchList."""

    compact_every: float = 0.0
    """Mean time between compactions of the history."""
    outage_every: float = 0.0
    """Mean time between restarts of the API server: all streams break, and requests fail for a while."""
    longest_outage: float = 15.0
    crash_every: float = 0.0
    """Mean time between crashes of a process."""
    longest_downtime: float = 60.0
    pause_every: float = 0.0
    """Mean time between pauses of a process: none of its tasks run, while time passes."""
    longest_pause: float = 45.0
    node_loss_every: float = 0.0
    """Mean time between losses of a node, where the scenario has nodes."""
    longest_node_loss: float = 1200.0
    """The longest loss of a node, which may exceed the toleration of its pods."""

    @classmethod
    def of(cls, severity: Severity) -> Faults:
        """Return the profile of a name."""
        return _PROFILES[severity]

    def but(self, **changes: float) -> Faults:
        """Return a copy with some values changed."""
        return replace(self, **changes)


_LIGHT = Faults(
    latency=0.05,
    slow=0.005,
    conflict=0.01,
    throttled=0.01,
    failed_before=0.01,
    failed_after=0.005,
    timeout_before=0.002,
    cut=0.1,
    lag=0.1,
    longest_lag=5.0,
    replay=0.05,
    expired=0.02,
    stale=0.5,
    compact_every=3600.0,
    outage_every=86_400.0,
    crash_every=43_200.0,
    pause_every=43_200.0,
    node_loss_every=172_800.0,
)

_HEAVY = Faults(
    latency=0.5,
    slow=0.05,
    conflict=0.05,
    throttled=0.05,
    failed_before=0.05,
    failed_after=0.05,
    timeout_before=0.02,
    cut=0.7,
    lag=0.4,
    longest_lag=20.0,
    replay=0.3,
    expired=0.15,
    stale=0.8,
    no_watch_list=0.3,
    compact_every=60.0,
    outage_every=400.0,
    crash_every=200.0,
    pause_every=150.0,
    node_loss_every=3600.0,
)

_PROFILES = {Severity.NONE: Faults(), Severity.LIGHT: _LIGHT, Severity.HEAVY: _HEAVY}


class BreakableStream(Protocol):
    """A stream that a fault can break."""

    def break_off(self, failure: Exception | None) -> None:
        """End the stream now; with a failure, as if the connection broke."""
        ...


class ServerAvailability:
    """Whether the API server responds, and the open streams that a restart breaks; shared by all connections."""

    def __init__(self, faults: Faults, *, watch_list: bool = True) -> None:
        self.faults = faults
        self.is_calm = faults == Faults()
        """Whether faults at random times have ended."""
        self.down = False
        self.watch_list = watch_list
        # A dictionary, as a set that keeps the order of insertion.
        self._streams: dict[BreakableStream, None] = {}

    def opened(self, stream: BreakableStream) -> None:
        """Register an open stream."""
        self._streams[stream] = None

    def closed(self, stream: BreakableStream) -> None:
        """Unregister a stream."""
        self._streams.pop(stream, None)

    def go_down(self) -> None:
        """Stop responding and break all streams, like a server that restarts."""
        self.down = True
        for stream in list(self._streams):
            stream.break_off(ConnectionLost("the server closed the connection"))

    def come_up(self) -> None:
        """Respond again."""
        self.down = False

    def calm(self) -> None:
        """End all faults."""
        self.down = False
        self.faults = Faults()
        self.is_calm = True
