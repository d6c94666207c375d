"""Stored objects are immutable, and unchanged parts are shared."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.apiserver.storage import CollectionId, Storage
from springtide.apiserver.values import (
    deep_copy,
    deep_copy_unshared,
    path_steps,
    share_unchanged,
    value_at,
    with_metadata,
    with_value_at,
)
from springtide.cluster.resources import Key, Object

_KEY = Key("default", "a")


def test_a_write_does_not_modify_its_input() -> None:
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


def test_trimming_keeps_keys_of_listable_versions() -> None:
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


def _canonical(value: Any) -> str:
    """Encode a value so that true and 1 differ, and the order of fields does not matter."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_canonical(value[name])}" for name in sorted(value)) + "}"
    return "[" + ",".join(map(_canonical, value)) + "]" if isinstance(value, list) else repr(value)


@given(json, json)
def test_sharing_preserves_equality(old: Any, new: Any) -> None:
    before, wanted = _canonical(old), _canonical(new)
    result = share_unchanged(deep_copy(new), old)
    assert (_canonical(old), _canonical(result)) == (before, wanted)
    if isinstance(old, dict | list):
        assert (result is old) is (before == wanted)


@given(json)
def test_a_copy_shares_no_tree(value: Any) -> None:
    copy = deep_copy(value)
    assert _canonical(copy) == _canonical(value)
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
        pytest.param(".a.b.c", None, id="below a scalar"),
        pytest.param("a", {"b": 1}, id="without a dot"),
    ],
)
def test_paths(path: str, expected: Any) -> None:
    assert value_at({"a": {"b": 1}}, path_steps(path)) == expected


def test_setting_a_path_creates_parents_and_keeps_the_original() -> None:
    value = {"a": {"b": 1}, "x": {}}
    other = with_value_at(value, ("a", "c", "d"), 2)
    assert other == {"a": {"b": 1, "c": {"d": 2}}, "x": {}}
    assert value == {"a": {"b": 1}, "x": {}}
    assert other["x"] is value["x"]


def test_metadata_is_replaced_and_removed() -> None:
    item: Object = {"metadata": {"name": "a", "labels": {}}}
    assert with_metadata(item, labels=None, uid="u") == {"metadata": {"name": "a", "uid": "u"}}
    assert item == {"metadata": {"name": "a", "labels": {}}}


HELD: dict[str, Any] = {"labels": {"app": "web"}, "owners": [{"uid": "1"}, {"uid": "2"}], "name": "web"}

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from("abc"), parts, max_size=3),
    max_leaves=12,
)


def containers(value: Any) -> list[Any]:
    """Return all lists and objects of a value, including itself."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [inner for part in parts for inner in containers(part)]
    return [value, *found] if isinstance(value, dict | list) else found


@pytest.mark.parametrize(
    ("value", "shared"),
    [
        pytest.param(HELD, [HELD], id="the-same"),
        pytest.param({**HELD, "name": "api"}, [HELD["labels"], HELD["owners"]], id="another-field"),
        pytest.param({**HELD, "labels": {"app": "web"}}, [HELD["owners"]], id="equal-is-not-the-same"),
        pytest.param({"owners": [HELD["owners"][0], {"uid": "3"}]}, [HELD["owners"][0]], id="an-entry"),
        pytest.param({"owners": [*HELD["owners"], {"uid": "3"}]}, HELD["owners"], id="one-entry-more"),
        pytest.param({"owners": HELD["owners"][:1]}, HELD["owners"][:1], id="one-entry-less"),
        pytest.param({"labels": HELD["owners"]}, [], id="another-place"),
        pytest.param([HELD["owners"]], [], id="another-shape"),
    ],
)
def test_what_a_copy_shares(value: Any, shared: list[Any]) -> None:
    """Instances are shared at the same paths only."""
    copy = deep_copy_unshared(value, HELD)

    kept = {id(part) for top in shared for part in containers(top)}
    own = {id(part) for part in containers(value)}
    assert copy == value
    assert {id(part) for part in containers(copy)} & own == kept


@given(value=TREES, held=TREES)
def test_a_copy_beside_an_unrelated_value_shares_nothing(value: Any, held: Any) -> None:
    """It is then an ordinary copy."""
    copy = deep_copy_unshared(value, held)

    assert copy == deep_copy(value) == value
    assert not {id(part) for part in containers(copy)} & {id(part) for part in containers(value)}
