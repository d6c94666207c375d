"""The garbage collector and the namespace controller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.apiserver.objects import (
    CONFIG_MAPS,
    DEFINITIONS,
    NAMESPACES,
    NODES,
    PODS,
    START,
    WIDGETS,
    WRITE,
    config_map,
    definition,
    key,
    make_server,
    owner,
    pod,
    widget,
)

from springtide.apiserver.garbage_collection import GarbageCollector, NamespaceController
from springtide.apiserver.server import ApiServer, CommittedWrite
from springtide.cluster.errors import Forbidden, NotFound
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import Patch, Propagation
from springtide.simulator.virtual_time import VirtualClock, run


def _make(server: ApiServer, name: str, *owners: Object, block: bool = False) -> Object:
    references = [owner(each, block=block, controller=False) for each in owners]
    return server.create(CONFIG_MAPS, config_map(name, ownerReferences=references), WRITE, namespace="default")


def _names(server: ApiServer, resource: Resource = CONFIG_MAPS) -> list[str]:
    return [item["metadata"]["name"] for item in server.list(Selection(resource)).items]


@pytest.fixture
def server() -> ApiServer:
    return make_server()


@pytest.fixture
def collector(server: ApiServer) -> GarbageCollector:
    return GarbageCollector(server)


def test_dependents_are_deleted_level_by_level(server: ApiServer, collector: GarbageCollector) -> None:
    parent = _make(server, "parent")
    child = _make(server, "child", parent)
    _make(server, "grandchild", child)
    _make(server, "stranger")
    collector.collect()
    assert _names(server) == ["child", "grandchild", "parent", "stranger"]
    server.delete(CONFIG_MAPS, key("parent"), WRITE)
    assert _names(server) == ["child", "grandchild", "stranger"]
    collector.collect()
    assert _names(server) == ["stranger"]


def test_one_present_owner_keeps_a_dependent(server: ApiServer, collector: GarbageCollector) -> None:
    first, second = _make(server, "first"), _make(server, "second")
    _make(server, "child", first, second)
    server.delete(CONFIG_MAPS, key("first"), WRITE)
    collector.collect()
    references = server.get(CONFIG_MAPS, key("child"))["metadata"]["ownerReferences"]
    assert [each["name"] for each in references] == ["second"]
    server.delete(CONFIG_MAPS, key("second"), WRITE)
    collector.collect()
    assert _names(server) == []


def test_an_owner_with_another_uid_is_not_the_owner(server: ApiServer, collector: GarbageCollector) -> None:
    parent = _make(server, "parent")
    _make(server, "child", parent)
    server.delete(CONFIG_MAPS, key("parent"), WRITE)
    _make(server, "parent")
    collector.collect()
    assert _names(server) == ["parent"]


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        pytest.param({}, False, id="owner never existed"),
        pytest.param({"apiVersion": "example.com/v1", "kind": "Widget"}, True, id="kind is not served"),
    ],
)
def test_a_dependent_created_after_its_owner_is_gone(
    server: ApiServer, collector: GarbageCollector, change: Object, kept: bool
) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": "u", **change}
    server.create(CONFIG_MAPS, config_map("child", ownerReferences=[reference]), WRITE, namespace="default")
    collector.collect()
    assert _names(server) == (["child"] if kept else [])


def test_an_owner_in_another_namespace_does_not_count(server: ApiServer, collector: GarbageCollector) -> None:
    elsewhere = server.create(CONFIG_MAPS, config_map("parent"), WRITE, namespace="kube-system")
    _make(server, "child", elsewhere)
    collector.collect()
    assert _names(server) == ["parent"]


def test_a_cluster_scoped_owner_counts_in_all_namespaces(server: ApiServer, collector: GarbageCollector) -> None:
    node = server.create(NODES, {"metadata": {"name": "n"}}, WRITE)
    _make(server, "child", node)
    collector.collect()
    assert _names(server) == ["child"]
    server.delete(NODES, Key("", "n"), WRITE)
    collector.collect()
    assert _names(server) == []


def test_foreground_deletion_waits_for_blocking_dependents(server: ApiServer, collector: GarbageCollector) -> None:
    parent = _make(server, "parent")
    references = [owner(parent, block=True)]
    held = config_map("held", ownerReferences=references, finalizers=["example.com/a"])
    server.create(CONFIG_MAPS, held, WRITE, namespace="default")
    _make(server, "free", parent)
    server.delete(CONFIG_MAPS, key("parent"), WRITE, propagation=Propagation.FOREGROUND)
    collector.collect()
    assert _names(server) == ["held", "parent"]
    assert server.get(CONFIG_MAPS, key("parent"))["metadata"]["finalizers"] == ["foregroundDeletion"]
    server.patch(CONFIG_MAPS, key("held"), Patch.merge({"metadata": {"finalizers": None}}), WRITE)
    collector.collect()
    assert _names(server) == []


@pytest.mark.parametrize(
    "references",
    [
        pytest.param(lambda _: None, id="reference removed"),
        pytest.param(lambda parent: [owner(parent)], id="no longer blocking"),
    ],
)
def test_foreground_deletion_ends_when_no_dependent_blocks(
    server: ApiServer, collector: GarbageCollector, references: Callable[[Object], Any]
) -> None:
    parent = _make(server, "parent")
    held = config_map("held", ownerReferences=[owner(parent, block=True)], finalizers=["example.com/a"])
    server.create(CONFIG_MAPS, held, WRITE, namespace="default")
    server.delete(CONFIG_MAPS, key("parent"), WRITE, propagation=Propagation.FOREGROUND)
    collector.collect()
    change = Patch.merge({"metadata": {"ownerReferences": references(parent)}})
    server.patch(CONFIG_MAPS, key("held"), change, WRITE)
    collector.collect()
    assert _names(server) == ["held"]


def test_foreground_deletion_reaches_all_levels(server: ApiServer, collector: GarbageCollector) -> None:
    parent = _make(server, "1")
    child = _make(server, "2", parent, block=True)
    _make(server, "3", child, block=True)
    gone: list[str] = []

    def watching(written: CommittedWrite) -> None:
        if written.new is None:
            gone.append(written.key.name)

    server.observers.append(watching)
    server.delete(CONFIG_MAPS, key("1"), WRITE, propagation=Propagation.FOREGROUND)
    collector.collect()
    assert gone == ["3", "2", "1"]


def test_a_cycle_of_owners_is_deleted(server: ApiServer, collector: GarbageCollector) -> None:
    first = _make(server, "first")
    second = _make(server, "second", first, block=True)
    back = {"metadata": {"ownerReferences": [owner(second, block=True)]}}
    server.patch(CONFIG_MAPS, key("first"), Patch.merge(back), WRITE)
    collector.collect()
    server.delete(CONFIG_MAPS, key("first"), WRITE, propagation=Propagation.FOREGROUND)
    collector.collect()
    assert _names(server) == []


def test_orphans_stay_without_their_owner_reference(server: ApiServer, collector: GarbageCollector) -> None:
    parent = _make(server, "parent")
    _make(server, "child", parent)
    server.delete(CONFIG_MAPS, key("parent"), WRITE, propagation=Propagation.ORPHAN)
    collector.collect()
    assert _names(server) == ["child"]
    assert "ownerReferences" not in server.get(CONFIG_MAPS, key("child"))["metadata"]


def test_a_late_collector_processes_existing_objects(server: ApiServer) -> None:
    parent = _make(server, "parent")
    _make(server, "child", parent)
    server.delete(CONFIG_MAPS, key("parent"), WRITE)
    GarbageCollector(server).collect()
    assert _names(server) == []


def _run_steps(story: Callable[[ApiServer], Iterator[int]], *, delay: float) -> None:
    """Run a generator whose steps yield the seconds until the next one."""

    async def main(clock: VirtualClock) -> None:
        server = make_server(now=clock.now)
        tasks = [
            asyncio.create_task(GarbageCollector(server, delay=delay).run(clock)),
            asyncio.create_task(NamespaceController(server, delay=delay).run(clock)),
        ]
        for seconds in story(server):
            await clock.sleep(seconds)
        for task in tasks:
            assert not task.done()
            task.cancel()

    run(main, start=START)


def test_collects_after_its_delay() -> None:
    def story(server: ApiServer) -> Iterator[int]:
        for _ in range(2):
            parent = _make(server, "parent")
            _make(server, "child", parent)
            yield 10
            server.delete(CONFIG_MAPS, key("parent"), WRITE)
            yield 1
            assert _names(server) == ["child"]
            yield 2
            assert _names(server) == []

    _run_steps(story, delay=2)


def test_a_namespace_is_deleted_with_its_contents() -> None:
    def story(server: ApiServer) -> Iterator[int]:
        made = server.create(NAMESPACES, {"metadata": {"name": "team"}}, WRITE)
        assert (made["spec"], made["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
        server.create(DEFINITIONS, definition(), WRITE)
        server.create(WIDGETS, widget(), WRITE, namespace="team")
        server.create(CONFIG_MAPS, config_map(finalizers=["example.com/a"]), WRITE, namespace="team")
        server.create(PODS, pod(), WRITE, namespace="team")
        server.delete(NAMESPACES, Key("", "team"), WRITE)
        assert server.get(NAMESPACES, Key("", "team"))["status"]["phase"] == "Terminating"
        with pytest.raises(Forbidden, match="because it is being terminated") as caught:
            server.create(CONFIG_MAPS, config_map("late"), WRITE, namespace="team")
        assert [cause.reason for cause in caught.value.causes] == ["NamespaceTerminating"]
        yield 5
        assert (_names(server, WIDGETS), _names(server, PODS)) == ([], [])
        status = server.get(NAMESPACES, Key("", "team"))["status"]
        text = {each["type"]: (each["status"], each["message"]) for each in status["conditions"]}
        assert text["NamespaceContentRemaining"] == (
            "True",
            "Some resources are remaining: configmaps. has 1 resource instances",
        )
        assert text["NamespaceFinalizersRemaining"] == (
            "True",
            "Some content in the namespace has finalizers remaining: example.com/a in 1 resource instances",
        )
        assert text["NamespaceDeletionContentFailure"][0] == "False"
        before = server.revision
        yield 1000
        assert server.revision == before
        released = Patch.merge({"metadata": {"finalizers": None}})
        server.patch(CONFIG_MAPS, Key("team", "a"), released, WRITE)
        yield 5
        with pytest.raises(NotFound, match='namespaces "team" not found'):
            server.get(NAMESPACES, Key("", "team"))

    _run_steps(story, delay=1)


def test_updates_cannot_remove_the_namespace_finalizer() -> None:
    server = make_server()
    server.create(NAMESPACES, {"metadata": {"name": "team"}}, WRITE)
    changed = server.patch(NAMESPACES, Key("", "team"), Patch.merge({"spec": {"finalizers": None}}), WRITE)
    assert changed["spec"] == {"finalizers": ["kubernetes"]}
    server.delete(NAMESPACES, Key("", "team"), WRITE)
    body = {"metadata": {"name": "team"}, "spec": {"finalizers": []}}
    server.update(NAMESPACES, Key("", "team"), body, WRITE, subresource="finalize")
    assert "team" not in _names(server, NAMESPACES)
