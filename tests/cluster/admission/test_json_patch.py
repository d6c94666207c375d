"""Patches between trees: applied, they give the other tree, and they say no more than they must."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.cluster.admission.json_patch import json_patch
from springtide.simulator.api.patches.rfc6902 import json_patch as patched_by

TREES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b/c", "~d", ""]), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("xyz"), TREES), st.dictionaries(st.sampled_from("xyz"), TREES))
def test_a_patch_leads_from_one_tree_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    """As somebody else's reading of patches has it; texts are compared, for Python takes 1 for true."""
    patched = patched_by(old, list(json_patch(old, new)))

    assert json.dumps(new, sort_keys=True) == json.dumps(patched, sort_keys=True)


@given(TREES)
def test_the_same_needs_no_patch(tree: Any) -> None:
    assert json_patch(tree, json.loads(json.dumps(tree))) == ()


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": 1, "b": 3}, ["replace /b"], id="one field"),
        pytest.param({"a": 1}, {"b": 1}, ["remove /a", "add /b"], id="another name"),
        pytest.param([1, 2, 3], [1, 3], ["remove /1"], id="an entry less"),
        pytest.param([1, 3], [1, 2, 3], ["add /1"], id="an entry more"),
        pytest.param([1, 2], [], ["remove /1", "remove /0"], id="all entries, from the last"),
        pytest.param({"a/b~c": 1}, {"a/b~c": 2}, ["replace /a~1b~0c"], id="names with slashes"),
        pytest.param({"a": 1}, {"a": True}, ["replace /a"], id="1 is not true"),
        pytest.param({"a": []}, {"a": {}}, ["replace /a"], id="another shape"),
    ],
)
def test_a_patch_says_no_more_than_it_must(old: Any, new: Any, paths: list[str]) -> None:
    assert paths == [f"{operation['op']} {operation['path']}" for operation in json_patch(old, new)]
