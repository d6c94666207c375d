"""Time, nodes, cost, certified bound and gap of whole plans, each with what it is to reach: kept or MISSED.

Times are CPU seconds of one process, the least of a few runs. Where records are in memory, time runs from there to the
groups of the plan: it covers the snapshot, the demand and the plan, and not the offerings, which are made once.
"""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
import numpy as np
from bench.packing.snapshot import Pods
from bench.packing.solvers import binpacking_estimate, distinct_shapes, large_pods, mixed_families
from bench.peers import mix
from bench.peers.ours import plan_with_ours
from bench.peers.replay import replay

from springtide.apis.core.interning import intern_labels
from springtide.apis.core.nodes import NodeRecord
from springtide.apis.core.pod_record import PodRecord, PodSchedulingClass, PodView, pod_record
from springtide.packing.catalogue import GPU, INSTANCE_TYPE_LABEL, InstanceType, Offering, built_in
from springtide.packing.offerings import Offerings, Pool
from springtide.packing.patterns import THOROUGH, best_of
from springtide.packing.planning import Plan, plan
from springtide.packing.problem import NodeTypes, PodDemand
from springtide.packing.snapshot import PodKey, Snapshot
from springtide.packing.space import Ask
from springtide.quantity import Quantity

_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", GPU)
_TICK = 0.005
_T = TypeVar("_T")
_ZONE, _HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
Problem = tuple[PodDemand, NodeTypes]
Changes = list[tuple[PodKey, PodRecord | None]]
"""Pods and their new records; none: the pod is gone."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement."""

    name: str
    seconds: float
    nodes: int = 0
    cost: float = 0.0
    """Dollars per hour."""
    bound: float = 0.0
    goals: tuple[tuple[str, bool], ...] = ()
    """What is to be reached, and whether it is."""
    note: str = ""

    @property
    def gap(self) -> float:
        """How many percent the cost is above the bound."""
        return 100 * (self.cost / self.bound - 1) if self.bound else 0.0

    def __str__(self) -> str:
        made = ""
        if self.nodes:
            bound = f"{self.bound:10.2f} bound {self.gap:6.2f} % above" if self.bound else "  no bound"
            made = f"{self.nodes:6} nodes {self.cost:10.2f} $/h {bound}"
        goals = [f"{'kept' if kept else 'MISSED'}: {goal}" for goal, kept in self.goals]
        end = "; ".join([*goals, *([self.note] if self.note else [])])
        return f"{self.name:47} {1000 * self.seconds:8.1f} ms {made:61} {end}".rstrip()


def _row(
    name: str,
    seconds: float,
    found: Plan,
    *,
    within: float = 0.0,
    above: float | None = None,
    nodes: int = 0,
    bound: int = 0,
    note: str = "",
) -> Row:
    """Return the row of a plan, with goals for its seconds, its percent above the bound and its number of nodes."""
    bound = bound or found.lower_bound
    cost = found.cost
    goals = []
    if within:
        goals.append((f"< {1000 * within:g} ms", seconds < within))
    if above is not None:
        goals.append((f"<= {above:g} % above", cost * 100 <= bound * (100 + above)))
    if nodes:
        goals.append((f"{nodes:,} nodes", found.nodes == nodes))
    if found.unplaced:
        goals.append((f"all placed ({sum(each.ask.count for each in found.unplaced)} are not)", False))
    return Row(name, seconds, found.nodes, cost / 1e9, bound / 1e9, tuple(goals), note)


def _timed(action: Callable[[], _T], times: int = 3) -> tuple[float, _T]:
    """Return the CPU seconds of an action, the least of several, and its last result."""
    seconds: list[float] = []
    results: list[_T] = []
    for _ in range(times):
        # The result of the run before must not be freed while this one is measured.
        results.clear()
        gc.collect()
        began = time.process_time()
        results.append(action())
        seconds.append(time.process_time() - began)
    return min(seconds), results[0]


# Records and types of the problems that the solvers are measured by


def records_of(demand: PodDemand) -> Pods:
    """Return pending pods without constraints, those of one row with the same requests."""
    pods: Pods = []
    for number, (amounts, count) in enumerate(zip(demand.requests.tolist(), demand.counts.tolist(), strict=True)):
        requests = {name: amount for name, amount in _quantities(amounts).items() if name != "pods"}
        record = PodRecord(
            pod_class=PodSchedulingClass(requests=requests, text=b"%d" % number),
            labels=intern_labels({"app": f"app-{number}"}),
        )
        pods += [(("default", f"app-{number}-{pod}"), record) for pod in range(count)]
    return pods


