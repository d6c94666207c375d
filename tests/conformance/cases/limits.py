"""Quotas, limit ranges and priorities: what a namespace allows, and what a pod is given."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, container, deployment, pod, service
from tests.conformance.session import MERGE, Object, Session


def _quota(play: Session, hard: dict[str, str], **spec: Any) -> None:
    """Make a quota, and say for its controller that nothing is used yet."""
    play.prepare("v1/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    answer = play.quietly("PATCH", "v1/resourcequotas/q/status", {"status": status}, {"Content-Type": MERGE})
    assert answer.status == 200, answer.body
    # A server looks at quotas through a cache, which is a moment behind.
    play.until(
        lambda answer: answer.body["items"][0].get("status", {}).get("used") is not None,
        "v1/resourcequotas",
        resourceVersion="0",
    )


def _limits(play: Session, **limits: Any) -> None:
    play.prepare("v1/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", **limits}]}})
    play.until(lambda answer: bool(answer.body["items"]), "v1/limitranges", resourceVersion="0")


def _pod(name: str = "web", **resources: Any) -> Object:
    return pod(name, containers=[container(resources=resources)] if resources else [container()])


@case
def quota_counts_what_is_made(play: Session) -> None:
    _quota(play, {"count/configmaps": "2"})
    for name in ("a", "b", "c"):
        play.create("v1/configmaps", config_map(name))
    play.get("v1/resourcequotas/q")


@case
def quota_counts_pods(play: Session) -> None:
    _quota(play, {"pods": "1"})
    play.create("v1/pods", _pod("a"))
    play.create("v1/pods", _pod("b"))


@case
def quota_sums_requests(play: Session) -> None:
    _quota(play, {"requests.cpu": "1", "requests.memory": "1Gi"})
    play.create("v1/pods", _pod("a", requests={"cpu": "600m", "memory": "256Mi"}))
    play.create("v1/pods", _pod("b", requests={"cpu": "600m", "memory": "256Mi"}))
    play.get("v1/resourcequotas/q")


@case
def quota_of_requests_wants_them_said(play: Session) -> None:
    _quota(play, {"requests.cpu": "1", "limits.memory": "1Gi"})
    play.create("v1/pods", _pod())


@case
def quota_of_a_scope(play: Session) -> None:
    _quota(play, {"pods": "1"}, scopes=["BestEffort"])
    play.create("v1/pods", _pod("a"))
    play.create("v1/pods", _pod("b", requests={"cpu": "1"}))
    play.create("v1/pods", _pod("c"))


@case
def quota_does_not_count_trials(play: Session) -> None:
    _quota(play, {"count/configmaps": "1"})
    play.create("v1/configmaps", config_map("a"), dryRun="All")["metadata"].pop("uid")
    play.create("v1/configmaps", config_map("b"))


@each(
    {
        "no quantity": {"pods": "many"},
        "below zero": {"pods": "-1"},
        "half a pod": {"pods": "1500m"},
        "unknown resource": {"speed": "1"},
    }
)
def quota_is_refused(play: Session, hard: dict[str, str]) -> None:
    play.create("v1/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})


@case
def limit_range_fills_in(play: Session) -> None:
    _limits(play, default={"cpu": "500m"}, defaultRequest={"cpu": "100m", "memory": "64Mi"})
    play.create("v1/pods", _pod("none"))
    play.create("v1/pods", _pod("some", requests={"cpu": "200m"}))
    play.create("v1/pods", _pod("limited", limits={"cpu": "1"}))


@case
def limit_range_bounds(play: Session) -> None:
    _limits(play, max={"cpu": "1"}, min={"cpu": "100m"})
    play.create("v1/pods", _pod("large", limits={"cpu": "2"}))
    play.create("v1/pods", _pod("small", requests={"cpu": "50m"}, limits={"cpu": "1"}))
    play.create("v1/pods", _pod("none"))


@case
def limit_range_bounds_the_ratio(play: Session) -> None:
    _limits(play, maxLimitRequestRatio={"cpu": "2"})
    play.create("v1/pods", _pod(requests={"cpu": "100m"}, limits={"cpu": "1"}))


@case
def limit_range_leaves_templates_alone(play: Session) -> None:
    _limits(play, max={"cpu": "1"})
    play.create("apps/v1/deployments", deployment())


@case
def priority_comes_from_its_class(play: Session) -> None:
    name = play.unique("high")
    body = {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": "Never"}
    play.prepare("/apis/scheduling.k8s.io/v1/priorityclasses", body)
    play.until(lambda answer: answer.status == 201, "v1/pods", pod(priorityClassName=name), method="POST", dryRun="All")
    play.create("v1/pods", pod(priorityClassName=name))


@case
def priority_of_the_system(play: Session) -> None:
    play.create("v1/pods", pod(priorityClassName="system-cluster-critical"))


@case
def priority_is_not_a_users_to_give(play: Session) -> None:
    play.create("v1/pods", pod(priority=7))


@each(
    {
        "too high": {"value": 2_000_000_000},
        "reserved name": {"value": 1, "metadata": {"name": "system-mine"}},
        "unknown policy": {"value": 1, "preemptionPolicy": "Sometimes"},
    }
)
def priority_class_is_refused(play: Session, body: Object) -> None:
    play.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": play.unique("x")}, **body})


@case
def priority_class_keeps_its_value(play: Session) -> None:
    name = play.unique("x")
    play.prepare("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 5})
    play.patch(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}", {"value": 6})
    play.patch(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}", {"description": "better"})


@case
def services_count(play: Session) -> None:
    _quota(play, {"services": "1"})
    play.create("v1/services", service("a", clusterIP="None"))
    play.create("v1/services", service("b", clusterIP="None"))
