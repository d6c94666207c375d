"""Recorded results of the libraries of kube-apiserver for random input.

Managed fields and server-side apply: structured-merge-diff 6.3.2 under the field manager of apimachinery 0.36.0. JSON
and merge patches: json-patch 4.13.0. Strategic merge patches: apimachinery 0.36.0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.patches.samples import DOCUMENT, THING

from springtide.apiserver.patches import json_patch, managed, merge_patch, strategic_patch
from springtide.cluster.errors import ApiError, Invalid
from springtide.cluster.resources import Object

HERE = Path(__file__).parent
PATCHES: list[dict[str, Any]] = json.loads((HERE / "recorded_patches.json").read_text())
HISTORIES: list[list[dict[str, Any]]] = json.loads((HERE / "recorded_managed.json").read_text())


def numbered(kind: str) -> list[Any]:
    cases = [case for case in PATCHES if kind in case]
    return [pytest.param(case, id=f"{kind}-{number}") for number, case in enumerate(cases)]


@pytest.mark.parametrize("case", numbered("merge"))
def test_merge_patches_as_recorded(case: dict[str, Any]) -> None:
    assert merge_patch(case["target"], case["merge"]) == case["result"]


@pytest.mark.parametrize("case", numbered("json"))
def test_json_patches_as_recorded(case: dict[str, Any]) -> None:
    if "result" in case:
        assert json_patch(case["target"], case["json"]) == case["result"]
    else:
        with pytest.raises(Invalid):
            json_patch(case["target"], case["json"])


@pytest.mark.parametrize("case", numbered("strategic"))
def test_strategic_patches_as_recorded(case: dict[str, Any]) -> None:
    assert strategic_patch(case["target"], case["strategic"], DOCUMENT) == case["result"]


@pytest.mark.parametrize("history", [pytest.param(steps, id=str(number)) for number, steps in enumerate(HISTORIES)])
def test_managed_fields_as_recorded(history: list[dict[str, Any]]) -> None:
    live: Object | None = None
    for second, step in enumerate(history):
        if "error" in step:
            with pytest.raises(ApiError) as refusal:
                perform(live, step, second)
            assert refusal.value.message == step["error"]
            continue
        live = perform(live, step, second)
        entries = live["metadata"].get("managedFields", [])
        owners = {f"{entry['manager']} {entry['operation']}": entry["fieldsV1"] for entry in entries}
        assert owners == step["owners"]
        assert live == whole(step["result"], **({"managedFields": entries} if entries else {}))


def perform(live: Object | None, step: dict[str, Any], second: int) -> Object:
    now = f"2026-01-01T00:00:{second:02}Z"
    item = whole(step["object"])
    if step["op"] == "update":
        return managed.after_update(live, item, manager=step["by"], node=THING, now=now)
    return managed.apply(live, item, manager=step["by"], force=step["op"] == "apply!", node=THING, now=now)


def whole(part: Object, **metadata: Any) -> Object:
    """Return a recorded object with the fields that all of them have."""
    head = {"apiVersion": "example.com/v1", "kind": "Thing"}
    return {**head, **part, "metadata": {"name": "t", "uid": "u", **part.get("metadata", {}), **metadata}}
