"""The mark of the leader: on one pod, whoever leads, and put there by nobody who leads no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from tests.metrics.external.fake_cluster import Shelf

from springtide.cluster.errors import ConnectionLost
from springtide.cluster.resources import PODS, Key
from springtide.metrics.external.leader_label import LABEL, LeaderLabel
from springtide.simulator.virtual_time import VirtualClock, run

NAMES = ("a", "b")


class World:
    """Two replicas, each in a pod of its own, of which one leads."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.leader = ""
        for name in NAMES:
            self.shelf.put(PODS, {"metadata": {"name": name, "namespace": "home", "labels": {"app": "springtide"}}})

    def marked(self) -> list[str]:
        """Name the pods that bear the mark."""
        pods = ((key.name, item["metadata"]["labels"]) for (_, key), item in sorted(self.shelf.objects.items()))
        return [name for name, labels in pods if labels.get(LABEL) == "true"]

    def run(self, story: Callable[[VirtualClock], Coroutine[Any, Any, None]]) -> None:
        """Let both keep the mark while a story lasts."""

        async def everything(clock: VirtualClock) -> None:
            marks = [
                LeaderLabel(self.shelf.transport, Key("home", name), lambda name=name: self.leader == name)  # type: ignore[misc]
                for name in NAMES
            ]
            tasks = [asyncio.create_task(mark.run()) for mark in marks]
            try:
                await story(clock)
            finally:
                for task in tasks:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task

        run(everything)


def test_the_mark_follows_the_leader() -> None:
    world = World()

    async def story(clock: VirtualClock) -> None:
        for leader, marked in (("", []), ("a", ["a"]), ("b", ["b"]), ("", []), ("a", ["a"])):
            world.leader = leader
            await clock.sleep(3)
            assert world.marked() == marked

    world.run(story)
    assert all(item["metadata"]["labels"]["app"] == "springtide" for item in world.shelf.objects.values())


def test_a_leader_takes_the_mark_off_one_that_died_with_it() -> None:
    world = World()
    world.shelf.put(PODS, {"metadata": {"name": "gone", "namespace": "home", "labels": {LABEL: "true"}}})

    async def story(clock: VirtualClock) -> None:
        world.leader = "a"
        await clock.sleep(3)
        assert world.marked() == ["a"]

    world.run(story)


def test_a_mark_that_somebody_changes_is_right_again_after_a_while() -> None:
    world = World()

    async def story(clock: VirtualClock) -> None:
        world.leader = "a"
        await clock.sleep(3)
        world.shelf.put(PODS, {"metadata": {"name": "a", "namespace": "home", "labels": {"app": "springtide"}}})
        await clock.sleep(40)
        assert world.marked() == ["a"]

    world.run(story)


def test_a_cluster_that_does_not_answer_is_asked_again() -> None:
    world = World()

    async def story(clock: VirtualClock) -> None:
        world.shelf.failing = ConnectionLost("nobody is there")
        world.leader = "a"
        await clock.sleep(20)
        assert world.marked() == []
        world.shelf.failing = None
        await clock.sleep(3)
        assert world.marked() == ["a"]

    world.run(story)


def test_who_stops_leading_while_it_marks_itself_does_not() -> None:
    """Not even for the moment until the next leader would take the mark off again."""
    world = World()
    history: list[list[str]] = []

    async def story(clock: VirtualClock) -> None:
        def deposed() -> None:
            world.leader = "b"
            history.append(world.marked())

        world.shelf.before_patch = deposed
        world.leader = "a"
        await clock.sleep(3)

    world.run(story)
    assert world.marked() == ["b"]
    assert all("a" not in marked for marked in history)
