from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.apiserver.patches import merge_patch

TREES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="replaces a field"),
        pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="adds a field"),
        pytest.param({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="null deletes"),
        pytest.param({"a": "b"}, {"z": None}, {"a": "b"}, id="null of a missing field"),
        pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="a scalar replaces a list"),
        pytest.param({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}, id="a list replaces a scalar"),
        pytest.param({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}, id="merges maps"),
        pytest.param({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}, id="lists are not merged"),
        pytest.param({}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}, id="nulls of new maps are dropped"),
        pytest.param({"a": 1}, {"a": [None]}, {"a": [None]}, id="nulls in lists stay"),
        pytest.param(["a"], {"a": "b"}, {"a": "b"}, id="a map replaces a list"),
        pytest.param({"a": "b"}, ["c"], ["c"], id="a list replaces the document"),
        pytest.param({"a": 1}, {"a": True}, {"a": True}, id="true is not one"),
        pytest.param({"a": "x"}, None, None, id="null replaces the document"),
    ],
)
def test_merge_patch(target: Any, patch: Any, expected: Any) -> None:
    result = merge_patch(target, patch)

    assert (expected, type(expected)) == (result, type(result))
    if isinstance(expected, dict):
        assert {name: type(value) for name, value in expected.items()} == {
            name: type(value) for name, value in result.items()
        }


def by_the_rfc(target: Any, patch: Any) -> Any:
    """The pseudo-code of RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = by_the_rfc(result.get(name), value)
    return result


@given(TREES, TREES)
def test_merge_patch_agrees_with_the_rfc_and_does_not_change_its_input(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))

    assert repr_sorted(by_the_rfc(target, patch)) == repr_sorted(merge_patch(target, patch))
    assert before == (target, patch)


def repr_sorted(value: Any) -> Any:
    """Format a tree so that `True` and `1` differ, and the order of fields does not matter."""
    if isinstance(value, dict):
        return [(name, repr_sorted(part)) for name, part in sorted(value.items())]
    return [repr_sorted(part) for part in value] if isinstance(value, list) else repr(value)


def test_unchanged_parts_are_shared() -> None:
    target: dict[str, Any] = {"spec": {"replicas": 1, "template": {"a": 1}}, "status": {"ready": 1}}

    result = merge_patch(target, {"spec": {"replicas": 2}})

    assert result["status"] is target["status"]
    assert result["spec"]["template"] is target["spec"]["template"]


def test_a_patch_without_effect_returns_the_target_itself() -> None:
    target = {"spec": {"replicas": 1}, "metadata": {"labels": {"a": "b"}}}

    assert merge_patch(target, {"spec": {"replicas": 1, "absent": None}, "metadata": {}}) is target
