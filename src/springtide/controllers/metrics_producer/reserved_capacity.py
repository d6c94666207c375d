"""What is reserved of a group of nodes, as metrics and as people read it; pure.

Producers that tell how much of a group of nodes is reserved: who asks for which group, and when they are told.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from springtide.apis.scheduled.producer import ReservedCapacitySpec
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Result
from springtide.cluster.pods_and_nodes import ALL_NODES, ALL_PODS
from springtide.cluster.resources import Key
from springtide.controllers.metrics_producer.decide import ExportedSeries, ProducerDecision
from springtide.controllers.metrics_producer.occupancy import (
    GroupLabel,
    GroupOccupancy,
    GroupTotals,
)
from springtide.metrics.series import SeriesValue
from springtide.quantity import Quantity

_BILLION = 10**9
_KIBIBYTE = Quantity.parse("1Ki")


def decide_reserved_capacity(label: GroupLabel, totals: GroupTotals) -> ProducerDecision:
    """Tell what is reserved of the nodes with a label."""
    fields: dict[str, str] = {}
    values: dict[str, SeriesValue] = {}
    for resource, unit, text in _RESOURCES:
        reserved = Fraction(getattr(totals.reserved, resource), unit)
        capacity = Fraction(getattr(totals.capacity, resource), unit)
        utilization = reserved / capacity if capacity else None
        fields[resource] = f"{_percentage(utilization)}, {text(reserved)}/{text(capacity)}"
        values |= {
            f"karpenter_reserved_capacity_{resource}_reserved": reserved,
            f"karpenter_reserved_capacity_{resource}_capacity": capacity,
            f"karpenter_reserved_capacity_{resource}_utilization": utilization,
        }
    return ProducerDecision(
        active=_active(label, totals.nodes),
        calculable=Condition(
            "Calculable", ConditionStatus.TRUE, "NodesWatched", "nodes and pods are followed as they change"
        ),
        fields={"reservedCapacity": fields},
        series=ExportedSeries(values, None),
    )


def _active(label: GroupLabel, nodes: int) -> Condition:
    group = f"the label {label[0]}={label[1]}"
    if not nodes:
        return Condition("Active", ConditionStatus.TRUE, "NoNodes", f"no node with {group} is ready and takes pods")
    amount = "1 node" if nodes == 1 else f"{nodes} nodes"
    return Condition(
        "Active", ConditionStatus.TRUE, "NodesCounted", f"{amount} with {group} {'is' if nodes == 1 else 'are'} counted"
    )


def _percentage(part: Fraction | None) -> str:
    if part is None:
        return "NaN%"
    whole, hundredths = divmod(round(part * 10_000), 100)
    return f"{whole}.{hundredths:02d}%"


def _cores(amount: Fraction) -> str:
    return str(Quantity(int(amount * _BILLION)))


def _bytes(amount: Fraction) -> str:
    """Write an amount of memory in binary units where it is made of them, whatever the units it was summed up from."""
    kibibytes = amount / 1024
    return str(_KIBIBYTE * int(kibibytes)) if kibibytes.denominator == 1 else _cores(amount)


_RESOURCES: tuple[tuple[str, int, Callable[[Fraction], str]], ...] = (
    ("cpu", _BILLION, _cores),
    ("memory", _BILLION, _bytes),
    ("pods", 1, _cores),
)


RECOMPUTE_PAUSE = 1.0
"""Seconds between two looks at a group: pods come and go by the hundred."""


class ReservedCapacity:
    """All producers of this kind."""

    def __init__(self, context: ControllerContext) -> None:
        self._tools = context
        self._labels: dict[Key, GroupLabel] = {}
        self._users: dict[GroupLabel, dict[Key, None]] = {}
        self._woken: set[Key] = set()
        """Who is on the way to look already."""
        self._looked: dict[Key, float] = {}
        self._occupancy = GroupOccupancy(self._changed)
        context.follow(ALL_NODES, self._occupancy.node_changed)
        context.follow(ALL_PODS, self._occupancy.pod_changed)

    def produce(self, key: Key, spec: ReservedCapacitySpec) -> ProducerDecision | Result:
        """Tell what is reserved now, or when to ask again: not so soon after the last time."""
        ((name, value),) = spec.node_selector.items()
        if self._labels.get(key) != (name, value):
            self._adopt(key, (name, value))
        present = self._tools.clock.monotonic()
        wait = self._looked.get(key, present - RECOMPUTE_PAUSE) + RECOMPUTE_PAUSE - present
        if wait > 0:
            return Result(requeue_after=wait)
        self._looked[key] = present
        self._woken.discard(key)
        return decide_reserved_capacity((name, value), self._occupancy.of((name, value)))

    def forget(self, key: Key) -> None:
        """Keep nothing of a producer that is gone, or tells something else now."""
        label = self._labels.pop(key, None)
        if label is None:
            return
        self._looked.pop(key, None)
        self._woken.discard(key)
        users = self._users[label]
        del users[key]
        if not users:
            del self._users[label]
            self._occupancy.forget(label)

    def _adopt(self, key: Key, label: GroupLabel) -> None:
        self.forget(key)
        self._labels[key] = label
        self._users.setdefault(label, {})[key] = None
        self._occupancy.keep(label)

    def _changed(self, label: GroupLabel) -> None:
        for key in self._users.get(label, ()):
            if key not in self._woken:
                self._woken.add(key)
                self._tools.enqueue(key)
