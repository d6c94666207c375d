"""Pruning and defaulting compared with an independent oracle, which builds new objects."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.custom.recorded import custom_object

from springtide.apiserver.custom import compile_schema

NAMES = ("a", "b", "c")
GONE: Any = object()


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas with all keywords that shape an object."""
    scalar = st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"nullable": st.booleans(), "default": st.sampled_from(["d", "e"])}
    )
    return st.recursive(scalar | st.just({"x-kubernetes-preserve-unknown-fields": True}), _composed, max_leaves=8)


def _composed(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    flags = {"nullable": st.booleans(), "x-kubernetes-preserve-unknown-fields": st.just(True)}
    properties = st.dictionaries(st.sampled_from(NAMES), parts, max_size=3)
    default = {"default": st.sampled_from([{}, {"a": {}}, {"b": "x"}])}
    return (
        st.fixed_dictionaries({"type": st.just("object"), "properties": properties}, optional=flags | default)
        | st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": parts}, optional=flags)
        | st.fixed_dictionaries({"type": st.just("array"), "items": parts}, optional=flags)
    )


def values() -> st.SearchStrategy[Any]:
    """Values that may or may not fit."""
    return st.recursive(
        st.sampled_from(["x", 1, None]),
        lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from((*NAMES, "u")), parts, max_size=4),
        max_leaves=12,
    )


def pruned(value: Any, schema: dict[str, Any] | None, *, lenient: bool = False) -> Any:
    """What pruning leaves of a value."""
    schema_is_open = lenient or (schema or {}).get("x-kubernetes-preserve-unknown-fields", False)
    if isinstance(value, list):
        items = (schema or {}).get("items")
        if items is None and schema_is_open:
            return value
        return [pruned(part, items, lenient=schema_is_open) for part in value]
    if not isinstance(value, dict):
        return value
    left = {name: _pruned_field(name, part, schema, schema_is_open=schema_is_open) for name, part in value.items()}
    return {name: part for name, part in left.items() if part is not GONE}


def _pruned_field(name: str, part: Any, schema: dict[str, Any] | None, *, schema_is_open: bool) -> Any:
    child = (schema or {}).get("properties", {}).get(name, (schema or {}).get("additionalProperties"))
    if child is None:
        return part if schema_is_open and schema is not None else GONE
    if part is None and not child.get("nullable") and "default" not in child:
        return GONE
    return pruned(part, child)


def defaulted(value: Any, schema: dict[str, Any]) -> Any:
    """A value with its defaults."""
    if isinstance(value, list):
        return [_defaulted_part(part, schema["items"]) for part in value] if "items" in schema else value
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    whole = {name: part["default"] for name, part in properties.items() if "default" in part and name not in value}
    whole |= value
    return {
        name: _defaulted_part(part, properties.get(name, schema.get("additionalProperties", {})))
        for name, part in whole.items()
    }


def _defaulted_part(part: Any, schema: dict[str, Any]) -> Any:
    if part is None and not schema.get("nullable"):
        part = schema.get("default")
    return defaulted(part, schema)


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), schemas(), max_size=3), values())
def test_pruning_and_defaulting_agree_with_the_oracle(fields: dict[str, Any], value: Any) -> None:
    spec = {"type": "object", "properties": fields}
    schema = compile_schema({"type": "object", "properties": {"spec": spec}})
    given_value = custom_object(copy.deepcopy(value), extra=1)
    if value is None:
        expected = custom_object(None)
        del expected["spec"]
    else:
        expected = custom_object(defaulted(pruned(value, spec), spec))
    assert schema.apply_defaults(schema.prune(given_value)) == expected


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), schemas(), max_size=3), values())
def test_defaulting_is_idempotent(fields: dict[str, Any], value: Any) -> None:
    """Otherwise every update of a stored object would change it."""
    schema = compile_schema({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}})
    once = schema.apply_defaults(schema.prune(custom_object(copy.deepcopy(value))))
    assert schema.apply_defaults(copy.deepcopy(once)) == once


def test_defaults_are_not_shared_between_objects() -> None:
    fields = {"a": {"type": "object", "default": {"k": ["v"]}, "x-kubernetes-preserve-unknown-fields": True}}
    schema = compile_schema({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}})
    first = schema.apply_defaults(custom_object({}))
    first["spec"]["a"]["k"].append("w")
    assert schema.apply_defaults(custom_object({}))["spec"]["a"] == {"k": ["v"]}
