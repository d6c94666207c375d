"""What all connections of a world share: whether the server answers at all, and which streams are open."""

from __future__ import annotations

from typing import Protocol

from springtide.cluster.errors import ConnectionLost
from springtide.simulator.faults.profile import Faults


class Breakable(Protocol):
    """A stream that can be broken from outside."""

    def break_off(self, failure: Exception | None) -> None:
        """End the stream where it stands; with a failure, as if the connection broke."""
        ...


class Weather:
    """The state of the network between the processes and the server."""

    def __init__(self, faults: Faults, *, watch_list: bool = True) -> None:
        self.faults = faults
        self.is_calm = faults == Faults()
        """Whether nothing goes wrong by itself."""
        self.down = False
        self.watch_list = watch_list
        # A dictionary is a set in the order of arrival: whoever came first is told first.
        self._streams: dict[Breakable, None] = {}

    def opened(self, stream: Breakable) -> None:
        """Remember an open stream."""
        self._streams[stream] = None

    def closed(self, stream: Breakable) -> None:
        """Forget a stream."""
        self._streams.pop(stream, None)

    def go_down(self) -> None:
        """Stop answering, and break every stream, as a server does that is restarted."""
        self.down = True
        for stream in list(self._streams):
            stream.break_off(ConnectionLost("the server went away"))

    def come_up(self) -> None:
        """Answer again."""
        self.down = False

    def calm(self) -> None:
        """Let everything go well from now on."""
        self.down = False
        self.faults = Faults()
        self.is_calm = True
