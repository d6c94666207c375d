"""Which node a pod goes to.

What was thought of a node is remembered for as long as the node stays as it is: a thousand pods of one template are
judged on every node once, and then only on those that have got something since.

The scheduler: puts pending pods on nodes, one after the other, and says why where none takes them.

It has one key for everything: whatever changes, all pods are tried that have a chance, in the order of their priority.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from springtide.apis.forecast import format_instant
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.errors import ClusterError, Conflict, Forbidden, Invalid, NotFound
from springtide.cluster.resources import Key, Object, key_of
from springtide.cluster.transport import Patch
from springtide.simulator.behaviours import predicates
from springtide.simulator.behaviours.pod_status import condition, with_conditions
from springtide.simulator.behaviours.predicates import NodeInfo, PodClass, Score, pod_class_of
from springtide.simulator.behaviours.resources import ALL_NODES, ALL_PODS, NODES, PODS
from springtide.simulator.behaviours.scheduler_cache import SchedulerCache

_MOST_REMEMBERED = 64
"""How many demands; a template has hundreds of pods, or its pods come once each and are not worth it."""


class NodeChoice(NamedTuple):
    """Where a pod goes, and why; or why nowhere."""

    node: str | None
    because: str


@dataclass(frozen=True, slots=True)
class _ClassResult:
    room: NodeInfo
    """The node as it was judged; rooms are made anew when anything changes."""
    refusals: tuple[str, ...]
    score: Score


class NodeScorer:
    """Chooses among nodes, and remembers what it thought of them."""

    def __init__(self) -> None:
        self._verdicts: dict[PodClass, list[_ClassResult]] = {}

    def choose(self, demand: PodClass, rooms: Sequence[NodeInfo]) -> NodeChoice:
        """Choose a node: the best score wins, then the first in order. Without one, tell why none is fit."""
        verdicts = self._judged(demand, rooms)
        fit = [verdict for verdict in verdicts if not verdict.refusals]
        if not fit:
            return NodeChoice(
                None, predicates.unschedulable_message(len(rooms), [verdict.refusals for verdict in verdicts])
            )
        best = max(fit, key=lambda verdict: verdict.score)
        because = f"{len(fit)} of {len(rooms)} nodes are fit, and this one has most to spare"
        return NodeChoice(best.room.node["metadata"]["name"], because)

    def _judged(self, demand: PodClass, rooms: Sequence[NodeInfo]) -> list[_ClassResult]:
        before = self._verdicts.pop(demand, [])
        if len(before) == len(rooms):
            judged = [
                verdict if verdict.room is room else _evaluate(demand, room)
                for verdict, room in zip(before, rooms, strict=True)
            ]
        else:
            judged = [_evaluate(demand, room) for room in rooms]
        # The demand that was not asked about for the longest time stands first, and goes first.
        self._verdicts[demand] = judged
        if len(self._verdicts) > _MOST_REMEMBERED:
            del self._verdicts[next(iter(self._verdicts))]
        return judged


def _evaluate(demand: PodClass, room: NodeInfo) -> _ClassResult:
    refusals = predicates.refusals(demand, room)
    return _ClassResult(room, refusals, (0, 0) if refusals else predicates.score(demand, room))


_EVERYTHING = Key("", "scheduling")


def _to_everything(key: Key, item: Object) -> tuple[Key, ...]:  # noqa: ARG001
    return (_EVERYTHING,)


_ABOUT_THE_POD = (Conflict, Forbidden, Invalid)
"""What is wrong with one pod, and no reason to let others wait."""


class Scheduler(Controller):
    """The scheduler of the pods that ask for no other."""

    name = "scheduler"
    watches = (Watch(ALL_PODS, _to_everything), Watch(ALL_NODES, _to_everything))
    permissions = (
        Permission(PODS, ("get", "list", "watch")),
        Permission(PODS, ("create",), "binding"),
        Permission(PODS, ("patch",), "status"),
        Permission(NODES, ("get", "list", "watch")),
    )

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._ledger = SchedulerCache()
        self._judge = NodeScorer()
        context.follow(ALL_NODES, self._ledger.node_changed)
        context.follow(ALL_PODS, self._ledger.pod_changed)

    async def reconcile(self, key: Key, now: int) -> Result | None:  # noqa: ARG002
        """Try every pod that has a chance."""
        while self._ledger.waiting:
            await self._try_all()
        return None

    async def _try_all(self) -> None:
        """Try every pod once; raise, at the end, if one must be tried again although nothing may happen any more."""
        failed: ClusterError | None = None
        for pod in self._ledger.queue():
            # The pod may have changed, or gone, while others were placed.
            if self._ledger.waiting.get(key_of(pod)) is pod:
                try:
                    await self._place(pod, self.context.clock.now())
                except NotFound:
                    self._ledger.forget(pod)
                except _ABOUT_THE_POD as failure:
                    failed = failure
        if failed is not None:
            raise failed

    async def _place(self, pod: Object, now: int) -> None:
        demand = pod_class_of(pod)
        if pod["spec"].get("schedulingGates"):
            message = "Scheduling is blocked due to non-empty scheduling gates"
            await self._refuse(pod, demand, "SchedulingGated", message, now)
            return
        choice = self._judge.choose(demand, self._ledger.rooms())
        if choice.node is None:
            await self._refuse(pod, demand, "Unschedulable", choice.because, now)
            return
        self._ledger.take(pod, choice.node)
        try:
            await self.context.client.bind(choice.node, of=pod, because=choice.because)
        except ClusterError:
            # It may have changed meanwhile, or be bound by us or others: we try again when the store shows what we did.
            self._ledger.reconsider(key_of(pod), self.context.store(ALL_PODS).get(key_of(pod)))
            raise

    async def _refuse(self, pod: Object, demand: PodClass, reason: str, message: str, now: int) -> None:
        chances = self._ledger.chances
        wanted = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        present = condition(pod, "PodScheduled") or {}
        if any(present.get(name) != value for name, value in wanted.items()):
            conditions = with_conditions((pod.get("status") or {}).get("conditions"), [wanted], format_instant(now))
            change = Patch.merge({"status": {"conditions": conditions}})
            await self.context.client.patch(PODS, change, of=pod, because=message, subresource="status")
        self._ledger.park(pod, demand, chances=chances)
