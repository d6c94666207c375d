"""The leader label: on the pod of the leader only, and never set by a former leader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from tests.metrics.external.fake_cluster import FakeCluster

from springtide.cluster.errors import ConnectionLost
from springtide.cluster.resources import PODS, Key
from springtide.metrics.external.leader_label import LABEL, LeaderLabel
from springtide.simulator.virtual_time import VirtualClock, run

NAMES = ("a", "b")


class World:
    """Two replicas, each in its own pod, of which one leads."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.leader = ""
        for name in NAMES:
            self.cluster.put(PODS, {"metadata": {"name": name, "namespace": "home", "labels": {"app": "springtide"}}})

    def marked(self) -> list[str]:
        """Return the pods with the label."""
        pods = ((key.name, item["metadata"]["labels"]) for (_, key), item in sorted(self.cluster.objects.items()))
        return [name for name, labels in pods if labels.get(LABEL) == "true"]

    def run(self, scenario: Callable[[VirtualClock], Coroutine[Any, Any, None]]) -> None:
        """Run both replicas during a test."""

        async def everything(clock: VirtualClock) -> None:
            marks = [
                LeaderLabel(self.cluster.transport, Key("home", name), lambda name=name: self.leader == name)  # type: ignore[misc]
                for name in NAMES
            ]
            tasks = [asyncio.create_task(mark.run()) for mark in marks]
            try:
                await scenario(clock)
            finally:
                for task in tasks:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task

        run(everything)


def test_the_label_follows_the_leader() -> None:
    world = World()

    async def scenario(clock: VirtualClock) -> None:
        for leader, marked in (("", []), ("a", ["a"]), ("b", ["b"]), ("", []), ("a", ["a"])):
            world.leader = leader
            await clock.sleep(3)
            assert world.marked() == marked

    world.run(scenario)
    assert all(item["metadata"]["labels"]["app"] == "springtide" for item in world.cluster.objects.values())


def test_a_leader_removes_the_label_of_a_dead_pod() -> None:
    world = World()
    world.cluster.put(PODS, {"metadata": {"name": "gone", "namespace": "home", "labels": {LABEL: "true"}}})

    async def scenario(clock: VirtualClock) -> None:
        world.leader = "a"
        await clock.sleep(3)
        assert world.marked() == ["a"]

    world.run(scenario)


def test_a_changed_label_is_restored() -> None:
    world = World()

    async def scenario(clock: VirtualClock) -> None:
        world.leader = "a"
        await clock.sleep(3)
        world.cluster.put(PODS, {"metadata": {"name": "a", "namespace": "home", "labels": {"app": "springtide"}}})
        await clock.sleep(40)
        assert world.marked() == ["a"]

    world.run(scenario)


def test_failures_are_retried() -> None:
    world = World()

    async def scenario(clock: VirtualClock) -> None:
        world.cluster.failing = ConnectionLost("connection refused")
        world.leader = "a"
        await clock.sleep(20)
        assert world.marked() == []
        world.cluster.failing = None
        await clock.sleep(3)
        assert world.marked() == ["a"]

    world.run(scenario)


def test_a_former_leader_does_not_set_its_label() -> None:
    """Not even until the next leader would remove it."""
    world = World()
    history: list[list[str]] = []

    async def scenario(clock: VirtualClock) -> None:
        def deposed() -> None:
            world.leader = "b"
            history.append(world.marked())

        world.cluster.before_patch = deposed
        world.leader = "a"
        await clock.sleep(3)

    world.run(scenario)
    assert world.marked() == ["b"]
    assert all("a" not in marked for marked in history)
