"""The kinds that a cluster serves, and the status fields that their schemas declare."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.manager_process import Process, stamp_controller
from tests.cluster.memory_cluster import MemoryCluster
from tests.cluster.test_manager import play

from springtide.apis.crds import Flavour, all_crds
from springtide.cluster.context import ControllerContext
from springtide.cluster.kinds import DEFINITIONS, KindRegistry, declared_part
from springtide.cluster.resources import Resource
from springtide.cluster.store import Store
from springtide.simulator.virtual_time import VirtualClock

PRODUCERS = Resource("autoscaling.karpenter.sh", "v1alpha1", "metricsproducers", "MetricsProducer")
FOREIGN = {
    "metadata": {"name": "rollouts.argoproj.io", "resourceVersion": "1"},
    "spec": {
        "group": "argoproj.io",
        "scope": "Namespaced",
        "names": {"plural": "rollouts", "kind": "Rollout"},
        "versions": [
            {"name": "v1alpha1", "served": True, "subresources": {"scale": {}}, "schema": {"openAPIV3Schema": {}}},
            {"name": "v1", "served": False},
        ],
    },
}


def kinds(flavour: Flavour) -> KindRegistry:
    store: Store[Any] = Store(DEFINITIONS.record, DEFINITIONS.indexes)
    crds = [{**crd, "metadata": {**crd["metadata"], "resourceVersion": "1"}} for crd in all_crds(flavour)]
    store.replace([*crds, FOREIGN], 1)
    return KindRegistry(store)


def test_the_registry_is_shared_state() -> None:
    """Controllers share one without watching CustomResourceDefinitions, and are told of changes."""
    changed: list[str] = []

    class Reading(stamp_controller(states=(KindRegistry,))):  # type: ignore[misc]
        def __init__(self, context: ControllerContext) -> None:
            super().__init__(context)
            context.subscribe(KindRegistry, lambda delta: changed.append(delta.key.name))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, Reading)
        await clock.sleep(1)
        registry = process.manager.state(KindRegistry)
        assert registry.find("springtide.dev/v1alpha1", "Calendar") is None
        world.install_calendars()
        await clock.sleep(1)
        found = registry.find("springtide.dev/v1alpha1", "Calendar")
        assert found is not None
        assert found.resource.plural == "calendars"
        assert set(changed) == {"calendars.springtide.dev"}
        await process.manager.stop()

    play(story)


@pytest.mark.parametrize(
    ("api_version", "kind", "plural", "scalable"),
    [
        ("apps/v1", "Deployment", "deployments", True),
        ("apps/v1", "DaemonSet", "daemonsets", False),
        ("v1", "ReplicationController", "replicationcontrollers", True),
        ("autoscaling.karpenter.sh/v1alpha1", "ScalableNodeGroup", "scalablenodegroups", True),
        ("autoscaling.karmada.io/v1alpha1", "FederatedHPA", "federatedhpas", False),
        ("argoproj.io/v1alpha1", "Rollout", "rollouts", True),
    ],
)
def test_served_kinds_are_found(api_version: str, kind: str, plural: str, scalable: bool) -> None:
    found = kinds(Flavour.EXTENDED).find(api_version, kind)
    assert found is not None
    assert (found.resource.plural, found.resource.api_version, found.scalable) == (plural, api_version, scalable)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("app/v1", "Deployment"), ("apps/v1beta1", "Deployment"), ("argoproj.io/v1", "Rollout"), ("example.org/v1", "X")],
    ids=["no such group", "no such version", "not served", "unknown"],
)
def test_unknown_kinds_are_not_found(api_version: str, kind: str) -> None:
    assert kinds(Flavour.EXTENDED).find(api_version, kind) is None


def test_undeclared_status_fields_are_dropped() -> None:
    """CRDs of upstream do not declare our extensions, and server-side apply would refuse the whole status for one."""
    status = {"scheduledCapacity": {"currentValue": 3, "upcoming": [{"at": "2026-01-01T00:00:00Z", "value": 1}]}}
    assert kinds(Flavour.EXTENDED).declared(PRODUCERS, status) == status
    assert kinds(Flavour.STOCK).declared(PRODUCERS, status) == {"scheduledCapacity": {"currentValue": 3}}


@pytest.mark.parametrize(
    ("schema", "value", "kept"),
    [
        ({"properties": {"a": {}}}, {"a": 1, "b": 2}, {"a": 1}),
        ({"properties": {}}, {"a": 1}, {}),
        ({}, {"a": 1}, {"a": 1}),
        ({"x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {}}}, {"b": 2}, {"b": 2}),
        ({"additionalProperties": {"properties": {"x": {}}}}, {"k": {"x": 1, "y": 2}}, {"k": {"x": 1}}),
        ({"items": {"properties": {"x": {}}}}, ({"x": 1, "y": 2},), [{"x": 1}]),
        ({"properties": {"a": {}}}, {"a": None}, {"a": None}),
    ],
    ids=["properties", "none declared", "no schema", "unknown fields kept", "maps", "lists", "absent stays absent"],
)
def test_declared_parts(schema: dict[str, Any], value: Any, kept: Any) -> None:
    assert declared_part(schema, value) == kept
