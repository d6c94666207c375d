"""Validation of CustomResourceDefinitions: what the API server must rely on to serve the kinds that they define."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from springtide.apiserver import field_errors
from springtide.apiserver.custom.formats import kind_name_problem
from springtide.apiserver.custom.schema_validation import validate_schema
from springtide.apiserver.custom.structural_schema import SchemaNode
from springtide.apiserver.custom.validation import validate
from springtide.apiserver.names import subdomain_problem
from springtide.cluster.errors import StatusCause

_SCOPES: Final = ("Cluster", "Namespaced")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")


def _of(kind: str, **more: Any) -> SchemaNode:
    # Where a field is optional, null means the same as an absent field.
    return SchemaNode(type=kind, nullable=True, **more)


def _object(**fields: SchemaNode) -> SchemaNode:
    return _of("object", properties=fields)


def _list(items: SchemaNode) -> SchemaNode:
    return _of("array", items=items)


_ENTRY: Final = SchemaNode(type="string")
_TEXT: Final = _of("string")
_FLAG: Final = _of("boolean")
_COUNT: Final = _of("integer")
_NUMBER: Final = _of("number")

_SCHEMA: Final = _of("object")
_SCHEMA_ENTRY: Final = SchemaNode(type="object")
_SCHEMA_MAP: Final = _of("object", values=_SCHEMA_ENTRY)
_RULE: Final = SchemaNode(
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
    "enum": _list(SchemaNode()),
    "not": _SCHEMA,
    "items": SchemaNode(any_of=(_SCHEMA, _list(_SCHEMA_ENTRY))),
    "additionalProperties": SchemaNode(any_of=(_SCHEMA, _FLAG)),
    "x-kubernetes-validations": _list(_RULE),
}

_COLUMN: Final = SchemaNode(type="object", properties=dict.fromkeys(("name", "type", "format", "jsonPath"), _TEXT))
_SCALE: Final = _object(specReplicasPath=_TEXT, statusReplicasPath=_TEXT, labelSelectorPath=_TEXT)
_VERSION: Final = SchemaNode(
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


def validate_definition(name: str, spec: Any) -> tuple[StatusCause, ...]:
    """Return the causes for which a definition is rejected.

    Types are checked first, because all other checks, and the code that serves the kinds, rely on them.
    """
    spec = {} if spec is None else spec
    return tuple(validate(_DEFINITION, {"spec": spec})) or (*_validate_name(name, spec), *_validate_spec(spec))


def _validate_name(name: str, spec: Mapping[str, Any]) -> Iterator[StatusCause]:
    problems = [subdomain_problem(name)]
    if name != f"{_names(spec).get('plural', '')}.{spec.get('group', '')}":
        problems.append('must be spec.names.plural+"."+spec.group')
    yield from (field_errors.invalid("metadata.name", name, problem) for problem in problems if problem)


def _names(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    names: Mapping[str, Any] = spec.get("names") or {}
    return names


def _validate_spec(spec: Mapping[str, Any]) -> Iterator[StatusCause]:
    group = spec.get("group") or ""
    if not group:
        yield field_errors.required("spec.group")
    elif problem := subdomain_problem(group):
        yield field_errors.invalid("spec.group", group, problem)
    elif "." not in group:
        yield field_errors.invalid("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope") or ""
    if not scope:
        yield field_errors.required("spec.scope")
    elif scope not in _SCOPES:
        yield field_errors.unsupported("spec.scope", scope, *_SCOPES)
    yield from _validate_versions(spec.get("versions") or ())
    yield from _validate_names(_names(spec))
    if spec.get("preserveUnknownFields") is True:
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield field_errors.invalid("spec.preserveUnknownFields", True, detail)


def _validate_versions(versions: Sequence[Mapping[str, Any]]) -> Iterator[StatusCause]:
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        name = version.get("name") or ""
        if problem := kind_name_problem(name):
            yield field_errors.invalid(f"{path}.name", name, problem)
            if not index:
                yield field_errors.invalid("spec.version", name, problem)
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield field_errors.required(f"{path}.schema.openAPIV3Schema")
    for path, schema in _parts(versions, "schema", "spec.validation"):
        if schema.get("openAPIV3Schema"):
            yield from validate_schema(schema["openAPIV3Schema"], f"{path}.openAPIV3Schema")
    for path, subresources in _parts(versions, "subresources", "spec.subresources"):
        yield from _validate_scale(subresources.get("scale"), path)
    for path, columns in _parts(versions, "additionalPrinterColumns", "spec.additionalPrinterColumns"):
        for position, column in enumerate(columns):
            yield from _validate_column(column, f"{path}[{position}]")
    names = [version.get("name") for version in versions]
    if len({*names}) != len(names):
        yield field_errors.invalid("spec.versions", field_errors.OMITTED, "must contain unique version names")
    if sum(version.get("storage") is True for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield field_errors.invalid("spec.versions", field_errors.OMITTED, detail)


def _parts(versions: Sequence[Mapping[str, Any]], key: str, shared: str) -> Iterator[tuple[str, Any]]:
    """Yield a field of each version with its path. If all versions have the same value, it comes once, with a path of
    its own."""
    parts = [version.get(key) for version in versions]
    if parts and all(part and part == parts[0] for part in parts):
        yield shared, parts[0]
        return
    yield from ((f"spec.versions[{index}].{key}", part) for index, part in enumerate(parts) if part)


def _validate_names(names: Mapping[str, Any]) -> Iterator[StatusCause]:
    for key in ("plural", "kind"):
        if not names.get(key):
            yield field_errors.required(f"spec.names.{key}")
    for key in ("plural", "singular"):
        if names.get(key) and (problem := kind_name_problem(names[key])):
            yield field_errors.invalid(f"spec.names.{key}", names[key], problem)
    for key in ("kind", "listKind"):
        if names.get(key) and (problem := kind_name_problem(names[key].lower())):
            detail = f"may have mixed case, but should otherwise match: {problem}"
            yield field_errors.invalid(f"spec.names.{key}", names[key], detail)


def _validate_scale(scale: Mapping[str, Any] | None, path: str) -> Iterator[StatusCause]:
    if scale is None:
        return
    for key, starts in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        written = scale.get(key) or ""
        if not written:
            if key != "labelSelectorPath":
                yield field_errors.required(f"{path}.scale.{key}")
        elif not written.startswith("."):
            yield field_errors.invalid(f"{path}.scale.{key}", written, "must be a simple json path starting with .")
        elif not written.startswith(starts):
            under = starts[0].rstrip(".") if len(starts) == 1 else "either .spec or .status"
            yield field_errors.invalid(f"{path}.scale.{key}", written, f"should be a json path under {under}")


def _validate_column(column: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    if not column.get("name"):
        yield field_errors.required(f"{path}.name")
    kinds = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column.get("type"):
        yield field_errors.required(f"{path}.type", kinds)
    elif column["type"] not in _COLUMN_TYPES:
        yield field_errors.invalid(f"{path}.type", column["type"], kinds)
    source = column.get("jsonPath") or ""
    if not source:
        yield field_errors.required(f"{path}.JSONPath")
    elif not source.startswith("."):
        yield field_errors.invalid(f"{path}.JSONPath", source, "must be a simple json path starting with .")
