"""The manager: start, reconciles, failures, modes, takeover and stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.cluster.manager_process import (
    SECRET_OF,
    WORK,
    Process,
    StampController,
    length,
    named_by_label,
    names,
    stamp_controller,
)
from tests.cluster.memory_cluster import LEASES, SECRETS, START, USER, MemoryCluster, do_nothing

from springtide.cluster.client import Mode
from springtide.cluster.controller import Cached, Result, Watch
from springtide.cluster.errors import NotLeader, RequestTimeout, ServerError, TooManyRequests
from springtide.cluster.health import ControllerState
from springtide.cluster.manager import ManagerSettings
from springtide.cluster.resources import Key, Resource, Selection
from springtide.cluster.store import Store
from springtide.cluster.transport import Patch
from springtide.simulator.virtual_time import VirtualClock, run

LEASE = Key("springtide-system", "springtide")


def play(story: Callable[[MemoryCluster, VirtualClock], Awaitable[None]]) -> None:
    """Play a story in virtual time."""

    async def main(clock: VirtualClock) -> None:
        await story(MemoryCluster(clock), clock)

    run(main, start=START)


def test_every_object_is_reconciled_once_and_then_after_changes() -> None:
    """The first reconcile sees a complete cache."""
    kind = stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        for name in "b", "a":
            world.config_map(name, text="xyz")
        process = Process(world, clock, kind)
        await clock.sleep(1)
        assert (length(world, "a"), length(world, "b")) == ("3", "3")
        assert names(kind)[:2] == ["a", "b"]

        kind.seen.clear()
        world.change("a", data={"text": "four"})
        await clock.sleep(1)
        assert length(world, "a") == "4"
        # Once for the change, once for its own write.
        assert names(kind) == ["a", "a"]
        await process.manager.stop()
        assert process.task.done()

    play(story)


def test_objects_that_are_not_owned_are_not_reconciled() -> None:
    """Neither at the start nor when they change, nor after they stop being owned."""
    kind = stamp_controller(
        owns=lambda self, record: record["metadata"]["name"] == "mine" and "theirs" not in record["data"]
    )

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("mine", text="x")
        world.config_map("other", text="x")
        process = Process(world, clock, kind)
        await clock.sleep(1)
        world.change("other", data={"text": "xy"})
        world.change("mine", data={"theirs": "yes", "text": "xyz"})
        await clock.sleep(1)

        assert (length(world, "mine"), length(world, "other")) == ("1", None)
        assert set(names(kind)) == {"mine"}
        await process.manager.stop()

    play(story)


def test_a_watch_maps_changes_of_other_kinds_to_keys() -> None:
    """By the record before and after the change, also after a deletion."""
    kind = stamp_controller(watches=(Watch(WORK), Watch(SECRET_OF, keys=named_by_label)))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        body = {"metadata": {"name": "s", "namespace": "work", "labels": {"for": "a"}}}
        world.server.create(SECRETS, body, USER, namespace="work")
        process = Process(world, clock, kind)
        await clock.sleep(1)
        assert names(kind) == ["a"]

        kind.seen.clear()
        world.change("s", resource=SECRETS, metadata={"labels": {"for": "b"}})
        await clock.sleep(1)
        assert names(kind) == ["a", "b"]

        kind.seen.clear()
        world.server.delete(SECRETS, Key("work", "s"), USER)
        await clock.sleep(1)
        assert names(kind) == ["b"]
        await process.manager.stop()

    play(story)


def test_a_result_requeues_a_key() -> None:
    """At an instant, or after some seconds; the earlier one counts."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        self.seen.append((key.name, now - START))
        return Result(requeue_at=START + 100, requeue_after=700) if now < START + 100 else None

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, kind)
        await clock.sleep(1000)
        assert kind.seen == [("a", 0), ("a", 100), ("a", 700)]
        await process.manager.stop()

    play(story)


