"""Which pod goes to which node, when, and what is said of pods that none takes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.simulator.behaviours.cluster import USER, Cluster, NeedlessConflicts, node, nodes_of, play, pod

from springtide.apiserver.direct import DirectTransport
from springtide.cluster.errors import Forbidden
from springtide.cluster.events import EVENTS
from springtide.cluster.resources import NODES, PODS, Key, Object, Resource
from springtide.cluster.transport import Patch
from springtide.simulator import behaviours

PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
SMALL = [node("a", cpu="1"), node("b", cpu="1"), node("c", cpu="2")]
TAINTED = [node("a", spec={"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}), node("b", cpu="100m")]
TOLERATION = {"key": "gpu", "operator": "Equal", "value": "yes"}


def affinity(*terms: Object) -> Object:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"nodeAffinity": required}


def scheduled(item: Object) -> Object:
    found: Object = next(one for one in item["status"]["conditions"] if one["type"] == "PodScheduled")
    return found


@pytest.mark.parametrize(
    ("nodes", "spec", "expected"),
    [
        pytest.param(SMALL, {}, "c", id="most to spare"),
        pytest.param([node("b"), node("a")], {}, "a", id="ties by name"),
        pytest.param(SMALL, {"nodeSelector": {"kubernetes.io/hostname": "b"}}, "b", id="node selector"),
        pytest.param(
            SMALL,
            {"affinity": affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]})},
            "a",
            id="affinity by name",
        ),
        pytest.param(TAINTED, {"tolerations": [TOLERATION]}, "a", id="tolerated taint"),
        pytest.param(
            [node("a", spec={"taints": [{"key": "x", "effect": "PreferNoSchedule"}]}), node("b", cpu="1")],
            {},
            "b",
            id="taint to avoid outweighs room",
        ),
        pytest.param(
            [node("a", spec={"unschedulable": True}), node("b")],
            {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"kubernetes.io/hostname": "a"}},
            "a",
            id="cordon is tolerated by who tolerates everything",
        ),
    ],
)
def test_a_pod_goes_to_the_best_node_that_is_fit(nodes: list[Object], spec: dict[str, Any], expected: str) -> None:
    async def story(cluster: Cluster) -> None:
        for item in nodes:
            cluster.create(NODES, item)
        await cluster.passes(60)
        cluster.create(PODS, pod("p", **spec))
        await cluster.passes(10)
        assert cluster.get(PODS, "p")["spec"].get("nodeName") == expected
        assert cluster.get(PODS, "p")["status"]["phase"] == "Running"

    play(story)


@pytest.mark.parametrize(
    ("nodes", "spec", "message"),
    [
        pytest.param([], {}, "no nodes available to schedule pods", id="no nodes"),
        pytest.param(SMALL, {"cpu": "3"}, "0/3 nodes are available: 3 Insufficient cpu.", id="too large"),
        pytest.param(
            TAINTED,
            {},
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).",
            id="several reasons",
        ),
        pytest.param(
            [node("a", pods="0", cpu="0"), node("b", spec={"unschedulable": True})],
            {},
            "0/2 nodes are available: 1 Insufficient cpu, 1 Too many pods, 1 node(s) were unschedulable.",
            id="all that runs short, and a cordon",
        ),
        pytest.param(
            SMALL,
            {"nodeSelector": {"disk": "ssd"}},
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
            id="selector",
        ),
    ],
)
def test_an_unschedulable_pod_reports_why(nodes: list[Object], spec: dict[str, Any], message: str) -> None:
    async def story(cluster: Cluster) -> None:
        for item in nodes:
            cluster.create(NODES, item)
        await cluster.passes(60)
        cluster.create(PODS, pod("p", **spec))
        await cluster.passes(10)
        reported = scheduled(cluster.get(PODS, "p"))
        assert (reported["status"], reported["reason"], reported["message"]) == ("False", "Unschedulable", message)
        assert "nodeName" not in cluster.get(PODS, "p")["spec"]

    play(story)


def events_about(cluster: Cluster, kind: str) -> list[Object]:
    return [event for event in cluster.all(EVENTS) if event["involvedObject"]["kind"] == kind]


def test_an_unschedulable_pod_has_one_event_with_the_latest_message() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(NODES, node("a", cpu="1"))
        await cluster.passes(60)
        cluster.create(PODS, pod("p", cpu="3"))
        await cluster.passes(30)
        (first,) = events_about(cluster, "Pod")
        cluster.create(NODES, node("b", cpu="2"))
        await cluster.passes(90)
        found = events_about(cluster, "Pod")
        latest = max(found, key=lambda event: str(event["lastTimestamp"]))
        assert (first["type"], first["reason"]) == ("Warning", "FailedScheduling")
        assert first["message"] == "0/1 nodes are available: 1 Insufficient cpu."
        assert latest["message"] == "0/2 nodes are available: 2 Insufficient cpu."
        # The second event was of the time in which the new node was not ready, which is another reason.
        assert [event["count"] for event in found if event["message"] == latest["message"]] == [2]
        assert len(found) == 2
        cluster.create(NODES, node("c", cpu="4"))
        await cluster.passes(90)
        assert cluster.get(PODS, "p")["status"]["phase"] == "Running"

    play(story)


def test_many_unschedulable_pods_of_one_owner_have_few_events() -> None:
    """Ten pods have events of their own; one about the owner, which is counted, covers the others."""

    def replicas(count: int) -> Object:
        template = {"metadata": {"labels": {"app": "a"}}, "spec": pod("any", cpu="3")["spec"]}
        spec = {"replicas": count, "selector": {"matchLabels": {"app": "a"}}, "template": template}
        return {"metadata": {"name": "web"}, "spec": spec}

    async def story(cluster: Cluster) -> None:
        cluster.create(NODES, node("a", cpu="1"))
        await cluster.passes(60)
        cluster.create(REPLICA_SETS, replicas(60))
        await cluster.passes(60)
        (event,) = events_about(cluster, "ReplicaSet")
        assert len(cluster.all(PODS)) == 60
        assert len(events_about(cluster, "Pod")) == 10
        assert event["involvedObject"]["name"] == "web"
        assert event["message"] == (
            "more than 10 pods cannot be scheduled, the others have no event: 0/1 nodes are available: 1 Insufficient"
            " cpu."
        )

        # A pod that is gone makes room for the event of another one.
        before = {event["metadata"]["name"] for event in events_about(cluster, "Pod")}
        for name in {event["involvedObject"]["name"] for event in events_about(cluster, "Pod")}:
            cluster.delete(PODS, name)
        await cluster.passes(60)
        assert {event["metadata"]["name"] for event in events_about(cluster, "Pod")} - before

    play(story)


def test_a_pod_with_scheduling_gates_has_no_event() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(PODS, pod("p", schedulingGates=[{"name": "example.com/later"}]))
        await cluster.passes(60)
        assert scheduled(cluster.get(PODS, "p"))["reason"] == "SchedulingGated"
        assert cluster.all(EVENTS) == []

    play(story)


def test_pending_pods_are_retried_only_after_events_that_may_help() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(PODS, pod("p", cpu="3"))
        cluster.create(NODES, node("small", cpu="2"))
        await cluster.passes(60)
        writes = len(cluster.written)
        await cluster.passes(86_400)
        assert len(cluster.written) == writes
        cluster.create(PODS, pod("filler", cpu="2"))
        cluster.create(NODES, node("large", cpu="4"))
        await cluster.passes(60)
        assert cluster.get(PODS, "p")["spec"]["nodeName"] == "large"
        cluster.create(PODS, pod("q", cpu="2"))
        await cluster.passes(10)
        assert "nodeName" not in cluster.get(PODS, "q")["spec"]
        cluster.delete(PODS, "filler")
        await cluster.passes(60)
        assert cluster.get(PODS, "q")["spec"]["nodeName"] == "small"

    play(story)


class LateAnswers(DirectTransport):
    """Answers so late that the writer's store has shown the write, and what came after it, long before."""

    async def patch(self, *arguments: Any, **options: Any) -> Object:
        answer = await super().patch(*arguments, **options)
        await asyncio.sleep(3)
        return answer


