"""Plans of raw clusters, and what the oracle and the limits have against them."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import msgspec
from tests.packing import oracle
from tests.packing.adapter import snapshot_of

from springtide.apis.core.daemon_sets import DaemonSetView, daemon_set_record
from springtide.apis.core.policies import LimitRangeView, class_with_defaults, limit_range_record, with_defaults
from springtide.packing.catalogue import ARCH_LABEL, OS_LABEL, CapacityType, InstanceType, Offering
from springtide.packing.offerings import Offerings, Pool
from springtide.packing.planning import Plan, Strategy, plan
from springtide.packing.space import Ask
from springtide.quantity import Quantity

Json: TypeAlias = dict[str, Any]

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = ("zone-a", "zone-b", "zone-c")


def instance_type(
    name: str,
    cpu: str = "4",
    memory: str = "16Gi",
    *,
    zones: Sequence[str] = ZONES,
    price: int = 100,
    labels: Mapping[str, str] | None = None,
    overhead: Mapping[str, str] | None = None,
    capacity_type: CapacityType = "on-demand",
    count: int | None = None,
    **others: str,
) -> InstanceType:
    """An instance type at one price in all of its zones; `others` are further amounts, such as `pods`."""
    capacity = {"cpu": cpu, "memory": memory, "ephemeral-storage": "100Gi", "pods": "110", **others}
    return InstanceType(
        name=name,
        labels={ARCH_LABEL: "amd64", OS_LABEL: "linux", **(labels or {})},
        capacity={key: Quantity.parse(value) for key, value in capacity.items()},
        overhead={key: Quantity.parse(value) for key, value in (overhead or {}).items()},
        offerings=tuple(Offering(zone, capacity_type, price, count=count) for zone in zones),
    )


def pool(
    name: str = "default", *, limits: Mapping[str, str] | None = None, zones: Sequence[str] = (), **own: Any
) -> Pool:
    """A pool, with limits as texts, that may only use the given zones."""
    requirements = tuple(own.pop("requirements", ()))
    if zones:
        requirements += ((ZONE, "In", tuple(zones)),)
    return Pool(
        name,
        limits={key: Quantity.parse(value) for key, value in (limits or {}).items()},
        requirements=requirements,
        **own,
    )


def node(name: str, cpu: str = "4", memory: str = "16Gi", *, zone: str = ZONES[0], **spec: Any) -> Json:
    """An existing node."""
    amounts = {"cpu": cpu, "memory": memory, "ephemeral-storage": "100Gi", "pods": "110"}
    labels = {HOSTNAME: name, ZONE: zone, **spec.pop("labels", {})}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pods(count: int, name: str, cpu: str = "100m", memory: str = "64Mi", **spec: Any) -> list[Json]:
    """Equal pods; `labels`, `node` and `namespace` are theirs, everything else belongs into the spec."""
    labels = spec.pop("labels", {"app": name})
    node_name, namespace = spec.pop("node", None), spec.pop("namespace", "default")
    requests = {"cpu": cpu, "memory": memory}
    spec = {"containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}], **spec}
    if node_name is not None:
        spec["nodeName"] = node_name
    return [
        {
            "metadata": {"name": f"{name}-{number}", "namespace": namespace, "labels": labels},
            "spec": copy.deepcopy(spec),
        }
        for number in range(count)
    ]


def spread(key: str, app: str, *, skew: int = 1, **own: Any) -> Json:
    """A topology spread constraint over the pods of an app."""
    own = {"whenUnsatisfiable": "DoNotSchedule", **own}
    return {"maxSkew": skew, "topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **own}


def near(kind: str, key: str, app: str) -> Json:
    """Required pod affinity or pod anti-affinity (`kind`) to the pods of an app."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


