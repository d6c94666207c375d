"""Objects of the benchmark: distinct schedules and cron rules, and their targets."""

from __future__ import annotations

from typing import Any

from springtide.apis.forecast import format_instant
from springtide.cluster.resources import Resource

PRODUCERS = Resource("autoscaling.karpenter.sh", "v1alpha1", "metricsproducers", "MetricsProducer")
CRONS = Resource("autoscaling.karmada.io", "v1alpha1", "cronfederatedhpas", "CronFederatedHPA")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
NAMESPACE = "default"
BURST = 50
"""The value of every producer from the boundary on; no schedule has it before."""
SINGLES = 200
"""Number of cron objects that fire one per second, after all others have fired at the same instant."""


def producer(number: int, boundary: int) -> dict[str, Any]:
    """Build a producer with a distinct schedule and one window that is the same for all."""
    return {
        "apiVersion": PRODUCERS.api_version,
        "kind": PRODUCERS.kind,
        "metadata": {"name": f"producer-{number}", "namespace": NAMESPACE},
        "spec": {
            "schedule": {
                "timezone": ("Europe/Berlin", "America/Los_Angeles", "Asia/Shanghai")[number % 3],
                "defaultReplicas": 2,
                "behaviors": [
                    {
                        "name": "burst",
                        "priority": 10,
                        "replicas": BURST,
                        "from": format_instant(boundary),
                        "until": format_instant(boundary + 86_400),
                    },
                    {
                        "name": "office",
                        "replicas": 3 + number % 20,
                        "start": {"weekdays": "Mon,Tue,Wed,Thu,Fri", "hours": "9", "minutes": str(number % 60)},
                        "end": {"weekdays": "Mon,Tue,Wed,Thu,Fri", "hours": "17", "minutes": str(number % 60)},
                    },
                ],
            }
        },
    }


def cron(number: int, boundary: int, far_hour: int) -> dict[str, Any]:
    """Build five rules: four for a distant hour, and one that fires at the boundary, or alone a minute later."""
    at = boundary + 60 + number if number < SINGLES else boundary
    daily = [
        {"name": f"daily-{n}", "schedule": f"{(number + n) % 60} {far_hour} * * *", "targetReplicas": n}
        for n in range(1, 5)
    ]
    return {
        "apiVersion": CRONS.api_version,
        "kind": CRONS.kind,
        "metadata": {"name": f"cron-{number}", "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"target-{number}"},
            "rules": [*daily, {"name": "burst", "at": format_instant(at), "targetReplicas": BURST}],
        },
    }


def target(number: int) -> dict[str, Any]:
    """Build a Deployment; no controller creates its pods."""
    labels = {"app": f"target-{number}"}
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {"name": f"target-{number}", "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": "app"}]},
            },
        },
    }
