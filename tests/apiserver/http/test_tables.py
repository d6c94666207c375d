"""Table cells: ages, JSONPath, and the status of pods and autoscalers."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apiserver.http.tables.cells import AgeFormatter, duration
from springtide.apiserver.http.tables.custom import first
from springtide.apiserver.http.tables.pods import PODS
from springtide.apiserver.http.tables.resources import RESOURCES
from springtide.apiserver.http.tables.workloads import AUTOSCALERS, WORKLOADS

_BORN = "2026-11-16T12:00:00Z"
_AGES = AgeFormatter(lambda: 1_794_830_400 + 3600 * 5)
_DAY = 86_400


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (10_860, "3h1m"),
        (28_799, "7h59m"),
        (28_800, "8h"),
        (2 * _DAY - 1, "47h"),
        (2 * _DAY, "2d"),
        (2 * _DAY + 3600, "2d1h"),
        (8 * _DAY, "8d"),
        (2 * 365 * _DAY - 1, "729d"),
        (2 * 365 * _DAY, "2y"),
        (3 * 365 * _DAY + _DAY, "3y1d"),
        (8 * 365 * _DAY, "8y"),
    ],
)
def test_ages_are_coarser_the_longer_ago(seconds: int, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(".a.b", 1, id="fields"),
        pytest.param(".list[1].n", "y", id="list index"),
        pytest.param(".list[-1].n", "z", id="negative index"),
        pytest.param(".list[9].n", None, id="index out of range"),
        pytest.param(".list[*].n", "x", id="all: the first counts"),
        pytest.param(".list[?(@.n=='y')].v", 2, id="a condition"),
        pytest.param('.list[?(@.v > 2)]["n"]', "z", id="a comparison, and quotes"),
        pytest.param(".list[?(@.w)].n", None, id="missing field"),
        pytest.param(r".odd.a\.b/c", 3, id="a name with dots"),
        pytest.param(".odd['a.b/c']", 3, id="a quoted name with dots"),
        pytest.param(".a.b.c", None, id="path into a number"),
        pytest.param(".list[", None, id="broken"),
        pytest.param(".list[?(@.n==)].v", None, id="broken condition"),
    ],
)
def test_column_paths(path: str, expected: Any) -> None:
    item = {
        "a": {"b": 1},
        "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}, {"n": "z", "v": 3}],
        "odd": {"a.b/c": 3},
    }

    assert first(item, path) == expected


def _pod(status: dict[str, Any], *, inits: int = 0, deleted: bool = False) -> dict[str, Any]:
    metadata = {"name": "p", "creationTimestamp": _BORN} | ({"deletionTimestamp": _BORN} if deleted else {})
    spec = {
        "containers": [{"name": "c"}],
        "initContainers": [{"name": f"i{number}"} for number in range(inits)],
    }
    return {"metadata": metadata, "spec": spec, "status": status}


def _state(kind: str, *, ready: bool = False, restarts: int = 0, **detail: Any) -> dict[str, Any]:
    return {"name": "c", "ready": ready, "restartCount": restarts, "state": {kind: detail}}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(_pod({"phase": "Pending"}), ("0/1", "Pending", "0"), id="waits for a node"),
        pytest.param(
            _pod({"phase": "Running", "containerStatuses": [_state("running", ready=True)]}),
            ("1/1", "Running", "0"),
            id="runs",
        ),
        pytest.param(
            _pod({"phase": "Running", "containerStatuses": [_state("waiting", restarts=3, reason="CrashLoopBackOff")]}),
            ("0/1", "CrashLoopBackOff", "3"),
            id="crashes",
        ),
        pytest.param(
            _pod({"phase": "Failed", "containerStatuses": [_state("terminated", exitCode=2)]}),
            ("0/1", "ExitCode:2", "0"),
            id="failed without a reason",
        ),
        pytest.param(
            _pod({"phase": "Succeeded", "containerStatuses": [_state("terminated", reason="Completed", exitCode=0)]}),
            ("0/1", "Completed", "0"),
            id="done",
        ),
        pytest.param(
            _pod({"phase": "Pending", "initContainerStatuses": [_state("running")]}, inits=2),
            ("0/1", "Init:0/2", "0"),
            id="containers start",
        ),
        pytest.param(
            _pod({"phase": "Pending", "initContainerStatuses": [_state("terminated", exitCode=1, signal=9)]}, inits=1),
            ("0/1", "Init:Signal:9", "0"),
            id="image cannot be pulled",
        ),
        pytest.param(_pod({"phase": "Running"}, deleted=True), ("0/1", "Terminating", "0"), id="terminating"),
        pytest.param(
            _pod({"phase": "Running", "reason": "NodeLost"}, deleted=True), ("0/1", "Unknown", "0"), id="node lost"
        ),
        pytest.param(
            _pod({"phase": "Failed", "reason": "Evicted"}, deleted=True), ("0/1", "Evicted", "0"), id="was evicted"
        ),
        pytest.param(
            _pod(
                {
                    "phase": "Running",
                    "containerStatuses": [
                        _state("running", ready=True, restarts=1)
                        | {"lastState": {"terminated": {"finishedAt": "2026-11-16T16:55:00Z"}}}
                    ],
                }
            ),
            ("1/1", "Running", "1 (5m ago)"),
            id="restarted",
        ),
    ],
)
def test_the_status_column_of_pods(pod: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert tuple(PODS.cells(pod, _AGES)[1:4]) == expected


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        pytest.param({}, {}, "<none>", id="none"),
        pytest.param(
            {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}]},
            {},
            "cpu: <unknown>/80%",
            id="not measured",
        ),
        pytest.param(
            {"metrics": [{"type": "Pods", "pods": {"target": {"averageValue": "5"}}}] * 3},
            {"currentMetrics": [{"pods": {"current": {"averageValue": "7"}}}]},
            "7/5, <unknown>/5 + 1 more...",
            id="many",
        ),
        pytest.param(
            {"metrics": [{"type": "External", "external": {"target": {"value": "30"}}}]},
            {"currentMetrics": [{"external": {"current": {"value": "12"}}}]},
            "12/30",
            id="external",
        ),
    ],
)
def test_the_targets_column_of_autoscalers(spec: dict[str, Any], status: dict[str, Any], expected: str) -> None:
    item = {"apiVersion": "autoscaling/v2", "metadata": {"name": "h"}, "spec": spec, "status": status}

    assert AUTOSCALERS.cells(item, _AGES)[2] == expected


def test_every_row_has_a_cell_for_each_column() -> None:
    for name, layout in {"Pod": PODS, "HorizontalPodAutoscaler": AUTOSCALERS, **WORKLOADS, **RESOURCES}.items():
        empty = {"apiVersion": "v1", "kind": name, "metadata": {"name": "x"}}

        assert len(layout.cells(empty, _AGES)) == len(layout.columns), name