def types_of(types: NodeTypes) -> tuple[InstanceType, ...]:
    """Return instance types without overhead, each offered in one zone."""
    return tuple(
        InstanceType(
            name=f"type-{number}",
            labels={INSTANCE_TYPE_LABEL: f"type-{number}"},
            capacity=_quantities(capacity),
            overhead={},
            offerings=(Offering("zone-a", "on-demand", price),),
        )
        for number, (capacity, price) in enumerate(zip(types.capacity.tolist(), types.price.tolist(), strict=True))
    )


def _quantities(amounts: Sequence[int]) -> dict[str, Quantity]:
    return {
        name: Quantity.parse(f"{amount}m" if name == "cpu" else str(amount))
        for name, amount in zip(_RESOURCES, amounts, strict=False)
        if amount
    }


def _filled(pods: Pods, snapshot: Snapshot | None = None) -> Snapshot:
    snapshot = snapshot or Snapshot()
    for key, record in pods:
        snapshot.put_pod(key, record)
    return snapshot


def _asks(snapshot: Snapshot) -> list[Ask]:
    return [Ask(snapshot.shapes[number], count) for number, count in snapshot.demand().items()]


def _planned(pods: Pods, types: Sequence[InstanceType], times: int = 3) -> tuple[float, float, Plan]:
    """Return the CPU seconds until the demand is known, those of the plan, and the plan."""
    best = (float("inf"), 0.0)
    for _ in range(times):
        snapshot = Snapshot()
        offerings = Offerings(snapshot, [Pool("default")], types)
        gc.collect()
        began = time.process_time()
        asks = _asks(_filled(pods, snapshot))
        known = time.process_time()
        found = plan(snapshot, asks, offerings)
        best = min(best, (known - began, time.process_time() - known), key=sum)
    return *best, found


# The measurements


def karpenter_mix(count: int, seconds: float = 0.0, above: float | None = None, *, preferences: bool = False) -> Row:
    """(a) Measure a plan for Karpenter's pods, and replay it by the scheduler's rules."""
    pods, types = mix.preference_pods(count) if preferences else mix.mix_pods(count), mix.karpenter_types()
    best = min((plan_with_ours(pods, types) for _ in range(2)), key=lambda made: made["cpuSeconds"])
    cost, bound = sum(node["price"] for node in best["nodes"]), best["bound"]
    refused, planned = replay(best, pods, types).refused, sum(len(node["pods"]) for node in best["nodes"])
    goals = []
    if seconds:
        goals.append((f"< {1000 * seconds:g} ms", best["cpuSeconds"] < seconds))
    if above is not None:
        goals.append((f"<= {above:g} % above", cost * 100 <= bound * (100 + above)))
    goals.append((f"none refused ({refused} are)" if refused else "none refused", not refused))
    if planned < count:
        goals.append((f"all placed ({count - planned} are not)", False))
    title = f"(a) {count:,} {'preference pods' if preferences else 'pods of the mix'}"
    return Row(title, best["cpuSeconds"], len(best["nodes"]), cost, bound, tuple(goals))


class _PodList(msgspec.Struct):
    items: list[PodView]


def pod_list(pods: Pods) -> bytes:
    """Return pending pods as the API server lists them."""
    template = "2026-01-01T00:00:00Z"
    items: list[dict[str, Any]] = []
    for (namespace, name), record in pods:
        requests = {resource: str(amount) for resource, amount in record.requests.items()}
        items.append(
            {
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "uid": f"00000000-0000-4000-8000-{len(items):012x}",
                    "resourceVersion": str(len(items)),
                    "creationTimestamp": template,
                    "labels": dict(record.labels),
                },
                "spec": {"containers": [{"name": "main", "image": "pause", "resources": {"requests": requests}}]},
                "status": {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
                },
            }
        )
    return msgspec.json.encode({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items})


