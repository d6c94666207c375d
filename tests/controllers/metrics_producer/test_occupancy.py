"""Incremental sums of node groups, against sums that are computed anew after each change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.apis.core.nodes import NodeRecord
from springtide.apis.core.pod_record import PodRecord, PodSchedulingClass, PodState
from springtide.cluster.resources import Key
from springtide.cluster.store import Delta
from springtide.controllers.metrics_producer.occupancy import (
    NO_RESOURCES,
    GroupLabel,
    GroupOccupancy,
    GroupTotals,
    ResourceAmounts,
)
from springtide.quantity import Quantity

NAMES = ("n1", "n2", "n3")
LABELS: tuple[GroupLabel, ...] = (("group", "a"), ("group", "b"), ("zone", "x"))


def quantities(cpu: int, memory: int, pods: int | None = None) -> dict[str, Quantity]:
    counted = {"cpu": Quantity(cpu), "memory": Quantity(memory), "example.com/gpu": Quantity(7)}
    return counted if pods is None else {**counted, "pods": Quantity(pods * 10**9)}


nodes = st.builds(
    NodeRecord,
    labels=st.fixed_dictionaries({}, optional={"group": st.sampled_from("ab"), "zone": st.just("x")}),
    ready=st.booleans(),
    unschedulable=st.booleans(),
    deleted_at=st.sampled_from((None, 1_795_000_000)),
    allocatable=st.builds(quantities, st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)),
)
pods = st.builds(
    PodRecord,
    node=st.sampled_from(("", *NAMES)),
    pod_class=st.builds(PodSchedulingClass, requests=st.builds(quantities, st.integers(0, 5), st.integers(0, 5))),
    state=st.builds(PodState, phase=st.sampled_from(("Running", "Succeeded", "Failed")), ready=st.booleans()),
)
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
class ReferenceOccupancy:
    """All nodes and pods; sums are computed on each call."""

    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    pods: dict[str, PodRecord] = field(default_factory=dict)

    def of(self, label: GroupLabel) -> GroupTotals:
        counted = {
            name: node
            for name, node in self.nodes.items()
            if node.ready and not node.unschedulable and node.deleted_at is None and label in node.labels.items()
        }
        reserved, capacity = NO_RESOURCES, NO_RESOURCES
        for node in counted.values():
            have = node.allocatable
            capacity += ResourceAmounts(have["cpu"].nano, have["memory"].nano, have["pods"].units)
        for pod in self.pods.values():
            if pod.node in counted and pod.state.phase == "Running":
                needs = pod.pod_class.requests
                reserved += ResourceAmounts(needs["cpu"].nano, needs["memory"].nano, 1)
        return GroupTotals(len(counted), reserved, capacity)


@settings(max_examples=200, deadline=None)
@given(changes)
def test_incremental_sums_match_the_reference(steps: list[tuple[str, Any, Any]]) -> None:
    """After every change the sums of each kept group are right, and the subscriber was notified if they changed."""
    notified: set[GroupLabel] = set()
    kept: dict[GroupLabel, GroupTotals] = {}
    reference, occupancy = ReferenceOccupancy(), GroupOccupancy(notified.add)
    for kind, what, new in steps:
        notified.clear()
        if kind == "keep":
            occupancy.keep(what)
            kept[what] = reference.of(what)
        elif kind == "forget":
            occupancy.forget(what)
            kept.pop(what, None)
        else:
            held: dict[str, Any] = reference.nodes if kind == "node" else reference.pods
            delta = Delta(Key("", what), held.pop(what, None), new)
            if new is not None:
                held[what] = new
            changed: Any = occupancy.node_changed if kind == "node" else occupancy.pod_changed
            changed(delta)
        for label, before in kept.items():
            kept[label] = occupancy.of(label)
            assert kept[label] == reference.of(label)
            assert label in notified or kept[label] == before
