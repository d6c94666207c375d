"""OpenAPI v3 documents, for `kubectl explain`, validation and editors.

There is one document per group version, and an index with their hashes. A hash is computed from the definitions, not
from the document, so the index is cheap; documents are generated on request and cached. Built-in types have no
descriptions.
"""

from __future__ import annotations

import hashlib
from typing import Any

from springtide.apiserver.builtin import kubernetes_version
from springtide.apiserver.builtin.schema import FieldType, KindData, field_type, load_builtin_data
from springtide.apiserver.definitions import DEFINITIONS
from springtide.apiserver.http.requests import HttpApiRequest
from springtide.apiserver.http.responses import Response, encode, json_response
from springtide.apiserver.kinds import ServedKind
from springtide.apiserver.server import ApiServer
from springtide.cluster.resources import Key, Object

_META = "io.k8s.apimachinery.pkg.apis.meta."
_PREFIXES = {
    "apiextensions.": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.",
    "apiregistration.": "io.k8s.kube-aggregator.pkg.apis.apiregistration.",
    "meta.": _META,
}
OBJECT_META = "meta.v1.ObjectMeta"

Schema = dict[str, Any]

_SCALARS: dict[str, Schema] = {
    # Not an empty schema: kubectl explains no field without a type.
    "any": {"type": "object"},
    "boolean": {"type": "boolean"},
    "int-or-string": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "string": {"type": "string"},
}
_OPAQUE = {"fieldsV1": "meta.v1.FieldsV1"}
"""Untyped fields that have a named type in Kubernetes."""
_IDENTITY: dict[str, Schema] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}

OpenApiOperation = dict[str, Any]

_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)

_TYPES = {
    **dict.fromkeys(("allowWatchBookmarks", "sendInitialEvents", "watch", "force", "orphanDependents"), "boolean"),
    **dict.fromkeys(("gracePeriodSeconds", "limit", "timeoutSeconds"), "integer"),
}
_VERBS = {
    # Method, action, parameters, and whether there is a body.
    "create": ("post", "post", _WRITE, True),
    "list": ("get", "list", _LIST, False),
    "deletecollection": ("delete", "deletecollection", _LIST + _DELETE, False),
    "get": ("get", "get", (), False),
    "update": ("put", "put", _WRITE, True),
    "patch": ("patch", "patch", (*_WRITE, "force"), True),
    "delete": ("delete", "delete", _DELETE, False),
}
_OF_COLLECTION = ("create", "list", "deletecollection")
_OF_SUBRESOURCE = ("get", "update", "patch")

_FOREVER = (("cache-control", "public"), ("expires", "Fri, 01 Jan 2100 00:00:00 GMT"))
_V2 = "application/com.github.proto-openapi.spec.v2"
_V2_ASKED, _V2_ANSWERED = f"{_V2}@v1.0+protobuf", f"{_V2}.v1.0+protobuf"


def builtin_name(type_: str) -> str:
    """Return the schema name of a built-in type such as `core.v1.Pod`."""
    for prefix, full in _PREFIXES.items():
        if type_.startswith(prefix):
            return full + type_.removeprefix(prefix)
    return f"io.k8s.api.{type_}"


def custom_name(group: str, version: str, kind: str) -> str:
    """Return the schema name of a custom kind: its group reversed, then version and kind."""
    return ".".join((*reversed(group.split(".")), version, kind))


def reference(name: str) -> dict[str, str]:
    """Refer to a schema of the same document."""
    return {"$ref": f"#/components/schemas/{name}"}


class OpenApiSchemas:
    """The schemas of one document, with all schemas that they refer to."""

    def __init__(self) -> None:
        self.found: dict[str, Schema] = {}
        self._types = load_builtin_data().types

    def add_builtin(self, kind: ServedKind) -> str:
        """Add a built-in kind and its list; returns the schema name."""
        data = _data_of(kind)
        self._add_type(data.type)
        name = builtin_name(data.type)
        self.found[name] = self.found[name] | {"x-kubernetes-group-version-kind": [gvk(kind)]}
        self._add_list(kind, name)
        return name

    def add_custom(self, kind: ServedKind, definition: Object) -> str:
        """Add a custom kind and its list; returns the schema name."""
        resource = kind.resource
        name = custom_name(resource.group, resource.version, resource.kind)
        versions = definition["spec"]["versions"]
        written = next(each for each in versions if each["name"] == resource.version)["schema"]["openAPIV3Schema"]
        self._add_type(OBJECT_META)
        properties = _IDENTITY | written.get("properties", {}) | {"metadata": reference(builtin_name(OBJECT_META))}
        self.found[name] = written | {"properties": properties, "x-kubernetes-group-version-kind": [gvk(kind)]}
        self._add_list(kind, name)
        return name

    def add_meta(self, type_: str) -> str:
        """Add a built-in type that is not a kind, if it exists."""
        if type_ in self._types:
            self._add_type(type_)
        else:
            self.found.setdefault(builtin_name(type_), {"type": "object"})
        return builtin_name(type_)

    def _add_list(self, kind: ServedKind, name: str) -> None:
        list_meta = self.add_meta("meta.v1.ListMeta")
        properties = _IDENTITY | {
            "metadata": reference(list_meta),
            "items": {"type": "array", "items": reference(name)},
        }
        self.found[f"{name}List"] = {
            "type": "object",
            "required": ["items"],
            "properties": properties,
            "x-kubernetes-group-version-kind": [gvk(kind) | {"kind": kind.list_kind}],
        }

    def _add_type(self, type_: str) -> None:
        name = builtin_name(type_)
        if name in self.found:
            return
        data = self._types[type_]
        schema: Schema = {"type": "object"}
        self.found[name] = schema
        # Registered before its fields are added, since types may be recursive.
        if data.fields:
            schema["properties"] = {
                field: self._field(field, field_type(given)) for field, given in data.fields.items()
            }
        if data.required:
            schema["required"] = list(data.required)
        if data.atomic:
            schema["x-kubernetes-map-type"] = "atomic"

    def _field(self, name: str, place: FieldType) -> Schema:
        if place.type == "any" and name in _OPAQUE:
            return reference(self.add_meta(_OPAQUE[name]))
        return self._place(place)

    def _place(self, place: FieldType) -> Schema:
        if place.type == "list":
            return self._list(place)
        if place.type == "map":
            return {"type": "object", "additionalProperties": self._place(field_type(place.of))}
        if not place.type.startswith("@"):
            return dict(_SCALARS[place.type])
        self._add_type(place.type[1:])
        return reference(builtin_name(place.type[1:]))

    def _list(self, place: FieldType) -> Schema:
        schema: Schema = {
            "type": "array",
            "items": self._place(field_type(place.of)),
            "x-kubernetes-list-type": place.list,
        }
        if place.keys:
            schema["x-kubernetes-list-map-keys"] = list(place.keys)
        if place.merge:
            schema["x-kubernetes-patch-strategy"] = "merge"
        if place.key:
            schema["x-kubernetes-patch-merge-key"] = place.key
        return schema


