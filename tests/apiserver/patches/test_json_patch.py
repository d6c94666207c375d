from __future__ import annotations

import copy
from typing import Any

import pytest

from springtide.apiserver.patches import json_patch
from springtide.cluster.errors import BadRequest, Invalid


def document() -> dict[str, Any]:
    return {"a": {"b": 1, "c": None}, "list": ["x", "y"], "d/e": {"f~g": 2}, "on": True}


@pytest.mark.parametrize(
    ("operations", "change"),
    [
        pytest.param([{"op": "add", "path": "/n", "value": 1}], {"n": 1}, id="add a field"),
        pytest.param([{"op": "add", "path": "/on", "value": 1}], {"on": 1}, id="add over a field"),
        pytest.param([{"op": "add", "path": "/list/1", "value": "z"}], {"list": ["x", "z", "y"]}, id="add into a list"),
        pytest.param([{"op": "add", "path": "/list/-", "value": "z"}], {"list": ["x", "y", "z"]}, id="add at the end"),
        pytest.param(
            [{"op": "add", "path": "/list/2", "value": "z"}], {"list": ["x", "y", "z"]}, id="index of the end"
        ),
        pytest.param([{"op": "remove", "path": "/list/0"}], {"list": ["y"]}, id="remove from a list"),
        pytest.param([{"op": "remove", "path": "/list/-1"}], {"list": ["x"]}, id="count from the end"),
        pytest.param([{"op": "remove", "path": "/d~1e/f~0g"}], {"d/e": {}}, id="escaped names"),
        pytest.param([{"op": "replace", "path": "/a/b", "value": 2}], {"a": {"b": 2, "c": None}}, id="replace"),
        pytest.param([{"op": "replace", "path": "/new", "value": 2}], {"new": 2}, id="replace a missing field"),
        pytest.param([{"op": "replace", "path": "/list/1", "value": 2}], {"list": ["x", 2]}, id="replace in a list"),
        pytest.param([{"op": "copy", "from": "/list/0", "path": "/n"}], {"n": "x"}, id="copy"),
        pytest.param([{"op": "move", "from": "/list/0", "path": "/list/1"}], {"list": ["y", "x"]}, id="move"),
        pytest.param([{"op": "test", "path": "/a", "value": {"c": None, "b": 1}}], {}, id="test a map in any order"),
        pytest.param([{"op": "test", "path": "/none", "value": None}], {}, id="a missing field tests as null"),
        pytest.param(
            [{"op": "add", "path": "/n", "value": {}}, {"op": "add", "path": "/n/m", "value": 1}],
            {"n": {"m": 1}},
            id="one operation sees what the one before did",
        ),
        pytest.param([], {}, id="no operation"),
    ],
)
def test_operations(operations: list[Any], change: dict[str, Any]) -> None:
    assert document() | change == json_patch(document(), operations)


def test_move_removes_the_source() -> None:
    assert json_patch({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}]) == {"a": {}, "c": 1}


