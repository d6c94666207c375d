"""Budgets, quotas and autoscalers at work in a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulator.behaviours.cluster import START, USER, Cluster, node, play, template, workload

from springtide.apis.forecast import format_instant
from springtide.apiserver.direct import DirectTransport
from springtide.cluster.controller import Controller
from springtide.cluster.errors import Forbidden, TooManyRequests
from springtide.cluster.resources import NODES, PODS, Key, Object, Resource
from springtide.cluster.transport import Patch, Write
from springtide.simulator import behaviours
from springtide.simulator.behaviours.autoscaling import HorizontalPodAutoscalers, MetricSteps, ScriptedMetrics
from springtide.simulator.behaviours.autoscaling.controller import AUTOSCALERS
from springtide.simulator.behaviours.disruption_budgets import BUDGETS
from springtide.simulator.behaviours.resource_quotas import QUOTAS
from springtide.simulator.behaviours.resources import DAEMON_SETS, DEPLOYMENTS


class _Autoscalers(HorizontalPodAutoscalers):
    """Autoscalers of a workload whose load doubles after a quarter of an hour, and ends after half an hour."""

    metrics = ScriptedMetrics(loads={"cpu": MetricSteps.of((START, "1"), (START + 900, "2"), (START + 1800, "0"))})


_EVERYBODY: tuple[type[Controller], ...] = (
    *(one for one in behaviours.ALL if one is not HorizontalPodAutoscalers),
    _Autoscalers,
)


async def _begin(cluster: Cluster, replicas: int = 3) -> None:
    cluster.create(NODES, node("one", cpu="8"))
    cluster.create(NODES, node("two", cpu="8"))
    cluster.create(DEPLOYMENTS, workload("web", replicas, template("web", cpu="500m")))
    await cluster.passes(120)
    assert len(cluster.running()) == replicas


def _evict(cluster: Cluster, name: str) -> None:
    body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    cluster.server.create(PODS, body, USER, namespace="default", name=name, subresource="eviction")


def _counts(cluster: Cluster) -> tuple[int, ...]:
    status = cluster.get(BUDGETS, "web")["status"]
    return tuple(status[name] for name in ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed"))


def test_a_budget_lets_one_pod_go_and_the_next_when_that_is_replaced() -> None:
    async def story(cluster: Cluster) -> None:
        await _begin(cluster)
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        cluster.create(BUDGETS, {"metadata": {"name": "web"}, "spec": spec})
        await cluster.passes(1)
        assert _counts(cluster) == (3, 2, 3, 1)
        first, second, _ = (pod["metadata"]["name"] for pod in cluster.running())
        _evict(cluster, first)
        with pytest.raises(TooManyRequests):
            _evict(cluster, second)
        await cluster.passes(1)
        assert _counts(cluster) == (3, 2, 2, 0)
        await cluster.passes(120)
        assert _counts(cluster) == (3, 2, 3, 1)
        assert "disruptedPods" not in cluster.get(BUDGETS, "web")["status"]
        _evict(cluster, second)

    play(story, controllers=_EVERYBODY)


def test_a_budget_of_pods_whose_controller_has_no_scale_allows_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(NODES, node("one"))
        cluster.create(DAEMON_SETS, workload("agent", None, template("agent")))
        await cluster.passes(120)
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "agent"}}}
        cluster.create(BUDGETS, {"metadata": {"name": "agent"}, "spec": spec})
        await cluster.passes(1)
        (condition,) = cluster.get(BUDGETS, "agent")["status"]["conditions"]
        assert (condition["reason"], condition["message"]) == (
            "SyncFailed",
            "daemonsets.apps does not implement the scale subresource",
        )

    play(story, controllers=_EVERYBODY)


def test_a_quota_reports_usage() -> None:
    async def story(cluster: Cluster) -> None:
        hard = {"pods": "10", "requests.cpu": "4", "count/deployments.apps": "2"}
        cluster.create(QUOTAS, {"metadata": {"name": "all"}, "spec": {"hard": hard}})
        await _begin(cluster)
        used = {"pods": "3", "requests.cpu": "1500m", "count/deployments.apps": "1"}
        assert cluster.get(QUOTAS, "all")["status"] == {"hard": hard, "used": used}
        cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})
        await cluster.passes(60)
        assert cluster.get(QUOTAS, "all")["status"]["used"] == used | {"pods": "1", "requests.cpu": "500m"}

    play(story, controllers=_EVERYBODY)


def test_an_autoscaler_follows_the_load() -> None:
    """At a target of half of what pods request, a load of 1 core takes 4 pods, and 2 cores take 8."""

    async def story(cluster: Cluster) -> None:
        await _begin(cluster, 4)
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
        spec = {"scaleTargetRef": target, "maxReplicas": 9, "metrics": [{"type": "Resource", "resource": cpu}]}
        cluster.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": spec})
        sizes = []
        for minutes in (10, 5, 9, 10):
            await cluster.passes(minutes * 60)
            sizes.append(cluster.get(DEPLOYMENTS, "web")["spec"]["replicas"])
        assert sizes == [4, 8, 8, 1]
        status = cluster.get(AUTOSCALERS, "web")["status"]
        assert (status["currentReplicas"], status["desiredReplicas"]) == (1, 1)
        reasons = {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
        assert reasons["ScalingActive"] == ("True", "ValidMetricFound")
        assert reasons["ScalingLimited"] == ("True", "TooFewReplicas")
        assert status["lastScaleTime"] > format_instant(START + 1800)

    play(story, controllers=_EVERYBODY)


def test_two_autoscalers_of_the_same_pods_do_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        await _begin(cluster, 2)
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        for name in ("one", "two"):
            cluster.create(
                AUTOSCALERS, {"metadata": {"name": name}, "spec": {"scaleTargetRef": target, "maxReplicas": 9}}
            )
        await cluster.passes(60)
        for name in ("one", "two"):
            conditions = cluster.get(AUTOSCALERS, name)["status"]["conditions"]
            assert ("ScalingActive", "AmbiguousSelector") in [(one["type"], one["reason"]) for one in conditions]

    play(story, controllers=_EVERYBODY)


def test_an_autoscaler_without_a_target_reports_it() -> None:
    async def story(cluster: Cluster) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        cluster.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 9}})
        await cluster.passes(20)
        (condition,) = cluster.get(AUTOSCALERS, "web")["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "AbleToScale",
            "False",
            "FailedGetScale",
        )
        before = len([one for one in cluster.written if one.key == Key("default", "web")])
        await cluster.passes(3600)
        assert len([one for one in cluster.written if one.key == Key("default", "web")]) == before

    play(story, controllers=_EVERYBODY)


class RefusedScales(DirectTransport):
    """Refuses every write of a scale."""

    async def patch(self, resource: Resource, key: Key, patch: Patch, write: Write, **options: Any) -> Object:
        if options.get("subresource") == "scale":
            raise Forbidden("not allowed to scale")
        return await super().patch(resource, key, patch, write, **options)


def test_an_autoscaler_that_may_not_scale_its_target_reports_it() -> None:
    """The target keeps its size, and the condition has the reason of the API server."""

    async def story(cluster: Cluster) -> None:
        await _begin(cluster, 4)
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        cluster.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 2}})
        await cluster.passes(60)
        assert cluster.get(DEPLOYMENTS, "web")["spec"]["replicas"] == 4
        conditions = {one["type"]: one for one in cluster.get(AUTOSCALERS, "web")["status"]["conditions"]}
        able = conditions["AbleToScale"]
        assert (able["status"], able["reason"]) == ("False", "FailedUpdateScale")
        assert able["message"].endswith("not allowed to scale")

    play(story, controllers=_EVERYBODY, connect=RefusedScales)
