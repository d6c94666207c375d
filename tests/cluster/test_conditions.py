"""Conditions and status patches."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.cluster.conditions import (
    LONGEST_MESSAGE,
    Condition,
    ConditionList,
    ConditionStatus,
    merged_conditions,
    own_conditions,
    status_patch,
)
from springtide.cluster.resources import Object, Resource
from springtide.cluster.transport import Patch, PatchType

THINGS = Resource("example.com", "v1", "things", "Thing")
NOW = 1_767_571_200  # 2026-01-05T00:00:00Z
READY = Condition("Ready", ConditionStatus.TRUE, "Fine", "all is well")


def entry(type_: str = "Ready", status: str = "True", since: str = "2026-01-01T00:00:00Z", **more: Any) -> Object:
    return {
        "type": type_,
        "status": status,
        "lastTransitionTime": since,
        "reason": "Fine",
        "message": "all is well",
        "observedGeneration": 3,
        **more,
    }


def thing(**status: Any) -> Object:
    metadata = {"namespace": "a", "name": "b", "generation": 3}
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "status": status}


@pytest.mark.parametrize(
    ("before", "since"),
    [
        pytest.param([], "2026-01-05T00:00:00Z", id="new"),
        pytest.param([entry()], "2026-01-01T00:00:00Z", id="same-status"),
        pytest.param([entry(reason="Other", message="?")], "2026-01-01T00:00:00Z", id="other-reason"),
        pytest.param([entry(status="False")], "2026-01-05T00:00:00Z", id="other-status"),
        pytest.param([entry(since="")], "2026-01-05T00:00:00Z", id="no-time-before"),
    ],
)
def test_the_transition_time_follows_the_status(before: list[Object], since: str) -> None:
    """It changes only with the status."""
    (written,) = own_conditions(before, [READY], now=NOW, generation=3)

    assert written == entry(since=since)


def test_merging_keeps_conditions_of_others_in_place() -> None:
    """They stay with unknown fields; new conditions go to the end."""
    theirs = {"type": "Theirs", "status": "False", "severity": "Info"}
    before = [theirs, entry(status="False"), {"type": "Last", "status": "True"}]
    also = Condition("Active", ConditionStatus.UNKNOWN, "Fine", "all is well")

    merged = merged_conditions(before, [READY, also], now=NOW, generation=3)

    now = "2026-01-05T00:00:00Z"
    assert merged == [theirs, entry(since=now), before[2], entry("Active", "Unknown", since=now)]


def test_a_message_is_truncated_to_the_limit_of_the_api() -> None:
    """The server would refuse the whole status for one long message."""
    (written,) = own_conditions(
        [], [Condition("Ready", ConditionStatus.TRUE, "R", "x" * 40_000)], now=NOW, generation=None
    )

    assert len(written["message"]) == LONGEST_MESSAGE
    assert "observedGeneration" not in written


def test_an_apply_has_all_fields_of_this_controller_and_no_others() -> None:
    """Server-side apply owns what it sends: all fields and conditions of this controller, without those to remove."""
    item = thing(total=1, conditions=[{"type": "Theirs", "status": "True"}])

    patch = status_patch(THINGS, item, {"total": 2, "gone": None}, [READY], now=NOW)

    assert patch == Patch(
        PatchType.APPLY,
        {
            "apiVersion": "example.com/v1",
            "kind": "Thing",
            "metadata": {"name": "b", "namespace": "a"},
            "status": {"total": 2, "conditions": [entry(since="2026-01-05T00:00:00Z")]},
        },
        force=True,
    )


def test_an_atomic_list_is_patched_as_a_whole() -> None:
    """Conditions of other writers are sent back, and fields to remove are null."""
    theirs = {"type": "Theirs", "status": "True"}
    item = thing(gone=5, conditions=[theirs])

    patch = status_patch(THINGS, item, {"gone": None}, [READY], now=NOW, listed=ConditionList.ATOMIC)

    ours = entry(since="2026-01-05T00:00:00Z")
    assert patch == Patch.merge({"status": {"gone": None, "conditions": [theirs, ours]}})


@pytest.mark.parametrize("listed", list(ConditionList))
@pytest.mark.parametrize(
    ("status", "changed"),
    [
        pytest.param({"total": 2, "conditions": [entry()]}, False, id="the-same"),
        pytest.param({"total": 2, "conditions": [entry(severity="Info")]}, False, id="others-added-a-field"),
        pytest.param({"total": 3, "conditions": [entry()]}, True, id="other-value"),
        pytest.param({"total": 2, "gone": 1, "conditions": [entry()]}, True, id="a-field-to-remove"),
        pytest.param({"total": 2, "conditions": [entry(observedGeneration=2)]}, True, id="older-generation"),
        pytest.param({"total": 2}, True, id="no-conditions"),
        pytest.param({"total": 2, "other": 1, "conditions": [entry()]}, False, id="others-field"),
    ],
)
def test_a_patch_is_made_only_if_something_changes(
    status: dict[str, Any], changed: bool, listed: ConditionList
) -> None:
    """A status that is there already is not written again."""
    patch = status_patch(THINGS, thing(**status), {"total": 2, "gone": None}, [READY], now=NOW, listed=listed)

    assert (patch is not None) is changed


def test_conditions_without_observed_generation() -> None:
    """A field that the server drops would differ forever."""
    before = entry()
    del before["observedGeneration"]

    patch = status_patch(THINGS, thing(conditions=[before]), {}, [READY], now=NOW, observes_generation=False)

    assert patch is None


def test_of_two_conditions_of_one_type_the_first_is_kept() -> None:
    """An atomic list may have duplicates; after the repair nothing is written."""
    theirs = {"type": "Theirs", "status": "True"}
    twice = [entry(), theirs, entry(status="False"), theirs]

    patch = status_patch(THINGS, thing(conditions=twice), {}, [READY], now=NOW, listed=ConditionList.ATOMIC)

    mended = [entry(), theirs, theirs]
    assert patch == Patch.merge({"status": {"conditions": mended}})
    again = status_patch(THINGS, thing(conditions=mended), {}, [READY], now=NOW + 9, listed=ConditionList.ATOMIC)
    assert again is None
