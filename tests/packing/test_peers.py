"""The comparison with Karpenter: its pods are as described, and its replay refuses what the oracle refuses."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from bench.peers import mix
from bench.peers.replay import Plan, PlannedNode, Replay, Scheduler, full_name, planned_nodes, replay
from tests.packing import oracle

TYPES = mix.karpenter_types()
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def plan(*nodes: tuple[str, str, list[int]]) -> Plan:
    """Return a plan of nodes: type, zone, and the numbers of its pods in the order of binding."""
    made: list[PlannedNode] = [
        {
            "type": type_,
            "zone": zone,
            "capacityType": "on-demand",
            "price": 1.0,
            "pods": [f"default/p-{number}" for number in numbers],
        }
        for type_, zone, numbers in nodes
    ]
    queue = sorted(pod for node in made for pod in node["pods"])
    return {"seconds": 0.0, "cpuSeconds": 0.0, "nodes": made, "queue": queue}


def pod(number: int, labels: dict[str, str], cpu: str = "100m", **constraints: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "default", "name": f"p-{number}", "labels": labels},
        "spec": {"containers": [{"resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}], **constraints},
    }


def spread(key: str, labels: dict[str, str]) -> dict[str, Any]:
    selector = {"matchLabels": labels}
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint]}


def required(kind: str, key: str, labels: dict[str, str]) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


A, B = {"app": "a"}, {"app": "b"}


@pytest.mark.parametrize("count", [1000, 1003])
def test_the_mix_has_five_equal_parts_and_a_rest(count: int) -> None:
    pods = mix.mix_pods(count)

    parts = Counter(pod["metadata"]["name"].rpartition("-")[0] for pod in pods)
    rest = {"rest": count - 1000} if count > 1000 else {}
    expected = dict.fromkeys(("generic", "zone-spread", "host-spread", "zone-affinity", "anti-affinity"), 200)
    assert parts == {**expected, **rest}
    assert len({pod["metadata"]["uid"] for pod in pods}) == count


def test_the_mix_is_the_same_every_time() -> None:
    assert mix.mix_pods(100) == mix.mix_pods(100)
    assert mix.mix_pods(100, seed=1) != mix.mix_pods(100)


@pytest.mark.parametrize(
    ("pods", "planned", "expected"),
    [
        pytest.param(
            [pod(0, A, "600m"), pod(1, A, "600m")],
            plan(("fake-it-0", "test-zone-1", [0, 1])),
            Replay(1, 1, {"NodeResourcesFit": 1}),
            id="the overhead is not allocatable",
        ),
        pytest.param(
            [pod(0, A, **spread(ZONE, A)), pod(1, A, **spread(ZONE, A))],
            plan(("fake-it-9", "test-zone-1", [0, 1]), ("fake-it-9", "test-zone-2", [])),
            Replay(1, 1, {"PodTopologySpread": 1}),
            id="zone spread counts the zones of all planned nodes",
        ),
        pytest.param(
            [pod(0, A, **spread(ZONE, A)), pod(1, A, **spread(ZONE, A)), pod(2, A, **spread(ZONE, A))],
            plan(("fake-it-9", "test-zone-1", [0, 1]), ("fake-it-9", "test-zone-2", [2])),
            Replay(1, 0, {"PodTopologySpread": 1}),
            id="a refused pod is tried again after the others",
        ),
        pytest.param(
            [pod(0, B, **spread(HOSTNAME, A)), pod(1, A), pod(2, A), pod(3, B, **spread(HOSTNAME, A))],
            plan(("fake-it-9", "test-zone-1", [0, 1, 2, 3]), ("fake-it-9", "test-zone-1", [])),
            Replay(1, 1, {"PodTopologySpread": 1}),
            id="hostname spread: a pod that is not selected is not counted",
        ),
        pytest.param(
            [pod(number, A, **required("podAffinity", ZONE, A)) for number in range(2)],
            plan(("fake-it-9", "test-zone-1", [0]), ("fake-it-9", "test-zone-2", [1])),
            Replay(1, 1, {"InterPodAffinity": 1}),
            id="affinity: the first pod of a group goes anywhere and the second beside it",
        ),
        pytest.param(
            [pod(0, A, **required("podAffinity", ZONE, B)), pod(1, B)],
            plan(("fake-it-9", "test-zone-1", [0, 1])),
            Replay(1, 0, {"InterPodAffinity": 1}),
            id="affinity to other pods waits for them",
        ),
        pytest.param(
            [pod(0, A, **required("podAntiAffinity", HOSTNAME, B)), pod(1, B)],
            plan(("fake-it-9", "test-zone-1", [0, 1])),
            Replay(1, 1, {"InterPodAffinity": 1}),
            id="anti-affinity of a bound pod holds for later pods",
        ),
        pytest.param(
            [pod(0, B), pod(1, A, **required("podAntiAffinity", HOSTNAME, B))],
            plan(("fake-it-9", "test-zone-1", [0, 1])),
            Replay(1, 1, {"InterPodAffinity": 1}),
            id="anti-affinity to a bound pod",
        ),
    ],
)
def test_replay(pods: list[dict[str, Any]], planned: Plan, expected: Replay) -> None:
    assert replay(planned, pods, TYPES) == expected


def test_an_unknown_constraint_is_an_error() -> None:
    with pytest.raises(ValueError, match="default/p-0 has nodeSelector, which the replay does not know"):
        replay(plan(("fake-it-0", "test-zone-1", [0])), [pod(0, A, nodeSelector={"a": "b"})], TYPES)


@pytest.mark.parametrize("seed", range(3))
def test_refusals_are_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    pods = mix.mix_pods(200, seed)
    rng.shuffle(pods)
    # Fewer nodes than the anti-affinity needs, and small ones, so that every filter refuses something.
    nodes: list[tuple[str, str, list[int]]] = [
        (f"fake-it-{rng.randrange(6)}", rng.choice(mix.ZONES), []) for _ in range(30)
    ]
    raw = planned_nodes(plan(*nodes), TYPES)
    scheduler, cluster = Scheduler(raw, pods), oracle.Cluster(raw)
    answers: Counter[str | None] = Counter()
    for each in pods:
        node = rng.randrange(len(nodes))
        reasons = oracle.refusals(cluster, each, raw[node])

        answer = scheduler.refusal(full_name(each), node)

        assert answer == (reasons[0] if reasons else None), (each, raw[node], reasons)
        answers[answer] += 1
        if answer is None:
            scheduler.bind(full_name(each), node)
            cluster.bind(each, raw[node]["metadata"]["name"])

    assert set(answers) == {None, "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"}
