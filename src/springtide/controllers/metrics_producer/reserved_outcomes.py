"""What is reserved of a group of nodes, as metrics and as people read it; pure."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from springtide.cluster.conditions import Condition, Truth
from springtide.controllers.metrics_producer.occupancy import Label, Totals
from springtide.controllers.metrics_producer.outcomes import Outcome, Series
from springtide.metrics.series import Value
from springtide.quantity import Quantity

_BILLION = 10**9
_KIBIBYTE = Quantity.parse("1Ki")


def decide(label: Label, totals: Totals) -> Outcome:
    """Tell what is reserved of the nodes with a label."""
    fields: dict[str, str] = {}
    values: dict[str, Value] = {}
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
    return Outcome(
        active=_active(label, totals.nodes),
        calculable=Condition("Calculable", Truth.TRUE, "NodesWatched", "nodes and pods are followed as they change"),
        fields={"reservedCapacity": fields},
        series=Series(values, None),
    )


def _active(label: Label, nodes: int) -> Condition:
    group = f"the label {label[0]}={label[1]}"
    if not nodes:
        return Condition("Active", Truth.TRUE, "NoNodes", f"no node with {group} is ready and takes pods")
    amount = "1 node" if nodes == 1 else f"{nodes} nodes"
    return Condition(
        "Active", Truth.TRUE, "NodesCounted", f"{amount} with {group} {'is' if nodes == 1 else 'are'} counted"
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