class Planned:
    """A plan for the pending pods of a cluster, with what is needed to check it."""

    def __init__(
        self,
        cluster: Json,
        types: Sequence[InstanceType],
        pools: Sequence[Pool] | None = None,
        *,
        strategy: Strategy = "least-cost",
        groups: Mapping[str, str] | None = None,
        virtual: Mapping[str, int] | None = None,
    ) -> None:
        """Plan for all pending pods.

        Args:
            cluster: lists of raw objects, as `clusters.random_cluster` makes them; also `daemonSets`, `limitRanges`.
            types: the instance types.
            pools: the pools; by default one that allows everything.
            strategy: which of the plans is the best.
            groups: all-or-nothing groups by the beginning of the names of their pods.
            virtual: how many virtual pods are wanted that are like a pending one, by its name.
        """
        self.cluster = cluster
        self.pools = list(pools) if pools is not None else [pool()]
        self.snapshot = snapshot_of(cluster)
        ranges = [limit_range_record(msgspec.convert(one, LimitRangeView)) for one in cluster.get("limitRanges") or ()]
        for daemon_set in cluster.get("daemonSets") or ():
            record = daemon_set_record(msgspec.convert(daemon_set, DaemonSetView))
            own = [one for one in ranges if one.namespace == record.namespace]
            record = msgspec.structs.replace(record, pod_class=class_with_defaults(record.pod_class, own))
            self.snapshot.put_daemon_set((record.namespace, record.name), record)
        self.asks = self._asks(groups or {}, virtual or {})
        self.offerings = Offerings(self.snapshot, self.pools, types)
        self.plan: Plan = plan(self.snapshot, self.asks, self.offerings, strategy=strategy)

    def _asks(self, groups: Mapping[str, str], virtual: Mapping[str, int]) -> list[Ask]:
        asks = []
        pending = self.snapshot.pending()
        for number, keys in pending.items():
            for name, group in [*groups.items(), ("", "")]:
                own = [key for key in keys if key[1].startswith(name)]
                keys = [key for key in keys if key not in own]
                if own:
                    asks.append(Ask(self.snapshot.shapes[number], len(own), group=group))
        for name, count in virtual.items():
            number = next(number for number, keys in pending.items() if name in [key[1] for key in keys])
            asks.append(Ask(self.snapshot.shapes[number], count, virtual=True))
        return asks

    @property
    def unplaced(self) -> int:
        """How many pods have no place."""
        return sum(each.ask.count for each in self.plan.unplaced)

    def zones(self) -> Counter[str]:
        """How many planned nodes there are in each zone."""
        found: Counter[str] = Counter()
        for each in self.plan.groups:
            found[self.offerings.columns.labels[each.offering].get(ZONE, "")] += each.nodes
        return found

    def new_nodes(self) -> list[Json]:
        """The planned nodes as objects, in the order of their numbers."""
        offerings = [each.offering for each in self.plan.groups for _ in range(each.nodes)]
        return [self.node_of(offering, f"new-{number}") for number, offering in enumerate(offerings)]

    def node_of(self, offering: int, name: str) -> Json:
        """A node of an offering as an object."""
        type_ = self.offerings.types[self.offerings.type[offering]]
        owner = self.offerings.pools[self.offerings.pool[offering]]
        taints = [
            {"key": one.key, "effect": one.effect, **({"value": one.value} if one.value else {})}
            for one in owner.taints
        ]
        return {
            "metadata": {"name": name, "labels": {**self.offerings.columns.labels[offering], HOSTNAME: name}},
            "spec": {"taints": taints} if taints else {},
            "status": {
                "capacity": {key: str(value) for key, value in type_.capacity.items()},
                "allocatable": {key: str(value) for key, value in type_.allocatable.items()},
            },
        }

    def steps(self) -> tuple[list[tuple[Json, str]], list[tuple[Json, str]]]:
        """Pods with existing nodes, and pods with planned nodes, in the order of the plan; virtual ones are made up."""
        by_key = {
            (one["metadata"]["namespace"], one["metadata"]["name"]): one
            for one in [*(self.cluster.get("pods") or ()), *(self.cluster.get("pending") or ())]
        }
        waiting = {number: list(keys) for number, keys in self.snapshot.pending().items()}
        examples = {number: by_key[keys[0]] for number, keys in waiting.items()}
        made = 0
        found: tuple[list[tuple[Json, str]], list[tuple[Json, str]]] = ([], [])
        names = self.plan.space.names()
        for bound, steps in zip(found, (self.plan.placed, self.plan.sequence()), strict=True):
            for step in steps:
                for _ in range(step.pods):
                    number = step.shape.number
                    if waiting[number]:
                        pod = by_key[waiting[number].pop(0)]
                    else:
                        made += 1
                        pod = copy.deepcopy(examples[number])
                        pod["metadata"]["name"] = f"virtual-{made}"
                    bound.append((pod, names[step.node] if bound is found[0] else f"new-{step.node}"))
        return found

    def refused(self) -> list[tuple[str, str, list[str]]]:
        """What the oracle refuses: first the pods on existing nodes, then those on planned nodes, in plan order."""
        cluster = oracle.Cluster.from_json(self.cluster)
        existing, planned = self.steps()
        refused = oracle.replay(cluster, existing)
        new = self.new_nodes()
        for one in new:
            cluster.nodes.append(copy.deepcopy(one))
            self._run_daemons(cluster, one)
        return [*refused, *oracle.replay(cluster, planned)]

    def _run_daemons(self, cluster: oracle.Cluster, new: Json) -> None:
        ranges = [
            limit_range_record(msgspec.convert(one, LimitRangeView)) for one in self.cluster.get("limitRanges") or ()
        ]
        for daemon_set in self.cluster.get("daemonSets") or ():
            meta, spec = daemon_set["metadata"], daemon_set["spec"]["template"]["spec"]
            own = [one for one in ranges if one.namespace == meta["namespace"]]
            name = f"{meta['name']}-{oracle.name_of(new)}"
            pod = {"metadata": {"name": name, "namespace": meta["namespace"]}, "spec": with_defaults(spec, own)}
            if not oracle.taint_toleration(cluster, pod, new, []) and not oracle.node_affinity(cluster, pod, new, []):
                cluster.bind(pod, oracle.name_of(new))

    def faults(self) -> list[str]:
        """Everything that is wrong with the plan, whatever was asked."""
        found = [f"{pod} is refused on {node} by {', '.join(why)}" for pod, node, why in self.refused()]
        found += self._miscounted()
        found += over_limits(self)
        for each in self.plan.unplaced:
            if len(each.because) > 300:
                found.append(f"a reason of {len(each.because)} characters: {each.because}")
        return found

    def _miscounted(self) -> Iterable[str]:
        placed: Counter[int] = Counter()
        for step in self.plan.placed:
            placed[step.shape.number] += step.pods
        for each in self.plan.groups:
            if not each.pods:
                yield "a planned node is empty"
            for shape, count in each.pods:
                placed[shape.number] += count * each.nodes
        ordered: Counter[int] = Counter(dict.fromkeys(placed, 0))
        for step in [*self.plan.placed, *self.plan.sequence()]:
            ordered[step.shape.number] += step.pods
        if ordered != placed:
            yield f"the nodes have {dict(placed)} of the shapes, the order of binding has {dict(ordered)}"
        for each_unplaced in self.plan.unplaced:
            placed[each_unplaced.ask.shape.number] += each_unplaced.ask.count
        asked: Counter[int] = Counter()
        for ask in self.asks:
            asked[ask.shape.number] += ask.count
        if placed != asked:
            yield f"asked for {dict(asked)}, the plan has {dict(placed)}"
        cost = sum(int(self.offerings.price[each.offering]) * each.nodes for each in self.plan.groups)
        if cost != self.plan.cost:
            yield f"the nodes cost {cost}, the plan says {self.plan.cost}"
        if self.plan.lower_bound > cost and not self.plan.unplaced:
            yield f"the plan costs {cost}, less than the lower bound of {self.plan.lower_bound}"


