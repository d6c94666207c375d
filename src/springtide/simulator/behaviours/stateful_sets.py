"""StatefulSets: pods with ordinals, each with its own name, made and replaced in order."""

from __future__ import annotations

from springtide.cluster.controller import Again, Controller, Permission, Watch
from springtide.cluster.resources import Key, Object
from springtide.simulator.behaviours import pods as state
from springtide.simulator.behaviours import revisions
from springtide.simulator.behaviours.kinds import (
    ALL_PODS,
    CONTROLLER_REVISIONS,
    PODS,
    STATEFUL_SETS,
    owned,
    to_controller,
)
from springtide.simulator.behaviours.ordinals import decide, make_pod, shape_of
from springtide.simulator.behaviours.owning import children_of, claim, create_once, delete_pod, write_status
from springtide.simulator.behaviours.revisions import Revision


class StatefulSets(Controller):
    """The StatefulSet controller."""

    name = "statefulset"
    watches = (
        Watch(owned(STATEFUL_SETS)),
        Watch(ALL_PODS, to_controller("StatefulSet")),
        Watch(owned(CONTROLLER_REVISIONS), to_controller("StatefulSet")),
    )
    permissions = (
        Permission(STATEFUL_SETS, ("get", "list", "watch")),
        Permission(STATEFUL_SETS, ("patch",), "status"),
        Permission(PODS, ("get", "list", "watch", "create", "patch", "delete")),
        Permission(CONTROLLER_REVISIONS, ("get", "list", "watch", "create", "delete")),
    )
    workers = 4

    async def reconcile(self, key: Key, now: int) -> Again | None:
        """Take one step, and tell the count."""
        item = self.tools.store(self.watches[0].cached).get(key)
        if item is None:
            return None
        update = revisions.newest(item)
        current = await self._current(item, key, update)
        pods = await claim(self.tools, STATEFUL_SETS, item, of=ALL_PODS, selector=item["spec"]["selector"])
        plan = decide(item, pods, current.name, update.name, now)
        shape = shape_of(item)
        for ordinal in plan.create:
            held_back = shape.rolling and ordinal - shape.start < shape.partition
            pod = make_pod(item, ordinal, current if held_back else update)
            await create_once(self.tools, PODS, pod, because=f"StatefulSet {key.name} wants {shape.replicas} replicas")
        for pod in plan.delete:
            await delete_pod(self.tools, pod, because=plan.because)
        made, ready = plan.status.get("replicas") or 0, plan.status.get("readyReplicas") or 0
        because = f"{made} of {shape.replicas} pods exist, {ready} are ready"
        await write_status(self.tools, STATEFUL_SETS, item, plan.status, because=because)
        return plan.again

    async def _current(self, item: Object, key: Key, update: Revision) -> Revision:
        """Keep the newest template, forget the oldest ones, and find the one that a rollout comes from."""
        existing = [
            one
            for one in children_of(self.tools, owned(CONTROLLER_REVISIONS), STATEFUL_SETS.kind, key)
            if one["metadata"]["ownerReferences"][0]["uid"] == item["metadata"]["uid"]
        ]
        by_name = {one["metadata"]["name"]: one for one in existing}
        if update.name not in by_name and not state.is_terminating(item):
            body = revisions.as_object(item, STATEFUL_SETS, update, existing)
            await create_once(self.tools, CONTROLLER_REVISIONS, body, because="the template is new")
        current = (item.get("status") or {}).get("currentRevision") or update.name
        limit = int(item["spec"].get("revisionHistoryLimit", 10))
        for one in revisions.outlived(existing, (current, update.name), limit):
            await self.tools.client.delete(CONTROLLER_REVISIONS, of=one, because=f"{limit} old revisions are kept")
        return revisions.kept(by_name[current]) if current in by_name else update
