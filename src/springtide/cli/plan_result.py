"""The result of `springtide plan`: a plan in which every pod has its name, as data and as a picture."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from springtide.assembly.planning import PlanningInput
from springtide.cli.pictures.nodes import (
    NodeGroup,
    PlanPicture,
    StrategyResult,
    UnplacedPods,
    WorkloadPods,
    workload_totals,
)
from springtide.packing.catalogue import INSTANCE_TYPE_LABEL, NANO_PER_DOLLAR, InstanceType
from springtide.packing.columns import CPU, MEMORY
from springtide.packing.offerings import Offerings
from springtide.packing.planning import STRATEGIES, Plan, Strategy, plan
from springtide.packing.rollout import SEEDS, rollout
from springtide.packing.shapes import Shape
from springtide.packing.snapshot import PodKey
from springtide.packing.space import Ask

_MANY_PODS = 10_000
"""With more pods, only one order in which they are bound is tried for the cost after rollouts."""


@dataclass(slots=True)
class _NewNode:
    offering: int
    pods: list[PodKey] = field(default_factory=list)


@dataclass(slots=True)
class _Unplaced:
    pods: list[PodKey]
    because: str
    reasons: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class PlanResult:
    """A plan in which every pod has its name."""

    plan: Plan
    offerings: Offerings
    workloads: Mapping[PodKey, str]
    shapes: dict[PodKey, Shape]
    """The shapes of pods that were pending."""
    nodes: list[_NewNode]
    placed: list[tuple[PodKey, str]]
    unplaced: list[_Unplaced]
    alternatives: Sequence[tuple[str, int, int, int]]
    """Strategy, nodes, cost and pods that are not placed."""
    notes: list[str]
    seconds: float
    rollout: tuple[int, int] | None
    """Cost per hour after rollouts, and how many pods they leave without a node."""


def make_plan(
    given: PlanningInput, types: tuple[InstanceType, ...], strategy: str, progress: Callable[[str], None]
) -> PlanResult:
    """Plan by every strategy, and name the pods of the chosen plan: equal ones in the order of their names."""
    began = time.perf_counter()
    snapshot = given.snapshot
    demand = snapshot.demand()
    pending = snapshot.pending()
    progress(f"planning for {sum(demand.values()):,} pods")
    offerings = Offerings(snapshot, given.pools, types)
    asks = [Ask(snapshot.shapes[number], count) for number, count in demand.items()]
    chosen = next(each for each in STRATEGIES if each == strategy)
    best = plan(snapshot, asks, offerings, strategy=chosen)
    seconds = time.perf_counter() - began
    plans: dict[Strategy, Plan] = {chosen: best}
    for each in STRATEGIES:
        if each not in plans:
            progress(f"planning by {each}, to compare")
            plans[each] = plan(snapshot, asks, offerings, strategy=each)
    rolled = None
    if best.groups:
        progress("rolling out the plan")
        one_seed = sum(demand.values()) > _MANY_PODS
        rolled = rollout(best, seeds=SEEDS[:1] if one_seed else SEEDS)
    shapes = {key: snapshot.shapes[number] for number, keys in pending.items() for key in keys}
    waiting = {number: iter(keys) for number, keys in pending.items()}
    names = best.space.names()
    placed = [(key, names[step.node]) for step in best.placed for key in _taken(waiting[step.shape.number], step.pods)]
    nodes = [_NewNode(group.offering) for group in best.groups for _ in range(group.nodes)]
    for step in best.sequence():
        nodes[step.node].pods += _taken(waiting[step.shape.number], step.pods)
    unplaced = [
        _Unplaced(_taken(waiting[each.ask.shape.number], each.ask.count), each.because, each.reasons)
        for each in best.unplaced
    ]
    alternatives = [
        (each, plans[each].nodes, plans[each].cost, sum(left.ask.count for left in plans[each].unplaced))
        for each in STRATEGIES
    ]
    notes = [
        f"no instance type meets the requirements of NodePool {pool.name}, so it adds no nodes: see --types"
        for number, pool in enumerate(offerings.pools)
        if number not in set(offerings.pool)
    ]
    if rolled is not None and rolled.note:
        notes.append(f"after rollouts: {rolled.note}")
    return PlanResult(
        plan=best,
        offerings=offerings,
        workloads=given.workloads,
        shapes=shapes,
        nodes=nodes,
        placed=placed,
        unplaced=unplaced,
        alternatives=alternatives,
        notes=notes,
        seconds=seconds,
        rollout=None if rolled is None else (rolled.cost_per_hour, rolled.stranded),
    )


def _taken(keys: Iterator[PodKey], count: int) -> list[PodKey]:
    return list(islice(keys, count))


def _name(key: PodKey) -> str:
    return f"{key[0]}/{key[1]}"


def _dollars(nano: int) -> float:
    return nano / NANO_PER_DOLLAR


def plan_document(result: PlanResult) -> dict[str, Any]:
    """Return the plan as data; long lists are iterators."""
    plan, offerings = result.plan, result.offerings
    document: dict[str, Any] = {
        "strategy": plan.strategy,
        "nodes": (_node_document(number, node, offerings) for number, node in enumerate(result.nodes, 1)),
        "placed": ({"pod": _name(key), "node": node} for key, node in sorted(result.placed)),
        "unplaceable": (_unplaced_document(key, each) for each in result.unplaced for key in each.pods),
        "costPerHour": _dollars(plan.cost),
        "lowerBoundPerHour": _dollars(plan.lower_bound),
        "alternatives": [
            {"strategy": strategy, "nodes": nodes, "costPerHour": _dollars(cost)}
            for strategy, nodes, cost, _ in result.alternatives
            if strategy != plan.strategy
        ],
    }
    cost, stranded = result.rollout or (plan.cost, 0)
    document["rollout"] = {"costPerHour": _dollars(cost), "stranded": stranded}
    return {**document, "seconds": round(result.seconds, 3)}


def _node_document(number: int, node: _NewNode, offerings: Offerings) -> dict[str, Any]:
    offering = offerings.offering[node.offering]
    return {
        "id": f"new-{number}",
        "pool": offerings.pools[offerings.pool[node.offering]].name,
        "type": offerings.types[offerings.type[node.offering]].name,
        "zone": offering.zone,
        "capacityType": offering.capacity_type,
        "pricePerHour": _dollars(offering.price),
        "pods": [_name(key) for key in sorted(node.pods)],
    }


def _unplaced_document(key: PodKey, each: _Unplaced) -> dict[str, Any]:
    reasons = [{"constraint": name, "count": count} for name, count in each.reasons]
    return {"pod": _name(key), "because": each.because or _NO_ROOM, "reasons": reasons}


_NO_ROOM = "no node and no instance type of the pools can take it"


def plan_picture(result: PlanResult) -> PlanPicture:
    """Return what is drawn of the plan."""
    show = _labels(result.workloads, (*result.shapes,))
    new = _new_groups(result, show)
    existing = _existing_groups(result, show)
    return PlanPicture(
        strategy=result.plan.strategy,
        pending=len(result.shapes),
        on_existing=len(result.placed),
        cost=result.plan.cost,
        lower_bound=result.plan.lower_bound,
        new=new,
        existing=existing,
        unplaced=tuple(
            UnplacedPods(_short(each.pods[0]), len(each.pods), each.because or _NO_ROOM)
            for each in result.unplaced
            if each.pods
        ),
        alternatives=tuple(StrategyResult(*each) for each in result.alternatives),
        rollout=result.rollout,
        workloads=workload_totals((*new, *existing)),
    )


def _short(key: PodKey) -> str:
    return key[1] if key[0] == "default" else _name(key)


def _labels(workloads: Mapping[PodKey, str], keys: Iterable[PodKey]) -> dict[PodKey, str]:
    """Name the workload of each pod; with its namespace if it is not the default one."""
    return {key: _short((key[0], workloads.get(key, key[1]))) for key in keys}


def _new_groups(result: PlanResult, show: Mapping[PodKey, str]) -> tuple[NodeGroup, ...]:
    """Group new nodes with the same offering and the same shapes of pods."""

    alike: dict[tuple[int, tuple[tuple[int, int], ...]], list[int]] = {}
    for number, node in enumerate(result.nodes):
        content = Counter(result.shapes[key].number for key in node.pods)
        alike.setdefault((node.offering, tuple(sorted(content.items()))), []).append(number)
    offerings = result.offerings
    groups = []
    for (offering, _), numbers in alike.items():
        type_ = offerings.types[offerings.type[offering]]
        cpu, memory = type_.capacity["cpu"].milli, type_.capacity["memory"].units
        allocatable = offerings.columns.allocatable[:, offering]
        found = offerings.offering[offering]
        groups.append(
            _group(
                result,
                show,
                {f"new-{number + 1}": result.nodes[number].pods for number in numbers},
                type=type_.name,
                cpu=cpu,
                memory=memory,
                cpu_reserved=max(0, cpu - int(allocatable[CPU])) * len(numbers),
                memory_reserved=max(0, memory - int(allocatable[MEMORY])) * len(numbers),
                pool=offerings.pools[offerings.pool[offering]].name,
                zone=found.zone,
                capacity_type=found.capacity_type,
                price=found.price,
            )
        )
    return tuple(groups)


def _existing_groups(result: PlanResult, show: Mapping[PodKey, str]) -> tuple[NodeGroup, ...]:
    """Make a group of each existing node that gets pods."""

    pods: dict[str, list[PodKey]] = {}
    for key, node in result.placed:
        pods.setdefault(node, []).append(key)
    if not pods:
        return ()
    space = result.plan.space
    nodes, before = space.snapshot.nodes, space.snapshot.fork()
    positions = {name: position for position, name in enumerate(before.names())}
    groups = []
    for name, keys in sorted(pods.items()):
        row, position = int(before.order[positions[name]]), positions[name]
        allocatable, free = nodes.allocatable[:, row], before.free[:, position]
        groups.append(
            _group(
                result,
                show,
                {name: keys},
                type=nodes.labels[row].get(INSTANCE_TYPE_LABEL, ""),
                cpu=int(allocatable[CPU]),
                memory=int(allocatable[MEMORY]),
                cpu_reserved=max(0, int(allocatable[CPU] - free[CPU])),
                memory_reserved=max(0, int(allocatable[MEMORY] - free[MEMORY])),
            )
        )
    return tuple(groups)


def _group(
    result: PlanResult, show: Mapping[PodKey, str], nodes: Mapping[str, list[PodKey]], **about: Any
) -> NodeGroup:
    """Count the pods of equal nodes by workload."""

    on_each = [Counter(show[key] for key in keys) for keys in nodes.values()]
    sums: dict[str, list[int]] = {}
    for keys in nodes.values():
        for key in keys:
            total = sums.setdefault(show[key], [0, 0])
            amounts = result.shapes[key].amounts
            total[0] += amounts.get(CPU, 0)
            total[1] += amounts.get(MEMORY, 0)
    pods = [
        WorkloadPods(
            workload,
            min(count[workload] for count in on_each),
            max(count[workload] for count in on_each),
            sum(count[workload] for count in on_each),
            cpu,
            memory,
        )
        for workload, (cpu, memory) in sums.items()
    ]
    return NodeGroup(names=tuple(nodes), pods=tuple(sorted(pods, key=lambda each: (-each.cpu, each.workload))), **about)