@pytest.mark.parametrize(
    "connect",
    [
        pytest.param(DirectTransport, id="at once"),
        pytest.param(LateAnswers, id="late answers"),
        pytest.param(NeedlessConflicts, id="needless conflicts"),
    ],
)
def test_repeatedly_refused_pods_are_bound_in_the_end(connect: type[DirectTransport]) -> None:
    """Every node that comes up takes one pod, and changes the message of the others."""

    async def story(cluster: Cluster) -> None:
        for number in range(4):
            cluster.create(PODS, pod(f"p-{number}"))
        for number, seconds in enumerate((30, 60, 61, 120)):
            boots = {"simulator.springtide.dev/boot-seconds": str(seconds)}
            item = node(f"node-{number}", cpu="500m")
            cluster.create(NODES, {**item, "metadata": {**item["metadata"], "annotations": boots}})
        await cluster.passes(600)
        assert nodes_of(cluster) == [f"node-{number}" for number in range(4)]
        last = [entry.new for entry in cluster.written if entry.key.name == "p-3" and entry.new is not None]
        reported = list(
            dict.fromkeys(scheduled(item).get("message", "") for item in last if "conditions" in item["status"])
        )
        assert reported[0] == "0/4 nodes are available: 4 node(s) had untolerated taint(s)."
        assert reported[1] == "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) had untolerated taint(s)."
        assert len(cluster.running()) == 4

    play(story, connect=connect)


