"""What goes back to a client: a status line, headers, and a body that is there or still to be made.

What a client wants to be answered in, and what it speaks itself.

Answers are JSON, or YAML where a client asks for nothing else. Protobuf and CBOR are not spoken: clients that prefer
them name JSON as well, and get that.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from springtide.apis.yaml.dump import block_lines
from springtide.cluster.errors import ApiError, StatusDetails

if TYPE_CHECKING:
    from starlette.types import Send


JSON = "application/json"
YAML = "application/yaml"
Headers = tuple[tuple[str, str], ...]

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Response:
    """One response; a body of several chunks is sent as they come."""

    body: bytes | AsyncGenerator[bytes, None]
    code: int = 200
    media: str = JSON
    headers: Headers = field(default=())
    endless: bool = False
    """Whether it goes on for as long as the client listens."""

    async def send(self, send: Send, date: bytes) -> None:
        """Write it out."""
        headers = [(b"date", date), (b"content-type", self.media.encode()), (b"cache-control", b"no-cache, private")]
        headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in self.headers]
        start = {"type": "http.response.start", "status": self.code, "headers": headers}
        if isinstance(self.body, bytes):
            headers.append((b"content-length", str(len(self.body)).encode()))
            await send(start)
            await send({"type": "http.response.body", "body": self.body})
            return
        await send(start)
        async with aclosing(self.body) as chunks:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def in_yaml(self) -> Response:
        """Give the same answer in YAML; only what is JSON can be, and it is put together as a whole."""
        if self.endless or self.media != JSON or self.body == b"":
            return self
        if isinstance(self.body, bytes):
            whole = self.body
        else:
            async with aclosing(self.body) as chunks:
                whole = b"".join([chunk async for chunk in chunks])
        return replace(self, body=_yaml(msgspec.json.decode(whole)), media=YAML)


def json_response(value: Any, code: int = 200, *, headers: Headers = ()) -> Response:
    """Answer with a JSON value."""
    return Response(encode(value) + b"\n", code, headers=headers)


def error_response(error: ApiError, *, headers: Headers = ()) -> Response:
    """Answer with an error, as a `Status`."""
    if error.retry_after is not None:
        headers = (*headers, ("retry-after", str(int(-(-error.retry_after // 1)))))
    return json_response(error.status(), error.code, headers=(*headers, *warning_headers(error.warnings)))


def warning_headers(warnings: Iterable[str]) -> Headers:
    """Write warnings as the headers that kubectl shows."""
    return tuple(("warning", f"299 - {_quoted(text)}") for text in warnings)


def _yaml(value: Any) -> bytes:
    return "\n".join((*block_lines(_in_order(value)), "")).encode()


def _in_order(value: Any) -> Any:
    """Give a value with the fields of all objects by name, which is how YAML is written."""
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return [_in_order(part) for part in value] if isinstance(value, list) else value


def _quoted(text: str) -> str:
    flat = " ".join(text.splitlines())
    return '"' + flat.replace("\\", "\\\\").replace('"', '\\"') + '"'


_WHOLE = (JSON, YAML, "application/vnd.kubernetes.protobuf")
_STREAMED = tuple(f"{media};stream=watch" for media in (JSON, "application/vnd.kubernetes.protobuf"))
_JSON_RANGES = (JSON, "*/*")
_PROJECTIONS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_META_VERSIONS = ("v1", "v1beta1")


class NotAcceptable(ApiError):
    """The client accepts nothing that the server can write."""

    code = 406
    reason = "NotAcceptable"


class UnsupportedMedia(ApiError):
    """The client speaks something that the server cannot read."""

    code = 415
    reason = "UnsupportedMediaType"


@dataclass(frozen=True, slots=True)
class ResponseForm:
    """The form of an answer."""

    yaml: bool = False
    projection: str = ""
    """Empty for whole objects, else `Table` or one of the metadata-only kinds."""
    version: str = "v1"
    """The version of the projection."""


@dataclass(frozen=True, slots=True)
class AcceptClause:
    """One part of an Accept header."""

    media: str
    parameters: dict[str, str]
    quality: float


@lru_cache(maxsize=64)
def clauses(header: str) -> tuple[AcceptClause, ...]:
    """Take an Accept header apart, what is preferred first; clients send the same few ones over and over."""
    found = []
    for text in header.split(","):
        media, *rest = (part.strip() for part in text.split(";"))
        parameters = dict(part.partition("=")[::2] for part in rest)
        parameters = {name.strip().lower(): value.strip().strip('"') for name, value in parameters.items()}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 1.0
        if media:
            found.append(AcceptClause(media.lower(), parameters, quality))
    return tuple(sorted(found, key=lambda clause: -clause.quality))


def negotiate(header: str, *, watch: bool = False) -> ResponseForm:
    """Choose the form of an answer, or refuse."""
    if not header.strip():
        return ResponseForm()
    known = False
    for clause in clauses(header):
        json, yaml = clause.media in _JSON_RANGES, clause.media == YAML
        known = known or json or clause.media in _WHOLE
        if not json and (not yaml or watch):
            continue
        projection = clause.parameters.get("as", "")
        if not projection:
            return ResponseForm(yaml)
        group, version = clause.parameters.get("g", ""), clause.parameters.get("v", "")
        if projection in _PROJECTIONS and group == "meta.k8s.io" and version in _META_VERSIONS:
            return ResponseForm(yaml, projection, version)
    if not known:
        offered = ", ".join((*_WHOLE, *_STREAMED))
        raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {offered}", about=StatusDetails())
    offered = ", ".join(_STREAMED if watch else _WHOLE)
    raise NotAcceptable(f"only the following media types are accepted: {offered}")


def wants_yaml(header: str) -> bool:
    """Tell whether a client prefers YAML to JSON, whatever it asks for."""
    return next((clause.media == YAML for clause in clauses(header) if clause.media in (*_JSON_RANGES, YAML)), False)


def unsupported_media(*offered: str) -> UnsupportedMedia:
    """Refuse a body in a language that is not spoken here."""
    media = ", ".join(offered or _WHOLE)
    return UnsupportedMedia(f"the body of the request was in an unknown format - accepted media types include: {media}")
