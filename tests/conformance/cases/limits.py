"""Quotas, limit ranges and priority classes."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, container, deployment, pod, service
from tests.conformance.session import MERGE, Object, Session


def _quota(session: Session, hard: dict[str, str], **spec: Any) -> None:
    """Create a quota, and write a status without usage in the place of its controller."""
    session.prepare("v1/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    answer = session.send_unrecorded("PATCH", "v1/resourcequotas/q/status", {"status": status}, {"Content-Type": MERGE})
    assert answer.status == 200, answer.body
    # A server reads quotas from a cache, which is a moment behind.
    session.until(
        lambda answer: answer.body["items"][0].get("status", {}).get("used") is not None,
        "v1/resourcequotas",
        resourceVersion="0",
    )


def _limits(session: Session, **limits: Any) -> None:
    session.prepare(
        "v1/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", **limits}]}}
    )
    session.until(lambda answer: bool(answer.body["items"]), "v1/limitranges", resourceVersion="0")


def _pod(name: str = "web", **resources: Any) -> Object:
    return pod(name, containers=[container(resources=resources)] if resources else [container()])


@case
def quota_counts_objects(session: Session) -> None:
    _quota(session, {"count/configmaps": "2"})
    for name in ("a", "b", "c"):
        session.create("v1/configmaps", config_map(name))
    session.get("v1/resourcequotas/q")


@case
def quota_counts_pods(session: Session) -> None:
    _quota(session, {"pods": "1"})
    session.create("v1/pods", _pod("a"))
    session.create("v1/pods", _pod("b"))


@case
def quota_sums_requests(session: Session) -> None:
    _quota(session, {"requests.cpu": "1", "requests.memory": "1Gi"})
    session.create("v1/pods", _pod("a", requests={"cpu": "600m", "memory": "256Mi"}))
    session.create("v1/pods", _pod("b", requests={"cpu": "600m", "memory": "256Mi"}))
    session.get("v1/resourcequotas/q")


@case
def quota_of_requests_needs_requests(session: Session) -> None:
    _quota(session, {"requests.cpu": "1", "limits.memory": "1Gi"})
    session.create("v1/pods", _pod())


@case
def quota_of_a_scope(session: Session) -> None:
    _quota(session, {"pods": "1"}, scopes=["BestEffort"])
    session.create("v1/pods", _pod("a"))
    session.create("v1/pods", _pod("b", requests={"cpu": "1"}))
    session.create("v1/pods", _pod("c"))


@case
def quota_does_not_count_dry_runs(session: Session) -> None:
    _quota(session, {"count/configmaps": "1"})
    session.create("v1/configmaps", config_map("a"), dryRun="All")["metadata"].pop("uid")
    session.create("v1/configmaps", config_map("b"))


@each(
    {
        "not a quantity": {"pods": "many"},
        "negative": {"pods": "-1"},
        "fraction of a pod": {"pods": "1500m"},
        "unknown resource": {"speed": "1"},
    }
)
def quota_is_rejected(session: Session, hard: dict[str, str]) -> None:
    session.create("v1/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})


@case
def limit_range_defaults(session: Session) -> None:
    _limits(session, default={"cpu": "500m"}, defaultRequest={"cpu": "100m", "memory": "64Mi"})
    session.create("v1/pods", _pod("none"))
    session.create("v1/pods", _pod("some", requests={"cpu": "200m"}))
    session.create("v1/pods", _pod("limited", limits={"cpu": "1"}))


@case
def limit_range_minimum_and_maximum(session: Session) -> None:
    _limits(session, max={"cpu": "1"}, min={"cpu": "100m"})
    session.create("v1/pods", _pod("large", limits={"cpu": "2"}))
    session.create("v1/pods", _pod("small", requests={"cpu": "50m"}, limits={"cpu": "1"}))
    session.create("v1/pods", _pod("none"))


@case
def limit_range_ratio(session: Session) -> None:
    _limits(session, maxLimitRequestRatio={"cpu": "2"})
    session.create("v1/pods", _pod(requests={"cpu": "100m"}, limits={"cpu": "1"}))


@case
def limit_range_ignores_templates(session: Session) -> None:
    _limits(session, max={"cpu": "1"})
    session.create("apps/v1/deployments", deployment())


@case
def priority_comes_from_its_class(session: Session) -> None:
    name = session.unique("high")
    body = {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": "Never"}
    session.prepare("/apis/scheduling.k8s.io/v1/priorityclasses", body)
    session.until(
        lambda answer: answer.status == 201, "v1/pods", pod(priorityClassName=name), method="POST", dryRun="All"
    )
    session.create("v1/pods", pod(priorityClassName=name))


@case
def system_priority(session: Session) -> None:
    session.create("v1/pods", pod(priorityClassName="system-cluster-critical"))


@case
def priority_cannot_be_set_by_users(session: Session) -> None:
    session.create("v1/pods", pod(priority=7))


@each(
    {
        "too high": {"value": 2_000_000_000},
        "reserved name": {"value": 1, "metadata": {"name": "system-mine"}},
        "unknown policy": {"value": 1, "preemptionPolicy": "Sometimes"},
    }
)
def priority_class_is_rejected(session: Session, body: Object) -> None:
    session.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": session.unique("x")}, **body})


@case
def priority_class_value_is_immutable(session: Session) -> None:
    name = session.unique("x")
    session.prepare("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 5})
    session.patch(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}", {"value": 6})
    session.patch(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}", {"description": "better"})


@case
def services_count(session: Session) -> None:
    _quota(session, {"services": "1"})
    session.create("v1/services", service("a", clusterIP="None"))
    session.create("v1/services", service("b", clusterIP="None"))
