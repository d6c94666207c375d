"""Pictures of plans: what the terminal, SVG and HTML show of nodes and their pods. Equal nodes are one group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from springtide.packing.catalogue import NANO_PER_DOLLAR

HOURS_OF_MONTH: Final = 730
EXISTING: Final = "Existing nodes that get pods"


@dataclass(frozen=True, slots=True)
class WorkloadPods:
    """The pods of one workload on equal nodes."""

    workload: str
    least: int
    """On the node that has the fewest."""
    most: int
    pods: int
    """On all nodes together."""
    cpu: int
    """Milli-cpu that they request on all nodes together."""
    memory: int
    """Bytes, likewise."""

    @property
    def text(self) -> str:
        """The workload, and how many of its pods are on each node."""
        number = f"{self.most}" if self.least == self.most else f"{self.least}–{self.most}"
        return f"{self.workload} ×{number}"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are shown as one."""

    names: tuple[str, ...]
    type: str
    cpu: int
    """Milli-cpu that one node has."""
    memory: int
    cpu_reserved: int
    """What is not for the pods of the plan, on all nodes together: of the system, of DaemonSets, of running pods."""
    memory_reserved: int
    pods: tuple[WorkloadPods, ...]
    pool: str = ""
    zone: str = ""
    capacity_type: str = ""
    price: int = 0
    """Nano-dollars per hour of one node; nodes that exist have none."""

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.names)

    @property
    def is_new(self) -> bool:
        """Whether the nodes are planned; those that exist have no offering."""
        return bool(self.zone or self.price)

    @property
    def cpu_use(self) -> int:
        """Percent of the allocatable cpu that pods request."""
        return self._use(self.cpu, self.cpu_reserved, sum(each.cpu for each in self.pods))

    @property
    def memory_use(self) -> int:
        """Percent of the allocatable memory that pods request."""
        return self._use(self.memory, self.memory_reserved, sum(each.memory for each in self.pods))

    def _use(self, each: int, reserved: int, requested: int) -> int:
        """On a node that exists, what is reserved is requested by the pods that run there."""
        whole = each * self.nodes
        return _percent(requested, whole - reserved) if self.is_new else _percent(requested + reserved, whole)


@dataclass(frozen=True, slots=True)
class UnplacedPods:
    """Equal pods that cannot be placed."""

    first: str
    count: int
    because: str

    @property
    def text(self) -> str:
        """The first of them, and how many more there are."""
        return self.first if self.count == 1 else f"{self.first} and {self.count - 1:,} more"


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """What a strategy leads to."""

    strategy: str
    nodes: int
    cost: int
    unplaced: int


@dataclass(frozen=True, slots=True)
class PlanPicture:
    """What is shown of a plan."""

    strategy: str
    pending: int
    on_existing: int
    cost: int
    """Nano-dollars per hour of the new nodes."""
    lower_bound: int
    new: tuple[NodeGroup, ...] = ()
    existing: tuple[NodeGroup, ...] = ()
    """Existing nodes that get pods."""
    unplaced: tuple[UnplacedPods, ...] = ()
    alternatives: tuple[StrategyResult, ...] = ()
    """Of every strategy, this one included."""
    rollout: tuple[int, int] | None = None
    """Cost per hour after rollouts, and how many pods they leave without a node."""
    workloads: tuple[str, ...] = ()
    """Those that get a colour, the largest first."""

    @property
    def nodes(self) -> int:
        """How many nodes are added."""
        return sum(group.nodes for group in self.new)

    @property
    def unplaceable(self) -> int:
        """How many pods cannot be placed."""
        return sum(each.count for each in self.unplaced)

    @property
    def on_new(self) -> int:
        """How many pods are on new nodes."""
        return self.pending - self.on_existing - self.unplaceable

    @property
    def headline(self) -> str:
        """What the plan is, in one line."""
        if not self.pending:
            return "No pods are pending: there is nothing to add."
        pods = counted(self.pending, "pending pod")
        if not self.new:
            return f"No new nodes for {pods}"
        return f"{counted(self.nodes, 'new node')} for {pods}: {per_hour_and_month(self.cost)}"

    @property
    def summary(self) -> str:
        """Where the pods are."""
        parts = [
            f"{number:,} {where}"
            for number, where in (
                (self.on_new, "on new nodes"),
                (self.on_existing, "on existing nodes"),
                (self.unplaceable, "cannot be placed"),
            )
            if number
        ]
        return ", ".join(parts)

    @property
    def bound(self) -> str:
        """How far the cost is above what any plan costs; empty if that is unknown."""
        if not self.lower_bound or not self.cost:
            return ""
        above = (self.cost - self.lower_bound) * 1000 // self.lower_bound
        rest = f"this plan is {above // 10}.{above % 10} % above" if above else "this plan is the cheapest"
        return f"any plan costs at least {dollars(self.lower_bound)} per hour: {rest}"


