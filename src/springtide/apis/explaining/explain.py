"""Which kinds can be explained, and by whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from springtide.apis.explaining.autoscaler import explain_autoscaler
from springtide.apis.explaining.cron import explain_cron
from springtide.apis.explaining.explanation import Explanation
from springtide.apis.explaining.facts import Facts
from springtide.apis.explaining.node_group import explain_node_group
from springtide.apis.explaining.producer import explain_producer

EXPLAINED: Mapping[tuple[str, str], Callable[[Facts], Explanation]] = {
    ("autoscaling.karpenter.sh", "MetricsProducer"): explain_producer,
    ("autoscaling.karpenter.sh", "HorizontalAutoscaler"): explain_autoscaler,
    ("autoscaling.karpenter.sh", "ScalableNodeGroup"): explain_node_group,
    ("autoscaling.karmada.io", "CronFederatedHPA"): explain_cron,
}
"""By group and kind."""

_OF_THE_PRESENT = "conditions, events and the target are those of the present, not of the time that is explained"


def explain(facts: Facts) -> Explanation:
    """Explain an object of a kind that is in `EXPLAINED`."""
    explanation = EXPLAINED[facts.object.kind.group, facts.object.kind.kind](facts)
    return explanation if facts.present else replace(explanation, notes=(_OF_THE_PRESENT, *explanation.notes))
