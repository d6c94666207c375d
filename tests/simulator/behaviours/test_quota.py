"""Quotas: what is used of what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apis.forecast import format_instant
from springtide.cluster.resources import PODS, Object, Resource
from springtide.simulator.behaviours.resource_quotas import decide, release_of
from springtide.simulator.behaviours.resources import DEPLOYMENTS

NOW = 1_800_000_000
_CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def _pod(cpu: str = "500m", *, phase: str = "Running", limit: str = "", **metadata: Any) -> Object:
    resources: Object = {"requests": {"cpu": cpu}} | ({"limits": {"cpu": limit}} if limit else {})
    return {
        "metadata": {"name": "p", "namespace": "d", **metadata},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
        "status": {"phase": phase},
    }


def _quota(status: Object | None = None, **hard: str) -> Object:
    named = {name.replace("__", "/").replace("_", "."): amount for name, amount in hard.items()}
    return {"metadata": {"name": "q", "namespace": "d"}, "spec": {"hard": named}, "status": status or {}}


@pytest.mark.parametrize(
    ("quota", "objects", "used"),
    [
        pytest.param(_quota(pods="10"), {PODS: [_pod(), _pod()]}, {"pods": "2"}, id="pods"),
        pytest.param(_quota(pods="10"), {PODS: [_pod(), _pod(phase="Failed")]}, {"pods": "1"}, id="finished"),
        pytest.param(_quota(count__pods="9"), {PODS: [_pod(phase="Failed")]}, {"count/pods": "1"}, id="all-that-is"),
        pytest.param(
            _quota(requests_cpu="4", cpu="4", limits_cpu="8"),
            {PODS: [_pod(limit="1"), _pod("250m")]},
            {"requests.cpu": "750m", "cpu": "750m", "limits.cpu": "1"},
            id="compute",
        ),
        pytest.param(
            _quota(configmaps="5"), {_CONFIG_MAPS: [{"metadata": {"name": "c"}}]}, {"configmaps": "1"}, id="counted"
        ),
        pytest.param(_quota(memory="1Gi"), {PODS: [_pod()]}, {"memory": "0"}, id="unused"),
    ],
)
def test_usage(quota: Object, objects: dict[Resource, list[Object]], used: Object) -> None:
    assert decide(quota, objects, NOW) == {"hard": quota["spec"]["hard"], "used": used}


def test_group_kinds_are_counted_by_their_full_name() -> None:
    quota = _quota() | {"spec": {"hard": {"count/deployments.apps": "3"}}}

    assert decide(quota, {DEPLOYMENTS: [{"metadata": {"name": "a"}}]}, NOW)["used"] == {"count/deployments.apps": "1"}


def test_resources_without_a_limit_leave_the_status() -> None:
    status = decide(_quota({"hard": {"cpu": "1"}, "used": {"cpu": "0"}}, pods="1"), {PODS: []}, NOW)

    assert status == {"hard": {"cpu": None, "pods": "1"}, "used": {"cpu": None, "pods": "0"}}


def test_overdue_terminating_pods_are_not_counted() -> None:
    going = _pod(deletionTimestamp=format_instant(NOW), deletionGracePeriodSeconds=30)

    assert release_of([going, _pod()], NOW) == NOW + 31
    assert decide(_quota(pods="1"), {PODS: [going]}, NOW + 30)["used"] == {"pods": "1"}
    assert decide(_quota(pods="1"), {PODS: [going]}, NOW + 31)["used"] == {"pods": "0"}
    assert release_of([going], NOW + 31) is None
