"""Reserved capacity through the controller: which nodes count, what pods take, and how often people are told."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from tests.controllers.metrics_producer.harness import Stage, conditions_of, producer, status_of, writes_of

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
    """Write a node."""
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
    """Write a pod that is on a node."""
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
    """Write an init container."""
    always = {"restartPolicy": restart} if restart else {}
    return {"name": name, "image": "i", "resources": {"requests": requests}, **always}


def finish(name: str, phase: str) -> Action:
    """A pod comes to its end."""

    async def act(world: World) -> None:
        patch = Patch.merge({"status": {"phase": phase}})
        world.server.patch(PODS, Key("default", name), patch, Write("kubelet"), subresource="status")

    return act


def unready(name: str) -> Action:
    """A node is not ready any more."""

    async def act(world: World) -> None:
        patch = Patch.merge({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
        world.server.patch(NODES, Key("", name), patch, Write("kubelet"), subresource="status")

    return act


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((), {"cpu": "NaN%, 0/0", "memory": "NaN%, 0/0", "pods": "NaN%, 0/0"}, id="H18-no-nodes"),
        pytest.param(
            (node("n1"),),
            {"cpu": "0.00%, 0/4", "memory": "0.00%, 0/8Gi", "pods": "0.00%, 0/110"},
            id="an-empty-node",
        ),
        pytest.param(
            (node("n1"), node("n2"), pod("p", "n1", cpu="500m", memory="1Gi"), pod("q", "n2", cpu="1", memory="512Mi")),
            {"cpu": "18.75%, 1500m/8", "memory": "9.38%, 1536Mi/16Gi", "pods": "0.91%, 2/220"},
            id="two-nodes-and-two-pods",
        ),
        pytest.param(
            (node("n1"), node("n2", labels={"group": "b"}), pod("p", "n2", cpu="1"), pod("q", "", cpu="1")),
            {"cpu": "0.00%, 0/4", "memory": "0.00%, 0/8Gi", "pods": "0.00%, 0/110"},
            id="pods-of-other-nodes-and-of-none",
        ),
        pytest.param(
            (node("n1"), node("n2", unschedulable=True), pod("p", "n2", cpu="1")),
            {"cpu": "0.00%, 0/4", "memory": "0.00%, 0/8Gi", "pods": "0.00%, 0/110"},
            id="a-cordoned-node-does-not-count",
        ),
        pytest.param(
            (node("n1"), pod("p", "n1", init=[container("i", cpu="2"), container("j", cpu="1")], cpu="500m")),
            {"cpu": "50.00%, 2/4", "memory": "0.00%, 0/8Gi", "pods": "0.91%, 1/110"},
            id="init-containers-one-at-a-time",
        ),
        pytest.param(
            (node("n1"), pod("p", "n1", init=[container("s", "Always", cpu="1")], cpu="500m")),
            {"cpu": "37.50%, 1500m/4", "memory": "0.00%, 0/8Gi", "pods": "0.91%, 1/110"},
            id="sidecars-run-beside",
        ),
        pytest.param(
            (node("n1", memory="1000001"), pod("p", "n1", memory="1")),
            {"cpu": "0.00%, 0/4", "memory": "0.00%, 1/1000001", "pods": "0.91%, 1/110"},
            id="memory-that-is-not-made-of-binary-units",
        ),
    ],
)
def test_what_is_reserved(objects: tuple[Object, ...], expected: Object) -> None:
    """The status has a line for each resource, and the producer is ready."""
    outcome = Stage().playing(START, *objects, RESERVED).run("1m")

    assert status_of(outcome)["reservedCapacity"] == expected
    assert conditions_of(outcome)["Ready"] == ("True", "Ready")


def test_the_metrics_are_exact() -> None:
    """Reserved, capacity and the part of it, in cores, bytes and pods."""
    stage = Stage()

    async def look(world: World) -> None:
        reading = stage.reading()
        assert reading is not None
        stage.seen.append(
            {name.removeprefix("karpenter_reserved_capacity_"): value for name, value in reading.values.items()}
        )

    stage.playing(START, node("n1", cpu="3"), pod("p", "n1", cpu="1", memory="2Gi"), RESERVED).at("30s", look).run("1m")

    assert stage.seen == [
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


def test_there_is_no_part_of_nothing() -> None:
    """Without nodes the utilization is what Prometheus calls NaN, and the amounts are 0."""
    stage = Stage()
    prefix = "karpenter_reserved_capacity_cpu_"

    stage.playing(START, RESERVED).at(
        "30s", stage.note(metric=f"{prefix}utilization"), stage.note(metric=f"{prefix}capacity")
    ).run("1m")

    assert stage.seen == [None, 0]


def test_it_follows_what_happens() -> None:
    """Pods come, end and go; nodes come, fail, are labelled otherwise and go."""
    stage = Stage()
    metric = "karpenter_reserved_capacity_cpu_"
    look = (stage.note(metric=f"{metric}reserved"), stage.note(metric=f"{metric}capacity"))

    (
        stage.playing(START, node("n1"), pod("p", "n1", cpu="1"), RESERVED)
        .at("10s", *look, create(pod("q", "n1", cpu="2")))
        .at("20s", *look, finish("p", "Succeeded"))
        .at("30s", *look, create(node("n2"), pod("r", "n2", cpu="1")))
        .at("40s", *look, unready("n2"))
        .at("50s", *look, delete("Pod", "q"))
        .at("60s", *look, edit("Node", "n1", {"metadata": {"labels": {"group": "b"}}}))
        .at("70s", *look, edit("Node", "n1", {"metadata": {"labels": {"group": "a"}}}))
        .at("80s", *look, delete("Node", "n1"))
        .at("90s", *look)
        .run("2m")
    )

    steps = list(zip(stage.seen[::2], stage.seen[1::2], strict=True))
    assert steps == [(1, 4), (3, 4), (2, 4), (3, 8), (2, 4), (0, 4), (0, 0), (0, 4), (0, 0)]


def test_a_flood_of_pods_is_told_once_in_a_second() -> None:
    """However many come, and the last word is right."""
    stage = Stage()

    async def flood(world: World) -> None:
        for number in range(200):
            await world.clock.sleep(0.01)
            await create(pod(f"p-{number}", "n1", cpu="10m"))(world)

    outcome = stage.playing(START, node("n1"), RESERVED).at("10s", flood).run("1m")

    assert status_of(outcome)["reservedCapacity"]["cpu"] == "50.00%, 2/4"
    assert len(writes_of(outcome)) <= 6


def test_idling_writes_nothing() -> None:
    """A node that only says that it is there changes nothing."""
    stage = Stage()

    outcome = (
        stage.playing(START, node("n1"), RESERVED)
        .every("10s", edit("Node", "n1", {"metadata": {"annotations": {"seen": "again"}}}))
        .run("10m")
    )

    assert writes_of(outcome) == ["2026-06-01T08:00:00Z"]


def test_another_label_is_another_group() -> None:
    """An edit of the selector counts at once, and of two producers each has its own group."""
    stage = Stage()
    other = producer("api", reservedCapacity={"nodeSelector": {"group": "b"}})

    outcome = (
        stage.playing(START, node("n1"), node("n2", cpu="16", labels={"group": "b"}), RESERVED, other)
        .at("10s", edit("MetricsProducer", "web", {"spec": {"reservedCapacity": {"nodeSelector": {"group": "b"}}}}))
        .at("20s", delete("MetricsProducer", "web"))
        .at("30s", create(pod("p", "n2", cpu="4")))
        .run("1m")
    )

    assert status_of(outcome, "api")["reservedCapacity"]["cpu"] == "25.00%, 4/16"
    assert stage.reading("web") is None
