"""Responses, and content negotiation.

Responses are JSON, or YAML where a client accepts nothing else. Protobuf and CBOR are not supported: clients that
prefer them also accept JSON.
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

_WHOLE = (JSON, YAML, "application/vnd.kubernetes.protobuf")
_STREAMED = tuple(f"{media};stream=watch" for media in (JSON, "application/vnd.kubernetes.protobuf"))
_JSON_RANGES = (JSON, "*/*")
_PROJECTIONS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_META_VERSIONS = ("v1", "v1beta1")


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response; a body in several chunks is streamed."""

    body: bytes | AsyncGenerator[bytes, None]
    code: int = 200
    media: str = JSON
    headers: Headers = field(default=())
    endless: bool = False
    """Whether the stream lasts as long as the client listens."""

    async def send(self, send: Send, date: bytes) -> None:
        """Send the response."""
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
        """Return the same response in YAML; only JSON is converted, and the body is buffered."""
        if self.endless or self.media != JSON or self.body == b"":
            return self
        if isinstance(self.body, bytes):
            whole = self.body
        else:
            async with aclosing(self.body) as chunks:
                whole = b"".join([chunk async for chunk in chunks])
        return replace(self, body=_yaml(msgspec.json.decode(whole)), media=YAML)


def json_response(value: Any, code: int = 200, *, headers: Headers = ()) -> Response:
    """Return a JSON response."""
    return Response(encode(value) + b"\n", code, headers=headers)


def error_response(error: ApiError, *, headers: Headers = ()) -> Response:
    """Return an error as a `Status`."""
    if error.retry_after is not None:
        headers = (*headers, ("retry-after", str(int(-(-error.retry_after // 1)))))
    return json_response(error.status(), error.code, headers=(*headers, *warning_headers(error.warnings)))


def warning_headers(warnings: Iterable[str]) -> Headers:
    """Return warnings as headers, which kubectl prints."""
    return tuple(("warning", f"299 - {_quoted(text)}") for text in warnings)


def _yaml(value: Any) -> bytes:
    return "\n".join((*block_lines(_in_order(value)), "")).encode()


def _in_order(value: Any) -> Any:
    """Return a value with the fields of objects sorted, as in YAML responses."""
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return [_in_order(part) for part in value] if isinstance(value, list) else value


def _quoted(text: str) -> str:
    flat = " ".join(text.splitlines())
    return '"' + flat.replace("\\", "\\\\").replace('"', '\\"') + '"'


class NotAcceptable(ApiError):
    """The client accepts no supported media type."""

    code = 406
    reason = "NotAcceptable"


class UnsupportedMedia(ApiError):
    """The media type of the body is not supported."""

    code = 415
    reason = "UnsupportedMediaType"


@dataclass(frozen=True, slots=True)
class ResponseForm:
    """The negotiated form of a response."""

    yaml: bool = False
    projection: str = ""
    """Empty for whole objects, otherwise `Table` or one of the metadata-only kinds."""
    version: str = "v1"
    """The version of the projection."""


@dataclass(frozen=True, slots=True)
class AcceptClause:
    """One clause of an Accept header."""

    media: str
    parameters: dict[str, str]
    quality: float


@lru_cache(maxsize=64)
def clauses(header: str) -> tuple[AcceptClause, ...]:
    """Parse an Accept header, preferred clauses first; few different ones occur."""
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
    """Choose the form of a response, or refuse."""
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
    """Return whether a client prefers YAML to JSON."""
    return next((clause.media == YAML for clause in clauses(header) if clause.media in (*_JSON_RANGES, YAML)), False)


def unsupported_media(*offered: str) -> UnsupportedMedia:
    """Return the error for an unsupported media type."""
    media = ", ".join(offered or _WHOLE)
    return UnsupportedMedia(f"the body of the request was in an unknown format - accepted media types include: {media}")