def gvk(kind: ServedKind) -> dict[str, str]:
    """Return the group, version and kind of the schema extension."""
    return {"group": kind.resource.group, "version": kind.resource.version, "kind": kind.resource.kind}


def _data_of(kind: ServedKind) -> KindData:
    resource = kind.resource
    return next(
        each
        for each in load_builtin_data().kinds
        if (each.group, each.version, each.plural) == (resource.group, resource.version, resource.plural)
    )


def paths_of(kind: ServedKind, schema: str) -> dict[str, Any]:
    """Return all paths of a kind."""
    resource = kind.resource
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    within = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
    collection, item = f"{within}/{resource.plural}", f"{within}/{resource.plural}/{{name}}"
    found = {
        collection: _operations(kind, schema, [verb for verb in kind.verbs if verb in _OF_COLLECTION]),
        item: _operations(kind, schema, [verb for verb in kind.verbs if verb in _VERBS and verb not in _OF_COLLECTION]),
    }
    if resource.namespaced:
        found[f"{root}/{resource.plural}"] = _operations(kind, schema, ["list"])
    for name in kind.subresources:
        if name in ("status", "scale"):
            found[f"{item}/{name}"] = _operations(kind, schema, _OF_SUBRESOURCE)
    return found


def _operations(kind: ServedKind, schema: str, verbs: Any) -> dict[str, OpenApiOperation]:
    made = {}
    for verb in verbs:
        method, action, parameters, sends = _VERBS[verb]
        answer = f"{schema}List" if verb in ("list", "deletecollection") else schema
        operation: OpenApiOperation = {
            "parameters": [_parameter(name) for name in parameters],
            "responses": {"200": {"description": "OK", "content": _content(("application/json",), answer)}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk(kind),
        }
        if sends:
            media = ("*/*",) if verb != "patch" else _PATCHES if kind.strategic else _PATCHES[:3]
            operation["requestBody"] = {"content": _content(media, schema), "required": True}
        made[method] = operation
    return made


def _parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True}}


def _content(media: tuple[str, ...], schema: str) -> dict[str, Any]:
    return {each: {"schema": reference(schema)} for each in media}


class OpenApi:
    """Serves OpenAPI documents."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._cache: dict[str, tuple[str, bytes]] = {}

    def answer(self, request: HttpApiRequest, parts: list[str]) -> Response | None:
        """Return the index or a document; None for other paths."""
        if parts == ["openapi", "v2"]:
            return _empty_v2(request)
        if parts[:2] != ["openapi", "v3"]:
            return None
        groups = self._groups()
        place = "/".join(parts[2:])
        if not place:
            return json_response(
                {"paths": {each: {"serverRelativeURL": self._url(each, groups[each])} for each in groups}}
            )
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

    def _document(self, request: HttpApiRequest, place: str, kinds: list[ServedKind]) -> Response:
        present = self._hash(kinds)
        headers = (("etag", f'"{present}"'), ("vary", "Accept"))
        asked = request.parameter("hash")
        if asked and asked != present:
            return Response(b"", 301, headers=(("location", self._url(place, kinds)),))
        if request.header("if-none-match") == f'"{present}"':
            return Response(b"", 304, headers=headers)
        cached = self._cache.get(place)
        if cached is None or cached[0] != present:
            cached = self._cache[place] = present, self._generate(kinds)
        return Response(cached[1], headers=(*headers, *(_FOREVER if asked else ())))

    def _generate(self, kinds: list[ServedKind]) -> bytes:
        schemas = OpenApiSchemas()
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


def _empty_v2(request: HttpApiRequest) -> Response:
    """Return an empty document of OpenAPI v2.

    kubectl looks there for kinds that no v3 document has. With an empty document it reports an unknown kind; without
    one, it reports that it cannot validate.
    """
    title, version = "Kubernetes", kubernetes_version()
    if _V2_ASKED not in request.header("accept"):
        return json_response({"swagger": "2.0", "info": {"title": title, "version": version}, "paths": {}})
    info = _field(1, title.encode()) + _field(2, version.encode())
    return Response(_field(1, b"2.0") + _field(2, info) + _field(8, b""), media=_V2_ANSWERED)


def _field(number: int, value: bytes) -> bytes:
    """Encode a short text or message field of protobuf."""
    return bytes((number << 3 | 2, len(value))) + value
