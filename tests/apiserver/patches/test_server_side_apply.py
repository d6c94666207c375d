from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from tests.apiserver.patches.samples import THING, THINGS, apply, at, owners, thing, times, update

from springtide.apiserver.patches import merge_patch
from springtide.apiserver.patches.managed.fieldsets import applied_paths, difference, union
from springtide.apiserver.patches.managed.ownership import NEVER_OWNED
from springtide.cluster.errors import BadRequest, Conflict, StatusCause
from springtide.cluster.resources import Object


def test_an_apply_creates_the_object_and_owns_its_fields() -> None:
    created = apply(None, thing({"replicas": 1, "labels": {"a": "x"}}), by="me", second=3)

    assert created["spec"] == {"replicas": 1, "labels": {"a": "x"}}
    assert owners(created) == {"me Apply": {"f:spec": {"f:labels": {"f:a": {}}, "f:replicas": {}}}}
    assert times(created) == {"me": at(3)}


def test_one_conflict_is_reported_in_one_line() -> None:
    live = update(None, thing({"replicas": 1}), by="kubectl")

    with pytest.raises(Conflict) as refusal:
        apply(live, thing({"replicas": 2}), by="me")

    assert refusal.value.message == (
        'Apply failed with 1 conflict: conflict with "kubectl" using example.com/v1: .spec.replicas'
    )
    assert refusal.value.causes == (
        StatusCause(".spec.replicas", 'conflict with "kubectl" using example.com/v1', "FieldManagerConflict"),
    )


def test_several_conflicts_are_listed_by_manager() -> None:
    live = update(None, thing({"replicas": 1}), by="kubectl", subresource="scale")
    live = apply(live, thing({"text": "u", "containers": [{"name": "c", "image": "x"}]}), by="chart")

    with pytest.raises(Conflict) as refusal:
        apply(live, thing({"replicas": 2, "text": "v", "containers": [{"name": "c", "image": "y"}]}), by="me")

    assert refusal.value.message == (
        "Apply failed with 3 conflicts: "
        'conflicts with "chart":\n'
        "- .spec.text\n"
        '- .spec.containers[name="c"].image\n'
        'conflicts with "kubectl" with subresource "scale" using example.com/v1:\n'
        "- .spec.replicas"
    )
    assert [cause.field for cause in refusal.value.causes] == [
        ".spec.text",
        '.spec.containers[name="c"].image',
        ".spec.replicas",
    ]


def test_a_forced_apply_takes_fields_over() -> None:
    live = update(None, thing({"replicas": 1, "text": "u"}), by="kubectl")

    taken = apply(live, thing({"replicas": 2}), by="me", force=True)

    assert taken["spec"] == {"replicas": 2, "text": "u"}
    assert owners(taken) == {
        "me Apply": {"f:spec": {"f:replicas": {}}},
        "kubectl Update": {"f:spec": {".": {}, "f:text": {}}},
    }


def test_equal_values_are_co_owned() -> None:
    live = apply(None, thing({"replicas": 1}), by="a")

    shared = apply(live, thing({"replicas": 1}), by="b")

    assert owners(shared) == {"a Apply": {"f:spec": {"f:replicas": {}}}, "b Apply": {"f:spec": {"f:replicas": {}}}}


