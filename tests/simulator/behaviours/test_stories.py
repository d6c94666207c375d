"""Stories: all behaviours together on a simulated cluster."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulator.behaviours.cluster import (
    USER,
    Cluster,
    NeedlessConflicts,
    is_up,
    names,
    node,
    nodes_of,
    play,
    pod,
    template,
    workload,
)

from springtide.cluster.resources import NODES, PODS, Key, Resource
from springtide.simulator import behaviours
from springtide.simulator.behaviours.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from springtide.simulator.behaviours.settings import UNREADY

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


async def with_nodes(cluster: Cluster, count: int, **more: str) -> None:
    for number in range(count):
        cluster.create(NODES, node(f"node-{number}", **more))
    await cluster.passes(60)


def test_a_deployment_of_three_runs_on_two_nodes() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 2)
        cluster.create(DEPLOYMENTS, workload("web", 3, template()))
        await cluster.passes(120)
        assert nodes_of(cluster) == ["node-0", "node-0", "node-1"]
        assert len(cluster.running()) == 3
        made = cluster.get(DEPLOYMENTS, "web")
        status = made["status"]
        assert (status["replicas"], status["availableReplicas"]) == (3, 3)
        assert status["observedGeneration"] == made["metadata"]["generation"] == 1
        truths = {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
        assert truths == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }

    play(story)


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable"),
    [
        pytest.param(4, "25%", "25%", id="defaults"),
        pytest.param(5, 2, 0, id="only surge"),
        pytest.param(5, 0, 2, id="no surge"),
        pytest.param(3, "100%", "0%", id="all at once"),
        pytest.param(1, 0, "25%", id="both round to nothing"),
    ],
)
def test_a_rolling_update_stays_within_its_bounds_at_every_write(
    replicas: int, surge: int | str, unavailable: int | str
) -> None:
    def of(value: int | str, *, up: bool) -> int:
        if isinstance(value, int):
            return value
        exact = replicas * int(value[:-1]) / 100
        return int(exact) + (1 if up and exact != int(exact) else 0)

    most, least = replicas + of(surge, up=True), replicas - of(unavailable, up=False)
    least = min(least, replicas - 1) if most == replicas else least
    seen: list[tuple[int, int]] = []

    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 2)
        strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
        cluster.create(DEPLOYMENTS, workload("web", replicas, template(), strategy=strategy))
        await cluster.passes(60)
        assert len(cluster.running()) == replicas

        def observe(_: object) -> None:
            pods = [pod for pod in cluster.all(PODS) if "deletionTimestamp" not in pod["metadata"]]
            seen.append((len(pods), sum(map(is_up, pods))))

        cluster.server.observers.append(observe)
        cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": template(image="app:2")}})
        await cluster.passes(600)
        images = [pod["spec"]["containers"][0]["image"] for pod in cluster.running()]
        assert images == ["app:2"] * replicas

    play(story, controllers=behaviours.configured(behaviours.BehaviourSettings(pod_start=behaviours.Delay(1, 20))))
    assert max(total for total, _ in seen) <= most
    assert min(up for _, up in seen) >= least


def test_recreate_never_runs_two_templates_at_once() -> None:
    mixed = []

    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 1)
        cluster.create(DEPLOYMENTS, workload("web", 3, template(), strategy={"type": "Recreate"}))
        await cluster.passes(60)
        cluster.server.observers.append(
            lambda _: mixed.append({pod["spec"]["containers"][0]["image"] for pod in cluster.all(PODS)})
        )
        cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": template(image="app:2")}})
        await cluster.passes(200)
        assert len(cluster.running()) == 3

    play(story)
    assert max(map(len, mixed)) == 1
    assert mixed[-1] == {"app:2"}


def test_a_deployment_is_scaled_up_down_and_to_zero() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 2)
        cluster.create(DEPLOYMENTS, workload("web", 2, template()))
        for size in (5, 1, 0, 3):
            cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": size}})
            await cluster.passes(60)
            assert len(cluster.all(PODS)) == len(cluster.running()) == size
            assert cluster.get(DEPLOYMENTS, "web")["status"].get("availableReplicas", 0) == size

    play(story)


def test_a_rollback_reuses_the_replica_set_with_a_new_revision() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 1)
        cluster.create(DEPLOYMENTS, workload("web", 1, template(), revisionHistoryLimit=1))
        await cluster.passes(60)
        first = names(cluster.all(REPLICA_SETS))
        for image in ("app:2", "app:1"):
            cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": template(image=image)}})
            await cluster.passes(60)
        (active,) = [item for item in cluster.all(REPLICA_SETS) if item["spec"]["replicas"]]
        assert names([active]) == first
        revision = "deployment.kubernetes.io/revision"
        assert active["metadata"]["annotations"][revision] == "3"
        assert cluster.get(DEPLOYMENTS, "web")["metadata"]["annotations"][revision] == "3"
        cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": template(image="app:3")}})
        await cluster.passes(60)
        assert len(cluster.all(REPLICA_SETS)) == 2

    play(story)


def test_a_rollout_without_progress_exceeds_its_deadline() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 1)
        cluster.create(DEPLOYMENTS, workload("web", 1, template(cpu="100"), progressDeadlineSeconds=120))
        await cluster.passes(119)
        assert progressing(cluster.get(DEPLOYMENTS, "web")) == ("True", "ReplicaSetUpdated")
        await cluster.passes(3)
        assert progressing(cluster.get(DEPLOYMENTS, "web")) == ("False", "ProgressDeadlineExceeded")
        cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": template()}})
        await cluster.passes(60)
        assert progressing(cluster.get(DEPLOYMENTS, "web")) == ("True", "NewReplicaSetAvailable")

    play(story)


def test_a_paused_deployment_is_scaled_but_not_rolled_out() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 1)
        cluster.create(DEPLOYMENTS, workload("web", 1, template()))
        await cluster.passes(60)
        cluster.patch(
            DEPLOYMENTS, "web", {"spec": {"paused": True, "replicas": 2, "template": template(image="app:2")}}
        )
        await cluster.passes(60)
        assert [pod["spec"]["containers"][0]["image"] for pod in cluster.running()] == ["app:1", "app:1"]
        cluster.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
        await cluster.passes(120)
        assert [pod["spec"]["containers"][0]["image"] for pod in cluster.running()] == ["app:2", "app:2"]

    play(story)


def test_pods_forbidden_by_a_quota_are_reported_and_created_later() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 1)
        cluster.create(QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}, "status": {}})
        await cluster.passes(1)
        cluster.create(DEPLOYMENTS, workload("web", 2, template()))
        await cluster.passes(60)
        assert len(cluster.all(PODS)) == 1
        failures = [
            one for one in cluster.get(DEPLOYMENTS, "web")["status"]["conditions"] if one["type"] == "ReplicaFailure"
        ]
        assert [one["reason"] for one in failures] == ["FailedCreate"]
        assert "exceeded quota: few" in failures[0]["message"]
        cluster.patch(QUOTAS, "few", {"spec": {"hard": {"pods": "5"}}})
        await cluster.passes(2000)
        assert len(cluster.running()) == 2
        truths = [one["type"] for one in cluster.get(DEPLOYMENTS, "web")["status"]["conditions"]]
        assert sorted(truths) == ["Available", "Progressing"]

    play(story, failing=True)


def progressing(item: dict[str, Any]) -> tuple[str, str]:
    return next((one["status"], one["reason"]) for one in item["status"]["conditions"] if one["type"] == "Progressing")


def test_deleting_a_deployment_deletes_everything_below_it() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 1)
        cluster.create(DEPLOYMENTS, workload("web", 3, template()))
        await cluster.passes(60)
        cluster.delete(DEPLOYMENTS, "web")
        await cluster.passes(20)
        assert cluster.all(REPLICA_SETS) == []
        assert ["deletionTimestamp" in pod["metadata"] for pod in cluster.all(PODS)] == [True] * 3
        await cluster.passes(60)
        assert cluster.all(PODS) == []

    play(story)


def test_orphans_are_adopted_and_non_matching_pods_released() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 1)
        cluster.create(PODS, pod("orphan"))
        cluster.create(REPLICA_SETS, workload("web", 2, template()))
        await cluster.passes(60)
        owners = {item["metadata"]["name"]: item["metadata"].get("ownerReferences") for item in cluster.all(PODS)}
        assert len(owners) == 2
        assert owners["orphan"][0]["name"] == "web"
        cluster.patch(PODS, "orphan", {"metadata": {"labels": {"app": "other"}}})
        await cluster.passes(60)
        assert "ownerReferences" not in cluster.get(PODS, "orphan")["metadata"]
        assert len(cluster.all(PODS)) == 3

    play(story)


def test_a_replication_controller_keeps_its_pods() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 1)
        body = workload("old", 2, template("old"))
        cluster.create(REPLICATION_CONTROLLERS, {**body, "spec": {**body["spec"], "selector": {"app": "old"}}})
        await cluster.passes(60)
        cluster.delete(PODS, names(cluster.all(PODS))[0])
        await cluster.passes(60)
        assert len(cluster.running()) == 2
        assert cluster.get(REPLICATION_CONTROLLERS, "old")["status"]["readyReplicas"] == 2

    play(story)


def test_pods_of_a_lost_node_are_replaced_and_deleted_with_the_node() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 2)
        cluster.create(DEPLOYMENTS, workload("web", 2, template()))
        await cluster.passes(60)
        assert nodes_of(cluster) == ["node-0", "node-1"]
        lost_at = cluster.clock.now()
        cluster.server.patch(NODES, cluster._key(NODES, "node-1"), behaviours.node_lost_patch(lost_at), USER)
        await cluster.passes(39)
        assert ready(cluster.get(NODES, "node-1")) == "True"
        await cluster.passes(1)
        await cluster.passes(0.5)
        lost = cluster.get(NODES, "node-1")
        assert ready(lost) == "Unknown"
        assert [(taint["key"], taint["effect"]) for taint in lost["spec"]["taints"]] == [
            ("node.kubernetes.io/unreachable", "NoSchedule"),
            ("node.kubernetes.io/unreachable", "NoExecute"),
        ]
        assert len(cluster.running()) == 1
        await cluster.passes(299)
        assert len(cluster.all(PODS)) == 2
        await cluster.passes(10)
        assert nodes_of(cluster) == ["node-0", "node-0", "node-1"]
        assert len(cluster.running()) == 2
        await cluster.passes(86_400)
        assert nodes_of(cluster) == ["node-0", "node-0", "node-1"]
        cluster.delete(NODES, "node-1")
        await cluster.passes(1)
        assert nodes_of(cluster) == ["node-0", "node-0"]

    play(story)


def test_a_node_that_comes_back_in_time_keeps_its_pods() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 1)
        cluster.create(DEPLOYMENTS, workload("web", 1, template()))
        await cluster.passes(60)
        before = names(cluster.all(PODS))
        cluster.server.patch(
            NODES, cluster._key(NODES, "node-0"), behaviours.node_lost_patch(cluster.clock.now()), USER
        )
        await cluster.passes(100)
        assert cluster.running() == []
        cluster.server.patch(NODES, cluster._key(NODES, "node-0"), behaviours.node_found_patch(), USER)
        await cluster.passes(1)
        assert names(cluster.running()) == before
        assert "taints" not in cluster.get(NODES, "node-0")["spec"]
        await cluster.passes(1000)
        assert names(cluster.running()) == before

    play(story)


def test_a_daemon_set_follows_the_nodes() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 2)
        cluster.create(NODES, node("tainted", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]}))
        cluster.create(DAEMON_SETS, workload("agent", None, template("agent")))
        await cluster.passes(60)
        assert nodes_of(cluster) == ["node-0", "node-1"]
        cluster.create(NODES, node("node-2"))
        await cluster.passes(60)
        assert nodes_of(cluster) == ["node-0", "node-1", "node-2"]
        cluster.delete(NODES, "node-0")
        await cluster.passes(60)
        assert nodes_of(cluster) == ["node-1", "node-2"]
        cluster.patch(NODES, "tainted", {"spec": {"taints": None}})
        await cluster.passes(60)
        assert nodes_of(cluster) == ["node-1", "node-2", "tainted"]
        cluster.patch(DAEMON_SETS, "agent", {"spec": {"template": template("agent", image="app:2")}})
        await cluster.passes(600)
        assert [pod["spec"]["containers"][0]["image"] for pod in cluster.running()] == ["app:2"] * 3
        status = cluster.get(DAEMON_SETS, "agent")["status"]
        assert (status["desiredNumberScheduled"], status["numberAvailable"], status["updatedNumberScheduled"]) == (
            3,
            3,
            3,
        )

    play(story)


def test_a_stateful_set_is_created_in_order_and_updated_down_to_its_partition() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 1)
        claims = [{"metadata": {"name": "data"}, "spec": {}}]
        body = workload("db", 3, template("db"), serviceName="db", volumeClaimTemplates=claims)
        cluster.create(STATEFUL_SETS, body)
        sizes = []
        cluster.server.observers.append(lambda _: sizes.append((len(cluster.all(PODS)), len(cluster.running()))))
        await cluster.passes(60)
        assert all(total - up <= 1 for total, up in sizes)
        assert names(cluster.running()) == ["db-0", "db-1", "db-2"]
        volumes = cluster.get(PODS, "db-2")["spec"]["volumes"]
        assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-2"}} in volumes
        partition = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}
        cluster.patch(STATEFUL_SETS, "db", {"spec": {**partition, "template": template("db", image="app:2")}})
        await cluster.passes(300)
        cluster.delete(PODS, "db-0")
        await cluster.passes(60)
        images = {item["metadata"]["name"]: item["spec"]["containers"][0]["image"] for item in cluster.running()}
        assert images == {"db-0": "app:1", "db-1": "app:2", "db-2": "app:2"}
        cluster.patch(STATEFUL_SETS, "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        await cluster.passes(120)
        assert {item["spec"]["containers"][0]["image"] for item in cluster.running()} == {"app:2"}
        status = cluster.get(STATEFUL_SETS, "db")["status"]
        assert status["currentRevision"] == status["updateRevision"]
        cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await cluster.passes(120)
        assert names(cluster.all(PODS)) == ["db-0"]

    play(story)


def test_a_node_boots_once_and_a_quiet_week_writes_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 2)
        cluster.create(DEPLOYMENTS, workload("web", 2, template()))
        cluster.create(DAEMON_SETS, workload("agent", None, template("agent")))
        await cluster.passes(3600)
        reconciles = [health.reconciles for health in cluster.manager.health()]
        writes = len(cluster.written)
        await cluster.passes(7 * 86_400)
        assert len(cluster.written) == writes
        assert [health.reconciles for health in cluster.manager.health()] == reconciles

    play(story)


def test_the_pod_of_a_lost_node_becomes_unready_and_recovers_despite_conflicts() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 1)
        cluster.create(PODS, pod("p"))
        await cluster.passes(60)
        assert len(cluster.running()) == 1
        cluster.server.patch(NODES, Key("", "node-0"), behaviours.node_lost_patch(cluster.clock.now()), USER)
        await cluster.passes(60)
        assert cluster.running() == []
        cluster.server.patch(NODES, Key("", "node-0"), behaviours.node_found_patch(), USER)
        await cluster.passes(60)
        assert len(cluster.running()) == 1

    play(story, connect=NeedlessConflicts)


def test_a_rollout_to_unready_pods_stops_at_max_unavailable() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 3)
        cluster.create(DEPLOYMENTS, workload("web", 6, template()))
        await cluster.passes(60)
        up = []
        cluster.server.observers.append(lambda _: up.append(len(cluster.running())))
        broken = template(image="app:2", annotations={UNREADY: "yes"})
        cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": broken}})
        await cluster.passes(3600)
        assert min(up) == 5
        assert {pod["spec"]["containers"][0]["image"] for pod in cluster.running()} == {"app:1"}

    play(story)


def test_the_same_story_produces_the_same_writes() -> None:
    async def story(cluster: Cluster) -> None:
        await with_nodes(cluster, 2)
        cluster.create(DEPLOYMENTS, workload("web", 4, template()))
        await cluster.passes(30)
        cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": template(image="app:2")}})
        await cluster.passes(300)

    settings = behaviours.configured(behaviours.BehaviourSettings(pod_start=behaviours.Delay(1, 30)))
    one, other = play(story, controllers=settings), play(story, controllers=settings)
    assert [(entry.at, entry.verb, entry.new) for entry in one.written] == [
        (entry.at, entry.verb, entry.new) for entry in other.written
    ]


def ready(item: dict[str, Any]) -> str:
    return next(str(one["status"]) for one in item["status"]["conditions"] if one["type"] == "Ready")
