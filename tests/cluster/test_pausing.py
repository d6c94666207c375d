"""Pauses: of one object by its annotation, of everything by a ConfigMap."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.cluster.manager_process import WORK, Process, StampController, length, names, stamp_controller
from tests.cluster.memory_cluster import START, USER, MemoryCluster

from springtide.apis.core.nodes import NodeView
from springtide.apis.core.pod_record import PodView
from springtide.cluster.controller import Cached, Result, Watch
from springtide.cluster.manager import ManagerSettings
from springtide.cluster.pausing import PausedObjects, means_paused
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Store
from springtide.cluster.transport import WatchEvent, WatchEventType
from springtide.simulator.virtual_time import VirtualClock, run


def play(story: Callable[[MemoryCluster, VirtualClock], Awaitable[None]]) -> None:
    """Play a story in virtual time."""

    async def main(clock: VirtualClock) -> None:
        await story(MemoryCluster(clock), clock)

    run(main, start=START)


def test_pausing_one_object_by_its_annotation(caplog: pytest.LogCaptureFixture) -> None:
    """It is not reconciled, one event is recorded, and the end of the pause enqueues it."""
    caplog.set_level(logging.INFO)
    kind = stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        world.config_map("b", text="x")
        process = Process(world, clock, kind)
        await clock.sleep(1)
        world.change("a", metadata={"annotations": {"springtide.dev/paused": "true"}})
        for text in "xy", "xyz":
            world.change("a", data={"text": text})
            world.change("b", data={"text": text})
            await clock.sleep(1)
        assert (length(world, "a"), length(world, "b")) == ("1", "3")

        world.change("a", metadata={"annotations": {"springtide.dev/paused": None}})
        await clock.sleep(1)
        assert length(world, "a") == "3"
        events = [(one["reason"], one["count"]) for one in world.events() if one["reason"] != "Stamped"]
        assert events == [("Paused", 1), ("Resumed", 1)]
        assert "work/a is paused by its annotation springtide.dev/paused" in caplog.messages
        await process.manager.stop()

    play(story)


def test_a_pause_is_noted_although_records_do_not_hold_annotations() -> None:
    """Neither the beginning nor the end of a pause changes the record."""
    texts = Cached(WORK.selection, record=lambda item: item["data"]["text"])
    seen: list[str] = []

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        seen.append(str(self.context.store(texts).get(key)))
        return None

    kind = stamp_controller(watches=(Watch(texts),), reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="1")
        world.change("a", metadata={"annotations": {"springtide.dev/paused": "true"}})
        process = Process(world, clock, kind)
        await clock.sleep(1)
        world.change("a", data={"text": "2"})
        await clock.sleep(1)
        assert seen == []

        world.change("a", metadata={"annotations": {"springtide.dev/paused": "false"}})
        await clock.sleep(1)
        assert seen == ["2"]

        world.change("a", metadata={"annotations": {"springtide.dev/paused": "true"}})
        world.server.delete(WORK.selection.resource, Key("work", "a"), USER)
        world.config_map("a", text="3")
        await clock.sleep(1)
        assert seen[-1] == "3"
        await process.manager.stop()

    play(story)


def test_pausing_everything_by_the_config_map() -> None:
    """Writes of running reconciles are withheld as well; its end enqueues everything."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        await self.context.clock.sleep(3)
        return await StampController.reconcile(self, key, now)

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, kind)
        await clock.sleep(1)
        world.config_map("springtide-pause", "springtide-system", paused="true")
        await clock.sleep(10)
        world.config_map("b", text="x")
        await clock.sleep(60)
        assert (length(world, "a"), length(world, "b")) == (None, None)
        assert names(kind) == ["a"]
        # Nothing is retried: the end of the pause enqueues every key.
        assert (process.manager.health()[0].errors, process.manager.health()[0].retries) == (0, 0)

        world.change("springtide-pause", "springtide-system", data={"paused": "false"})
        await clock.sleep(20)
        assert (length(world, "a"), length(world, "b")) == ("1", "1")
        events = [
            (one["involvedObject"]["name"], one["reason"]) for one in world.events() if one["reason"] != "Stamped"
        ]
        assert events == [("springtide-pause", "Paused"), ("springtide-pause", "Resumed")]
        await process.manager.stop()

    play(story)


def test_a_process_that_starts_during_a_pause_does_nothing() -> None:
    """It reads the ConfigMap first; deleting the ConfigMap ends the pause."""
    kind = stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("springtide-pause", "springtide-system", paused="true")
        world.config_map("a", text="x")
        process = Process(world, clock, kind)
        await clock.sleep(60)
        assert kind.seen == []

        world.server.delete(WORK.selection.resource, Key("springtide-system", "springtide-pause"), USER)
        await clock.sleep(1)
        assert length(world, "a") == "1"
        await process.manager.stop()

    play(story)