def test_replace_of_the_whole_document() -> None:
    assert json_patch(document(), [{"op": "replace", "path": "", "value": {"z": 1}}]) == {"z": 1}


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/a/b", "value": 2}, id="another value"),
        pytest.param({"op": "test", "path": "/on", "value": 1}, id="true is not one"),
        pytest.param({"op": "test", "path": "/a/b", "value": "1"}, id="a string is not a number"),
        pytest.param({"op": "test", "path": "/x/y", "value": None}, id="path through a scalar"),
        pytest.param({"op": "remove", "path": "/x"}, id="remove a missing field"),
        pytest.param({"op": "remove", "path": "/list/2"}, id="remove beyond the end"),
        pytest.param({"op": "remove", "path": "/list/x"}, id="not an index"),
        pytest.param({"op": "remove", "path": "/list/-3"}, id="index before the first"),
        pytest.param({"op": "remove", "path": "/list/-"}, id="the end is no entry"),
        pytest.param({"op": "replace", "path": "/list/2", "value": 1}, id="replace beyond the end"),
        pytest.param({"op": "replace", "path": "/x/y", "value": 1}, id="replace in a missing map"),
        pytest.param({"op": "add", "path": "/list/3", "value": 1}, id="add beyond the end"),
        pytest.param({"op": "add", "path": "/x/y", "value": 1}, id="add to a missing map"),
        pytest.param({"op": "add", "path": "/on/y", "value": 1}, id="add into a scalar"),
        pytest.param({"op": "add", "path": "", "value": {}}, id="add the whole document"),
        pytest.param({"op": "move", "from": "/x", "path": "/y"}, id="move a missing field"),
        pytest.param({"op": "copy", "from": "/x/y", "path": "/z"}, id="copy from a missing map"),
        pytest.param({"op": "twist", "path": "/on"}, id="unknown operation"),
    ],
)
def test_an_operation_that_cannot_be_applied_is_invalid(operation: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"^the server rejected our request due to an error in our request$"):
        json_patch(document(), [operation])


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        pytest.param(
            {"op": "add"},
            "^error decoding patch: json: cannot unmarshal object into Go value",
            id="patch is not a list",
        ),
        pytest.param(["add"], "an operation of a JSON patch is an object, got string", id="operation is not an object"),
        pytest.param([{"op": "add", "value": 1}], "needs a JSON pointer as path, not None", id="no path"),
        pytest.param([{"op": "remove", "path": "a"}], "needs a JSON pointer as path, not 'a'", id="no pointer"),
        pytest.param([{"op": "move", "path": "/a"}], "needs a JSON pointer as from, not None", id="no from"),
        pytest.param([{"op": "add", "path": "/a"}], "operation 'add' needs a value", id="no value"),
        pytest.param([{}] * 10_001, "maximum operations in a JSON patch is 10000, got 10001", id="too many"),
    ],
)
def test_malformed_operations_are_bad_requests(operations: Any, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        json_patch(document(), operations)


def test_a_patch_that_is_null_changes_nothing() -> None:
    target = document()

    assert json_patch(target, None) is target


def test_a_failed_patch_changes_nothing() -> None:
    target = document()

    with pytest.raises(Invalid):
        json_patch(target, [{"op": "add", "path": "/list/0", "value": 1}, {"op": "remove", "path": "/nothing"}])

    assert document() == target


def test_only_containers_above_a_change_are_copied() -> None:
    target = document()
    untouched = copy.deepcopy(target)

    result = json_patch(target, [{"op": "add", "path": "/a/b", "value": 9}])

    assert untouched == target
    assert result["list"] is target["list"]
    assert result["a"] is not target["a"]


_NESTED = [
    {"op": "add", "path": "/a", "value": ["x" * 2000]},
    *({"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(40)),
]


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param(_NESTED, id="copies of copies"),
        pytest.param([{"op": "add", "path": "/a", "value": {}}, *_NESTED], id="copies of a field"),
        pytest.param(
            [
                {"op": "add", "path": "/a", "value": "x" * 500_000},
                *({"op": "copy", "from": "/a", "path": f"/a{number}"} for number in range(7)),
            ],
            id="many copies of one value",
        ),
    ],
)
def test_refuses_to_copy_more_than_three_mebibytes(operations: list[Any]) -> None:
    with pytest.raises(Invalid):
        json_patch(document(), operations)


def test_a_copy_does_not_follow_changes_of_its_source() -> None:
    operations = [
        {"op": "add", "path": "/a/list", "value": [1]},
        {"op": "copy", "from": "/a", "path": "/copied"},
        {"op": "add", "path": "/a/list/-", "value": 2},
        {"op": "add", "path": "/copied/list/-", "value": 3},
    ]
    patched = json_patch(document(), operations)
    assert patched["a"] == {"b": 1, "c": None, "list": [1, 2]}
    assert patched["copied"] == {"b": 1, "c": None, "list": [1, 3]}


def test_the_values_of_a_patch_are_not_changed() -> None:
    operations = [{"op": "add", "path": "/n", "value": {}}, {"op": "add", "path": "/n/m", "value": 1}]
    before = copy.deepcopy(operations)
    json_patch(document(), operations)
    assert before == operations


def test_an_index_of_thousands_of_digits_cannot_be_applied() -> None:
    with pytest.raises(Invalid):
        json_patch(document(), [{"op": "remove", "path": "/list/" + "9" * 5000}])
