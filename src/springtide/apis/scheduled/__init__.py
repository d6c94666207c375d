"""autoscaling.karpenter.sh: MetricsProducer, HorizontalAutoscaler and ScalableNodeGroup."""

from __future__ import annotations

from springtide.apis.kinds import MESSAGE, PAUSED, Kind, KindVersion, PrinterColumn, ScaleSubresource
from springtide.apis.scheduled.aliases import fixes, read_producer
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.apis.scheduled.node_group import ScalableNodeGroup
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.scheduled.schedule import forecast_schedule

__all__ = ["KINDS", "fixes"]


_GROUP = "autoscaling.karpenter.sh"
_READY = PrinterColumn("ready", "string", ".status.conditions[?(@.type=='Ready')].status")
_AGE = PrinterColumn("age", "date", ".metadata.creationTimestamp")

KINDS: tuple[Kind, ...] = (
    Kind(
        group=_GROUP,
        kind="MetricsProducer",
        plural="metricsproducers",
        scope="Namespaced",
        own_short_names=("mprod",),
        versions=(
            KindVersion(
                name="v1alpha1",
                view=MetricsProducer,
                storage=True,
                columns=(
                    PrinterColumn("current", "integer", ".status.scheduledCapacity.currentValue", extension=True),
                    PrinterColumn("next", "integer", ".status.scheduledCapacity.nextValue", extension=True),
                    PrinterColumn("next-time", "string", ".status.scheduledCapacity.nextValueTime", extension=True),
                    _READY,
                    PAUSED,
                    _AGE,
                    MESSAGE,
                ),
                normalizer=read_producer,
                forecaster=forecast_schedule,
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="HorizontalAutoscaler",
        plural="horizontalautoscalers",
        scope="Namespaced",
        own_short_names=("hauto",),
        versions=(
            KindVersion(
                name="v1alpha1",
                view=HorizontalAutoscaler,
                storage=True,
                columns=(
                    PrinterColumn("min", "string", ".spec.minReplicas"),
                    PrinterColumn("desired", "string", ".status.desiredReplicas"),
                    PrinterColumn("max", "string", ".spec.maxReplicas"),
                    _READY,
                    PrinterColumn("last-scale-time", "string", ".status.lastScaleTime"),
                    PAUSED,
                    _AGE,
                    MESSAGE,
                ),
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="ScalableNodeGroup",
        plural="scalablenodegroups",
        scope="Namespaced",
        own_short_names=("sng",),
        scale=ScaleSubresource(
            spec_path=".spec.replicas", status_path=".status.replicas", selector_path=".status.selector"
        ),
        versions=(
            KindVersion(
                name="v1alpha1",
                view=ScalableNodeGroup,
                storage=True,
                columns=(
                    PrinterColumn("desired", "string", ".spec.replicas"),
                    PrinterColumn("current", "string", ".status.replicas"),
                    PrinterColumn("type", "string", ".spec.type"),
                    _READY,
                    PAUSED,
                    _AGE,
                    MESSAGE,
                ),
            ),
        ),
    ),
)
