"""autoscaling.karpenter.sh: metrics that follow a schedule, autoscalers that follow metrics, and groups of nodes."""

from __future__ import annotations

from springtide.apis.kinds import Column, Kind, Scale, Version
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.apis.scheduled.node_group import ScalableNodeGroup
from springtide.apis.scheduled.outlook import forecast
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.scheduled.spellings import fixes, read_producer

_GROUP = "autoscaling.karpenter.sh"
_READY = Column("ready", "string", ".status.conditions[?(@.type=='Ready')].status")
_AGE = Column("age", "date", ".metadata.creationTimestamp")

KINDS: tuple[Kind, ...] = (
    Kind(
        group=_GROUP,
        kind="MetricsProducer",
        plural="metricsproducers",
        scope="Namespaced",
        versions=(
            Version(
                name="v1alpha1",
                view=MetricsProducer,
                storage=True,
                columns=(
                    Column("current", "integer", ".status.scheduledCapacity.currentValue", extension=True),
                    Column("next", "integer", ".status.scheduledCapacity.nextValue", extension=True),
                    Column("next-time", "string", ".status.scheduledCapacity.nextValueTime", extension=True),
                    _READY,
                    _AGE,
                ),
                lenient=read_producer,
                forecaster=forecast,
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="HorizontalAutoscaler",
        plural="horizontalautoscalers",
        scope="Namespaced",
        versions=(
            Version(
                name="v1alpha1",
                view=HorizontalAutoscaler,
                storage=True,
                columns=(
                    Column("min", "string", ".spec.minReplicas"),
                    Column("desired", "string", ".status.desiredReplicas"),
                    Column("max", "string", ".spec.maxReplicas"),
                    _READY,
                    Column("last-scale-time", "string", ".status.lastScaleTime"),
                    _AGE,
                ),
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="ScalableNodeGroup",
        plural="scalablenodegroups",
        scope="Namespaced",
        scale=Scale(spec_path=".spec.replicas", status_path=".status.replicas", selector_path=".status.selector"),
        versions=(
            Version(
                name="v1alpha1",
                view=ScalableNodeGroup,
                storage=True,
                columns=(
                    Column("desired", "string", ".spec.replicas"),
                    Column("current", "string", ".status.replicas"),
                    Column("type", "string", ".spec.type"),
                    _READY,
                    _AGE,
                ),
            ),
        ),
    ),
)

__all__ = ["KINDS", "fixes"]
