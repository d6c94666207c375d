"""What is stored is never changed in place, and values are shared rather than kept twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.cluster.resources import Key, Object
from springtide.simulator.api.storage import CollectionId, Storage
from springtide.simulator.api.values import copied, found, replaced, shared, steps, with_metadata

_KEY = Key("default", "a")


def test_a_write_leaves_what_it_was_made_from_alone() -> None:
    storage = Storage(history=10)
    collection = storage.collection(CollectionId("", "things"))
    first: Object = {"metadata": {"name": "a"}, "data": 1}
    storage.write(collection, _KEY, first)
    stored = collection.live[_KEY]
    storage.write(collection, _KEY, {**stored, "data": 2})
    storage.write(collection, _KEY, None)
    assert first == {"metadata": {"name": "a"}, "data": 1}
    assert [(change.old or {}).get("metadata", {}).get("resourceVersion") for change in collection.changes] == [
        None,
        "1",
        "2",
    ]
    assert collection.changes[-1].event.object == {"metadata": {"name": "a", "resourceVersion": "3"}, "data": 2}


def test_trimming_keeps_the_names_that_older_versions_show() -> None:
    storage = Storage(history=100)
    collection = storage.collection(CollectionId("", "things"))
    for name in ("b", "a", "c"):
        storage.write(collection, Key("", name), {"metadata": {"name": name}})
    storage.write(collection, Key("", "b"), None)
    storage.compact(3)
    assert [key.name for key, _ in storage.listed(collection, 3)] == ["a", "b", "c"]
    assert [key.name for key, _ in storage.listed(collection, 4)] == ["a", "c"]
    storage.compact(4)
    assert [key.name for key in collection.keys("", None)] == ["a", "c"]


json = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


def _spelt(value: Any) -> str:
    """Write a value so that true and 1 differ, and the order of fields does not matter."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_spelt(value[name])}" for name in sorted(value)) + "}"
    return "[" + ",".join(map(_spelt, value)) + "]" if isinstance(value, list) else repr(value)


@given(json, json)
def test_sharing_changes_nothing_and_finds_what_is_the_same(old: Any, new: Any) -> None:
    before, wanted = _spelt(old), _spelt(new)
    result = shared(copied(new), old)
    assert (_spelt(old), _spelt(result)) == (before, wanted)
    if isinstance(old, dict | list):
        assert (result is old) is (before == wanted)


@given(json)
def test_a_copy_shares_no_tree(value: Any) -> None:
    copy = copied(value)
    assert _spelt(copy) == _spelt(value)
    if isinstance(value, dict | list):
        assert copy is not value
        for mine, other in zip(copy, value, strict=True):
            left, right = (copy[mine], value[other]) if isinstance(value, dict) else (mine, other)
            assert not isinstance(left, dict | list) or left is not right


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(".a.b", 1, id="there"),
        pytest.param(".a.c", None, id="not there"),
        pytest.param(".a.b.c", None, id="below a leaf"),
        pytest.param("a", {"b": 1}, id="without a dot"),
    ],
)
def test_paths(path: str, expected: Any) -> None:
    assert found({"a": {"b": 1}}, steps(path)) == expected


def test_replacing_makes_way_and_leaves_the_original() -> None:
    value = {"a": {"b": 1}, "x": {}}
    other = replaced(value, ("a", "c", "d"), 2)
    assert other == {"a": {"b": 1, "c": {"d": 2}}, "x": {}}
    assert value == {"a": {"b": 1}, "x": {}}
    assert other["x"] is value["x"]


def test_metadata_is_replaced_and_removed() -> None:
    item: Object = {"metadata": {"name": "a", "labels": {}}}
    assert with_metadata(item, labels=None, uid="u") == {"metadata": {"name": "a", "uid": "u"}}
    assert item == {"metadata": {"name": "a", "labels": {}}}