def test_a_failure_is_retried_and_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    """Neither another object of the same controller nor another controller."""

    failures: list[Key] = []

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        if key.name == "bad" and len(failures) < 3:
            failures.append(key)
            raise ZeroDivisionError("nothing to divide by")
        return await StampController.reconcile(self, key, now)

    failing, sound = stamp_controller(reconcile=reconcile, name="failing"), stamp_controller(name="sound")

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("bad", text="x")
        world.config_map("good", text="x")
        process = Process(world, clock, failing, sound, modes={"sound": Mode.OBSERVE})
        await clock.sleep(60)

        assert (length(world, "bad"), length(world, "good")) == ("1", "1")
        first, second = process.manager.health()
        assert (first.state, first.errors, first.last_error) == (
            ControllerState.RUNNING,
            3,
            "work/bad: nothing to divide by",
        )
        assert (second.errors, second.state) == (0, ControllerState.RUNNING)
        await process.manager.stop()

    play(story)
    assert "nothing to divide by" in caplog.text
    assert "Traceback" in caplog.text


def broken_constructor(self: StampController, context: Any) -> None:
    raise RuntimeError("no way")


def broken_ownership(self: StampController, record: Any) -> bool:
    raise RuntimeError("no way")


def broken_mapping(key: Key, record: Any) -> list[Key]:
    raise RuntimeError("no way")


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        pytest.param({"__init__": broken_constructor}, ControllerState.FAILED, id="constructor"),
        pytest.param({"owns": broken_ownership}, ControllerState.RUNNING, id="ownership"),
        pytest.param({"watches": (Watch(WORK, keys=broken_mapping),)}, ControllerState.RUNNING, id="mapping"),
    ],
)
def test_a_broken_controller_does_not_affect_others(parts: dict[str, Any], state: ControllerState) -> None:
    """It is logged and counted."""
    broken, sound = stamp_controller(name="broken", **parts), stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, broken, sound)
        await clock.sleep(10)
        world.change("a", data={"text": "xy"})
        await clock.sleep(10)

        assert length(world, "a") == "2"
        health = process.manager.health()[0]
        assert (health.state, health.reconciles) == (state, 0)
        assert health.errors >= 1
        assert "no way" in health.last_error
        await process.manager.stop()

    play(story)


def test_a_cache_that_does_not_sync_holds_back_only_dependent_controllers() -> None:
    """For example if its kind is not installed."""
    unknown = Cached(Selection(Resource("example.com", "v1", "things", "Thing")))
    needy, sound = stamp_controller(name="needy", watches=(Watch(WORK), Watch(unknown))), stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, needy, sound)
        await clock.sleep(60)

        assert length(world, "a") == "1"
        assert [health.state for health in process.manager.health()] == [
            ControllerState.SYNCING,
            ControllerState.RUNNING,
        ]
        await process.manager.stop()
        assert process.task.done()

    play(story)


def test_a_reconcile_never_sees_a_stale_cache() -> None:
    """After its own write a controller waits until the cache shows it, however slow the watch is."""
    counts: list[int] = []

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        """Make one more ConfigMap for each call, until there are three."""
        made = self.context.store(WORK).keys()
        counts.append(len(made))
        if len(made) < 3:
            body = {"metadata": {"name": f"made-{len(made)}", "namespace": "work"}}
            await self.context.client.create(WORK.selection.resource, body, because="there are too few")
            return Result(requeue_after=1)
        return None

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind)
        await clock.sleep(0.1)
        process.line.flowing.clear()
        world.config_map("first")
        for _ in range(20):
            await clock.sleep(10)
            # The watch delivers what there is once every ten seconds only.
            process.line.flowing.set()
            await asyncio.sleep(0)
            process.line.flowing.clear()
        process.line.flowing.set()
        await clock.sleep(10)

        assert sorted(set(counts)) == [1, 2, 3]
        assert [one for one in world.written() if one[1] == "create"] == [
            ("springtide-stamper", "create", "ConfigMap work/made-1"),
            ("springtide-stamper", "create", "ConfigMap work/made-2"),
        ]
        assert process.manager.health()[0].errors == 0
        await process.manager.stop()

    play(story)


