"""Every field of the proposal and of upstream exists under its name on the wire, and extensions are marked."""

from __future__ import annotations

import pytest

from springtide.apis.karmada import KINDS, federated
from springtide.apis.karmada import cron as types
from springtide.apis.karmada import federated as metrics
from springtide.apis.kinds import View
from springtide.apis.schema import schema_of


@pytest.mark.parametrize(
    ("view", "upstream", "extensions"),
    [
        pytest.param(types.CronFederatedHPASpec, {"scaleTargetRef", "rules"}, set(), id="spec"),
        pytest.param(
            types.CronFederatedHPARule,
            {
                "name",
                "schedule",
                "targetReplicas",
                "targetMinReplicas",
                "targetMaxReplicas",
                "suspend",
                "timeZone",
                "successfulHistoryLimit",
                "failedHistoryLimit",
            },
            {"at", "maxDelaySeconds", "calendars"},
            id="rule",
        ),
        pytest.param(
            types.CronFederatedHPAStatus,
            {"executionHistories"},
            {"conditions", "nextExecutionTime", "lastExecutionTime"},
            id="status",
        ),
        pytest.param(
            types.ExecutionHistory,
            {"ruleName", "nextExecutionTime", "successfulExecutions", "failedExecutions"},
            set(),
            id="history",
        ),
        pytest.param(
            types.SuccessfulExecution,
            {"scheduleTime", "executionTime", "appliedReplicas", "appliedMinReplicas", "appliedMaxReplicas"},
            set(),
            id="success",
        ),
        pytest.param(types.FailedExecution, {"scheduleTime", "executionTime", "message"}, set(), id="failure"),
        pytest.param(
            federated.FederatedHPASpec,
            {"scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior"},
            set(),
            id="federated",
        ),
        pytest.param(
            federated.FederatedHPAStatus,
            {
                "observedGeneration",
                "lastScaleTime",
                "currentReplicas",
                "desiredReplicas",
                "currentMetrics",
                "conditions",
            },
            set(),
            id="federated-status",
        ),
        pytest.param(
            federated.FederatedScalingRules,
            {"stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance"},
            set(),
            id="scaling-rules",
        ),
        pytest.param(
            metrics.MetricSpec,
            {"type", "resource", "containerResource", "pods", "object", "external"},
            set(),
            id="metric",
        ),
        pytest.param(
            metrics.FederatedMetricStatus,
            {"type", "resource", "containerResource", "pods", "object", "external"},
            set(),
            id="metric-status",
        ),
    ],
)
def test_fields(view: type[View], upstream: set[str], extensions: set[str]) -> None:
    fields = schema_of(view).fields

    assert upstream == {field.name for field in fields if not field.schema.extension}
    assert extensions == {field.name for field in fields if field.schema.extension}


def test_kinds() -> None:
    described = {kind.kind: (kind.plural, kind.short_names, kind.categories) for kind in KINDS}

    assert described == {
        "CronFederatedHPA": ("cronfederatedhpas", ("cronfhpa",), ("karmada-io",)),
        "FederatedHPA": ("federatedhpas", ("fhpa",), ("karmada-io",)),
    }