def over_limits(planned: Planned) -> Iterable[str]:
    """The limits of pools and the counts of reserved offerings that a plan exceeds."""
    offerings = planned.offerings
    taken: Counter[tuple[str, str, str, str]] = Counter()
    for own in planned.pools:
        for resource, limit in own.limits.items():
            before = own.used.get(resource)
            used = Fraction(before.nano, 10**9) if before is not None else Fraction(0)
            added = Fraction(0)
            for each in planned.plan.groups:
                if offerings.pools[offerings.pool[each.offering]].name == own.name:
                    capacity = offerings.types[offerings.type[each.offering]].capacity
                    amount = capacity.get(resource)
                    one = Fraction(1) if resource == "nodes" else Fraction(amount.nano if amount else 0, 10**9)
                    added += one * each.nodes
            if added and used + added > Fraction(limit.nano, 10**9):
                yield f"pool {own.name} has {used + added} {resource}, its limit is {limit}"
    for each in planned.plan.groups:
        offering = offerings.offering[each.offering]
        type_ = offerings.types[offerings.type[each.offering]].name
        taken[type_, offering.zone, offering.capacity_type, str(offering.count)] += each.nodes
        if not offering.available:
            yield f"{type_} in {offering.zone} is not available"
    for (type_, zone, capacity_type, count), nodes in taken.items():
        if count != "None" and nodes > int(count):
            yield f"{nodes} reserved nodes of {type_} in {zone} ({capacity_type}), {count} are left"
