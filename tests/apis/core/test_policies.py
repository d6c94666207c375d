"""Priority classes, disruption budgets, limit ranges, and the pods of DaemonSets that they change."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from springtide.apis.core.daemon_sets import DaemonSetView, daemon_set_record, taints_tolerated_by_daemons
from springtide.apis.core.pod_record import HostPort, PodSchedulingClass, pod_class_of
from springtide.apis.core.policies import (
    DisruptionBudgetView,
    LimitRangeRecord,
    LimitRangeView,
    PriorityClassRecord,
    PriorityClassView,
    class_with_defaults,
    class_with_priority,
    disruption_budget_record,
    limit_range_record,
    priority_class_record,
    with_defaults,
)


def limit_range(*items: dict[str, Any], name: str = "defaults") -> LimitRangeRecord:
    value = {"metadata": {"name": name, "namespace": "shop"}, "spec": {"limits": list(items)}}
    return limit_range_record(msgspec.convert(value, LimitRangeView))


def requests(pod_class: PodSchedulingClass) -> dict[str, str]:
    return {name: str(amount) for name, amount in pod_class.requests.items()}


def test_priority_classes() -> None:
    """Value, default and preemption are kept."""
    value = {"metadata": {"name": "high"}, "value": 7, "globalDefault": True, "preemptionPolicy": "Never"}

    assert priority_class_record(msgspec.convert(value, PriorityClassView)) == PriorityClassRecord(
        "high", 7, global_default=True, preemption_policy="Never"
    )
    assert priority_class_record(
        msgspec.convert({"metadata": {"name": "low"}, "value": -1}, PriorityClassView)
    ) == PriorityClassRecord("low", -1)


HIGH = PriorityClassRecord("high", 7, preemption_policy="Never")
LOW = PriorityClassRecord("low", -5, global_default=True)
OTHER = PriorityClassRecord("other", 5, global_default=True)


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        pytest.param({"priorityClassName": "high"}, [HIGH], ("high", 7, "Never"), id="named"),
        pytest.param(
            {"priorityClassName": "high", "priority": 3}, [HIGH], ("high", 3, "PreemptLowerPriority"), id="set"
        ),
        pytest.param({"priorityClassName": "gone"}, [HIGH], ("gone", 0, "PreemptLowerPriority"), id="unknown"),
        pytest.param({}, [HIGH], ("", 0, "PreemptLowerPriority"), id="no-default"),
        pytest.param({}, [HIGH, OTHER, LOW], ("low", -5, "PreemptLowerPriority"), id="lowest-default"),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            [],
            ("system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
            id="system",
        ),
    ],
)
def test_priorities_of_manifests(
    spec: dict[str, Any], classes: list[PriorityClassRecord], expected: tuple[str, int, str]
) -> None:
    """A pod without a number gets that of its class, or of the default."""
    made = class_with_priority(pod_class_of({"containers": [], **spec}), {one.name: one for one in classes})

    assert (made.priority_class_name, made.priority, made.preemption_policy) == expected


def test_disruption_budgets() -> None:
    """Selector, bounds and counts are kept, and whether the counts are those of the spec."""
    value: dict[str, Any] = {
        "metadata": {"name": "web", "namespace": "shop", "generation": 2},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": "50%"},
        "status": {
            "observedGeneration": 2,
            "disruptionsAllowed": 1,
            "expectedPods": 4,
            "currentHealthy": 3,
            "desiredHealthy": 2,
        },
    }
    made = disruption_budget_record(msgspec.convert(value, DisruptionBudgetView))

    assert made.selector is not None
    assert (made.namespace, made.name, made.selector.match_labels) == ("shop", "web", {"app": "web"})
    assert (made.min_available, made.max_unavailable) == ("50%", None)
    assert (made.disruptions_allowed, made.expected_pods, made.current_healthy, made.desired_healthy) == (1, 4, 3, 2)
    assert made.is_observed

    del value["status"]
    value["spec"] = {"maxUnavailable": 1}
    made = disruption_budget_record(msgspec.convert(value, DisruptionBudgetView))
    assert (made.selector, made.max_unavailable, made.is_observed) == (None, 1, False)


@pytest.mark.parametrize(
    ("item", "expected_requests", "expected_limits"),
    [
        pytest.param({"default": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "1"}, id="limit-is-the-request"),
        pytest.param({"max": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}, id="maximum"),
        pytest.param({"min": {"cpu": "1"}}, {"cpu": "1"}, {}, id="minimum"),
        pytest.param(
            {"min": {"cpu": "1"}, "max": {"cpu": "9"}, "default": {"cpu": "5"}, "defaultRequest": {"cpu": "3"}},
            {"cpu": "3"},
            {"cpu": "5"},
            id="both",
        ),
        pytest.param({"type": "Pod", "default": {"cpu": "1"}}, {}, {}, id="of-pods"),
    ],
)
def test_limit_ranges(item: dict[str, Any], expected_requests: dict[str, str], expected_limits: dict[str, str]) -> None:
    """Defaults are those that the API server completes."""
    made = limit_range({"type": "Container", **item})

    assert dict(made.default_requests) == expected_requests
    assert dict(made.default_limits) == expected_limits


CPU = limit_range({"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}}, name="b")
FIRST = limit_range({"type": "Container", "defaultRequest": {"cpu": "200m", "memory": "1Gi"}}, name="a")


@pytest.mark.parametrize(
    ("spec", "ranges", "expected"),
    [
        pytest.param({"containers": [{}]}, [], {}, id="no-ranges"),
        pytest.param({"containers": [{}, {}]}, [CPU], {"cpu": "200m"}, id="each-container"),
        pytest.param({"containers": [{}], "initContainers": [{}]}, [CPU], {"cpu": "100m"}, id="init-containers"),
        pytest.param({"containers": [{}]}, [CPU, FIRST], {"cpu": "200m", "memory": "1Gi"}, id="first-by-name"),
        pytest.param(
            {"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, [CPU], {"cpu": "2"}, id="limit-is-the-request"
        ),
        pytest.param(
            {"containers": [{"resources": {"requests": {"memory": "2Gi"}}}]},
            [CPU],
            {"cpu": "100m", "memory": "2Gi"},
            id="others-stay",
        ),
        pytest.param(
            {"containers": [{}], "resources": {"limits": {"cpu": "4"}}}, [CPU], {"cpu": "4"}, id="limit-of-the-pod"
        ),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": "1"}}}, {}], "resources": {"limits": {"cpu": "4"}}},
            [CPU],
            {"cpu": "1"},
            id="sum-of-the-pod",
        ),
    ],
)
def test_defaults_of_a_namespace(
    spec: dict[str, Any], ranges: list[LimitRangeRecord], expected: dict[str, str]
) -> None:
    """Containers request what limit ranges say, where nothing else is said first."""
    assert requests(pod_class_of(with_defaults(spec, ranges))) == expected
    assert requests(class_with_defaults(pod_class_of(spec), ranges)) == expected


def test_defaults_of_what_cannot_be_read() -> None:
    """Requests that are no quantities stay unreadable."""
    spec = {"containers": [{"resources": {"requests": {"cpu": "much"}}}], "resources": {"limits": {"cpu": "4"}}}

    assert pod_class_of(with_defaults(spec, [CPU])).unreadable
    assert class_with_defaults(pod_class_of(spec), [CPU]).unreadable
    assert class_with_defaults(pod_class_of({"containers": 1}), [CPU]).unreadable


@pytest.mark.parametrize("host_network", [False, True])
def test_daemon_sets(host_network: bool) -> None:
    """Their pods tolerate what nodes in trouble have, on the network of the host a missing network as well."""
    own = {"key": "dedicated", "operator": "Exists"}
    spec = {
        "hostNetwork": host_network,
        "containers": [{"name": "c", "ports": [{"containerPort": 9100}]}],
        "tolerations": [own, {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
    }
    value = {
        "metadata": {"name": "agent", "namespace": "kube-system", "uid": "u"},
        "spec": {"selector": {}, "template": {"metadata": {"labels": {"app": "agent"}}, "spec": spec}},
    }
    made = daemon_set_record(msgspec.convert(value, DaemonSetView))
    tolerated = [(one.key, one.effect) for one in made.pod_class.tolerations]

    assert (made.namespace, made.name, made.uid, made.labels) == ("kube-system", "agent", "u", {"app": "agent"})
    assert tolerated[0] == ("dedicated", "")
    assert sorted(tolerated[1:]) == sorted(taints_tolerated_by_daemons(host_network=host_network))
    assert (("node.kubernetes.io/network-unavailable", "NoSchedule") in tolerated) is host_network
    assert made.pod_class.host_ports == ((HostPort(9100),) if host_network else ())
    assert requests(class_with_defaults(made.pod_class, [CPU])) == {"cpu": "100m"}
    assert class_with_defaults(made.pod_class, [CPU]).tolerations == made.pod_class.tolerations
