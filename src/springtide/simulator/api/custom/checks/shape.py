"""The form of a definition: that everything in it is of the type that it must be.

The other checks read a definition as freely as it is written; this one comes first and makes that safe. Schemas hold
schemas, so their place in the tree leads back to itself.
"""

from __future__ import annotations

from typing import Any, Final

from springtide.cluster.errors import Cause
from springtide.simulator.api.custom.places import Place
from springtide.simulator.api.custom.validation import validate


def _of(kind: str, **more: Any) -> Place:
    # A null is as good as nothing wherever a field may be left out.
    return Place(type=kind, nullable=True, **more)


def _object(**fields: Place) -> Place:
    return _of("object", properties=fields)


def _list(items: Place) -> Place:
    return _of("array", items=items)


_ENTRY: Final = Place(type="string")
_TEXT: Final = _of("string")
_FLAG: Final = _of("boolean")
_COUNT: Final = _of("integer")
_NUMBER: Final = _of("number")

_SCHEMA: Final = _of("object")
_SCHEMA_ENTRY: Final = Place(type="object")
_SCHEMA_MAP: Final = _of("object", values=_SCHEMA_ENTRY)
_RULE: Final = Place(
    type="object",
    properties=dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), _TEXT)
    | {"optionalOldSelf": _FLAG},
)
_SCHEMA.properties = _SCHEMA_ENTRY.properties = {
    **dict.fromkeys(("type", "format", "pattern", "title", "description", "id", "$ref"), _TEXT),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), _TEXT),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _COUNT),
    **dict.fromkeys(("nullable", "uniqueItems", "exclusiveMaximum", "exclusiveMinimum"), _FLAG),
    **dict.fromkeys((f"x-kubernetes-{name}" for name in ("int-or-string", "embedded-resource")), _FLAG),
    "x-kubernetes-preserve-unknown-fields": _FLAG,
    **dict.fromkeys(("required", "x-kubernetes-list-map-keys"), _list(_ENTRY)),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _list(_SCHEMA_ENTRY)),
    **dict.fromkeys(("properties", "patternProperties", "definitions"), _SCHEMA_MAP),
    "enum": _list(Place()),
    "not": _SCHEMA,
    "items": Place(any_of=(_SCHEMA, _list(_SCHEMA_ENTRY))),
    "additionalProperties": Place(any_of=(_SCHEMA, _FLAG)),
    "x-kubernetes-validations": _list(_RULE),
}

_COLUMN: Final = Place(type="object", properties=dict.fromkeys(("name", "type", "format", "jsonPath"), _TEXT))
_SCALE: Final = _object(specReplicasPath=_TEXT, statusReplicasPath=_TEXT, labelSelectorPath=_TEXT)
_VERSION: Final = Place(
    type="object",
    properties={
        "name": _TEXT,
        **dict.fromkeys(("served", "storage", "deprecated"), _FLAG),
        "deprecationWarning": _TEXT,
        "schema": _object(openAPIV3Schema=_SCHEMA),
        "subresources": _object(status=_of("object"), scale=_SCALE),
        "additionalPrinterColumns": _list(_COLUMN),
    },
)
_NAMES: Final = _of(
    "object",
    properties=dict.fromkeys(("plural", "singular", "kind", "listKind"), _TEXT)
    | dict.fromkeys(("shortNames", "categories"), _list(_ENTRY)),
)
_DEFINITION: Final = _object(
    spec=_of(
        "object",
        properties={
            **dict.fromkeys(("group", "scope"), _TEXT),
            "names": _NAMES,
            "versions": _list(_VERSION),
            "preserveUnknownFields": _FLAG,
            "conversion": _object(strategy=_TEXT, webhook=_object(clientConfig=_of("object"))),
        },
    )
)


def judge_shape(spec: Any) -> list[Cause]:
    """Find what in a definition is not of the type that it must be."""
    return validate(_DEFINITION, {"spec": spec})
