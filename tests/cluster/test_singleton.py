"""Controllers of the cluster as a whole: no keys, batched changes, and the life of any other controller."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from tests.cluster.manager_process import SECRET_OF, WORK, Process, stamp_controller
from tests.cluster.memory_cluster import CONFIG_MAPS, SECRETS, START, USER, MemoryCluster, do_nothing
from tests.cluster.test_manager import play
from tests.cluster.test_state import pause_everything, refuse_the_lease, resume_everything, secret_names

from springtide.cluster.client import Mode
from springtide.cluster.clock import Backoff
from springtide.cluster.controller import Permission, Result, SingletonController, Watch, cache_only
from springtide.cluster.errors import Conflict
from springtide.cluster.health import ControllerState
from springtide.cluster.manager import ManagerSettings
from springtide.cluster.resources import Key, Object
from springtide.cluster.state import StateWatch
from springtide.cluster.transport import Patch
from springtide.simulator.virtual_time import VirtualClock


class Counter(SingletonController):
    """Notes when it is reconciled, and how many ConfigMaps there are then."""

    name = "counter"
    watches = (Watch(WORK),)
    permissions: ClassVar[tuple[Permission, ...]] = ()
    runs: ClassVar[list[tuple[int, int]]]

    async def reconcile_cluster(self, now: int) -> Result | None:
        self.runs.append((now - START, len(self.context.store(WORK))))
        return None


def counter(**parts: Any) -> type[Counter]:
    """Make a variant of the controller with its own list of runs."""
    return type("Variant", (Counter,), {"runs": [], **parts})


def test_a_singleton_is_reconciled_once_and_then_after_every_change() -> None:
    """The first time when its caches are complete, also if they are empty."""
    kind = counter()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind)
        await clock.sleep(5)
        world.config_map("a")
        await clock.sleep(5)
        world.server.delete(CONFIG_MAPS, Key("work", "a"), USER)
        await clock.sleep(5)
        assert kind.runs == [(0, 0), (5, 1), (10, 0)]
        assert process.manager.health()[0].reconciles == 3
        await process.manager.stop()

    play(story)


def test_objects_at_the_start_lead_to_one_reconcile() -> None:
    kind = counter(batch_idle=1.0, batch_max=10.0)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        for name in "a", "b", "c":
            world.config_map(name)
        process = Process(world, clock, kind)
        await clock.sleep(30)
        assert kind.runs == [(0, 3)]
        await process.manager.stop()

    play(story)


@pytest.mark.parametrize(
    ("gaps", "runs"),
    [
        pytest.param([], [], id="no change"),
        pytest.param([0], [(11, 1)], id="one change waits for the idle time"),
        pytest.param([0, 0, 0], [(11, 3)], id="changes at one instant are one batch"),
        pytest.param([0, 0.9, 0.9], [(12, 3)], id="each change extends the window"),
        pytest.param([0, 2], [(11, 1), (13, 2)], id="a change after the window opens another one"),
        pytest.param([0, *[0.5] * 11], [(15, 10), (16, 12)], id="the window closes after the longest time"),
    ],
)
def test_changes_are_batched(gaps: list[float], runs: list[tuple[int, int]]) -> None:
    """Idle for one second, five seconds at the most; whole seconds of the clock are rounded down."""
    kind = counter(batch_idle=1.0, batch_max=5.0)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind)
        await clock.sleep(10)
        kind.runs.clear()
        for number, gap in enumerate(gaps):
            await clock.sleep(gap)
            world.config_map(f"c{number}")
        await clock.sleep(20)
        assert [(at, count) for at, count in kind.runs] == runs
        await process.manager.stop()

    play(story)


def test_watches_with_cache_only_open_no_window() -> None:
    """A mapping that gives any key at all opens one."""
    kind = counter(watches=(Watch(WORK, cache_only), Watch(SECRET_OF, lambda key, record: (key,))))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind)
        await clock.sleep(5)
        world.config_map("a")
        await clock.sleep(5)
        world.server.create(SECRETS, {"metadata": {"name": "s", "namespace": "work"}}, USER, namespace="work")
        await clock.sleep(5)
        assert kind.runs == [(0, 0), (10, 1)]
        await process.manager.stop()

    play(story)


@pytest.mark.parametrize("mapped", [False, True], ids=["any change", "changes that a watch maps"])
def test_changes_of_states_wake_a_singleton(mapped: bool) -> None:
    state = secret_names()
    watch = StateWatch(state, lambda name: (Key("", name),) if name == "s" else ())
    kind = counter(watches=(), states=(watch,) if mapped else (state,), runs=[])

    async def reconcile_cluster(self: Counter, now: int) -> None:
        self.runs.append((now - START, len(self.context.state(state).names)))

    kind.reconcile_cluster = reconcile_cluster  # type: ignore[method-assign]

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind)
        for name in "s", "t":
            await clock.sleep(5)
            body: Object = {"metadata": {"name": name, "namespace": "work", "labels": {}}}
            world.server.create(SECRETS, body, USER, namespace="work")
        await clock.sleep(5)
        assert kind.runs == [(0, 0), (5, 1)] if mapped else [(0, 0), (5, 1), (10, 2)]
        await process.manager.stop()

    play(story)


def test_a_result_requeues_at_an_instant_or_after_seconds() -> None:
    """Without a window, and whether anything has changed or not."""

    async def reconcile_cluster(self: Counter, now: int) -> Result | None:
        self.runs.append((now - START, 0))
        return Result(requeue_at=START + 100, requeue_after=700) if now < START + 100 else None

    kind = counter(reconcile_cluster=reconcile_cluster, batch_idle=1.0, batch_max=10.0)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind)
        await clock.sleep(1000)
        assert [at for at, _ in kind.runs] == [0, 100, 700]
        await process.manager.stop()

    play(story)


@pytest.mark.parametrize("failure", [RuntimeError("no way"), Conflict("it has changed")], ids=["bug", "conflict"])
def test_a_failure_is_retried_with_backoff(failure: Exception) -> None:
    """A success resets the backoff; other controllers are not affected."""

    async def reconcile_cluster(self: Counter, now: int) -> None:
        self.runs.append((now - START, 0))
        if len(self.runs) <= 3:
            raise failure

    kind, sound = counter(reconcile_cluster=reconcile_cluster), stamp_controller()
    settings = ManagerSettings(backoff=Backoff(first=10.0, longest=60.0))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind, sound, settings=settings)
        await clock.sleep(300)
        health = process.manager.health()
        assert [at for at, _ in kind.runs] == [0, 10, 30, 70]
        assert (health[0].errors + health[0].conflicts, health[0].retries, health[1].errors) == (3, 3, 0)
        await process.manager.stop()

    play(story)


def test_trigger_opens_a_window() -> None:
    """Because of something that is not in the cluster."""
    held: list[Counter] = []

    class Triggered(counter(batch_idle=2.0, batch_max=10.0)):  # type: ignore[misc]
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            held.append(self)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, Triggered)
        await clock.sleep(10)
        held[0].trigger()
        await clock.sleep(10)
        assert [at for at, _ in Triggered.runs] == [0, 12]
        await process.manager.stop()

    play(story)


def test_a_change_during_a_reconcile_leads_to_another_one() -> None:
    """One at a time, also where it takes longer than the window."""

    async def reconcile_cluster(self: Counter, now: int) -> None:
        self.runs.append((now - START, len(self.context.store(WORK))))
        await self.context.clock.sleep(10)

    kind = counter(reconcile_cluster=reconcile_cluster, batch_idle=1.0, batch_max=2.0, workers=3)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind)
        await clock.sleep(3)
        world.config_map("a")
        await clock.sleep(27)
        assert kind.runs == [(0, 0), (10, 1)]
        await process.manager.stop()

    play(story)


def test_it_sees_its_own_writes() -> None:
    """Before a reconcile the caches show what the one before it wrote."""

    async def reconcile_cluster(self: Counter, now: int) -> Result | None:
        item = self.context.store(WORK).get(Key("work", "a"))
        count = int(item["data"].get("count", "0")) if item is not None else 0
        self.runs.append((now - START, count))
        if item is not None and count < 3:
            await self.context.client.patch(
                CONFIG_MAPS, Patch.merge({"data": {"count": str(count + 1)}}), of=item, because="it counts"
            )
        return None

    kind = counter(reconcile_cluster=reconcile_cluster)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, kind)
        await clock.sleep(5)
        assert [count for _, count in kind.runs] == [0, 1, 2, 3]
        assert process.manager.health()[0].conflicts == 0
        await process.manager.stop()

    play(story)


def test_the_pause_of_everything_holds_it_and_annotations_do_not() -> None:
    kind = counter()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        world.change("a", metadata={"annotations": {"springtide.dev/paused": "true"}})
        process = Process(world, clock, kind)
        await clock.sleep(5)
        pause_everything(world)
        await clock.sleep(5)
        world.config_map("b")
        await clock.sleep(5)
        resume_everything(world)
        await clock.sleep(5)
        assert kind.runs == [(0, 1), (15, 2)]
        assert process.manager.health()[0].paused == 0
        await process.manager.stop()

    play(story)


def test_in_observe_mode_nothing_is_written() -> None:
    async def reconcile_cluster(self: Counter, now: int) -> None:
        for item in self.context.store(WORK).values():
            await self.context.client.patch(
                CONFIG_MAPS, Patch.merge({"data": {"count": "1"}}), of=item, because="it counts"
            )

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, counter(reconcile_cluster=reconcile_cluster), mode=Mode.OBSERVE)
        await clock.sleep(5)
        assert (process.manager.health()[0].traffic.held_back, world.written("Lease")) == (1, [])
        await process.manager.stop()

    play(story)


def test_a_new_term_reconciles_once_and_drops_an_open_window() -> None:
    """While another process may lead nothing is reconciled."""
    kind = counter(batch_idle=15.0, batch_max=15.0)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind, identity="one")
        await clock.sleep(5)
        assert kind.runs == [(0, 0)]
        process.line.before = refuse_the_lease
        world.config_map("a")
        await clock.sleep(25)
        assert process.manager.health()[0].state is ControllerState.STANDING_BY
        assert kind.runs == [(0, 0)]
        process.line.before = do_nothing
        await clock.sleep(60)
        assert [count for _, count in kind.runs] == [0, 1]
        await process.manager.stop()

    play(story)


def test_a_stop_waits_for_a_reconcile_and_drops_an_open_window() -> None:
    async def reconcile_cluster(self: Counter, now: int) -> None:
        await self.context.clock.sleep(5)
        self.runs.append((now - START, 0))

    kind = counter(reconcile_cluster=reconcile_cluster, batch_idle=1.0, batch_max=1.0)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind)
        await clock.sleep(3)
        world.config_map("a")
        before = clock.monotonic()
        await process.manager.stop()
        assert (kind.runs, clock.monotonic() - before) == ([(0, 0)], 2)

    play(story)
