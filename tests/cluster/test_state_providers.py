"""Providers of shared state: readers start after the first pass, whatever happens during it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.cluster.manager_process import Process, StampController, names, stamp_controller
from tests.cluster.memory_cluster import CONFIG_MAPS, START, USER, MemoryCluster, do_nothing
from tests.cluster.test_manager import play
from tests.cluster.test_state import Values, pause_everything, reader, refuse_the_lease, resume_everything

from springtide.cluster.context import ControllerContext, Services
from springtide.cluster.controller import Result
from springtide.cluster.health import ControllerState
from springtide.cluster.resources import Key
from springtide.simulator.virtual_time import VirtualClock


def provider(attempt: Callable[[StampController, Key, int], Any] | None = None, **parts: Any) -> type[StampController]:
    """Make a controller that provides `Values`, after what a test wants to happen first."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        self.seen.append((key.name, now - START))
        if attempt is not None:
            await attempt(self, key, now)
        self.context.state(Values).put(key, "computed")
        return None

    return stamp_controller(**{"name": "provider", "provides": (Values,), "reconcile": reconcile, **parts})


@pytest.mark.parametrize("order", [1, -1], ids=["reader declared first", "provider declared first"])
def test_readers_start_after_the_first_pass_of_the_provider(order: int) -> None:
    """Every key of the initial list was attempted once; a provider that takes long is waited for."""
    found: list[Any] = []

    async def attempt(self: StampController, key: Key, now: int) -> None:
        await self.context.clock.sleep(10)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        for name in "a", "b", "c":
            world.config_map(name)
        process = Process(world, clock, *(reader(Values, found), provider(attempt))[::order])
        await clock.sleep(29)
        states = {health.name: health.state for health in process.manager.health()}
        assert (found, states["reader"]) == ([], ControllerState.SYNCING)
        # An object that comes later is not part of the initial list.
        world.config_map("d")
        await clock.sleep(2)
        assert found == [[Key("work", name) for name in "abc"]]
        await process.manager.stop()

    play(story)


def test_a_provider_without_objects_does_not_hold_readers_back() -> None:
    found: list[Any] = []

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, reader(Values, found), provider())
        await clock.sleep(1)
        assert found == [[]]
        await process.manager.stop()

    play(story)


def test_without_a_provider_in_the_process_a_state_is_complete_at_once() -> None:
    found: list[Any] = []

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, reader(Values, found))
        await clock.sleep(1)
        assert found == [[]]
        await process.manager.stop()

    play(story)


def test_a_failed_attempt_counts_as_an_attempt() -> None:
    """An object on which the provider always fails must not keep readers from starting."""
    found: list[Any] = []

    async def attempt(self: StampController, key: Key, now: int) -> None:
        if key.name == "bad":
            raise RuntimeError("no way")

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        for name in "a", "bad":
            world.config_map(name)
        process = Process(world, clock, reader(Values, found), provider(attempt))
        await clock.sleep(5)
        assert found == [[Key("work", "a")]]
        await process.manager.stop()

    play(story)


def test_a_provider_that_cannot_be_created_does_not_hold_readers_back() -> None:
    found: list[Any] = []

    def create(self: StampController, context: ControllerContext) -> None:
        raise RuntimeError("no way")

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, reader(Values, found), provider(__init__=create))
        await clock.sleep(5)
        assert found == [[]]
        await process.manager.stop()

    play(story)


def test_a_paused_object_counts_as_attempted() -> None:
    """It may stay paused for years."""
    found: list[Any] = []

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        for name in "a", "b":
            world.config_map(name)
        world.change("a", metadata={"annotations": {"springtide.dev/paused": "true"}})
        process = Process(world, clock, reader(Values, found), provider())
        await clock.sleep(5)
        assert found == [[Key("work", "b")]]
        await process.manager.stop()

    play(story)


def test_while_everything_is_paused_readers_wait_for_the_provider() -> None:
    """Nothing was attempted; an object that goes meanwhile is not waited for afterwards."""
    found: list[Any] = []

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        for name in "a", "b":
            world.config_map(name)
        pause_everything(world)
        process = Process(world, clock, reader(Values, found), provider())
        await clock.sleep(60)
        assert found == []
        world.server.delete(CONFIG_MAPS, Key("work", "a"), USER)
        await clock.sleep(1)
        resume_everything(world)
        await clock.sleep(1)
        assert found == [[Key("work", "b")]]
        await process.manager.stop()

    play(story)


def test_a_stop_while_readers_wait_ends_at_once() -> None:
    found: list[Any] = []

    async def attempt(self: StampController, key: Key, now: int) -> None:
        await self.context.clock.sleep(3)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, reader(Values, found), provider(attempt))
        await clock.sleep(1)
        before = clock.monotonic()
        await process.manager.stop()
        assert (found, clock.monotonic() - before) == ([], 2)

    play(story)


def test_a_reconcile_left_behind_does_not_write_into_the_next_term() -> None:
    """The state of a new term is built when reconciles of the provider from the term before have ended."""
    found: list[Any] = []
    release = asyncio.Event()

    async def attempt(self: StampController, key: Key, now: int) -> None:
        if now - START < 20:
            # Suppresses its cancellation, as a library might.
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, reader(Values, found), provider(attempt), identity="one")
        await clock.sleep(10)
        process.line.before = refuse_the_lease
        await clock.sleep(30)
        process.line.before = do_nothing
        world.server.delete(CONFIG_MAPS, Key("work", "a"), USER)
        await clock.sleep(60)
        assert (process.manager.leading, found) == (True, [])
        release.set()
        await clock.sleep(1)
        assert found == [[]]
        await process.manager.stop()

    play(story)


def test_an_attempt_of_an_earlier_term_does_not_count_in_the_next() -> None:
    """A reconcile that was left behind ends when the new term has begun: readers wait for the new attempt."""
    found: list[Any] = []
    release = asyncio.Event()

    async def attempt(self: StampController, key: Key, now: int) -> None:
        if now - START >= 20:
            await self.context.clock.sleep(10)
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, reader(Values, found), provider(attempt), identity="one")
        await clock.sleep(10)
        process.line.before = refuse_the_lease
        await clock.sleep(30)
        process.line.before = do_nothing
        await clock.sleep(60)
        release.set()
        await clock.sleep(5)
        assert (process.manager.leading, found) == (True, [])
        await clock.sleep(6)
        assert found == [[Key("work", "a")]]
        await process.manager.stop()

    play(story)


def test_an_instance_that_the_process_offers_is_used() -> None:
    """Parts of a process that are no controllers can read a state as well."""
    offered = Values()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, provider(), services=Services(offered))
        await clock.sleep(1)
        assert offered.values == {Key("work", "a"): "computed"}
        await process.manager.stop()
        assert offered.values == {}

    play(story)


def test_controllers_that_wait_for_each_other_are_refused() -> None:
    """The error names them in the order in which they wait."""

    class Others(Values):
        pass

    one = stamp_controller(name="one", provides=(Values,), states=(Others,))
    two = stamp_controller(name="two", provides=(Others,), states=(Values,))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        with pytest.raises(ValueError, match=r"wait for each other's shared state \(one -> two -> one\)"):
            Process(world, clock, one, two)

    play(story)


def test_a_provider_may_read_its_own_state() -> None:
    """It does not wait for itself."""
    kind = provider(states=(Values,))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, kind)
        await clock.sleep(1)
        assert names(kind) == ["a"]
        await process.manager.stop()

    play(story)