def test_a_pod_that_cannot_be_bound_does_not_block_others() -> None:
    class NotThisOne(DirectTransport):
        async def create(self, *arguments: Any, **options: Any) -> Object:
            if options.get("name") == "first" and options.get("subresource") == "binding":
                msg = "no"
                raise Forbidden(msg)
            return await super().create(*arguments, **options)

    async def story(cluster: Cluster) -> None:
        cluster.create(NODES, node("a", cpu="500m"))
        cluster.create(PODS, pod("first"))
        await cluster.passes(60)
        cluster.create(PODS, pod("second"))
        await cluster.passes(60)
        assert [item["spec"].get("nodeName") for item in cluster.all(PODS)] == [None, "a"]

    play(story, connect=NotThisOne, failing=True)


def test_a_node_that_is_not_ready_gets_no_pods() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(NODES, node("a"))
        cluster.create(PODS, pod("p"))
        await cluster.passes(10)
        assert "nodeName" not in cluster.get(PODS, "p")["spec"]
        await cluster.passes(25)
        assert cluster.get(PODS, "p")["status"]["phase"] == "Running"

    play(story)


def test_pods_are_scheduled_by_priority_then_age() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 10})
        for name, more in (("z-old", {}), ("a-new", {}), ("urgent", {"priorityClassName": "high"})):
            cluster.create(PODS, pod(name, cpu="1", **more))
            await cluster.passes(5)
        cluster.create(NODES, node("a", cpu="2"))
        await cluster.passes(60)
        bound = [item["metadata"]["name"] for item in cluster.all(PODS) if item["spec"].get("nodeName")]
        assert bound == ["urgent", "z-old"]

    play(story)


def test_gated_pods_wait_for_their_gates() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(NODES, node("a"))
        cluster.create(PODS, pod("p", schedulingGates=[{"name": "example.com/quota"}]))
        await cluster.passes(60)
        assert scheduled(cluster.get(PODS, "p"))["reason"] == "SchedulingGated"
        cluster.patch(PODS, "p", {"spec": {"schedulingGates": None}})
        await cluster.passes(10)
        assert cluster.get(PODS, "p")["spec"]["nodeName"] == "a"

    play(story)


def test_pods_of_other_schedulers_are_left_alone_but_counted() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(NODES, node("a", cpu="1"))
        cluster.create(PODS, pod("theirs", schedulerName="packer"))
        cluster.create(PODS, pod("placed", cpu="800m", nodeName="a"))
        await cluster.passes(60)
        cluster.create(PODS, pod("ours"))
        await cluster.passes(10)
        assert "conditions" not in cluster.get(PODS, "theirs")["status"]
        assert scheduled(cluster.get(PODS, "ours"))["message"] == "0/1 nodes are available: 1 Insufficient cpu."

    play(story)


