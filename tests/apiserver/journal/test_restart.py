"""An API server on a restored storage continues as if it had not been restarted."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.apiserver.journal.objects import HISTORY
from tests.apiserver.objects import (
    CONFIG_MAPS,
    DEFINITIONS,
    DRY,
    NAMESPACES,
    PODS,
    START,
    WIDGETS,
    WIDGETS_BETA,
    WRITE,
    config_map,
    definition,
    key,
    pod,
    widget,
)

from springtide.apis.crds import Flavour, all_crds
from springtide.apiserver.garbage_collection import NamespaceController
from springtide.apiserver.journal import open_journal, restore_storage
from springtide.apiserver.server import ApiServer
from springtide.apiserver.storage import CollectionId, Journal, Storage, StoredChange
from springtide.cluster.errors import AlreadyExists, Gone, MethodNotAllowed, NotFound, ServerError
from springtide.cluster.resources import Key, Object, Selection, key_of
from springtide.cluster.transport import Patch
from springtide.simulator.bootstrap import install

_WIDGETS_CRD = Key("", "widgets.example.com")


@contextmanager
def running_server(path: Path, *, crash: bool = False) -> Iterator[ApiServer]:
    """Start a server on a folder, and end it cleanly or by a crash."""
    journal = open_journal(path)
    try:
        storage = restore_storage(journal, history=HISTORY)
        yield ApiServer(now=lambda: START, random=Random(7), storage=storage)
    finally:
        if crash:
            journal.abandon()
        else:
            journal.close()


def _everything(server: ApiServer) -> dict[str, Any]:
    return {
        f"{kind.resource}/{kind.resource.version}": server.list(Selection(kind.resource)).items
        for kind in server.catalogue.all()
        if "list" in kind.verbs
    }


def test_a_restart_keeps_everything(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        server.create(DEFINITIONS, definition(beta=True), WRITE)
        server.create(WIDGETS, widget(size=5), WRITE, namespace="default")
        server.create(PODS, pod(), WRITE, namespace="default")
        server.create(CONFIG_MAPS, config_map("never"), DRY, namespace="default")
        before, revision = _everything(server), server.revision
    with running_server(tmp_path) as server:
        assert (server.revision, _everything(server)) == (revision, before)
        assert server.get(WIDGETS_BETA, key("w"))["apiVersion"] == "example.com/v1beta1"


@pytest.mark.parametrize("crash", [pytest.param(False, id="clean shutdown"), pytest.param(True, id="crash")])
def test_a_watch_continues_across_a_restart(tmp_path: Path, crash: bool) -> None:
    with running_server(tmp_path, crash=crash) as server:
        first = server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        server.patch(CONFIG_MAPS, key("a"), Patch.merge({"data": {"k": "w"}}), WRITE)
        server.delete(CONFIG_MAPS, key("a"), WRITE)
    with running_server(tmp_path) as server:
        watch = server.watch(Selection(CONFIG_MAPS), version=first["metadata"]["resourceVersion"])
        server.create(CONFIG_MAPS, config_map("b"), WRITE, namespace="default")
        events = [(event.change, event.object["metadata"]["name"], event.object["data"]["k"]) for event in watch.events]
        assert events == [("MODIFIED", "a", "w"), ("DELETED", "a", "w"), ("ADDED", "b", "v")]


def test_a_paged_list_continues_across_a_restart(tmp_path: Path) -> None:
    with running_server(tmp_path, crash=True) as server:
        for name in "abc":
            server.create(CONFIG_MAPS, config_map(name), WRITE, namespace="default")
        page = server.list(Selection(CONFIG_MAPS), limit=2)
    with running_server(tmp_path) as server:
        server.delete(CONFIG_MAPS, key("c"), WRITE)
        rest = server.list(Selection(CONFIG_MAPS), limit=2, continue_=page.continue_)
        assert ([key_of(item).name for item in rest.items], rest.version) == (["c"], page.version)


def test_skipped_versions_are_gone(tmp_path: Path) -> None:
    with running_server(tmp_path, crash=True) as server:
        last = server.revision
    with running_server(tmp_path) as server, pytest.raises(Gone):
        server.watch(Selection(CONFIG_MAPS), version=str(last + 1))


def test_a_changed_definition_still_defaults_older_objects(tmp_path: Path) -> None:
    """Objects stored before a default existed are read with it, before and after a restart."""
    with running_server(tmp_path) as server:
        server.create(DEFINITIONS, definition(), WRITE)
        server.create(WIDGETS, widget(), WRITE, namespace="default")
        path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color/default"
        server.patch(DEFINITIONS, _WIDGETS_CRD, Patch.json({"op": "add", "path": path, "value": "red"}), WRITE)
        before = server.get(WIDGETS, key("w"))
        assert before["spec"] == {"size": 3, "color": "red"}
    with running_server(tmp_path) as server:
        assert server.get(WIDGETS, key("w")) == before


def test_a_deleted_definition_is_not_served(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        server.create(DEFINITIONS, definition(), WRITE)
        server.delete(DEFINITIONS, _WIDGETS_CRD, WRITE)
    with running_server(tmp_path) as server, pytest.raises(NotFound):
        server.list(Selection(WIDGETS))


def test_a_terminating_definition_is_removed_with_its_last_object(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        server.create(DEFINITIONS, definition(), WRITE)
        held = widget()
        held["metadata"]["finalizers"] = ["example.com/hold"]
        server.create(WIDGETS, held, WRITE, namespace="default")
        server.delete(DEFINITIONS, _WIDGETS_CRD, WRITE)
    with running_server(tmp_path) as server:
        with pytest.raises(MethodNotAllowed, match="terminating"):
            server.create(WIDGETS, widget("other"), WRITE, namespace="default")
        server.patch(WIDGETS, key("w"), Patch.merge({"metadata": {"finalizers": None}}), WRITE)
        with pytest.raises(NotFound):
            server.get(DEFINITIONS, _WIDGETS_CRD)


class _FailingJournal:
    """A journal that fails after a number of changes."""

    def __init__(self, journal: Journal, left: int) -> None:
        self._journal = journal
        self._left = left

    def record(self, identity: CollectionId, change: StoredChange, compacted: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise ServerError("the power is gone")
        self._journal.record(identity, change, compacted)

    def compact(self, compacted: int) -> None:
        self._journal.compact(compacted)


def _cut_after(server: ApiServer, changes: int) -> None:
    storage: Storage = server.storage
    assert storage._journal is not None
    storage._journal = _FailingJournal(storage._journal, changes)


@pytest.mark.parametrize("changes", range(6))
def test_an_interrupted_deletion_of_a_definition_is_completed(tmp_path: Path, changes: int) -> None:
    """It takes five changes: the timestamp, three objects, and the definition."""
    with running_server(tmp_path, crash=True) as server:
        server.create(DEFINITIONS, definition(), WRITE)
        for name in "abc":
            server.create(WIDGETS, widget(name), WRITE, namespace="default")
        _cut_after(server, changes)
        if changes < 5:
            with pytest.raises(ServerError):
                server.delete(DEFINITIONS, _WIDGETS_CRD, WRITE)
        else:
            server.delete(DEFINITIONS, _WIDGETS_CRD, WRITE)
    with running_server(tmp_path) as server:
        left = [item["metadata"]["name"] for item in server.list(Selection(DEFINITIONS)).items]
        assert left == (["widgets.example.com"] if changes == 0 else [])
        widgets = server.storage.collection(CollectionId("example.com", "widgets")).live
        assert len(widgets) == (3 if changes == 0 else 0)


@pytest.mark.parametrize("changes", range(3))
def test_an_interrupted_deletion_of_a_pod_is_completed(tmp_path: Path, changes: int) -> None:
    """It takes two changes: the timestamp, and the removal."""
    with running_server(tmp_path, crash=True) as server:
        server.create(PODS, pod(), WRITE, namespace="default")
        _cut_after(server, changes)
        if changes < 2:
            with pytest.raises(ServerError):
                server.delete(PODS, key("p"), WRITE)
        else:
            server.delete(PODS, key("p"), WRITE)
    with running_server(tmp_path) as server:
        assert len(server.list(Selection(PODS)).items) == (1 if changes == 0 else 0)


def test_a_running_grace_period_continues(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        server.create(PODS, pod(spec={"nodeName": "n"}), WRITE, namespace="default")
        leaving = server.delete(PODS, key("p"), WRITE)
    with running_server(tmp_path) as server:
        assert server.get(PODS, key("p")) == leaving


def test_a_terminating_namespace_is_emptied_after_a_restart(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        server.create(NAMESPACES, {"metadata": {"name": "team"}}, WRITE)
        server.create(CONFIG_MAPS, config_map(), WRITE, namespace="team")
        server.delete(NAMESPACES, Key("", "team"), WRITE)
    with running_server(tmp_path) as server:
        NamespaceController(server).process()
        assert "team" not in [item["metadata"]["name"] for item in server.list(Selection(NAMESPACES)).items]
        assert server.list(Selection(CONFIG_MAPS, "team")).items == []


def test_missing_system_objects_are_created_again(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        collection = server.storage.collection(CollectionId("", "namespaces"))
        server.storage.write(collection, Key("", "kube-node-lease"), None)
        default = server.get(NAMESPACES, Key("", "default"))
    with running_server(tmp_path) as server:
        assert server.get(NAMESPACES, Key("", "kube-node-lease"))["status"] == {"phase": "Active"}
        assert server.get(NAMESPACES, Key("", "default")) == default


def test_own_definitions_are_installed_once_and_updated(tmp_path: Path) -> None:
    ours = all_crds(Flavour.EXTENDED)
    name = key_of(ours[0])
    with running_server(tmp_path) as server:
        install(server)
        revision, wanted = server.revision, server.get(DEFINITIONS, name)
        older = Patch.json({"op": "add", "path": "/spec/names/shortNames", "value": ["old"]})
        marked = {"metadata": {"labels": {"team": "a"}}, "spec": {"conversion": {"strategy": "None"}}}
        server.patch(DEFINITIONS, name, older, WRITE)
        server.patch(DEFINITIONS, name, Patch.merge(marked), WRITE)
    with running_server(tmp_path) as server:
        install(server)
        found = server.get(DEFINITIONS, name)
        assert (found["spec"], found["metadata"]["labels"]) == (wanted["spec"], {"team": "a"})
        assert server.revision == revision + 3
        install(server)
        assert server.revision == revision + 3


def test_a_definition_that_is_no_longer_accepted_can_be_corrected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_server(tmp_path) as server:
        server.create(DEFINITIONS, definition(), WRITE)
        server.create(WIDGETS, widget(), WRITE, namespace="default")
        collection = server.storage.collection(CollectionId("apiextensions.k8s.io", "customresourcedefinitions"))
        broken: Object = {**collection.live[_WIDGETS_CRD]}
        broken["spec"] = {**broken["spec"], "preserveUnknownFields": True}
        server.storage.write(collection, _WIDGETS_CRD, broken)
    with caplog.at_level(logging.WARNING), running_server(tmp_path) as server:
        assert "widgets.example.com is invalid and not served" in caplog.text
        with pytest.raises(NotFound):
            server.list(Selection(WIDGETS))
        mended = Patch.json({"op": "remove", "path": "/spec/preserveUnknownFields"})
        server.patch(DEFINITIONS, _WIDGETS_CRD, mended, WRITE)
        assert server.get(WIDGETS, key("w"))["spec"] == {"size": 3}


def test_a_full_disk_fails_the_write_without_events(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        seen: list[Any] = []
        server.observers.append(seen.append)
        watch = server.watch(Selection(CONFIG_MAPS), version=str(server.revision))
        journal, revision = server.storage._journal, server.revision
        _cut_after(server, 0)
        with pytest.raises(ServerError, match="the power is gone"):
            server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
        assert (server.revision, seen, list(watch.events)) == (revision, [], [])
        server.storage._journal = journal
        server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
        assert (len(seen), len(watch.events)) == (1, 1)
        with pytest.raises(AlreadyExists):
            server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
