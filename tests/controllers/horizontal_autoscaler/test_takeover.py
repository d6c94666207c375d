"""Autoscalers and producers start at different times: meanwhile no fallback value of a query counts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.horizontal_autoscaler.harness import autoscaler, conditions, deployment, metric, node, scaled
from tests.controllers.horizontal_autoscaler.test_with_producer import PRODUCER, QUERY, services

from springtide.cluster.caches import wait_until_fresh
from springtide.controllers.horizontal_autoscaler import HorizontalAutoscalerController
from springtide.controllers.metrics_producer import MetricsProducerController
from springtide.simulator.behaviours import NODES, SCHEDULING, WORKLOADS
from springtide.simulator.scenario import Scenario, crash

WITH_FALLBACK = f"max({QUERY} or vector(1))"


def _scenario(query: str, *controllers: Any, replicas: int = 1) -> Scenario:
    hasty = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    return (
        Scenario("a shop", start="2026-06-08T16:30:00Z")
        .given(node(), deployment(3), PRODUCER, autoscaler(metric(query), most=10, behavior=hasty))
        .behaving(*NODES, *SCHEDULING, *WORKLOADS)
        .running(*controllers, services=services, replicas=replicas)
    )


def test_new_leader_waits_for_the_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Producers wait for the caches of nodes and pods, which take longer to sync than autoscalers."""
    at_once = wait_until_fresh

    async def slow_pod_list(transport: Any, selection: Any, store: Any, clock: Any) -> None:
        if selection.resource.plural == "pods":
            await clock.sleep(100)
        await at_once(transport, selection, store, clock)

    monkeypatch.setattr("springtide.cluster.caches.wait_until_fresh", slow_pod_list)
    outcome = (
        _scenario(WITH_FALLBACK, MetricsProducerController, HorizontalAutoscalerController, replicas=2)
        .at("10m", crash("springtide-0", downtime=30))
        .at("15m", crash("springtide-1", downtime=30))
        .run("20m")
    )

    assert scaled(outcome) == []
    assert conditions(outcome)["Active"]["reason"] == "MetricsRead"
    warnings = [
        (event["reason"], event["count"])
        for event in outcome.objects("Event")
        if event["type"] == "Warning" and event["involvedObject"]["kind"] == "HorizontalAutoscaler"
    ]
    assert warnings == [], "autoscalers start when the series of all producers are complete"


def test_series_are_missing_without_the_producer_controller() -> None:
    outcome = _scenario(WITH_FALLBACK, HorizontalAutoscalerController).run("20m")

    assert scaled(outcome) == []
    active = conditions(outcome)["Active"]
    assert active["reason"] == "NotKnownYet"
    assert "--metrics-source prometheus" in active["message"]
