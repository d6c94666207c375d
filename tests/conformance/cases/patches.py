"""Merge, JSON and strategic merge patches."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import budget, config_map, container, deployment, lease, node, pod, service
from tests.conformance.session import JSON_PATCH, MERGE, STRATEGIC, Object, Session

_SETTINGS = "v1/configmaps/settings"
_WEB = "apps/v1/deployments/web"


def _settings(session: Session) -> None:
    session.prepare("v1/configmaps", config_map(data={"a": "1", "b": "2"}, labels={"tier": "back"}))


@each(
    {
        "adds a key": {"data": {"c": "3"}},
        "changes a key": {"data": {"a": "9"}},
        "removes a key with null": {"data": {"a": None}},
        "removes all with null": {"data": None},
        "removes a missing field": {"data": {"z": None}},
        "changes nothing": {"data": {"a": "1"}},
        "is empty": {},
        "adds a label": {"metadata": {"labels": {"app": "web"}}},
        "sets a wrong type": {"data": {"a": 1}},
        "renames": {"metadata": {"name": "other"}},
        "moves to another namespace": {"metadata": {"namespace": "elsewhere"}},
        "changes the kind": {"kind": "Secret"},
        "changes the version of the API": {"apiVersion": "v2"},
        "changes the uid": {"metadata": {"uid": "00000000-0000-0000-0000-000000000001"}},
        "names an old version": {"metadata": {"resourceVersion": "1"}},
        "names a version that is not a number": {"metadata": {"resourceVersion": "new"}},
        "clears managed fields": {"metadata": {"managedFields": [{}]}},
        "is a list": [],
        "is a number": 5,
        "is a string": "data",
    }
)
def a_merge_patch(session: Session, body: Any) -> None:
    _settings(session)
    session.patch(_SETTINGS, body)
    session.get(_SETTINGS)


@each(
    {
        "adds": [{"op": "add", "path": "/data/c", "value": "3"}],
        "replaces": [{"op": "replace", "path": "/data/a", "value": "9"}],
        "removes": [{"op": "remove", "path": "/data/a"}],
        "moves": [{"op": "move", "from": "/data/a", "path": "/data/c"}],
        "copies": [{"op": "copy", "from": "/data/a", "path": "/data/c"}],
        "tests and changes": [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/a"}],
        "fails a test": [{"op": "test", "path": "/data/a", "value": "2"}, {"op": "remove", "path": "/data/a"}],
        "removes a missing field": [{"op": "remove", "path": "/data/z"}],
        "replaces a missing field": [{"op": "replace", "path": "/data/z", "value": "1"}],
        "adds below a missing field": [{"op": "add", "path": "/metadata/annotations/a", "value": "1"}],
        "has an unknown operation": [{"op": "shuffle", "path": "/data"}],
        "escapes slashes": [{"op": "add", "path": "/metadata/labels/example.com~1tier", "value": "front"}],
        "is empty": [],
        "is an object": {"op": "add"},
        "stops at the first failure": [{"op": "remove", "path": "/data/a"}, {"op": "remove", "path": "/data/a"}],
    }
)
def a_json_patch(session: Session, body: Any) -> None:
    _settings(session)
    session.patch(_SETTINGS, body, JSON_PATCH)
    session.get(_SETTINGS)


def _containers(*containers: Object) -> Object:
    return {"spec": {"template": {"spec": {"containers": list(containers)}}}}


@each(
    {
        "changes a container by its name": _containers({"name": "main", "image": "example.com/app:2"}),
        "adds a container": _containers(container("side")),
        "removes a container": _containers({"name": "side", "$patch": "delete"}, container("other")),
        "replaces all containers": _containers({"$patch": "replace"}, container("only")),
        "needs the name of a container": _containers({"image": "example.com/app:2"}),
        "merges lists within lists": _containers({"name": "main", "env": [{"name": "MODE", "value": "fast"}]}),
        "merges ports by their number": _containers({"name": "main", "ports": [{"containerPort": 80, "name": "http"}]}),
        "replaces a map": {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}},
        "keeps only some keys": {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        "orders containers": {
            "spec": {
                "template": {
                    "spec": {
                        "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
                        "containers": [container("side")],
                    }
                }
            }
        },
        "replaces lists without keys": {"spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}},
        "removes with null": {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": None}}}},
        "has an unknown directive": {"$patch": "shuffle"},
        "has a string for a list": {"spec": {"template": {"spec": {"containers": "main"}}}},
        "changes nothing": _containers({"name": "main"}),
        "adds finalizers": {"metadata": {"finalizers": ["example.com/a"]}},
    }
)
def a_strategic_patch(session: Session, body: Object) -> None:
    session.prepare("apps/v1/deployments", deployment())
    session.patch(_WEB, body, STRATEGIC)


@case
def a_sequence_of_strategic_patches(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment())
    session.patch(
        _WEB, _containers(container("side", env=[{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}])), STRATEGIC
    )
    session.patch(_WEB, _containers({"name": "side", "env": [{"name": "X", "$patch": "delete"}]}), STRATEGIC)
    session.patch(_WEB, _containers({"name": "side", "$patch": "delete"}), STRATEGIC)


@case
def finalizers_are_removed_by_value(session: Session) -> None:
    session.prepare("v1/configmaps", config_map(finalizers=["example.com/a", "example.com/b"]))
    session.patch(_SETTINGS, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}, STRATEGIC)
    session.patch(_SETTINGS, {"metadata": {"finalizers": None}}, STRATEGIC)


@case
def ports_of_a_service_merge_by_their_number(session: Session) -> None:
    session.prepare("v1/services", service())
    body = {"spec": {"ports": [{"port": 80, "name": "http"}, {"port": 81, "name": "more"}]}}
    session.patch("v1/services/web", body, STRATEGIC)


@case
def conditions_of_a_node_merge_by_their_type(session: Session) -> None:
    name = session.unique("n")
    path = f"/api/v1/nodes/{name}/status"
    session.prepare("/api/v1/nodes", node(name))
    for kind, status in (("Ready", "True"), ("DiskPressure", "False"), ("Ready", "False")):
        session.patch(path, {"status": {"conditions": [{"type": kind, "status": status}]}}, STRATEGIC)


@case
def taints_of_a_node_are_replaced_as_a_whole(session: Session) -> None:
    name = session.unique("n")
    session.prepare("/api/v1/nodes", node(name))
    for key in ("first", "second"):
        session.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}, STRATEGIC)


@each({"merge": MERGE, "strategic": STRATEGIC})
def labels_of_a_disruption_budget(session: Session, kind: str) -> None:
    session.prepare("policy/v1/poddisruptionbudgets", budget())
    body = {"spec": {"selector": {"matchLabels": {"tier": "front"}}}}
    session.patch("policy/v1/poddisruptionbudgets/web", body, kind)


@each({"merge": MERGE, "strategic": STRATEGIC})
def holder_of_a_lease(session: Session, kind: str) -> None:
    session.prepare("coordination.k8s.io/v1/leases", lease(holderIdentity="me"))
    session.patch(
        "coordination.k8s.io/v1/leases/leader", {"spec": {"holderIdentity": "you", "leaseTransitions": 1}}, kind
    )


@each(
    {
        "image": {"containers": [{"name": "main", "image": "example.com/app:2"}]},
        "node": {"nodeName": "elsewhere"},
        "a second container": {"containers": [container(), container("side")]},
        "deadline": {"activeDeadlineSeconds": 60},
        "an added toleration": {"tolerations": [{"key": "x", "operator": "Exists"}]},
        "restart policy": {"restartPolicy": "Never"},
        "resources": {"containers": [container(resources={"requests": {"cpu": "1"}})]},
        "scheduling gate": {"schedulingGates": [{"name": "example.com/wait"}]},
    }
)
def the_spec_of_a_pod_is_mostly_immutable(session: Session, spec: Object) -> None:
    session.prepare("v1/pods", pod())
    session.patch("v1/pods/web", {"spec": spec}, STRATEGIC)


@case
def the_selector_of_a_deployment_is_immutable(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment())
    labels = {"app": "other"}
    session.patch(_WEB, {"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}})


@case
def an_immutable_config_map(session: Session) -> None:
    session.prepare("v1/configmaps", config_map() | {"immutable": True})
    session.patch(_SETTINGS, {"data": {"a": "2"}})
    session.patch(_SETTINGS, {"immutable": False})
    session.patch(_SETTINGS, {"metadata": {"labels": {"a": "b"}}})


@each({"yaml": "application/yaml", "json": "application/json", "unknown": "application/patch"})
def unknown_patch_type(session: Session, kind: str) -> None:
    _settings(session)
    session.patch(_SETTINGS, {"data": {"a": "2"}}, kind)
