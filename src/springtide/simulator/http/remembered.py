"""Lines of watches that have been written already, for the next watch that tells the same.

Watches of everything are told the very same event objects, and most kinds are watched by several clients. What is kept
is bounded in bytes: watches that keep up find the lines here, and one that lags behind has them written anew.
"""

from __future__ import annotations

from springtide.cluster.port import Event
from springtide.simulator.http.answer import encode

_MOST_BYTES = 8 * 1024 * 1024


class Remembered:
    """The lines of the latest events."""

    def __init__(self) -> None:
        # The event is kept with its line: as long as it is held, its identity belongs to nothing else.
        self._lines: dict[int, tuple[Event, bytes]] = {}
        self._size = 0

    def line(self, event: Event) -> bytes:
        """Give the line of an event."""
        known = self._lines.get(id(event))
        if known is not None:
            return known[1]
        line = b'{"type":"' + event.change.encode() + b'","object":' + encode(event.object) + b"}\n"
        if self._size + len(line) > _MOST_BYTES:
            self._lines.clear()
            self._size = 0
        self._lines[id(event)] = event, line
        self._size += len(line)
        return line