def binpacking(problem: Problem, nodes: int) -> Iterator[Row]:
    """(b) Measure Cluster Autoscaler's BinpackingEstimate on a built snapshot, and from JSON."""
    pods, types = records_of(problem[0]), types_of(problem[1])
    snapshot = _filled(pods)
    offerings, asks = Offerings(snapshot, [Pool("default")], types), _asks(snapshot)
    plan(snapshot, asks, offerings)
    seconds, found = _timed(lambda: plan(snapshot, asks, offerings))
    yield _row("(b) BinpackingEstimate, built snapshot", seconds, found, within=0.005, nodes=nodes)

    text, decoder = pod_list(pods), msgspec.json.Decoder(_PodList)

    def from_json(marks: list[float]) -> Plan:
        marks.append(time.process_time())
        views = decoder.decode(text).items
        marks.append(time.process_time())
        fresh = Snapshot()
        offerings = Offerings(fresh, [Pool("default")], types)
        for view in views:
            fresh.put_pod((view.metadata.namespace or "default", view.metadata.name), pod_record(view))
        asks = _asks(fresh)
        marks.append(time.process_time())
        result = plan(fresh, asks, offerings)
        marks.append(time.process_time())
        return result

    runs: list[list[float]] = []
    for _ in range(3):
        gc.collect()
        marks: list[float] = []
        found = from_json(marks)
        marks.append(time.process_time())
        runs.append([after - before for before, after in pairwise(marks)])
    # Until the plan is there; the views are freed after it.
    *parts, freed = min(runs, key=lambda parts: sum(parts[:-1]))
    note = "decode {:.0f}, records and snapshot {:.0f}, plan {:.0f} ms".format(*(1000 * part for part in parts))
    note += f", then {1000 * freed:.0f} ms to free the views"
    title = f"(b) BinpackingEstimate, {len(text) / 1e6:.0f} MB of JSON"
    yield _row(title, sum(parts), found, within=0.3, nodes=nodes, note=note)


