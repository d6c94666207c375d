"""References to scale targets: misspelt kinds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.manifests import problems_of

from springtide.apis.problems import format_path


def autoscaler(target: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "HorizontalAutoscaler",
        "metadata": {"name": "shop"},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": 5,
            "metrics": [{"prometheus": {"query": "sum(x)", "target": {"type": "AverageValue", "value": 1}}}],
        },
    }


def stock_autoscaler(target: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "shop"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5},
    }


def federated(target: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.karmada.io/v1alpha1",
        "kind": "FederatedHPA",
        "metadata": {"name": "shop"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5},
    }


def cron(target: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.karmada.io/v1alpha1",
        "kind": "CronFederatedHPA",
        "metadata": {"name": "shop"},
        "spec": {
            "scaleTargetRef": target,
            "rules": [{"name": "up", "schedule": "0 8 * * *", "targetReplicas": 5}],
        },
    }


@pytest.mark.parametrize("kind", [autoscaler, stock_autoscaler, federated, cron])
@pytest.mark.parametrize(
    ("api_version", "written", "meant"),
    [
        pytest.param("apps/v1", "Deploymnet", "Deployment", id="transposed"),
        pytest.param("apps/v1", "deployment", "Deployment", id="lower-case"),
        pytest.param("app/v1", "Deployments", "Deployment", id="plural-of-a-wrong-group"),
        pytest.param("apps/v1", "StatfulSet", "StatefulSet", id="omitted-letter"),
        pytest.param("apps/v1", "deploy", "Deployment", id="short-name"),
        pytest.param("autoscaling/v2", "HPA", "HorizontalPodAutoscaler", id="short-name-of-an-autoscaler"),
        pytest.param("apps/v1", "Deployment", None, id="right"),
        pytest.param("example.com/v1", "Deploymnet", None, id="of-another-project"),
        pytest.param("argoproj.io/v1alpha1", "Rollout", None, id="another-kind"),
    ],
)
def test_misspelt_kinds(kind: Any, api_version: str, written: str, meant: str | None) -> None:
    """A kind that its group does not have is an error with the kind that was probably meant."""
    found = problems_of(kind({"apiVersion": api_version, "kind": written, "name": "shop"}))
    errors = [problem for problem in found if problem.severity == "error"]

    if meant is None:
        assert errors == []
    else:
        (problem,) = errors
        assert format_path(problem.path) == "spec.scaleTargetRef.kind"
        assert problem.message == f"there is no kind {written} in {api_version}"
        assert problem.hint == f"did you mean `{meant}`?"


@pytest.mark.parametrize(("written", "meant"), [("Deploymnet", "Deployment"), ("deployment", "Deployment")])
def test_misspelt_kinds_of_buffers(written: str, meant: str) -> None:
    value = {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare"},
        "spec": {"scalableRef": {"apiGroup": "apps", "kind": written, "name": "shop"}, "replicas": 1},
    }
    (problem,) = problems_of(value)

    assert (problem.severity, format_path(problem.path)) == ("error", "spec.scalableRef.kind")
    assert problem.hint == f"did you mean `{meant}`?"


@pytest.mark.parametrize("kind", [autoscaler, federated, cron])
@pytest.mark.parametrize(
    ("api_version", "written", "scalable"),
    [
        ("apps/v1", "DaemonSet", False),
        ("batch/v1", "Job", False),
        ("v1", "Pod", False),
        ("example.com/v1", "Job", True),
    ],
)
def test_kinds_without_a_scale_subresource(kind: Any, api_version: str, written: str, scalable: bool) -> None:
    found = problems_of(kind({"apiVersion": api_version, "kind": written, "name": "shop"}))
    messages = [problem.message for problem in found if problem.severity == "error"]

    assert messages == ([] if scalable else [f"a {written} has no replicas to set"])


def test_rules_of_a_misspelt_target_are_not_judged() -> None:
    """The values that they may set depend on its kind."""
    item = cron({"apiVersion": "autoscaling/v2", "kind": "HPA", "name": "shop"})
    item["spec"]["rules"] = [{"name": "up", "schedule": "0 8 * * *", "targetMinReplicas": 3}]

    (problem,) = [one for one in problems_of(item) if one.severity == "error"]
    assert problem.message == "there is no kind HPA in autoscaling/v2"