def test_a_manager_conflicts_with_its_updates_but_not_with_its_applies() -> None:
    applied = apply(None, thing({"replicas": 1}), by="me")
    assert apply(applied, thing({"replicas": 2}), by="me")["spec"]["replicas"] == 2

    updated = update(None, thing({"replicas": 1}), by="me")
    with pytest.raises(Conflict, match=r'conflict with "me" using example.com/v1: \.spec\.replicas'):
        apply(updated, thing({"replicas": 2}), by="me")


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        pytest.param({"replicas": 1, "text": "u"}, {"text": "u"}, {"text": "u"}, id="a field"),
        pytest.param({"labels": {"a": "x", "b": "y"}}, {"labels": {"b": "y"}}, {"labels": {"b": "y"}}, id="a key"),
        pytest.param({"labels": {"a": "x"}, "text": "u"}, {"text": "u"}, {"text": "u"}, id="a map"),
        pytest.param({"set": ["d", "e"]}, {"set": ["e"]}, {"set": ["e"]}, id="a value of a set"),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "b"}]},
            {"containers": [{"name": "b"}]},
            id="an entry of a list",
        ),
        pytest.param(
            {"containers": [{"name": "a", "image": "x"}]},
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": "a"}]},
            id="a field of an entry",
        ),
        pytest.param({"selector": {"a": "x"}, "text": "u"}, {"text": "u"}, {"text": "u"}, id="an atomic map"),
        pytest.param(
            {"selector": {"a": "x"}}, {"selector": {"b": "y"}}, {"selector": {"b": "y"}}, id="inside of an atomic map"
        ),
        pytest.param({"args": ["m", "n"]}, {"args": ["n"]}, {"args": ["n"]}, id="an atomic list"),
    ],
)
def test_fields_that_are_no_longer_applied_are_removed(first: Any, second: Any, left: Any) -> None:
    live = apply(None, thing(first), by="me")

    assert left == apply(live, thing(second), by="me")["spec"]


def test_fields_with_other_owners_or_none_are_not_removed() -> None:
    live = apply(None, thing({"labels": {"a": "x", "b": "x"}, "replicas": 1}), by="me")
    live = apply(live, thing({"labels": {"a": "x"}}), by="other")
    live = update(live, merge_patch(live, {"spec": {"labels": {"c": "x"}, "text": "u"}}), by="editor")

    left = apply(live, thing({"args": []}), by="me")

    assert left["spec"] == {"labels": {"a": "x", "c": "x"}, "text": "u", "args": []}


