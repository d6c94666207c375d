"""The scheduler: binds pending pods to nodes in the order of their priority, and reports why a pod fits none.

Evaluations are cached by pod class and node: the pods of one template are evaluated once for each node, and again only
for nodes that have changed since.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from springtide.apis.core.pod_record import PodSchedulingClass, pod_class_of
from springtide.apis.forecast import format_instant
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Permission, Result, SingletonController, Watch
from springtide.cluster.errors import ClusterError, Conflict, Forbidden, Invalid, NotFound
from springtide.cluster.events import EventRecorder, warning
from springtide.cluster.pods_and_nodes import ALL_NODES
from springtide.cluster.resources import NODES, PODS, Key, Object, Resource, key_of
from springtide.cluster.store import Delta
from springtide.cluster.transport import Patch
from springtide.simulator.behaviours import predicates
from springtide.simulator.behaviours.pod_status import condition, with_conditions
from springtide.simulator.behaviours.predicates import NodeInfo, Score
from springtide.simulator.behaviours.resources import ALL_PODS, controller_of
from springtide.simulator.behaviours.scheduler_cache import SchedulerCache

_UNSCHEDULABLE = "Unschedulable"
_MAX_CLASSES = 64
"""How many pod classes are cached: the pods of a large template come together."""


class NodeChoice(NamedTuple):
    """The chosen node and why, or why no node fits."""

    node: str | None
    because: str


@dataclass(frozen=True, slots=True)
class _ClassResult:
    info: NodeInfo
    """The evaluated node; a NodeInfo is replaced when anything changes."""
    refusals: tuple[str, ...]
    score: Score


class NodeScorer:
    """Chooses the node of a pod, and caches evaluations by pod class."""

    def __init__(self) -> None:
        self._results: dict[PodSchedulingClass, list[_ClassResult]] = {}

    def choose(self, pod_class: PodSchedulingClass, nodes: Sequence[NodeInfo]) -> NodeChoice:
        """Choose the node with the best score, the first of equals; or return why no node fits."""
        results = self._evaluated(pod_class, nodes)
        fit = [result for result in results if not result.refusals]
        if not fit:
            return NodeChoice(
                None, predicates.unschedulable_message(len(nodes), [result.refusals for result in results])
            )
        best = max(fit, key=lambda result: result.score)
        because = f"{len(fit)} of {len(nodes)} nodes fit, and this one has the most free resources"
        return NodeChoice(best.info.node.name, because)

    def _evaluated(self, pod_class: PodSchedulingClass, nodes: Sequence[NodeInfo]) -> list[_ClassResult]:
        before = self._results.pop(pod_class, [])
        if len(before) == len(nodes):
            results = [
                result if result.info is info else _evaluate(pod_class, info)
                for result, info in zip(before, nodes, strict=True)
            ]
        else:
            results = [_evaluate(pod_class, info) for info in nodes]
        # The least recently used class is first, and is evicted first.
        self._results[pod_class] = results
        if len(self._results) > _MAX_CLASSES:
            del self._results[next(iter(self._results))]
        return results


def _evaluate(pod_class: PodSchedulingClass, info: NodeInfo) -> _ClassResult:
    refusals = predicates.refusals(pod_class, info)
    return _ClassResult(info, refusals, (0, 0) if refusals else predicates.score(pod_class, info))


_PODS_WITH_EVENTS = 10
"""How many unschedulable pods of one owner have events of their own."""


@dataclass(slots=True)
class SchedulingEvents:
    """Records FailedScheduling events, so that many pods of one owner do not flood the cluster with equal ones."""

    events: EventRecorder
    _told: dict[str, dict[Key, None]] = field(default_factory=dict)
    """The pods with events of their own, by the uid of their owner."""
    _owners: dict[Key, str] = field(default_factory=dict)

    def unschedulable(self, pod: Object, message: str) -> None:
        """Record that a pod fits no node; events that differ only in numbers are counted as one."""
        same = re.sub(r"\d+", "", message)
        owner = controller_of(pod)
        if owner is None:
            self.events.record(PODS, pod, warning("FailedScheduling", message, same=same))
            return
        key, told = key_of(pod), self._told.setdefault(owner["uid"], {})
        if key in told or len(told) < _PODS_WITH_EVENTS:
            told[key] = None
            self._owners[key] = owner["uid"]
            self.events.record(PODS, pod, warning("FailedScheduling", message, same=same))
            return
        group, _, version = str(owner["apiVersion"]).rpartition("/")
        resource = Resource(group, version, f"{owner['kind']}s".lower(), owner["kind"])
        named = {"name": owner["name"], "namespace": key.namespace, "uid": owner["uid"]}
        more = f"more than {_PODS_WITH_EVENTS} pods cannot be scheduled, the others have no event: {message}"
        self.events.record(resource, {"metadata": named}, warning("FailedScheduling", more, same=same))

    def forget(self, key: Key) -> None:
        """Drop a pod that is scheduled or gone."""
        owner = self._owners.pop(key, None)
        if owner is not None:
            del self._told[owner][key]
            if not self._told[owner]:
                del self._told[owner]


_POD_ERRORS = (Conflict, Forbidden, Invalid)
"""Errors about one pod, which do not stop the others."""


class Scheduler(SingletonController):
    """The default scheduler."""

    name = "scheduler"
    watches = (Watch(ALL_PODS), Watch(ALL_NODES))
    permissions = (
        Permission(PODS, ("get", "list", "watch")),
        Permission(PODS, ("create",), "binding"),
        Permission(PODS, ("patch",), "status"),
        Permission(NODES, ("get", "list", "watch")),
    )

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._cache = SchedulerCache()
        self._scorer = NodeScorer()
        self._events = SchedulingEvents(context.events)
        context.follow(ALL_NODES, self._cache.node_changed)
        context.follow(ALL_PODS, self._pod_changed)

    def _pod_changed(self, delta: Delta[Object]) -> None:
        self._cache.pod_changed(delta)
        if delta.new is None or delta.new["spec"].get("nodeName"):
            self._events.forget(delta.key)

    async def reconcile_cluster(self, now: int) -> Result | None:  # noqa: ARG002
        """Schedule all pending pods."""
        while self._cache.pending:
            await self._try_all()
        return None

    async def _try_all(self) -> None:
        """Try each pending pod once; raise at the end if one must be retried."""
        failed: ClusterError | None = None
        for pod in self._cache.queue():
            # The pod may have changed or been deleted while others were placed.
            if self._cache.pending.get(key_of(pod)) is pod:
                try:
                    await self._place(pod, self.context.clock.now())
                except NotFound:
                    self._cache.drop(pod)
                except _POD_ERRORS as failure:
                    failed = failure
        if failed is not None:
            raise failed

    async def _place(self, pod: Object, now: int) -> None:
        pod_class = pod_class_of(pod["spec"])
        if pod_class.scheduling_gates:
            message = "Scheduling is blocked due to non-empty scheduling gates"
            await self._refuse(pod, pod_class, "SchedulingGated", message, now)
            return
        choice = self._scorer.choose(pod_class, self._cache.node_infos())
        if choice.node is None:
            await self._refuse(pod, pod_class, _UNSCHEDULABLE, choice.because, now)
            return
        self._cache.assume(pod, choice.node)
        try:
            await self.context.client.bind(choice.node, of=pod, because=choice.because)
        except ClusterError:
            # The pod may have changed, or be bound: retried when the informer cache shows our write.
            self._cache.sync(key_of(pod), self.context.store(ALL_PODS).get(key_of(pod)))
            raise

    async def _refuse(self, pod: Object, pod_class: PodSchedulingClass, reason: str, message: str, now: int) -> None:
        move_cycle = self._cache.move_cycle
        wanted = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        present = condition(pod, "PodScheduled") or {}
        if any(present.get(name) != value for name, value in wanted.items()):
            conditions = with_conditions((pod.get("status") or {}).get("conditions"), [wanted], format_instant(now))
            change = Patch.merge({"status": {"conditions": conditions}})
            await self.context.client.patch(PODS, change, of=pod, because=message, subresource="status")
            if reason == _UNSCHEDULABLE:
                self._events.unschedulable(pod, message)
        self._cache.mark_unschedulable(pod, pod_class, move_cycle=move_cycle)
