"""The scheduler: puts pending pods on nodes, one after the other, and says why where none takes them.

It has one key for everything: whatever changes, all pods are tried that have a chance, in the order of their priority.
"""

from __future__ import annotations

from springtide.apis.forecast import format_instant
from springtide.cluster.controller import Again, Controller, Permission, Watch
from springtide.cluster.errors import ClusterError, Conflict, NotFound
from springtide.cluster.port import Patch
from springtide.cluster.resources import Key, Object, key_of
from springtide.cluster.tools import Tools
from springtide.simulator.behaviours import predicates
from springtide.simulator.behaviours.conditions import condition, with_conditions
from springtide.simulator.behaviours.kinds import ALL_NODES, ALL_PODS, NODES, PODS
from springtide.simulator.behaviours.ledger import Ledger, needs_of
from springtide.simulator.behaviours.predicates import Room

_EVERYTHING = Key("", "scheduling")


def _to_everything(key: Key, item: Object) -> tuple[Key, ...]:  # noqa: ARG001
    return (_EVERYTHING,)


def choose(pod: Object, rooms: list[Room]) -> tuple[str | None, str]:
    """Choose a node: the best score wins, then the first name. Without one, tell why none is fit."""
    needs = needs_of(pod)
    best: tuple[tuple[int, int], str] | None = None
    refused = []
    for room in rooms:
        reasons = predicates.refusals(pod, needs, room)
        if reasons:
            refused.append(reasons)
            continue
        score = predicates.score(pod, needs, room)
        if best is None or score > best[0]:
            best = (score, room.node["metadata"]["name"])
    if best is not None:
        return best[1], f"{len(rooms) - len(refused)} of {len(rooms)} nodes are fit, and this one has most to spare"
    return None, predicates.told(len(rooms), refused)


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
        tools.follow(ALL_NODES, self._ledger.node_changed)
        tools.follow(ALL_PODS, self._ledger.pod_changed)

    async def reconcile(self, key: Key, now: int) -> Again | None:  # noqa: ARG002
        """Try every pod that has a chance."""
        while self._ledger.waiting:
            for pod in self._ledger.queue():
                # The pod may have changed, or gone, while others were placed.
                if self._ledger.waiting.get(key_of(pod)) is pod:
                    await self._place(pod, self.tools.clock.now())
        return None

    async def _place(self, pod: Object, now: int) -> None:
        if pod["spec"].get("schedulingGates"):
            message = "Scheduling is blocked due to non-empty scheduling gates"
            await self._refuse(pod, "SchedulingGated", message, now)
            return
        self._ledger.leave(key_of(pod))
        node, because = choose(pod, self._ledger.rooms())
        if node is None:
            await self._refuse(pod, "Unschedulable", because, now)
            return
        self._ledger.take(pod, node)
        try:
            await self.tools.client.bind(node, of=pod, because=because)
        except (Conflict, NotFound):
            # It was bound, changed or deleted meanwhile: what has become of it tells the store.
            self._ledger.leave(key_of(pod))
        except ClusterError as failure:
            if not failure.uncertain:
                self._ledger.leave(key_of(pod))
            self._ledger.waiting.setdefault(key_of(pod), pod)
            raise

    async def _refuse(self, pod: Object, reason: str, message: str, now: int) -> None:
        chances = self._ledger.chances
        wanted = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        present = condition(pod, "PodScheduled") or {}
        if any(present.get(name) != value for name, value in wanted.items()):
            conditions = with_conditions((pod.get("status") or {}).get("conditions"), [wanted], format_instant(now))
            change = Patch.merge({"status": {"conditions": conditions}})
            try:
                await self.tools.client.patch(PODS, change, of=pod, because=message, subresource="status")
            except (Conflict, NotFound):
                # The pod is another one by now, and comes again as that.
                self._ledger.waiting.pop(key_of(pod), None)
                return
        self._ledger.park(pod, chances=chances)