def test_a_list_entry_is_removed_with_its_fields_if_it_has_no_other_owner() -> None:
    live = apply(None, thing({"containers": [{"name": "a"}, {"name": "b"}]}), by="me")
    live = update(live, thing({"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}), by="editor")

    assert apply(live, thing({"containers": [{"name": "b"}]}), by="me")["spec"] == {"containers": [{"name": "b"}]}


@pytest.mark.parametrize(
    ("live", "applied", "expected"),
    [
        pytest.param("abc", "x", "abcx", id="new entries at the end"),
        pytest.param("abc", "ca", "bca", id="the applied order wins"),
        pytest.param("abc", "bx", "abcx", id="new entries after live ones"),
        pytest.param("abc", "xa", "xabc", id="new entries before their neighbour"),
        pytest.param("xab", "axc", "abxc", id="live entries after their neighbour"),
        pytest.param("", "ba", "ba", id="no live entries"),
    ],
)
def test_the_order_of_merged_lists(live: str, applied: str, expected: str) -> None:
    there = update(None, thing({"set": list(live)}), by="editor")

    assert list(expected) == apply(there, thing({"set": list(applied)}), by="me")["spec"]["set"]


def test_an_omitted_key_has_its_default() -> None:
    port = {"port": 80, "protocol": "TCP", "text": "u"}
    live = update(None, thing({"containers": [{"name": "a", "ports": [port]}]}), by="editor")

    merged = apply(live, thing({"containers": [{"name": "a", "ports": [{"port": 80}]}]}), by="me")

    assert merged["spec"] == {"containers": [{"name": "a", "ports": [port]}]}


def test_an_apply_without_effect_keeps_the_time() -> None:
    live = apply(None, thing({"replicas": 1, "set": ["d"]}), by="me", second=1)

    assert apply(live, thing({"replicas": 1, "set": ["d"]}), by="me", second=2) is live


def test_a_new_owner_of_unchanged_fields_has_no_time() -> None:
    live = apply(None, thing({"replicas": 1, "text": "u"}), by="a", second=1)

    assert times(apply(live, thing({"text": "u"}), by="b", second=2)) == {"a": at(1), "b": None}


def test_a_manager_has_one_apply_entry_for_all_versions() -> None:
    live = apply(None, thing({"replicas": 1, "text": "u"}), by="me")

    later = apply(live, {**thing({"text": "u"}), "apiVersion": "example.com/v2"}, by="me")

    assert later["spec"] == {"text": "u"}
    assert [entry["apiVersion"] for entry in later["metadata"]["managedFields"]] == ["example.com/v2"]


def test_a_subresource_has_an_apply_entry_of_its_own() -> None:
    live = apply(None, thing({"replicas": 1}), by="me")

    both = apply(live, thing({"text": "u"}), by="me", subresource="status")

    assert owners(both) == {"me Apply": {"f:spec": {"f:replicas": {}}}, "me Apply status": {"f:spec": {"f:text": {}}}}


def test_fields_without_owner_belong_to_before_first_apply() -> None:
    live = apply(thing({"replicas": 1, "text": "u"}), thing({"text": "u"}), by="me", second=4)

    assert owners(live) == {
        "me Apply": {"f:spec": {"f:text": {}}},
        "before-first-apply Update": {"f:spec": {".": {}, "f:replicas": {}, "f:text": {}}},
    }
    with pytest.raises(Conflict, match=r'conflict with "before-first-apply" using example.com/v1: \.spec\.replicas'):
        apply(live, thing({"replicas": 2}), by="me")


def test_an_empty_apply_removes_the_entry() -> None:
    live = apply(None, thing({"replicas": 1}, labels={"a": "x"}), by="me")

    assert owners(apply(live, thing(), by="me")) == {}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "a"}]},
            '.spec.containers: duplicate entries for key [name="a"]',
            id="entries",
        ),
        pytest.param({"set": ["d", "d"]}, '.spec.set: duplicate entries for key [="d"]', id="values"),
        pytest.param(
            {"containers": [{"name": "a", "ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}]},
            '.spec.containers[name="a"].ports: duplicate entries for key [port=80,protocol="TCP"]',
            id="a default and the same value given",
        ),
        pytest.param(
            {"containers": [{"image": "i"}]},
            ".spec.containers: element 0: associative list with keys has an element that omits all key fields "
            '["name"] (and doesn\'t have default values for any key fields)',
            id="no key",
        ),
        pytest.param(
            {"containers": [None]},
            ".spec.containers: element 0: associative list with keys may not have a null element",
            id="null",
        ),
        pytest.param(
            {"set": ["d", "d"], "nested": {"set": ["e", "e"]}},
            'errors:\n  .spec.set: duplicate entries for key [="d"]\n'
            '  .spec.nested.set: duplicate entries for key [="e"]',
            id="several",
        ),
    ],
)
def test_duplicate_entries_are_rejected(spec: Any, problem: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        apply(None, thing(spec), by="me")

    prefix = "failed to create typed patch object (/t; example.com/v1, Kind=Thing): "
    assert prefix + problem == refusal.value.message


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"typo": 1}, ".spec.typo: field not declared in schema", id="undeclared"),
        pytest.param({"typo": None}, ".spec.typo: field not declared in schema", id="undeclared and null"),
        pytest.param({"nested": {"typo": 1}}, ".spec.nested.typo: field not declared in schema", id="deep"),
        pytest.param(
            {"containers": [{"name": "a", "typo": 1}]},
            '.spec.containers[name="a"].typo: field not declared in schema',
            id="in an entry",
        ),
        pytest.param(
            {"text": 1}, ".spec.text: expected string, got &value.valueUnstructured{Value:1}", id="number for string"
        ),
        pytest.param(
            {"text": {"a": ["b"]}},
            '.spec.text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":[]interface '
            '{}{"b"}}}',
            id="map for string",
        ),
        pytest.param(
            {"replicas": "x"}, ".spec.replicas: expected numeric (int or float), got string", id="string for number"
        ),
        pytest.param({"labels": ["a", 1]}, ".spec.labels: expected map, got &{[a 1]}", id="list for map"),
        pytest.param({"set": {"a": 1}}, ".spec.set: expected list, got &{map[a:1]}", id="map for list"),
        pytest.param({"text": None, "any": {"x": [1]}}, "", id="null and untyped fields"),
    ],
)
def test_configurations_that_do_not_conform_are_rejected(spec: Any, problem: str) -> None:
    prefix = "failed to create typed patch object (/t; example.com/v1, Kind=Thing): "
    try:
        apply(None, thing(spec), by="me")
        answer = ""
    except BadRequest as refusal:
        answer = refusal.message.removeprefix(prefix)

    assert answer == problem


