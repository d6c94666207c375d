"""Defaulting, and its JSON patches: applied, they give the other tree, and they are minimal.

Defaulting: the canonical form, by the smallest patch, of what is ours.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.karpenter.samples import node_pool
from tests.cluster.admission.review_requests import defaulted, foreign_pool

from springtide.apiserver.patches.json_patches import json_patch as patched_by
from springtide.cluster.admission.handlers import json_patch

TREES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b/c", "~d", ""]), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("xyz"), TREES), st.dictionaries(st.sampled_from("xyz"), TREES))
def test_a_patch_leads_from_one_tree_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Applied by another library; compared as JSON texts, as 1 equals true in Python."""
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
def test_a_patch_is_minimal(old: Any, new: Any, paths: list[str]) -> None:
    assert paths == [f"{operation['op']} {operation['path']}" for operation in json_patch(old, new)]


BUDGETS = ("spec", "disruption", "budgets")


def budgets_of(item: Any) -> Any:
    for step in BUDGETS:
        item = item[step]
    return item


@pytest.mark.parametrize(
    ("written", "stored", "operations"),
    [
        pytest.param([{"nodes": 5}], [{"nodes": "5"}], 1, id="a count"),
        pytest.param([{"nodes": "5", "reasons": ["drifted"]}], [{"nodes": "5", "reasons": ["Drifted"]}], 1, id="case"),
        pytest.param([{"nodes": "5", "reasons": "empty"}], [{"nodes": "5", "reasons": ["Empty"]}], 1, id="one reason"),
        pytest.param(
            [{"nodes": "5", "reason": "empty"}], [{"nodes": "5", "reasons": ["Empty"]}], 2, id="under another name"
        ),
        pytest.param([{"nodes": "1"}, {"nodes": 2}], [{"nodes": "1"}, {"nodes": "2"}], 1, id="only what is wrong"),
        pytest.param([{"nodes": "5"}], [{"nodes": "5"}], 0, id="nothing"),
        pytest.param([{"nodes": True}], [{"nodes": True}], 0, id="invalid value"),
    ],
)
def test_what_is_read_leniently_is_stored_canonically(written: Any, stored: Any, operations: int) -> None:
    """With a minimal patch, and a warning for each change."""
    made, response = defaulted(node_pool({"budgets": written}))

    assert stored == budgets_of(made)
    patch = json.loads(base64.b64decode(response.get("patch", "W10=")))
    assert operations == len(patch)
    assert bool(operations) == bool(response.get("warnings"))


def test_defaulting_is_idempotent() -> None:
    """The API server may call the webhook again."""
    made, _ = defaulted(node_pool({"budgets": [{"nodes": 5, "reason": "drift"}], "expireAfter": "1h"}))

    again, response = defaulted(made)

    assert made == again
    assert response.keys() == {"uid", "allowed"}


def test_objects_that_are_not_owned_are_not_changed() -> None:
    assert defaulted(foreign_pool({"budgets": [{"nodes": 5}]}))[1].keys() == {"uid", "allowed"}


def test_a_change_of_labels_does_not_change_the_spec() -> None:
    """A user who adds a label does not expect another spec."""
    old = node_pool({"budgets": [{"nodes": 5}]})
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}

    assert defaulted(labelled, old)[1].keys() == {"uid", "allowed"}


def test_the_version_stays() -> None:
    """Versions are converted by the conversion webhook only."""
    pool = {**node_pool({"budgets": [{"nodes": 5}]}), "apiVersion": "karpenter.sh/v1beta1"}

    made, _ = defaulted(pool)

    assert (made["apiVersion"], budgets_of(made)) == ("karpenter.sh/v1beta1", [{"nodes": "5"}])
