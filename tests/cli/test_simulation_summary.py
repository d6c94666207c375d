"""What the summary of a simulation says, from the entries of a trace."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apis.meta.times import parse_instant
from springtide.cli.simulation_summary import SimulationSummary
from springtide.simulator.trace import TraceEntry

NOW = parse_instant("2026-11-26T00:00:00Z")
DAY = 86_400


def entry(day: int, verb: str, kind: str, name: str, **change: Any) -> TraceEntry:
    changes = {path: [None, value] for path, value in change.items()}
    return TraceEntry(NOW + day * DAY, "test", verb, kind, "default", name, changes, "")


def failed(day: int, pod: str, message: str, reason: str = "FailedScheduling") -> TraceEntry:
    about = {"kind": "Pod", "namespace": "default", "name": pod}
    event = {"involvedObject": about, "type": "Warning", "reason": reason, "message": message}
    return entry(day, "create", "Event", f"{pod}.1", **event)


def deployment(day: int, verb: str, replicas: int = 0) -> TraceEntry:
    changes: dict[str, dict[str, Any]] = {
        "create": {"spec": {"replicas": replicas}},
        "patch": {"spec.replicas": replicas},
    }
    return entry(day, verb, "Deployment", "web", **changes.get(verb, {}))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param(
            [failed(0, "a", "no nodes"), failed(1, "b", "no memory")],
            ["2 pods: FailedScheduling, first at 2026-11-26T00:00:00Z: no nodes"],
            id="two-pending-pods",
        ),
        pytest.param([failed(0, "a", "no nodes"), entry(1, "bind", "Pod", "a")], [], id="bound-later"),
        pytest.param([failed(0, "a", "no nodes"), entry(1, "delete", "Pod", "a")], [], id="deleted-while-pending"),
        pytest.param(
            [failed(0, "a", "no nodes"), entry(0, "bind", "Pod", "a"), failed(1, "b", "no memory")],
            ["1 pod: FailedScheduling, first at 2026-11-27T00:00:00Z: no memory"],
            id="one-bound-before-another-fails",
        ),
        pytest.param(
            [failed(0, "a", "no nodes"), failed(1, "b", "no memory"), entry(2, "bind", "Pod", "a")],
            ["1 pod: FailedScheduling, first at 2026-11-27T00:00:00Z: no memory"],
            id="one-bound-after-another-failed",
        ),
        pytest.param(
            [failed(0, "a", "no nodes"), failed(1, "a", "no memory")],
            ["1 pod: FailedScheduling, first at 2026-11-26T00:00:00Z: no nodes"],
            id="one-pod-that-fails-twice",
        ),
        pytest.param(
            [failed(0, "a", "cannot evict", "FailedEviction"), entry(1, "delete", "Pod", "a")],
            ["1 pod: FailedEviction, first at 2026-11-26T00:00:00Z: cannot evict"],
            id="another-failure-of-a-deleted-pod",
        ),
        pytest.param(
            [
                deployment(0, "create", 2),
                deployment(1, "patch", 6),
                deployment(2, "delete"),
                deployment(3, "create", 3),
            ],
            ["Deployment default/web: 2 to 6 replicas in 2 changes, 3 at the end"],
            id="created-anew-with-other-replicas",
        ),
        pytest.param(
            [deployment(0, "create", 2), deployment(1, "delete"), deployment(2, "create", 2)],
            ["Deployment default/web: 2 replicas throughout"],
            id="created-anew-with-the-same-replicas",
        ),
    ],
)
def test_the_summary_of_a_trace(entries: list[TraceEntry], expected: list[str]) -> None:
    summary = SimulationSummary()
    for one in entries:
        summary.record(one)
    assert summary.lines(NOW + 10 * DAY) == expected
