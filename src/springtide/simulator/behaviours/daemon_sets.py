"""The DaemonSet controller: one pod on each eligible node, and rolling updates by deletion or by surge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from springtide.apis.core.daemon_sets import taints_tolerated_by_daemons
from springtide.apis.core.nodes import NodeRecord
from springtide.apis.core.pod_record import pod_class_of
from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.errors import ApiError
from springtide.cluster.pods_and_nodes import ALL_NODES
from springtide.cluster.resources import NODES, PODS, Key, Object, key_of
from springtide.packing.columns import NodeRule, rule_of
from springtide.packing.predicates import untolerated
from springtide.simulator.behaviours import pod_status as state
from springtide.simulator.behaviours.ownership import (
    LABEL,
    claim,
    create_once,
    delete_pod,
    free_names,
    pod_exists,
    pod_from,
    scaled_count,
    template_hash,
    write_status,
)
from springtide.simulator.behaviours.resources import (
    ALL_PODS,
    DAEMON_SETS,
    effective_taints,
    owned,
    to_controller,
)


@dataclass(slots=True)
class DaemonSetPlan:
    """The pods to create and delete."""

    create: list[str] = field(default_factory=list)
    """Names of nodes."""
    delete: list[tuple[Object, str]] = field(default_factory=list)
    """Pods, and why."""


def spec_of(item: Object) -> Object:
    """Return the pod spec with the tolerations that the DaemonSet controller adds."""
    spec = item["spec"]["template"]["spec"]
    added = taints_tolerated_by_daemons(host_network=bool(spec.get("hostNetwork")))
    extra = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in added]
    present = spec.get("tolerations") or []
    return {**spec, "tolerations": [*present, *(toleration for toleration in extra if toleration not in present)]}


def node_of(pod: Object) -> str | None:
    """Return the node that a pod is for, whether or not it is bound."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for requirement in term.get("matchFields") or ():
            if requirement["key"] == "metadata.name" and requirement.get("values"):
                return str(requirement["values"][0])
    name = pod["spec"].get("nodeName")
    return str(name) if name else None


class NodeDaemonState(NamedTuple):
    """Whether a node should run a pod of a DaemonSet."""

    should: bool
    """A pod should run on the node."""
    may: bool
    """An existing pod may stay on the node."""


def node_states(item: Object, nodes: Iterable[NodeRecord]) -> dict[str, NodeDaemonState]:
    """Return the state of each node, by name."""
    rule = rule_of(pod_class_of(spec_of(item)))
    return {node.name: _node_state(rule, node) for node in nodes}


def _node_state(rule: NodeRule, node: NodeRecord) -> NodeDaemonState:
    if not rule.matches(node.name, node.labels):
        return NodeDaemonState(should=False, may=False)
    tolerations, taints = rule.tolerations, effective_taints(node)
    stays = not untolerated(tolerations, taints, ("NoExecute",))
    return NodeDaemonState(should=stays and not untolerated(tolerations, taints, ("NoSchedule",)), may=stays)


def decide(item: Object, nodes: Mapping[str, NodeDaemonState], pods: Iterable[Object], now: int) -> DaemonSetPlan:
    """Compare the pods of each node with the one (during a surge, two) that it should have."""
    if state.is_terminating(item):
        return DaemonSetPlan()
    there, plan, surges = by_node(pods), DaemonSetPlan(), most_surge(item, nodes) > 0
    for name, (should, may) in nodes.items():
        present = there.pop(name, [])
        alive = [pod for pod in present if not state.is_terminating(pod)]
        ended = [pod for pod in alive if state.is_finished(pod)]
        if not may:
            plan.delete += [(pod, f"node {name} is no longer eligible") for pod in alive]
        elif ended:
            plan.delete += [(pod, "it has ended and is created again") for pod in ended]
        elif should and not (alive if surges else present):
            plan.create.append(name)
        else:
            surplus = _surplus(item, alive, now) if surges else alive[1:]
            plan.delete += [(pod, f"node {name} has one already") for pod in surplus]
    for name, lost in there.items():
        # Pods bound to a deleted node are left to pod garbage collection.
        unbound = [pod for pod in lost if not pod["spec"].get("nodeName") and not state.is_terminating(pod)]
        plan.delete += [(pod, f"node {name} no longer exists") for pod in unbound if name]
    return plan


