"""Facts for tests of explanations, with short defaults."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import parse_instant
from springtide.apis.objects import LoadedObject, load, load_tree
from springtide.cluster.conditions import own_conditions
from springtide.controllers.decision import Decision
from springtide.controllers.explain import explain
from springtide.controllers.explanation import Explanation, ExplanationInput, PastEvent, TargetState

MONDAY = "2026-11-16T12:00:00Z"

PEAK = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: peak, namespace: shop}
spec:
  schedule:
    timezone: Europe/Berlin
    defaultReplicas: 2
    behaviors:
    - {name: day, replicas: 6, start: {hours: 9}, end: {hours: 18}}
    - {name: lunch, replicas: 9, priority: 5, start: {hours: 12}, end: {hours: 14}}
"""
WEB = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: HorizontalAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 8
  metrics:
  - prometheus: {query: 'karpenter_scheduled_capacity{name="peak"}', target: {type: AverageValue, value: 1}}
"""
NIGHTLY = """
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: nightly, namespace: shop, creationTimestamp: 2026-11-01T00:00:00Z}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  rules:
  - {name: up, schedule: "30 8 * * mon-fri", targetReplicas: 10, timeZone: Europe/Berlin}
  - {name: down, schedule: "0 20 * * *", targetReplicas: 2, timeZone: Europe/Berlin}
"""
POOL = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: ScalableNodeGroup
metadata: {name: pool, namespace: shop}
spec: {replicas: 3, type: AWSEC2AutoScalingGroup, id: shop-nodes}
"""
GRANT = """
apiVersion: springtide.dev/v1alpha1
kind: Grant
metadata: {name: for-shop}
spec: {namespaces: [shop], nodeGroups: ["shop-*"], queues: ["arn:aws:sqs:*:*:shop-*"]}
"""


@cache
def loaded(text: str, at: str = MONDAY) -> LoadedObject:
    """Read an object as from a cluster, without source text."""
    (found,) = load(text, ValidationContext(now=parse_instant(at)))
    assert isinstance(found, LoadedObject)
    again = load_tree(found.document.value, ValidationContext(now=parse_instant(at), deep_search=False))
    assert isinstance(again, LoadedObject)
    return again


def facts(
    text: str,
    *others: str,
    at: str = MONDAY,
    status: dict[str, Any] | None = None,
    target: TargetState | None = None,
    events: tuple[PastEvent, ...] = (),
    paused: str = "",
    unknown: tuple[str, ...] = (),
    present: bool = True,
    read_at: str | None = None,
) -> ExplanationInput:
    """Build facts; everything but the object is absent by default."""
    return ExplanationInput(
        object=loaded(text, at),
        status=status or {},
        at=parse_instant(at),
        others=tuple(loaded(other, at) for other in others),
        target=target,
        events=events,
        paused=paused,
        unknown=unknown,
        present=present,
        read_at=None if read_at is None else parse_instant(read_at),
    )


def explained(text: str, *others: str, **given: Any) -> Explanation:
    """Explain an object."""
    return explain(facts(text, *others, **given))


def stops(explanation: Explanation) -> list[str]:
    """Return what stops the object, without reasons."""
    return [stop.what for stop in explanation.stopped]


def written(decision: Decision[Any], at: str = "2026-11-16T11:00:00Z", **more: Any) -> dict[str, Any]:
    """Return the status that a controller writes for a decision, as the API server returns it."""
    fields = {name: value for name, value in {**decision.status, **more}.items() if value is not None}
    conditions = own_conditions([], decision.conditions, now=parse_instant(at), generation=1)
    status: dict[str, Any] = json.loads(json.dumps({**fields, "conditions": conditions}))
    return status