def test_nodes_are_never_overcommitted() -> None:
    async def story(cluster: Cluster) -> None:
        for number in range(4):
            cluster.create(NODES, node(f"node-{number}", cpu="2", pods="3"))
        for number in range(20):
            cluster.create(PODS, pod(f"p-{number:02}", cpu=("300m", "700m", "1100m")[number % 3]))
        await cluster.passes(60)
        used: dict[str, list[int]] = {}
        for item in cluster.all(PODS):
            cpu = item["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            used.setdefault(item["spec"].get("nodeName", ""), []).append(int(cpu[:-1]))
        waiting = used.pop("")
        assert all(sum(amounts) <= 2000 and len(amounts) <= 3 for amounts in used.values())
        # No pending pod would still fit.
        room = [2000 - sum(amounts) for amounts in used.values() if len(amounts) < 3]
        assert all(amount > free for amount in waiting for free in room)

    play(story, controllers=(*behaviours.NODES, *behaviours.SCHEDULING))


WEB = {"labelSelector": {"matchLabels": {"app": "web"}}}
ZONAL = [
    node("a", cpu="1", labels={"zone": "1"}),
    node("b", cpu="1", labels={"zone": "1"}),
    node("c", cpu="1", labels={"zone": "2"}),
    node("d", cpu="1"),
]


def near(kind: str, **term: Any) -> Object:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", **WEB, **term}]}
    return {"affinity": {kind: required}}


def spread(when: str, **more: Any) -> Object:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when, **WEB}
    return {"topologySpreadConstraints": [{**constraint, **more}]}


@pytest.mark.parametrize(
    ("present", "spec", "expected"),
    [
        pytest.param(
            {"app": "db"},
            {"app": "cache", **near("podAffinity")},
            "0/4 nodes are available: 4 node(s) didn't match pod affinity rules.",
            id="affinity",
        ),
        pytest.param({}, near("podAffinity"), "b", id="affinity-in-the-same-zone"),
        pytest.param({}, near("podAntiAffinity"), "c", id="anti-affinity-chooses-another-zone"),
        pytest.param(
            near("podAntiAffinity"),
            {"nodeSelector": {"zone": "1"}},
            "0/4 nodes are available: 2 node(s) didn't match Pod's node affinity/selector,"
            " 2 node(s) didn't satisfy existing pods anti-affinity rules.",
            id="anti-affinity-of-an-existing-pod",
        ),
        pytest.param(
            {},
            {"nodeSelector": {"zone": "1"}, **near("podAntiAffinity")},
            "0/4 nodes are available: 2 node(s) didn't match Pod's node affinity/selector,"
            " 2 node(s) didn't match pod anti-affinity rules.",
            id="anti-affinity",
        ),
        pytest.param({}, spread("DoNotSchedule"), "c", id="spread-over-zones"),
        pytest.param(
            {},
            {"nodeSelector": {"zone": "1"}, **spread("DoNotSchedule", nodeAffinityPolicy="Ignore")},
            "0/4 nodes are available: 2 node(s) didn't match Pod's node affinity/selector,"
            " 2 node(s) didn't match pod topology spread constraints.",
            id="spread-refuses-the-zone-with-a-pod",
        ),
        pytest.param(
            {},
            {"affinity": affinity({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]})}
            | spread("DoNotSchedule"),
            "0/4 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label),"
            " 3 node(s) didn't match Pod's node affinity/selector.",
            id="spread-needs-the-label",
        ),
        pytest.param({}, spread("ScheduleAnyway"), "c", id="spread-as-a-score"),
        pytest.param(
            {"hostNetwork": True},
            {"hostNetwork": True, "nodeSelector": {"kubernetes.io/hostname": "a"}},
            "0/4 nodes are available: 1 node(s) didn't have free ports for the requested pod ports,"
            " 3 node(s) didn't match Pod's node affinity/selector.",
            id="host-port",
        ),
    ],
)
def test_pods_are_placed_with_regard_to_other_pods(present: dict[str, Any], spec: Object, expected: str) -> None:
    """One pod of the app `web` runs on node a."""

    async def story(cluster: Cluster) -> None:
        for item in ZONAL:
            cluster.create(NODES, item)
        await cluster.passes(60)
        for name, more in (("first", {"nodeName": "a", **present}), ("second", spec)):
            made = pod(name, **{"cpu": "100m", **more})
            if more.get("hostNetwork"):
                made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
            cluster.create(PODS, made)
            await cluster.passes(10)
        found = cluster.get(PODS, "second")
        assert (found["spec"].get("nodeName") or scheduled(found)["message"]) == expected

    play(story)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeSelector": {"zone": "1"}, **near("podAntiAffinity")}, id="anti-affinity"),
        pytest.param(
            {"nodeSelector": {"zone": "1"}, **spread("DoNotSchedule", nodeAffinityPolicy="Ignore")}, id="spread"
        ),
    ],
)
def test_a_pod_is_retried_when_the_pod_in_its_way_is_gone(spec: Object) -> None:
    async def story(cluster: Cluster) -> None:
        for item in ZONAL:
            cluster.create(NODES, item)
        await cluster.passes(60)
        cluster.create(PODS, pod("first", cpu="100m", nodeName="a"))
        cluster.create(PODS, pod("second", cpu="100m", **spec))
        await cluster.passes(10)
        assert "nodeName" not in cluster.get(PODS, "second")["spec"]
        cluster.delete(PODS, "first")
        await cluster.passes(60)
        assert cluster.get(PODS, "second")["spec"]["nodeName"] in ("a", "b")

    play(story)


