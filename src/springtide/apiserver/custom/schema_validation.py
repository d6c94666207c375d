"""Structural schemas: every value has one type, found without looking into `allOf`, `anyOf`, `oneOf` or `not`.

Pruning and defaulting stand on it: they follow the structure, and what stands under the junctors may only judge.

The keywords of a schema: those that are not supported, and those that contradict each other.

The rules of a schema must compile, and must be able to do what they say.

The engine knows no types of fields, so a rule whose result is no boolean is found where it is a literal, a call whose
result is known, or a path; what operators make of fields is not followed. The cost of rules is not estimated.

Defaults must be good values themselves: nothing would check them when they are filled in.

One schema of a definition, judged in stages: each of them needs what the one before has made sure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from springtide.apiserver import field_errors
from springtide.apiserver.custom.cel import compile_rules, evaluate_rules
from springtide.apiserver.custom.cel.engine import OLD_SELF, CelCompileError, CelProgram, program
from springtide.apiserver.custom.cel.expressions import (
    broken_pattern,
    mentions,
    plain_type,
    typed,
    undeclared,
    undefined_field,
)
from springtide.apiserver.custom.correlation import same_json
from springtide.apiserver.custom.defaulting import copy_value, prune, validate_embedded
from springtide.apiserver.custom.formats import GoPatternError, compile_go, is_linear
from springtide.apiserver.custom.structural_schema import ABSENT, META_FIELDS, SchemaNode, ValidationRule, read_schema
from springtide.apiserver.custom.validation import validate
from springtide.cluster.errors import StatusCause

_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_WHERE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_ONLY_IN_STRUCTURE: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_IMPLICIT: Final = "must not specify anything other than name and generateName, but metadata is implicitly specified"


def validate_structural(written: Mapping[str, Any], path: str) -> list[StatusCause]:
    """Find what keeps a schema from being structural."""
    causes = [*_validate_structural_node(written, "root", path), *_validate_completeness(written, written, path, path)]
    return sorted(causes, key=lambda cause: (cause.field, cause.message))


def _validate_structural_node(written: Mapping[str, Any], level: str, path: str) -> Iterator[StatusCause]:
    kind = written.get("type") or ""
    items = written.get("items")
    if kind == "array" and items is None:
        yield field_errors.required(f"{path}.items", "must be specified")
    if isinstance(items, Mapping):
        yield from _validate_structural_node(items, "item", f"{path}.items")
    for name, part in (written.get("properties") or {}).items():
        yield from _validate_structural_node(part, "field", f"{path}.properties[{name}]")
    additional = written.get("additionalProperties")
    if additional is not None and level == "root":
        yield field_errors.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(additional, Mapping):
        yield from _validate_structural_node(additional, "field", f"{path}.additionalProperties")
    yield from _validate_extensions(written, path)
    yield from _validate_value_validations(written, path)
    yield from _validate_type(written, kind, level, path)
    yield from _validate_resource(written, level, path)


def _validate_extensions(written: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    if written.get("x-kubernetes-int-or-string") is True:
        for name in ("preserve-unknown-fields", "embedded-resource"):
            if written.get(f"x-kubernetes-{name}") is True:
                detail = "must be false if x-kubernetes-int-or-string is true"
                yield field_errors.invalid(f"{path}.x-kubernetes-{name}", True, detail)


def _validate_type(written: Mapping[str, Any], kind: str, level: str, path: str) -> Iterator[StatusCause]:
    embedded = written.get("x-kubernetes-embedded-resource") is True
    untyped = written.get("x-kubernetes-int-or-string") or written.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield (
            field_errors.invalid(f"{path}.type", kind, detail)
            if kind
            else field_errors.required(f"{path}.type", detail)
        )
    elif not kind and not untyped:
        yield field_errors.required(f"{path}.type", _WHERE[level])
    if embedded and written.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield field_errors.forbidden(f"{path}.additionalProperties", detail)
    if level == "root" and kind and kind != "object":
        yield field_errors.invalid(f"{path}.type", kind, "must be object at the root")


def _validate_resource(written: Mapping[str, Any], level: str, path: str) -> Iterator[StatusCause]:
    embedded = written.get("x-kubernetes-embedded-resource") is True
    properties = written.get("properties") or {}
    if level == "root" or embedded:
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type") != "string":
                given = properties[name].get("type") or ""
                yield field_errors.invalid(f"{path}.properties[{name}].type", given, "must be string")
        if "metadata" in properties and properties["metadata"].get("type") != "object":
            given = properties["metadata"].get("type") or ""
            yield field_errors.invalid(f"{path}.properties[metadata].type", given, "must be object")
    if level == "root" and "metadata" in properties:
        metadata = {name: part for name, part in properties["metadata"].items() if name not in ("type", "description")}
        fields = metadata.pop("properties", {})
        if metadata or not {*fields} <= {"name", "generateName"}:
            yield field_errors.forbidden(f"{path}.properties[metadata]", _IMPLICIT)
    if embedded and not written.get("x-kubernetes-preserve-unknown-fields") and not properties:
        detail = "must not be empty if x-kubernetes-embedded-resource is true without"
        yield field_errors.required(f"{path}.properties", f"{detail} x-kubernetes-preserve-unknown-fields")


def _validate_value_validations(
    written: Mapping[str, Any], path: str, *, first_of_all: bool = False
) -> Iterator[StatusCause]:
    """Judge the junctors of a schema; the two patterns that mean int-or-string may name types."""
    any_of, all_of = written.get("anyOf") or [], written.get("allOf") or []
    if any_of != _INT_OR_STRING:
        for index, part in enumerate(any_of):
            yield from _validate_nested(part, f"{path}.anyOf[{index}]")
    pattern = bool(all_of) and not first_of_all and all_of[0].get("anyOf") == _INT_OR_STRING
    for index, part in enumerate(all_of):
        yield from _validate_nested(part, f"{path}.allOf[{index}]", int_or_string=pattern and index == 0)
    for index, part in enumerate(written.get("oneOf") or []):
        yield from _validate_nested(part, f"{path}.oneOf[{index}]")
    if written.get("not") is not None:
        yield from _validate_nested(written["not"], f"{path}.not")
    expression = written.get("pattern")
    if expression and not is_linear(expression):
        try:
            compile_go(expression)
        except GoPatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield field_errors.invalid(f"{path}.pattern", expression, detail)


def _validate_nested(written: Mapping[str, Any], path: str, *, int_or_string: bool = False) -> Iterator[StatusCause]:
    inner = {name: part for name, part in written.items() if name != "anyOf"} if int_or_string else written
    yield from _validate_value_validations(inner, path, first_of_all=True)
    if isinstance(written.get("items"), Mapping):
        yield from _validate_nested(written["items"], f"{path}.items")
    for name, part in (written.get("properties") or {}).items():
        yield from _validate_nested(part, f"{path}.properties[{name}]")
    for keyword, detail in _ONLY_IN_STRUCTURE.items():
        if written.get(keyword) not in (None, "", False, [], ()) or (keyword == "additionalProperties" in written):
            yield field_errors.forbidden(f"{path}.{keyword}", detail)
    if "metadata" in (written.get("properties") or {}):
        yield field_errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _validate_completeness(
    nested: Mapping[str, Any], structure: Mapping[str, Any] | None, path: str, source: str
) -> Iterator[StatusCause]:
    """Whatever a junctor judges must be there in the structure too."""
    parts = [(f"{source}.not", nested["not"])] if nested.get("not") is not None else []
    for junctor in ("allOf", "anyOf", "oneOf"):
        parts += [(f"{source}.{junctor}[{index}]", part) for index, part in enumerate(nested.get(junctor) or [])]
    for where, part in parts:
        yield from _validate_nested_completeness(part, structure, path, where)


def _validate_nested_completeness(
    nested: Mapping[str, Any], structure: Mapping[str, Any] | None, path: str, source: str
) -> Iterator[StatusCause]:
    if structure is None:
        yield field_errors.required(path, f"because it is defined in {source}")
        return
    yield from _validate_completeness(nested, structure, path, source)
    if isinstance(nested.get("items"), Mapping):
        yield from _validate_nested_completeness(
            nested["items"], structure.get("items"), f"{path}.items", f"{source}.items"
        )
    known = structure.get("properties") or {}
    for name, part in (nested.get("properties") or {}).items():
        step = f"properties[{name}]"
        yield from _validate_nested_completeness(part, known.get(name), f"{path}.{step}", f"{source}.{step}")


_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_NOT_SUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LIST_TYPES: Final = ("atomic", "set", "map")
_MAP_TYPES: Final = ("atomic", "granular")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LINE_BREAK: Final = re.compile(r"[\n\r]")


def validate_keywords(
    written: Mapping[str, Any], path: str, *, root: bool = True, no_default: str = ""
) -> Iterator[StatusCause]:
    """Find what is wrong with the keywords of a schema and of all that it holds."""
    yield from _validate_standard(written, path, no_default)
    yield from _validate_map(written, path)
    yield from _validate_list(written, path)
    for index, rule in enumerate(written.get("x-kubernetes-validations") or ()):
        yield from _validate_rule_fields(rule, f"{path}.x-kubernetes-validations[{index}]")
    for name, part in (written.get("properties") or {}).items():
        reason = f"in top-level {name}" if root and name in META_FIELDS else no_default
        yield from validate_keywords(part, f"{path}.properties[{name}]", root=False, no_default=reason)
    for keyword in ("additionalProperties", "items", "not"):
        if isinstance(written.get(keyword), Mapping):
            yield from validate_keywords(written[keyword], f"{path}.{keyword}", root=False, no_default=no_default)
    for keyword in ("allOf", "oneOf", "anyOf"):
        for index, part in enumerate(written.get(keyword) or ()):
            yield from validate_keywords(part, f"{path}.{keyword}[{index}]", root=False, no_default=no_default)


def _validate_standard(written: Mapping[str, Any], path: str, no_default: str) -> Iterator[StatusCause]:
    kind = written.get("type") or ""
    if kind and kind not in _TYPES:
        yield field_errors.unsupported(f"{path}.type", kind, _TYPES)
    if kind == "null":
        yield field_errors.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if written.get("default") is not None and no_default:
        yield field_errors.forbidden(f"{path}.default", f"must not be set {no_default}")
    for keyword in _NOT_SUPPORTED:
        if written.get(keyword):
            yield field_errors.forbidden(f"{path}.{keyword}", f"{keyword} is not supported")
    if isinstance(written.get("items"), list):
        yield field_errors.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if written.get("uniqueItems") is True:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield field_errors.forbidden(f"{path}.uniqueItems", detail)
    if written.get("x-kubernetes-preserve-unknown-fields") is False:
        yield field_errors.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")


def _validate_map(written: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    additional = written.get("additionalProperties")
    if additional is not None and additional is not True and written.get("properties"):
        detail = "additionalProperties and properties are mutual exclusive"
        yield field_errors.forbidden(f"{path}.additionalProperties", detail)
    kind = written.get("x-kubernetes-map-type")
    if kind is not None:
        yield from _validate_carrier(written, "object", "x-kubernetes-map-type", path)
        if kind not in _MAP_TYPES:
            yield field_errors.unsupported(f"{path}.x-kubernetes-map-type", kind, _MAP_TYPES)


def _validate_carrier(written: Mapping[str, Any], wanted: str, keyword: str, path: str) -> Iterator[StatusCause]:
    """A keyword that belongs to one type stands only where that type is."""
    kind = written.get("type") or ""
    detail = f"must be {wanted} if {keyword} is specified"
    if kind and kind != wanted:
        yield field_errors.invalid(f"{path}.type", kind, detail)
    elif not kind:
        yield field_errors.required(f"{path}.type", detail)


def _validate_list(written: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    kind, keys = written.get("x-kubernetes-list-type"), written.get("x-kubernetes-list-map-keys") or ()
    items = written.get("items") if isinstance(written.get("items"), Mapping) else None
    if kind is not None:
        yield from _validate_carrier(written, "array", "x-kubernetes-list-type", path)
        if kind not in _LIST_TYPES:
            yield field_errors.unsupported(f"{path}.x-kubernetes-list-type", kind, _LIST_TYPES)
    if keys and kind != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.x-kubernetes-list-type"
        yield field_errors.required(where, detail) if kind is None else field_errors.invalid(where, kind, detail)
    if kind in ("set", "map") and items is not None and items.get("nullable") is True:
        detail = f"cannot be nullable when x-kubernetes-list-type is {kind}"
        yield field_errors.forbidden(f"{path}.items.nullable", detail)
    if kind == "set" and items is not None:
        yield from _validate_set(items, f"{path}.items")
    if kind == "map":
        yield from _validate_map_list(items, keys, path)


def _validate_set(items: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    """The entries of a set are compared as wholes, so they are owned as wholes."""
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and inner not in (None, "atomic"):
        yield field_errors.invalid(f"{path}.x-kubernetes-list-type", inner, detail)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield field_errors.invalid(f"{path}.x-kubernetes-map-type", inner, detail)


def _validate_map_list(items: Mapping[str, Any] | None, keys: Any, path: str) -> Iterator[StatusCause]:
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield field_errors.required(where, "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield field_errors.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield field_errors.invalid(f"{path}.items.type", items.get("type") or "", detail)
        return
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        part = properties.get(key)
        if part is None:
            yield field_errors.invalid(where, [*keys], "entries must all be names of item properties")
        else:
            yield from _validate_key(part, key in (items.get("required") or ()), f"{path}.items.properties[{key}]")
        if key in keys[:index]:
            yield field_errors.invalid(where, [*keys], "must not contain duplicate entries")


def _validate_key(part: Mapping[str, Any], required: bool, path: str) -> Iterator[StatusCause]:
    listed = "this property is in x-kubernetes-list-map-keys, so it"
    if part.get("type") in ("array", "object"):
        detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
        yield field_errors.invalid(f"{path}.type", "object", detail)
    if not required and part.get("default") is None:
        yield field_errors.required(f"{path}.default", f"{listed} must have a default or be a required property")
    if part.get("nullable") is True:
        yield field_errors.forbidden(f"{path}.nullable", f"{listed} cannot be nullable")


def _validate_rule_fields(rule: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    expression, reason = rule.get("messageExpression") or "", rule.get("reason")
    if not text.strip():
        yield field_errors.required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield field_errors.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _LINE_BREAK.search(message.strip()):
        yield field_errors.invalid(f"{path}.message", message, "must not contain line breaks")
    elif _LINE_BREAK.search(text.strip()) and not message:
        yield field_errors.required(f"{path}.message", "message must be specified if rule contains line breaks")
    if expression and not expression.strip():
        yield field_errors.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if reason is not None and reason not in _REASONS:
        yield field_errors.unsupported(f"{path}.reason", reason, _REASONS)


def validate_expressions(
    place: SchemaNode, path: str, *, resource: bool = False, loose: str = ""
) -> Iterator[StatusCause]:
    """Find the rules that the server would refuse; `loose` is the list above whose entries have no old values."""
    for index, rule in enumerate(place.rules):
        yield from _validate_rule(
            rule, place, f"{path}.x-kubernetes-validations[{index}]", resource=resource, loose=loose
        )
    for name, part in place.properties.items():
        yield from validate_expressions(part, f"{path}.properties[{name}]", resource=part.embedded, loose=loose)
    if place.values is not None:
        below = f"{path}.additionalProperties"
        yield from validate_expressions(place.values, below, resource=place.values.embedded, loose=loose)
    if place.items is not None:
        apart = loose or ("" if place.list_type == "map" else path)
        yield from validate_expressions(place.items, f"{path}.items", resource=place.items.embedded, loose=apart)


def _validate_rule(
    rule: ValidationRule, place: SchemaNode, path: str, *, resource: bool, loose: str
) -> Iterator[StatusCause]:
    try:
        compiled = _compile(rule.rule, rule, place, resource=resource)
    except CelCompileError as error:
        yield field_errors.invalid(f"{path}.rule", _written(rule), f"compilation failed: {error}")
        return
    plain = plain_type(rule.rule, place, root=resource)
    if not compiled.may_return("BOOL") or plain not in ("", "boolean"):
        yield field_errors.invalid(f"{path}.rule", _written(rule), "cel expression must evaluate to a bool")
    if rule.message_expression:
        yield from _validate_message_expression(rule, place, f"{path}.messageExpression", resource=resource)
    if rule.field_path and not is_path(rule.field_path, place):
        yield field_errors.invalid(f"{path}.fieldPath", rule.field_path, "must be a valid path")
    if mentions(rule.rule, OLD_SELF):
        if loose:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {loose}"
            yield field_errors.invalid(f"{path}.rule", rule.rule, detail)
    elif rule.optional_old_self is not None:
        detail = "may not be set if oldSelf is not used in rule"
        yield field_errors.invalid(f"{path}.optionalOldSelf", rule.optional_old_self, detail)


def _validate_message_expression(
    rule: ValidationRule, place: SchemaNode, path: str, *, resource: bool
) -> Iterator[StatusCause]:
    try:
        compiled = _compile(rule.message_expression, rule, place, resource=resource)
    except CelCompileError as error:
        yield field_errors.invalid(path, _written(rule), f"messageExpression compilation failed: {error}")
        return
    if not compiled.may_return("STRING"):
        yield field_errors.invalid(path, _written(rule), "messageExpression must evaluate to a string")


def _compile(text: str, rule: ValidationRule, place: SchemaNode, *, resource: bool) -> CelProgram:
    optional = rule.optional_old_self is True
    compiled = program(typed(text, place, root=resource), optional_old_self=optional)
    unknown = (
        undeclared(text, "cel")
        or broken_pattern(text)
        or ("" if optional else undefined_field(text, place, root=resource))
    )
    if unknown:
        raise CelCompileError(unknown)
    return compiled


def is_path(written: str, place: SchemaNode) -> bool:
    """Tell whether a field path leads to a field of the schema."""
    here: SchemaNode | None = place
    for step in written.strip().replace("['", ".").replace("']", "").removeprefix(".").split("."):
        here = here.child(step) if here is not None else None
    return here is not None and written.strip().startswith((".", "["))


def _written(rule: ValidationRule) -> field_errors.Verbatim:
    fields = {
        "Rule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": rule.reason or None,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": rule.optional_old_self,
    }
    return field_errors.Verbatim(field_errors.compact_json(fields, sort_keys=False))


def validate_defaults(place: SchemaNode, path: str) -> Iterator[StatusCause]:
    """Find the defaults of a schema that their own schema refuses."""
    if place.default is not ABSENT:
        yield from _validate_default(place, f"{path}.default")
    if place.items is not None:
        yield from validate_defaults(place.items, f"{path}.items")
    for name, part in place.properties.items():
        yield from validate_defaults(part, f"{path}.properties[{name}]")


def _validate_default(place: SchemaNode, path: str) -> Iterator[StatusCause]:
    value = place.default
    pruned = copy_value([value])
    prune({"default": pruned[0]}, SchemaNode(properties={"default": place}))
    if not same_json(pruned[0], value):
        yield field_errors.invalid(path, value, "must not have unknown fields")
    found = [*validate_embedded(value, place), *validate(place, value)]
    rules = compile_rules(place) if not found else None
    if rules is not None:
        found += evaluate_rules(rules, value, value) or evaluate_rules(rules, value, None)
    for cause in found:
        below = "" if cause.field == field_errors.NO_PATH else cause.field
        where = f"{path}{below}" if below.startswith("[") else f"{path}.{below}" if below else path
        yield replace(cause, field=where)


_ALLOWED_WITH_STATUS: Final = (
    "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
    "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items", "properties",
    "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
)  # fmt: skip


def validate_schema(written: Mapping[str, Any], path: str, *, status: bool) -> Iterator[StatusCause]:
    """Find what is wrong with a schema; with `status`, the status is a subresource and has its part of the schema."""
    if status:
        yield from _validate_root(written, path)
    if written.get("nullable") is True:
        yield field_errors.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    structure = validate_structural(written, path)
    yield from structure
    keywords = [*validate_keywords(written, path)]
    yield from keywords
    if structure or keywords:
        return
    place = read_schema(written)
    defaults = [*validate_defaults(place, path)]
    yield from defaults
    if not defaults:
        yield from validate_expressions(place, path, resource=True)


def _validate_root(written: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    if written.get("type") not in (None, "", "object"):
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield field_errors.invalid(f"{path}.type", written["type"], detail)
    elif foreign := [name for name in written if name not in _ALLOWED_WITH_STATUS and written[name]]:
        detail = (
            f"only {' '.join(_ALLOWED_WITH_STATUS)} fields are allowed at the root of the schema if the status "
            f"subresource is enabled, not {', '.join(foreign)}"
        )
        yield field_errors.invalid(path, field_errors.OMITTED, detail)
