"""Lines of watches that have been written already, for the next watch that tells the same.

Watches of everything are told the very same event objects, and most kinds are watched by several clients. What is kept
is bounded in bytes: watches that keep up find the lines here, and one that lags behind has them written anew.

How objects are shown: whole, as metadata only, or as rows of a table.

A view writes bytes: of one object, of a list in pieces, and of the lines of a watch. Lists and watches are long, and
this is their inner loop, so a view never builds more than one object at a time.
"""

from __future__ import annotations

from typing import Any, Protocol

from springtide.apiserver.http.responses import encode
from springtide.apiserver.kinds import ServedKind
from springtide.cluster.errors import ApiError
from springtide.cluster.resources import Object
from springtide.cluster.transport import ListPage, WatchEvent, WatchEventType

_MOST_BYTES = 8 * 1024 * 1024


class EventLineCache:
    """The lines of the latest events."""

    def __init__(self) -> None:
        # The event is kept with its line: as long as it is held, its identity belongs to nothing else.
        self._lines: dict[int, tuple[WatchEvent, bytes]] = {}
        self._size = 0

    def line(self, event: WatchEvent) -> bytes:
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


_META_GROUP = "meta.k8s.io"


class ObjectView(Protocol):
    """A way to show objects."""

    def single(self, item: Object) -> bytes:
        """Write one object by itself."""
        ...

    def opening(self, page: ListPage) -> bytes:
        """Write the beginning of a list, up to its first entry."""
        ...

    def entry(self, item: Object) -> bytes:
        """Write one entry of a list; commas are put between them by whoever asks."""
        ...

    def change(self, event: WatchEvent) -> bytes:
        """Write one line of a watch."""
        ...

    def beginning(self, item: Object) -> bytes:
        """Write the line of an object that was there before the watch began."""
        ...


CLOSING = b"]}\n"
"""How every list ends."""


class WholeView:
    """Objects as they are."""

    def __init__(self, kind: ServedKind, remembered: EventLineCache) -> None:
        self._kind = kind
        self._remembered = remembered
        resource = kind.resource
        # Entries of lists of built-in kinds do not say what they are, since the list does. Nearly all objects begin
        # with that, so it is cut from the bytes.
        self._identity = encode({"apiVersion": resource.api_version, "kind": resource.kind})[:-1] + b","
        self._anonymous = kind.strategic

    def single(self, item: Object) -> bytes:
        """Write one object."""
        return encode(item) + b"\n"

    def opening(self, page: ListPage) -> bytes:
        """Write the beginning of a list."""
        return _opening(self._kind.list_kind, self._kind.resource.api_version, page)

    def entry(self, item: Object) -> bytes:
        """Write an object within a list."""
        written = encode(item)
        if not self._anonymous:
            return written
        if written.startswith(self._identity):
            return b"{" + written[len(self._identity) :]
        return encode({name: value for name, value in item.items() if name not in ("apiVersion", "kind")})

    def change(self, event: WatchEvent) -> bytes:
        """Write a line of a watch; what several watches tell is written once."""
        return self._remembered.line(event)

    def beginning(self, item: Object) -> bytes:
        """Write the line of an object that was there before."""
        return line(WatchEventType.ADDED, item)


class MetadataView:
    """Objects without anything but their metadata."""

    def __init__(self, version: str) -> None:
        self._version = f"{_META_GROUP}/{version}"

    def single(self, item: Object) -> bytes:
        """Write the metadata of one object."""
        return self.entry(item) + b"\n"

    def opening(self, page: ListPage) -> bytes:
        """Write the beginning of a list."""
        return _opening("PartialObjectMetadataList", self._version, page)

    def entry(self, item: Object) -> bytes:
        """Write the metadata of an object within a list."""
        return encode(self._reduced(item))

    def change(self, event: WatchEvent) -> bytes:
        """Write a line of a watch."""
        return line(event.change, self._reduced(event.object))

    def beginning(self, item: Object) -> bytes:
        """Write the line of an object that was there before."""
        return line(WatchEventType.ADDED, self._reduced(item))

    def _reduced(self, item: Object) -> Object:
        return {"kind": "PartialObjectMetadata", "apiVersion": self._version, "metadata": item["metadata"]}


def line(change: str, item: Object) -> bytes:
    """Write one line of a watch."""
    return encode({"type": str(change), "object": item}) + b"\n"


def failure_line(error: ApiError) -> bytes:
    """Write the line with which a watch ends that cannot go on."""
    return line("ERROR", error.status())


def list_metadata(page: ListPage) -> dict[str, Any]:
    """Write the metadata of a list."""
    metadata: dict[str, Any] = {"resourceVersion": page.version}
    if page.continue_:
        metadata["continue"] = page.continue_
    if page.remaining:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _opening(kind: str, version: str, page: ListPage) -> bytes:
    return encode({"kind": kind, "apiVersion": version, "metadata": list_metadata(page)})[:-1] + b',"items":['
