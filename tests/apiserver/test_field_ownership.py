"""Field ownership of new built-in objects: the author owns defaults, but not what the server adds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import JOBS, PODS, REPLICA_SETS, WRITE, make_server
from tests.apiserver.patches.samples import owners

from springtide.apiserver.values import value_at
from springtide.cluster.resources import Object, Resource, key_of

_CONTAINERS = [{"name": "a", "image": "x"}]
_NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")


def _job(**template: Any) -> Object:
    spec = {"restartPolicy": "Never", "containers": _CONTAINERS}
    return {"metadata": {"name": "j"}, "spec": {"template": {"spec": spec, **template}}}


def _owned(resource: Resource, body: Object) -> Any:
    namespace = "default" if resource.namespaced else ""
    return owners(make_server().create(resource, body, WRITE, namespace=namespace)).get("tester Update")


def test_default_tolerations_are_not_owned() -> None:
    assert (
        "f:tolerations" not in _owned(PODS, {"metadata": {"name": "p"}, "spec": {"containers": _CONTAINERS}})["f:spec"]
    )


def test_written_tolerations_are_owned() -> None:
    spec = {"containers": _CONTAINERS, "tolerations": [{"operator": "Exists"}]}

    assert "f:tolerations" in _owned(PODS, {"metadata": {"name": "p"}, "spec": spec})["f:spec"]


@pytest.mark.parametrize(
    ("template", "labels"),
    [
        pytest.param({}, None, id="no labels"),
        pytest.param({"metadata": {"labels": {"app": "x"}}}, {".": {}, "f:app": {}}, id="labels"),
    ],
)
def test_the_generated_selector_of_a_job_is_not_owned(template: Any, labels: Any) -> None:
    """Labels of the template are copied to the Job as a default."""
    owned = _owned(JOBS, _job(**template))

    assert value_at(owned, ("f:spec", "f:selector")) is None
    assert value_at(owned, ("f:spec", "f:template", "f:metadata", "f:labels")) == labels
    assert value_at(owned, ("f:metadata", "f:labels")) == labels


@pytest.mark.parametrize(
    ("resource", "body", "owned"),
    [
        pytest.param(_NODES, {"metadata": {"name": "n"}}, None, id="bare node has no managed fields"),
        pytest.param(
            _NODES,
            {"metadata": {"name": "n"}, "spec": {"unschedulable": True}},
            {"f:spec": {"f:unschedulable": {}}},
            id="structs are not owned themselves",
        ),
        pytest.param(
            _BUDGETS,
            {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}},
            {"f:spec": {"f:minAvailable": {}}},
            id="status is not owned",
        ),
        pytest.param(
            _REVISIONS,
            {"metadata": {"name": "r"}, "revision": 1, "data": {"any": {"thing": 1}}},
            {"f:data": {}, "f:revision": {}},
            id="untyped field is owned as a whole",
        ),
    ],
)
def test_owns_as_on_a_real_server(resource: Resource, body: Object, owned: Any) -> None:
    assert _owned(resource, body) == owned


def test_required_lists_are_owned_by_entry() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": _CONTAINERS}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}

    pods = _owned(REPLICA_SETS, {"metadata": {"name": "r"}, "spec": spec})["f:spec"]["f:template"]["f:spec"]

    assert list(pods["f:containers"]) == ['k:{"name":"a"}']
    assert "." not in pods
    assert "." in pods["f:containers"]['k:{"name":"a"}']


def test_a_null_time_is_owned_with_its_condition() -> None:
    """A server writes it as null."""
    server = make_server()
    body = {"metadata": {"name": "p"}, "spec": {"containers": _CONTAINERS}}
    made = server.create(PODS, body, WRITE, namespace="default")
    written = {**made, "status": {**made["status"], "conditions": [{"type": "Ready", "status": "True"}]}}

    after = server.update(PODS, key_of(made), written, WRITE, subresource="status")

    assert owners(after)["tester Update status"]["f:status"]["f:conditions"] == {
        ".": {},
        'k:{"type":"Ready"}': {
            ".": {},
            "f:lastProbeTime": {},
            "f:lastTransitionTime": {},
            "f:status": {},
            "f:type": {},
        },
    }
