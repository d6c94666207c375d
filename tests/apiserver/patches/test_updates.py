from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from tests.apiserver.patches.samples import THINGS, apply, at, owners, thing, times, update

from springtide.apiserver.patches import merge_patch
from springtide.cluster.resources import Object


def test_a_create_owns_all_fields() -> None:
    created = update(None, thing({"replicas": 1, "set": ["d"]}, labels={"a": "x"}), by="kubectl", second=7)

    assert created["metadata"]["managedFields"] == [
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "example.com/v1",
            "time": at(7),
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {".": {}, "f:replicas": {}, "f:set": {".": {}, 'v:"d"': {}}},
            },
        }
    ]


def test_an_update_owns_changed_fields_alone() -> None:
    created = update(None, thing({"replicas": 1, "text": "u"}), by="a")

    changed = update(created, merge_patch(created, {"spec": {"replicas": 2}}), by="b", second=2)

    assert owners(changed) == {
        "a Update": {"f:spec": {".": {}, "f:text": {}}},
        "b Update": {"f:spec": {"f:replicas": {}}},
    }
    assert times(changed) == {"a": at(1), "b": at(2)}


def test_an_update_takes_fields_from_an_applier() -> None:
    applied = apply(None, thing({"replicas": 1}), by="a")

    changed = update(applied, merge_patch(applied, {"spec": {"replicas": 2}}), by="b", second=2)

    assert owners(changed) == {"b Update": {"f:spec": {"f:replicas": {}}}}


def test_removed_fields_have_no_owner() -> None:
    created = update(None, thing({"replicas": 1, "labels": {"a": "x", "b": "y"}}), by="a")

    changed = update(created, merge_patch(created, {"spec": {"labels": {"a": None}}}), by="b", second=2)

    assert owners(changed) == {"a Update": {"f:spec": {".": {}, "f:labels": {".": {}, "f:b": {}}, "f:replicas": {}}}}
    assert times(changed) == {"a": at(1)}


def test_a_manager_has_an_entry_for_each_subresource() -> None:
    created = update(None, thing({"replicas": 1}), by="a")

    changed = update(created, thing({"replicas": 2}), by="a", second=2, subresource="scale")

    assert owners(changed) == {"a Update": {"f:spec": {}}, "a Update scale": {"f:spec": {"f:replicas": {}}}}


def test_fields_of_the_server_have_no_owner() -> None:
    created = update(
        None,
        thing(
            name="t",
            namespace="n",
            uid="update",
            resourceVersion="1",
            generation=1,
            creationTimestamp=at(0),
            deletionTimestamp=at(0),
            deletionGracePeriodSeconds=0,
            selfLink="/t",
            generateName="t-",
        ),
    )

    assert owners(created) == {"editor Update": {"f:metadata": {"f:generateName": {}}}}


@given(THINGS)
def test_an_equal_update_changes_nothing(item: Object) -> None:
    created = update(None, item)
    again = {**item, "metadata": {**item["metadata"]}}

    assert update(created, again, by="b", second=9) == created


def test_an_unchanged_object_is_returned_itself() -> None:
    created = update(None, thing({"replicas": 1}))

    assert update(created, created, by="b", second=9) is created


@pytest.mark.parametrize("reset", [pytest.param([], id="empty list"), pytest.param([{}], id="empty entry")])
def test_a_client_can_reset_managed_fields(reset: list[Any]) -> None:
    created = update(None, thing({"replicas": 1}))

    forgotten = update(created, thing({"replicas": 1}, managedFields=reset), second=2)
    later = update(forgotten, thing({"replicas": 2}), second=3)

    assert owners(forgotten) == owners(later) == {}


def test_a_write_to_a_subresource_cannot_reset_managed_fields() -> None:
    created = update(None, thing({"replicas": 1}))

    written = update(created, thing({"replicas": 1}, managedFields=[]), subresource="status")

    assert owners(written) == owners(created)


def test_a_client_can_edit_managed_fields() -> None:
    created = update(None, thing({"replicas": 1, "text": "u"}), by="a")
    entry = {
        "manager": "b",
        "operation": "Apply",
        "apiVersion": "example.com/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:text": {".": {}}}},
    }

    edited = update(created, thing({"replicas": 1, "text": "u"}, managedFields=[entry]), second=2)

    assert owners(edited) == {"b Apply": {"f:spec": {"f:text": {}}}}


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("x", id="no list"),
        pytest.param([{"manager": "b"}], id="no operation"),
        pytest.param([{"operation": "Update", "apiVersion": "v1"}], id="no type of fields"),
    ],
)
def test_malformed_managed_fields_are_ignored(broken: Any) -> None:
    created = update(None, thing({"replicas": 1}))

    written = update(created, thing({"replicas": 1}, managedFields=broken), second=2)

    assert owners(written) == owners(created)


def test_the_oldest_update_entries_are_merged() -> None:
    item = update(None, thing(labels={"k0": "x"}), by="m0", second=0)
    for number in range(1, 12):
        item = update(
            item, merge_patch(item, {"metadata": {"labels": {f"k{number}": "x"}}}), by=f"m{number}", second=number
        )

    found = owners(item)

    assert found["ancient-changes Update"]["f:metadata"]["f:labels"] == {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}
    assert list(found) == ["ancient-changes Update", *(f"m{number} Update" for number in range(3, 12))]


def test_ambiguous_list_entries_drop_all_managed_fields() -> None:
    created = update(None, thing({"replicas": 1}))

    assert owners(update(created, thing({"containers": [{"image": "i"}]}))) == {}


def test_duplicate_entries_are_owned_together() -> None:
    created = update(None, thing({"containers": [{"name": "a", "image": "x"}]}), by="a")

    doubled = update(created, thing({"containers": [{"name": "a"}, {"name": "a", "image": "y"}]}), by="b", second=2)

    assert owners(doubled)["b Update"] == {"f:spec": {"f:containers": {'k:{"name":"a"}': {}}}}
