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


def _deployment(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment(replicas=2))


@case
def scale_is_read(play: Session) -> None:
    _deployment(play)
    play.get(_SCALE)
    play.get("apps/v1/deployments/nobody/scale")


@each({"merge": MERGE, "strategic": STRATEGIC})
def scale_is_patched(play: Session, kind: str) -> None:
    _deployment(play)
    play.patch(_SCALE, {"spec": {"replicas": 5}}, kind)
    play.get("apps/v1/deployments/web")


@case
def scale_is_patched_with_a_json_patch(play: Session) -> None:
    _deployment(play)
    play.patch(_SCALE, [{"op": "replace", "path": "/spec/replicas", "value": 4}], JSON_PATCH)


@case
def scale_is_replaced(play: Session) -> None:
    _deployment(play)
    scale = play.get(_SCALE)
    play.update(_SCALE, scale | {"spec": {"replicas": 7}})
    play.update(_SCALE, scale | {"spec": {"replicas": 8}})


@each(
    {
        "below zero": {"spec": {"replicas": -1}},
        "in words": {"spec": {"replicas": "many"}},
        "of another name": {"metadata": {"name": "other"}, "spec": {"replicas": 1}},
        "of an old version": {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}},
        "of nothing": {},
        "of an unknown field": {"spec": {"colour": "red"}},
    }
)
def scale_patch(play: Session, body: Object) -> None:
    _deployment(play)
    play.patch(_SCALE, body)


@case
def scale_replaced_with_too_little(play: Session) -> None:
    _deployment(play)
    play.update(_SCALE, {"metadata": {"name": "web"}})
    play.update(_SCALE, {"metadata": {"name": "web"}, "spec": {"replicas": -3}})
    play.update(_SCALE, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}})


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
def scale_of(play: Session, what: tuple[str, Object]) -> None:
    path, body = what
    play.prepare(path, body)
    play.patch(f"{path}/web/scale", {"spec": {"replicas": 3}})


@case
def what_does_not_scale(play: Session) -> None:
    play.prepare("v1/configmaps", config_map())
    play.get("v1/configmaps/settings/scale")
    play.get("apps/v1/daemonsets/web/scale")


def _scaled_widgets(play: Session) -> str:
    schema = properties(
        spec=properties(size=INTEGER | {"maximum": 10}), status=properties(size=INTEGER, selector=STRING)
    )
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    path = define(play, schema, subresources={"status": {}, "scale": scale})
    play.prepare(path, widget(play, spec={"size": 2}))
    return path


@case
def scale_of_a_custom_kind(play: Session) -> None:
    path = _scaled_widgets(play)
    play.get(f"{path}/one/scale")
    play.patch(f"{path}/one/status", {"status": {"size": 1, "selector": "a=b"}})
    play.patch(f"{path}/one/scale", {"spec": {"replicas": 5}})
    play.patch(f"{path}/one/scale", {"spec": {"replicas": 50}})
    play.patch(f"{path}/one/scale", {"spec": {"replicas": -1}})
    play.patch(f"{path}/one/scale", {"spec": {"replicas": 0}})
    play.get(f"{path}/one")


@case
def scale_of_a_custom_kind_without_a_number(play: Session) -> None:
    path = _scaled_widgets(play)
    play.prepare(path, widget(play, "empty"))
    play.get(f"{path}/empty/scale")
    play.patch(f"{path}/empty/scale", {"spec": {"replicas": 3}})


def _eviction(name: str = "web", **options: Any) -> Object:
    body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return body | ({"deleteOptions": options} if options else {})


def _running(play: Session, name: str = "web", phase: str = "Running", ready: str = "True") -> None:
    body = pod(name, {"app": "web"}, nodeName="machine")
    play.prepare("v1/pods", body)
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    play.quietly("PATCH", f"v1/pods/{name}/status", {"status": status}, {"Content-Type": MERGE})


def _allowing(play: Session, allowed: int, **spec: Any) -> None:
    """Make a budget whose controller has said how many may go."""
    made = play.prepare("policy/v1/poddisruptionbudgets", budget(**spec))
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 2,
        "desiredHealthy": 2 - allowed,
        "expectedPods": 2,
        "observedGeneration": made["metadata"]["generation"],
    }
    path = "policy/v1/poddisruptionbudgets/web/status"
    assert play.quietly("PATCH", path, {"status": status}, {"Content-Type": MERGE}).status == 200


@case
def eviction_without_a_budget(play: Session) -> None:
    _running(play)
    play.create("v1/pods/web/eviction", _eviction())
    play.get("v1/pods/web")


@case
def eviction_within_the_budget(play: Session) -> None:
    _running(play)
    _allowing(play, 1)
    play.create("v1/pods/web/eviction", _eviction())
    play.get("policy/v1/poddisruptionbudgets/web")


@case
def eviction_beyond_the_budget(play: Session) -> None:
    _running(play)
    _allowing(play, 0)
    play.create("v1/pods/web/eviction", _eviction())


