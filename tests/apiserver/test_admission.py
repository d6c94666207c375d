"""Built-in admission: quotas, priorities, limit ranges, taints and initial statuses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import (
    CONFIG_MAPS,
    DRY,
    LIMIT_RANGES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    QUOTAS,
    WRITE,
    config_map,
    key,
    make_server,
    pod,
)

from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import AlreadyExists, Forbidden
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch, Write


@pytest.fixture
def server() -> ApiServer:
    return make_server()


def _quota(server: ApiServer, **spec: Any) -> None:
    server.create(QUOTAS, {"metadata": {"name": "q"}, "spec": spec}, WRITE, namespace="default")


def _add(server: ApiServer, body: Object) -> Object:
    return server.create(PODS, body, WRITE, namespace="default")


_TOO_MUCH = [
    pytest.param(
        {"pods": "1"}, None, "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1", id="count"
    ),
    pytest.param({"count/pods": "1"}, None, "requested: count/pods=1, used: count/pods=1, limited", id="count by name"),
    pytest.param(
        {"requests.cpu": "1500m", "pods": "9"},
        {"cpu": "1"},
        "requested: requests.cpu=1, used: requests.cpu=1, limited: requests.cpu=1500m",
        id="requests",
    ),
    pytest.param({"memory": "3Gi"}, {"memory": "2Gi"}, "memory=2Gi, used: memory=2Gi, limited: memory=3Gi", id="short"),
    pytest.param(
        {"requests.cpu": "1", "requests.memory": "1Gi"},
        {"cpu": "1", "memory": "1Gi"},
        "requested: requests.cpu=1,requests.memory=1Gi, used: requests.cpu=1,requests.memory=1Gi",
        id="all exceeded resources",
    ),
]


@pytest.mark.parametrize(("hard", "requests", "text"), _TOO_MUCH)
def test_the_second_pod_exceeds_the_quota(
    server: ApiServer, hard: Object, requests: dict[str, str] | None, text: str
) -> None:
    _quota(server, hard=hard)
    _add(server, pod("first", requests=requests))
    with pytest.raises(Forbidden) as caught:
        _add(server, pod("second", requests=requests))
    assert caught.value.message.startswith('pods "second" is forbidden: exceeded quota: q, ')
    assert text in caught.value.message


def _counted(server: ApiServer, **used: str) -> None:
    """Create a quota that its controller has counted once."""
    _quota(server, hard={"pods": "2", "requests.cpu": "2"})
    status = Patch.merge({"status": {"used": {name.replace("_", "."): amount for name, amount in used.items()}}})
    server.patch(QUOTAS, key("q"), status, Write("counter"), subresource="status")


def test_a_new_object_is_charged_to_its_quota(server: ApiServer) -> None:
    _counted(server, pods="0", requests_cpu="250m")
    before = server.revision
    made = _add(server, pod("first", requests={"cpu": "500m"}))

    left = server.get(QUOTAS, key("q"))
    assert left["status"]["used"] == {"pods": "1", "requests.cpu": "750m"}
    owners = {entry["manager"]: entry["fieldsV1"] for entry in left["metadata"]["managedFields"]}
    assert owners["kube-apiserver"] == {"f:status": {"f:used": {"f:pods": {}, "f:requests.cpu": {}}}}
    versions = [int(each["metadata"]["resourceVersion"]) for each in (left, made)]
    assert versions == [before + 1, before + 2]


def test_objects_that_are_not_created_are_not_counted(server: ApiServer) -> None:
    """Dry runs, existing names and refused objects are not counted."""
    _counted(server, pods="0", requests_cpu="0")
    server.create(PODS, pod("first", requests={"cpu": "1"}), DRY, namespace="default")
    _add(server, pod("first", requests={"cpu": "1"}))
    with pytest.raises(AlreadyExists):
        _add(server, pod("first", requests={"cpu": "1"}))
    with pytest.raises(Forbidden):
        _add(server, pod("second", requests={"cpu": "2"}))

    assert server.get(QUOTAS, key("q"))["status"]["used"] == {"pods": "1", "requests.cpu": "1"}


def test_resources_without_a_count_are_not_charged(server: ApiServer) -> None:
    _counted(server, pods="0")
    _add(server, pod("first", requests={"cpu": "1"}))

    assert server.get(QUOTAS, key("q"))["status"]["used"] == {"pods": "1"}


def test_finished_pods_count_as_objects_only(server: ApiServer) -> None:
    _quota(server, hard={"pods": "1", "count/pods": "2"})
    _add(server, pod("first"))
    server.patch(PODS, key("first"), Patch.merge({"status": {"phase": "Succeeded"}}), WRITE, subresource="status")
    _add(server, pod("second"))
    with pytest.raises(Forbidden, match=r"requested: count/pods=1,pods=1, used: count/pods=2,pods=1"):
        _add(server, pod("third"))


def test_quotas_require_requests_and_limits(server: ApiServer) -> None:
    _quota(server, hard={"requests.cpu": "1", "limits.memory": "1Gi"})
    text = "failed quota: q: must specify limits.memory for: main; requests.cpu for: main"
    with pytest.raises(Forbidden, match=text):
        _add(server, pod())


_SCOPES = [
    pytest.param({"scopes": ["BestEffort"]}, {}, True, id="best effort"),
    pytest.param({"scopes": ["NotBestEffort"]}, {}, False, id="not best effort"),
    pytest.param({"scopes": ["Terminating"]}, {"spec": {"activeDeadlineSeconds": 5}}, True, id="with a deadline"),
    pytest.param(
        {"scopes": ["NotTerminating"]}, {"spec": {"activeDeadlineSeconds": 5}}, False, id="without a deadline"
    ),
    pytest.param({"scopes": ["BestEffort", "Terminating"]}, {}, False, id="all scopes must match"),
    pytest.param(
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}},
        {"spec": {"priorityClassName": "high"}},
        True,
        id="of a priority class",
    ),
    pytest.param(
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}},
        {},
        False,
        id="of another priority class",
    ),
]


@pytest.mark.parametrize(("scope", "state", "covered"), _SCOPES)
def test_quotas_count_pods_in_their_scopes(
    server: ApiServer, scope: Object, state: dict[str, Any], covered: bool
) -> None:
    server.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 10}, WRITE)
    _quota(server, hard={"pods": "0"}, **scope)
    if covered:
        with pytest.raises(Forbidden, match="exceeded quota"):
            _add(server, pod(**state))
    else:
        _add(server, pod(**state))


def test_other_kinds_are_counted_too(server: ApiServer) -> None:
    _quota(server, hard={"configmaps": "1"})
    server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
    server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="kube-system")
    with pytest.raises(Forbidden, match='configmaps "b" is forbidden: exceeded quota: q, requested: configmaps=1'):
        server.create(CONFIG_MAPS, config_map("b"), WRITE, namespace="default")


def test_limit_ranges_set_defaults(server: ApiServer) -> None:
    limit = {"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "500m"}}
    body = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": "9"}}, limit]}}
    server.create(LIMIT_RANGES, body, WRITE, namespace="default")
    made = _add(server, pod(requests={"cpu": "100m"}))
    resources = made["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"cpu": "2", "memory": "1Gi"}
    assert resources["requests"]["cpu"] == "100m"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, (5, "usual"), id="the default class"),
        pytest.param(
            {"priorityClassName": "system-node-critical"}, (2_000_001_000, "system-node-critical"), id="named"
        ),
        pytest.param({"priority": 5}, (5, "usual"), id="matching value"),
    ],
)
def test_priority_comes_from_the_priority_class(server: ApiServer, spec: Object, expected: tuple[int, str]) -> None:
    server.create(PRIORITY_CLASSES, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True}, WRITE)
    made = _add(server, pod(spec=spec))["spec"]
    assert (made["priority"], made["priorityClassName"]) == expected


def test_without_classes_priority_is_zero(server: ApiServer) -> None:
    made = _add(server, pod())["spec"]
    assert (made["priority"], "priorityClassName" in made) == (0, False)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param(
            {"priorityClassName": "none"}, 'pods "p" is forbidden: no PriorityClass with name none', id="no taints"
        ),
        pytest.param({"priority": 7}, r"the integer value of priority \(7\) must not be provided", id="by number"),
    ],
)
def test_refuses_priorities(server: ApiServer, spec: Object, text: str) -> None:
    with pytest.raises(Forbidden, match=text):
        _add(server, pod(spec=spec))


def test_only_one_class_is_the_default(server: ApiServer) -> None:
    server.create(PRIORITY_CLASSES, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True}, WRITE)
    text = 'priorityclasses.scheduling.k8s.io "more" is forbidden: PriorityClass usual is already marked as default.'
    with pytest.raises(Forbidden, match=text):
        server.create(PRIORITY_CLASSES, {"metadata": {"name": "more"}, "value": 6, "globalDefault": True}, WRITE)
    server.create(PRIORITY_CLASSES, {"metadata": {"name": "more"}, "value": 6}, WRITE)
    with pytest.raises(Forbidden, match="Only one default can exist"):
        server.patch(PRIORITY_CLASSES, Key("", "more"), Patch.merge({"globalDefault": True}), WRITE)
    server.patch(PRIORITY_CLASSES, Key("", "usual"), Patch.merge({"description": "x"}), WRITE)


def test_system_priority_classes_cannot_be_deleted(server: ApiServer) -> None:
    with pytest.raises(Forbidden, match="this is a system priority class and cannot be deleted"):
        server.delete(PRIORITY_CLASSES, Key("", "system-node-critical"), WRITE)


_ELSE = {"key": "example.com/a", "effect": "NoExecute"}
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([], [_NOT_READY], id="no taints"),
        pytest.param([_ELSE], [_ELSE, _NOT_READY], id="with another taint"),
        pytest.param([{**_NOT_READY, "value": "x"}], [{**_NOT_READY, "value": "x"}], id="already present"),
        pytest.param(
            [{**_NOT_READY, "effect": "NoExecute"}],
            [{**_NOT_READY, "effect": "NoExecute"}, _NOT_READY],
            id="with another effect",
        ),
    ],
)
def test_a_new_node_has_the_not_ready_taint(server: ApiServer, before: list[Object], after: list[Object]) -> None:
    body: Object = {"metadata": {"name": "n"}} | ({"spec": {"taints": before}} if before else {})
    assert server.create(NODES, body, WRITE)["spec"]["taints"] == after
    freed = server.patch(NODES, Key("", "n"), Patch.merge({"spec": {"taints": None}}), WRITE)
    assert "taints" not in freed["spec"]


_BEGINNINGS = [
    pytest.param({}, {"phase": "Pending", "qosClass": "BestEffort"}, id="best effort"),
    pytest.param({"requests": {"cpu": "1"}}, {"phase": "Pending", "qosClass": "Burstable"}, id="with requests"),
    pytest.param(
        {"spec": {"schedulingGates": [{"name": "example.com/a"}]}},
        {
            "phase": "Pending",
            "qosClass": "BestEffort",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastProbeTime": None,
                    "lastTransitionTime": "2027-01-15T08:00:00Z",
                }
            ],
        },
        id="with a gate",
    ),
]


@pytest.mark.parametrize(("given", "status"), _BEGINNINGS)
def test_the_initial_status_of_pods(server: ApiServer, given: dict[str, Any], status: Object) -> None:
    assert _add(server, pod(**given))["status"] == status


def test_limit_range_defaults_count_for_the_qos_class(server: ApiServer) -> None:
    limit = {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}}
    server.create(LIMIT_RANGES, {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}, WRITE, namespace="default")
    assert _add(server, pod())["status"]["qosClass"] == "Guaranteed"


def test_fields_set_by_admission_have_no_owner(server: ApiServer) -> None:
    """The author did not write it, and may apply the object later without it."""
    limit = {"type": "Container", "default": {"cpu": "1"}}
    server.create(LIMIT_RANGES, {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}, WRITE, namespace="default")
    (entry,) = _add(server, pod(labels={"a": "b"}))["metadata"]["managedFields"]
    assert entry["fieldsV1"]["f:metadata"] == {"f:labels": {".": {}, "f:a": {}}}
    assert entry["fieldsV1"]["f:spec"].keys().isdisjoint({"f:priority", "f:preemptionPolicy"})
    assert entry["fieldsV1"]["f:spec"]["f:containers"]['k:{"name":"main"}']["f:resources"] == {}
