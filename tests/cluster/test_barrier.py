"""Read your writes: the barrier for all writes of a controller, and for those to one object."""

from __future__ import annotations

import asyncio

import pytest
from tests.cluster.memory_cluster import CONFIG_MAPS, MemoryCluster
from tests.cluster.test_manager import play

from springtide.cluster.client import WriteBarrier
from springtide.cluster.resources import Key, Selection
from springtide.cluster.store import Store
from springtide.simulator.virtual_time import VirtualClock

MINE, OTHER = Key("work", "mine"), Key("work", "other")


@pytest.mark.parametrize(
    ("written", "reached", "all_of_it", "mine"),
    [
        ([], 0, True, True),
        ([(OTHER, 7)], 5, False, True),
        ([(MINE, 5), (OTHER, 7)], 5, False, True),
        ([(MINE, 7), (OTHER, 5)], 5, False, False),
        ([(MINE, 4), (MINE, 6)], 5, False, False),
        ([(MINE, 6), (MINE, 4)], 5, False, False),
        ([(MINE, 6), (OTHER, 7)], 7, True, True),
    ],
    ids=[
        "no write",
        "a write to another object",
        "a visible write",
        "an invisible write",
        "the newest write counts",
        "a late answer",
        "all writes are visible",
    ],
)
def test_which_writes_are_waited_for(written: list[tuple[Key, int]], reached: int, all_of_it: bool, mine: bool) -> None:
    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        store: Store[object] = Store()
        barrier = WriteBarrier(world.line(), [(Selection(CONFIG_MAPS), store)])
        for key, version in written:
            barrier.note_write(CONFIG_MAPS, key, version)
        store.advance(reached)
        waiting = [asyncio.ensure_future(one) for one in (barrier.wait_for_writes(), barrier.wait_for_object(MINE))]
        await clock.sleep(1)
        assert [one.done() for one in waiting] == [all_of_it, mine]
        store.advance(100)
        await clock.sleep(1)
        assert all(one.done() for one in waiting)

    play(story)


def test_only_waiters_for_an_object_ask_about_its_lost_answer() -> None:
    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        made = world.config_map("mine")
        store: Store[object] = Store()
        barrier = WriteBarrier(world.line(), [(Selection(CONFIG_MAPS), store)])
        barrier.note_unknown(CONFIG_MAPS, MINE)
        await barrier.wait_for_object(OTHER)
        waiting = asyncio.ensure_future(barrier.wait_for_object(MINE))
        await clock.sleep(1)
        assert not waiting.done()
        store.advance(int(made["metadata"]["resourceVersion"]))
        await clock.sleep(1)
        assert waiting.done()

    play(story)


def test_writes_that_the_store_shows_take_no_memory() -> None:
    """A controller writes to very many objects in its life."""

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        store: Store[object] = Store()
        barrier = WriteBarrier(world.line(), [(Selection(CONFIG_MAPS), store)])
        for version in range(1, 101):
            key = Key("work", f"map-{version}")
            barrier.note_write(CONFIG_MAPS, key, version)
            store.advance(version)
            await barrier.wait_for_object(key)
        assert [len(pending.by_key) for pending in barrier._pending] == [0]

    play(story)
