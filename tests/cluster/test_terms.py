"""Leadership terms: what a new one sees, what an old one leaves behind, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.cluster.manager_process import WORK, Process, StampController, length, names, stamp_controller
from tests.cluster.memory_cluster import CONFIG_MAPS, EVENTS, LEASES, START, USER, MemoryCluster

from springtide.cluster.client import Mode
from springtide.cluster.controller import Cached, Result, Watch
from springtide.cluster.errors import ConnectionLost, ServerError
from springtide.cluster.events import normal
from springtide.cluster.health import ControllerState
from springtide.cluster.manager import ManagerSettings
from springtide.cluster.resources import Key, Resource, Selection
from springtide.cluster.transport import Patch
from springtide.simulator.virtual_time import VirtualClock, run

LEASE = Key("springtide-system", "springtide")
SWITCH = Key("springtide-system", "springtide-pause")


def play(story: Callable[[MemoryCluster, VirtualClock], Awaitable[None]]) -> None:
    """Play a story in virtual time."""

    async def main(clock: VirtualClock) -> None:
        await story(MemoryCluster(clock), clock)

    run(main, start=START)


def take_over(world: MemoryCluster) -> None:
    """Take the lease as another process would that is gone a second later."""
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 1}
    world.server.patch(LEASES, LEASE, Patch.merge({"spec": spec}), USER)


def holder(world: MemoryCluster, key: Key = LEASE) -> str:
    found: str = world.server.get(LEASES, key)["spec"]["holderIdentity"]
    return found


async def hang(verb: str, resource: Resource, key: Key) -> None:
    """Never answer."""
    await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("written", [["a", "b", "c"], ["a"]], ids=["made", "deleted"])
@pytest.mark.parametrize("labels", ["", "app=x"], ids=["whole", "selected"])
def test_a_new_term_sees_all_earlier_writes(labels: str, written: list[str]) -> None:
    """Of the process itself or of another, however far its watches lag behind; and without delay if they do not."""
    cached = Cached(Selection(CONFIG_MAPS, "work", labels=labels))
    saw: list[list[str]] = []

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        saw.append([item["metadata"]["name"] for item in self.context.store(cached).values()])
        return None

    def make(world: MemoryCluster, name: str) -> None:
        body = {"metadata": {"name": name, "namespace": "work", "labels": {"app": "x"}}}
        world.server.create(CONFIG_MAPS, body, USER, namespace="work")

    kind = stamp_controller(watches=(Watch(cached),), reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        make(world, "a")
        make(world, "b")
        process = Process(world, clock, kind, identity="me")
        await clock.sleep(3)
        saw.clear()
        process.line.flowing.clear()
        if "c" in written:
            make(world, "c")
        else:
            world.server.delete(CONFIG_MAPS, Key("work", "b"), USER)
        take_over(world)
        await clock.sleep(30)
        assert (saw, holder(world)) == ([], "me")
        assert process.manager.health()[0].state is ControllerState.SYNCING

        process.line.flowing.set()
        await clock.sleep(1)
        assert saw[0] == written

        # Nothing to wait for, although many other things were written since.
        saw.clear()
        take_over(world)
        await clock.sleep(10)
        assert saw[0] == written
        process.crash()

    play(story)


def test_the_freshness_check_of_a_new_term_is_retried() -> None:
    """A term must not begin on stale caches."""
    kind = stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, kind, identity="me")

        async def refuse(verb: str, resource: Resource, key: Key) -> None:
            if verb == "list" and clock.monotonic() < 20:
                raise ServerError("out of order")

        process.line.before = refuse
        await clock.sleep(19)
        assert kind.seen == []
        await clock.sleep(40)
        assert length(world, "a") == "1"
        await process.manager.stop()

    play(story)


def test_controllers_wait_until_the_pause_config_map_is_known() -> None:
    """Its cache comes first, and is fresh when the term begins."""
    kind = stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, kind, identity="me", settings=ManagerSettings(sync_timeout=2))
        inner = process.line.watch

        def blind(selection: Selection, **options: Any) -> Any:
            if selection.namespace == SWITCH.namespace and clock.monotonic() < 30:
                raise ConnectionLost("no way there")
            return inner(selection, **options)

        process.line.watch = blind  # type: ignore[method-assign]
        await clock.sleep(20)
        assert (kind.seen, holder(world)) == ([], "me")
        world.config_map(SWITCH.name, SWITCH.namespace, paused="true")
        await clock.sleep(60)
        assert kind.seen == []
        world.server.delete(CONFIG_MAPS, SWITCH, USER)
        await clock.sleep(10)
        assert length(world, "a") == "1"
        await process.manager.stop()

    play(story)


def test_a_pause_that_begins_while_a_key_waits_for_the_cache_holds() -> None:
    """The pause is checked last, immediately before the reconcile."""
    kind = stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, kind)

        async def lag(verb: str, resource: Resource, key: Key) -> None:
            if verb == "patch":
                process.line.flowing.clear()
                # A second change is delivered before our own write is.
                process.manager._runners[0].enqueue_all()

        process.line.after = lag
        await clock.sleep(5)
        assert names(kind) == ["a"]
        world.change("a", metadata={"annotations": {"springtide.dev/paused": "true"}}, data={"text": "xyz"})
        process.line.flowing.set()
        await clock.sleep(5)
        assert names(kind) == ["a"]
        assert length(world, "a") == "1"
        await process.manager.stop()

    play(story)


def test_a_cancelled_future_in_a_reconcile_is_a_failure_of_the_reconcile() -> None:
    """The worker itself is not cancelled, and the key is requeued."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        self.seen.append((key.name, now))
        if len(self.seen) == 1:
            lost = asyncio.get_running_loop().create_future()
            lost.cancel()
            await lost
        return None

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, kind)
        await clock.sleep(10)
        assert names(kind) == ["a", "a"]
        (health,) = process.manager.health()
        assert (health.errors, health.last_error) == (1, "work/a: something that it waited for was cancelled")
        world.change("a", data={"x": "y"})
        await clock.sleep(10)
        assert names(kind) == ["a", "a", "a"]
        await process.manager.stop()

    play(story)


