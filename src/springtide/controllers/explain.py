"""The explanations of all kinds that `springtide explain` knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from springtide.controllers.calendar.explain import explain_calendar
from springtide.controllers.cron_federated_hpa.explain import explain_cron
from springtide.controllers.explanation import Explanation, ExplanationInput
from springtide.controllers.horizontal_autoscaler.explain import explain_autoscaler
from springtide.controllers.metrics_producer.explain import explain_producer
from springtide.controllers.scalable_node_group.explain import explain_node_group
from springtide.controllers.scale_target import explain_target

EXPLAINERS: Mapping[tuple[str, str], Callable[[ExplanationInput], Explanation]] = {
    ("autoscaling.karpenter.sh", "MetricsProducer"): explain_producer,
    ("autoscaling.karpenter.sh", "HorizontalAutoscaler"): explain_autoscaler,
    ("autoscaling.karpenter.sh", "ScalableNodeGroup"): explain_node_group,
    ("autoscaling.karmada.io", "CronFederatedHPA"): explain_cron,
    ("springtide.dev", "Calendar"): explain_calendar,
}
"""The function that explains a kind, by group and kind."""
TARGETS = (
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "ReplicaSet"),
    ("", "ReplicationController"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("autoscaling.karmada.io", "FederatedHPA"),
    ("keda.sh", "ScaledObject"),
)
"""Group and kind of other objects that are explained by what scales them."""

_OF_THE_PRESENT = "conditions, events and the target are those of the present, not of the time that is explained"


def explain(facts: ExplanationInput) -> Explanation:
    """Explain an object of a kind that is in `EXPLAINERS` or in `TARGETS`."""
    explainer = EXPLAINERS.get((facts.object.kind.group, facts.object.kind.kind))
    explanation = explain_target(facts, explain) if explainer is None else explainer(facts)
    return explanation if facts.present else replace(explanation, notes=(_OF_THE_PRESENT, *explanation.notes))
