"""The scheduler: puts pending pods on nodes, one after the other, and says why where none takes them.

It has one key for everything: whatever changes, all pods are tried that have a chance, in the order of their priority.
"""

from __future__ import annotations

from springtide.apis.forecast import format_instant
from springtide.cluster.controller import Again, Controller, Permission, Watch
from springtide.cluster.errors import ClusterError, Conflict, Forbidden, Invalid, NotFound
from springtide.cluster.port import Patch
from springtide.cluster.resources import Key, Object, key_of
from springtide.cluster.tools import Tools
from springtide.simulator.behaviours.conditions import condition, with_conditions
from springtide.simulator.behaviours.demands import Demand, demand_of
from springtide.simulator.behaviours.judging import Judge
from springtide.simulator.behaviours.kinds import ALL_NODES, ALL_PODS, NODES, PODS
from springtide.simulator.behaviours.ledger import Ledger

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

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._ledger = Ledger()
        self._judge = Judge()
        tools.follow(ALL_NODES, self._ledger.node_changed)
        tools.follow(ALL_PODS, self._ledger.pod_changed)

    async def reconcile(self, key: Key, now: int) -> Again | None:  # noqa: ARG002
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
                    await self._place(pod, self.tools.clock.now())
                except NotFound:
                    self._ledger.forget(pod)
                except _ABOUT_THE_POD as failure:
                    failed = failure
        if failed is not None:
            raise failed

    async def _place(self, pod: Object, now: int) -> None:
        demand = demand_of(pod)
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
            await self.tools.client.bind(choice.node, of=pod, because=choice.because)
        except ClusterError:
            # It may have changed meanwhile, or be bound by us or others: we try again when the store shows what we did.
            self._ledger.reconsider(key_of(pod), self.tools.store(ALL_PODS).get(key_of(pod)))
            raise

    async def _refuse(self, pod: Object, demand: Demand, reason: str, message: str, now: int) -> None:
        chances = self._ledger.chances
        wanted = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        present = condition(pod, "PodScheduled") or {}
        if any(present.get(name) != value for name, value in wanted.items()):
            conditions = with_conditions((pod.get("status") or {}).get("conditions"), [wanted], format_instant(now))
            change = Patch.merge({"status": {"conditions": conditions}})
            await self.tools.client.patch(PODS, change, of=pod, because=message, subresource="status")
        self._ledger.park(pod, demand, chances=chances)
