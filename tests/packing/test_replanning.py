"""A plan made of the last one places the same pods within the same rules, and costs hardly more than a new one."""

from __future__ import annotations

import random
from collections import Counter
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packing.replaying import instance_type

from springtide.apis.core.nodes import NodeRecord
from springtide.apis.core.pod_record import PodRecord, PodSchedulingClass
from springtide.packing.offerings import Offerings, Pool
from springtide.packing.planning import Plan, plan
from springtide.packing.snapshot import Snapshot
from springtide.packing.space import Ask
from springtide.quantity import Quantity

TYPES = [
    instance_type("small", "2", "8Gi", price=52),
    instance_type("large", "8", "32Gi", price=200),
    instance_type("memory", "4", "32Gi", price=130),
]


def amounts(**quantities: str) -> MappingProxyType[str, Quantity]:
    return MappingProxyType({name: Quantity.parse(text) for name, text in quantities.items()})


class World:
    """A cluster that changes, and the plans for it."""

    def __init__(self, seed: int, pools: list[Pool] | None = None) -> None:
        self.draw = random.Random(seed)
        self.snapshot = Snapshot()
        self.names: list[str] = []
        self.made = 0
        self.classes = [
            PodSchedulingClass(
                requests=amounts(
                    cpu=f"{self.draw.randrange(1, 30) * 50}m", memory=f"{self.draw.randrange(1, 40) * 64}Mi"
                ),
                text=str(number).encode(),
            )
            for number in range(6)
        ]
        for number in range(5):
            self.snapshot.put_node(
                NodeRecord(name=f"node-{number}", allocatable=amounts(cpu="4", memory="16Gi", pods="20"), ready=True)
            )
        self.add(60)
        self.offerings = Offerings(self.snapshot, pools or [Pool("default")], TYPES)

    def add(self, count: int, node: str = "") -> None:
        for _ in range(count):
            self.made += 1
            name = f"pod-{self.made}"
            self.names.append(name)
            self.snapshot.put_pod(("default", name), PodRecord(pod_class=self.draw.choice(self.classes), node=node))

    def remove(self, count: int) -> None:
        for _ in range(min(count, len(self.names))):
            self.snapshot.remove_pod(("default", self.names.pop(self.draw.randrange(len(self.names)))))

    def asks(self) -> list[Ask]:
        return [Ask(self.snapshot.shapes[number], count) for number, count in self.snapshot.demand().items()]

    def plan(self, previous: Plan | None = None) -> Plan:
        return plan(self.snapshot, self.asks(), self.offerings, previous=previous)

    def assert_right(self, found: Plan) -> None:
        """Every pod has one place, and no node more pods than it has room for."""
        placed: Counter[int] = Counter()
        free = self.snapshot.fork().free.copy()
        for step in found.placed:
            placed[step.shape.number] += step.pods
            free[step.shape.columns, step.node] -= step.shape.needs * step.pods
            assert (free[step.shape.columns, step.node] >= 0).all()
        for group in found.groups:
            room = self.offerings.columns.allocatable[:, group.offering].copy()
            for shape, pods in group.pods:
                placed[shape.number] += pods * group.nodes
                room[shape.columns] -= shape.needs * pods
            assert (room >= 0).all()
        assert placed == {number: count for number, count in self.snapshot.demand().items() if count}
        assert found.cost == sum(group.price * group.nodes for group in found.groups)
        assert found.lower_bound <= found.cost
        assert sum(step.pods for step in found.sequence()) == sum(
            pods * group.nodes for group in found.groups for _, pods in group.pods
        )


def contents(found: Plan) -> Counter[tuple[int, tuple[tuple[int, int], ...]]]:
    """The planned nodes, by offering and pods."""
    nodes: Counter[tuple[int, tuple[tuple[int, int], ...]]] = Counter()
    for group in found.groups:
        nodes[group.offering, tuple(sorted((shape.number, pods) for shape, pods in group.pods))] += group.nodes
    return nodes


def test_nothing_is_planned_again_when_nothing_has_changed() -> None:
    world = World(1)
    first = world.plan()

    again = world.plan(first)

    assert again.groups is first.groups
    assert again.placed is first.placed


@given(st.integers(0, 10_000), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)), max_size=5))
@settings(max_examples=60, deadline=None)
def test_plans_of_a_cluster_that_changes_a_little_are_right(seed: int, changes: list[tuple[int, int, int]]) -> None:
    world = World(seed)
    found = world.plan()
    for added, removed, bound in changes:
        world.add(added)
        world.remove(removed)
        world.add(bound, node="node-1")
        found = world.plan(found)

        world.assert_right(found)


def test_a_little_more_is_placed_beside_what_stays() -> None:
    world = World(2)
    world.add(600)
    first = world.plan()
    world.add(5)

    again = world.plan(first)

    assert again.method == "adjusted"
    before, after = contents(first), contents(again)
    assert (before & after).total() > before.total() * 0.8
    assert again.cost * 100 <= world.plan().cost * 104


@pytest.mark.parametrize("change", ["node", "demand", "limits"])
def test_a_large_change_is_planned_anew(change: str) -> None:
    limited = [Pool("default", limits={"nodes": Quantity.parse("40")})]
    world = World(3, limited if change == "limits" else None)
    world.add(100)
    first = world.plan()
    if change == "node":
        world.snapshot.put_node(NodeRecord(name="node-9", allocatable=amounts(cpu="4", memory="16Gi", pods="20")))
    elif change == "demand":
        world.remove(150)
    else:
        world.add(400)

    again = world.plan(first)

    assert again.method != "adjusted"
    if change != "limits":
        world.assert_right(again)
    assert again.nodes <= 40 or change != "limits"


def test_the_same_changes_give_the_same_plan() -> None:
    def run() -> tuple[int, list[tuple[int, int]]]:
        world = World(4)
        found = world.plan()
        for _ in range(3):
            world.add(3)
            world.remove(2)
            found = world.plan(found)
        return found.cost, [(group.offering, group.nodes) for group in found.groups]

    assert run() == run()
