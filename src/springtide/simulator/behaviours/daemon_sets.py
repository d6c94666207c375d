"""DaemonSets: one pod on every node that takes it."""

from __future__ import annotations

from springtide.cluster.controller import Again, Controller, Permission, Watch
from springtide.cluster.errors import ApiError
from springtide.cluster.resources import Key, Object, key_of
from springtide.simulator.behaviours.daemon_rollout import roll
from springtide.simulator.behaviours.daemons import Plan, available_at, decide, make_pod, standings, status_of
from springtide.simulator.behaviours.kinds import ALL_NODES, ALL_PODS, DAEMON_SETS, NODES, PODS, owned, to_controller
from springtide.simulator.behaviours.naming import free_names
from springtide.simulator.behaviours.owning import claim, create_once, delete_pod, pod_exists, write_status

_EVERYTHING = Key("", "nodes")


def _to_everything(key: Key, item: Object) -> tuple[Key, ...]:  # noqa: ARG001
    return (_EVERYTHING,)


class DaemonSets(Controller):
    """The DaemonSet controller; a node concerns all DaemonSets, which then have one key together."""

    name = "daemonset"
    watches = (
        Watch(owned(DAEMON_SETS)),
        Watch(ALL_PODS, to_controller("DaemonSet")),
        Watch(ALL_NODES, _to_everything),
    )
    permissions = (
        Permission(DAEMON_SETS, ("get", "list", "watch")),
        Permission(DAEMON_SETS, ("patch",), "status"),
        Permission(PODS, ("get", "list", "watch", "create", "patch", "delete")),
        Permission(NODES, ("get", "list", "watch")),
    )

    async def reconcile(self, key: Key, now: int) -> Again | None:
        """Give every node the pod of a DaemonSet, or of all of them."""
        sets = self.tools.store(self.watches[0].cached)
        later: list[int] = []
        failed: ApiError | None = None
        for item in sets.values() if key == _EVERYTHING else [sets.get(key)]:
            try:
                later += [] if item is None else await self._look_after(item, now)
            except ApiError as failure:
                # What one of them may not do must not stop the others.
                failed = failure
        if failed is not None:
            raise failed
        return Again(at=min(later)) if later else None

    async def _look_after(self, item: Object, now: int) -> list[int]:
        """Place, replace and count the pods of one DaemonSet; tell when pods of it will count as available."""
        nodes = standings(item, self.tools.store(ALL_NODES).values())
        pods = await claim(self.tools, DAEMON_SETS, item, of=ALL_PODS, selector=item["spec"]["selector"])
        placing = decide(item, nodes, pods, now)
        await self._carry_out(item, placing)
        going = [key_of(pod) for pod, _ in placing.delete]
        await self._carry_out(item, roll(item, nodes, [pod for pod in pods if key_of(pod) not in going], now))
        status = status_of(item, nodes, pods, now)
        ready, wanted = status.get("numberReady") or 0, status.get("desiredNumberScheduled") or 0
        because = f"{wanted} nodes take a pod, and {ready} of the pods are ready"
        await write_status(self.tools, DAEMON_SETS, item, status, because=because)
        return [at for pod in pods if (at := available_at(item, pod)) is not None and at > now]

    async def _carry_out(self, item: Object, plan: Plan) -> None:
        namespace = item["metadata"]["namespace"]
        for node in plan.create:
            name = next(free_names(item, lambda taken: pod_exists(self.tools, namespace, taken), node))
            because = f"node {node} takes the pods of DaemonSet {item['metadata']['name']}"
            await create_once(self.tools, PODS, make_pod(item, node, name), because=because)
        for pod, because in plan.delete:
            await delete_pod(self.tools, pod, because=because)
