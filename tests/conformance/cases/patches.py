"""Patches: merge, JSON and strategic ones, and what each of them refuses."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import budget, config_map, container, deployment, lease, node, pod, service
from tests.conformance.session import JSON_PATCH, MERGE, STRATEGIC, Object, Session

_SETTINGS = "v1/configmaps/settings"
_WEB = "apps/v1/deployments/web"


def _settings(play: Session) -> None:
    play.prepare("v1/configmaps", config_map(data={"a": "1", "b": "2"}, labels={"tier": "back"}))


@each(
    {
        "adds a key": {"data": {"c": "3"}},
        "changes a key": {"data": {"a": "9"}},
        "removes a key with null": {"data": {"a": None}},
        "removes all with null": {"data": None},
        "removes what is not there": {"data": {"z": None}},
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
        "names a version that is no number": {"metadata": {"resourceVersion": "new"}},
        "clears the managers": {"metadata": {"managedFields": [{}]}},
        "is a list": [],
        "is a number": 5,
        "is a string": "data",
    }
)
def a_merge_patch(play: Session, body: Any) -> None:
    _settings(play)
    play.patch(_SETTINGS, body)
    play.get(_SETTINGS)


@each(
    {
        "adds": [{"op": "add", "path": "/data/c", "value": "3"}],
        "replaces": [{"op": "replace", "path": "/data/a", "value": "9"}],
        "removes": [{"op": "remove", "path": "/data/a"}],
        "moves": [{"op": "move", "from": "/data/a", "path": "/data/c"}],
        "copies": [{"op": "copy", "from": "/data/a", "path": "/data/c"}],
        "tests and changes": [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/a"}],
        "fails a test": [{"op": "test", "path": "/data/a", "value": "2"}, {"op": "remove", "path": "/data/a"}],
        "removes what is not there": [{"op": "remove", "path": "/data/z"}],
        "replaces what is not there": [{"op": "replace", "path": "/data/z", "value": "1"}],
        "adds below what is not there": [{"op": "add", "path": "/metadata/annotations/a", "value": "1"}],
        "does what nobody knows": [{"op": "shuffle", "path": "/data"}],
        "escapes slashes": [{"op": "add", "path": "/metadata/labels/example.com~1tier", "value": "front"}],
        "is empty": [],
        "is an object": {"op": "add"},
        "stops at the first failure": [{"op": "remove", "path": "/data/a"}, {"op": "remove", "path": "/data/a"}],
    }
)
def a_json_patch(play: Session, body: Any) -> None:
    _settings(play)
    play.patch(_SETTINGS, body, JSON_PATCH)
    play.get(_SETTINGS)


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
        "knows no such directive": {"$patch": "shuffle"},
        "has a list that is none": {"spec": {"template": {"spec": {"containers": "main"}}}},
        "changes nothing": _containers({"name": "main"}),
        "adds finalizers": {"metadata": {"finalizers": ["example.com/a"]}},
    }
)
def a_strategic_patch(play: Session, body: Object) -> None:
    play.prepare("apps/v1/deployments", deployment())
    play.patch(_WEB, body, STRATEGIC)


@case
def strategic_patches_build_on_each_other(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment())
    play.patch(
        _WEB, _containers(container("side", env=[{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}])), STRATEGIC
    )
    play.patch(_WEB, _containers({"name": "side", "env": [{"name": "X", "$patch": "delete"}]}), STRATEGIC)
    play.patch(_WEB, _containers({"name": "side", "$patch": "delete"}), STRATEGIC)


@case
def finalizers_are_taken_from_their_list_by_value(play: Session) -> None:
    play.prepare("v1/configmaps", config_map(finalizers=["example.com/a", "example.com/b"]))
    play.patch(_SETTINGS, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}, STRATEGIC)
    play.patch(_SETTINGS, {"metadata": {"finalizers": None}}, STRATEGIC)


@case
def ports_of_a_service_merge_by_their_number(play: Session) -> None:
    play.prepare("v1/services", service())
    body = {"spec": {"ports": [{"port": 80, "name": "http"}, {"port": 81, "name": "more"}]}}
    play.patch("v1/services/web", body, STRATEGIC)


@case
def conditions_of_a_node_merge_by_their_type(play: Session) -> None:
    name = play.unique("n")
    path = f"/api/v1/nodes/{name}/status"
    play.prepare("/api/v1/nodes", node(name))
    for kind, status in (("Ready", "True"), ("DiskPressure", "False"), ("Ready", "False")):
        play.patch(path, {"status": {"conditions": [{"type": kind, "status": status}]}}, STRATEGIC)


@case
def taints_of_a_node_are_replaced_as_a_whole(play: Session) -> None:
    name = play.unique("n")
    play.prepare("/api/v1/nodes", node(name))
    for key in ("first", "second"):
        play.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}, STRATEGIC)


@each({"merge": MERGE, "strategic": STRATEGIC})
def the_labels_of_a_budget(play: Session, kind: str) -> None:
    play.prepare("policy/v1/poddisruptionbudgets", budget())
    body = {"spec": {"selector": {"matchLabels": {"tier": "front"}}}}
    play.patch("policy/v1/poddisruptionbudgets/web", body, kind)


@each({"merge": MERGE, "strategic": STRATEGIC})
def the_holder_of_a_lease(play: Session, kind: str) -> None:
    play.prepare("coordination.k8s.io/v1/leases", lease(holderIdentity="me"))
    play.patch("coordination.k8s.io/v1/leases/leader", {"spec": {"holderIdentity": "you", "leaseTransitions": 1}}, kind)


@each(
    {
        "image": {"containers": [{"name": "main", "image": "example.com/app:2"}]},
        "node": {"nodeName": "elsewhere"},
        "a second container": {"containers": [container(), container("side")]},
        "deadline": {"activeDeadlineSeconds": 60},
        "a toleration more": {"tolerations": [{"key": "x", "operator": "Exists"}]},
        "restart policy": {"restartPolicy": "Never"},
        "resources": {"containers": [container(resources={"requests": {"cpu": "1"}})]},
        "scheduling gate": {"schedulingGates": [{"name": "example.com/wait"}]},
    }
)
def of_the_spec_of_a_pod_only_a_little_may_change(play: Session, spec: Object) -> None:
    play.prepare("v1/pods", pod())
    play.patch("v1/pods/web", {"spec": spec}, STRATEGIC)


@case
def the_selector_of_a_deployment_is_fixed(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment())
    labels = {"app": "other"}
    play.patch(_WEB, {"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}})


@case
def an_immutable_config_map_stays(play: Session) -> None:
    play.prepare("v1/configmaps", config_map() | {"immutable": True})
    play.patch(_SETTINGS, {"data": {"a": "2"}})
    play.patch(_SETTINGS, {"immutable": False})
    play.patch(_SETTINGS, {"metadata": {"labels": {"a": "b"}}})


@each({"yaml": "application/yaml", "json": "application/json", "nonsense": "application/patch"})
def a_patch_of_no_known_kind(play: Session, kind: str) -> None:
    _settings(play)
    play.patch(_SETTINGS, {"data": {"a": "2"}}, kind)
