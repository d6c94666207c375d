"""Responses of API servers: error responses become typed errors, lists and watch lines become items of a view.

Whole pages and whole runs of watch lines are decoded in one call, straight into the view of the selection; fields that
the view does not have cost next to nothing. There is one decoder for each view. An item that does not fit the view
raises `msgspec.ValidationError`.
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
"""Characters of an unknown response that an error message shows."""
_LONGEST_PAUSE = 600.0
"""The longest Retry-After, in seconds, that is respected; a longer one is a mistake, or due to a wrong clock."""


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: int | None = None


class StatusBody(msgspec.Struct):
    """The fields of a Status object."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(StatusBody)


def error_from_response(code: int, body: bytes, headers: Mapping[str, str], *, now: float) -> ApiError:
    """Return the error that a response without success means; `now` is for a Retry-After that is a date."""
    retry_after = _seconds(headers.get("Retry-After", ""), now)
    try:
        status = _STATUS.decode(body)
    except msgspec.DecodeError:
        status = StatusBody()
    if status.kind == "Status" and (status.message or status.reason):
        return error_from_status(status, code=code, retry_after=retry_after)
    return _class_of(code, "")(_described(code, body, headers), retry_after=retry_after, code=code)


def error_from_status(status: StatusBody, *, code: int = 0, retry_after: float | None = None) -> ApiError:
    """Return the error that a Status means; the Retry-After header takes precedence over its details."""
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
    """Describe a response that is not a Status: usually a web page of a proxy."""
    if 300 <= code < 400:
        place = headers.get("Location", "nowhere")
        return f"the server answers {code}, a redirection to {place}: this is not the address of an API server"
    text = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", body[: 64 * _EXCERPT].decode(errors="replace"))
    text = " ".join(text.split())
    excerpt = text if len(text) <= _EXCERPT else text[:_EXCERPT].rstrip() + "…"
    return f"the server answers {code}: {excerpt}" if excerpt else f"the server answers {code}, and nothing more"


def _seconds(retry_after: str, now: float) -> float | None:
    """Parse a Retry-After header: seconds, or a date."""
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
    """The decoders of one view."""

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
    """Decode one object."""
    try:
        return _OBJECT.decode(body)
    except msgspec.DecodeError as error:
        raise ServerError(f"the server's answer is not an object: {error}") from error


def page_of(body: bytes, selection: Selection) -> ListPage:
    """Decode a page of a list."""
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
    """Decode a page whose items lack apiVersion and kind, into a view that requires them.

    Servers leave them out in lists of built-in kinds. They are put in front of the fields of every item, so that those
    of the item itself, which follow, take precedence. `ValidationError` of an item that still does not fit is raised.
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
    """Decode whole lines of a watch, in order; an ERROR event is raised when its turn comes."""
    try:
        decoded = _decoders(view).lines.decode_lines(lines)
    except msgspec.DecodeError:
        # One line is malformed: yield the events before it first.
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