def dollars(nano: int) -> str:
    """Write an amount of money: small ones with four decimals, others with two."""
    decimals = 4 if abs(nano) < 10 * NANO_PER_DOLLAR else 2
    return f"${nano / NANO_PER_DOLLAR:,.{decimals}f}"


def per_hour_and_month(nano: int) -> str:
    """Write a cost per hour, and per month of 730 hours."""
    return f"{dollars(nano)} per hour, ${nano * HOURS_OF_MONTH / NANO_PER_DOLLAR:,.2f} per month"


def after_rollouts(cost: int, stranded: int) -> str:
    """Write what a plan costs if the scheduler binds all pods by its own scores."""
    found = "every pod finds room" if not stranded else f"{counted(stranded, 'pod')} first found no room there"
    return f"{per_hour_and_month(cost)}; {found}"


def counted(number: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def amount_of_cpu(milli: int) -> str:
    """Write an amount of cpu."""
    return f"{milli // 1000} cpu" if milli % 1000 == 0 else f"{milli / 1000:.1f} cpu"


def amount_of_memory(size: int) -> str:
    """Write an amount of memory."""
    gib = size / (1 << 30)
    return f"{gib:.0f} GiB" if gib >= 10 or gib == int(gib) else f"{gib:.1f} GiB"


def merged_groups(groups: Sequence[NodeGroup], most: int) -> tuple[NodeGroup, ...]:
    """Merge groups of one pool, type, zone and capacity type if there are more than `most`; the costliest first."""
    if len(groups) > most:
        alike: dict[tuple[object, ...], list[NodeGroup]] = {}
        for group in groups:
            key = (group.pool, group.type, group.zone, group.capacity_type, group.price, group.cpu, group.memory)
            alike.setdefault(key, []).append(group)
        groups = [_merged(each) for each in alike.values()]
    return tuple(
        sorted(groups, key=lambda each: (-each.price * each.nodes, each.pool, each.type, each.zone, each.names))
    )


def _merged(groups: Sequence[NodeGroup]) -> NodeGroup:
    """Make one group of several that differ in their pods."""
    by_workload: dict[str, list[WorkloadPods]] = {}
    for group in groups:
        for each in group.pods:
            by_workload.setdefault(each.workload, []).append(each)
    pods = tuple(
        WorkloadPods(
            workload,
            min(each.least for each in found) if len(found) == len(groups) else 0,
            max(each.most for each in found),
            sum(each.pods for each in found),
            sum(each.cpu for each in found),
            sum(each.memory for each in found),
        )
        for workload, found in by_workload.items()
    )
    first = groups[0]
    return NodeGroup(
        tuple(name for group in groups for name in group.names),
        first.type,
        first.cpu,
        first.memory,
        sum(group.cpu_reserved for group in groups),
        sum(group.memory_reserved for group in groups),
        tuple(sorted(pods, key=lambda each: (-each.cpu, each.workload))),
        first.pool,
        first.zone,
        first.capacity_type,
        first.price,
    )


def _percent(part: int, whole: int) -> int:
    return part * 100 // whole if whole > 0 else 0


def workload_totals(groups: Iterable[NodeGroup]) -> tuple[str, ...]:
    """List the workloads of groups, those with the most cpu first."""
    totals: dict[str, int] = {}
    for group in groups:
        for each in group.pods:
            totals[each.workload] = totals.get(each.workload, 0) + each.cpu
    return tuple(sorted(totals, key=lambda workload: (-totals[workload], workload)))