def run_once(count: int = 50_000) -> Row:
    """(c) Measure Cluster Autoscaler's RunOnceScaleUp: pods without a controller, 50 of which fill a node."""
    requests = {"cpu": Quantity.parse("200m"), "memory": Quantity.parse("200")}
    pod_class = PodSchedulingClass(requests=requests, text=b"pod")
    pods: Pods = [(("default", f"pod-{number}"), PodRecord(pod_class=pod_class)) for number in range(count)]
    capacity = {"cpu": Quantity.parse("10"), "memory": Quantity.parse("10000"), "pods": Quantity.parse("110")}
    types = (InstanceType("node", {}, capacity, {}, (Offering("zone-a", "on-demand", 10**9),)),)
    before, planning, found = _planned(pods, types)
    return _of_records(f"(c) RunOnceScaleUp, {count:,} pods", before, planning, found, 0.3, nodes=-(-count // 50))


def _of_records(
    name: str,
    before: float,
    planning: float,
    found: Plan,
    within: float = 0.0,
    above: float | None = None,
    nodes: int = 0,
    bound: int = 0,
) -> Row:
    note = f"snapshot {1000 * before:.0f}, plan {1000 * planning:.0f} ms, {found.method}"
    return _row(name, before + planning, found, within=within, above=above, nodes=nodes, bound=bound, note=note)


class Existing:
    """150,000 pending pods in 400 shapes, and 5,000 empty nodes, which have room for some of them."""

    def __init__(self, pods: int = 150_000, nodes: int = 5_000, shapes: int = 400) -> None:
        draw = random.Random(1)
        self.classes = [
            PodSchedulingClass(
                requests={
                    "cpu": Quantity.parse(f"{draw.choice([100, 200, 250, 500, 750, 1000, 1500, 2000]) + n % 37}m"),
                    "memory": Quantity.parse(f"{draw.choice([128, 256, 512, 1024, 2048, 4096]) + n}Mi"),
                },
                text=b"%d" % n,
            )
            for n in range(shapes)
        ]
        self.labels = [intern_labels({"app": f"app-{number}"}) for number in range(shapes)]
        self.pods: Pods = [(("default", f"pod-{number}"), self.record(number)) for number in range(pods)]
        self.snapshot = Snapshot()
        allocatable = {name: Quantity.parse(each) for name, each in zip(_RESOURCES, ("15900m", "62Gi"), strict=False)}
        allocatable["pods"] = Quantity.parse("110")
        for number in range(nodes):
            name = f"node-{number:05}"
            labels = intern_labels({_HOSTNAME: name, _ZONE: f"zone-{'abc'[number % 3]}"})
            self.snapshot.put_node(NodeRecord(name=name, labels=labels, allocatable=allocatable, ready=True))
        _filled(self.pods, self.snapshot).flush()
        self.offerings = Offerings(self.snapshot, [Pool("default")], built_in())

    def record(self, number: int, node: str = "") -> PodRecord:
        """Return a pod of one of the shapes."""
        shape = number % len(self.classes)
        return PodRecord(pod_class=self.classes[shape], labels=self.labels[shape], node=node)

    def plan(self, previous: Plan | None = None) -> Plan:
        """Plan for what is pending now."""
        return plan(self.snapshot, _asks(self.snapshot), self.offerings, previous=previous)

    def changes(self, found: Plan, count: int, draw: random.Random) -> Changes:
        """Return what happens to some pending pods: a third of them goes, as many come, and a third is bound."""
        waiting = self.snapshot.pending()
        names, third = found.space.names(), count // 3
        changes: Changes = []
        for step in draw.sample(found.placed, min(third, len(found.placed))):
            key = waiting[step.shape.number].pop()
            changes.append((key, msgspec.structs.replace(self._record_of(key), node=names[step.node])))
        rest = [key for keys in waiting.values() for key in keys]
        changes += [(key, None) for key in draw.sample(rest, third)]
        return changes + self.arrivals(count - len(changes), draw)

    def arrivals(self, count: int, draw: random.Random) -> Changes:
        """Return new pending pods."""
        first = len(self.pods)
        for number in range(first, first + count):
            self.pods.append((("default", f"pod-{number}"), self.record(draw.randrange(len(self.classes)))))
        return [*self.pods[first:]]

    def departures(self, count: int, draw: random.Random) -> Changes:
        """Return pending pods that go."""
        keys = [key for keys in self.snapshot.pending().values() for key in keys]
        return [(key, None) for key in draw.sample(keys, count)]

    def apply(self, changes: Changes) -> None:
        """Change pods in the snapshot."""
        for key, record in changes:
            if record is None:
                self.snapshot.remove_pod(key)
            else:
                self.snapshot.put_pod(key, record)

    def _record_of(self, key: PodKey) -> PodRecord:
        return self.pods[int(key[1].removeprefix("pod-"))][1]


def existing_nodes(cluster: Existing, rounds: int = 3) -> Iterator[Row]:
    """(d) Measure a plan for pods of which many have room on nodes that exist, and (f) plans after it."""
    count = len(cluster.pods)
    title = f"(d) {count:,} pods, {len(cluster.snapshot.nodes.names):,} nodes"
    cluster.plan()
    seconds, left = _timed(lambda: cluster.snapshot.fork().place(_asks(cluster.snapshot)))
    waiting = sum(ask.count for ask in left)
    yield Row(f"{title}, fork and place", seconds, note=f"{waiting:,} pods have no room")
    seconds, found = _timed(cluster.plan)
    yield _row(f"{title}, plan", seconds, found, within=0.5)

    seconds, found = _timed(lambda: cluster.plan(found))
    yield _row("(f) nothing changed", seconds, found, within=0.002)
    draw, changed = random.Random(2), max(3, count // 100)
    parts: list[tuple[float, float, float]] = []
    for _ in range(rounds):
        changes = cluster.changes(found, changed, draw)
        gc.collect()
        marks = [time.process_time()]
        cluster.apply(changes)
        marks.append(time.process_time())
        cluster.snapshot.demand()
        marks.append(time.process_time())
        found = cluster.plan(found)
        marks.append(time.process_time())
        applied, known, planned = (after - before for before, after in pairwise(marks))
        parts.append((applied, known, planned))
    best = min(parts, key=sum)
    note = "apply {:.1f}, demand {:.1f}, plan {:.1f} ms; ".format(*(1000 * part for part in best))
    note += f"from scratch {cluster.plan().cost / 1e9:.2f} $/h"
    yield _row(f"(f) {changed:,} pods changed", sum(best), found, within=0.03, note=note)


def drift(cluster: Existing, rounds: int = 12) -> Iterator[Row]:
    """(f) Measure plans that follow each other while pods only come, and then only go: are they still good?"""
    draw, changed = random.Random(3), max(1, len(cluster.pods) // 100)
    for comes in (True, False):
        found, seconds = cluster.plan(), []
        for _ in range(rounds):
            changes = cluster.arrivals(changed, draw) if comes else cluster.departures(changed, draw)
            gc.collect()
            began = time.process_time()
            cluster.apply(changes)
            found = cluster.plan(found)
            seconds.append(time.process_time() - began)
        anew = cluster.plan().cost
        above = 100 * (found.cost / anew - 1) if anew else 0.0
        note = f"{above:.2f} % above a plan from scratch; longest {1000 * max(seconds):.1f} ms"
        title = f"(f) {rounds} x {changed:,} pods {'come' if comes else 'go'}, median"
        yield _row(title, float(np.median(seconds)), found, note=note)


def distinct(problem: Problem, types: Sequence[InstanceType], name: str) -> Row:
    """(e) Measure a plan for pods each of which has other requests."""
    before, planning, found = _planned(records_of(problem[0]), types, 2)
    return _of_records(f"(e) {len(problem[0].counts):,} shapes, {name}", before, planning, found, 1.5, 2.5)


def families(problem: Problem, name: str) -> Row:
    """(g) Measure a plan for many pods in some shapes, on types of four families."""
    before, planning, found = _planned(records_of(problem[0]), types_of(problem[1]), 2)
    return _of_records(f"(g) {problem[0].counts.sum():,} pods, {name}", before, planning, found, 0.4, 1.5)


def large(problem: Problem, name: str) -> Row:
    """(h) Measure a plan for large pods on small nodes, against the bound of thorough patterns."""
    exact = best_of(*problem, grid=THOROUGH)[1]
    before, planning, found = _planned(records_of(problem[0]), types_of(problem[1]))
    return _of_records(f"(h) large pods on small nodes, {name}", before, planning, found, 0.5, 0.7, bound=exact)


async def lag(name: str, action: Callable[[], object], times: int = 3) -> Row:
    """Measure how late an event loop is at most while a plan is computed in a thread: the least of several runs."""
    idle, _ = await _latest(asyncio.sleep(0.5))
    found = []
    pauses, start = [0.0], 0.0

    def watch(phase: str, _: dict[str, int]) -> None:
        nonlocal start
        if phase == "start":
            start = time.perf_counter()
        else:
            pauses.append(time.perf_counter() - start)

    gc.callbacks.append(watch)
    for _ in range(times):
        gc.collect()
        pauses[:] = [0.0]
        began = time.process_time()
        late, median = await _latest(asyncio.to_thread(action))
        found.append((late, median, max(pauses), time.process_time() - began))
    gc.callbacks.remove(watch)
    late, median, pause, seconds = min(found)
    note = f"median {1000 * median:.1f}, idle loop {1000 * idle:.1f}, longest garbage collection {1000 * pause:.1f} ms"
    return Row(f"lag: {name}", late, goals=(("< 50 ms", late < 0.05),), note=f"{note}; computed in {seconds:.2f} s")


async def _latest(awaited: Any) -> tuple[float, float]:
    """Return by how much a ticker was late at most and in the median while something was awaited."""
    task = asyncio.ensure_future(awaited)
    delays: list[float] = []
    while not task.done():
        began = time.perf_counter()
        await asyncio.sleep(_TICK)
        delays.append(time.perf_counter() - began - _TICK)
    await task
    return max(delays), float(np.median(delays))


def mix_planner(count: int) -> Callable[[], Plan]:
    """Return what plans for Karpenter's mix, with the snapshot made before."""
    pods = [
        (("default", pod["metadata"]["name"]), pod_record(msgspec.convert(pod, PodView))) for pod in mix.mix_pods(count)
    ]
    snapshot = _filled(pods)
    offerings = Offerings(snapshot, [Pool("default")], built_in())
    asks = _asks(snapshot)
    return lambda: plan(snapshot, asks, offerings)


def main() -> None:
    """Measure."""
    for count in mix.SIZES:
        row = karpenter_mix(count, above=8 if count == mix.SIZES[-1] else None)
        print(row, flush=True)
    print(karpenter_mix(mix.PREFERENCES, 2.0, preferences=True), flush=True)
    for row in binpacking(binpacking_estimate(), 2_595):
        print(row, flush=True)
    print(run_once(), flush=True)
    cluster = Existing()
    for row in existing_nodes(cluster):
        print(row, flush=True)
    for row in drift(cluster):
        print(row, flush=True)
    for seed in range(3):
        problem = distinct_shapes(seed)
        print(distinct(problem, types_of(problem[1]), f"400 types, seed {seed}"), flush=True)
    print(distinct(distinct_shapes(0), built_in(), "built-in types"), flush=True)
    for seed in range(20):
        print(families(mixed_families(seed), f"20 types, seed {seed}"), flush=True)
    for seed in range(4):
        print(large(large_pods(seed), f"seed {seed}"), flush=True)
    planner = mix_planner(mix.SIZES[-1])
    print(asyncio.run(lag(f"(a) {mix.SIZES[-1]:,} pods of the mix", planner)), flush=True)
    print(asyncio.run(lag("(d)", cluster.plan)), flush=True)


if __name__ == "__main__":
    main()
