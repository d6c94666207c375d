"""Scale, binding and eviction, through the cluster port."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import (
    BUDGETS,
    DEFINITIONS,
    DEPLOYMENTS,
    DRY,
    NAMESPACES,
    PODS,
    WIDGETS,
    WRITE,
    definition,
    deployment,
    key,
    make_server,
    pod,
    run_story,
    widget,
)
from tests.apiserver.patches.samples import owners

from springtide.cluster.errors import ApiError, BadRequest, Conflict, Invalid, NotFound, TooManyRequests
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch, Precondition, Transport, Write

_REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController")


def test_scale_shows_and_sets_replicas() -> None:
    async def story(cluster: Transport) -> None:
        made = await cluster.create(DEPLOYMENTS, deployment(replicas=2), WRITE, namespace="default")
        scale = await cluster.get(DEPLOYMENTS, key("web"), subresource="scale")
        assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
        assert scale["spec"] == {"replicas": 2}
        assert scale["status"] == {"replicas": 0, "selector": "app=web"}
        assert scale["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        patch = Patch.merge({"spec": {"replicas": 5}})
        after = await cluster.patch(DEPLOYMENTS, key("web"), patch, WRITE, subresource="scale")
        stored = await cluster.get(DEPLOYMENTS, key("web"))
        assert (after["spec"], stored["spec"]["replicas"]) == ({"replicas": 5}, 5)
        assert after["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
        assert [entry.get("subresource") for entry in stored["metadata"]["managedFields"]] == [None, "scale"]

    run_story(story)


def _scale(replicas: int, **metadata: str) -> Object:
    body = {"name": "web", **metadata}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": body, "spec": {"replicas": replicas}}


def test_a_scale_can_be_applied() -> None:
    async def story(cluster: Transport) -> None:
        await cluster.create(DEPLOYMENTS, deployment(replicas=2), Write("author"), namespace="default")

        async def applied(patch: Patch, manager: str) -> Object:
            return await cluster.patch(DEPLOYMENTS, key("web"), patch, Write(manager), subresource="scale")

        with pytest.raises(Conflict, match=r'conflict with "author" using .*: \.spec\.replicas'):
            await applied(Patch.apply(_scale(3)), "scaler")
        after = await applied(Patch.apply(_scale(3), force=True), "scaler")
        assert (after["kind"], after["spec"]) == ("Scale", {"replicas": 3})
        stored = await cluster.get(DEPLOYMENTS, key("web"))
        assert (stored["spec"]["replicas"], stored["metadata"]["generation"]) == (3, 2)
        (entry,) = [each for each in stored["metadata"]["managedFields"] if each["manager"] == "scaler"]
        assert (entry["operation"], entry["apiVersion"], entry["subresource"]) == ("Apply", "apps/v1", "scale")
        assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
        with pytest.raises(Conflict, match='conflict with "scaler" with subresource "scale"'):
            await applied(Patch.apply(_scale(5)), "another")

    run_story(story)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param(_scale(-3), Invalid, id="negative"),
        pytest.param(_scale(3) | {"kind": "Deployment"}, BadRequest, id="another kind"),
        pytest.param([], BadRequest, id="not an object"),
        pytest.param(_scale(3, uid="uid"), Conflict, id="the scale of another"),
        pytest.param(_scale(3, resourceVersion="1"), Conflict, id="an old scale"),
        pytest.param(_scale(3, name="other"), BadRequest, id="another name"),
    ],
)
def test_refuses_to_apply_a_scale(body: Any, error: type[ApiError]) -> None:
    async def story(cluster: Transport) -> None:
        made = await cluster.create(DEPLOYMENTS, deployment(replicas=2), WRITE, namespace="default")
        with pytest.raises(error):
            await cluster.patch(DEPLOYMENTS, key("web"), Patch.apply(body, force=True), WRITE, subresource="scale")
        assert await cluster.get(DEPLOYMENTS, key("web")) == made
        with pytest.raises(NotFound):
            await cluster.patch(DEPLOYMENTS, key("none"), Patch.apply(body), WRITE, subresource="scale")

    run_story(story)


@pytest.mark.parametrize("subresource", ["binding", "eviction"])
def test_bindings_and_evictions_own_nothing(subresource: str) -> None:
    async def story(cluster: Transport) -> None:
        made = await cluster.create(PODS, pod(finalizers=["example.com/a"]), WRITE, namespace="default")
        body = {"target": {"name": "n"}} if subresource == "binding" else {}
        await cluster.create(PODS, body, Write("other"), namespace="default", name="p", subresource=subresource)
        after = await cluster.get(PODS, key("p"))
        assert after["status"] != made["status"]
        assert after["metadata"]["managedFields"] == made["metadata"]["managedFields"]

    run_story(story)


def test_a_scale_without_replicas_is_zero() -> None:
    async def story(cluster: Transport) -> None:
        await cluster.create(DEPLOYMENTS, deployment(replicas=2), WRITE, namespace="default")
        patch = Patch.merge({"spec": {"replicas": 0}})
        after = await cluster.patch(DEPLOYMENTS, key("web"), patch, WRITE, subresource="scale")
        assert after["spec"] == {}
        assert (await cluster.get(DEPLOYMENTS, key("web")))["spec"]["replicas"] == 0

    run_story(story)


def test_zero_replicas_are_not_owned() -> None:
    """Zero replicas are not written, so there is no field to own."""
    server = make_server()
    server.create(DEPLOYMENTS, deployment(replicas=2), WRITE, namespace="default")

    def owned(replicas: int) -> list[str]:
        patch = Patch.merge({"spec": {"replicas": replicas}})
        server.patch(DEPLOYMENTS, key("web"), patch, Write("scaler"), subresource="scale")
        known = owners(server.get(DEPLOYMENTS, key("web")))
        return [name for name, fields in known.items() if "f:replicas" in fields["f:spec"]]

    assert [owned(5), owned(0), owned(1)] == [["scaler Update scale"], [], ["scaler Update scale"]]


def test_a_plain_map_is_a_selector() -> None:
    spec = {"selector": {"b": "2", "a": "1"}, "template": pod(labels={"a": "1", "b": "2"})}
    body = {"metadata": {"name": "rc"}, "spec": spec}

    async def story(cluster: Transport) -> None:
        await cluster.create(_REPLICATION_CONTROLLERS, body, WRITE, namespace="default")
        scale = await cluster.get(_REPLICATION_CONTROLLERS, key("rc"), subresource="scale")
        assert scale["status"]["selector"] == "a=1,b=2"

    run_story(story)


@pytest.mark.parametrize(
    ("change", "precondition", "error"),
    [
        pytest.param({"spec": {"replicas": -1}}, Precondition(), Invalid, id="negative"),
        pytest.param({"spec": {"replicas": "2"}}, Precondition(), Invalid, id="not a number"),
        pytest.param({"metadata": {"resourceVersion": "1"}}, Precondition(), Conflict, id="an old scale"),
        pytest.param({"metadata": {"uid": "other"}}, Precondition(), Conflict, id="the scale of another"),
        pytest.param({"spec": {"replicas": 3}}, Precondition(version="1"), Conflict, id="an old object"),
    ],
)
def test_refuses_to_scale(change: Object, precondition: Precondition, error: type[ApiError]) -> None:
    async def story(cluster: Transport) -> None:
        made = await cluster.create(DEPLOYMENTS, deployment(), WRITE, namespace="default")
        with pytest.raises(error) as caught:
            await cluster.patch(
                DEPLOYMENTS, key("web"), Patch.merge(change), WRITE, subresource="scale", precondition=precondition
            )
        assert type(caught.value) is error
        assert await cluster.get(DEPLOYMENTS, key("web")) == made

    run_story(story)


def test_a_custom_kind_scales_by_its_declared_paths() -> None:
    scalable = definition()
    version = scalable["spec"]["versions"][0]
    version["subresources"]["scale"] = {
        "specReplicasPath": ".spec.count",
        "statusReplicasPath": ".status.ready",
        "labelSelectorPath": ".status.selector",
    }
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"]["properties"]["count"] = {"type": "integer"}
    properties["status"]["properties"]["selector"] = {"type": "string"}

    async def story(cluster: Transport) -> None:
        await cluster.create(DEFINITIONS, scalable, WRITE)
        await cluster.create(WIDGETS, widget(), WRITE, namespace="default")
        with pytest.raises(NotFound, match=r'the spec replicas field "\.spec\.count" does not exist'):
            await cluster.get(WIDGETS, key("w"), subresource="scale")
        await cluster.patch(WIDGETS, key("w"), Patch.merge({"spec": {"count": 4}}), WRITE)
        status = Patch.merge({"status": {"ready": 3, "selector": "a=b"}})
        await cluster.patch(WIDGETS, key("w"), status, WRITE, subresource="status")
        scale = await cluster.get(WIDGETS, key("w"), subresource="scale")
        assert (scale["spec"], scale["status"]) == ({"replicas": 4}, {"replicas": 3, "selector": "a=b"})

        negative = Patch.merge({"spec": {"replicas": -1}})
        with pytest.raises(Invalid, match=r"^Widget.* \.spec\.count: Invalid value: -1: should be a non-negative"):
            await cluster.patch(WIDGETS, key("w"), negative, WRITE, subresource="scale")

        applied = _scale(3) | {"metadata": {"name": "w"}}
        with pytest.raises(BadRequest, match="request to convert CR to an invalid group/version: autoscaling/v1"):
            await cluster.patch(WIDGETS, key("w"), Patch.apply(applied), WRITE, subresource="scale")

    run_story(story)


# Bindings


async def _bind(cluster: Transport, **binding: Any) -> Object:
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}} | binding
    return await cluster.create(PODS, body, WRITE, namespace="default", name="p", subresource="binding")


def test_a_binding_places_a_pod() -> None:
    async def story(cluster: Transport) -> None:
        await cluster.create(PODS, pod(annotations={"a": "b"}), WRITE, namespace="default")
        answer = await _bind(cluster, metadata={"name": "p", "annotations": {"c": "d"}})
        assert answer["status"] == "Success"
        placed = await cluster.get(PODS, key("p"))
        assert placed["spec"]["nodeName"] == "n"
        assert placed["metadata"]["annotations"] == {"a": "b", "c": "d"}
        assert placed["metadata"]["generation"] == 1
        (condition,) = placed["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
        with pytest.raises(Conflict, match=r'on pods/binding "p": pod p is already assigned to node "n"'):
            await _bind(cluster)

    run_story(story)


_UNBINDABLE = [
    pytest.param(
        {"spec": {"schedulingGates": [{"name": "x"}]}}, {}, Conflict, "non-empty .spec.schedulingGates", id="gated"
    ),
    pytest.param({}, {"target": {}}, Invalid, "target.name: Required value", id="no target"),
    pytest.param(
        {},
        {"target": {"kind": "Pod", "name": "n"}},
        Invalid,
        'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        id="target is not a node",
    ),
    pytest.param({}, {"metadata": {"name": "q"}}, BadRequest, "name in URL does not match", id="another name"),
    pytest.param({}, {"metadata": {"uid": "other"}}, Conflict, "UID in precondition: other", id="another pod"),
    pytest.param({}, {"kind": "Pod"}, BadRequest, "expected a Binding", id="not a binding"),
]


@pytest.mark.parametrize(("state", "binding", "error", "text"), _UNBINDABLE)
def test_refuses_to_bind(state: dict[str, Any], binding: Object, error: type[ApiError], text: str) -> None:
    async def story(cluster: Transport) -> None:
        made = await cluster.create(PODS, pod(**state), WRITE, namespace="default")
        with pytest.raises(error, match=text):
            await _bind(cluster, **binding)
        assert await cluster.get(PODS, key("p")) == made

    run_story(story)


def test_a_terminating_pod_cannot_be_bound() -> None:
    async def story(cluster: Transport) -> None:
        await cluster.create(PODS, pod(finalizers=["example.com/a"]), WRITE, namespace="default")
        await cluster.delete(PODS, key("p"), WRITE)
        with pytest.raises(Conflict, match="pod p is being deleted, cannot be assigned to a host"):
            await _bind(cluster)

    run_story(story)


# Evictions


async def _running(cluster: Transport, *, ready: bool = True, phase: str = "Running") -> None:
    await cluster.create(PODS, pod(labels={"app": "web"}), WRITE, namespace="default")
    await _bind(cluster)
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = Patch.merge({"status": {"phase": phase, "conditions": conditions}})
    await cluster.patch(PODS, key("p"), status, WRITE, subresource="status")


async def _budget(
    cluster: Transport, name: str = "b", *, spec: Object | None = None, generation: int = 1, **status: Any
) -> None:
    body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **(spec or {})}}
    await cluster.create(BUDGETS, body, WRITE, namespace="default")
    written = Patch.merge({"status": {"observedGeneration": generation, **status}})
    await cluster.patch(BUDGETS, key(name), written, WRITE, subresource="status")


async def _evict(cluster: Transport, write: Any = WRITE, **body: Any) -> Object:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, **body}
    return await cluster.create(PODS, eviction, write, namespace="default", name="p", subresource="eviction")


def test_an_eviction_uses_the_budget() -> None:
    async def story(cluster: Transport) -> None:
        await _running(cluster)
        await _budget(cluster, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
        assert (await _evict(cluster))["status"] == "Success"
        evicted = await cluster.get(PODS, key("p"))
        assert evicted["metadata"]["deletionGracePeriodSeconds"] == 30
        (condition,) = [each for each in evicted["status"]["conditions"] if each["type"] == "DisruptionTarget"]
        assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")
        status = (await cluster.get(BUDGETS, key("b")))["status"]
        assert status["disruptionsAllowed"] == 0
        assert status["disruptedPods"] == {"p": "2027-01-15T08:00:00Z"}
        (allowed,) = status["conditions"]
        assert (allowed["type"], allowed["status"], allowed["reason"]) == (
            "DisruptionAllowed",
            "False",
            "InsufficientPods",
        )

    run_story(story)


_REFUSALS = [
    pytest.param(
        {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 2},
        "The disruption budget b needs 2 healthy pods and has 1 currently",
        id="too few healthy pods",
    ),
    pytest.param(
        {"disruptionsAllowed": 5, "generation": 0},
        "The disruption budget b is still being processed by the server.",
        id="not observed yet",
    ),
    pytest.param(
        {"disruptionsAllowed": 0, "currentHealthy": 3, "desiredHealthy": 2},
        "The disruption budget b does not allow evicting pods currently",
        id="without a reason",
    ),
    pytest.param(
        {
            "disruptionsAllowed": 0,
            "conditions": [
                {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}
            ],
        },
        "The disruption budget b does not allow evicting pods currently because it failed sync: no scale",
        id="failed sync",
    ),
]


@pytest.mark.parametrize(("status", "cause"), _REFUSALS)
def test_budgets_refuse_evictions(status: dict[str, Any], cause: str) -> None:
    async def story(cluster: Transport) -> None:
        await _running(cluster)
        await _budget(cluster, **status)
        before = await cluster.get(PODS, key("p")), await cluster.get(BUDGETS, key("b"))
        with pytest.raises(TooManyRequests) as caught:
            await _evict(cluster)
        assert caught.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
        assert [(each.reason, each.message) for each in caught.value.causes] == [("DisruptionBudget", cause)]
        assert (await cluster.get(PODS, key("p")), await cluster.get(BUDGETS, key("b"))) == before

    run_story(story)


_FREE = [
    pytest.param({"phase": "Pending"}, {}, id="pending"),
    pytest.param({"phase": "Succeeded"}, {}, id="finished"),
    pytest.param({"phase": "Failed"}, {}, id="failed"),
    pytest.param({"ready": False}, {"currentHealthy": 2, "desiredHealthy": 2}, id="unhealthy, budget healthy"),
    pytest.param({"ready": False}, {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}, id="unhealthy, allowed"),
    pytest.param({}, {"spec": {"selector": {"matchLabels": {"app": "other"}}}}, id="of another budget"),
]


@pytest.mark.parametrize(("state", "budget"), _FREE)
def test_some_pods_are_evicted_without_allowance(state: dict[str, Any], budget: dict[str, Any]) -> None:
    async def story(cluster: Transport) -> None:
        await _running(cluster, **state)
        await _budget(cluster, disruptionsAllowed=0, **budget)
        before = await cluster.get(BUDGETS, key("b"))
        await _evict(cluster)
        assert await cluster.get(BUDGETS, key("b")) == before
        try:
            left = await cluster.get(PODS, key("p"))
        except NotFound:
            return
        assert "deletionTimestamp" in left["metadata"]

    run_story(story)


@pytest.mark.parametrize(
    "budget",
    [
        pytest.param({"currentHealthy": 0, "desiredHealthy": 0}, id="no pods desired"),
        pytest.param({"currentHealthy": 1, "desiredHealthy": 2}, id="budget not healthy"),
    ],
)
def test_unhealthy_pods_need_allowance_where_the_budget_is_not_met(budget: dict[str, Any]) -> None:
    async def story(cluster: Transport) -> None:
        await _running(cluster, ready=False)
        await _budget(cluster, disruptionsAllowed=0, **budget)
        with pytest.raises(TooManyRequests):
            await _evict(cluster)

    run_story(story)


def test_several_budgets_are_an_error() -> None:
    async def story(cluster: Transport) -> None:
        await _running(cluster)
        for name in ("b", "c"):
            await _budget(cluster, name, disruptionsAllowed=1)
        with pytest.raises(BadRequest, match="This pod has more than one PodDisruptionBudget"):
            await _evict(cluster)

    run_story(story)


@pytest.mark.parametrize(
    ("write", "options"),
    [
        pytest.param(DRY, {}, id="of the request"),
        pytest.param(WRITE, {"deleteOptions": {"dryRun": ["All"]}}, id="of the options"),
    ],
)
def test_a_dry_run_eviction_has_no_effect(write: Any, options: dict[str, Any]) -> None:
    async def story(cluster: Transport) -> None:
        await _running(cluster)
        await _budget(cluster, disruptionsAllowed=1)
        before = await cluster.get(PODS, key("p")), await cluster.get(BUDGETS, key("b"))
        await _evict(cluster, write, **options)
        assert (await cluster.get(PODS, key("p")), await cluster.get(BUDGETS, key("b"))) == before

    run_story(story)


def test_an_eviction_honours_delete_options() -> None:
    async def story(cluster: Transport) -> None:
        await _running(cluster)
        with pytest.raises(Conflict, match=r"the UID in the precondition \(other\) does not match the UID in record"):
            await _evict(cluster, deleteOptions={"preconditions": {"uid": "other"}})
        with pytest.raises(BadRequest, match="name in URL does not match name in Eviction object"):
            await _evict(cluster, metadata={"name": "q"})
        with pytest.raises(BadRequest, match="propagationPolicy is 'Sideways', expected one of Background"):
            await _evict(cluster, deleteOptions={"propagationPolicy": "Sideways"})
        await _evict(cluster, deleteOptions={"gracePeriodSeconds": None})
        assert (await cluster.get(PODS, key("p")))["metadata"]["deletionGracePeriodSeconds"] == 30
        await _evict(cluster, deleteOptions={"gracePeriodSeconds": 7})
        assert (await cluster.get(PODS, key("p")))["metadata"]["deletionGracePeriodSeconds"] == 7

    run_story(story)


def test_missing_pods_cannot_be_evicted() -> None:
    async def story(cluster: Transport) -> None:
        with pytest.raises(NotFound, match='pods "p" not found'):
            await _evict(cluster)

    run_story(story)


def test_finalize_sets_the_finalizers_of_a_namespace() -> None:
    server = make_server()
    made = server.create(NAMESPACES, {"metadata": {"name": "n"}}, WRITE)

    freed = server.update(NAMESPACES, Key("", "n"), made | {"spec": {}}, WRITE, subresource="finalize")

    assert (made["spec"], freed["spec"]) == ({"finalizers": ["kubernetes"]}, {})


def test_updates_keep_fields_set_by_admission() -> None:
    """An update of a pod may leave out its priority and the tolerations that admission added."""
    server = make_server()
    made = server.create(PODS, pod(), WRITE, namespace="default")

    again = server.update(PODS, key("p"), pod(labels={"new": "1"}), WRITE)

    assert again["spec"] == made["spec"]
    assert again["spec"]["priority"] == 0


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"podIP": "10.0.0.1"}, ("10.0.0.1", ["10.0.0.1"]), id="one"),
        pytest.param({"podIPs": [{"ip": "10.0.0.2"}, {"ip": "fd::2"}]}, ("10.0.0.2", ["10.0.0.2", "fd::2"]), id="all"),
        pytest.param(
            {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}]},
            ("10.0.0.1", ["10.0.0.1"]),
            id="conflicting addresses",
        ),
    ],
)
def test_pod_ips_are_kept_consistent(status: Object, expected: tuple[str, list[str]]) -> None:
    async def story(cluster: Transport) -> None:
        await cluster.create(PODS, pod(), WRITE, namespace="default")
        patch = Patch.merge({"status": status})
        after = (await cluster.patch(PODS, key("p"), patch, WRITE, subresource="status"))["status"]
        assert (after["podIP"], [each["ip"] for each in after["podIPs"]]) == expected

    run_story(story)
