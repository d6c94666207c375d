"""DaemonSets: one pod on every node that takes it, two while it surges, none for nodes that are gone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.simulator.behaviours.cluster import Cluster, node, nodes_of, play, template, workload
from tests.simulator.behaviours.objects import NOW, live_pod

from springtide.cluster.resources import NODES, PODS, Object
from springtide.simulator.behaviours.daemon_sets import NodeDaemonState, decide, node_of, roll, status_of
from springtide.simulator.behaviours.ownership import LABEL, template_hash
from springtide.simulator.behaviours.resources import DAEMON_SETS
from springtide.simulator.behaviours.settings import UNREADY

TEMPLATE = template("agent")
NEW = {LABEL: template_hash(TEMPLATE)}
OLD = {LABEL: "before"}
TAKES, KEEPS, REFUSES = NodeDaemonState(True, True), NodeDaemonState(False, True), NodeDaemonState(False, False)


def daemon_set(surge: int | str = 0, missing: int | str = 0, **spec: Any) -> Object:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": missing}}
    return {
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"template": TEMPLATE, "updateStrategy": strategy, **spec},
    }


def new(name: str, **more: Any) -> Object:
    return live_pod(name, labels=NEW, **more)


def old(name: str, **more: Any) -> Object:
    return live_pod(name, labels=OLD, **more)


def waiting_for(node_name: str) -> Object:
    """Make a pod for a node that it is not bound to yet."""
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
    return new("w", node=None, phase="Pending", affinity={"nodeAffinity": required})


@pytest.mark.parametrize(
    ("item", "nodes", "pods", "create", "delete"),
    [
        pytest.param(daemon_set(), {"a": TAKES, "b": KEEPS, "c": REFUSES}, [], ["a"], [], id="only where it should"),
        pytest.param(daemon_set(), {"a": KEEPS}, [new("p")], [], [], id="one that is there may stay"),
        pytest.param(daemon_set(), {"a": REFUSES}, [new("p")], [], ["p"], id="one that may not stay"),
        pytest.param(daemon_set(), {"a": TAKES}, [new("p", going=True)], [], [], id="none beside one that goes"),
        pytest.param(daemon_set(1), {"a": TAKES}, [old("p", going=True)], ["a"], [], id="with a surge, beside it"),
        pytest.param(daemon_set(), {"a": TAKES}, [new("p", phase="Failed")], [], ["p"], id="one that has ended"),
        pytest.param(daemon_set(), {"a": TAKES}, [new("p", age=9), new("q", age=10)], [], ["p"], id="the oldest stays"),
        pytest.param(
            daemon_set(1), {"a": TAKES}, [old("p"), new("q", ready_for=None)], [], [], id="two until the new is ready"
        ),
        pytest.param(daemon_set(1), {"a": TAKES}, [old("p"), new("q")], [], ["p"], id="the old goes for a ready one"),
        pytest.param(
            daemon_set(1, minReadySeconds=1000), {"a": TAKES}, [old("p"), new("q")], [], [], id="not ready for long"
        ),
        pytest.param(
            daemon_set(1),
            {"a": TAKES},
            [old("p", ready_for=None), new("q", ready_for=None)],
            [],
            ["p"],
            id="the old goes if neither is ready",
        ),
        pytest.param(
            daemon_set(1),
            {"a": TAKES},
            [old("p"), old("q"), new("r", ready_for=None), new("s", ready_for=None)],
            [],
            ["s", "q"],
            id="never more than two",
        ),
        pytest.param(daemon_set(), {"a": TAKES}, [new("p"), waiting_for("b")], [], ["w"], id="its node is gone"),
        pytest.param(daemon_set(), {}, [new("p")], [], [], id="a bound one is garbage of others"),
        pytest.param(daemon_set(), {}, [new("p", node=None)], [], [], id="an unbound pod without a node"),
    ],
)
def test_nodes_get_the_pods_that_they_should_have(
    item: Object, nodes: dict[str, NodeDaemonState], pods: list[Object], create: list[str], delete: list[str]
) -> None:
    plan = decide(item, nodes, pods, NOW)
    assert (plan.create, [pod["metadata"]["name"] for pod, _ in plan.delete]) == (create, delete)


ABC = {"a": TAKES, "b": TAKES, "c": TAKES}


@pytest.mark.parametrize(
    ("item", "nodes", "pods", "create", "delete"),
    [
        pytest.param(daemon_set(0, 2), ABC, [old(name, node=name) for name in "abc"], [], ["a", "b"], id="delete some"),
        pytest.param(
            daemon_set(0, 1),
            ABC,
            [old("a", node="a"), old("b", node="b", ready_for=None), old("c", node="c")],
            [],
            ["b"],
            id="delete those of no use",
        ),
        pytest.param(daemon_set(2), ABC, [old(name, node=name) for name in "abc"], ["a", "b"], [], id="surge"),
        pytest.param(
            daemon_set("34%"),
            ABC,
            [old("a", node="a"), new("x", node="a", ready_for=None), old("b", node="b"), old("c", node="c")],
            ["b"],
            [],
            id="surge further, up to a share",
        ),
        pytest.param(
            daemon_set(1),
            ABC,
            [old("a", node="a"), new("x", node="a", ready_for=None), old("b", node="b", ready_for=None)],
            ["b"],
            [],
            id="surge beside those of no use",
        ),
        pytest.param(
            daemon_set(1),
            {"a": KEEPS, "b": TAKES},
            [old("a", node="a"), new("b", node="b", ready_for=None)],
            [],
            [],
            id="an old one stays where none should be, if it is needed",
        ),
        pytest.param(
            daemon_set(1),
            {"a": KEEPS, "b": TAKES},
            [old("a", node="a"), new("b", node="b")],
            [],
            ["a"],
            id="an old one goes where none should be",
        ),
        pytest.param(
            daemon_set(1),
            {"a": KEEPS, "b": TAKES},
            [old("a", node="a", ready_for=None), old("b", node="b")],
            ["b"],
            ["a"],
            id="an old one of no use goes where none should be",
        ),
        pytest.param(
            daemon_set(updateStrategy={"type": "OnDelete"}), ABC, [old("a", node="a")], [], [], id="people roll it"
        ),
    ],
)
def test_outdated_pods_are_replaced_within_max_unavailable(
    item: Object, nodes: dict[str, NodeDaemonState], pods: list[Object], create: list[str], delete: list[str]
) -> None:
    plan = roll(item, nodes, pods, NOW)
    assert (plan.create, [pod["metadata"]["name"] for pod, _ in plan.delete]) == (create, delete)


def test_of_two_pods_on_a_node_the_older_one_counts() -> None:
    status = status_of(daemon_set(1), {"a": TAKES}, [new("x", age=5, ready_for=None), old("p")], NOW)
    counted = ("currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberUnavailable")
    assert [status[name] for name in counted] == [1, 1, None, None]


@pytest.mark.parametrize("surge", [pytest.param(1, id="one at a time"), pytest.param("50%", id="half of them")])
def test_a_surge_updates_every_node_without_a_gap(surge: int | str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}}
    most = 1 if surge == 1 else 2

    async def story(cluster: Cluster) -> None:
        for number in range(4):
            cluster.create(NODES, node(f"node-{number}"))
        await cluster.passes(60)
        cluster.create(DAEMON_SETS, workload("agent", None, TEMPLATE, updateStrategy=strategy))
        await cluster.passes(60)
        seen = []

        def look(_: object) -> None:
            staying = [pod for pod in cluster.all(PODS) if "deletionTimestamp" not in pod["metadata"]]
            doubles = sum(count > 1 for count in Counter(node_of(pod) for pod in staying).values())
            seen.append((doubles, len({node_of(pod) for pod in cluster.running()})))

        cluster.server.observers.append(look)
        cluster.patch(DAEMON_SETS, "agent", {"spec": {"template": template("agent", image="app:2")}})
        await cluster.passes(600)
        assert [pod["spec"]["containers"][0]["image"] for pod in cluster.all(PODS)] == ["app:2"] * 4
        assert nodes_of(cluster) == [f"node-{number}" for number in range(4)]
        assert (max(doubles for doubles, _ in seen), min(up for _, up in seen)) == (most, 4)
        status = cluster.get(DAEMON_SETS, "agent")["status"]
        assert (status["updatedNumberScheduled"], status["numberAvailable"]) == (4, 4)

    play(story)


def test_a_surge_to_pods_that_never_get_ready_leaves_the_old_ones() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}

    async def story(cluster: Cluster) -> None:
        for number in range(2):
            cluster.create(NODES, node(f"node-{number}"))
        cluster.create(DAEMON_SETS, workload("agent", None, TEMPLATE, updateStrategy=strategy))
        await cluster.passes(120)
        broken = template("agent", image="app:2", annotations={UNREADY: "yes"})
        cluster.patch(DAEMON_SETS, "agent", {"spec": {"template": broken}})
        await cluster.passes(3600)
        assert [pod["spec"]["containers"][0]["image"] for pod in cluster.running()] == ["app:1"] * 2
        assert len(cluster.all(PODS)) == 3

    play(story)


def test_an_unbound_pod_of_a_deleted_node_is_deleted_and_not_counted() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(NODES, node("node-0"))
        cluster.create(NODES, node("full", cpu="100m"))
        cluster.create(DAEMON_SETS, workload("agent", None, TEMPLATE))
        await cluster.passes(120)
        assert nodes_of(cluster) == ["", "node-0"]
        cluster.delete(NODES, "full")
        await cluster.passes(60)
        assert nodes_of(cluster) == ["node-0"]
        status = cluster.get(DAEMON_SETS, "agent")["status"]
        assert (status["desiredNumberScheduled"], status["currentNumberScheduled"]) == (1, 1)
        assert "numberUnavailable" not in status

    play(story)


def test_the_status_follows_nodes_without_pods() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(NODES, node("node-0"))
        elsewhere = template("agent", nodeSelector={"gpu": "yes"})
        cluster.create(DAEMON_SETS, workload("agent", None, elsewhere))
        await cluster.passes(60)
        cluster.patch(NODES, "node-0", {"metadata": {"labels": {"gpu": "yes"}}})
        await cluster.passes(60)
        assert cluster.get(DAEMON_SETS, "agent")["status"]["desiredNumberScheduled"] == 1
        cluster.delete(NODES, "node-0")
        await cluster.passes(60)
        status = cluster.get(DAEMON_SETS, "agent")["status"]
        assert (cluster.all(PODS), status["desiredNumberScheduled"], status["numberReady"]) == ([], 0, 0)

    play(story)
