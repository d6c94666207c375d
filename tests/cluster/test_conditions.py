"""Conditions and the status they stand in."""

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
def test_the_time_of_transition_follows_the_status(before: list[Object], since: str) -> None:
    """It changes with the status and with nothing else."""
    (written,) = own_conditions(before, [READY], now=NOW, generation=3)

    assert written == entry(since=since)


def test_merging_keeps_what_others_wrote_in_its_place() -> None:
    """Others' conditions stay, with fields that we do not know; new ones of ours go to the end."""
    theirs = {"type": "Theirs", "status": "False", "severity": "Info"}
    before = [theirs, entry(status="False"), {"type": "Last", "status": "True"}]
    also = Condition("Active", ConditionStatus.UNKNOWN, "Fine", "all is well")

    merged = merged_conditions(before, [READY, also], now=NOW, generation=3)

    now = "2026-01-05T00:00:00Z"
    assert merged == [theirs, entry(since=now), before[2], entry("Active", "Unknown", since=now)]


def test_a_message_is_cut_to_what_the_api_takes() -> None:
    """The server would refuse the whole status for one long message."""
    (written,) = own_conditions(
        [], [Condition("Ready", ConditionStatus.TRUE, "R", "x" * 40_000)], now=NOW, generation=None
    )

    assert len(written["message"]) == LONGEST_MESSAGE
    assert "observedGeneration" not in written


def test_an_apply_sends_all_of_ours_and_nothing_of_others() -> None:
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
    """Where the list is one value, what others wrote is sent back, and fields to remove are null."""
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
def test_a_patch_is_made_only_where_something_changes(
    status: dict[str, Any], changed: bool, listed: ConditionList
) -> None:
    """What is there already is not written again."""
    patch = status_patch(THINGS, thing(**status), {"total": 2, "gone": None}, [READY], now=NOW, listed=listed)

    assert (patch is not None) is changed


def test_kinds_whose_conditions_know_no_generation_get_none() -> None:
    """A field that the server drops would differ for ever."""
    before = entry()
    del before["observedGeneration"]

    patch = status_patch(THINGS, thing(conditions=[before]), {}, [READY], now=NOW, observes_generation=False)

    assert patch is None


def test_of_ours_an_atomic_list_keeps_the_first() -> None:
    """Nothing but us keeps such a list from naming a type twice; once it is mended it is quiet."""
    theirs = {"type": "Theirs", "status": "True"}
    twice = [entry(), theirs, entry(status="False"), theirs]

    patch = status_patch(THINGS, thing(conditions=twice), {}, [READY], now=NOW, listed=ConditionList.ATOMIC)

    mended = [entry(), theirs, theirs]
    assert patch == Patch.merge({"status": {"conditions": mended}})
    again = status_patch(THINGS, thing(conditions=mended), {}, [READY], now=NOW + 9, listed=ConditionList.ATOMIC)
    assert again is None
