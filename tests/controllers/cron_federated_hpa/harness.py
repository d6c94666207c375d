"""Harness for CronFederatedHPA tests: objects, targets, and queries about the outcome of a scenario."""

from __future__ import annotations

from typing import Any

from springtide.apis.forecast import format_instant
from springtide.cluster.resources import Object
from springtide.controllers.cron_federated_hpa.cursor import ANNOTATION
from springtide.simulator.scenario.scenario import Outcome

API = "autoscaling.karmada.io/v1alpha1"
MANAGER = "springtide-cron-federated-hpa"

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
FEDERATED = {"apiVersion": API, "kind": "FederatedHPA", "name": "shop"}
HPA = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}
SCALED_OBJECT = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "shop"}


def rule(name: str, schedule: str | None, replicas: int | None = None, **more: Any) -> Object:
    """Build a rule that fires by a schedule."""
    made: Object = {"name": name, **more}
    if schedule is not None:
        made["schedule"] = schedule
    if replicas is not None:
        made["targetReplicas"] = replicas
    return made


def cron(*rules: Object, target: Object = DEPLOYMENT, name: str = "daily", **metadata: Any) -> Object:
    """Build a CronFederatedHPA with these rules."""
    return {
        "apiVersion": API,
        "kind": "CronFederatedHPA",
        "metadata": {"name": name, **metadata},
        "spec": {"scaleTargetRef": target, "rules": list(rules)},
    }


def deployment(name: str = "shop", replicas: int = 1) -> Object:
    """Build a Deployment."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]},
            },
        },
    }


def federated(low: int | None = None, high: int = 10, of: Object = DEPLOYMENT) -> Object:
    """Build a FederatedHPA."""
    bounds = {"maxReplicas": high} if low is None else {"minReplicas": low, "maxReplicas": high}
    return {
        "apiVersion": API,
        "kind": "FederatedHPA",
        "metadata": {"name": "shop"},
        "spec": {"scaleTargetRef": of, **bounds},
    }


def autoscaler(low: int = 1, high: int = 10, of: Object = DEPLOYMENT, **metadata: Any) -> Object:
    """Build a HorizontalPodAutoscaler."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "shop", **metadata},
        "spec": {"scaleTargetRef": of, "minReplicas": low, "maxReplicas": high},
    }


def scaled_object(name: str = "shop", **spec: Any) -> Object:
    """Build a ScaledObject of KEDA."""
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": {"name": "shop"}, **spec},
    }


def definition(group: str, kind: str, plural: str, *, scope: str = "Namespaced", scale: bool = False) -> Object:
    """Build a CustomResourceDefinition whose schema accepts any field."""
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}, **({"scale": paths} if scale else {})},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }


KEDA = definition("keda.sh", "ScaledObject", "scaledobjects")


def history(outcome: Outcome, rule_name: str, name: str = "daily") -> Object:
    """Return the execution history of a rule."""
    status = outcome.object("CronFederatedHPA", name).get("status", {})
    found: Object = {one["ruleName"]: one for one in status["executionHistories"]}[rule_name]
    return found


def successes(outcome: Outcome, rule_name: str, name: str = "daily") -> list[tuple[str, str]]:
    """List the due time and the execution time of successful executions, newest first."""
    entries = history(outcome, rule_name, name).get("successfulExecutions", [])
    return [(entry["scheduleTime"], entry["executionTime"]) for entry in entries]


def failures(outcome: Outcome, rule_name: str, name: str = "daily") -> list[tuple[str, str]]:
    """List the due time and the message of failed executions, newest first."""
    entries = history(outcome, rule_name, name).get("failedExecutions", [])
    return [(entry["scheduleTime"], entry["message"]) for entry in entries]


def condition(outcome: Outcome, type_: str, name: str = "daily") -> Object:
    """Return a condition by its type."""
    conditions = outcome.object("CronFederatedHPA", name)["status"]["conditions"]
    found: Object = {one["type"]: one for one in conditions}[type_]
    return found


def cursor(outcome: Outcome, name: str = "daily") -> str:
    """Return the cursor annotation."""
    text: str = outcome.object("CronFederatedHPA", name)["metadata"]["annotations"][ANNOTATION]
    return text


def changes(outcome: Outcome, kind: str, field: str) -> list[tuple[str, Any]]:
    """List the controller's changes of a field of the spec of a kind: time and new value."""
    path = f"spec.{field}"
    return [
        (format_instant(entry.at), entry.change[path][1])
        for entry in outcome.trace
        if entry.kind == kind and entry.actor == MANAGER and path in entry.change
    ]


def writes(outcome: Outcome) -> list[tuple[str, str]]:
    """List the controller's writes except events: time and kind."""
    return [
        (format_instant(entry.at), entry.kind)
        for entry in outcome.trace
        if entry.actor == MANAGER and entry.kind != "Event"
    ]


def events(outcome: Outcome, reason: str) -> list[str]:
    """List the messages of events with a reason."""
    return [one["message"] for one in outcome.objects("Event") if one["reason"] == reason]
