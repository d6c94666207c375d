"""Answers that say no: from what a server, or a proxy before it, wrote to the error that it means."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from springtide.cluster.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Cause,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnsupportedPatch,
)

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


class Status(msgspec.Struct):
    """What a server answers with when it does not answer with an object."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(Status)


def error_of(code: int, body: bytes, headers: Mapping[str, str], *, now: float) -> ApiError:
    """Tell what an answer that is no success means; `now` is for a Retry-After that names a date."""
    retry_after = _seconds(headers.get("Retry-After", ""), now)
    try:
        status = _STATUS.decode(body)
    except msgspec.DecodeError:
        status = Status()
    if status.kind == "Status" and (status.message or status.reason):
        return error_of_status(status, code=code, retry_after=retry_after)
    return _class_of(code, "")(_described(code, body, headers), retry_after=retry_after, code=code)


def error_of_status(status: Status, *, code: int = 0, retry_after: float | None = None) -> ApiError:
    """Tell what a `Status` means; the header of an answer goes before what its details say."""
    details = status.details or _Details()
    if retry_after is None and details.retry_after_seconds:
        retry_after = _bounded(details.retry_after_seconds)
    causes = tuple(Cause(cause.field, cause.message, cause.reason) for cause in details.causes or ())
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
