"""The rules that the API server enforces say the same as the checks in Python."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from tests.apis.crd_server import admit
from tests.apis.manifests import problems_of
from tests.apis.scheduled.objects import producer, schedule, scheduled
from tests.apis.scheduled.test_autoscaler import autoscaler, metric

from springtide.apis.crds import Flavour
from springtide.apis.problems import has_errors

SOURCES: tuple[dict[str, Any], ...] = (
    {"pendingCapacity": {"nodeSelector": {"a": "b"}}},
    {"queue": {"type": "Prometheus", "id": "up"}},
    {"reservedCapacity": {"nodeSelector": {"a": "b"}}},
    {"schedule": schedule()},
)
TIMES: tuple[dict[str, Any], ...] = (
    {"start": {"hours": 8}},
    {"end": {"hours": 18}},
    {"from": "2026-11-27T06:00:00Z"},
    {"until": "2026-11-27T20:00:00Z"},
)


def combinations(parts: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """Every way to have some of the parts."""
    return [
        {key: value for part, there in zip(parts, chosen, strict=True) if there for key, value in part.items()}
        for chosen in product((False, True), repeat=len(parts))
    ]


@pytest.mark.parametrize("spec", combinations(SOURCES), ids=lambda spec: "+".join(spec) or "nothing")
def test_sources(spec: dict[str, Any]) -> None:
    value = producer(spec)

    assert bool(admit(value)) == has_errors(problems_of(value))


@pytest.mark.parametrize("times", combinations(TIMES), ids=lambda times: "+".join(times) or "nothing")
def test_times_of_a_behaviour(times: dict[str, Any]) -> None:
    value = scheduled({"replicas": 1, **times})

    assert bool(admit(value)) == has_errors(problems_of(value))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(autoscaler(), id="legal"),
        pytest.param(autoscaler(minReplicas=11), id="bounds"),
        pytest.param(autoscaler(metrics=[{}]), id="no-source"),
        pytest.param(autoscaler(metrics=[metric(type="Value")]), id="no-target"),
    ],
)
def test_autoscalers(value: dict[str, Any]) -> None:
    assert bool(admit(value)) == has_errors(problems_of(value))


def test_stock_crd_takes_what_upstream_takes() -> None:
    """Stock CRDs have none of our rules and fields."""
    upstream = {"replicas": 3, "start": {"hours": "9"}, "end": {"hours": "17"}}
    assert admit(scheduled(upstream), Flavour.STOCK) == []
    assert admit(scheduled({**upstream, "name": "a"}), Flavour.STOCK) != []
    assert admit(scheduled({**upstream, "start": {"hours": 9}}), Flavour.STOCK) != []
    assert admit(scheduled({"replicas": 3, "start": {"hours": "9"}}), Flavour.STOCK) != []