@pytest.mark.parametrize(
    ("watch_delay", "answer_delay"),
    [
        pytest.param(0, 5, id="the-watch-is-faster-than-the-answer"),
        pytest.param(5, 0, id="the-answer-is-faster-than-the-watch"),
    ],
)
@pytest.mark.parametrize(
    ("change", "reconciled"),
    [
        pytest.param({}, ["a"], id="no-other-change"),
        pytest.param({"data": {"text": "four"}}, ["a", "a"], id="a-user-changes-the-object-after-the-write"),
    ],
)
def test_own_writes_enqueue_no_key_where_a_controller_skips_them(
    watch_delay: int, answer_delay: int, change: dict[str, Any], reconciled: list[str]
) -> None:
    """A change of a user enqueues it in any order of answer and watch events."""
    kind = stamp_controller(skips_own_writes=True)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind)
        await clock.sleep(1)

        async def after(verb: str, resource: Resource, key: Key) -> None:
            if verb == "patch" and len(kind.seen) == 1:
                if change:
                    world.change("a", **change)
                await clock.sleep(answer_delay)

        async def before(verb: str, resource: Resource, key: Key) -> None:
            if verb == "patch" and watch_delay:
                process.line.flowing.clear()

        process.line.before, process.line.after = before, after
        world.config_map("a", text="xyz")
        await clock.sleep(watch_delay or 10)
        process.line.flowing.set()
        await clock.sleep(10)
        process.line.flowing.set()
        await clock.sleep(10)
        assert (names(kind), length(world, "a")) == (reconciled, "4" if change else "3")

        kind.seen.clear()
        process.line.before = process.line.after = do_nothing
        world.change("a", data={"text": "and a change later on"})
        await clock.sleep(10)
        assert (names(kind), length(world, "a")) == (["a"], "21")
        await process.manager.stop()

    play(story)


def test_a_reconcile_that_fails_after_its_own_write_is_retried() -> None:
    """Also where the controller skips its own writes."""
    stamp = StampController.reconcile

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        await stamp(self, key, now)
        if len(self.seen) == 1:
            raise ServerError("broken")
        return None

    kind = stamp_controller(reconcile=reconcile, skips_own_writes=True)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="xyz")
        process = Process(world, clock, kind)
        await clock.sleep(100)
        assert (names(kind), length(world, "a")) == (["a", "a"], "3")
        await process.manager.stop()

    play(story)


def test_observe_mode_writes_only_events() -> None:
    """It decides all the same."""
    kind = stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, kind, mode=Mode.OBSERVE)
        await clock.sleep(60)

        assert {what.split()[0] for _, _, what in world.written()} == {"Event"}
        assert process.manager.health()[0].traffic.held_back == 1
        await process.manager.stop()

    play(story)


def test_modes_can_differ() -> None:
    """One controller acts while the others observe."""
    acting, observing = stamp_controller(name="acting"), stamp_controller(name="observing")

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, acting, observing, mode=Mode.OBSERVE, modes={"acting": Mode.ACT})
        await clock.sleep(10)

        assert [who for who, _, what in world.written("Event")] == ["springtide-acting"]
        await process.manager.stop()

    play(story)


@pytest.mark.parametrize(
    ("kinds", "modes", "message"),
    [
        pytest.param([stamp_controller(), stamp_controller()], {}, "two controllers named 'stamper'", id="twice"),
        pytest.param([stamp_controller()], {"stamped": Mode.ACT}, "no controller named 'stamped'", id="unknown"),
    ],
)
def test_names_are_checked(kinds: list[type[StampController]], modes: dict[str, Mode], message: str) -> None:
    """Of controllers, and of modes for controllers that do not exist."""

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        with pytest.raises(ValueError, match=message):
            Process(world, clock, *kinds, modes=modes)

    play(story)


def test_another_replica_takes_over_from_a_crashed_leader() -> None:
    """Its caches are ready, and it reconciles everything at once."""
    one, two = stamp_controller(), stamp_controller()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        first = Process(world, clock, one, identity="one")
        await clock.sleep(1)
        second = Process(world, clock, two, identity="two")
        await clock.sleep(30)
        assert (names(one), names(two)) == (["a", "a"], [])

        first.crash()
        world.change("a", data={"text": "xyz"})
        await clock.sleep(20)
        assert length(world, "a") == "3"
        assert names(two)[0] == "a"
        await second.manager.stop()

    play(story)


def test_losing_the_lease_cancels_reconciles_and_the_process_stands_by() -> None:
    """Nothing more is sent, and later the process leads again."""
    ends: list[str] = []

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        try:
            await self.context.clock.sleep(20)
            return await StampController.reconcile(self, key, now)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind, identity="one")
        await clock.sleep(3)
        world.config_map("a", text="x")
        await clock.sleep(1)

        async def refuse(verb: str, resource: Resource, key: Key) -> None:
            if resource == LEASES:
                raise ServerError("out of order")

        process.line.before = refuse
        await clock.sleep(12)
        assert ends == ["cancelled"]
        assert length(world, "a") is None
        assert process.manager.health()[0].state is ControllerState.STANDING_BY

        process.line.before = process.line.after
        await clock.sleep(30)
        assert length(world, "a") == "1"
        await process.manager.stop()

    play(story)


