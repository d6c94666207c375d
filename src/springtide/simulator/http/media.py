"""What a client wants to be answered in, and what it speaks itself.

Answers are JSON, or YAML where a client asks for nothing else. Protobuf and CBOR are not spoken: clients that prefer
them name JSON as well, and get that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from springtide.cluster.errors import About, ApiError
from springtide.simulator.http.answer import JSON, YAML

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
class Accepted:
    """The form of an answer."""

    yaml: bool = False
    projection: str = ""
    """Empty for whole objects, else `Table` or one of the metadata-only kinds."""
    version: str = "v1"
    """The version of the projection."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of an Accept header."""

    media: str
    parameters: dict[str, str]
    quality: float


@lru_cache(maxsize=64)
def clauses(header: str) -> tuple[Clause, ...]:
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
            found.append(Clause(media.lower(), parameters, quality))
    return tuple(sorted(found, key=lambda clause: -clause.quality))


def accepted(header: str, *, watch: bool = False) -> Accepted:
    """Choose the form of an answer, or refuse."""
    if not header.strip():
        return Accepted()
    known = False
    for clause in clauses(header):
        json, yaml = clause.media in _JSON_RANGES, clause.media == YAML
        known = known or json or clause.media in _WHOLE
        if not json and (not yaml or watch):
            continue
        projection = clause.parameters.get("as", "")
        if not projection:
            return Accepted(yaml)
        group, version = clause.parameters.get("g", ""), clause.parameters.get("v", "")
        if projection in _PROJECTIONS and group == "meta.k8s.io" and version in _META_VERSIONS:
            return Accepted(yaml, projection, version)
    if not known:
        offered = ", ".join((*_WHOLE, *_STREAMED))
        raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {offered}", about=About())
    offered = ", ".join(_STREAMED if watch else _WHOLE)
    raise NotAcceptable(f"only the following media types are accepted: {offered}")


def wants_yaml(header: str) -> bool:
    """Tell whether a client prefers YAML to JSON, whatever it asks for."""
    return next((clause.media == YAML for clause in clauses(header) if clause.media in (*_JSON_RANGES, YAML)), False)


def unsupported(*offered: str) -> UnsupportedMedia:
    """Refuse a body in a language that is not spoken here."""
    media = ", ".join(offered or _WHOLE)
    return UnsupportedMedia(f"the body of the request was in an unknown format - accepted media types include: {media}")
