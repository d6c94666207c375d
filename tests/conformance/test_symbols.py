"""Differences between two runs are hidden, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.answers import differences
from tests.conformance.symbols import in_symbols

_FIELDS: dict[str, Any] = {"f:data": {".": {}, "f:a": {}}, "f:spec": {"f:b": {}}}
_UIDS = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"


def _step(**metadata: Any) -> dict[str, Any]:
    return {"request": "GET x", "status": 200, "body": {"metadata": metadata}}


def _told(*steps: dict[str, Any]) -> list[Any]:
    return [step["body"] for step in in_symbols(list(steps), {"c1": "{ns}"})]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            [_step(uid=_UIDS[0], resourceVersion="90"), _step(uid=_UIDS[0], resourceVersion="7")],
            [
                {"metadata": {"uid": "uid#1", "resourceVersion": "rv#2"}},
                {"metadata": {"uid": "uid#1", "resourceVersion": "rv#1"}},
            ],
            id="versions keep their order",
        ),
        pytest.param(
            [_step(uid=_UIDS[1]), _step(uid=_UIDS[0])],
            [{"metadata": {"uid": "uid#1"}}, {"metadata": {"uid": "uid#2"}}],
            id="other uids stay others",
        ),
        pytest.param(
            [_step(resourceVersion="90")], [{"metadata": {"resourceVersion": "<version>"}}], id="lists have any version"
        ),
        pytest.param(
            [_step(creationTimestamp="2026-01-01T00:00:00Z", name="2017-01-01T00:00:00Z")],
            [{"metadata": {"creationTimestamp": "<now>", "name": "2017-01-01T00:00:00Z"}}],
            id="only the present is hidden",
        ),
        pytest.param(
            [_step(uid=_UIDS[0], generateName="a-", name="a-x7x7x", namespace="c1")],
            [{"metadata": {"uid": "uid#1", "generateName": "a-", "name": "a-<5>", "namespace": "{ns}"}}],
            id="generated names keep their length",
        ),
        pytest.param(
            [_step(managedFields=[{"manager": "me", "operation": "Update", "time": "x", "fieldsV1": _FIELDS}])],
            [{"metadata": {"managedFields": {"me Update": ["f:data .", "f:data f:a", "f:spec f:b"]}}}],
            id="owned fields are paths, and so is a field that is owned itself",
        ),
        pytest.param(
            [_step(name="a"), _step(name="a")], [{"metadata": {"name": "a"}}, {"as in step": 1}], id="the same again"
        ),
    ],
)
def test_hides_what_another_play_has_otherwise(steps: list[dict[str, Any]], expected: list[Any]) -> None:
    assert expected == _told(*steps)


@pytest.mark.parametrize(
    ("played", "fields"),
    [
        pytest.param(_step(name="a"), [], id="nothing"),
        pytest.param(_step(name="b"), ["1/body/metadata/name"], id="a member"),
        pytest.param(_step(), ["1/body/metadata/name"], id="a member that is missing"),
        pytest.param(_step(name="b") | {"status": 404}, ["1/status"], id="only the outcome, where that differs"),
        pytest.param(_step(name="a", generation=True), ["1/body/metadata/generation"], id="a member too many"),
    ],
)
def test_tells_what_differs(played: dict[str, Any], fields: list[str]) -> None:
    assert fields == [each.field for each in differences([_step(name="a")], [played])]


def test_tells_truth_from_one() -> None:
    """They are equal in Python but not in JSON."""
    assert [each.field for each in differences([_step(x=1)], [_step(x=True)])] == ["1/body/metadata/x"]