def test_a_configuration_with_managed_fields_is_rejected() -> None:
    with pytest.raises(BadRequest, match=r"^metadata.managedFields must be nil$"):
        apply(None, thing(managedFields=[]), by="me")


def test_an_apply_to_an_object_with_ambiguous_entries_fails() -> None:
    live = thing({"containers": [{"image": "i"}]})

    with pytest.raises(BadRequest, match=r"^failed to create typed live object \(/t; example.com/v1, Kind=Thing\): "):
        apply(live, thing({"containers": [{"name": "a"}]}), by="me")


def test_an_apply_shares_unchanged_parts() -> None:
    live = update(None, thing({"nested": {"labels": {"a": "x"}}, "replicas": 1}), by="editor")

    applied = apply(live, thing({"text": "u"}), by="me")

    assert applied["spec"]["nested"] is live["spec"]["nested"]


@given(THINGS, THINGS)
def test_apply_is_idempotent(there: Object, config: Object) -> None:
    live = update(None, there, by="editor")
    once = apply(live, config, by="me", force=True, second=2)

    assert apply(once, config, by="me", force=False, second=3) == once


@given(THINGS, THINGS)
def test_the_only_owner_of_a_field_can_change_it(first: Object, second: Object) -> None:
    live = apply(None, first, by="me")

    changed = apply(live, second, by="me", second=2)

    assert owners(changed).get("me Apply", {}) == difference(applied_paths(THING, second), NEVER_OWNED)


@given(THINGS, THINGS)
def test_an_unforced_apply_conflicts_or_leaves_other_owners_alone(there: Object, config: Object) -> None:
    live = update(None, there, by="editor")
    forced = apply(live, config, by="me", force=True, second=2)

    if owners(forced).get("editor Update") == owners(live).get("editor Update"):
        assert apply(live, config, by="me", second=2) == forced
    else:
        with pytest.raises(Conflict):
            apply(live, config, by="me", second=2)


@given(THINGS, THINGS, THINGS)
def test_every_applied_leaf_has_an_owner(a: Object, b: Object, c: Object) -> None:
    live = apply(None, a, by="a")
    live = apply(live, b, by="b", force=True, second=2)
    live = apply(live, c, by="a", force=True, second=3)

    owned: dict[str, Any] = {}
    for fields in owners(live).values():
        owned = union(owned, fields)
    there = difference(applied_paths(THING, {**live, "metadata": {}}), NEVER_OWNED)
    empty = difference(there, owned)
    assert all(_empty_at(live, path) for path in _paths(empty))


def _paths(tree: dict[str, Any], prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not tree:
        return [prefix] if prefix else []
    return [path for step, below in tree.items() if step != "." for path in _paths(below, (*prefix, step))]


def _empty_at(value: Any, path: tuple[str, ...]) -> bool:
    """Whether an empty container is at a path: containers that lose their last entry stay and have no owner."""
    for step in path:
        if not step.startswith("f:"):
            return False
        value = value[step[2:]]
    return bool(value == {})