def test_one_key_is_never_reconciled_in_two_terms_at_once() -> None:
    """A slow end of a reconcile holds back its own controller, and no other."""
    living: list[str] = []
    side_by_side: list[str] = []

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        self.seen.append((key.name, now - START))
        side_by_side.extend(living)
        living.append(key.name)
        try:
            await self.context.clock.sleep(5)
        finally:
            try:
                await self.context.clock.sleep(30)
            finally:
                living.remove(key.name)
        return None

    slow, quick = stamp_controller(name="slow", reconcile=reconcile), stamp_controller(name="quick")

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, slow, quick, identity="me")
        await clock.sleep(2.5)
        take_over(world)
        await clock.sleep(20)
        assert holder(world) == "me"
        assert [one.state for one in process.manager.health()] == [ControllerState.SYNCING, ControllerState.RUNNING]
        await clock.sleep(20)
        assert len(slow.seen) == 2
        assert side_by_side == []
        process.crash()

    play(story)


def test_a_reconcile_that_ignores_the_end_of_its_term_is_the_last_one() -> None:
    """When it returns, its queue is empty."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        self.seen.append((key.name, now))
        try:
            await self.context.clock.sleep(1000)
        except asyncio.CancelledError:
            await self.context.clock.sleep(1)
        return None

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        world.config_map("b")
        process = Process(world, clock, kind, identity="me")
        await clock.sleep(3)
        world.server.patch(LEASES, LEASE, Patch.merge({"spec": {"holderIdentity": "other"}}), USER)
        await clock.sleep(10)
        assert (names(kind), process.manager.health()[0].state) == (["a"], ControllerState.STANDING_BY)
        process.crash()

    play(story)


def test_followers_are_removed_at_the_end_of_a_term() -> None:
    """Else a former controller would be called forever."""
    made: list[list[str]] = []

    class Follower(StampController):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            followed: list[str] = []
            made.append(followed)
            context.follow(WORK, lambda delta: followed.append(delta.key.name))

    kind = type("Variant", (Follower,), {"seen": []})

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind, identity="me")
        await clock.sleep(3)
        take_over(world)
        await clock.sleep(10)
        world.config_map("a")
        await clock.sleep(1)
        first, second = made
        assert "a" not in first
        assert "a" in second
        process.crash()

    play(story)


def test_an_event_of_an_ended_term_is_not_sent() -> None:
    """Also if the request is cancelled late."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        self.context.events.record(CONFIG_MAPS, self.context.store(WORK).get(key), normal("Seen", "it was seen"))
        return None

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, kind, identity="me")

        async def dawdle(verb: str, resource: Resource, key: Key) -> None:
            if resource == LEASES and clock.monotonic() > 1:
                raise ServerError("out of order")
            if resource == EVENTS:
                try:
                    await clock.sleep(100)
                except asyncio.CancelledError:
                    await clock.sleep(1)

        process.line.before = dawdle
        await clock.sleep(30)
        assert world.events() == []
        process.crash()

    play(story)


