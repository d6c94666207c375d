"""The schemas of types: built-in ones from the data that also judges them, custom ones from their CRDs.

Built-in types come without descriptions: what their fields mean is told by the documentation of Kubernetes.
"""

from __future__ import annotations

from typing import Any

from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.data import KindData, Place, load, place_of
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.http.openapi.naming import OBJECT_META, builtin_name, custom_name, reference

Schema = dict[str, Any]

_SCALARS: dict[str, Schema] = {
    # Not nothing at all: kubectl explains no field that has no type.
    "any": {"type": "object"},
    "boolean": {"type": "boolean"},
    "int-or-string": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "string": {"type": "string"},
}
_OPAQUE = {"fieldsV1": "meta.v1.FieldsV1"}
"""Fields with anything in them whose types have names that people know."""
_IDENTITY: dict[str, Schema] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}


class Schemas:
    """The schemas of one document, with everything that they refer to."""

    def __init__(self) -> None:
        self.found: dict[str, Schema] = {}
        self._types = load().types

    def add_builtin(self, kind: ServedKind) -> str:
        """Add a built-in kind and the list of it; gives the name of its schema."""
        data = _data_of(kind)
        self._add_type(data.type)
        name = builtin_name(data.type)
        self.found[name] = self.found[name] | {"x-kubernetes-group-version-kind": [gvk(kind)]}
        self._add_list(kind, name)
        return name

    def add_custom(self, kind: ServedKind, definition: Object) -> str:
        """Add a custom kind and the list of it; gives the name of its schema."""
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
        """Add a built-in type that is no kind of its own, if there is such a type."""
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
        # Entered before its fields are: a type whose fields lead back to it finds itself.
        if data.fields:
            schema["properties"] = {field: self._field(field, place_of(given)) for field, given in data.fields.items()}
        if data.required:
            schema["required"] = list(data.required)
        if data.atomic:
            schema["x-kubernetes-map-type"] = "atomic"

    def _field(self, name: str, place: Place) -> Schema:
        if place.type == "any" and name in _OPAQUE:
            return reference(self.add_meta(_OPAQUE[name]))
        return self._place(place)

    def _place(self, place: Place) -> Schema:
        if place.type == "list":
            return self._list(place)
        if place.type == "map":
            return {"type": "object", "additionalProperties": self._place(place_of(place.of))}
        if not place.type.startswith("@"):
            return dict(_SCALARS[place.type])
        self._add_type(place.type[1:])
        return reference(builtin_name(place.type[1:]))

    def _list(self, place: Place) -> Schema:
        schema: Schema = {
            "type": "array",
            "items": self._place(place_of(place.of)),
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
    """Name a kind as the extensions of documents do."""
    return {"group": kind.resource.group, "version": kind.resource.version, "kind": kind.resource.kind}


def _data_of(kind: ServedKind) -> KindData:
    resource = kind.resource
    return next(
        each
        for each in load().kinds
        if (each.group, each.version, each.plural) == (resource.group, resource.version, resource.plural)
    )
