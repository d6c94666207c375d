"""Clusters with the upstream CRD, whose schema does not have the additional fields of Springtide."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.cluster.manager_process import Process
from tests.cluster.memory_cluster import CRDS, USER, MemoryCluster
from tests.controllers.metrics_producer.harness import CAPACITY, daily, producer, schedule

from springtide.apis.crds import Flavour, all_crds
from springtide.apis.meta.times import parse_instant
from springtide.cluster.context import Services
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch
from springtide.controllers.grant.state import GrantPolicy
from springtide.controllers.metrics_producer import METRICS_PRODUCERS, MetricsProducerController
from springtide.metrics.series import SeriesStore
from springtide.simulator.virtual_time import VirtualClock, run

START = parse_instant("2026-06-01T08:00:00Z")
HOUR = 3600
KEY = Key("work", "web")
NAME = "metricsproducers.autoscaling.karpenter.sh"


def _definition(flavour: Flavour) -> Object:
    return next(one for one in all_crds(flavour) if one["metadata"]["name"] == NAME)


def _run(steps: Callable[[VirtualClock, MemoryCluster, SeriesStore], Awaitable[None]], written: Object) -> None:
    """Run with only the upstream schema of producers: no calendars and no grants."""

    async def main(clock: VirtualClock) -> None:
        world = MemoryCluster(clock)
        world.server.create(CRDS, _definition(Flavour.STOCK), USER)
        written["metadata"]["namespace"] = "work"
        world.server.create(METRICS_PRODUCERS, written, USER, namespace="work")
        store = SeriesStore()
        process = Process(world, clock, MetricsProducerController, services=Services(store, GrantPolicy()))
        await clock.sleep(HOUR / 2)
        await steps(clock, world, store)
        assert process.manager.health()[0].errors == 0
        await process.manager.stop()

    run(main, start=START)


def _shown(world: MemoryCluster) -> Any:
    return world.server.get(METRICS_PRODUCERS, KEY)["status"]["scheduledCapacity"]


def _writes(world: MemoryCluster) -> int:
    return sum(one.verb == "patch/status" and one.key == KEY for one in world.writes)


def test_status_has_only_fields_of_the_schema() -> None:
    """Fields that the API server drops are not written again and again."""

    async def steps(clock: VirtualClock, world: MemoryCluster, store: SeriesStore) -> None:
        assert _shown(world) == {"currentValue": 1, "nextValue": 3, "nextValueTime": "2026-06-01T09:00:00Z"}
        before = _writes(world)
        await clock.sleep(4 * HOUR)
        assert (_writes(world) - before, store.of(CAPACITY, KEY.namespace)) == (1, [(KEY, 3)])

    _run(steps, producer(schedule=schedule(daily(3, "9", "17"))))


def test_extensions_annotation_is_merged_into_the_spec() -> None:
    """A change of the annotation takes effect."""

    async def steps(clock: VirtualClock, world: MemoryCluster, store: SeriesStore) -> None:
        assert _shown(world)["nextValueTime"] == "2026-06-01T08:50:00Z"
        later = {"springtide.dev/extensions": json.dumps({"schedule": {"behaviors": [{"leadSeconds": 1200}]}})}
        world.server.patch(METRICS_PRODUCERS, KEY, Patch.merge({"metadata": {"annotations": later}}), USER)
        await clock.sleep(60)
        assert _shown(world)["nextValueTime"] == "2026-06-01T08:40:00Z"
        await clock.sleep(HOUR / 4)
        assert store.of(CAPACITY, KEY.namespace) == [(KEY, 3)]

    lead = {"springtide.dev/extensions": "schedule:\n  behaviors:\n  - leadSeconds: 600\n"}
    _run(steps, producer(annotations=lead, schedule=schedule(daily(3, "9", "17"))))


def test_status_is_completed_when_the_schema_is_extended() -> None:
    """Installing Springtide's CRD completes all statuses at once."""

    async def steps(clock: VirtualClock, world: MemoryCluster, store: SeriesStore) -> None:
        assert "upcoming" not in _shown(world)
        replacement = {
            "op": "replace",
            "path": "/spec/versions",
            "value": _definition(Flavour.EXTENDED)["spec"]["versions"],
        }
        world.server.patch(CRDS, Key("", NAME), Patch.json(replacement), USER)
        await clock.sleep(60)
        assert len(_shown(world)["upcoming"]) == 5

    _run(steps, producer(schedule=schedule(daily(3, "9", "17"))))