def test_a_pod_is_retried_when_the_pod_that_it_needs_is_there() -> None:
    async def story(cluster: Cluster) -> None:
        for item in ZONAL:
            cluster.create(NODES, item)
        await cluster.passes(60)
        other = near("podAffinity", labelSelector={"matchLabels": {"app": "db"}})
        cluster.create(PODS, pod("follower", cpu="100m", **other))
        await cluster.passes(10)
        assert "nodeName" not in cluster.get(PODS, "follower")["spec"]
        cluster.create(PODS, pod("first", app="db", cpu="100m", nodeSelector={"zone": "2"}))
        await cluster.passes(10)
        assert cluster.get(PODS, "follower")["spec"]["nodeName"] == "c"

    play(story)


def nominate(cluster: Cluster, name: str, node_name: str) -> None:
    change = Patch.merge({"status": {"nominatedNodeName": node_name}})
    cluster.server.patch(PODS, Key("default", name), change, USER, subresource="status")


def test_a_pod_is_tried_first_on_the_node_that_it_is_nominated_for() -> None:
    async def story(cluster: Cluster) -> None:
        for item in SMALL:
            cluster.create(NODES, item)
        await cluster.passes(60)
        cluster.create(PODS, pod("p"))
        nominate(cluster, "p", "b")
        await cluster.passes(10)
        assert cluster.get(PODS, "p")["spec"]["nodeName"] == "b"

    play(story)


@pytest.mark.parametrize(
    ("other", "more", "expected"),
    [
        pytest.param("same", {}, ["b", "a"], id="against-an-older-pod-of-the-same-priority"),
        pytest.param("high", {}, ["a", "b"], id="not-against-a-higher-priority"),
        pytest.param(
            "same", {"tolerations": [{"operator": "Exists"}], **near("podAffinity")}, ["b", "a"], id="affinity"
        ),
    ],
)
def test_a_nominated_pod_keeps_its_room(other: str, more: Object, expected: list[str]) -> None:
    """Node a is the larger one, on which the other pod, which is tried first, would go."""

    async def story(cluster: Cluster) -> None:
        cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 10})
        for name, cpu in (("a", "2"), ("b", "1800m")):
            cluster.create(NODES, node(name, cpu=cpu, labels={"zone": "1"}))
        await cluster.passes(60)
        priority = {"priorityClassName": "high"} if other == "high" else {}
        cluster.create(PODS, pod("a-other", cpu="1500m", **priority, **more))
        cluster.create(PODS, pod("b-nominated", cpu="1500m"))
        nominate(cluster, "b-nominated", "a")
        await cluster.passes(10)
        assert [item["spec"].get("nodeName") for item in cluster.all(PODS)] == expected

    play(story)


