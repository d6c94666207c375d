"""The caches of a process: failures, shared indexes, health, and optional kinds that are not installed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from tests.cluster.manager_process import WORK, Process, length, stamp_controller
from tests.cluster.memory_cluster import START, USER, MemoryCluster
from tests.cluster.scripted_transport import PODS, ScriptedTransport, Stream, added, bookmark, modified
from tests.cluster.test_manager import play

from springtide.cluster.caches import RESTART_DELAY, Caches
from springtide.cluster.controller import Cached, Watch, cache_only
from springtide.cluster.reflector import ReflectorSettings
from springtide.cluster.resources import Key, Resource, Selection
from springtide.cluster.store import Store
from springtide.cluster.transport import WatchEvent
from springtide.metrics.endpoints import caches_synced
from springtide.simulator.virtual_time import VirtualClock, run

PODS_SEEN = Cached(Selection(PODS))
SYNCED = (added("a", 5, "n1"), bookmark(10, end=True))


class Fragile(Store[Any]):
    """A store that breaks on one version."""

    def apply(self, event: WatchEvent) -> None:
        """Take all but one event."""
        if event.object["metadata"]["resourceVersion"] == "13":
            raise ZeroDivisionError
        super().apply(event)


def caches(clock: VirtualClock, streams: Sequence[Stream], *cached: Cached, store: type[Store[Any]] = Store) -> Caches:
    """Put caches together that are filled from a script."""
    return Caches(
        ScriptedTransport(clock, streams),
        clock,
        cached,
        random=Random(1),
        settings=ReflectorSettings(),
        make_store=lambda one: store(one.record, one.indexes),
    )


def test_a_reflector_that_a_bug_has_stopped_is_started_again_after_a_delay(caplog: pytest.LogCaptureFixture) -> None:
    """Not at once, in a loop."""

    async def main(clock: VirtualClock) -> list[float]:
        streams = [Stream([*SYNCED, modified("a", 13)]), Stream([modified("a", 13)]), Stream([modified("a", 14, "n2")])]
        made = caches(clock, streams, PODS_SEEN, store=Fragile)
        made.start()
        await clock.sleep(100)
        assert [item["spec"]["nodeName"] for item in made.stores[PODS_SEEN].values()] == ["n2"]
        made.stop()
        transport = made._transport
        assert isinstance(transport, ScriptedTransport)
        return [asked.at for asked in transport.asked]

    assert run(main) == [0, RESTART_DELAY, 2 * RESTART_DELAY]
    assert "the cache of pods failed" in caplog.text


def test_a_shared_cache_has_the_indexes_of_all_controllers() -> None:
    """Under different names; two indexes with one name must be the same."""

    def by_node(item: Any) -> list[str]:
        return [item["spec"]["nodeName"]]

    async def main(clock: VirtualClock) -> None:
        one = Cached(Selection(PODS), indexes={"node": by_node})
        two = Cached(Selection(PODS), indexes={"node": by_node, "name": lambda item: [item["metadata"]["name"]]})
        made = caches(clock, [Stream(SYNCED)], one, two)
        made.start()
        await made.wait_settled()
        assert made.stores[one].keys_by("node", "n1") == made.stores[two].keys_by("name", "a") == [Key("default", "a")]
        made.stop()

        other = Cached(Selection(PODS), indexes={"node": lambda item: []})
        with pytest.raises(ValueError, match="the cache of pods has two different indexes named 'node', expected one"):
            caches(clock, [], one, other)

    run(main)


def test_health() -> None:
    """Unreadable objects and the last error are reported."""

    async def main(clock: VirtualClock) -> None:
        cached = Cached(Selection(PODS), record=lambda item: {"n1": 1}[item["spec"]["nodeName"]])
        made = caches(clock, [Stream([*SYNCED, added("b", 11, "n2")])], cached)
        (before,) = made.health()
        assert (before.selection, before.synced, before.last_contact, before.last_error) == ("pods", False, None, "")
        made.start()
        await clock.sleep(1)
        (after,) = made.health()
        assert (after.synced, after.version, after.objects, after.unreadable) == (True, 11, 1, 1)
        made.stop()

    run(main)


CALENDARS = Resource("springtide.dev", "v1alpha1", "calendars", "Calendar", namespaced=False)
HOLIDAYS = {
    "apiVersion": "springtide.dev/v1alpha1",
    "kind": "Calendar",
    "metadata": {"name": "holidays"},
    "spec": {"dates": ["2026-12-24"]},
}
MAYBE = Cached(Selection(CALENDARS))


def problems(process: Process) -> list[str]:
    """List what the process is not ready for."""
    return [finding.name for finding in caches_synced(process.manager)() if finding.problem]


def test_an_optional_kind_that_is_not_installed_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """Reconciles begin at once, the process is ready without a warning, and the kind is cached when it is installed."""
    caplog.set_level(logging.INFO)
    kind = stamp_controller(watches=(Watch(WORK), Watch(MAYBE, cache_only, optional=True)))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="xyz")
        process = Process(world, clock, kind)
        await clock.sleep(5)
        assert length(world, "a") == "3"
        assert problems(process) == []
        await clock.sleep(200)
        assert [record.levelname for record in caplog.records if "is not served" in record.message] == ["INFO"]

        world.install_calendars()
        world.server.create(CALENDARS, HOLIDAYS, USER)
        await clock.sleep(120)
        found: dict[str, Any] = {cache.selection: cache.objects for cache in process.manager.cache_health()}
        assert found["calendars.springtide.dev"] == 1
        await process.manager.stop()

    play(story)


def test_a_required_kind_that_is_not_installed_is_waited_for() -> None:
    """It is required if one controller requires it."""
    easy = stamp_controller(watches=(Watch(WORK), Watch(MAYBE, cache_only, optional=True)))
    strict = stamp_controller(name="strict", watches=(Watch(WORK), Watch(MAYBE, cache_only)))

    async def story(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="xyz")
        process = Process(world, clock, easy, strict)
        await clock.sleep(60)
        assert (bool(easy.seen), strict.seen) == (True, [])
        assert easy.seen[0][1] >= START + 30, "all controllers wait for required caches, up to the timeout"
        assert problems(process) == ["cache calendars.springtide.dev"]
        world.install_calendars()
        await clock.sleep(60)
        assert strict.seen
        assert problems(process) == []
        await process.manager.stop()

    play(story)