@case
def eviction_before_the_budget_is_computed(play: Session) -> None:
    _running(play)
    play.prepare("policy/v1/poddisruptionbudgets", budget())
    play.create("v1/pods/web/eviction", _eviction())


@case
def eviction_under_two_budgets(play: Session) -> None:
    _running(play)
    for name in ("one", "two"):
        play.prepare("policy/v1/poddisruptionbudgets", budget(name))
    play.create("v1/pods/web/eviction", _eviction())


@case
def eviction_of_a_pod_that_is_not_ready(play: Session) -> None:
    _running(play, ready="False")
    _allowing(play, 0)
    play.create("v1/pods/web/eviction", _eviction())


@case
def eviction_of_a_pod_that_is_not_ready_where_that_is_always_allowed(play: Session) -> None:
    _running(play, ready="False")
    _allowing(play, 0, unhealthyPodEvictionPolicy="AlwaysAllow")
    play.create("v1/pods/web/eviction", _eviction())


@case
def eviction_of_a_pod_that_has_ended(play: Session) -> None:
    _running(play, phase="Succeeded")
    _allowing(play, 0)
    play.create("v1/pods/web/eviction", _eviction())
    play.get("v1/pods/web")


@case
def eviction_of_a_pod_that_waits(play: Session) -> None:
    play.prepare("v1/pods", pod(labels={"app": "web"}))
    _allowing(play, 0)
    play.create("v1/pods/web/eviction", _eviction())


@case
def eviction_of_nobody(play: Session) -> None:
    play.create("v1/pods/web/eviction", _eviction())


@case
def eviction_for_trial(play: Session) -> None:
    _running(play)
    _allowing(play, 1)
    play.create("v1/pods/web/eviction", _eviction(), dryRun="All")
    play.get("policy/v1/poddisruptionbudgets/web")


@each(
    {
        "another name": _eviction("other"),
        "another kind": _eviction() | {"kind": "Pod"},
        "old version": _eviction() | {"apiVersion": "policy/v1beta1"},
        "grace": _eviction(gracePeriodSeconds=3),
        "uid that is another's": _eviction(preconditions={"uid": "00000000-0000-0000-0000-000000000001"}),
    }
)
def eviction_with(play: Session, body: Object) -> None:
    _running(play)
    play.create("v1/pods/web/eviction", body)


def _binding(**members: Any) -> Object:
    return {"metadata": {"name": "web"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "machine"}, **members}


@case
def binding_places_a_pod(play: Session) -> None:
    play.prepare("v1/pods", pod())
    play.create("v1/pods/web/binding", _binding())
    play.get("v1/pods/web")


@case
def binding_happens_once(play: Session) -> None:
    play.prepare("v1/pods", pod())
    play.create("v1/pods/web/binding", _binding())
    play.create("v1/pods/web/binding", _binding())


@each(
    {
        "no target": {"metadata": {"name": "web"}},
        "target of another kind": _binding(target={"kind": "Pod", "name": "machine"}),
        "target without a name": _binding(target={"kind": "Node"}),
        "another name": _binding(metadata={"name": "other"}),
    }
)
def binding_with(play: Session, body: Object) -> None:
    play.prepare("v1/pods", pod())
    play.create("v1/pods/web/binding", body)


@case
def binding_of_a_gated_pod(play: Session) -> None:
    play.prepare("v1/pods", pod(schedulingGates=[{"name": "example.com/wait"}]))
    play.create("v1/pods/web/binding", _binding())


@case
def binding_of_a_pod_that_goes(play: Session) -> None:
    body = pod()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    play.prepare("v1/pods", body)
    play.quietly("DELETE", "v1/pods/web")
    play.create("v1/pods/web/binding", _binding())


@case
def binding_of_nobody(play: Session) -> None:
    play.create("v1/pods/web/binding", _binding())


@case
def binding_brings_its_metadata(play: Session) -> None:
    play.prepare("v1/pods", pod())
    meta = {"name": "web", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    play.create("v1/pods/web/binding", _binding(metadata=meta))
    play.get("v1/pods/web")


@case
def binding_under_its_old_path(play: Session) -> None:
    play.prepare("v1/pods", pod())
    play.create("v1/bindings", _binding())


@case
def the_end_of_a_namespace_is_finalized(play: Session) -> None:
    name = play.unique("n")
    made = play.prepare("/api/v1/namespaces", {"metadata": {"name": name}})
    play.update(f"/api/v1/namespaces/{name}/finalize", made | {"spec": {"finalizers": []}})


@case
def a_subresource_that_does_not_exist(play: Session) -> None:
    play.prepare("v1/pods", pod())
    play.get("v1/pods/web/colour")
    play.create("v1/pods/web/colour", {})


@case
def a_subresource_that_does_not_do_this(play: Session) -> None:
    play.prepare("v1/pods", pod())
    play.get("v1/pods/web/eviction")
    play.get("v1/pods/web/binding")
    play.delete("v1/pods/web/status")
    name = play.unique("n")
    play.prepare("/api/v1/nodes", node(name))
    play.create(f"/api/v1/nodes/{name}/status", {})
