"""The metrics of a running manager, as Prometheus reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.cluster.manager_process import WORK, Process, StampController, stamp_controller
from tests.cluster.memory_cluster import CONFIG_MAPS, START, MemoryCluster
from tests.metrics.exposition import Samples

from springtide import __version__
from springtide.cluster.client import Mode
from springtide.cluster.controller import Cached, Result, Watch
from springtide.cluster.errors import Conflict, NotSent
from springtide.cluster.health import ReconcileOutcome
from springtide.cluster.pausing import ANNOTATION
from springtide.cluster.resources import Key, Selection
from springtide.metrics import ProcessMetrics
from springtide.simulator.virtual_time import VirtualClock, run


def play(scenario: Callable[[MemoryCluster, VirtualClock], Awaitable[None]]) -> None:
    """Run a test in virtual time."""

    async def main(clock: VirtualClock) -> None:
        await scenario(MemoryCluster(clock), clock)

    run(main, start=START)


def begin(
    world: MemoryCluster, clock: VirtualClock, *kinds: type[StampController], **options: Any
) -> tuple[Process, Callable[[], Samples]]:
    """Start a process with metrics, and return a function that scrapes it."""
    metrics = ProcessMetrics()
    process = Process(world, clock, *kinds, metrics=metrics, **options)
    metrics.follow(process.manager, clock)
    return process, lambda: Samples(metrics.registry)


def answering(answer: Callable[[], Result | None]) -> type[StampController]:
    """Make a controller that only returns a result."""

    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        return answer()

    return stamp_controller(reconcile=reconcile)


def raising(failure: Exception) -> Callable[[], Result | None]:
    def answer() -> Result | None:
        raise failure

    return answer


@pytest.mark.parametrize(
    ("answer", "result", "errors", "retries"),
    [
        pytest.param(lambda: None, ReconcileOutcome.SUCCESS, 0, 0, id="done"),
        pytest.param(lambda: Result(requeue_after=3600), ReconcileOutcome.REQUEUE_AFTER, 0, 0, id="again"),
        pytest.param(raising(Conflict("changed")), ReconcileOutcome.CONFLICT, 0, 1, id="conflict"),
        pytest.param(raising(NotSent("paused")), ReconcileOutcome.NOT_SENT, 0, 0, id="not sent"),
        pytest.param(raising(ValueError("a bug")), ReconcileOutcome.ERROR, 1, 1, id="failure"),
    ],
)
def test_reconciles_are_counted_by_result(
    answer: Callable[[], Result | None], result: ReconcileOutcome, errors: int, retries: int
) -> None:
    """Every result has a series from the start, so that rate() sees the first increase."""

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        process, scrape = begin(world, clock, answering(answer))
        await clock.sleep(0.001)
        before = scrape().labelled("springtide_reconcile_total")
        assert before == {("stamper", one.value): 0 for one in ReconcileOutcome}
        world.config_map("a")
        await clock.sleep(0.001)

        samples = scrape()
        after = samples.labelled("springtide_reconcile_total")
        assert {results[1]: count for results, count in after.items() if count} == {result.value: 1}
        assert samples("springtide_reconcile_time_seconds_count", controller="stamper") == 1
        assert samples("springtide_reconcile_errors_total", controller="stamper") == errors
        assert samples("springtide_workqueue_retries_total", controller="stamper") == retries
        await process.manager.stop()

    play(scenario)


def test_a_reconcile_that_a_stop_cancels_is_counted_as_stopped() -> None:
    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        await asyncio.get_running_loop().create_future()
        return None

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a")
        process, scrape = begin(world, clock, stamp_controller(reconcile=reconcile))
        await clock.sleep(1)
        await process.manager.stop()

        assert scrape()("springtide_reconcile_total", controller="stamper", result="stopped") == 1

    play(scenario)


def test_queues_pauses_and_writes_are_collected_at_every_scrape() -> None:
    """Gauges rise and fall; counters only rise."""

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        kind = stamp_controller(reconcile=_stamp_and_come_back)
        process, scrape = begin(world, clock, kind)
        for name in ("a", "b", "c"):
            world.config_map(name, text="abc")
        world.change("c", metadata={"annotations": {ANNOTATION: "true"}})
        await clock.sleep(1)

        samples = scrape()
        assert samples("springtide_workqueue_delayed", controller="stamper") == 2
        assert samples("springtide_workqueue_depth", controller="stamper") == 0
        assert samples("springtide_paused_objects", controller="stamper") == 1
        assert samples("springtide_paused") == 0
        assert samples("springtide_writes_total", controller="stamper", outcome="sent") == 2

        world.change("c", metadata={"annotations": {ANNOTATION: None}})
        world.config_map("springtide-pause", "springtide-system", paused="true")
        await clock.sleep(1)
        samples = scrape()
        assert samples("springtide_paused_objects", controller="stamper") == 0
        assert samples("springtide_paused") == 1
        await process.manager.stop()

    async def _stamp_and_come_back(self: StampController, key: Key, now: int) -> Result | None:
        await StampController.reconcile(self, key, now)
        return Result(requeue_after=3600)

    play(scenario)


def test_writes_are_withheld_in_observe_mode() -> None:
    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        world.config_map("a", text="abc")
        process, scrape = begin(world, clock, stamp_controller(), mode=Mode.OBSERVE)
        await clock.sleep(1)

        assert scrape().labelled("springtide_writes_total") == {("stamper", "sent"): 0, ("stamper", "held_back"): 1}
        await process.manager.stop()

    play(scenario)


def test_an_observing_process_is_not_the_leader() -> None:
    """Neither beside one that acts nor alone: `sum(springtide_leader) != 1` is an alert."""

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        kind = stamp_controller()
        observer, scrape_observer = begin(world, clock, kind, identity="observer", mode=Mode.OBSERVE)
        await clock.sleep(1)
        assert scrape_observer()("springtide_leader") == 0
        actor, scrape_actor = begin(world, clock, kind, identity="actor")
        await clock.sleep(5)

        assert (scrape_observer()("springtide_leader"), scrape_actor()("springtide_leader")) == (0, 1)
        for scrape in (scrape_observer, scrape_actor):
            assert scrape().labelled("springtide_controller_state")["stamper", "running"] == 1
        await observer.manager.stop()
        await actor.manager.stop()

    play(scenario)


def test_one_of_two_replicas_is_the_leader() -> None:
    """Each controller is in exactly one state."""

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        kind = stamp_controller()
        first, scrape_first = begin(world, clock, kind, identity="first")
        await clock.sleep(1)
        second, scrape_second = begin(world, clock, kind, identity="second")
        await clock.sleep(5)
        assert (scrape_first()("springtide_leader"), scrape_second()("springtide_leader")) == (1, 0)
        states = scrape_second().labelled("springtide_controller_state")
        assert [state for (_, state), value in states.items() if value] == ["standing_by"]

        first.crash()
        await clock.sleep(60)
        assert scrape_second()("springtide_leader") == 1
        states = scrape_second().labelled("springtide_controller_state")
        assert [state for (_, state), value in states.items() if value] == ["running"]
        await second.manager.stop()
        assert scrape_second()("springtide_leader") == 0

    play(scenario)


def test_a_leader_with_an_expired_lease_is_no_leader() -> None:
    """Even before it has noticed: the deadline counts, not the task that waits for it."""

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        process, scrape = begin(world, clock, stamp_controller(), identity="alone")
        await clock.sleep(1)
        assert scrape()("springtide_leader") == 1
        assert process.leadership is not None
        process.leadership._term.deadline = clock.monotonic()
        assert scrape()("springtide_leader") == 0
        process.crash()

    play(scenario)


def test_size_and_age_of_caches() -> None:
    """The age of the last contact grows without data; that of the last event also while only bookmarks arrive."""
    cache = f"configmaps[{WORK.selection.namespace}]"

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        process, scrape = begin(world, clock, stamp_controller())
        world.config_map("a")
        await clock.sleep(1)
        process.line.flowing.clear()
        await clock.sleep(90)
        world.config_map("b")
        await clock.sleep(10)
        samples = scrape()
        assert samples("springtide_cache_objects", cache=cache, readable="true") == 1
        assert samples("springtide_cache_last_contact_age_seconds", cache=cache) == pytest.approx(101, abs=1.5)
        assert samples("springtide_cache_last_event_age_seconds", cache=cache) == pytest.approx(101, abs=1.5)

        process.line.flowing.set()
        await clock.sleep(60)
        samples = scrape()
        assert samples("springtide_cache_objects", cache=cache, readable="true") == 2
        assert samples("springtide_cache_last_contact_age_seconds", cache=cache) < 30
        assert samples("springtide_cache_last_event_age_seconds", cache=cache) >= 59
        assert samples("springtide_cache_synced", cache=cache) == 1
        assert samples("springtide_cache_relists_total", cache=cache) == 0
        await process.manager.stop()

    play(scenario)


def test_a_cache_without_any_contact_has_no_age() -> None:
    """There is no last contact to count from, and 0 would look healthy."""

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        process, scrape = begin(world, clock, stamp_controller())
        samples = scrape()
        assert samples.labelled("springtide_cache_last_contact_age_seconds") == {}
        assert set(samples.labelled("springtide_cache_synced").values()) == {0}
        process.crash()
        await asyncio.wait((process.task,))

    play(scenario)


def test_objects_that_cannot_be_decoded_are_counted_separately() -> None:
    def picky(item: Any) -> Any:
        return item["data"]["text"]

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        cached = Cached(Selection(CONFIG_MAPS, "work"), record=picky)
        process, scrape = begin(world, clock, answering_about(cached))
        world.config_map("a", text="abc")
        world.config_map("b", other="abc")
        await clock.sleep(1)
        objects = scrape().labelled("springtide_cache_objects")
        assert (objects["configmaps[work]", "true"], objects["configmaps[work]", "false"]) == (1, 1)
        await process.manager.stop()

    play(scenario)


def answering_about(cached: Cached) -> type[StampController]:
    async def reconcile(self: StampController, key: Key, now: int) -> Result | None:
        return None

    return stamp_controller(watches=(Watch(cached),), reconcile=reconcile)


def test_two_caches_of_one_selection_have_different_labels() -> None:
    """They have different records of the same objects; Prometheus rejects scrapes with duplicate series."""

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        others = answering_about(Cached(Selection(CONFIG_MAPS, "work"), record=lambda item: item["metadata"]))
        process, scrape = begin(world, clock, stamp_controller(), type("Others", (others,), {"name": "others"}))
        await clock.sleep(1)
        labels = [cache for (cache,) in scrape().labelled("springtide_cache_synced")]
        assert [label for label in labels if "work" in label] == ["configmaps[work]", "configmaps[work] #2"]
        await process.manager.stop()

    play(scenario)


def test_the_version_is_exported() -> None:
    builds = Samples(ProcessMetrics().registry).labelled("springtide_build_info")
    assert [version for _, version in builds] == [__version__]


def test_metrics_are_not_global() -> None:
    """The embedded cluster runs several managers in one process."""
    first, second = ProcessMetrics(), ProcessMetrics()
    first.reconciled("stamper", 0.5, ReconcileOutcome.SUCCESS)
    assert Samples(first.registry)("springtide_reconcile_total", controller="stamper", result="success") == 1
    assert Samples(second.registry).labelled("springtide_reconcile_total") == {}
