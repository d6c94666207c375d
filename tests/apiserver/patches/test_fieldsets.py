from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.patches.samples import CONTAINERS, PORTS, SPEC

from springtide.apiserver.kinds import StructureNode
from springtide.apiserver.patches.managed import fieldsets
from springtide.apiserver.patches.managed import path_elements as elements
from springtide.apiserver.patches.managed.fieldsets import FieldSet, applied_paths

Paths = frozenset[tuple[str, ...]]
PATHS = st.frozensets(st.lists(st.sampled_from(["f:a", "f:b", "v:1"]), min_size=1, max_size=3).map(tuple), max_size=6)


def tree_of(paths: Paths) -> FieldSet:
    """Build a tree path by path; a path with others below it is marked."""
    tree: dict[str, Any] = {}
    for path in sorted(paths, key=len, reverse=True):
        level = tree
        for step in path:
            level = level.setdefault(step, {})
        if level:
            level["."] = {}
    return in_order(tree)


def in_order(tree: dict[str, Any]) -> dict[str, Any]:
    return {step: in_order(below) for step, below in sorted(tree.items())}


@given(PATHS, PATHS)
def test_tree_operations_agree_with_set_operations(left: Paths, right: Paths) -> None:
    a, b = tree_of(left), tree_of(right)

    for operation, expected in (
        (fieldsets.union, left | right),
        (fieldsets.difference, left - right),
        (fieldsets.intersection, left & right),
    ):
        result = operation(a, b)
        assert tree_of(frozenset(expected)) == result
        assert spelled(tree_of(frozenset(expected))) == spelled(result)
    assert (tree_of(left), tree_of(right)) == (a, b)


def spelled(tree: FieldSet) -> list[Any]:
    """Return a tree as lists, because comparing dicts ignores their order."""
    return [(step, spelled(below)) for step, below in tree.items()]


@given(PATHS, PATHS)
def test_an_operation_without_effect_returns_its_argument(left: Paths, right: Paths) -> None:
    both = tree_of(left | right)

    assert fieldsets.union(both, tree_of(right)) is both
    assert fieldsets.difference(tree := tree_of(left - right), tree_of(right - left)) is tree


@given(PATHS)
def test_a_canonical_tree_is_read_unchanged(paths: Paths) -> None:
    assert spelled(tree_of(paths)) == spelled(fieldsets.normal(tree_of(paths)))


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param({'k:{"b": 1, "a": "x"}': {}}, {'k:{"a":"x","b":1}': {}}, id="keys in order"),
        pytest.param({'v:"<&>"': {}}, {'v:"\\u003c\\u0026\\u003e"': {}}, id="special characters"),
        pytest.param({"f:b": {}, "f:a": {}}, {"f:a": {}, "f:b": {}}, id="elements in order"),
        pytest.param({"f:a": {".": {}}}, {"f:a": {}}, id="a redundant mark"),
        pytest.param({"x:a": {}, "k:{": {}, "f:a": {}}, {"f:a": {}}, id="not an element"),
        pytest.param({"i:0": {}}, {"i:0": {}}, id="an index"),
        pytest.param({".": {}}, {}, id="the object itself is dropped"),
        pytest.param(None, {}, id="nothing"),
    ],
)
def test_trees_of_clients_become_canonical(sent: Any, expected: FieldSet) -> None:
    assert spelled(expected) == spelled(fieldsets.normal(sent))


@pytest.mark.parametrize(
    ("node", "item", "expected", "shown"),
    [
        pytest.param(CONTAINERS, {"name": "a", "image": "i"}, 'k:{"name":"a"}', '[name="a"]', id="one key"),
        pytest.param(
            PORTS, {"port": 80}, 'k:{"port":80,"protocol":"TCP"}', '[port=80,protocol="TCP"]', id="a key with a default"
        ),
        pytest.param(PORTS, {"protocol": "UDP"}, 'k:{"protocol":"UDP"}', '[protocol="UDP"]', id="a key left out"),
        pytest.param(CONTAINERS, {"name": "a<b"}, 'k:{"name":"a\\u003cb"}', '[name="a<b"]', id="a special character"),
        pytest.param(CONTAINERS, {"name": "ü"}, 'k:{"name":"ü"}', '[name="ü"]', id="a letter beyond ASCII"),
    ],
)
def test_key_elements(node: StructureNode, item: Any, expected: str, shown: str) -> None:
    assert (expected, shown) == (elements.key_element(item, node), elements.format_element(expected))


@pytest.mark.parametrize(
    ("value", "expected", "shown"),
    [
        pytest.param("a", 'v:"a"', '[="a"]', id="a string"),
        pytest.param(1, "v:1", "[=1]", id="a number"),
        pytest.param(True, "v:true", "[=true]", id="a boolean"),
    ],
)
def test_value_elements(value: Any, expected: str, shown: str) -> None:
    assert (expected, shown) == (elements.value_element(value), elements.format_element(expected))


def test_paths_are_listed_parents_first() -> None:
    tree: FieldSet = {"f:spec": {"f:any": {".": {}, "f:k": {}}, "f:set": {'v:"d"': {}}, "f:text": {}}}

    assert list(fieldsets.paths(tree)) == [".spec.any", ".spec.text", ".spec.any.k", '.spec.set[="d"]']


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"replicas": 1}, {"f:replicas": {}}, id="a scalar"),
        pytest.param({"labels": {"a": "x"}}, {"f:labels": {"f:a": {}}}, id="keys of a map"),
        pytest.param({"labels": {}}, {"f:labels": {}}, id="an empty map"),
        pytest.param({"selector": {"a": "x"}}, {"f:selector": {}}, id="an atomic map"),
        pytest.param({"args": ["m"]}, {"f:args": {}}, id="an atomic list"),
        pytest.param({"set": ["e", "d"]}, {"f:set": {'v:"d"': {}, 'v:"e"': {}}}, id="values of a set"),
        pytest.param({"set": []}, {}, id="an empty set"),
        pytest.param(
            {"containers": [{"name": "a", "set": []}]},
            {"f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}}}},
            id="entries of a list",
        ),
        pytest.param({"any": {"k": [1, {"l": 2}]}}, {"f:any": {"f:k": {}}}, id="undeclared maps are granular"),
        pytest.param(
            {"groups": {"g": {"replicas": 1}}}, {"f:groups": {"f:g": {".": {}, "f:replicas": {}}}}, id="maps of objects"
        ),
        pytest.param({"text": None}, {"f:text": {}}, id="null"),
    ],
)
def test_paths_of_an_applied_configuration(spec: Any, expected: FieldSet) -> None:
    assert expected == applied_paths(SPEC, spec)