def test_a_stop_sends_queued_events() -> None:
    """They are about the last writes."""

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, stamp_controller(), identity="me")

        async def dawdle(verb: str, resource: Resource, key: Key) -> None:
            if resource == EVENTS:
                await clock.sleep(3)

        process.line.before = dawdle
        await clock.sleep(1)
        assert world.events() == []
        await process.manager.stop()
        assert [event["reason"] for event in world.events()] == ["Stamped"]
        assert clock.monotonic() == pytest.approx(3, abs=0.1)

    play(story)


def test_a_stop_drops_keys_that_wait_for_the_cache() -> None:
    """Their reconciles have not begun."""
    kind = stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, kind, identity="me")

        async def lag(verb: str, resource: Resource, key: Key) -> None:
            if verb == "patch" and resource == CONFIG_MAPS:
                process.line.flowing.clear()
                process.manager._runners[0].enqueue_all()

        process.line.after = lag
        await clock.sleep(1.5)
        await process.manager.stop()
        assert clock.monotonic() == pytest.approx(1.5, abs=0.1)
        assert (names(kind), holder(world)) == (["a"], "")

    play(story)


def test_a_stop_ends_without_answers_of_the_server() -> None:
    """The lease expires then."""

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, stamp_controller(), identity="me")
        await clock.sleep(3)
        process.line.before = hang
        await process.manager.stop()
        assert clock.monotonic() <= 3 + 5
        assert process.task.done()

    play(story)


def test_a_stop_while_the_lease_is_being_acquired_releases_it() -> None:
    """The answer had not come yet, and would have been positive."""

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, stamp_controller(), identity="me")

        async def dawdle(verb: str, resource: Resource, key: Key) -> None:
            if verb == "create":
                await clock.sleep(2)

        process.line.after = dawdle
        await clock.sleep(1)
        assert holder(world) == "me"
        await process.manager.stop()
        assert holder(world) == ""

    play(story)


def test_losing_the_lease_during_a_stop_cancels_reconciles() -> None:
    """There is no grace without permission to write."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        await self.context.clock.sleep(1000)
        return None

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, stamp_controller(reconcile=reconcile), identity="me")
        await clock.sleep(3.5)
        stopping = asyncio.ensure_future(process.manager.stop())
        take_over(world)
        await stopping
        assert clock.monotonic() == pytest.approx(4, abs=0.1)
        assert holder(world) == "other"

    play(story)


def test_the_lease_is_released_when_everything_has_ended() -> None:
    """Not while a cancelled reconcile still cleans up: it may write as long as the process leads."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        try:
            await self.context.clock.sleep(1000)
        finally:
            await self.context.clock.sleep(2)
            body = Patch.merge({"data": {"length": "clean"}})
            await self.context.client.patch(CONFIG_MAPS, body, of=self.context.store(WORK).get(key), because="the end")
        return None

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(
            world,
            clock,
            stamp_controller(reconcile=reconcile),
            identity="me",
            settings=ManagerSettings(grace=1, flush=1),
        )
        await clock.sleep(3)
        await process.manager.stop()
        assert (length(world, "a"), holder(world)) == ("clean", "")
        assert [what for _, _, what in world.written()][-1] == f"Lease {LEASE}"

    play(story)


