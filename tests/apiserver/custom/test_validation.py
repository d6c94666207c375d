"""The fast path of validation never accepts what the exact walk rejects."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.apiserver.custom.structural_schema import read_schema
from springtide.apiserver.custom.validation import fast_validator, validate

NAMES = ("a", "b")


def leaves() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of scalars with all their keywords."""
    bound = st.integers(-2, 3) | st.sampled_from([0.5, 1.5])
    number = st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={
            "minimum": bound,
            "maximum": bound,
            "exclusiveMinimum": st.booleans(),
            "exclusiveMaximum": st.booleans(),
            "enum": st.lists(st.integers(0, 2), min_size=1),
            "multipleOf": st.sampled_from([1, 2, 0.5, 0, -1]),
            "format": st.sampled_from(["int32", "double", "other"]),
            "nullable": st.booleans(),
        },
    )
    text = st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "minLength": st.integers(-1, 2),
            "maxLength": st.integers(-1, 3),
            "pattern": st.sampled_from(["^a", "b$", "(?P<n>a)", "a\\z"]),
            "enum": st.lists(st.sampled_from(["a", "ab", None]), min_size=1),
            "format": st.sampled_from(["date", "duration", "ipv4", "other"]),
            "nullable": st.booleans(),
        },
    )
    int_or_string = st.just({"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"})
    return number | text | int_or_string | st.just({"type": "boolean"})


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of any shape."""
    return st.recursive(leaves(), _composed, max_leaves=6)


def _composed(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(st.sampled_from(NAMES), parts, max_size=2)
    checks: dict[str, st.SearchStrategy[Any]] = {
        "required": st.lists(st.sampled_from(NAMES), max_size=2),
        "not": _branches(),
    }
    for keyword in ("anyOf", "oneOf", "allOf"):
        checks[keyword] = st.lists(_branches(), min_size=1, max_size=2)
    return (
        st.fixed_dictionaries({"type": st.just("object"), "properties": properties}, optional=checks)
        | st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": parts})
        | st.fixed_dictionaries({"type": st.just("array"), "items": parts}, optional={"maxItems": st.integers(0, 2)})
    )


def _branches() -> st.SearchStrategy[dict[str, Any]]:
    checks = leaves().map(lambda leaf: {name: part for name, part in leaf.items() if name not in ("type", "nullable")})
    return st.fixed_dictionaries(
        {},
        optional={
            "required": st.lists(st.sampled_from(NAMES), max_size=2),
            "properties": st.dictionaries(st.sampled_from(NAMES), checks, max_size=1),
        },
    )


def values() -> st.SearchStrategy[Any]:
    """Values that nearly fit the schemas."""
    return st.recursive(
        st.sampled_from(["a", "ab", "5%", "2026-01-01", "1.2.3.4", "1h", 0, 1, 2, 1.5, 2.0, 2**31, 2**70, True, None]),
        lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from(NAMES), parts, max_size=2),
        max_leaves=6,
    )


@settings(max_examples=800, deadline=None)
@given(schemas(), values())
def test_the_fast_path_accepts_only_valid_values(schema: dict[str, Any], value: Any) -> None:
    node = read_schema(schema)
    if fast_validator(node)(value):
        assert validate(node, value) == []


def test_the_fast_path_accepts_common_objects() -> None:
    """A fast path that rejects everything would be right and useless."""
    node = read_schema(
        {
            "type": "object",
            "properties": {"a": {"type": "integer", "format": "int32", "minimum": 1}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        }
    )
    assert fast_validator(node)({"a": 1})
    assert fast_validator(node)({"b": "x"})
    assert not fast_validator(node)({"a": 1, "b": "x"})
