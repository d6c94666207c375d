"""Our packer on the same pods and instance types."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from bench.peers import mix
from bench.peers.replay import Plan

from springtide.apis.core.pod_record import PodView, pod_record
from springtide.cluster.compute import tune_gc
from springtide.packing.catalogue import NANO_PER_DOLLAR, read_types
from springtide.packing.offerings import Offerings, Pool
from springtide.packing.planning import plan
from springtide.packing.snapshot import Snapshot
from springtide.packing.space import Ask, Step
from springtide.quantity import Quantity


def plan_with_ours(pods: Sequence[Mapping[str, Any]], types: Sequence[Mapping[str, Any]]) -> Plan:
    """Plan nodes for raw pods with the default strategy; the pool is `bench.peers.mix.pool()`.

    `seconds` and `cpuSeconds` cover what Karpenter's Solve covers: from pods in memory to the plan. `queue` is the
    order in which pods are to be bound, `bound` the certified lower bound.
    """
    _warm_up()
    return _planned(pods, types)


def _planned(pods: Sequence[Mapping[str, Any]], types: Sequence[Mapping[str, Any]]) -> Plan:
    limits = {name: Quantity.parse(amount) for name, amount in mix.pool()["spec"]["limits"].items()}
    records = [
        (
            (pod["metadata"].get("namespace", "default"), pod["metadata"]["name"]),
            pod_record(msgspec.convert(pod, PodView)),
        )
        for pod in pods
    ]
    snapshot = Snapshot()
    offerings = Offerings(snapshot, [Pool("default", limits=limits)], read_types(json.dumps(types), name="types"))
    wall, cpu = time.perf_counter(), time.process_time()
    for key, record in records:
        snapshot.put_pod(key, record)
    asks = [Ask(snapshot.shapes[number], count) for number, count in snapshot.demand().items()]
    found = plan(snapshot, asks, offerings)
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu

    names = {number: [f"{space}/{name}" for space, name in keys] for number, keys in snapshot.pending().items()}
    nodes: list[dict[str, Any]] = [
        {
            "type": offerings.types[offerings.type[group.offering]].name,
            "zone": offerings.offering[group.offering].zone,
            "capacityType": offerings.offering[group.offering].capacity_type,
            "price": offerings.offering[group.offering].price / NANO_PER_DOLLAR,
            "pods": [],
        }
        for group in found.groups
        for _ in range(group.nodes)
    ]
    queue: list[str] = []
    for step in found.sequence():
        queue += _bound(step, names, nodes)
    return {
        "seconds": seconds,
        "cpuSeconds": cpu_seconds,
        "nodes": nodes,  # type: ignore[typeddict-item]
        "queue": queue,
        "bound": found.lower_bound / NANO_PER_DOLLAR,
    }


def _bound(step: Step, names: dict[int, list[str]], nodes: list[dict[str, Any]]) -> list[str]:
    """Give the next pods of a step's shape to its node."""
    waiting = names[step.shape.number]
    taken = [waiting.pop(0) for _ in range(step.pods)]
    nodes[step.node]["pods"] += taken
    return taken


@cache
def _warm_up() -> None:
    """Plan a few pods: Karpenter's program has all of its code in memory. Collect garbage as the controllers do."""
    tune_gc()
    _planned(mix.mix_pods(20), mix.karpenter_types(4))
