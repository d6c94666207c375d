"""The keywords of a schema: those that are not supported, and those that contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from springtide.cluster.errors import Cause
from springtide.simulator.api.custom import wording
from springtide.simulator.api.custom.places import META_FIELDS

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_NOT_SUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LIST_TYPES: Final = ("atomic", "set", "map")
_MAP_TYPES: Final = ("atomic", "granular")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LINE_BREAK: Final = re.compile(r"[\n\r]")


def judge_keywords(
    written: Mapping[str, Any], path: str, *, root: bool = True, no_default: str = ""
) -> Iterator[Cause]:
    """Find what is wrong with the keywords of a schema and of all that it holds."""
    yield from _judge_standard(written, path, no_default)
    yield from _judge_map(written, path)
    yield from _judge_list(written, path)
    for index, rule in enumerate(written.get("x-kubernetes-validations") or ()):
        yield from _judge_rule(rule, f"{path}.x-kubernetes-validations[{index}]")
    for name, part in (written.get("properties") or {}).items():
        reason = f"in top-level {name}" if root and name in META_FIELDS else no_default
        yield from judge_keywords(part, f"{path}.properties[{name}]", root=False, no_default=reason)
    for keyword in ("additionalProperties", "items", "not"):
        if isinstance(written.get(keyword), Mapping):
            yield from judge_keywords(written[keyword], f"{path}.{keyword}", root=False, no_default=no_default)
    for keyword in ("allOf", "oneOf", "anyOf"):
        for index, part in enumerate(written.get(keyword) or ()):
            yield from judge_keywords(part, f"{path}.{keyword}[{index}]", root=False, no_default=no_default)


def _judge_standard(written: Mapping[str, Any], path: str, no_default: str) -> Iterator[Cause]:
    kind = written.get("type") or ""
    if kind and kind not in _TYPES:
        yield wording.unsupported(f"{path}.type", kind, _TYPES)
    if kind == "null":
        yield wording.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if written.get("default") is not None and no_default:
        yield wording.forbidden(f"{path}.default", f"must not be set {no_default}")
    for keyword in _NOT_SUPPORTED:
        if written.get(keyword):
            yield wording.forbidden(f"{path}.{keyword}", f"{keyword} is not supported")
    if isinstance(written.get("items"), list):
        yield wording.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if written.get("uniqueItems") is True:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield wording.forbidden(f"{path}.uniqueItems", detail)
    if written.get("x-kubernetes-preserve-unknown-fields") is False:
        yield wording.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")


def _judge_map(written: Mapping[str, Any], path: str) -> Iterator[Cause]:
    additional = written.get("additionalProperties")
    if additional is not None and additional is not True and written.get("properties"):
        detail = "additionalProperties and properties are mutual exclusive"
        yield wording.forbidden(f"{path}.additionalProperties", detail)
    kind = written.get("x-kubernetes-map-type")
    if kind is not None:
        yield from _judge_carrier(written, "object", "x-kubernetes-map-type", path)
        if kind not in _MAP_TYPES:
            yield wording.unsupported(f"{path}.x-kubernetes-map-type", kind, _MAP_TYPES)


def _judge_carrier(written: Mapping[str, Any], wanted: str, keyword: str, path: str) -> Iterator[Cause]:
    """A keyword that belongs to one type stands only where that type is."""
    kind = written.get("type") or ""
    detail = f"must be {wanted} if {keyword} is specified"
    if kind and kind != wanted:
        yield wording.invalid(f"{path}.type", kind, detail)
    elif not kind:
        yield wording.required(f"{path}.type", detail)


def _judge_list(written: Mapping[str, Any], path: str) -> Iterator[Cause]:
    kind, keys = written.get("x-kubernetes-list-type"), written.get("x-kubernetes-list-map-keys") or ()
    items = written.get("items") if isinstance(written.get("items"), Mapping) else None
    if kind is not None:
        yield from _judge_carrier(written, "array", "x-kubernetes-list-type", path)
        if kind not in _LIST_TYPES:
            yield wording.unsupported(f"{path}.x-kubernetes-list-type", kind, _LIST_TYPES)
    if keys and kind != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.x-kubernetes-list-type"
        yield wording.required(where, detail) if kind is None else wording.invalid(where, kind, detail)
    if kind in ("set", "map") and items is not None and items.get("nullable") is True:
        detail = f"cannot be nullable when x-kubernetes-list-type is {kind}"
        yield wording.forbidden(f"{path}.items.nullable", detail)
    if kind == "set" and items is not None:
        yield from _judge_set(items, f"{path}.items")
    if kind == "map":
        yield from _judge_list_map(items, keys, path)


def _judge_set(items: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """The entries of a set are compared as wholes, so they are owned as wholes."""
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and inner not in (None, "atomic"):
        yield wording.invalid(f"{path}.x-kubernetes-list-type", inner, detail)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield wording.invalid(f"{path}.x-kubernetes-map-type", inner, detail)


def _judge_list_map(items: Mapping[str, Any] | None, keys: Any, path: str) -> Iterator[Cause]:
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield wording.required(where, "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield wording.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield wording.invalid(f"{path}.items.type", items.get("type") or "", detail)
        return
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        part = properties.get(key)
        if part is None:
            yield wording.invalid(where, [*keys], "entries must all be names of item properties")
        else:
            yield from _judge_key(part, key in (items.get("required") or ()), f"{path}.items.properties[{key}]")
        if key in keys[:index]:
            yield wording.invalid(where, [*keys], "must not contain duplicate entries")


def _judge_key(part: Mapping[str, Any], required: bool, path: str) -> Iterator[Cause]:
    listed = "this property is in x-kubernetes-list-map-keys, so it"
    if part.get("type") in ("array", "object"):
        detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
        yield wording.invalid(f"{path}.type", "object", detail)
    if not required and part.get("default") is None:
        yield wording.required(f"{path}.default", f"{listed} must have a default or be a required property")
    if part.get("nullable") is True:
        yield wording.forbidden(f"{path}.nullable", f"{listed} cannot be nullable")


def _judge_rule(rule: Mapping[str, Any], path: str) -> Iterator[Cause]:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    expression, reason = rule.get("messageExpression") or "", rule.get("reason")
    if not text.strip():
        yield wording.required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield wording.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _LINE_BREAK.search(message.strip()):
        yield wording.invalid(f"{path}.message", message, "must not contain line breaks")
    elif _LINE_BREAK.search(text.strip()) and not message:
        yield wording.required(f"{path}.message", "message must be specified if rule contains line breaks")
    if expression and not expression.strip():
        yield wording.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if reason is not None and reason not in _REASONS:
        yield wording.unsupported(f"{path}.reason", reason, _REASONS)
