"""Shared state: built once from the caches, complete before a reader starts, and reset at the end of a term."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import pytest
from tests.cluster.manager_process import SECRET_OF, WORK, Process, StampController, names, stamp_controller
from tests.cluster.memory_cluster import CONFIG_MAPS, LEASES, SECRETS, USER, MemoryCluster, do_nothing
from tests.cluster.test_manager import play

from springtide.cluster.context import ControllerContext, Services
from springtide.cluster.controller import Cached, Controller, Watch, cache_only
from springtide.cluster.errors import ConnectionLost
from springtide.cluster.health import ControllerState
from springtide.cluster.manager import Manager
from springtide.cluster.resources import Key, Resource, Selection
from springtide.cluster.state import SharedState, StateWatch
from springtide.cluster.store import Delta
from springtide.simulator.virtual_time import VirtualClock

NOT_INSTALLED = Cached(Selection(Resource("example.com", "v1", "things", "Thing")))


class SecretNames(SharedState[str]):
    """The names of all Secrets; a change of it is a name."""

    sources = (SECRET_OF,)
    made: ClassVar[int] = 0

    def __init__(self) -> None:
        type(self).made += 1
        self.names: list[str] = []
        self.applied: list[str] = []

    def apply(self, cached: Cached, delta: Delta[Any]) -> None:
        self.applied.append(delta.key.name)
        if delta.key.name.startswith("bad"):
            raise ValueError("no way")
        if delta.new is None:
            self.names.remove(delta.key.name)
        elif delta.old is None:
            self.names.append(delta.key.name)
        self.publish(delta.key.name)

    def reset(self) -> None:
        self.names.clear()
        self.applied.clear()


def secret_names() -> type[SecretNames]:
    """Make a variant of the state that counts its own instances."""
    return type("SecretNames", (SecretNames,), {"made": 0})


class Values(SharedState[Key]):
    """What a provider has computed for each of its objects."""

    def __init__(self) -> None:
        self.values: dict[Key, str] = {}

    def put(self, key: Key, value: str) -> None:
        self.values[key] = value
        self.publish(key)

    def reset(self) -> None:
        self.values.clear()


def reader(state: type[SharedState[Any]], found: list[Any], **parts: Any) -> type[StampController]:
    """Make a controller that notes what a state holds when it is created."""

    def create(self: StampController, context: ControllerContext) -> None:
        StampController.__init__(self, context)
        held = context.state(state)
        found.append(list(held.names if isinstance(held, SecretNames) else held.values))  # type: ignore[attr-defined]

    return stamp_controller(**{"name": "reader", "states": (state,), "__init__": create, **parts})


def create_secret(world: MemoryCluster, name: str, **labels: str) -> None:
    body = {"metadata": {"name": name, "namespace": "work", "labels": {"for": "a", **labels}}}
    world.server.create(SECRETS, body, USER, namespace="work")


def pause_everything(world: MemoryCluster) -> None:
    world.config_map("springtide-pause", "springtide-system", paused="true")


def resume_everything(world: MemoryCluster) -> None:
    world.server.delete(CONFIG_MAPS, Key("springtide-system", "springtide-pause"), USER)


async def refuse_the_lease(verb: str, resource: Resource, key: Key) -> None:
    if resource == LEASES:
        raise ConnectionLost("the network is down")


def test_a_state_is_built_once_and_is_complete_when_its_readers_start() -> None:
    """Two readers share one instance, which is replayed in the order of keys and follows changes afterwards."""
    state = secret_names()
    found: list[Any] = []
    first, second = reader(state, found, name="first"), reader(state, found, name="second")

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        for name in "b", "a", "c":
            create_secret(world, name)
        process = Process(world, clock, first, second)
        await clock.sleep(1)
        assert found == [["a", "b", "c"], ["a", "b", "c"]]
        assert state.made == 1

        create_secret(world, "d")
        world.server.delete(SECRETS, Key("work", "a"), USER)
        await clock.sleep(1)
        assert process.manager.state(state).names == ["b", "c", "d"]
        await process.manager.stop()

    play(story)


def test_changes_of_a_state_enqueue_the_keys_that_a_watch_maps_them_to() -> None:
    """The state shows the change already; without a `StateWatch` nothing is enqueued."""
    state = secret_names()

    def keys(name: str) -> Iterable[Key]:
        return (Key("work", name),)

    watching = stamp_controller(name="watching", states=(StateWatch(state, keys),))
    reading = stamp_controller(name="reading", states=(state,))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="x")
        world.config_map("b", text="x")
        process = Process(world, clock, watching, reading)
        await clock.sleep(10)
        watching.seen.clear()
        reading.seen.clear()
        create_secret(world, "b")
        await clock.sleep(1)
        assert (names(watching), names(reading)) == (["b"], [])
        await process.manager.stop()

    play(story)


def test_a_controller_subscribes_until_the_term_ends(caplog: pytest.LogCaptureFixture) -> None:
    """A reader that fails does not keep others from being called; a broken mapping is counted as a failure."""
    state = secret_names()
    heard: list[str] = []

    def fail(name: str) -> None:
        raise RuntimeError("no way")

    def create(self: StampController, context: ControllerContext) -> None:
        StampController.__init__(self, context)
        context.subscribe(state, fail)
        context.subscribe(state, heard.append)

    def broken(name: str) -> Iterable[Key]:
        raise ZeroDivisionError("nothing to divide by")

    kind = stamp_controller(states=(StateWatch(state, broken),), __init__=create)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind)
        await clock.sleep(1)
        create_secret(world, "a")
        await clock.sleep(1)
        health = process.manager.health()[0]
        assert (heard, health.errors) == (["a"], 1)
        assert "nothing to divide by" in health.last_error
        await process.manager.stop()
        process.manager.state(state).publish("later")
        assert heard == ["a"]

    play(story)
    assert "a reader of SecretNames failed on a change" in caplog.text


def test_a_record_that_cannot_be_applied_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """Neither the other records nor the readers wait for it."""
    state = secret_names()
    found: list[Any] = []

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        for name in "a", "bad", "c":
            create_secret(world, name)
        process = Process(world, clock, reader(state, found))
        await clock.sleep(1)
        create_secret(world, "bad-as-well")
        create_secret(world, "d")
        await clock.sleep(1)
        assert found == [["a", "c"]]
        assert process.manager.state(state).names == ["a", "c", "d"]
        await process.manager.stop()

    play(story)
    assert "a listener failed on the change of work/bad" in caplog.text


def test_a_state_is_reset_when_the_term_is_over() -> None:
    """Not sooner: a reconcile that is still under way at the end reads it; after that it follows no changes."""
    state = secret_names()
    read: list[tuple[str, list[str]]] = []

    async def slow(self: StampController, key: Key, now: int) -> None:
        await self.context.clock.sleep(5)
        read.append((key.name, list(self.context.state(state).names)))

    kind = stamp_controller(states=(state,), reconcile=slow)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        create_secret(world, "a")
        world.config_map("x")
        process = Process(world, clock, kind)
        await clock.sleep(1)
        held = process.manager.state(state)
        await process.manager.stop()
        assert read == [("x", ["a"])]
        assert held.names == []
        create_secret(world, "b")
        await clock.sleep(1)
        assert held.names == []

    play(story)


def test_a_crash_resets_a_state() -> None:
    state = secret_names()

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        create_secret(world, "a")
        process = Process(world, clock, stamp_controller(states=(state,)))
        await clock.sleep(1)
        held = process.manager.state(state)
        assert held.names == ["a"]
        process.crash()
        await clock.sleep(10)
        assert held.names == []

    play(story)


def test_a_new_term_builds_a_state_again() -> None:
    """What changed while another process led is there; what a former term applied is not applied twice."""
    state = secret_names()
    found: list[Any] = []
    kind = reader(state, found)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        create_secret(world, "a")
        process = Process(world, clock, kind, identity="one")
        await clock.sleep(10)
        process.line.before = refuse_the_lease
        await clock.sleep(30)
        held = process.manager.state(state)
        assert (process.manager.leading, held.names) == (False, [])
        create_secret(world, "b")
        process.line.before = do_nothing
        await clock.sleep(60)
        assert process.manager.leading
        assert found == [["a"], ["a", "b"]]
        assert (held.names, held.applied) == (["a", "b"], ["a", "b"])
        assert state.made == 1
        await process.manager.stop()

    play(story)


def test_an_optional_source_may_be_absent() -> None:
    """A required one holds its readers back; other controllers work."""
    found: list[Any] = []
    optional = type("Optional", (SecretNames,), {"optional_sources": (NOT_INSTALLED,)})
    required = type("Required", (SecretNames,), {"sources": (SECRET_OF, NOT_INSTALLED)})
    kinds = (reader(optional, found, name="optional"), stamp_controller(name="required", states=(required,)))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        create_secret(world, "a")
        process = Process(world, clock, *kinds)
        await clock.sleep(120)
        assert found == [["a"]]
        assert [health.state for health in process.manager.health()] == [
            ControllerState.RUNNING,
            ControllerState.SYNCING,
        ]
        await process.manager.stop()

    play(story)


def test_writes_are_visible_in_a_state_before_the_next_reconcile() -> None:
    """The read-your-writes barrier covers the sources of the states that a controller reads."""
    state = secret_names()
    seen: list[tuple[str, list[str]]] = []

    async def reconcile(self: StampController, key: Key, now: int) -> None:
        seen.append((key.name, list(self.context.state(state).names)))
        body = {"metadata": {"name": f"of-{key.name}", "namespace": "work", "labels": {"for": key.name}}}
        if f"of-{key.name}" not in self.context.state(state).names:
            await self.context.client.create(SECRETS, body, because="it is missing")

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        for name in "a", "b":
            world.config_map(name)
        process = Process(world, clock, stamp_controller(states=(state,), reconcile=reconcile))
        await clock.sleep(10)
        assert seen == [("a", []), ("b", ["of-a"])]
        await process.manager.stop()

    play(story)


def test_a_state_is_given_what_it_needs() -> None:
    """Its dependencies are the arguments of its constructor; a missing one is named when the manager is built."""

    class Prefixed(SharedState[None]):
        needs = (str,)

        def __init__(self, prefix: str) -> None:
            self.prefix = prefix

    kind = stamp_controller(states=(Prefixed,))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, kind, services=Services("p-"))
        assert process.manager.state(Prefixed).prefix == "p-"
        await process.manager.stop()
        with pytest.raises(LookupError, match="the shared state Prefixed needs a str, but this process offers no str"):
            Process(world, clock, kind)

    play(story)


def test_a_state_that_is_not_declared_cannot_be_read() -> None:
    held: list[ControllerContext] = []

    class Undeclared(stamp_controller()):  # type: ignore[misc]
        def __init__(self, context: ControllerContext) -> None:
            super().__init__(context)
            held.append(context)

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, Undeclared, stamp_controller(name="provider", provides=(Values,)))
        await clock.sleep(1)
        with pytest.raises(LookupError, match="uses the state Values, expected it in its `states`"):
            held[0].state(Values)
        await process.manager.stop()

    play(story)


def test_a_state_looks_records_up_in_the_caches_of_its_sources() -> None:
    """Indexed look-ups need no copy."""
    by_label = Cached(Selection(SECRETS, "work"), indexes={"for": lambda item: [item["metadata"]["labels"]["for"]]})

    class ByLabel(SharedState[Delta[Any]]):
        sources = (by_label,)

        def of(self, name: str) -> list[str]:
            return [key.name for key in self.store(by_label).keys_by("for", name)]

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        create_secret(world, "s")
        process = Process(world, clock, stamp_controller(states=(ByLabel,)))
        await clock.sleep(1)
        assert process.manager.state(ByLabel).of("a") == ["s"]
        await process.manager.stop()

    play(story)


def test_a_cache_that_only_a_state_needs_is_filled() -> None:
    """No controller has to watch it; a cache that one controller can do without and a state needs is required."""

    class Needed(SharedState[None]):
        sources = (NOT_INSTALLED,)

    optional: type[Controller] = stamp_controller(
        name="optional", watches=(Watch(WORK), Watch(NOT_INSTALLED, cache_only, optional=True))
    )

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, optional, stamp_controller(name="needy", states=(Needed,)))
        manager: Manager = process.manager
        await clock.sleep(1)
        assert [cache.not_installed for cache in manager.cache_health()] == [False] * 3
        await manager.stop()

    play(story)
