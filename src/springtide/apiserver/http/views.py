"""Views: objects are written whole, as metadata only, or as rows of a table.

A view encodes single objects, parts of lists and lines of watches, always one object at a time, since this is the inner
loop of long responses. Most kinds are watched by several clients, so encoded events are cached, within a limit in
bytes.
"""

from __future__ import annotations

from typing import Any, Protocol

from springtide.apiserver.http.responses import encode
from springtide.apiserver.kinds import ServedKind
from springtide.cluster.errors import ApiError
from springtide.cluster.resources import Object
from springtide.cluster.transport import ListPage, WatchEvent, WatchEventType

_MAX_BYTES = 8 * 1024 * 1024

_META_GROUP = "meta.k8s.io"

CLOSING = b"]}\n"
"""The end of every list."""


class EventLineCache:
    """The encoded lines of the latest events."""

    def __init__(self) -> None:
        # The event is kept with its line, so that its id is not reused.
        self._lines: dict[int, tuple[WatchEvent, bytes]] = {}
        self._size = 0

    def line(self, event: WatchEvent) -> bytes:
        """Return the line of an event."""
        known = self._lines.get(id(event))
        if known is not None:
            return known[1]
        line = b'{"type":"' + event.change.encode() + b'","object":' + encode(event.object) + b"}\n"
        if self._size + len(line) > _MAX_BYTES:
            self._lines.clear()
            self._size = 0
        self._lines[id(event)] = event, line
        self._size += len(line)
        return line


class ObjectView(Protocol):
    """Encodes objects for a client."""

    def single(self, item: Object) -> bytes:
        """Encode one object."""
        ...

    def opening(self, page: ListPage) -> bytes:
        """Encode the start of a list, up to its first entry."""
        ...

    def entry(self, item: Object) -> bytes:
        """Encode an entry of a list, without a comma."""
        ...

    def change(self, event: WatchEvent) -> bytes:
        """Encode a watch event."""
        ...

    def initial(self, item: Object) -> bytes:
        """Encode the ADDED event of an existing object at the start of a watch."""
        ...


class WholeView:
    """Whole objects."""

    def __init__(self, kind: ServedKind, line_cache: EventLineCache) -> None:
        self._kind = kind
        self._line_cache = line_cache
        resource = kind.resource
        # Entries in lists of built-in kinds omit apiVersion and kind. Nearly all objects start with these, so they are
        # cut from the encoded bytes.
        self._identity = encode({"apiVersion": resource.api_version, "kind": resource.kind})[:-1] + b","
        self._omits_type = kind.strategic

    def single(self, item: Object) -> bytes:
        """Encode one object."""
        return encode(item) + b"\n"

    def opening(self, page: ListPage) -> bytes:
        """Encode the start of a list."""
        return _opening(self._kind.list_kind, self._kind.resource.api_version, page)

    def entry(self, item: Object) -> bytes:
        """Encode an entry of a list."""
        written = encode(item)
        if not self._omits_type:
            return written
        if written.startswith(self._identity):
            return b"{" + written[len(self._identity) :]
        return encode({name: value for name, value in item.items() if name not in ("apiVersion", "kind")})

    def change(self, event: WatchEvent) -> bytes:
        """Encode a watch event; the line is shared between watches."""
        return self._line_cache.line(event)

    def initial(self, item: Object) -> bytes:
        """Encode the ADDED event of an existing object."""
        return line(WatchEventType.ADDED, item)


class MetadataView:
    """The metadata of objects."""

    def __init__(self, version: str) -> None:
        self._version = f"{_META_GROUP}/{version}"

    def single(self, item: Object) -> bytes:
        """Encode the metadata of one object."""
        return self.entry(item) + b"\n"

    def opening(self, page: ListPage) -> bytes:
        """Encode the start of a list."""
        return _opening("PartialObjectMetadataList", self._version, page)

    def entry(self, item: Object) -> bytes:
        """Encode the metadata of a list entry."""
        return encode(self._reduced(item))

    def change(self, event: WatchEvent) -> bytes:
        """Encode a watch event."""
        return line(event.change, self._reduced(event.object))

    def initial(self, item: Object) -> bytes:
        """Encode the ADDED event of an existing object."""
        return line(WatchEventType.ADDED, self._reduced(item))

    def _reduced(self, item: Object) -> Object:
        return {"kind": "PartialObjectMetadata", "apiVersion": self._version, "metadata": item["metadata"]}


def line(change: str, item: Object) -> bytes:
    """Encode a line of a watch."""
    return encode({"type": str(change), "object": item}) + b"\n"


def failure_line(error: ApiError) -> bytes:
    """Encode the ERROR event that ends a watch."""
    return line("ERROR", error.status())


def list_metadata(page: ListPage) -> dict[str, Any]:
    """Return the metadata of a list."""
    metadata: dict[str, Any] = {"resourceVersion": page.version}
    if page.continue_:
        metadata["continue"] = page.continue_
    if page.remaining:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _opening(kind: str, version: str, page: ListPage) -> bytes:
    return encode({"kind": kind, "apiVersion": version, "metadata": list_metadata(page)})[:-1] + b',"items":['
