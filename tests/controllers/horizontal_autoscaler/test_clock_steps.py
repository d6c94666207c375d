"""Clock steps while the controller runs: it continues to reconcile after the clock is set back or forward."""

from __future__ import annotations

import pytest
from tests.cluster.manager_process import Process
from tests.cluster.memory_cluster import CRDS, USER, MemoryCluster
from tests.controllers.horizontal_autoscaler.harness import (
    LOAD,
    SCHEDULED,
    AutoscalerHarness,
    autoscaler,
    deployment,
    metric,
)

from springtide.apis.crds import Flavour, all_crds
from springtide.apis.meta.times import parse_instant
from springtide.cluster.resources import Key, Resource
from springtide.cluster.transport import Patch
from springtide.controllers.horizontal_autoscaler import HORIZONTAL_AUTOSCALERS, HorizontalAutoscalerController
from springtide.controllers.horizontal_autoscaler.decide import QUIET_PERIOD
from springtide.simulator.virtual_time import VirtualClock, run

START = parse_instant("2026-06-01T08:00:00Z")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
HOUR = 3600


@pytest.mark.parametrize("step", [-HOUR, -24 * HOUR, HOUR], ids=["an-hour-back", "a-day-back", "an-hour-forward"])
@pytest.mark.parametrize("query", [LOAD, SCHEDULED], ids=["server metric", "own series"])
def test_scale_is_corrected_after_a_clock_step(query: str, step: int) -> None:
    """A change of the scale by another client is reverted as soon as without the step."""

    async def main(clock: VirtualClock) -> None:
        world = MemoryCluster(clock)
        for definition in all_crds(Flavour.EXTENDED):
            world.server.create(CRDS, definition, USER)
        harness = AutoscalerHarness()
        harness.set_metric(query, 4, namespace="work")
        for resource, written in ((DEPLOYMENTS, deployment(4)), (HORIZONTAL_AUTOSCALERS, autoscaler(metric(query)))):
            written["metadata"]["namespace"] = "work"
            world.server.create(resource, written, USER, namespace="work")
        process = Process(world, clock, HorizontalAutoscalerController, services=harness.services(None))  # type: ignore[arg-type]

        def replicas() -> int:
            return int(world.server.get(DEPLOYMENTS, Key("work", "web"))["spec"]["replicas"])

        await clock.sleep(100)
        clock.step(step)
        await clock.sleep(1)
        patch = Patch.merge({"spec": {"replicas": 2}})
        world.server.patch(DEPLOYMENTS, Key("work", "web"), patch, USER)
        await clock.sleep(2 * QUIET_PERIOD)
        assert replicas() == 4
        await process.manager.stop()

    run(main, start=START)
