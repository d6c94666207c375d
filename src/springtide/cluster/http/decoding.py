"""Lists and watches, from bytes to items of a selection's view; one decoder for each view, made once.

Whole pages and whole runs of lines are decoded in one call, straight into the view: fields that it does not know cost
next to nothing. An item that does not fit the view raises `msgspec.ValidationError`, which is a matter between the
server and whoever wrote the view.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from springtide.cluster.errors import ConnectionLost, ServerError
from springtide.cluster.http.answers import Status, error_of_status
from springtide.cluster.port import Change, Event, Page
from springtide.cluster.resources import Object, Selection

T = TypeVar("T")


class _ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _Items(msgspec.Struct, Generic[T], gc=False):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[T] | None = None


class _Added(msgspec.Struct, Generic[T], tag_field="type", tag="ADDED", gc=False):
    object: T


class _Modified(msgspec.Struct, Generic[T], tag_field="type", tag="MODIFIED", gc=False):
    object: T


class _Deleted(msgspec.Struct, Generic[T], tag_field="type", tag="DELETED", gc=False):
    object: T


class _Bookmark(msgspec.Struct, tag_field="type", tag="BOOKMARK", gc=False):
    object: dict[str, Any]


class _Error(msgspec.Struct, tag_field="type", tag="ERROR", gc=False):
    object: Status


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


_CHANGES: dict[type[Any], Change] = {
    _Added: Change.ADDED,
    _Modified: Change.MODIFIED,
    _Deleted: Change.DELETED,
    _Bookmark: Change.BOOKMARK,
}
_TYPES = frozenset((*Change, "ERROR"))
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_RAW_ITEMS = msgspec.json.Decoder(_Items[msgspec.Raw])
_LINE = msgspec.json.Decoder(_Line)


class _Decoders(NamedTuple):
    """What reads lists and watches of one view."""

    item: msgspec.json.Decoder[Any]
    page: msgspec.json.Decoder[Any]
    lines: msgspec.json.Decoder[Any]


_DECODERS: dict[type[Any], _Decoders] = {}


def _decoders(view: type[Any]) -> _Decoders:
    made = _DECODERS.get(view)
    if made is None:
        lines = _Added[view] | _Modified[view] | _Deleted[view] | _Bookmark | _Error  # type: ignore[valid-type]
        page = _Items[view]  # type: ignore[valid-type]
        made = _DECODERS[view] = _Decoders(*map(msgspec.json.Decoder, (view, page, lines)))
    return made


def object_of(body: bytes) -> Object:
    """Read one object."""
    try:
        return _OBJECT.decode(body)
    except msgspec.DecodeError as error:
        raise ServerError(f"the server's answer is not an object: {error}") from error


def page_of(body: bytes, selection: Selection) -> Page:
    """Read a page of a list."""
    try:
        answer = _decoders(selection.view).page.decode(body)
    except msgspec.ValidationError as error:
        answer = _with_kinds_named(body, selection, error)
    except msgspec.DecodeError as error:
        raise _unreadable(selection, error) from error
    items = answer.items or []
    if selection.view is dict:
        for item in items:
            item.setdefault("apiVersion", selection.resource.api_version)
            item.setdefault("kind", selection.resource.kind)
    metadata = answer.metadata
    return Page(items, metadata.resource_version, metadata.continue_, metadata.remaining_item_count)


def _with_kinds_named(body: bytes, selection: Selection, misfit: msgspec.ValidationError) -> _Items[Any]:
    """Read a page whose items do not say what they are, into a view that wants to know.

    Servers leave it out in lists of built-in kinds. Every item gets it put in front; what an item says itself stands
    behind, and counts. An item that still does not fit is the caller's matter.
    """
    if selection.view is dict:
        raise _unreadable(selection, misfit) from misfit
    resource = selection.resource
    named = msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind})[:-1] + b","
    read_item = _decoders(selection.view).item.decode
    try:
        answer = _RAW_ITEMS.decode(body)
        items = [read_item(named + memoryview(item)[1:]) for item in answer.items or ()]
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        raise misfit from None
    return _Items(answer.metadata, items)


def _unreadable(selection: Selection, error: msgspec.DecodeError) -> ServerError:
    return ServerError(f"the server's list of {selection} cannot be read: {error}")


def events_of(lines: bytes, view: type[Any]) -> Iterator[Event]:
    """Read whole lines of a watch, in order; the server's own error among them is raised in its turn."""
    try:
        decoded = _decoders(view).lines.decode_lines(lines)
    except msgspec.DecodeError:
        # One of them is odd. Those before it are told first, as if each had come by itself.
        yield from _one_by_one(lines, view)
        return
    for line in decoded:
        change = _CHANGES.get(type(line))
        if change is None:
            raise error_of_status(line.object)
        yield Event(change, line.object)


def _one_by_one(lines: bytes, view: type[Any]) -> Iterator[Event]:
    decoder = _decoders(view).lines
    for line in lines.splitlines():
        if not line.strip():
            continue
        try:
            kind = _LINE.decode(line).type
        except msgspec.DecodeError as error:
            raise ConnectionLost(f"a line of the watch is not an event: {error}") from error
        if kind not in _TYPES:
            raise ConnectionLost(f"a line of the watch is of the type {kind!r}, which is unknown")
        try:
            event = decoder.decode(line)
        except msgspec.ValidationError as error:
            if view is not dict:
                raise
            raise ConnectionLost(f"an event of the watch cannot be read: {error}") from error
        change = _CHANGES.get(type(event))
        if change is None:
            raise error_of_status(event.object)
        yield Event(change, event.object)
