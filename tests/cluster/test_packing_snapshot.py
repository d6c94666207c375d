"""The packer's snapshot as shared state: it follows the caches, term by term, and stays as it is while it is used."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.cluster.manager_process import Process, StampController, stamp_controller
from tests.cluster.memory_cluster import CRDS, USER, MemoryCluster, do_nothing
from tests.cluster.test_manager import play
from tests.cluster.test_state import refuse_the_lease
from tests.packing.test_snapshot import assert_equal

from springtide.apis.core.policies import class_with_defaults
from springtide.apis.crds import Flavour, all_crds
from springtide.cluster.compute import InlineCompute, LiveCompute
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Cached
from springtide.cluster.packing_snapshot import (
    ALL_CSI_NODES,
    ALL_DAEMON_SETS,
    ALL_LIMIT_RANGES,
    ALL_NAMESPACES,
    ALL_NODE_CLAIMS,
    ALL_STORAGE_CLASSES,
    ALL_VOLUME_CLAIMS,
    ALL_VOLUMES,
    READ_PERMISSIONS,
    PackingSnapshot,
)
from springtide.cluster.pods_and_nodes import ALL_NODES, ALL_PODS
from springtide.cluster.resources import Key, Object, Selection
from springtide.cluster.state import StateWatch
from springtide.cluster.store import Delta
from springtide.cluster.transport import Patch
from springtide.packing.node_claims import NodeClaimRecord
from springtide.packing.snapshot import Snapshot
from springtide.simulator.virtual_time import VirtualClock

ZONE = "topology.kubernetes.io/zone"
DRIVER = "disks.example.com"
READER = stamp_controller(name="reader", states=(PackingSnapshot,))


def create(
    world: MemoryCluster, cached: Cached, name: str, *, labels: dict[str, str] | None = None, **parts: Any
) -> None:
    resource = cached.selection.resource
    namespace = "work" if resource.namespaced else ""
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "labels": labels or {}, **({"namespace": namespace} if namespace else {})},
        **parts,
    }
    made = world.server.create(resource, body, USER, namespace=namespace)
    if parts.get("status"):
        body["metadata"] = {**made["metadata"], "labels": labels or {}}
        world.server.update(resource, key_of(cached, name), body, USER, subresource="status")


def key_of(cached: Cached, name: str) -> Key:
    return Key("work" if cached.selection.resource.namespaced else "", name)


def change(world: MemoryCluster, cached: Cached, name: str, subresource: str = "", **parts: Any) -> None:
    world.server.patch(
        cached.selection.resource, key_of(cached, name), Patch.merge(parts), USER, subresource=subresource
    )


def delete(world: MemoryCluster, cached: Cached, name: str) -> None:
    world.server.delete(cached.selection.resource, key_of(cached, name), USER)


def containers(cpu: str) -> list[Object]:
    return [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]


def claiming(name: str) -> list[Object]:
    return [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]


def create_node(world: MemoryCluster, name: str, cpu: str = "4", zone: str = "a") -> None:
    labels = {"kubernetes.io/hostname": name, ZONE: zone}
    create(world, ALL_NODES, name, labels=labels, status={"allocatable": {"cpu": cpu, "pods": "10"}})
    change(world, ALL_NODES, name, spec={"taints": None})  # which the API server adds until a node is ready


def create_pod(world: MemoryCluster, name: str, cpu: str = "1", node: str = "", **spec: Any) -> None:
    bound = {"nodeName": node} if node else {}
    create(world, ALL_PODS, name, labels={"app": "web"}, spec={"containers": containers(cpu), **bound, **spec})


def create_claim(world: MemoryCluster, name: str, node: str = "") -> None:
    requirements: list[Object] = [{"key": ZONE, "operator": "In", "values": ["b"]}]
    spec = {"nodeClassRef": {"group": "g.io", "kind": "K", "name": "n"}, "requirements": requirements}
    promised = {"allocatable": {"cpu": "7", "pods": "10"}, "capacity": {"cpu": "8"}}
    create(world, ALL_NODE_CLAIMS, name, spec=spec, status=promised | ({"nodeName": node} if node else {}))


def create_claimed_node(world: MemoryCluster, name: str) -> None:
    create_node(world, name)
    create_claim(world, f"claim-of-{name}", node=name)


def begin_to_delete_claim(world: MemoryCluster, name: str) -> None:
    """Delete a claim that a finalizer keeps."""
    change(world, ALL_NODE_CLAIMS, name, metadata={"finalizers": ["example.com/wait"]})
    delete(world, ALL_NODE_CLAIMS, name)


def populate(world: MemoryCluster) -> None:
    """Create objects of all kinds that a snapshot is made of."""
    for crd in all_crds(Flavour.EXTENDED):
        if crd["spec"]["names"]["kind"] == "NodeClaim":
            world.server.create(CRDS, crd, USER)
    create_node(world, "n1")
    create_node(world, "n2", zone="b")
    create(
        world, ALL_CSI_NODES, "n1", spec={"drivers": [{"name": DRIVER, "nodeID": "n1", "allocatable": {"count": 2}}]}
    )
    create(world, ALL_STORAGE_CLASSES, "fast", provisioner=DRIVER, volumeBindingMode="WaitForFirstConsumer")
    create(
        world,
        ALL_VOLUMES,
        "disk",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": DRIVER, "volumeHandle": "h"},
            "claimRef": {"namespace": "work", "name": "data"},
            "storageClassName": "fast",
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]
                }
            },
        },
    )
    create(
        world,
        ALL_VOLUME_CLAIMS,
        "data",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
            "volumeName": "disk",
        },
        status={"phase": "Bound"},
    )
    create(
        world, ALL_LIMIT_RANGES, "defaults", spec={"limits": [{"type": "Container", "defaultRequest": {"cpu": "300m"}}]}
    )
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    create(world, ALL_DAEMON_SETS, "agent", spec={"selector": {"matchLabels": {"app": "agent"}}, "template": template})
    create(
        world,
        ALL_VOLUME_CLAIMS,
        "new",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
        },
    )
    create_claim(world, "soon")
    create_pod(world, "bound", node="n1")
    create_pod(world, "new-volume", volumes=claiming("new"))
    create_pod(world, "pending", cpu="2", volumes=claiming("data"))
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE, "namespaceSelector": {}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    create_pod(world, "apart", affinity=anti)


def records(world: MemoryCluster, cached: Cached) -> list[tuple[Key, Any]]:
    """Make the records of what the server has."""
    selection = cached.selection
    items = world.server.list(Selection(selection.resource)).items
    return [
        (key_of(cached, item["metadata"]["name"]), cached.record(msgspec.convert(item, selection.view)))
        for item in items
    ]


def built(world: MemoryCluster) -> Snapshot:
    """Build the snapshot of what the server has, in another order than the state does."""
    snapshot = Snapshot()
    for key, pod in reversed(records(world, ALL_PODS)):
        snapshot.put_pod(key, pod)
    limits = [record for _, record in records(world, ALL_LIMIT_RANGES)]
    for key, daemon_set in records(world, ALL_DAEMON_SETS):
        pod_class = class_with_defaults(daemon_set.pod_class, limits)
        snapshot.put_daemon_set(key, msgspec.structs.replace(daemon_set, pod_class=pod_class))
    for _, claim in records(world, ALL_NODE_CLAIMS):
        assert isinstance(claim, NodeClaimRecord)
        if not claim.deleting:
            snapshot.put_claim(claim.node)
    for _, node in reversed(records(world, ALL_NODES)):
        snapshot.put_node(node)
    put: tuple[tuple[Cached, Callable[[Any], None]], ...] = (
        (ALL_VOLUME_CLAIMS, snapshot.put_volume_claim),
        (ALL_VOLUMES, snapshot.put_volume),
        (ALL_STORAGE_CLASSES, snapshot.put_storage_class),
        (ALL_CSI_NODES, snapshot.put_csi_node),
    )
    for cached, put_record in put:
        for _, record in records(world, cached):
            put_record(record)
    for _, namespace in records(world, ALL_NAMESPACES):
        snapshot.put_namespace(namespace.name, namespace.labels)
    return snapshot


def room(snapshot: Snapshot) -> dict[str, int]:
    """The free milli-cpu of each node."""
    fork = snapshot.fork()
    return dict(zip(fork.names(), fork.free[0].tolist(), strict=True))


def pending(snapshot: Snapshot) -> list[str]:
    return sorted(name for keys in snapshot.pending().values() for _, name in keys)


def test_the_snapshot_equals_one_that_is_built_of_the_same_records() -> None:
    """It is complete when a reader starts; DaemonSets request what the limit range of their namespace adds."""
    found: list[dict[str, int]] = []

    def start(self: StampController, context: ControllerContext) -> None:
        StampController.__init__(self, context)
        found.append(room(context.state(PackingSnapshot).snapshot))

    kind = stamp_controller(name="reader", states=(PackingSnapshot,), __init__=start)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        populate(world)
        process = Process(world, clock, kind)
        await clock.sleep(1)
        snapshot = process.manager.state(PackingSnapshot).snapshot
        assert found == [{"n1": 2700, "n2": 3700, "nodeclaim/soon": 6700}]
        assert pending(snapshot) == ["apart", "new-volume", "pending"]
        assert_equal(snapshot, built(world))
        await process.manager.stop()

    play(story)


CHANGES: dict[str, Callable[[MemoryCluster], None]] = {
    "pod-added": lambda world: create_pod(world, "other", cpu="500m"),
    "pod-finished": lambda world: change(world, ALL_PODS, "bound", "status", status={"phase": "Succeeded"}),
    "pod-relabelled": lambda world: change(world, ALL_PODS, "bound", metadata={"labels": {"app": "db"}}),
    "pod-removed": lambda world: delete(world, ALL_PODS, "pending"),
    "node-added": lambda world: create_node(world, "n3", cpu="9"),
    "node-cordoned": lambda world: change(world, ALL_NODES, "n2", spec={"unschedulable": True}),
    "node-removed": lambda world: delete(world, ALL_NODES, "n1"),
    "node-of-a-claim": lambda world: create_claimed_node(world, "n3"),
    "claim-removed": lambda world: delete(world, ALL_NODE_CLAIMS, "soon"),
    "claim-being-deleted": lambda world: begin_to_delete_claim(world, "soon"),
    "namespace-added": lambda world: create(world, ALL_NAMESPACES, "team", labels={"team": "a"}),
    "namespace-relabelled": lambda world: change(world, ALL_NAMESPACES, "work", metadata={"labels": {"team": "b"}}),
    "limit-range-changed": lambda world: change(
        world, ALL_LIMIT_RANGES, "defaults", spec={"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]}
    ),
    "limit-range-removed": lambda world: delete(world, ALL_LIMIT_RANGES, "defaults"),
    "daemon-set-removed": lambda world: delete(world, ALL_DAEMON_SETS, "agent"),
    "csi-node-removed": lambda world: delete(world, ALL_CSI_NODES, "n1"),
    "storage-class-removed": lambda world: delete(world, ALL_STORAGE_CLASSES, "fast"),
    "volume-removed": lambda world: delete(world, ALL_VOLUMES, "disk"),
    "volume-claim-removed": lambda world: delete(world, ALL_VOLUME_CLAIMS, "data"),
}


@pytest.mark.parametrize("event", CHANGES.values(), ids=CHANGES)
def test_a_change_in_the_cluster_changes_the_snapshot(event: Callable[[MemoryCluster], None]) -> None:
    """As if it was built anew; a `StateWatch` sees the delta."""
    heard: list[Delta[Any]] = []

    def keys(delta: Delta[Any]) -> tuple[Key, ...]:
        heard.append(delta)
        return ()

    kind = stamp_controller(name="reader", states=(StateWatch(PackingSnapshot, keys),))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        populate(world)
        process = Process(world, clock, kind)
        await clock.sleep(1)
        heard.clear()
        event(world)
        await clock.sleep(1)
        assert heard
        assert_equal(process.manager.state(PackingSnapshot).snapshot, built(world))
        await process.manager.stop()

    play(story)


def test_a_namespace_that_is_removed_is_selected_no_more() -> None:
    """Pods of it that are still there do not count for affinity terms that select namespaces."""
    namespace = ALL_NAMESPACES.record(
        msgspec.convert({"metadata": {"name": "team", "labels": {"team": "a"}}}, ALL_NAMESPACES.selection.view)
    )
    term = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": {"matchLabels": {"team": "a"}},
    }
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    node = {
        "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }

    def pod(name: str, namespace: str, **spec: Any) -> Delta[Any]:
        thing = {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"containers": containers("1"), **spec}}
        return Delta(Key(namespace, name), None, ALL_PODS.record(msgspec.convert(thing, ALL_PODS.selection.view)))

    def left() -> int:
        fork = state.snapshot.fork()
        return fork.place_shape(state.snapshot.shape_at(("work", "apart")), 1)

    state, key = PackingSnapshot(), Key("", "team")
    state.apply(ALL_NAMESPACES, Delta(key, None, namespace))
    record = ALL_NODES.record(msgspec.convert(node, ALL_NODES.selection.view))
    state.apply(ALL_NODES, Delta(Key("", "n"), None, record))
    state.apply(ALL_PODS, pod("there", "team", nodeName="n"))
    state.apply(ALL_PODS, pod("apart", "work", affinity=anti))
    assert left() == 1
    state.apply(ALL_NAMESPACES, Delta(key, namespace, None))
    assert left() == 0


def test_a_claim_that_is_being_deleted_promises_nothing() -> None:
    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        populate(world)
        process = Process(world, clock, READER)
        await clock.sleep(1)
        begin_to_delete_claim(world, "soon")
        await clock.sleep(1)
        assert list(room(process.manager.state(PackingSnapshot).snapshot)) == ["n1", "n2"]
        await process.manager.stop()

    play(story)


def test_kinds_that_are_not_installed_may_be_absent() -> None:
    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        create_node(world, "n")
        process = Process(world, clock, READER)
        await clock.sleep(30)
        assert room(process.manager.state(PackingSnapshot).snapshot) == {"n": 4000}
        await process.manager.stop()

    play(story)


def test_a_new_term_begins_with_an_empty_snapshot() -> None:
    """What changed while another process led is in it."""

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        populate(world)
        process = Process(world, clock, READER, identity="one")
        await clock.sleep(10)
        state = process.manager.state(PackingSnapshot)
        first = state.snapshot
        assert_equal(first, built(world))

        process.line.before = refuse_the_lease
        await clock.sleep(30)
        assert not process.manager.leading
        assert room(state.snapshot) == {}
        create_pod(world, "later")
        delete(world, ALL_NODES, "n2")

        process.line.before = do_nothing
        await clock.sleep(60)
        assert process.manager.leading
        assert state.snapshot is not first
        assert_equal(state.snapshot, built(world))
        await process.manager.stop()

    play(story)


def test_changes_are_applied_when_the_snapshot_is_used_no_more() -> None:
    """Computations use it one after the other, and the second sees what came during the first."""

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        populate(world)
        process = Process(world, clock, READER)
        await clock.sleep(1)
        state = process.manager.state(PackingSnapshot)
        before, heard = room(state.snapshot), []
        state.subscribe(lambda delta: heard.append(delta.key.name))

        second = None
        async with state.held() as snapshot:
            create_node(world, "n3")
            create_pod(world, "more", node="n2")
            await clock.sleep(1)
            second = asyncio.ensure_future(state.run(InlineCompute(clock), room, cost=5.0))
            await clock.sleep(1)
            assert (room(snapshot), heard, second.done()) == (before, [], False)

        assert sorted(set(heard)) == ["more", "n3"]
        after = before | {"n2": 2700, "n3": 3700}
        assert room(state.snapshot) == after
        create_node(world, "n4")
        assert await second == after
        assert "n4" in room(state.snapshot)
        assert_equal(state.snapshot, built(world))
        await process.manager.stop()

    play(story)


def test_a_computation_outlives_the_term() -> None:
    """The next one begins with another snapshot, and does not wait for it."""

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        populate(world)
        process = Process(world, clock, READER, identity="one")
        await clock.sleep(10)
        state = process.manager.state(PackingSnapshot)
        async with state.held() as snapshot:
            before = room(snapshot)
            create_node(world, "n0")
            await clock.sleep(1)
            process.line.before = refuse_the_lease
            await clock.sleep(30)
            create_node(world, "n3")
            process.line.before = do_nothing
            await clock.sleep(60)
            assert process.manager.leading
            assert {"n0", "n3"} <= room(state.snapshot).keys()
            assert room(snapshot) == before
            heard: list[Delta[Any]] = []
            state.subscribe(heard.append)
        assert (heard, room(snapshot)) == ([], before)
        assert_equal(state.snapshot, built(world))
        await process.manager.stop()

    play(story)


def test_a_computation_in_a_thread_is_alone_until_it_is_complete(caplog: pytest.LogCaptureFixture) -> None:
    """Also after its caller has been cancelled; a change that cannot be applied is left out."""
    started, go_on = threading.Event(), threading.Event()

    def compute(snapshot: Snapshot, name: str) -> tuple[str, list[str]]:
        started.set()
        go_on.wait(60)
        return name, pending(snapshot)

    pod = ALL_PODS.record(
        msgspec.convert({"metadata": {"name": "p"}, "spec": {"containers": []}}, ALL_PODS.selection.view)
    )

    async def main() -> None:
        state, threads = PackingSnapshot(), LiveCompute()
        state.apply(ALL_PODS, Delta(Key("work", "a"), None, pod))
        call = asyncio.ensure_future(state.run(threads, compute, "first", cost=0))
        await asyncio.get_running_loop().run_in_executor(None, started.wait)
        state.apply(ALL_NODES, Delta(Key("", "bad"), None, object()))
        state.apply(ALL_PODS, Delta(Key("work", "b"), None, pod))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert pending(state.snapshot) == ["a"]
        go_on.set()
        assert await state.run(threads, compute, "second", cost=0) == ("second", ["a", "b"])
        with pytest.raises(ZeroDivisionError):
            await state.run(threads, lambda snapshot: 1 // 0, cost=0)
        async with state.held() as snapshot:
            assert pending(snapshot) == ["a", "b"]
        threads.close()

    asyncio.run(main())
    assert "the change of bad cannot be applied" in caplog.text


def test_readers_may_read_all_sources() -> None:
    wanted = {cached.selection.resource for cached in (*PackingSnapshot.sources, *PackingSnapshot.optional_sources)}
    assert {each.resource for each in READ_PERMISSIONS if each.verbs == ("get", "list", "watch")} == wanted
