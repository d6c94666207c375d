"""Clock steps while the controller runs: the value is that of the new time."""

from __future__ import annotations

import pytest
from tests.cluster.manager_process import Process
from tests.cluster.memory_cluster import CRDS, USER, MemoryCluster
from tests.controllers.metrics_producer.harness import CAPACITY, daily, producer, schedule

from springtide.apis.crds import Flavour, all_crds
from springtide.apis.meta.times import parse_instant
from springtide.cluster.clock import STEP_CHECK_PERIOD
from springtide.cluster.context import Services
from springtide.cluster.resources import Key
from springtide.controllers.grant.state import GrantPolicy
from springtide.controllers.metrics_producer import METRICS_PRODUCERS, MetricsProducerController
from springtide.metrics.series import SeriesStore
from springtide.simulator.virtual_time import VirtualClock, run

START = parse_instant("2026-06-01T08:00:00Z")
HOUR = 3600
KEY = Key("work", "web")


@pytest.mark.parametrize(
    ("begins", "step", "before", "after"),
    [
        pytest.param(1, 2 * HOUR, 1, 3, id="forward-over-a-start"),
        pytest.param(2 * HOUR, -2 * HOUR, 3, 1, id="back-over-a-start"),
        pytest.param(2 * HOUR, 24 * HOUR, 3, 3, id="forward-by-a-day"),
        pytest.param(10 * HOUR, -2 * HOUR, 1, 3, id="back-over-an-end"),
        pytest.param(26 * HOUR, -24 * HOUR, 3, 3, id="back-by-a-day"),
        pytest.param(2 * HOUR, -(24 * HOUR + HOUR), 3, 3, id="back-into-yesterday"),
    ],
)
def test_value_follows_a_clock_step(begins: int, step: int, before: int, after: int) -> None:
    """Metric and status are right soon after the step, and at the next change."""

    async def main(clock: VirtualClock) -> None:
        world = MemoryCluster(clock)
        for definition in all_crds(Flavour.EXTENDED):
            world.server.create(CRDS, definition, USER)
        written = producer(schedule=schedule(daily(3, "9", "17")))
        written["metadata"]["namespace"] = "work"
        world.server.create(METRICS_PRODUCERS, written, USER, namespace="work")
        store = SeriesStore()
        process = Process(world, clock, MetricsProducerController, services=Services(store, GrantPolicy()))

        def value() -> tuple[int, int]:
            status = world.server.get(METRICS_PRODUCERS, KEY)["status"]
            ((_, exported),) = store.of(CAPACITY, KEY.namespace)
            assert isinstance(exported, int)
            return status["scheduledCapacity"]["currentValue"], exported

        await clock.sleep(begins)
        assert value() == (before, before)
        clock.step(step)
        await clock.sleep(2 * STEP_CHECK_PERIOD)
        assert value() == (after, after)
        await clock.sleep(8 * HOUR)
        assert value()[0] == value()[1] == _by_hand(clock.now())
        assert process.manager.health()[0].errors == 0
        await process.manager.stop()

    run(main, start=START)


def _by_hand(now: int) -> int:
    return 3 if 9 <= now // HOUR % 24 < 17 else 1
