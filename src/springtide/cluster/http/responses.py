"""Answers that say no: from what a server, or a proxy before it, wrote to the error that it means.

Lists and watches, from bytes to items of a selection's view; one decoder for each view, made once.

Whole pages and whole runs of lines are decoded in one call, straight into the view: fields that it does not know cost
next to nothing. An item that does not fit the view raises `msgspec.ValidationError`, which is a matter between the
server and whoever wrote the view.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from springtide.cluster.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    ConnectionLost,
    Forbidden,
    Gone,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ServerError,
    StatusCause,
    TooManyRequests,
    Unauthorized,
    UnsupportedPatch,
)
from springtide.cluster.resources import Object, Selection
from springtide.cluster.transport import ListPage, WatchEvent, WatchEventType

_BY_CODE: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    408: ServerError,
    409: Conflict,
    410: Gone,
    415: UnsupportedPatch,
    422: Invalid,
    429: TooManyRequests,
}
_EXCERPT = 200
"""Characters of an answer that is not ours to understand, which are shown."""
_LONGEST_PAUSE = 600.0
"""Seconds: a server that asks to be left alone for longer is mistaken, or its clock is, and is asked again then."""


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: int | None = None


class StatusBody(msgspec.Struct):
    """What a server answers with when it does not answer with an object."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(StatusBody)


def error_from_response(code: int, body: bytes, headers: Mapping[str, str], *, now: float) -> ApiError:
    """Tell what an answer that is no success means; `now` is for a Retry-After that names a date."""
    retry_after = _seconds(headers.get("Retry-After", ""), now)
    try:
        status = _STATUS.decode(body)
    except msgspec.DecodeError:
        status = StatusBody()
    if status.kind == "Status" and (status.message or status.reason):
        return error_from_status(status, code=code, retry_after=retry_after)
    return _class_of(code, "")(_described(code, body, headers), retry_after=retry_after, code=code)


def error_from_status(status: StatusBody, *, code: int = 0, retry_after: float | None = None) -> ApiError:
    """Tell what a `Status` means; the header of an answer goes before what its details say."""
    details = status.details or _Details()
    if retry_after is None and details.retry_after_seconds:
        retry_after = _bounded(details.retry_after_seconds)
    causes = tuple(StatusCause(cause.field, cause.message, cause.reason) for cause in details.causes or ())
    code = code or status.code or ServerError.code
    message = status.message or status.reason
    return _class_of(code, status.reason)(
        message, causes=causes, retry_after=retry_after, reason=status.reason, code=code
    )


def _class_of(code: int, reason: str) -> type[ApiError]:
    if code == 409 and reason == AlreadyExists.reason:
        return AlreadyExists
    if known := _BY_CODE.get(code):
        return known
    return BadRequest if 400 <= code < 500 else ServerError


def _described(code: int, body: bytes, headers: Mapping[str, Any]) -> str:
    """Say what came instead of an answer of an API server: usually a page that a proxy has made for people."""
    if 300 <= code < 400:
        place = headers.get("Location", "nowhere")
        return f"the server answers {code}, a redirection to {place}: this is not the address of an API server"
    text = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", body[: 64 * _EXCERPT].decode(errors="replace"))
    text = " ".join(text.split())
    excerpt = text if len(text) <= _EXCERPT else text[:_EXCERPT].rstrip() + "…"
    return f"the server answers {code}: {excerpt}" if excerpt else f"the server answers {code}, and nothing more"


def _seconds(retry_after: str, now: float) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - now
        except ValueError:
            return None
    return _bounded(seconds) if math.isfinite(seconds) else None


def _bounded(seconds: float) -> float:
    return float(min(max(0.0, seconds), _LONGEST_PAUSE))


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
    object: StatusBody


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


_CHANGES: dict[type[Any], WatchEventType] = {
    _Added: WatchEventType.ADDED,
    _Modified: WatchEventType.MODIFIED,
    _Deleted: WatchEventType.DELETED,
    _Bookmark: WatchEventType.BOOKMARK,
}
_TYPES = frozenset((*WatchEventType, "ERROR"))
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


def page_of(body: bytes, selection: Selection) -> ListPage:
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
    return ListPage(items, metadata.resource_version, metadata.continue_, metadata.remaining_item_count)


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


def events_of(lines: bytes, view: type[Any]) -> Iterator[WatchEvent]:
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
            raise error_from_status(line.object)
        yield WatchEvent(change, line.object)


def _one_by_one(lines: bytes, view: type[Any]) -> Iterator[WatchEvent]:
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
            raise error_from_status(event.object)
        yield WatchEvent(change, event.object)
