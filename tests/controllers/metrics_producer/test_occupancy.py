"""The sums of groups of nodes, kept change by change, against sums that are made anew each time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.cluster.resources import Key
from springtide.cluster.store import Delta
from springtide.controllers.metrics_producer.occupancy import (
    NO_RESOURCES,
    GroupLabel,
    GroupOccupancy,
    GroupTotals,
    NodeRecord,
    PodRecord,
    ResourceAmounts,
)

NAMES = ("n1", "n2", "n3")
LABELS: tuple[GroupLabel, ...] = (("group", "a"), ("group", "b"), ("zone", "x"))

amounts = st.builds(ResourceAmounts, st.integers(0, 5), st.integers(0, 5), st.integers(0, 3))
nodes = st.builds(
    NodeRecord,
    st.fixed_dictionaries({}, optional={"group": st.sampled_from("ab"), "zone": st.just("x")}),
    st.booleans(),
    amounts,
)
pods = st.builds(PodRecord, st.sampled_from(("", *NAMES)), amounts)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from(NAMES), st.none() | nodes),
        st.tuples(st.just("pod"), st.sampled_from(("p1", "p2", "p3")), st.none() | pods),
        st.tuples(st.just("keep"), st.sampled_from(LABELS), st.none()),
        st.tuples(st.just("forget"), st.sampled_from(LABELS), st.none()),
    ),
    max_size=40,
)


@dataclass
class Naive:
    """All that there is; sums are made when somebody asks."""

    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    pods: dict[str, PodRecord] = field(default_factory=dict)

    def of(self, label: GroupLabel) -> GroupTotals:
        counted = {name: node for name, node in self.nodes.items() if node.usable and label in node.labels.items()}
        reserved, capacity = NO_RESOURCES, NO_RESOURCES
        for node in counted.values():
            capacity += node.capacity
        for pod in self.pods.values():
            if pod.node in counted:
                reserved += pod.needs
        return GroupTotals(len(counted), reserved, capacity)


@settings(max_examples=200, deadline=None)
@given(changes)
def test_the_sums_are_those_of_what_there_is(steps: list[tuple[str, Any, Any]]) -> None:
    """After every change every group that is kept has its sums, and whoever asks for it was told of a change."""
    told: set[GroupLabel] = set()
    kept: dict[GroupLabel, GroupTotals] = {}
    naive, occupancy = Naive(), GroupOccupancy(told.add)
    for kind, what, new in steps:
        told.clear()
        if kind == "keep":
            occupancy.keep(what)
            kept[what] = naive.of(what)
        elif kind == "forget":
            occupancy.forget(what)
            kept.pop(what, None)
        else:
            held: dict[str, Any] = naive.nodes if kind == "node" else naive.pods
            delta = Delta(Key("", what), held.pop(what, None), new)
            if new is not None:
                held[what] = new
            changed: Any = occupancy.node_changed if kind == "node" else occupancy.pod_changed
            changed(delta)
        for label, before in kept.items():
            kept[label] = occupancy.of(label)
            assert kept[label] == naive.of(label)
            assert label in told or kept[label] == before