def by_node(pods: Iterable[Object]) -> dict[str, list[Object]]:
    """Group pods by node; bound pods first, then the oldest."""
    grouped: dict[str, list[Object]] = {}
    for pod in sorted(pods, key=lambda pod: (not pod["spec"].get("nodeName"), state.created_at(pod), key_of(pod))):
        grouped.setdefault(node_of(pod) or "", []).append(pod)
    return grouped


def most_surge(item: Object, nodes: Mapping[str, NodeDaemonState]) -> int:
    """Return how many nodes may run a second pod during a rolling update."""
    rolling = (item["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return scaled_count(rolling.get("maxSurge", 0), sum(node.should for node in nodes.values()), up=True)


def _surplus(item: Object, alive: Sequence[Object], now: int) -> list[Object]:
    """List surplus pods of a node: it keeps one updated pod, and an old one until that is available."""
    new, old = current_and_old(item, alive)
    changed_over = new and old and (is_available(item, new[0], now) or not state.is_ready(old[0]))
    return new[1:] + (old if changed_over else old[1:])


def current_and_old(item: Object, pods: Iterable[Object]) -> tuple[list[Object], list[Object]]:
    """Split pods into updated and outdated ones."""
    mark = template_hash(item["spec"]["template"])
    parts: tuple[list[Object], list[Object]] = ([], [])
    for pod in pods:
        parts[(pod["metadata"].get("labels") or {}).get(LABEL) != mark].append(pod)
    return parts


def available_at(item: Object, pod: Object) -> int | None:
    """Return when a pod becomes available."""
    return state.available_at(pod, int(item["spec"].get("minReadySeconds") or 0))


def is_available(item: Object, pod: Object, now: int) -> bool:
    """Whether a pod is available."""
    at = available_at(item, pod)
    return not state.is_terminating(pod) and at is not None and at <= now


def status_of(item: Object, nodes: Mapping[str, NodeDaemonState], pods: Iterable[Object], now: int) -> dict[str, Any]:
    """Return the status: counts of desired, current, misscheduled, ready and available pods."""
    first = {name: there[0] for name, there in by_node(pod for pod in pods if state.is_active(pod)).items()}
    placed = [first[name] for name, node in nodes.items() if node.should and name in first]
    available = sum(is_available(item, pod, now) for pod in placed)
    wanted = sum(node.should for node in nodes.values())
    up_to_date, _ = current_and_old(item, placed)
    return {
        "observedGeneration": item["metadata"].get("generation"),
        "desiredNumberScheduled": wanted,
        "currentNumberScheduled": len(placed),
        "numberMisscheduled": sum(not node.should and name in first for name, node in nodes.items()),
        "numberReady": sum(state.is_ready(pod) for pod in placed),
        "updatedNumberScheduled": len(up_to_date) or None,
        "numberAvailable": available or None,
        "numberUnavailable": wanted - available or None,
    }


def make_pod(item: Object, node: str, name: str) -> Object:
    """Create the pod body for a node, with node affinity to it."""
    pod = pod_from(item["spec"]["template"], item, DAEMON_SETS, name)
    pod["metadata"]["labels"][LABEL] = template_hash(item["spec"]["template"])
    spec = spec_of(item)
    affinity = spec.get("affinity") or {}
    required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    here = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = [{**term, "matchFields": here} for term in required.get("nodeSelectorTerms") or [{}]]
    on_node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod["spec"] = {
        **spec,
        "affinity": {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **on_node}},
    }
    return pod


_OUTDATED = "its template is outdated"


def roll(item: Object, nodes: Mapping[str, NodeDaemonState], pods: Iterable[Object], now: int) -> DaemonSetPlan:
    """Return the next step of a rolling update; `pods` are those that `decide` keeps."""
    strategy = item["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate" or state.is_terminating(item):
        return DaemonSetPlan()
    active = [pod for pod in pods if state.is_active(pod)]
    wanted = [name for name, node in nodes.items() if node.should]
    surge = most_surge(item, nodes)
    if surge:
        return _surge(item, wanted, active, surge, now)
    missing = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    return _delete_first(item, wanted, active, scaled_count(missing, len(wanted), up=True), now)


def _delete_first(
    item: Object, wanted: Sequence[str], pods: Sequence[Object], most_missing: int, now: int
) -> DaemonSetPlan:
    """Delete outdated pods: unavailable ones at once, others up to maxUnavailable."""
    available = {node_of(pod) for pod in pods if is_available(item, pod, now)}
    room = most_missing - sum(name not in available for name in wanted)
    _, old = current_and_old(item, pods)
    useless = [pod for pod in old if not is_available(item, pod, now)]
    working = [pod for pod in old if is_available(item, pod, now)]
    return DaemonSetPlan(delete=[(pod, _OUTDATED) for pod in [*useless, *working[: max(0, room)]]])


def _surge(item: Object, wanted: Sequence[str], pods: Sequence[Object], surge: int, now: int) -> DaemonSetPlan:
    """Create updated pods beside outdated ones: at once for unavailable ones, else up to maxSurge.

    On a node that is no longer eligible the outdated pod is deleted once enough others are available.
    """
    new, old = (by_node(part) for part in current_and_old(item, pods))
    alone = {name: there[0] for name, there in old.items() if name not in new}
    useless = {name: pod for name, pod in alone.items() if not is_available(item, pod, now)}
    working = [name for name in wanted if name in alone and name not in useless]
    helpless = [name for name in wanted if name in useless]
    leaving = [name for name in alone if name not in wanted]
    available = {node_of(pod) for pod in pods if is_available(item, pod, now)}
    spare = [name for name in leaving if name not in useless][: max(0, len(available) - len(wanted))]
    gone = [name for name in leaving if name in useless]
    return DaemonSetPlan(
        create=helpless + working[: max(0, surge - sum(name in new for name in old))],
        delete=[(alone[name], _OUTDATED) for name in gone + spare],
    )


_EVERY_SET = Key("", "nodes")


def _to_every_set(key: Key, node: NodeRecord) -> tuple[Key, ...]:  # noqa: ARG001
    return (_EVERY_SET,)


class DaemonSets(Controller):
    """The DaemonSet controller; a change of a node enqueues one key for all DaemonSets."""

    name = "daemonset"
    watches = (
        Watch(owned(DAEMON_SETS)),
        Watch(ALL_PODS, to_controller("DaemonSet")),
        Watch(ALL_NODES, _to_every_set),
    )
    permissions = (
        Permission(DAEMON_SETS, ("get", "list", "watch")),
        Permission(DAEMON_SETS, ("patch",), "status"),
        Permission(PODS, ("get", "list", "watch", "create", "patch", "delete")),
        Permission(NODES, ("get", "list", "watch")),
    )

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Reconcile one DaemonSet, or all."""
        sets = self.context.store(self.watches[0].cached)
        later: list[int] = []
        failed: ApiError | None = None
        for item in sets.values() if key == _EVERY_SET else [sets.get(key)]:
            try:
                later += [] if item is None else await self._look_after(item, now)
            except ApiError as failure:
                # A failure of one DaemonSet must not stop the others.
                failed = failure
        if failed is not None:
            raise failed
        return Result(requeue_at=min(later)) if later else None

    async def _look_after(self, item: Object, now: int) -> list[int]:
        """Reconcile one DaemonSet; return when its pods become available."""
        nodes = node_states(item, self.context.store(ALL_NODES).values())
        pods = await claim(self.context, DAEMON_SETS, item, of=ALL_PODS, selector=item["spec"]["selector"])
        placing = decide(item, nodes, pods, now)
        await self._carry_out(item, placing)
        going = [key_of(pod) for pod, _ in placing.delete]
        await self._carry_out(item, roll(item, nodes, [pod for pod in pods if key_of(pod) not in going], now))
        status = status_of(item, nodes, pods, now)
        ready, wanted = status.get("numberReady") or 0, status.get("desiredNumberScheduled") or 0
        because = f"{wanted} nodes take a pod, and {ready} of the pods are ready"
        await write_status(self.context, DAEMON_SETS, item, status, because=because)
        return [at for pod in pods if (at := available_at(item, pod)) is not None and at > now]

    async def _carry_out(self, item: Object, plan: DaemonSetPlan) -> None:
        namespace = item["metadata"]["namespace"]
        for node in plan.create:
            name = next(free_names(item, lambda taken: pod_exists(self.context, namespace, taken), node))
            because = f"node {node} takes the pods of DaemonSet {item['metadata']['name']}"
            await create_once(self.context, PODS, make_pod(item, node, name), because=because)
        for pod, because in plan.delete:
            await delete_pod(self.context, pod, because=because)
