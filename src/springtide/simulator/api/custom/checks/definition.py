"""The definition around the schemas: its names, its versions, its subresources and columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from springtide.cluster.errors import Cause
from springtide.simulator.api.custom import wording
from springtide.simulator.api.custom.checks.openapi import judge_schema
from springtide.simulator.api.custom.checks.selectable import judge_selectable
from springtide.simulator.api.custom.checks.shape import judge_shape
from springtide.simulator.api.custom.kind_names import kind_name_problem
from springtide.simulator.api.names import subdomain_problem

_SCOPES: Final = ("Cluster", "Namespaced")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")


def judge_definition(name: str, spec: Any) -> tuple[Cause, ...]:
    """Find what is wrong with a definition."""
    spec = {} if spec is None else spec
    return tuple(judge_shape(spec)) or (*_judge_name(name, spec), *_judge_spec(spec))


def _judge_name(name: str, spec: Mapping[str, Any]) -> Iterator[Cause]:
    problems = [subdomain_problem(name)]
    if name != f"{_names(spec).get('plural', '')}.{spec.get('group', '')}":
        problems.append('must be spec.names.plural+"."+spec.group')
    yield from (wording.invalid("metadata.name", name, problem) for problem in problems if problem)


def _names(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    names: Mapping[str, Any] = spec.get("names") or {}
    return names


def _judge_spec(spec: Mapping[str, Any]) -> Iterator[Cause]:
    group = spec.get("group") or ""
    if not group:
        yield wording.required("spec.group")
    elif problem := subdomain_problem(group):
        yield wording.invalid("spec.group", group, problem)
    elif "." not in group:
        yield wording.invalid("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope") or ""
    if not scope:
        yield wording.required("spec.scope")
    elif scope not in _SCOPES:
        yield wording.unsupported("spec.scope", scope, _SCOPES)
    yield from _judge_versions(spec.get("versions") or ())
    yield from _judge_names(_names(spec))
    if spec.get("preserveUnknownFields") is True:
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield wording.invalid("spec.preserveUnknownFields", True, detail)
    yield from _judge_conversion(spec.get("conversion") or {})


def _judge_versions(versions: Sequence[Mapping[str, Any]]) -> Iterator[Cause]:
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        name = version.get("name") or ""
        if problem := kind_name_problem(name):
            yield wording.invalid(f"{path}.name", name, problem)
            if not index:
                yield wording.invalid("spec.version", name, problem)
        if version.get("deprecationWarning") is not None and not version.get("deprecated"):
            detail = "can only be set for deprecated versions"
            yield wording.invalid(f"{path}.deprecationWarning", version["deprecationWarning"], detail)
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield wording.required(f"{path}.schema.openAPIV3Schema")
    status = any((version.get("subresources") or {}).get("status") is not None for version in versions)
    for path, schema in _parts(versions, "schema", "spec.validation"):
        if schema.get("openAPIV3Schema"):
            yield from judge_schema(schema["openAPIV3Schema"], f"{path}.openAPIV3Schema", status=status)
    for path, subresources in _parts(versions, "subresources", "spec.subresources"):
        yield from _judge_scale(subresources.get("scale"), path)
    for path, columns in _parts(versions, "additionalPrinterColumns", "spec.additionalPrinterColumns"):
        for position, column in enumerate(columns):
            yield from _judge_column(column, f"{path}[{position}]")
    for path, fields in _parts(versions, "selectableFields", "spec.selectableFields"):
        index = 0 if path == "spec.selectableFields" else int(path.split("[")[1].split("]")[0])
        yield from judge_selectable(fields, versions[index].get("schema") or {}, path)
    names = [version.get("name") for version in versions]
    if len({*names}) != len(names):
        yield wording.invalid("spec.versions", wording.OMITTED, "must contain unique version names")
    if sum(version.get("storage") is True for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield wording.invalid("spec.versions", wording.OMITTED, detail)


def _parts(versions: Sequence[Mapping[str, Any]], key: str, shared: str) -> Iterator[tuple[str, Any]]:
    """Give a part of each version and its path; a part that all of them share is judged once, under its own path."""
    parts = [version.get(key) for version in versions]
    if parts and all(part and part == parts[0] for part in parts):
        yield shared, parts[0]
        return
    yield from ((f"spec.versions[{index}].{key}", part) for index, part in enumerate(parts) if part)


def _judge_names(names: Mapping[str, Any]) -> Iterator[Cause]:
    for key in ("plural", "kind"):
        if not names.get(key):
            yield wording.required(f"spec.names.{key}")
    for key in ("plural", "singular"):
        if names.get(key) and (problem := kind_name_problem(names[key])):
            yield wording.invalid(f"spec.names.{key}", names[key], problem)
    for key in ("kind", "listKind"):
        if names.get(key) and (problem := kind_name_problem(names[key].lower())):
            detail = f"may have mixed case, but should otherwise match: {problem}"
            yield wording.invalid(f"spec.names.{key}", names[key], detail)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield wording.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")
    for key in ("shortNames", "categories"):
        for index, name in enumerate(names.get(key) or ()):
            if problem := kind_name_problem(name):
                yield wording.invalid(f"spec.names.{key}[{index}]", name, problem)


def _judge_scale(scale: Mapping[str, Any] | None, path: str) -> Iterator[Cause]:
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
                yield wording.required(f"{path}.scale.{key}")
        elif not written.startswith("."):
            yield wording.invalid(f"{path}.scale.{key}", written, "must be a simple json path starting with .")
        elif not written.startswith(starts):
            under = starts[0].rstrip(".") if len(starts) == 1 else "either .spec or .status"
            yield wording.invalid(f"{path}.scale.{key}", written, f"should be a json path under {under}")


def _judge_column(column: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if not column.get("name"):
        yield wording.required(f"{path}.name")
    kinds = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column.get("type"):
        yield wording.required(f"{path}.type", kinds)
    elif column["type"] not in _COLUMN_TYPES:
        yield wording.invalid(f"{path}.type", column["type"], kinds)
    source = column.get("jsonPath") or ""
    if not source:
        yield wording.required(f"{path}.JSONPath")
    elif not source.startswith("."):
        yield wording.invalid(f"{path}.JSONPath", source, "must be a simple json path starting with .")


def _judge_conversion(conversion: Mapping[str, Any]) -> Iterator[Cause]:
    strategy = conversion.get("strategy") or "None"
    if strategy not in ("None", "Webhook"):
        yield wording.unsupported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif strategy == "None" and conversion.get("webhook") is not None:
        detail = "should not be set when strategy is not set to Webhook"
        yield wording.forbidden("spec.conversion.webhookClientConfig", detail)
    elif strategy == "Webhook" and not (conversion.get("webhook") or {}).get("clientConfig"):
        detail = "required when strategy is set to Webhook"
        yield wording.required("spec.conversion.webhookClientConfig", detail)