@pytest.mark.parametrize(
    ("value", "paused"),
    [
        ("true", True),
        ("True", True),
        ("yes", True),
        ("until monday", True),
        ("false", False),
        ("False", False),
        ("no", False),
        ("0", False),
        ("", False),
        (None, False),
    ],
)
def test_any_value_but_false_pauses(value: str | None, paused: bool) -> None:
    assert means_paused(value) is paused


def test_simulated_parts_of_kubernetes_cannot_be_paused() -> None:
    """They have other field managers, and ignore pauses."""
    kind = stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("springtide-pause", "springtide-system", paused="true")
        world.config_map("a", text="x")
        world.change("a", metadata={"annotations": {"springtide.dev/paused": "true"}})
        settings = ManagerSettings(pausable=False, field_manager_prefix="")
        process = Process(world, clock, kind, settings=settings)
        await clock.sleep(10)

        assert world.written("Event") == [("stamper", "patch", "ConfigMap work/a")]
        await process.manager.stop()

    play(story)


def seen(version: int, *, paused: bool) -> Object:
    """Make an object as a server showed it at a version."""
    annotations = {"springtide.dev/paused": "true"} if paused else {}
    return {"metadata": {"name": "a", "uid": "1", "resourceVersion": str(version), "annotations": annotations}}


def test_a_stale_server_does_not_restore_a_pause() -> None:
    """Events that are older than the store are ignored, as by the store itself."""
    marks = PausedObjects()
    resumed: list[Key] = []
    store: Store[Object] = Store(marks.noting(lambda item: item))
    marks.attach(store)
    marks.listen(resumed.append)
    key = Key("", "a")

    store.replace([seen(1, paused=True)], 1)
    assert key in marks
    store.apply(WatchEvent(WatchEventType.MODIFIED, seen(5, paused=False)))
    assert (key in marks, resumed) == (False, [key])

    store.replace([seen(1, paused=True)], 3)
    assert key not in marks
    store.replace([seen(7, paused=True)], 9)
    assert key in marks


def test_the_pause_of_a_deleted_object_is_forgotten() -> None:
    """A new object of that name is another one."""
    marks = PausedObjects()
    resumed: list[Key] = []
    store: Store[Object] = Store(marks.noting(lambda item: item))
    marks.attach(store)
    marks.listen(resumed.append)
    store.replace([seen(1, paused=True)], 1)
    store.apply(WatchEvent(WatchEventType.DELETED, seen(2, paused=True)))

    assert (Key("", "a") in marks, resumed) == (False, [Key("", "a")])


def test_an_unreadable_object_stays_paused() -> None:
    """It counts as absent, but must not be reconciled."""
    marks = PausedObjects()
    store: Store[Object] = Store(marks.noting(lambda item: item["metadata"]["annotations"]["kind"] and item))
    marks.attach(store)
    fine, odd = seen(1, paused=True), seen(2, paused=True)
    fine["metadata"]["annotations"]["kind"] = "x"
    store.replace([fine], 1)
    store.apply(WatchEvent(WatchEventType.MODIFIED, odd))

    assert (Key("", "a") in store, Key("", "a") in marks) == (False, True)


@pytest.mark.parametrize(
    ("view", "rest"),
    [
        pytest.param(dict, {}, id="whole-objects"),
        pytest.param(NodeView, {}, id="nodes"),
        pytest.param(PodView, {"spec": {"containers": []}}, id="pods"),
    ],
)
@pytest.mark.parametrize(
    ("annotations", "paused"),
    [
        pytest.param({"springtide.dev/paused": "true", "example.com/other": "x"}, True, id="paused"),
        pytest.param({"karpenter.sh/do-not-disrupt": "true"}, False, id="another-annotation"),
        pytest.param({}, False, id="no-annotation"),
        pytest.param(None, False, id="no-annotations"),
    ],
)
def test_objects_of_every_view_can_be_paused(
    view: type[Any], rest: Object, annotations: dict[str, str] | None, paused: bool
) -> None:
    """Views of nodes and pods hold a few annotations as fields; the annotation of a pause is one of them."""
    marks = PausedObjects()
    store: Store[Any] = Store(marks.noting(lambda item: item))
    marks.attach(store)
    metadata = {"name": "a", "uid": "1", "resourceVersion": "1", "annotations": annotations}

    store.replace([msgspec.convert({"metadata": metadata, **rest}, view)], 1)

    assert (Key("", "a") in marks) is paused
