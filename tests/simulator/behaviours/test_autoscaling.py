"""Autoscaling: what metrics ask for, and how far and fast that is followed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from springtide.apis.forecast import format_instant
from springtide.cluster.resources import Object
from springtide.simulator.behaviours.autoscaling import MetricSteps, NoPodMetrics, ScriptedMetrics
from springtide.simulator.behaviours.autoscaling.decision import RecommendationHistory, bound, decide
from springtide.simulator.behaviours.autoscaling.proposals import MetricUnavailable, ScaledWorkload, Tolerance, propose

NOW = 1_800_000_000


def _pod(name: str, *, ready: bool = True, phase: str = "Running", age: int = 3600, request: str = "1") -> Object:
    started = format_instant(NOW - age)
    return {
        "metadata": {"name": name, "namespace": "d", "creationTimestamp": started},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": request, "memory": "1Gi"}}}]},
        "status": {
            "phase": phase,
            "startTime": started,
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": started}],
        },
    }


def _workload(*pods: Object, replicas: int | None = None) -> ScaledWorkload:
    count = len(pods) if replicas is None else replicas
    return ScaledWorkload("d", count, count, pods)


def _pods(count: int, **more: Any) -> list[Object]:
    return [_pod(f"p{number}", **more) for number in range(count)]


class _Given(NoPodMetrics):
    """Readings by the name of the pod."""

    def __init__(self, readings: Mapping[str, int]) -> None:
        self.readings = readings

    def of_pods(self, metric: str, namespace: str, pods: Sequence[str], container: str, now: int) -> Mapping[str, int]:
        return {name: self.readings[name] for name in pods if name in self.readings}


def _cpu(share: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": share}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _replicas(metric: Object, workload: ScaledWorkload, metrics: Any) -> int:
    return propose(metric, workload, metrics, Tolerance(), NOW).replicas


@pytest.mark.parametrize(
    ("pods", "readings", "expected"),
    [
        pytest.param(_pods(3), [500, 500, 500], 3, id="on-target"),
        pytest.param(_pods(3), [1000, 1000, 1000], 6, id="twice-the-target"),
        pytest.param(_pods(3), [550, 550, 550], 3, id="within-tolerance-above"),
        pytest.param(_pods(3), [560, 560, 560], 4, id="beyond-tolerance-above"),
        pytest.param(_pods(10), [450] * 10, 10, id="within-tolerance-below"),
        pytest.param(_pods(10), [440] * 10, 9, id="beyond-tolerance-below"),
        pytest.param(_pods(4), [100] * 4, 1, id="much-below"),
        pytest.param([*_pods(2), _pod("p2", phase="Pending")], [1000, 1000], 4, id="pending-use-nothing"),
        pytest.param([*_pods(3), _pod("x", phase="Pending")], [600] * 3, 4, id="pending-would-turn-it"),
        pytest.param([*_pods(3), _pod("p3")], [1000] * 3, 6, id="missing-use-nothing-going-up"),
        pytest.param([*_pods(3), _pod("p3")], [100] * 3, 3, id="missing-use-all-going-down"),
        pytest.param([*_pods(2), _pod("p2", age=10)], [1000, 1000, 9000], 4, id="too-young-to-count"),
        pytest.param([*_pods(2), _pod("p2", age=100, ready=False)], [1000, 1000, 0], 4, id="warming-up"),
        pytest.param([*_pods(2), _pod("p2", phase="Failed")], [500, 500], 3, id="failed-are-left-out"),
        pytest.param(_pods(3, request="2"), [1000, 1000, 1000], 3, id="share-of-the-request"),
    ],
)
def test_utilization(pods: list[Object], readings: list[int], expected: int) -> None:
    """The target is half of what pods request."""
    given = _Given({f"p{number}": value for number, value in enumerate(readings)})

    assert _replicas(_cpu(50), _workload(*pods), given) == expected


def test_the_status_of_a_metric() -> None:
    proposal = propose(_cpu(50), _workload(*_pods(2)), _Given({"p0": 300, "p1": 401}), Tolerance(), NOW)

    assert proposal.metric == "cpu resource utilization (percentage of request)"
    assert proposal.status == {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 35, "averageValue": "350m"}},
    }


def _external(**target: str) -> Object:
    return {"type": "External", "external": {"metric": {"name": "jobs"}, "target": target}}


_INGRESS = {"kind": "Ingress", "name": "main", "apiVersion": "networking.k8s.io/v1"}
_OBJECT: Object = {
    "type": "Object",
    "object": {"metric": {"name": "rps"}, "describedObject": _INGRESS, "target": {"value": "2k"}},
}


@pytest.mark.parametrize(
    ("metric", "metrics", "expected"),
    [
        pytest.param(
            _external(averageValue="10"), ScriptedMetrics(externals={"jobs": MetricSteps.of((0, 95))}), 10, id="per-pod"
        ),
        pytest.param(
            _external(averageValue="10"),
            ScriptedMetrics(externals={"jobs": MetricSteps.of((0, 41))}),
            4,
            id="tolerated",
        ),
        pytest.param(
            _external(value="10"), ScriptedMetrics(externals={"jobs": MetricSteps.of((0, 20))}), 8, id="total"
        ),
        pytest.param(
            _external(value="10"), ScriptedMetrics(externals={"d/jobs": MetricSteps.of((0, 0))}), 0, id="nothing-to-do"
        ),
        pytest.param(
            {
                "type": "Object",
                "object": {"metric": {"name": "rps"}, "describedObject": _INGRESS, "target": {"value": "2k"}},
            },
            ScriptedMetrics(objects={"Ingress/main/rps": MetricSteps.of((0, "3k"))}),
            6,
            id="object",
        ),
        pytest.param(
            {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"averageValue": "100"}}},
            ScriptedMetrics(loads={"rps": MetricSteps.of((0, 1000))}),
            10,
            id="shared-load",
        ),
        pytest.param(
            {"type": "Resource", "resource": {"name": "memory", "target": {"averageValue": "1Gi"}}},
            ScriptedMetrics(per_pod={"memory": MetricSteps.of((0, "2Gi"))}),
            8,
            id="memory",
        ),
    ],
)
def test_other_metrics(metric: Object, metrics: ScriptedMetrics, expected: int) -> None:
    assert _replicas(metric, _workload(*_pods(4)), metrics) == expected


@pytest.mark.parametrize(
    ("metric", "reason", "message"),
    [
        pytest.param(
            _cpu(50),
            "FailedGetResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: "
            "no metrics returned from resource metrics API",
            id="resource",
        ),
        pytest.param(
            _external(value="1"),
            "FailedGetExternalMetric",
            "unable to get external metric d/jobs: no metrics returned from external metrics API",
            id="external",
        ),
        pytest.param({"type": "Moon"}, "InvalidMetricSourceType", 'unknown metric source type "Moon"', id="unknown"),
    ],
)
def test_pods_without_metrics(metric: Object, reason: str, message: str) -> None:
    with pytest.raises(MetricUnavailable) as caught:
        _replicas(metric, _workload(*_pods(1)), NoPodMetrics())

    assert (caught.value.reason, str(caught.value)) == (reason, message)


def test_a_pod_without_a_request_has_no_utilization() -> None:
    pod = _pod("p0")
    del pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]

    with pytest.raises(MetricUnavailable, match="missing request for cpu in container c of Pod p0"):
        _replicas(_cpu(50), _workload(pod), _Given({"p0": 1}))


def _spec(least: int = 1, most: int = 100, behavior: Object | None = None) -> Object:
    return {"minReplicas": least, "maxReplicas": most} | ({"behavior": behavior} if behavior else {})


_DOUBLE = (("Percent", 100, 15),)


def _rules(policies: tuple[tuple[str, int, int], ...], select: str, window: int | None) -> Object:
    listed = [{"type": kind, "value": value, "periodSeconds": period} for kind, value, period in policies]
    return {"selectPolicy": select, "policies": listed} | (
        {} if window is None else {"stabilizationWindowSeconds": window}
    )


def _ruled(direction: str, *policies: tuple[str, int, int], select: str = "Max", window: int | None = None) -> Object:
    """Write a behavior with these rules in one direction, and the usual ones in the other."""
    usual = {"scaleUp": _rules(_DOUBLE, "Max", 0), "scaleDown": _rules(_DOUBLE, "Max", None)}
    return _spec(behavior=usual | {direction: _rules(policies or _DOUBLE, select, window)})


@pytest.mark.parametrize(
    ("spec", "current", "desired", "past", "expected", "reason"),
    [
        pytest.param(_spec(), 1, 10, (), 4, "ScaleUpLimit", id="four-at-first"),
        pytest.param(_spec(), 10, 50, (), 20, "ScaleUpLimit", id="twice-as-many"),
        pytest.param(_spec(most=15), 10, 50, (), 15, "TooManyReplicas", id="most"),
        pytest.param(_spec(3), 5, 1, (), 3, "TooFewReplicas", id="least"),
        pytest.param(_spec(), 5, 4, ((300, 5),), 5, "DesiredWithinRange", id="held-for-five-minutes"),
        pytest.param(_spec(), 5, 4, ((301, 5),), 4, "DesiredWithinRange", id="held-no-longer"),
        pytest.param(_ruled("scaleUp", ("Pods", 2, 60), window=0), 5, 9, (), 7, "ScaleUpLimit", id="pods-up"),
        pytest.param(_ruled("scaleUp", ("Percent", 10, 60), window=0), 5, 9, (), 6, "ScaleUpLimit", id="percent-up"),
        pytest.param(
            _ruled("scaleUp", ("Pods", 2, 60), ("Percent", 10, 60), select="Min", window=0),
            50,
            90,
            (),
            52,
            "ScaleUpLimit",
            id="least-change-up",
        ),
        pytest.param(
            _ruled("scaleUp", ("Pods", 2, 60), select="Disabled", window=0), 5, 9, (), 5, "ScaleUpLimit", id="never-up"
        ),
        pytest.param(_ruled("scaleUp", window=60), 5, 9, ((59, 6),), 6, "DesiredWithinRange", id="lowest-of-a-minute"),
        pytest.param(_ruled("scaleDown", ("Pods", 2, 60), window=0), 9, 3, (), 7, "ScaleDownLimit", id="pods-down"),
        pytest.param(
            _ruled("scaleDown", ("Percent", 10, 60), window=0), 9, 3, (), 8, "ScaleDownLimit", id="percent-down"
        ),
        pytest.param(
            _ruled("scaleDown", ("Pods", 4, 60), ("Percent", 10, 60), select="Min", window=0),
            80,
            1,
            (),
            76,
            "ScaleDownLimit",
            id="least-change-down",
        ),
        pytest.param(_ruled("scaleDown"), 9, 3, ((299, 8),), 8, "DesiredWithinRange", id="highest-of-five-minutes"),
    ],
)
def test_limits(
    spec: Object, current: int, desired: int, past: tuple[tuple[int, int], ...], expected: int, reason: str
) -> None:
    history = RecommendationHistory(recommendations=[(NOW - ago, replicas) for ago, replicas in past])

    bounded = bound(spec, current, desired, history, NOW)

    assert (bounded.replicas, bounded.limited[1]) == (expected, reason)


def test_a_rate_counts_what_was_done_within_its_period() -> None:
    """Two pods a minute: one was added half a minute ago, so that one more is left."""
    spec = _ruled("scaleUp", ("Pods", 2, 60), window=0)
    history = RecommendationHistory(added=[(NOW - 30, 1), (NOW - 60, 5)])

    assert bound(spec, 6, 20, history, NOW).replicas == 7


def _autoscaler(*metrics: Object, least: int = 1, most: int = 10) -> Object:
    return {"minReplicas": least, "maxReplicas": most, "metrics": list(metrics)}


@pytest.mark.parametrize(
    ("spec", "workload", "replicas", "because"),
    [
        pytest.param(_autoscaler(_cpu(50)), _workload(replicas=0), 0, "", id="switched-off"),
        pytest.param(
            _autoscaler(_cpu(50), most=3),
            _workload(replicas=5),
            3,
            "Current number of replicas above Spec.MaxReplicas",
            id="too-many",
        ),
        pytest.param(
            _autoscaler(_cpu(50), least=3),
            _workload(replicas=2),
            3,
            "Current number of replicas below Spec.MinReplicas",
            id="too-few",
        ),
        pytest.param(
            _autoscaler(_cpu(50), _external(averageValue="10")),
            _workload(*_pods(4)),
            8,
            "external metric jobs above target",
            id="the-largest-proposal-wins",
        ),
        pytest.param(
            _autoscaler({"type": "Moon"}, _external(averageValue="10")),
            _workload(*_pods(4)),
            8,
            "external metric jobs above target",
            id="one-of-two-is-enough-to-grow",
        ),
        pytest.param(_autoscaler({"type": "Moon"}, _cpu(50)), _workload(*_pods(4)), None, "", id="but-not-to-shrink"),
    ],
)
def test_decisions(spec: Object, workload: ScaledWorkload, replicas: int | None, because: str) -> None:
    metrics = ScriptedMetrics(per_pod={"cpu": MetricSteps.of((0, "100m"))}, externals={"jobs": MetricSteps.of((0, 80))})
    decision = decide(spec, workload, metrics, RecommendationHistory(), NOW)

    assert (decision.replicas, decision.because) == (replicas, because)


def test_a_restarted_controller_does_not_scale_down_at_once() -> None:
    """What is there when it begins counts as a recommendation, for as long as the window lasts."""
    spec, metrics, history = (
        _autoscaler(_cpu(50)),
        ScriptedMetrics(per_pod={"cpu": MetricSteps.of((0, "100m"))}),
        RecommendationHistory(),
    )
    workload = _workload(*_pods(4))
    replicas = [decide(spec, workload, metrics, history, NOW + 15 * turn).replicas for turn in range(22)]

    assert replicas == [4] * 21 + [1]


@pytest.mark.parametrize(
    ("now", "value"),
    [pytest.param(4, None, id="before"), pytest.param(5, 500, id="first"), pytest.param(99, 2000, id="last")],
)
def test_steps(now: int, value: int | None) -> None:
    assert MetricSteps.of((10, 2), (5, "500m")).at(now) == value


def test_a_shared_load_is_divided_completely() -> None:
    given = ScriptedMetrics(loads={"cpu": MetricSteps.of((0, "1"))}).of_pods("cpu", "d", ["b", "a", "c"], "", 0)

    assert given == {"a": 334, "b": 333, "c": 333}
