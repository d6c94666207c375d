"""What a process offers its controllers, declared dependencies, and cleanup at the end of a term."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import pytest
from tests.cluster.manager_process import WORK, Process, stamp_controller
from tests.cluster.memory_cluster import MemoryCluster
from tests.cluster.test_manager import play

from springtide.cluster.context import NO_SERVICES, ControllerContext, Services
from springtide.cluster.resources import Key
from springtide.simulator.virtual_time import VirtualClock


class Answers(ABC):
    """Something that is offered under the type of its port."""

    @abstractmethod
    def answer(self) -> int:
        """Return a number."""


class Fixed(Answers):
    def answer(self) -> int:
        return 42


def test_services_are_found_by_type() -> None:
    """By their own type, or by a base class or protocol."""
    services = Services("words", Fixed())
    assert services.get(Answers).answer() == services.get(Fixed).answer() == 42
    assert services.get(str) == "words"


@pytest.mark.parametrize(
    ("services", "words"),
    [
        (Services("words"), "this process offers no Fixed, only str"),
        (NO_SERVICES, "this process offers no Fixed, only nothing"),
    ],
    ids=["another", "none"],
)
def test_a_missing_service_is_named(services: Services, words: str) -> None:
    with pytest.raises(LookupError, match=words):
        services.get(Fixed)


def test_what_a_controller_needs_is_checked_when_the_manager_is_built() -> None:
    """The error names the controller, the type, and what the process offers."""
    kind = stamp_controller(name="needy", needs=(Answers,))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        expected = "controller needy needs a Answers, but this process offers no Answers, only str"
        with pytest.raises(LookupError, match=expected):
            Process(world, clock, kind, services=Services("words"))

    play(story)


def test_dependencies_are_declared() -> None:
    """Optional ones may be missing; what is not declared cannot be used, even if the process offers it."""
    held: list[ControllerContext] = []

    class Needy(stamp_controller()):  # type: ignore[misc]
        needs = (Answers,)
        optional_needs = (str, int)

        def __init__(self, context: ControllerContext) -> None:
            super().__init__(context)
            held.append(context)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, Needy, services=Services(Fixed(), "words", 1.5))
        await clock.sleep(1)
        context = held[0]
        assert context.dependency(Answers).answer() == 42
        assert (context.optional_dependency(str), context.optional_dependency(int)) == ("words", None)
        with pytest.raises(LookupError, match="uses a float, expected it in its `needs`"):
            context.dependency(float)
        with pytest.raises(LookupError, match="uses a float, expected it in its `optional_needs`"):
            context.optional_dependency(float)
        await process.manager.stop()

    play(story)


def test_a_controller_enqueues_keys_and_cleans_up() -> None:
    """Keys can be enqueued because of something outside of the cluster; `on_release` runs at the end of a term."""
    calls: list[str] = []

    class Woken(stamp_controller()):  # type: ignore[misc]
        held: ClassVar[list[ControllerContext]] = []

        def __init__(self, context: ControllerContext) -> None:
            super().__init__(context)
            self.held.append(context)
            calls.append(f"offered {context.services.get(Fixed).answer()}")
            context.on_release(lambda: calls.append("released"))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, Woken, services=Services(Fixed()))
        await clock.sleep(10)
        assert calls == ["offered 42"]
        Woken.seen.clear()
        Woken.held[0].enqueue(Key("work", "a"))
        await clock.sleep(10)
        assert [name for name, _ in Woken.seen] == ["a"]
        await process.manager.stop()
        assert calls == ["offered 42", "released"]

    assert WORK in [watch.cached for watch in Woken.watches]
    play(story)


def test_cleanup_waits_until_all_controllers_are_idle() -> None:
    """A reconcile that is under way at the stop may still read what the cleanup removes."""
    calls: list[str] = []

    class Telling(stamp_controller(name="telling")):  # type: ignore[misc]
        def __init__(self, context: ControllerContext) -> None:
            super().__init__(context)
            context.on_release(lambda: calls.append("taken back"))

    class Slow(stamp_controller(name="slow")):  # type: ignore[misc]
        async def reconcile(self, key: Key, now: int) -> None:
            await self.context.clock.sleep(5)
            calls.append("reconciled")

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, Telling, Slow)
        await clock.sleep(1)
        await process.manager.stop()
        assert calls == ["reconciled", "taken back"]

    play(story)
