"""Every field that upstream and the design have exists under its name on the wire, and extensions are marked."""

from __future__ import annotations

import pytest

from springtide.apis.kinds import View
from springtide.apis.meta import types as conditions
from springtide.apis.scheduled import KINDS, autoscaler, node_group, producer
from springtide.apis.scheduled import producer as behaviors
from springtide.apis.scheduled import producer as queue
from springtide.apis.schema import schema_of


@pytest.mark.parametrize(
    ("view", "upstream", "extensions"),
    [
        pytest.param(
            producer.MetricsProducerSpec, {"pendingCapacity", "queue", "reservedCapacity", "schedule"}, set(), id="spec"
        ),
        pytest.param(producer.PendingCapacitySpec, {"nodeSelector"}, set(), id="pending"),
        pytest.param(producer.ReservedCapacitySpec, {"nodeSelector"}, set(), id="reserved"),
        pytest.param(queue.QueueSpec, {"type", "id"}, {"pointer"}, id="queue"),
        pytest.param(
            behaviors.ScheduleSpec, {"behaviors", "timezone", "defaultReplicas"}, {"matchPolicy"}, id="schedule"
        ),
        pytest.param(
            behaviors.ScheduledBehavior,
            {"replicas", "start", "end"},
            {"name", "priority", "suspend", "leadSeconds", "calendars", "from", "until"},
            id="behavior",
        ),
        pytest.param(
            producer.MetricsProducerStatus,
            {"pendingCapacity", "queue", "reservedCapacity", "scheduledCapacity", "conditions"},
            set(),
            id="producer-status",
        ),
        pytest.param(producer.QueueStatus, {"length", "oldestMessageAgeSeconds"}, set(), id="queue-status"),
        pytest.param(
            producer.ScheduledCapacityStatus,
            {"currentValue", "nextValue", "nextValueTime"},
            {"upcoming", "activeBehavior", "timezone"},
            id="scheduled-status",
        ),
        pytest.param(
            autoscaler.HorizontalAutoscalerSpec,
            {"scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior"},
            set(),
            id="autoscaler",
        ),
        pytest.param(autoscaler.PrometheusMetricSource, {"query", "target"}, set(), id="prometheus"),
        pytest.param(
            autoscaler.MetricTarget, {"type", "value", "averageValue", "averageUtilization"}, set(), id="target"
        ),
        pytest.param(
            autoscaler.ScalingRules,
            {"stabilizationWindowSeconds", "selectPolicy", "policies"},
            {"tolerance"},
            id="rules",
        ),
        pytest.param(autoscaler.ScalingPolicy, {"type", "value", "periodSeconds"}, set(), id="policy"),
        pytest.param(
            autoscaler.HorizontalAutoscalerStatus,
            {"lastScaleTime", "currentReplicas", "desiredReplicas", "currentMetrics", "conditions"},
            {"recentChanges"},
            id="autoscaler-status",
        ),
        pytest.param(node_group.ScalableNodeGroupSpec, {"replicas", "type", "id"}, set(), id="node-group"),
        pytest.param(
            node_group.ScalableNodeGroupStatus, {"replicas", "selector", "conditions"}, set(), id="node-group-status"
        ),
        pytest.param(
            conditions.KnativeCondition,
            {"type", "status", "severity", "lastTransitionTime", "reason", "message"},
            set(),
            id="condition",
        ),
    ],
)
def test_fields(view: type[View], upstream: set[str], extensions: set[str]) -> None:
    fields = schema_of(view).fields

    assert upstream == {field.name for field in fields if not field.schema.extension}
    assert extensions == {field.name for field in fields if field.schema.extension}


def test_kinds() -> None:
    described = {kind.kind: (kind.plural, [column.name for column in kind.versions[0].columns]) for kind in KINDS}

    assert described == {
        "MetricsProducer": ("metricsproducers", ["current", "next", "next-time", "ready", "Paused", "age", "Message"]),
        "HorizontalAutoscaler": (
            "horizontalautoscalers",
            ["min", "desired", "max", "ready", "last-scale-time", "Paused", "age", "Message"],
        ),
        "ScalableNodeGroup": (
            "scalablenodegroups",
            ["desired", "current", "type", "ready", "Paused", "age", "Message"],
        ),
    }


def test_node_groups_can_be_scaled() -> None:
    (scale,) = (kind.scale for kind in KINDS if kind.kind == "ScalableNodeGroup")

    assert scale is not None
    assert (scale.spec_path, scale.status_path, scale.selector_path) == (
        ".spec.replicas",
        ".status.replicas",
        ".status.selector",
    )
