from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.apiserver.patches.samples import DOCUMENT

from springtide.apiserver.kinds import StructureNode, ValueType
from springtide.apiserver.patches import strategic_patch
from springtide.cluster.errors import ApiError, BadRequest, Invalid


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param({"text": "x", "number": 1}, {"text": "y"}, {"text": "y", "number": 1}, id="a field"),
        pytest.param({"text": "x", "number": 1}, {"text": None}, {"number": 1}, id="null deletes"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}, id="maps merge"),
        pytest.param(
            {"labels": {"a": "1"}},
            {"labels": {"$patch": "replace", "b": "2"}},
            {"labels": {"b": "2"}},
            id="replace a map",
        ),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}, id="empty a map"),
        pytest.param({}, {"labels": {"$patch": "delete"}}, {}, id="a directive for a missing field"),
        pytest.param({}, {"labels": {"a": None, "b": "2"}}, {"labels": {"b": "2"}}, id="nulls of new maps are dropped"),
        pytest.param(
            {"items": [{"name": "a", "image": "1"}, {"name": "b"}]},
            {"items": [{"name": "a", "image": "2"}]},
            {"items": [{"name": "a", "image": "2"}, {"name": "b"}]},
            id="entries merge by key",
        ),
        pytest.param(
            {"items": named("a", "b")},
            {"items": named("c")},
            {"items": named("c", "a", "b")},
            id="new entries come first",
        ),
        pytest.param(
            {"items": named("a", "b")},
            {"items": [{"name": "a", "$patch": "delete"}]},
            {"items": named("b")},
            id="delete an entry",
        ),
        pytest.param(
            {"items": named("a", "b")},
            {"items": [{"$patch": "replace"}, {"name": "c", "image": None}]},
            {"items": named("c")},
            id="replace all entries",
        ),
        pytest.param(
            {"items": named("a", "b", "c")},
            {"$setElementOrder/items": named("c", "a")},
            {"items": named("b", "c", "a")},
            id="reorder entries",
        ),
        pytest.param(
            {"items": named("a")},
            {"items": named("c"), "$setElementOrder/items": named("a", "c")},
            {"items": named("a", "c")},
            id="a new entry at its place",
        ),
        pytest.param(
            {"items": [{"name": "a", "set": ["p", "q"]}]},
            {"items": [{"name": "a", "set": ["r", "p"]}]},
            {"items": [{"name": "a", "set": ["r", "p", "q"]}]},
            id="sets of scalars merge",
        ),
        pytest.param(
            {"items": [{"name": "a", "set": ["p", "q"]}]},
            {"items": [{"name": "a", "$deleteFromPrimitiveList/set": ["p"]}]},
            {"items": [{"name": "a", "set": ["q"]}]},
            id="remove from a set",
        ),
        pytest.param(
            {"items": [{"name": "a", "plain": ["p", "q"]}]},
            {"items": [{"name": "a", "plain": ["r"]}]},
            {"items": [{"name": "a", "plain": ["r"]}]},
            id="other lists are replaced",
        ),
        pytest.param(
            {"inner": {"text": "x", "number": 1}},
            {"inner": {"$retainKeys": ["text", "labels"], "labels": {"a": "1"}}},
            {"inner": {"text": "x", "labels": {"a": "1"}}},
            id="retain keys",
        ),
        pytest.param({"unknown": {"a": [1]}}, {"unknown": {"a": [2]}}, {"unknown": {"a": [2]}}, id="unknown fields"),
    ],
)
def test_strategic_patch(target: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    before = copy.deepcopy((target, patch))

    assert expected == strategic_patch(target, patch, DOCUMENT)
    assert before == (target, patch)


@pytest.mark.parametrize(
    ("target", "patch", "error", "message"),
    [
        pytest.param({}, [], BadRequest, "a strategic merge patch is an object", id="patch is not an object"),
        pytest.param(
            {"items": named("a")},
            {"items": [{"image": "x"}]},
            BadRequest,
            "map: map[image:x] does not contain declared merge key: name",
            id="no merge key",
        ),
        pytest.param(
            {"labels": {}},
            {"labels": {"$patch": "twist"}},
            BadRequest,
            "unknown patch type: twist in map: map[$patch:twist]",
            id="unknown directive",
        ),
        pytest.param(
            {"items": named("a")},
            {"items": [{"name": "a", "$patch": "merge"}]},
            BadRequest,
            "merging lists cannot yet be specified in the patch",
            id="merge directive in a list",
        ),
        pytest.param(
            {"text": "x"},
            {"$retainKeys": ["number"], "text": "y"},
            BadRequest,
            "invalid patch format of retainKeys",
            id="a field that is not retained",
        ),
        pytest.param(
            {},
            {"$setElementOrder/items": "a"},
            BadRequest,
            "invalid patch format of setElementOrder list",
            id="no order",
        ),
        pytest.param(
            {},
            {"$deleteFromPrimitiveList/set": "a"},
            BadRequest,
            "invalid patch format of primitive list",
            id="no values",
        ),
        pytest.param(
            {"items": named("a")},
            {"items": named("b", "a"), "$setElementOrder/items": named("a", "b")},
            BadRequest,
            "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n"
            "[map[name:a] map[name:b]]\n",
            id="order against the patch",
        ),
        pytest.param(
            {"items": [["a"]]},
            {"items": named("a")},
            Invalid,
            "the server rejected our request due to an error in our request",
            id="a list of lists",
        ),
        pytest.param(
            {"items": named("a")},
            {"items": ["a"]},
            BadRequest,
            "list element types are not identical: [[map[name:a]] [a]]",
            id="entries of two types",
        ),
    ],
)
def test_a_malformed_patch_is_rejected(target: Any, patch: Any, error: type[ApiError], message: str) -> None:
    with pytest.raises(error) as refusal:
        strategic_patch(target, patch, DOCUMENT)

    assert message == refusal.value.message


def test_a_patch_without_effect_returns_the_target_itself() -> None:
    target = {"text": "x", "items": [{"name": "a", "set": ["p"]}], "inner": {"labels": {"a": "1"}}}
    patch = {"text": "x", "items": [{"name": "a", "set": ["p"]}], "inner": {"labels": {"a": "1", "z": None}}}

    assert strategic_patch(target, patch, DOCUMENT) is target


def test_entries_that_the_patch_does_not_name_are_shared() -> None:
    target = {"items": [{"name": "a", "image": "1"}, {"name": "b", "labels": {}}]}

    result = strategic_patch(target, {"items": [{"name": "a", "image": "2"}]}, DOCUMENT)

    assert result["items"][1] is target["items"][1]


def test_a_map_with_the_replace_strategy() -> None:
    node = StructureNode(
        ValueType.OBJECT,
        fields={
            "selector": StructureNode(ValueType.OBJECT, values=StructureNode(ValueType.STRING), patch_replace=True)
        },
    )

    patched = strategic_patch({"selector": {"a": "1"}, "labels": {"a": "1"}}, {"selector": {"b": "2"}}, node)

    assert patched == {"selector": {"b": "2"}, "labels": {"a": "1"}}


def test_a_patch_that_is_null_changes_nothing() -> None:
    target = {"text": "x"}

    assert strategic_patch(target, None, DOCUMENT) is target
