"""Reserved capacity through the controller: counted nodes, requests of pods, and the rate of status writes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from tests.controllers.metrics_producer.harness import ProducerHarness, conditions_of, producer, status_of, writes_of

from springtide.cluster.resources import NODES, PODS, Key, Object
from springtide.cluster.transport import Patch, Write
from springtide.simulator.scenario import create, delete, edit
from springtide.simulator.scenario.actions import Action
from springtide.simulator.world import World

START = "2026-06-01T08:00:00Z"
GROUP = {"group": "a"}
RESERVED = producer(reservedCapacity={"nodeSelector": GROUP})
GI = 1 << 30


def node(
    name: str, *, cpu: str = "4", memory: str = "8Gi", pods: str = "110", labels: Object = GROUP, **spec: Any
) -> Object:
    """Build a node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": pods},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, node_name: str, *, init: Any = None, overhead: Any = None, **requests: str) -> Object:
    """Build a pod that is bound to a node."""
    main = {"name": "main", "image": "i", "resources": {"requests": requests}}
    spec: Object = {"containers": [main], "terminationGracePeriodSeconds": 0}
    if node_name:
        spec["nodeName"] = node_name
    if init:
        spec["initContainers"] = init
    if overhead:
        spec["overhead"] = overhead
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def container(name: str, restart: str | None = None, **requests: str) -> Object:
    """Build an init container."""
    always = {"restartPolicy": restart} if restart else {}
    return {"name": name, "image": "i", "resources": {"requests": requests}, **always}


def finish(name: str, phase: str) -> Action:
    """Return an action that sets the phase of a pod."""

    async def act(world: World) -> None:
        patch = Patch.merge({"status": {"phase": phase}})
        world.server.patch(PODS, Key("default", name), patch, Write("kubelet"), subresource="status")

    return act


def unready(name: str) -> Action:
    """Return an action that makes a node not ready."""

    async def act(world: World) -> None:
        patch = Patch.merge({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
        world.server.patch(NODES, Key("", name), patch, Write("kubelet"), subresource="status")

    return act


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((), {"cpu": "NaN%, 0/0", "memory": "NaN%, 0/0", "pods": "NaN%, 0/0"}, id="no nodes"),
        pytest.param(
            (node("n1"),),
            {"cpu": "0.00%, 0/4", "memory": "0.00%, 0/8Gi", "pods": "0.00%, 0/110"},
            id="empty node",
        ),
        pytest.param(
            (node("n1"), node("n2"), pod("p", "n1", cpu="500m", memory="1Gi"), pod("q", "n2", cpu="1", memory="512Mi")),
            {"cpu": "18.75%, 1500m/8", "memory": "9.38%, 1536Mi/16Gi", "pods": "0.91%, 2/220"},
            id="two nodes and two pods",
        ),
        pytest.param(
            (node("n1"), node("n2", labels={"group": "b"}), pod("p", "n2", cpu="1"), pod("q", "", cpu="1")),
            {"cpu": "0.00%, 0/4", "memory": "0.00%, 0/8Gi", "pods": "0.00%, 0/110"},
            id="pods of other nodes and unbound pods do not count",
        ),
        pytest.param(
            (node("n1"), node("n2", unschedulable=True), pod("p", "n2", cpu="1")),
            {"cpu": "0.00%, 0/4", "memory": "0.00%, 0/8Gi", "pods": "0.00%, 0/110"},
            id="cordoned node does not count",
        ),
        pytest.param(
            (node("n1"), pod("p", "n1", init=[container("i", cpu="2"), container("j", cpu="1")], cpu="500m")),
            {"cpu": "50.00%, 2/4", "memory": "0.00%, 0/8Gi", "pods": "0.91%, 1/110"},
            id="init containers run one at a time",
        ),
        pytest.param(
            (node("n1"), pod("p", "n1", init=[container("s", "Always", cpu="1")], cpu="500m")),
            {"cpu": "37.50%, 1500m/4", "memory": "0.00%, 0/8Gi", "pods": "0.91%, 1/110"},
            id="sidecars run beside containers",
        ),
        pytest.param(
            (node("n1", memory="1000001"), pod("p", "n1", memory="1")),
            {"cpu": "0.00%, 0/4", "memory": "0.00%, 1/1000001", "pods": "0.91%, 1/110"},
            id="memory in decimal units",
        ),
    ],
)
def test_status_has_reserved_and_total_resources(objects: tuple[Object, ...], expected: Object) -> None:
    """The status has a line for each resource, and the producer is ready."""
    outcome = ProducerHarness().scenario(START, *objects, RESERVED).run("1m")

    assert status_of(outcome)["reservedCapacity"] == expected
    assert conditions_of(outcome)["Ready"] == ("True", "Ready")


