"""The scheduler: binds pending pods to nodes in the order of their priority, and reports why a pod fits none.

Which nodes fit a pod, and which of them is best, is decided by the predicates and scores of the packer, which are those
of kube-scheduler. Of nodes with equal scores the first by name is taken, so that simulations repeat.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from springtide.apis.core.pod_record import pod_class_of
from springtide.apis.forecast import format_instant
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Permission, Result, SingletonController, Watch
from springtide.cluster.errors import ClusterError, Conflict, Forbidden, Invalid, NotFound
from springtide.cluster.events import EventRecorder, warning
from springtide.cluster.pods_and_nodes import ALL_NODES
from springtide.cluster.resources import NODES, PODS, Key, Object, Resource, key_of
from springtide.cluster.store import Delta
from springtide.cluster.transport import Patch
from springtide.packing.columns import ATTACHABLE, Amounts, Mask
from springtide.packing.columns import PODS as PODS_COLUMN
from springtide.packing.scoring import ScoreBoard
from springtide.packing.shapes import Shape
from springtide.simulator.behaviours.pod_status import condition, with_conditions
from springtide.simulator.behaviours.resources import (
    ALL_CLAIMS,
    ALL_CSI_NODES,
    ALL_NAMESPACES,
    ALL_PODS,
    ALL_STORAGE_CLASSES,
    ALL_VOLUMES,
    CLAIMS,
    CSI_NODES,
    NAMESPACES,
    STORAGE_CLASSES,
    VOLUMES,
    controller_of,
)
from springtide.simulator.behaviours.scheduler_cache import SchedulerCache

_UNSCHEDULABLE = "Unschedulable"


class NodeChoice(NamedTuple):
    """The chosen node and why, or why no node fits."""

    node: str | None
    because: str


def choose(cache: SchedulerCache, key: Key, nominated: str = "") -> NodeChoice:
    """Choose the node of a pending pod: the one it is nominated for, or the one with the best score."""
    shape, board = cache.shape_of(key), cache.board
    beside = cache.nominated_beside(key) if cache.nominations else []
    feasible = _leaving_room(board, shape, board.feasible(shape), beside)
    row = cache.row_of(nominated)
    if row is not None and feasible[row]:
        return NodeChoice(nominated, "the pod is nominated for this node")
    fit = int(np.count_nonzero(feasible))
    if not fit:
        return NodeChoice(None, unschedulable_message(board, shape, beside))
    best = board.best(shape) if not beside else _best(board.scores(shape, feasible))
    because = f"{fit} of {board.nodes.count} nodes fit, and this one has the highest score"
    return NodeChoice(cache.name_of(int(best[0])), because)


def _best(scores: Amounts) -> Amounts:
    return np.flatnonzero(scores == scores.max())


def _leaving_room(board: ScoreBoard, shape: Shape, feasible: Mask, beside: list[tuple[int, Shape]]) -> Mask:
    """Return the feasible nodes that stay so with the pods that are nominated for each."""
    if not beside:
        return feasible
    if not shape.is_constrained:
        free = _free_beside(board, beside)
        for column, need in zip(shape.columns.tolist(), shape.needs.tolist(), strict=True):
            feasible &= free[column] >= need
        return feasible
    for row, others in _by_row(beside):
        if feasible[row]:
            _add(board, others, row, 1)
            feasible[row] = board.feasible(shape)[row]
            _add(board, others, row, -1)
    return feasible


def _free_beside(board: ScoreBoard, beside: list[tuple[int, Shape]]) -> Amounts:
    free = board.free.copy()
    for row, other in beside:
        free[other.columns, row] -= other.needs
    return free


def _by_row(beside: Iterable[tuple[int, Shape]]) -> list[tuple[int, list[Shape]]]:
    grouped: dict[int, list[Shape]] = {}
    for row, other in beside:
        grouped.setdefault(row, []).append(other)
    return list(grouped.items())


def _add(board: ScoreBoard, shapes: list[Shape], row: int, pods: int) -> None:
    for shape in shapes:
        board.add(shape, row, pods)


def unschedulable_message(board: ScoreBoard, shape: Shape, beside: list[tuple[int, Shape]]) -> str:
    """Return the message of an unschedulable pod, as kube-scheduler writes it: the number of nodes for each reason.

    A node that fails several predicates reports the first, in the order of kube-scheduler, but all resources that it
    has too little of.
    """
    nodes = board.nodes.count
    if not nodes:
        return "no nodes available to schedule pods"
    if shape.blocked:
        return f"0/{nodes} nodes are available: {shape.because}."
    free = _free_beside(board, beside) if beside else board.free
    counts = {text: int(np.count_nonzero(mask)) for text, mask in _refusals(board, shape, free).items()}
    if beside and shape.is_constrained:
        feasible = board.feasible(shape)
        for row, others in _by_row(beside):
            if feasible[row]:
                _add(board, others, row, 1)
                for text, mask in _refusals(board, shape, board.free).items():
                    # What the resources leave no room for is counted already.
                    if "Insufficient" not in text and text != _TOO_MANY:
                        counts[text] = counts.get(text, 0) + int(mask[row])
                _add(board, others, row, -1)
    listed = sorted(f"{count} {text}" for text, count in counts.items() if count)
    return f"0/{nodes} nodes are available: {', '.join(listed)}."


_TOO_MANY = "Too many pods"
_VOLUME_REFUSALS = {
    "VolumeBinding": "node(s) didn't match PersistentVolume's node affinity",
    "VolumeZone": "node(s) had no available volume zone",
}
_SPREAD = "node(s) didn't match pod topology spread constraints"


def _refusals(board: ScoreBoard, shape: Shape, free: Amounts) -> dict[str, Mask]:
    """Return the nodes for each reason; of several predicates only the first one refuses a node."""
    left = np.ones(board.nodes.count, np.bool_)
    found: dict[str, Mask] = {}
    for together in _checks(board, shape, free):
        refused = np.zeros_like(left)
        for text, mask in together:
            found[text] = found.get(text, False) | (mask & left)
            refused |= mask
        left &= ~refused
    return found


def _checks(board: ScoreBoard, shape: Shape, free: Amounts) -> Iterator[list[tuple[str, Mask]]]:
    """Yield reasons with the nodes that they refuse, in the order of kube-scheduler; those of a predicate together."""
    nodes, counters, rule = board.nodes, board.counters, shape.rule
    definitions = counters.definitions
    yield [("node(s) were unschedulable", ~nodes.derived(("cordon", rule.number), rule.cordon_mask))]
    yield [("node(s) had untolerated taint(s)", ~nodes.derived(("taints", rule.number), rule.taint_mask))]
    yield [
        (
            "node(s) didn't match Pod's node affinity/selector",
            ~nodes.derived(("affinity", rule.number), rule.affinity_mask),
        )
    ]
    taken = {number: counters.counts(number, nodes)[counters.domains_of(number, nodes)] > 0 for number in shape.refused}
    for number, mask in taken.items():
        if definitions.keys[number].kind == "ports":
            yield [("node(s) didn't have free ports for the requested pod ports", mask)]
    short: list[tuple[str, Mask]] = []
    full: list[tuple[str, Mask]] = []
    for column, need in zip(shape.columns.tolist(), shape.needs.tolist(), strict=True):
        name = board.resources[column]
        if name.startswith(ATTACHABLE):
            full.append(("node(s) exceed max volume count", free[column] < need))
        else:
            short.append((_TOO_MANY if column == PODS_COLUMN else f"Insufficient {name}", free[column] < need))
    yield short
    for number, mask in taken.items():
        if definitions.keys[number].kind == "disks":
            yield [("node(s) had no available disk", mask)]
    yield full
    yield [("node(s) exceed max volume count", ~board.attachable(shape))]
    for predicate, text in _VOLUME_REFUSALS.items() if rule.volumes else ():
        reached = nodes.derived((predicate, rule.number), partial(rule.volume_mask, predicate=predicate))
        yield [(text, ~reached)]
    for each in shape.constraints.spreads:
        yield [(f"{_SPREAD} (missing required label)", nodes.codes(each.counter.topology) < 0)]
    states = {number: counters.spread(each, nodes) for number, each in enumerate(shape.constraints.spreads)}
    spread = counters.spread_mask(shape, nodes, states)
    if spread is not None:
        yield [(_SPREAD, ~spread)]
    near = counters.affinity_mask(shape, nodes)
    if near is not None:
        yield [("node(s) didn't match pod affinity rules", ~near)]
    for kind, text in (
        ("matching", "node(s) didn't match pod anti-affinity rules"),
        ("holders", "node(s) didn't satisfy existing pods anti-affinity rules"),
    ):
        for number, mask in taken.items():
            if definitions.keys[number].kind == kind:
                yield [(text, mask)]


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
    watches = (
        Watch(ALL_PODS),
        Watch(ALL_NODES),
        Watch(ALL_NAMESPACES),
        Watch(ALL_CLAIMS),
        Watch(ALL_VOLUMES),
        Watch(ALL_STORAGE_CLASSES),
        Watch(ALL_CSI_NODES),
    )
    permissions = (
        Permission(PODS, ("get", "list", "watch")),
        Permission(PODS, ("create",), "binding"),
        Permission(PODS, ("patch",), "status"),
        *(
            Permission(resource, ("get", "list", "watch"))
            for resource in (NODES, NAMESPACES, CLAIMS, VOLUMES, STORAGE_CLASSES, CSI_NODES)
        ),
    )

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._cache = SchedulerCache()
        self._events = SchedulingEvents(context.events)
        context.follow(ALL_NAMESPACES, self._cache.namespace_changed)
        context.follow(ALL_STORAGE_CLASSES, self._cache.storage_class_changed)
        context.follow(ALL_VOLUMES, self._cache.volume_changed)
        context.follow(ALL_CLAIMS, self._cache.claim_changed)
        context.follow(ALL_CSI_NODES, self._cache.csi_node_changed)
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
        if pod_class_of(pod["spec"]).scheduling_gates:
            message = "Scheduling is blocked due to non-empty scheduling gates"
            await self._refuse(pod, "SchedulingGated", message, now)
            return
        choice = choose(self._cache, key_of(pod), str((pod.get("status") or {}).get("nominatedNodeName") or ""))
        if choice.node is None:
            await self._refuse(pod, _UNSCHEDULABLE, choice.because, now)
            return
        self._cache.assume(pod, choice.node)
        try:
            await self.context.client.bind(choice.node, of=pod, because=choice.because)
        except ClusterError:
            # The pod may have changed, or be bound: retried when the informer cache shows our write.
            self._cache.sync(key_of(pod), self.context.store(ALL_PODS).get(key_of(pod)))
            raise

    async def _refuse(self, pod: Object, reason: str, message: str, now: int) -> None:
        move_cycle = self._cache.move_cycle
        wanted = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        present = condition(pod, "PodScheduled") or {}
        status = pod.get("status") or {}
        change: Object = {}
        if any(present.get(name) != value for name, value in wanted.items()):
            change["conditions"] = with_conditions(status.get("conditions"), [wanted], format_instant(now))
        if reason == _UNSCHEDULABLE and status.get("nominatedNodeName"):
            # The node that it was nominated for does not take it, nor does any other.
            change["nominatedNodeName"] = None
        if change:
            patch = Patch.merge({"status": change})
            await self.context.client.patch(PODS, patch, of=pod, because=message, subresource="status")
            if reason == _UNSCHEDULABLE and "conditions" in change:
                self._events.unschedulable(pod, message)
        self._cache.mark_unschedulable(pod, move_cycle=move_cycle)
