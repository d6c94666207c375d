"""Metrics of the controller under upstream's names."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from tests.controllers.cron_federated_hpa.harness import cron, deployment, rule

from springtide.cluster.context import Services
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController, CronMetrics
from springtide.simulator.scenario import Scenario, create


def test_executions_and_reconciles_are_counted_by_result() -> None:
    """Histogram buckets double from a millisecond."""
    registry = CollectorRegistry()
    measured = Services(CronMetrics(registry))
    (
        Scenario("cron", start="2026-06-05T08:00:00Z")
        .given(cron(rule("r", "30 8 * * *", 7)))
        .running(CronFederatedHPAController, services=lambda _: measured)
        .at("30m2s", create(deployment()))
        .run("1h")
    )

    tries = "cronfederatedhpa_rule_process_duration_seconds"
    assert registry.get_sample_value(f"{tries}_count", {"result": "error"}) == 2
    assert registry.get_sample_value(f"{tries}_count", {"result": "success"}) == 1
    assert registry.get_sample_value("cronfederatedhpa_process_duration_seconds_count", {"result": "error"}) == 0
    reconciles = registry.get_sample_value("cronfederatedhpa_process_duration_seconds_count", {"result": "success"})
    assert reconciles is not None
    assert reconciles >= 4
    text = generate_latest(registry).decode()
    buckets = [line for line in text.splitlines() if line.startswith(f'{tries}_bucket{{le="') and "success" in line]
    assert len(buckets) == 13
    assert 'le="0.001"' in buckets[0]
    assert 'le="2.048"' in buckets[-2]
