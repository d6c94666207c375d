"""The documents: one for each version of each group, and an index that names them with their hashes.

A hash is taken from what a document is made of, not from the document, so that the index costs nothing; documents are
made when somebody asks for them, and kept as long as they hold.
"""

from __future__ import annotations

import hashlib
from typing import Any

from springtide.cluster.resources import Key, Object
from springtide.simulator.api.builtin import kubernetes_version
from springtide.simulator.api.definitions import DEFINITIONS
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.server import ApiServer
from springtide.simulator.http.answer import Answer, answered, encode
from springtide.simulator.http.openapi.paths import paths_of
from springtide.simulator.http.openapi.schemas import Schemas
from springtide.simulator.http.request import Request

_FOREVER = (("cache-control", "public"), ("expires", "Fri, 01 Jan 2100 00:00:00 GMT"))
_V2 = "application/com.github.proto-openapi.spec.v2"
_V2_ASKED, _V2_ANSWERED = f"{_V2}@v1.0+protobuf", f"{_V2}.v1.0+protobuf"


class OpenApi:
    """Publishes what is served."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._kept: dict[str, tuple[str, bytes]] = {}

    def answer(self, request: Request, parts: list[str]) -> Answer | None:
        """Answer a request for the index or a document; None for a path that is neither."""
        if parts == ["openapi", "v2"]:
            return _nothing_in_v2(request)
        if parts[:2] != ["openapi", "v3"]:
            return None
        groups = self._groups()
        place = "/".join(parts[2:])
        if not place:
            return answered({"paths": {each: {"serverRelativeURL": self._url(each, groups[each])} for each in groups}})
        kinds = groups.get(place)
        return None if kinds is None else self._document(request, place, kinds)

    def _groups(self) -> dict[str, list[ServedKind]]:
        groups: dict[str, list[ServedKind]] = {}
        for kind in self._server.catalogue.all():
            resource = kind.resource
            place = f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"
            groups.setdefault(place, []).append(kind)
        return groups

    def _url(self, place: str, kinds: list[ServedKind]) -> str:
        return f"/openapi/v3/{place}?hash={self._hash(kinds)}"

    def _hash(self, kinds: list[ServedKind]) -> str:
        made_of = [kubernetes_version()]
        for kind in kinds:
            definition = self._definition(kind)
            made_of.append(str(kind.resource))
            if definition is not None:
                metadata = definition["metadata"]
                made_of += metadata["uid"], str(metadata.get("generation")), str(definition["spec"]["names"])
        return hashlib.sha256("\n".join(made_of).encode()).hexdigest().upper()

    def _document(self, request: Request, place: str, kinds: list[ServedKind]) -> Answer:
        present = self._hash(kinds)
        headers = (("etag", f'"{present}"'), ("vary", "Accept"))
        asked = request.parameter("hash")
        if asked and asked != present:
            return Answer(b"", 301, headers=(("location", self._url(place, kinds)),))
        if request.header("if-none-match") == f'"{present}"':
            return Answer(b"", 304, headers=headers)
        kept = self._kept.get(place)
        if kept is None or kept[0] != present:
            kept = self._kept[place] = present, self._made(kinds)
        return Answer(kept[1], headers=(*headers, *(_FOREVER if asked else ())))

    def _made(self, kinds: list[ServedKind]) -> bytes:
        schemas = Schemas()
        paths: dict[str, Any] = {}
        for kind in kinds:
            definition = self._definition(kind)
            if definition is None:
                name = schemas.add_builtin(kind)
            else:
                name = schemas.add_custom(kind, definition)
            paths |= paths_of(kind, name)
        schemas.add_meta("meta.v1.DeleteOptions")
        return encode(
            {
                "openapi": "3.0.0",
                "info": {"title": "Kubernetes", "version": f"{kubernetes_version()}+springtide"},
                "paths": dict(sorted(paths.items())),
                "components": {"schemas": dict(sorted(schemas.found.items()))},
            }
        )

    def _definition(self, kind: ServedKind) -> Object | None:
        if kind.strategic:
            return None
        return self._server.find(DEFINITIONS, Key("", f"{kind.resource.plural}.{kind.resource.group}"))


def _nothing_in_v2(request: Request) -> Answer:
    """Give a document in the former language that describes nothing.

    kubectl looks there for kinds that no document of v3 has. Where it finds nothing it says that there is no such kind;
    where there is no document, it says that it cannot validate.
    """
    title, version = "Kubernetes", kubernetes_version()
    if _V2_ASKED not in request.header("accept"):
        return answered({"swagger": "2.0", "info": {"title": title, "version": version}, "paths": {}})
    info = _field(1, title.encode()) + _field(2, version.encode())
    return Answer(_field(1, b"2.0") + _field(2, info) + _field(8, b""), media=_V2_ANSWERED)


def _field(number: int, value: bytes) -> bytes:
    """Write a short text or message of protobuf."""
    return bytes((number << 3 | 2, len(value))) + value
