"""Behaviours under faults: whatever fails, crashes or lags, the cluster comes to where it should be."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.simulator.behaviours.cluster import is_up, node, template, workload

from springtide.apiserver.server import CommittedWrite
from springtide.cluster.resources import NODES, PODS, Object, Resource, Selection
from springtide.simulator import behaviours
from springtide.simulator.behaviours.daemon_sets import node_of
from springtide.simulator.behaviours.resources import DAEMON_SETS, DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS
from springtide.simulator.faults.profile import Faults, Severity
from springtide.simulator.scenario.actions import edit, scale
from springtide.simulator.scenario.invariants import (
    Invariant,
    InvariantViolated,
    SharedObjectsAreNotMutated,
    StoresFollowTheServer,
)
from springtide.simulator.scenario.scenario import Scenario, play
from springtide.simulator.world import World


def whole(resource: Resource, body: Object) -> Object:
    namespace = {"namespace": "default"} if resource.namespaced else {}
    return {
        **body,
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {**body["metadata"], **namespace},
    }


HARD = Faults.of(Severity.HEAVY).but(node_loss_every=0)
"""With every node in its place: what a strategy allows does not hold for nodes that are lost."""
LOSSY = Faults.of(Severity.HEAVY).but(node_loss_every=400, longest_node_loss=1200)
"""Nodes are lost all the time, for long enough that their pods are driven away."""


def everything(world: World, resource: Resource) -> list[Object]:
    return list(world.server.list(Selection(resource)).items)


def pod_app(pod: Object) -> str:
    return str(pod["metadata"]["labels"]["app"])


class WithinBounds(Invariant):
    """No node has more than it can carry, no workload more or less than its strategy allows."""

    def __init__(self) -> None:
        self._was_complete = False

    def wrote(self, world: World, written: CommittedWrite) -> None:
        if written.resource not in (PODS, REPLICA_SETS):
            return
        # The surge is a matter of what is asked for: who makes and deletes the pods may lag behind.
        asked = sum(item["spec"]["replicas"] for item in everything(world, REPLICA_SETS))
        pods = [pod for pod in everything(world, PODS) if pod["status"]["phase"] not in ("Succeeded", "Failed")]
        loads = Counter(pod["spec"].get("nodeName", "") for pod in pods)
        del loads[""]
        staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        active = Counter(pod_app(pod) for pod in staying)
        daemons = Counter(node_of(pod) for pod in staying if pod_app(pod) == "agent")
        up = sum(is_up(pod) for pod in staying if pod_app(pod) == "web")
        self._was_complete |= up == 4
        broken = [
            name
            for name, holds in {
                "8 pods of half a core fit on a node": max(loads.values(), default=0) <= 8,
                "a surge of 1 over 4": asked <= 5,
                "1 of 4 may be missing": up >= 3 or not self._was_complete,
                "3 members": active["db"] <= 3,
                "2 at a time": active["work"] <= 2,
                "1 daemon a node": max(daemons.values(), default=0) <= 1,
            }.items()
            if not holds
        ]
        if broken:
            raise InvariantViolated(", ".join(broken))


STORY = (
    Scenario("all workloads")
    .given(
        *(whole(NODES, node(f"node-{number}", cpu="4")) for number in range(3)),
        whole(DEPLOYMENTS, workload("web", 4, template())),
        whole(STATEFUL_SETS, workload("db", 3, template("db"), serviceName="db")),
        whole(DAEMON_SETS, workload("agent", None, template("agent"))),
        whole(
            JOBS,
            {
                "metadata": {"name": "work"},
                "spec": {"completions": 6, "parallelism": 2, "template": template("work", restartPolicy="Never")},
            },
        ),
    )
    .running(*behaviours.ALL, name="kubernetes")
    .at("30m", edit("Deployment", "web", {"spec": {"template": template(image="app:2")}}, namespace="default"))
    .always(WithinBounds)
    .settling("1h")
)


@pytest.mark.parametrize("seed", range(4))
def test_everything_runs_in_the_end(seed: int) -> None:
    (outcome,) = play(STORY.under(HARD), "2h", [seed])
    world = outcome.world
    up = Counter(pod_app(pod) for pod in everything(world, PODS) if is_up(pod))
    assert up == {"web": 4, "db": 3, "agent": 3}
    ended = Counter(pod["status"]["phase"] for pod in everything(world, PODS) if pod_app(pod) == "work")
    (job,) = everything(world, JOBS)
    assert job["status"]["succeeded"] == 6
    assert job["status"]["uncountedTerminatedPods"] == {}
    assert ended == {"Succeeded": 6}
    images = {pod["spec"]["containers"][0]["image"] for pod in everything(world, PODS) if pod_app(pod) == "web"}
    assert images == {"app:2"}


LOSSES = (
    Scenario("nodes come and go")
    .given(
        # Each could run all pods: there is no preemption in favor of daemons that come late.
        *(whole(NODES, node(f"node-{number}", cpu="16")) for number in range(5)),
        whole(DEPLOYMENTS, workload("web", 8, template())),
        whole(STATEFUL_SETS, workload("db", 3, template("db"), serviceName="db")),
        whole(DAEMON_SETS, workload("agent", None, template("agent", cpu="100m"))),
    )
    .at("20m", scale("Deployment", "web", 12))
    .always(StoresFollowTheServer, SharedObjectsAreNotMutated)
    .under(LOSSY)
    .settling("30m")
)


@pytest.mark.parametrize("seed", range(3))
def test_everything_runs_again_when_the_nodes_are_back(seed: int) -> None:
    (outcome,) = play(LOSSES.running(*behaviours.ALL, name="kubernetes"), "90m", [seed])
    assert any("lost" in field for entry in outcome.trace if entry.kind == "Node" for field in entry.change)
    pods = everything(outcome.world, PODS)
    assert Counter(pod_app(pod) for pod in pods if is_up(pod)) == {"web": 12, "db": 3, "agent": 5}
    assert len(pods) == 20
