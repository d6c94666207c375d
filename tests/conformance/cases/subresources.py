"""Scale, eviction and binding."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import (
    INTEGER,
    STRING,
    budget,
    config_map,
    define,
    deployment,
    node,
    pod,
    properties,
    template,
    widget,
)
from tests.conformance.session import JSON_PATCH, MERGE, STRATEGIC, Object, Session

_SCALE = "apps/v1/deployments/web/scale"
_WORKLOAD = {"selector": {"matchLabels": {"app": "web"}}, "template": template()}


def _deployment(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment(replicas=2))


@case
def scale_is_read(session: Session) -> None:
    _deployment(session)
    session.get(_SCALE)
    session.get("apps/v1/deployments/nobody/scale")


@each({"merge": MERGE, "strategic": STRATEGIC})
def scale_is_patched(session: Session, kind: str) -> None:
    _deployment(session)
    session.patch(_SCALE, {"spec": {"replicas": 5}}, kind)
    session.get("apps/v1/deployments/web")


@case
def scale_is_patched_with_a_json_patch(session: Session) -> None:
    _deployment(session)
    session.patch(_SCALE, [{"op": "replace", "path": "/spec/replicas", "value": 4}], JSON_PATCH)


@case
def scale_is_replaced(session: Session) -> None:
    _deployment(session)
    scale = session.get(_SCALE)
    session.update(_SCALE, scale | {"spec": {"replicas": 7}})
    session.update(_SCALE, scale | {"spec": {"replicas": 8}})


@each(
    {
        "negative": {"spec": {"replicas": -1}},
        "of a wrong type": {"spec": {"replicas": "many"}},
        "of another name": {"metadata": {"name": "other"}, "spec": {"replicas": 1}},
        "of an old version": {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}},
        "of nothing": {},
        "of an unknown field": {"spec": {"colour": "red"}},
    }
)
def scale_patch(session: Session, body: Object) -> None:
    _deployment(session)
    session.patch(_SCALE, body)


@case
def scale_replaced_with_an_incomplete_body(session: Session) -> None:
    _deployment(session)
    session.update(_SCALE, {"metadata": {"name": "web"}})
    session.update(_SCALE, {"metadata": {"name": "web"}, "spec": {"replicas": -3}})
    session.update(_SCALE, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}})


@each(
    {
        "replica set": ("apps/v1/replicasets", {"metadata": {"name": "web"}, "spec": _WORKLOAD}),
        "stateful set": (
            "apps/v1/statefulsets",
            {"metadata": {"name": "web"}, "spec": {"serviceName": "s", **_WORKLOAD}},
        ),
        "replication controller": (
            "v1/replicationcontrollers",
            {"metadata": {"name": "web"}, "spec": {"template": template()}},
        ),
    }
)
def scale_of(session: Session, what: tuple[str, Object]) -> None:
    path, body = what
    session.prepare(path, body)
    session.patch(f"{path}/web/scale", {"spec": {"replicas": 3}})


@case
def kind_without_a_scale(session: Session) -> None:
    session.prepare("v1/configmaps", config_map())
    session.get("v1/configmaps/settings/scale")
    session.get("apps/v1/daemonsets/web/scale")


def _scaled_widgets(session: Session) -> str:
    schema = properties(
        spec=properties(size=INTEGER | {"maximum": 10}), status=properties(size=INTEGER, selector=STRING)
    )
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    path = define(session, schema, subresources={"status": {}, "scale": scale})
    session.prepare(path, widget(session, spec={"size": 2}))
    return path


@case
def scale_of_a_custom_kind(session: Session) -> None:
    path = _scaled_widgets(session)
    session.get(f"{path}/one/scale")
    session.patch(f"{path}/one/status", {"status": {"size": 1, "selector": "a=b"}})
    session.patch(f"{path}/one/scale", {"spec": {"replicas": 5}})
    session.patch(f"{path}/one/scale", {"spec": {"replicas": 50}})
    session.patch(f"{path}/one/scale", {"spec": {"replicas": -1}})
    session.patch(f"{path}/one/scale", {"spec": {"replicas": 0}})
    session.get(f"{path}/one")


@case
def scale_of_a_custom_kind_without_a_number(session: Session) -> None:
    path = _scaled_widgets(session)
    session.prepare(path, widget(session, "empty"))
    session.get(f"{path}/empty/scale")
    session.patch(f"{path}/empty/scale", {"spec": {"replicas": 3}})


def _eviction(name: str = "web", **options: Any) -> Object:
    body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return body | ({"deleteOptions": options} if options else {})


def _running(session: Session, name: str = "web", phase: str = "Running", ready: str = "True") -> None:
    body = pod(name, {"app": "web"}, nodeName="machine")
    session.prepare("v1/pods", body)
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    session.send_unrecorded("PATCH", f"v1/pods/{name}/status", {"status": status}, {"Content-Type": MERGE})


def _allowing(session: Session, allowed: int, **spec: Any) -> None:
    """Create a budget, and write how many pods may go in the place of its controller."""
    made = session.prepare("policy/v1/poddisruptionbudgets", budget(**spec))
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 2,
        "desiredHealthy": 2 - allowed,
        "expectedPods": 2,
        "observedGeneration": made["metadata"]["generation"],
    }
    path = "policy/v1/poddisruptionbudgets/web/status"
    assert session.send_unrecorded("PATCH", path, {"status": status}, {"Content-Type": MERGE}).status == 200


@case
def eviction_without_a_budget(session: Session) -> None:
    _running(session)
    session.create("v1/pods/web/eviction", _eviction())
    session.get("v1/pods/web")


@case
def eviction_within_the_budget(session: Session) -> None:
    _running(session)
    _allowing(session, 1)
    session.create("v1/pods/web/eviction", _eviction())
    session.get("policy/v1/poddisruptionbudgets/web")


@case
def eviction_against_the_budget(session: Session) -> None:
    _running(session)
    _allowing(session, 0)
    session.create("v1/pods/web/eviction", _eviction())


@case
def eviction_before_the_budget_is_computed(session: Session) -> None:
    _running(session)
    session.prepare("policy/v1/poddisruptionbudgets", budget())
    session.create("v1/pods/web/eviction", _eviction())


@case
def eviction_under_two_budgets(session: Session) -> None:
    _running(session)
    for name in ("one", "two"):
        session.prepare("policy/v1/poddisruptionbudgets", budget(name))
    session.create("v1/pods/web/eviction", _eviction())


@case
def eviction_of_an_unready_pod(session: Session) -> None:
    _running(session, ready="False")
    _allowing(session, 0)
    session.create("v1/pods/web/eviction", _eviction())


@case
def eviction_of_an_unready_pod_with_always_allow(session: Session) -> None:
    _running(session, ready="False")
    _allowing(session, 0, unhealthyPodEvictionPolicy="AlwaysAllow")
    session.create("v1/pods/web/eviction", _eviction())


@case
def eviction_of_a_finished_pod(session: Session) -> None:
    _running(session, phase="Succeeded")
    _allowing(session, 0)
    session.create("v1/pods/web/eviction", _eviction())
    session.get("v1/pods/web")


@case
def eviction_of_a_pending_pod(session: Session) -> None:
    session.prepare("v1/pods", pod(labels={"app": "web"}))
    _allowing(session, 0)
    session.create("v1/pods/web/eviction", _eviction())


@case
def eviction_of_a_missing_pod(session: Session) -> None:
    session.create("v1/pods/web/eviction", _eviction())


@case
def eviction_in_a_dry_run(session: Session) -> None:
    _running(session)
    _allowing(session, 1)
    session.create("v1/pods/web/eviction", _eviction(), dryRun="All")
    session.get("policy/v1/poddisruptionbudgets/web")


@each(
    {
        "another name": _eviction("other"),
        "another kind": _eviction() | {"kind": "Pod"},
        "old version": _eviction() | {"apiVersion": "policy/v1beta1"},
        "grace": _eviction(gracePeriodSeconds=3),
        "another uid": _eviction(preconditions={"uid": "00000000-0000-0000-0000-000000000001"}),
    }
)
def eviction_with(session: Session, body: Object) -> None:
    _running(session)
    session.create("v1/pods/web/eviction", body)


def _binding(**members: Any) -> Object:
    return {"metadata": {"name": "web"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "machine"}, **members}


@case
def binding_schedules_a_pod(session: Session) -> None:
    session.prepare("v1/pods", pod())
    session.create("v1/pods/web/binding", _binding())
    session.get("v1/pods/web")


@case
def binding_of_a_bound_pod(session: Session) -> None:
    session.prepare("v1/pods", pod())
    session.create("v1/pods/web/binding", _binding())
    session.create("v1/pods/web/binding", _binding())


@each(
    {
        "no target": {"metadata": {"name": "web"}},
        "target of another kind": _binding(target={"kind": "Pod", "name": "machine"}),
        "target without a name": _binding(target={"kind": "Node"}),
        "another name": _binding(metadata={"name": "other"}),
    }
)
def binding_with(session: Session, body: Object) -> None:
    session.prepare("v1/pods", pod())
    session.create("v1/pods/web/binding", body)


@case
def binding_of_a_gated_pod(session: Session) -> None:
    session.prepare("v1/pods", pod(schedulingGates=[{"name": "example.com/wait"}]))
    session.create("v1/pods/web/binding", _binding())


@case
def binding_of_a_terminating_pod(session: Session) -> None:
    body = pod()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    session.prepare("v1/pods", body)
    session.send_unrecorded("DELETE", "v1/pods/web")
    session.create("v1/pods/web/binding", _binding())


@case
def binding_of_a_missing_pod(session: Session) -> None:
    session.create("v1/pods/web/binding", _binding())


@case
def binding_copies_its_metadata(session: Session) -> None:
    session.prepare("v1/pods", pod())
    meta = {"name": "web", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    session.create("v1/pods/web/binding", _binding(metadata=meta))
    session.get("v1/pods/web")


@case
def binding_by_the_old_path(session: Session) -> None:
    session.prepare("v1/pods", pod())
    session.create("v1/bindings", _binding())


@case
def finalize_of_a_namespace(session: Session) -> None:
    name = session.unique("n")
    made = session.prepare("/api/v1/namespaces", {"metadata": {"name": name}})
    session.update(f"/api/v1/namespaces/{name}/finalize", made | {"spec": {"finalizers": []}})


@case
def missing_subresource(session: Session) -> None:
    session.prepare("v1/pods", pod())
    session.get("v1/pods/web/colour")
    session.create("v1/pods/web/colour", {})


@case
def method_not_allowed_for_a_subresource(session: Session) -> None:
    session.prepare("v1/pods", pod())
    session.get("v1/pods/web/eviction")
    session.get("v1/pods/web/binding")
    session.delete("v1/pods/web/status")
    name = session.unique("n")
    session.prepare("/api/v1/nodes", node(name))
    session.create(f"/api/v1/nodes/{name}/status", {})
