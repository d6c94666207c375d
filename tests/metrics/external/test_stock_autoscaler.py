"""A stock HorizontalPodAutoscaler follows a schedule in a simulated cluster: real controllers, virtual days."""

from __future__ import annotations

from springtide.apis.forecast import format_instant
from springtide.cluster.context import Services
from springtide.cluster.resources import Object
from springtide.controllers.grant.state import GrantPolicy
from springtide.controllers.metrics_producer import MetricsProducerController
from springtide.metrics.external import SeriesMetrics
from springtide.metrics.series import SeriesStore
from springtide.simulator import behaviours
from springtide.simulator.scenario import Outcome, Scenario, delete

PRODUCER: Object = {
    "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
    "kind": "MetricsProducer",
    "metadata": {"name": "office", "namespace": "default"},
    "spec": {
        "schedule": {
            "defaultReplicas": 1,
            "behaviors": [{"replicas": 4, "start": {"hours": "9"}, "end": {"hours": "17"}}],
        }
    },
}
LABELS = {"app": "shop"}
DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "shop", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "shop"}]}},
    },
}
AUTOSCALER: Object = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "shop", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [
            {
                "type": "External",
                "external": {
                    "metric": {
                        "name": "karpenter_scheduled_capacity",
                        "selector": {"matchLabels": {"name": "office"}},
                    },
                    "target": {"type": "AverageValue", "averageValue": "1"},
                },
            }
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    },
}


def scenario() -> Scenario:
    """Make a scenario with a schedule, a Deployment, and an autoscaler."""
    store = SeriesStore()
    other = {**PRODUCER, "metadata": {"name": "other", "namespace": "default"}}
    return (
        Scenario("a stock autoscaler follows a schedule", start="2026-01-05T00:00:00Z")
        .given(PRODUCER, other, DEPLOYMENT, AUTOSCALER)
        .running(MetricsProducerController, services=lambda incarnation: Services(store, GrantPolicy(everything=True)))
        .behaving(*behaviours.measuring(SeriesMetrics([store])))
    )


def scaled(outcome: Outcome) -> list[tuple[str, int]]:
    """List when the Deployment was given another number of replicas, and which."""
    return [
        (format_instant(entry.at), entry.change["spec.replicas"][1])
        for entry in outcome.trace
        if entry.kind == "Deployment" and "spec.replicas" in entry.change and entry.verb != "create"
    ]


def test_replicas_follow_the_schedule_within_one_sync_of_the_autoscaler() -> None:
    changes = scaled(scenario().run("1d12h"))

    assert [replicas for _, replicas in changes] == [4, 1, 4]
    for (at, _), (earliest, latest) in zip(
        changes,
        (
            ("2026-01-05T09:00:00Z", "2026-01-05T09:00:16Z"),
            ("2026-01-05T17:00:00Z", "2026-01-05T17:00:16Z"),
            ("2026-01-06T09:00:00Z", "2026-01-06T09:00:16Z"),
        ),
        strict=True,
    ):
        assert earliest <= at <= latest


def test_a_deleted_schedule_changes_no_replicas() -> None:
    """No series is not zero: the autoscaler keeps the replicas, and reports why."""
    outcome = scenario().at("12h", delete("MetricsProducer", "office")).run("1d")

    assert [replicas for _, replicas in scaled(outcome)] == [4]
    conditions = outcome.object("HorizontalPodAutoscaler", "shop")["status"]["conditions"]
    (active,) = [entry for entry in conditions if entry["type"] == "ScalingActive"]
    assert (active["status"], active["reason"]) == ("False", "FailedGetExternalMetric")
