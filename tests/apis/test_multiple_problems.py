"""Objects with several mistakes: all of them are reported."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.manifests import problems_of, shown

CLASS_REF = {"group": "springtide.dev", "kind": "NodeClass", "name": "a"}


def manifest(api_version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(
            manifest(
                "autoscaling.x-k8s.io/v1",
                "ProvisioningRequest",
                {
                    "provisioningClassName": "atomic-scale-up.kubernetes.io",
                    "parameters": {"ValidUntilSeconds": "soon"},
                    "podSets": [{"podTemplateRef": {"name": "t"}, "count": 0}],
                },
            ),
            [
                "error spec.parameters.ValidUntilSeconds",
                "error spec.podSets[0].count",
                "warning spec.provisioningClassName",
            ],
            id="request",
        ),
        pytest.param(
            manifest(
                "autoscaling.x-k8s.io/v1beta1",
                "CapacityBuffer",
                {"replicas": -1, "limits": {"cpi": "5"}, "dedicated": True},
            ),
            ["error spec", "error spec.dedicated", "error spec.limits.cpi", "error spec.replicas"],
            id="buffer",
        ),
        pytest.param(
            manifest(
                "karpenter.sh/v1",
                "NodePool",
                {
                    "replicas": 3,
                    "weight": 5,
                    "template": {
                        "spec": {
                            "nodeClassRef": CLASS_REF,
                            "requirements": [{"key": "a", "operator": "Is", "values": ["b"]}],
                        }
                    },
                },
            ),
            ["error spec.template.spec.requirements[0].operator", "error spec.weight"],
            id="pool",
        ),
        pytest.param(
            manifest(
                "autoscaling.karmada.io/v1alpha1",
                "CronFederatedHPA",
                {
                    "scaleTargetRef": {
                        "apiVersion": "autoscaling.karmada.io/v1alpha1",
                        "kind": "FederatedHPA",
                        "name": "f",
                    },
                    "rules": [
                        {"name": "a", "schedule": "0 0 13 *", "targetMinReplicas": 3, "targetMaxReplicas": 1},
                        {"name": "b", "schedule": "0 9 * * *", "timeZone": "A/B", "targetMinReplicas": 0},
                        {"name": "c", "schedule": "0 9 * * *"},
                    ],
                },
            ),
            [
                "error spec.rules[0].schedule",
                "error spec.rules[0].targetMinReplicas",
                "error spec.rules[1].targetMinReplicas",
                "error spec.rules[1].timeZone",
                "error spec.rules[2].targetMaxReplicas",
            ],
            id="cron",
        ),
        pytest.param(
            manifest(
                "apps/v1",
                "Deployment",
                {
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "other"}}, "spec": {"containers": []}},
                },
            ),
            ["error spec.selector.matchLabels.app", "error spec.template.spec.containers"],
            id="deployment",
        ),
        pytest.param(
            manifest("springtide.dev/v1alpha1", "Grant", {"namespaces": {}, "urls": ["prom.example.com"]}),
            ["error spec.namespaces", "error spec.urls[0]"],
            id="grant",
        ),
        pytest.param(
            manifest(
                "autoscaling.karmada.io/v1alpha1",
                "CronFederatedHPA",
                {
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": ["Deployment"], "name": "web"},
                    "rules": [{"name": "a", "schedule": "0 9 * * *", "targetMinReplicas": 3}],
                },
            ),
            ["error spec.scaleTargetRef.kind"],
            id="nothing is said that depends on what is not known",
        ),
        pytest.param(
            manifest("springtide.dev/v1alpha1", "Calendar", {"dates": [5]}),
            ["error spec.dates[0]"],
            id="a list with a wrong entry is not an empty one",
        ),
    ],
)
def test_every_mistake_is_reported(value: dict[str, Any], expected: list[str]) -> None:
    assert shown(problems_of(value)) == expected


def test_messages_name_the_places_that_the_author_sees() -> None:
    """Entries with errors are left out of comparisons; the others keep their numbers."""
    behaviors = [
        {"replicas": "x", "start": {"hours": 1}, "end": {"hours": 2}},
        {"replicas": 2, "start": {"hours": 9}, "end": {"hours": 17}},
        {"replicas": 3, "start": {"hours": 10}, "end": {"hours": 18}},
    ]
    spec = {"schedule": {"defaultReplicas": 1, "behaviors": behaviors}}
    found = problems_of(manifest("autoscaling.karpenter.sh/v1alpha1", "MetricsProducer", spec))
    (warned,) = (problem for problem in found if problem.severity == "warning")
    assert warned.path == ("spec", "schedule", "behaviors", 2)
    assert "`behaviors[1]` (replicas 2) and `behaviors[2]` (replicas 3)" in warned.message