def test_nothing_is_sent_after_a_stop_without_election() -> None:
    """Writes of a reconcile that does not end are withheld, as after a released lease."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        try:
            await self.context.clock.sleep(1000)
        finally:
            await self.context.clock.sleep(50)
            await self.context.client.patch(
                CONFIG_MAPS, Patch.merge({"data": {"late": "yes"}}), of=self.context.store(WORK).get(key), because="?"
            )
        return None

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, stamp_controller(reconcile=reconcile), settings=ManagerSettings(grace=1))
        await clock.sleep(1)
        await process.manager.stop()
        await clock.sleep(100)
        assert world.written() == []

    play(story)


def test_an_observing_process_does_not_keep_an_acting_one_from_leading() -> None:
    """It has a lease of its own; another observer stands by."""
    kinds = [stamp_controller() for _ in range(3)]

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        observers = [Process(world, clock, kind, identity=kind.name, mode=Mode.OBSERVE) for kind in kinds[:1]]
        await clock.sleep(3)
        observers.append(Process(world, clock, kinds[1], identity="second", mode=Mode.OBSERVE))
        actor = Process(world, clock, kinds[2], identity="actor")
        await clock.sleep(3)

        assert length(world, "a") == "1"
        assert holder(world) == "actor"
        assert holder(world, Key(LEASE.namespace, "springtide-observe")) == "stamper"
        assert (len(kinds[0].seen) > 0, kinds[1].seen) == (True, [])
        for process in (*observers, actor):
            process.crash()

    play(story)


def test_a_process_with_one_acting_controller_takes_the_acting_lease() -> None:
    """Two processes must not write the same objects."""

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        kinds = stamp_controller(name="one"), stamp_controller(name="two")
        process = Process(world, clock, *kinds, identity="me", mode=Mode.OBSERVE, modes={"two": Mode.ACT})
        await clock.sleep(1)
        assert holder(world) == "me"
        process.crash()

    play(story)


def test_an_unreadable_object_is_counted_and_does_not_affect_others() -> None:
    """It is reconciled when it changes."""
    texts = Cached(WORK.selection, record=lambda item: item["data"]["text"])

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        self.seen.append((key.name, now))
        return None

    kind = stamp_controller(watches=(Watch(texts),), reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("bad")
        world.config_map("good", text="x")
        process = Process(world, clock, kind)
        await clock.sleep(1)
        assert (names(kind), process.manager.health()[0].unreadable) == (["good"], 1)
        assert [one.unreadable for one in process.manager.cache_health()] == [1, 0]
        world.change("bad", data={"text": "y"})
        await clock.sleep(1)
        assert (names(kind), process.manager.health()[0].unreadable) == (["good", "bad"], 0)
        await process.manager.stop()

    play(story)


def test_a_success_resets_the_backoff() -> None:
    """The next failure is followed by the shortest pause again."""
    failing = [True] * 8

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        self.seen.append((key.name, round(self.context.clock.monotonic() * 1000)))
        if failing and failing.pop():
            raise ZeroDivisionError
        return None

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, kind)
        await clock.sleep(60)
        assert len(kind.seen) == 9
        failing.append(True)
        kind.seen.clear()
        world.change("a", data={"x": "y"})
        await clock.sleep(60)
        (_, first), (_, second) = kind.seen
        assert second - first == 5
        await process.manager.stop()

    play(story)


def test_a_write_withheld_by_a_pause_is_not_retried_until_it_ends() -> None:
    """It is no failure: no backoff grows."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        await self.context.clock.sleep(3)
        return await StampController.reconcile(self, key, now)

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, kind)
        await clock.sleep(1)
        world.config_map(SWITCH.name, SWITCH.namespace, paused="true")
        await clock.sleep(10)
        queue = process.manager._runners[0]._worker
        assert queue is not None
        assert (names(kind), len(queue.queue), queue.queue.delayed) == (["a"], 0, 0)
        await process.manager.stop()

    play(story)
