"""Limit ranges: defaults and violations."""

from __future__ import annotations

import pytest
from tests.apiserver.objects import CLAIMS, LIMIT_RANGES, PODS, WRITE, make_server

from springtide.apiserver.quota import LIMIT_RANGER_ANNOTATION
from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import Forbidden
from springtide.cluster.resources import Object


@pytest.fixture
def server() -> ApiServer:
    return make_server()


def _limit(server: ApiServer, *limits: Object, name: str = "l") -> None:
    body = {"metadata": {"name": name}, "spec": {"limits": list(limits)}}
    server.create(LIMIT_RANGES, body, WRITE, namespace="default")


def _pod(*resources: Object, first: Object | None = None, **spec: object) -> Object:
    containers = [{"name": f"c{n}", "image": "app", "resources": each} for n, each in enumerate(resources)]
    before = [{"name": "init", "image": "app", "resources": first}] if first is not None else []
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, "initContainers": before, **spec}}


_SMALL = {"requests": {"cpu": "50m"}, "limits": {"cpu": "50m"}}
_BIG = {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}

_REFUSED = [
    pytest.param(
        {"type": "Container", "min": {"cpu": "100m"}},
        _pod(_SMALL),
        "minimum cpu usage per Container is 100m, but request is 50m",
        id="too small",
    ),
    pytest.param(
        {"type": "Pod", "min": {"memory": "1Mi"}},
        _pod(_SMALL),
        "minimum memory usage per Pod is 1Mi.  No request is specified",
        id="no request",
    ),
    pytest.param(
        {"type": "Container", "max": {"cpu": "2"}},
        _pod(_BIG),
        "maximum cpu usage per Container is 2, but limit is 4",
        id="too large",
    ),
    pytest.param(
        {"type": "Container", "max": {"cpu": "2"}},
        _pod(_SMALL, first=_BIG),
        "maximum cpu usage per Container is 2, but limit is 4",
        id="init container too large",
    ),
    pytest.param(
        {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
        _pod({"requests": {"cpu": "300m"}, "limits": {"cpu": "1"}}),
        "cpu max limit to request ratio per Container is 2, but provided ratio is 3.333333",
        id="ratio too large",
    ),
    pytest.param(
        {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
        _pod({"requests": {"cpu": "300m"}}),
        "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        id="no limit for the ratio",
    ),
    pytest.param(
        {"type": "Pod", "max": {"cpu": "5"}},
        _pod(_BIG, _BIG),
        "maximum cpu usage per Pod is 5, but limit is 8",
        id="sum too large",
    ),
    pytest.param(
        {"type": "Pod", "max": {"memory": "1Gi"}},
        _pod(_SMALL),
        "maximum memory usage per Pod is 1Gi.  No limit is specified",
        id="no limit",
    ),
    pytest.param(
        {"type": "Pod", "min": {"cpu": "1"}, "max": {"memory": "1Gi"}},
        _pod(_SMALL),
        "[minimum cpu usage per Pod is 1, but request is 50m, "
        "maximum memory usage per Pod is 1Gi.  No limit is specified]",
        id="several problems",
    ),
]


@pytest.mark.parametrize(("limit", "body", "text"), _REFUSED)
def test_refuses_pods(server: ApiServer, limit: Object, body: Object, text: str) -> None:
    _limit(server, limit)
    with pytest.raises(Forbidden) as caught:
        server.create(PODS, body, WRITE, namespace="default")
    assert caught.value.message == f'pods "p" is forbidden: {text}'


@pytest.mark.parametrize(
    ("limit", "body"),
    [
        pytest.param(
            {"type": "Pod", "max": {"cpu": "5"}},
            _pod(_SMALL, _SMALL, first=_BIG),
            id="init containers count separately",
        ),
        pytest.param({"type": "Container", "max": {"cpu": "5"}}, _pod(_BIG, _BIG), id="containers count separately"),
        pytest.param({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}, _pod(_BIG), id="ratio within bounds"),
        pytest.param(
            {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, _pod(_BIG), id="other resource type"
        ),
    ],
)
def test_accepts_pods(server: ApiServer, limit: Object, body: Object) -> None:
    _limit(server, limit)
    server.create(PODS, body, WRITE, namespace="default")


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        pytest.param(
            {"min": {"storage": "2Gi"}},
            "minimum storage usage per {} is 2Gi, but request is 1Gi",
            id="below the minimum",
        ),
        pytest.param(
            {"max": {"storage": "1Mi"}},
            "maximum storage usage per {} is 1Mi, but request is 1Gi",
            id="above the maximum",
        ),
        pytest.param({"min": {"storage": "1Mi"}, "max": {"storage": "1Gi"}}, "", id="within"),
    ],
)
def test_limits_claims(server: ApiServer, limit: Object, text: str) -> None:
    _limit(server, limit | {"type": "PersistentVolumeClaim"})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"metadata": {"name": "v"}, "spec": spec}
    if not text:
        server.create(CLAIMS, body, WRITE, namespace="default")
        return
    with pytest.raises(Forbidden) as caught:
        server.create(CLAIMS, body, WRITE, namespace="default")
    expected = text.format("PersistentVolumeClaim")
    assert caught.value.message == f'persistentvolumeclaims "v" is forbidden: {expected}'


def test_defaults_are_recorded_in_an_annotation(server: ApiServer) -> None:
    _limit(server, {"type": "Container", "default": {"memory": "1Gi", "cpu": "2"}, "defaultRequest": {"memory": "1Gi"}})
    made = server.create(PODS, _pod({"requests": {"cpu": "1"}}, first={}), WRITE, namespace="default")
    assert made["metadata"]["annotations"][LIMIT_RANGER_ANNOTATION] == (
        "LimitRanger plugin set: memory request for container c0; cpu, memory limit for container c0; "
        "cpu, memory request for init container init; cpu, memory limit for init container init"
    )
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "1Gi"},
    }


def test_pods_without_defaults_get_no_annotation(server: ApiServer) -> None:
    _limit(server, {"type": "Container", "default": {"cpu": "4"}})
    assert "annotations" not in server.create(PODS, _pod(_BIG), WRITE, namespace="default")["metadata"]