def test_a_nomination_is_cleared_when_the_pod_fits_nowhere() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(NODES, node("a", cpu="1"))
        await cluster.passes(60)
        cluster.create(PODS, pod("a-nominated", cpu="3"))
        nominate(cluster, "a-nominated", "a")
        cluster.create(PODS, pod("b-small", cpu="700m"))
        await cluster.passes(10)
        nominated, small = cluster.all(PODS)
        assert "nominatedNodeName" not in nominated["status"]
        assert scheduled(nominated)["message"] == "0/1 nodes are available: 1 Insufficient cpu."
        assert small["spec"]["nodeName"] == "a"

    play(story)


def test_room_that_is_kept_is_missing_in_the_message() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.create(NODES, node("a", cpu="1", spec={"taints": [{"key": "x", "effect": "NoSchedule"}]}))
        await cluster.passes(60)
        cluster.create(PODS, pod("a-other", cpu="700m", tolerations=[{"operator": "Exists"}]))
        cluster.create(PODS, pod("b-nominated", cpu="700m"))
        nominate(cluster, "b-nominated", "a")
        await cluster.passes(1)
        messages = [entry.new for entry in cluster.written if entry.key.name == "a-other" and entry.new is not None]
        assert "0/1 nodes are available: 1 Insufficient cpu." in [
            scheduled(item).get("message") for item in messages if "conditions" in item["status"]
        ]
        # The nominated pod does not tolerate the taint: its nomination is cleared, and the other pod gets the room.
        await cluster.passes(10)
        assert [item["spec"].get("nodeName") for item in cluster.all(PODS)] == ["a", None]

    play(story)


STORAGE_CLASS = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CLAIM = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUME = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
WITH_CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def claim(**spec: Any) -> Object:
    requests = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": requests, **spec}}


def volume(zone: str) -> Object:
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "disk.example.com", "volumeHandle": "1"},
        "nodeAffinity": {"required": required},
    }
    return {"metadata": {"name": "disk"}, "spec": spec}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], "0/4 nodes are available: claim data does not exist.", id="no-claim"),
        pytest.param([(CLAIM, claim())], "a", id="a-claim-that-no-controller-binds"),
        pytest.param([(VOLUME, volume("2")), (CLAIM, claim(volumeName="disk"))], "c", id="the-zone-of-its-volume"),
        pytest.param(
            [(VOLUME, volume("3")), (CLAIM, claim(volumeName="disk"))],
            "0/4 nodes are available: 4 node(s) didn't match PersistentVolume's node affinity.",
            id="a-volume-elsewhere",
        ),
        pytest.param(
            [
                (
                    STORAGE_CLASS,
                    {
                        "metadata": {"name": "zonal"},
                        "provisioner": "disk.example.com",
                        "volumeBindingMode": "WaitForFirstConsumer",
                        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["2"]}]}],
                    },
                ),
                (CLAIM, claim(storageClassName="zonal")),
            ],
            "c",
            id="where-its-class-provisions",
        ),
    ],
)
def test_pods_go_where_their_volumes_are(objects: list[tuple[Resource, Object]], expected: str) -> None:
    async def story(cluster: Cluster) -> None:
        for item in ZONAL:
            cluster.create(NODES, item)
        await cluster.passes(60)
        cluster.create(PODS, pod("p", cpu="100m", **WITH_CLAIM))
        await cluster.passes(10)
        for resource, body in objects:
            cluster.create(resource, body)
        await cluster.passes(10)
        found = cluster.get(PODS, "p")
        assert (found["spec"].get("nodeName") or scheduled(found)["message"]) == expected

    play(story)
