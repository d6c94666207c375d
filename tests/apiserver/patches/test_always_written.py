"""Fields that are set even if unset in the request: they have an owner only once they have contents."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.patches.samples import at, owners

from springtide.apiserver.kinds import ListType, StructureNode, ValueType
from springtide.apiserver.patches import managed
from springtide.cluster.resources import Object

_TEXT, _NUMBER = StructureNode(ValueType.STRING), StructureNode(ValueType.INTEGER)
_LIMITS = StructureNode(ValueType.OBJECT, fields={"cpu": _TEXT})
_ITEM = StructureNode(
    ValueType.OBJECT,
    fields={"name": _TEXT, "image": _TEXT, "ready": StructureNode(ValueType.BOOLEAN), "limits": _LIMITS},
    always=frozenset({"name", "ready", "limits"}),
)
_SPEC = StructureNode(
    ValueType.OBJECT,
    fields={
        "size": _NUMBER,
        "text": _TEXT,
        "inner": _LIMITS,
        "outer": _ITEM,
        "items": StructureNode(ValueType.LIST, items=_ITEM, list_kind=ListType.MAP, keys=("name",)),
        "whole": StructureNode(ValueType.OBJECT, fields={"a": _TEXT}, atomic=True),
    },
    always=frozenset({"size", "inner", "items", "whole"}),
)
_NODE = StructureNode(ValueType.OBJECT, fields={"spec": _SPEC}, always=frozenset({"metadata", "spec"}), open=True)
_ENTRY: dict[str, Any] = {".": {}, "f:limits": {}, "f:name": {}, "f:ready": {}}


def _item(spec: Any) -> Object:
    head = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    return head if spec is None else {**head, "spec": spec}


def _update(old: Object | None, new: Object, by: str) -> Object:
    return managed.after_update(old, new, manager=by, node=_NODE, now=at(1))


@pytest.mark.parametrize(
    ("spec", "owned"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param({}, None, id="empty"),
        pytest.param({"size": 0, "inner": {}, "items": []}, None, id="empty all the way down"),
        pytest.param({"text": "x"}, {"f:text": {}}, id="a field"),
        pytest.param({"size": 1}, {"f:size": {}}, id="a number"),
        pytest.param({"inner": {"cpu": "1"}}, {"f:inner": {"f:cpu": {}}}, id="a field in a struct"),
        pytest.param({"whole": {"a": "1"}}, {"f:whole": {}}, id="an atomic value"),
        pytest.param({"items": [{"name": "a"}]}, {"f:items": {'k:{"name":"a"}': _ENTRY}}, id="an entry of a list"),
        pytest.param({"outer": {}}, {"f:outer": _ENTRY}, id="a pointer to a struct"),
    ],
)
def test_a_create_owns_the_fields_that_it_sets(spec: Any, owned: Any) -> None:
    assert owners(_update(None, _item(spec), "a")) == ({} if owned is None else {"a Update": {"f:spec": owned}})


@pytest.mark.parametrize(
    ("before", "after", "a", "b"),
    [
        pytest.param({"size": 5}, {}, {}, {"f:size": {}}, id="a removed number becomes zero"),
        pytest.param({"size": 5}, {"size": 0}, {}, {"f:size": {}}, id="a removed zero stays zero"),
        pytest.param({"whole": {"a": "1"}}, {}, {}, {"f:whole": {}}, id="an atomic value is removed"),
        pytest.param({"inner": {"cpu": "1"}}, {}, {}, {}, id="a field of a struct is removed"),
        pytest.param({"text": "x"}, {}, {}, {}, id="a pointer to a struct is removed"),
        pytest.param({}, {"inner": {}}, {}, {}, id="an empty struct is written"),
        pytest.param(
            {"inner": {}}, {"inner": {"cpu": "1"}}, {}, {"f:inner": {"f:cpu": {}}}, id="a struct gets a field"
        ),
    ],
)
def test_emptying_an_always_written_field_owns_it(before: Any, after: Any, a: Any, b: Any) -> None:
    made = _update(None, _item({"text": "stays", **before} if "text" not in before else before), "a")
    kept = {} if "text" in before else {"text": "stays"}

    changed = _update(made, {**_item({**kept, **after}), "metadata": made["metadata"]}, "b")

    mine = ({"f:text": {}} if kept else {}) | a
    assert owners(changed) == {
        name: {"f:spec": owned} for name, owned in (("a Update", mine), ("b Update", b)) if owned
    }


def test_an_apply_conflicts_only_over_fields_that_were_set() -> None:
    made = _update(None, _item({"inner": {"cpu": "1"}, "size": 1}), "a")

    applied = managed.apply(
        made, _item({"inner": {"cpu": "1"}, "items": []}), manager="b", force=False, node=_NODE, now=at(2)
    )

    assert owners(applied)["b Apply"] == {"f:spec": {"f:inner": {"f:cpu": {}}}}
    assert owners(applied)["a Update"] == {"f:spec": {"f:inner": {"f:cpu": {}}, "f:size": {}}}