def test_a_reconcile_that_ignores_cancellation_sends_nothing() -> None:
    """The permit withholds its writes, also in a later term of the same process."""
    refusals: list[str] = []

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        item = self.context.store(WORK).get(key)
        if len(self.seen) > 0:
            return None
        self.seen.append((key.name, now))
        for _ in range(40):
            try:
                await self.context.clock.sleep(1)
            except asyncio.CancelledError:
                refusals.append("cancelled")
        try:
            await self.context.client.patch(
                WORK.selection.resource, Patch.merge({"data": {"x": "y"}}), of=item, because=""
            )
        except NotLeader:
            refusals.append("refused")
        return None

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, kind, identity="one")
        await clock.sleep(1)

        async def refuse(verb: str, resource: Resource, key: Key) -> None:
            if resource == LEASES:
                raise RequestTimeout("no answer")

        process.line.before = refuse
        await clock.sleep(15)
        process.line.before = process.line.after
        await clock.sleep(60)

        assert refusals[-1] == "refused"
        assert process.leadership is not None
        assert process.leadership.leading
        assert world.written("Lease", "Event") == []
        process.crash()

    play(story)


def test_a_stop_finishes_reconciles_and_releases_the_lease_last() -> None:
    """No new keys are taken; events are sent; then others may lead."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        await self.context.clock.sleep(5)
        return await StampController.reconcile(self, key, now)

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        world.config_map("b", text="x")
        process = Process(world, clock, kind, identity="one")
        await clock.sleep(2)
        began = clock.monotonic()
        await process.manager.stop()

        assert clock.monotonic() - began == pytest.approx(3, abs=0.1)
        assert (length(world, "a"), length(world, "b")) == ("1", None)
        assert [what for _, _, what in world.written()][-3:] == [
            "ConfigMap work/a",
            "Event " + world.events()[0]["metadata"]["namespace"] + "/" + world.events()[0]["metadata"]["name"],
            "Lease springtide-system/springtide",
        ]
        assert world.server.get(LEASES, LEASE)["spec"]["holderIdentity"] == ""
        asked = len(process.line.asked)
        await clock.sleep(100)
        assert len(process.line.asked) == asked

    play(story)


def test_a_stop_has_a_timeout() -> None:
    """Reconciles that are not done within the grace are cancelled."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        await self.context.clock.sleep(1000)
        return None

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        process = Process(world, clock, kind, identity="one", settings=ManagerSettings(grace=7))
        await clock.sleep(2)
        await process.manager.stop()
        assert clock.monotonic() == pytest.approx(9, abs=0.1)
        assert world.server.get(LEASES, LEASE)["spec"]["holderIdentity"] == ""

    play(story)


def test_a_standby_that_stops_does_not_touch_the_lease() -> None:
    """It is another's."""

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        first = Process(world, clock, stamp_controller(), identity="one")
        await clock.sleep(1)
        second = Process(world, clock, stamp_controller(), identity="two")
        await clock.sleep(5)
        await second.manager.stop()
        assert world.server.get(LEASES, LEASE)["spec"]["holderIdentity"] == "one"
        await first.manager.stop()

    play(story)


def test_controllers_share_the_cache_of_a_selection() -> None:
    """Two watches of the same selection are one watch on the server."""
    one, two = stamp_controller(name="one"), stamp_controller(name="two")

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        made: list[object] = []

        def make(cached: Any) -> Any:
            made.append(cached.selection)
            return Store(cached.record, cached.indexes)

        process = Process(world, clock, one, two, make_store=make)
        await clock.sleep(1)
        assert made.count(WORK.selection) == 1
        assert len(names(one)) >= 1
        assert len(names(two)) >= 1
        await process.manager.stop()

    play(story)


def test_retry_after_is_respected() -> None:
    """The key is requeued after the time that the server named, not sooner."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        self.seen.append((key.name, now - START))
        if len(self.seen) == 1:
            raise TooManyRequests("busy", retry_after=30)
        return None

    kind = stamp_controller(reconcile=reconcile)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process = Process(world, clock, kind)
        await clock.sleep(100)
        assert kind.seen == [("a", 0), ("a", 30)]
        await process.manager.stop()

    play(story)
