"""From a CustomResourceDefinition to the kinds that it serves.

A definition is compiled once per content, not once per server, so that many simulated clusters in one process share the
compiled schemas. Nothing in them depends on a server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final

import msgspec

from springtide.apiserver import field_errors
from springtide.apiserver.custom.cel import RuleNode, compile_rules, evaluate_rules
from springtide.apiserver.custom.correlation import validate_list_types
from springtide.apiserver.custom.defaulting import apply_defaults, prune, validate_embedded
from springtide.apiserver.custom.definition_validation import validate_definition
from springtide.apiserver.custom.structural_schema import SchemaNode, merge_structure, read_schema
from springtide.apiserver.custom.validation import fast_validator, validate
from springtide.apiserver.kinds import ScalePaths, ServedKind, StructureNode
from springtide.cluster.errors import Invalid, StatusCause, StatusDetails
from springtide.cluster.resources import Object, Resource

_MAX_REPLICAS = 2**31 - 1


def validate_scale(value: Object, paths: ScalePaths) -> Iterator[StatusCause]:
    """Yield what is wrong with the replicas and the selector of an object with a scale subresource."""
    for path in (paths.spec, paths.status):
        count, problem = _read(value, path, int, "int64")
        if problem:
            yield field_errors.invalid(path, 0, problem)
        elif count is not None and count < 0:
            yield field_errors.invalid(path, count, "should be a non-negative integer")
        elif count is not None and count > _MAX_REPLICAS:
            yield field_errors.invalid(path, count, f"should be less than or equal to {_MAX_REPLICAS}")
    if paths.selector:
        _, problem = _read(value, paths.selector, str, "string")
        if problem:
            yield field_errors.invalid(paths.selector, "", problem)


def _read(value: Any, path: str, expected: type, name: str) -> tuple[Any, str]:
    """Follow a path; return the value, or what is wrong with it."""
    steps = path.removeprefix(".").split(".")
    for index, step in enumerate(steps):
        if not isinstance(value, dict):
            here = ".".join(["", *steps[: index + 1]])
            return None, f"{here} accessor error: {field_errors.format_value(value)} is not a map"
        if step not in value:
            return None, ""
        value = value[step]
    if not isinstance(value, expected) or isinstance(value, bool):
        return None, f"{path} accessor error: {field_errors.format_value(value)} is not of the type {name}"
    return value, ""


_BLOCKING: Final = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
"""Reasons of causes after which rules are not evaluated, because their operands may have wrong types."""

_RULES_NOT_CHECKED: Final = StatusCause(
    field_errors.NO_PATH,
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)


class CompiledSchema:
    """The schema of one version of a custom resource. Its parts are compiled on first use."""

    def __init__(self, node: SchemaNode) -> None:
        self.node = node

    @cached_property
    def structure(self) -> StructureNode:
        """The structure that patches and managed fields use."""
        return merge_structure(self.node)

    @cached_property
    def _accepts(self) -> Any:
        return fast_validator(self.node)

    @cached_property
    def _rules(self) -> RuleNode | None:
        return compile_rules(self.node, root=True)

    def prune(self, value: Object) -> Object:
        """Remove undeclared fields, and nulls that are not allowed, in place."""
        prune(value, self.node)
        return value

    def apply_defaults(self, value: Object) -> Object:
        """Apply defaults in place."""
        apply_defaults(value, self.node)
        return value

    def validate(self, new: Object, old: Object | None) -> tuple[StatusCause, ...]:
        """Validate an object, given the stored one; returns the causes for which it is rejected."""
        causes: list[StatusCause] = [] if self._accepts(new) else validate(self.node, new, old)
        causes += validate_embedded(new, self.node)
        # A list with duplicates in the stored object may keep them.
        if duplicates := [*validate_list_types(new, self.node)]:
            causes += [] if old is not None and any(validate_list_types(old, self.node)) else duplicates
        if self._rules is not None:
            if any(cause.reason in _BLOCKING for cause in causes):
                causes.append(_RULES_NOT_CHECKED)
            else:
                causes += evaluate_rules(self._rules, new, old)
        return tuple(causes)


def compile_schema(openapi: Mapping[str, Any]) -> CompiledSchema:
    """Compile the schema of a definition, which must be valid."""
    return CompiledSchema(read_schema(openapi))


_GROUP = "apiextensions.k8s.io"


def served_kinds(crd: Object) -> tuple[ServedKind, ...]:
    """Return one kind for each served version; raises `Invalid` if the definition is rejected."""
    return _serve(msgspec.json.encode({"name": crd["metadata"]["name"], "spec": crd.get("spec")}))


def with_accepted_status(crd: Object) -> Object:
    """Return a definition as the server stores it: with default names, and with its status."""
    spec = _with_default_names(crd["spec"])
    before = crd.get("status") or {}
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    versions = list(before.get("storedVersions") or ())
    since = crd.get("metadata", {}).get("creationTimestamp")
    status = {
        "acceptedNames": spec["names"],
        "conditions": before.get("conditions")
        or [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", since),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", since),
        ],
        "storedVersions": versions if stored in versions else [*versions, stored],
    }
    return crd | {"spec": spec, "status": status}


@lru_cache(maxsize=1024)
def _serve(content: bytes) -> tuple[ServedKind, ...]:
    crd = msgspec.json.decode(content)
    causes = validate_definition(crd["name"], crd["spec"])
    if causes:
        about = StatusDetails(crd["name"], _GROUP, "CustomResourceDefinition")
        raise Invalid(_error_message(crd["name"], causes), causes=causes, about=about)
    spec = _with_default_names(crd["spec"])
    return tuple(_served(spec, version) for version in spec["versions"] if version.get("served"))


def _error_message(name: str, causes: tuple[StatusCause, ...]) -> str:
    listed = [f"{cause.field}: {cause.message}" for cause in causes]
    problems = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    return f'CustomResourceDefinition.{_GROUP} "{name}" is invalid: {problems}'


def _with_default_names(spec: Object) -> Object:
    names = spec["names"]
    defaults = {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List"}
    return spec | {
        "conversion": spec.get("conversion") or {"strategy": "None"},
        "names": names | {name: text for name, text in defaults.items() if not names.get(name)},
    }


def _condition(kind: str, reason: str, message: str, since: str | None) -> Object:
    moment = {"lastTransitionTime": since} if since else {}
    return {**moment, "message": message, "reason": reason, "status": "True", "type": kind}


def _served(spec: Object, version: Object) -> ServedKind:
    names = spec["names"]
    schema = compile_schema(version["schema"]["openAPIV3Schema"])
    subresources = version.get("subresources") or {}
    scale = _scale_paths(subresources.get("scale"))
    return ServedKind(
        resource=Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec["scope"] == "Namespaced",
        ),
        structure=schema.structure,
        singular=names["singular"],
        list_kind=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(name for name in ("status", "scale") if subresources.get(name) is not None),
        scale=scale,
        strategic=False,
        apply_defaults=_defaulter(schema),
        prune=schema.prune,
        validate=schema.validate if scale is None else _validator_with_scale(schema, scale),
        stored_version=next(each["name"] for each in spec["versions"] if each.get("storage")),
    )


def _scale_paths(written: Any) -> ScalePaths | None:
    if written is None:
        return None
    return ScalePaths(
        spec=written["specReplicasPath"],
        status=written["statusReplicasPath"],
        selector=written.get("labelSelectorPath") or "",
    )


def _defaulter(schema: CompiledSchema) -> Callable[[Object], Object]:
    def prune_and_default(value: Object) -> Object:
        return schema.apply_defaults(schema.prune(value))

    return prune_and_default


def _validator_with_scale(
    schema: CompiledSchema, scale: ScalePaths
) -> Callable[[Object, Object | None], tuple[StatusCause, ...]]:
    def validate_both(new: Object, old: Object | None) -> tuple[StatusCause, ...]:
        return (*schema.validate(new, old), *validate_scale(new, scale))

    return validate_both
