"""CronFederatedHPAs as tests write them: only what a test is about."""

from __future__ import annotations

from typing import Any

import msgspec

from springtide.apis.karmada.cron import CronFederatedHPA

API = "autoscaling.karmada.io/v1alpha1"
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
FEDERATED = {"apiVersion": API, "kind": "FederatedHPA", "name": "shop"}
HPA = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}
SCALED_OBJECT = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "shop"}


def rule(name: str = "up", schedule: str | None = "30 8 * * *", **more: Any) -> dict[str, Any]:
    return {"name": name, **({} if schedule is None else {"schedule": schedule}), **more}


def cron(*rules: dict[str, Any], target: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "CronFederatedHPA",
        "metadata": {"name": "test"},
        "spec": {"scaleTargetRef": DEPLOYMENT if target is None else target, "rules": list(rules)},
    }


def as_cron(value: dict[str, Any]) -> CronFederatedHPA:
    return msgspec.convert(value, CronFederatedHPA)