def test_metrics_are_exact() -> None:
    """Reserved amount, capacity and utilization, in cores, bytes and pods."""
    harness = ProducerHarness()

    async def observe(world: World) -> None:
        series = harness.series()
        assert series is not None
        harness.recorded.append(
            {name.removeprefix("karpenter_reserved_capacity_"): value for name, value in series.values.items()}
        )

    harness.scenario(START, node("n1", cpu="3"), pod("p", "n1", cpu="1", memory="2Gi"), RESERVED).at(
        "30s", observe
    ).run("1m")

    assert harness.recorded == [
        {
            "cpu_reserved": 1,
            "cpu_capacity": 3,
            "cpu_utilization": Fraction(1, 3),
            "memory_reserved": 2 * GI,
            "memory_capacity": 8 * GI,
            "memory_utilization": Fraction(1, 4),
            "pods_reserved": 1,
            "pods_capacity": 110,
            "pods_utilization": Fraction(1, 110),
        }
    ]


def test_utilization_is_nan_without_nodes() -> None:
    """The amounts are 0."""
    harness = ProducerHarness()
    prefix = "karpenter_reserved_capacity_cpu_"

    harness.scenario(START, RESERVED).at(
        "30s", harness.record_value(metric=f"{prefix}utilization"), harness.record_value(metric=f"{prefix}capacity")
    ).run("1m")

    assert harness.recorded == [None, 0]


def test_status_follows_pods_and_nodes() -> None:
    """Pods are created, finish and are deleted; nodes are added, fail, change labels and are deleted."""
    harness = ProducerHarness()
    metric = "karpenter_reserved_capacity_cpu_"
    observe = (harness.record_value(metric=f"{metric}reserved"), harness.record_value(metric=f"{metric}capacity"))

    (
        harness.scenario(START, node("n1"), pod("p", "n1", cpu="1"), RESERVED)
        .at("10s", *observe, create(pod("q", "n1", cpu="2")))
        .at("20s", *observe, finish("p", "Succeeded"))
        .at("30s", *observe, create(node("n2"), pod("r", "n2", cpu="1")))
        .at("40s", *observe, unready("n2"))
        .at("50s", *observe, delete("Pod", "q"))
        .at("60s", *observe, edit("Node", "n1", {"metadata": {"labels": {"group": "b"}}}))
        .at("70s", *observe, edit("Node", "n1", {"metadata": {"labels": {"group": "a"}}}))
        .at("80s", *observe, delete("Node", "n1"))
        .at("90s", *observe)
        .run("2m")
    )

    steps = list(zip(harness.recorded[::2], harness.recorded[1::2], strict=True))
    assert steps == [(1, 4), (3, 4), (2, 4), (3, 8), (2, 4), (0, 4), (0, 0), (0, 4), (0, 0)]


def test_status_is_written_at_most_once_a_second() -> None:
    """The last write has the final sums."""
    harness = ProducerHarness()

    async def flood(world: World) -> None:
        for number in range(200):
            await world.clock.sleep(0.01)
            await create(pod(f"p-{number}", "n1", cpu="10m"))(world)

    outcome = harness.scenario(START, node("n1"), RESERVED).at("10s", flood).run("1m")

    assert status_of(outcome)["reservedCapacity"]["cpu"] == "50.00%, 2/4"
    assert len(writes_of(outcome)) <= 6


def test_node_heartbeats_cause_no_writes() -> None:
    """A heartbeat does not change the sums."""
    harness = ProducerHarness()

    outcome = (
        harness.scenario(START, node("n1"), RESERVED)
        .every("10s", edit("Node", "n1", {"metadata": {"annotations": {"seen": "again"}}}))
        .run("10m")
    )

    assert writes_of(outcome) == ["2026-06-01T08:00:00Z"]


def test_changed_selector_takes_effect_at_once() -> None:
    """Each of two producers has its own group."""
    harness = ProducerHarness()
    other = producer("api", reservedCapacity={"nodeSelector": {"group": "b"}})

    outcome = (
        harness.scenario(START, node("n1"), node("n2", cpu="16", labels={"group": "b"}), RESERVED, other)
        .at("10s", edit("MetricsProducer", "web", {"spec": {"reservedCapacity": {"nodeSelector": {"group": "b"}}}}))
        .at("20s", delete("MetricsProducer", "web"))
        .at("30s", create(pod("p", "n2", cpu="4")))
        .run("1m")
    )

    assert status_of(outcome, "api")["reservedCapacity"]["cpu"] == "25.00%, 4/16"
    assert harness.series("web") is None
