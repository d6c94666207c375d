"""DaemonSets: one pod on every node that takes it."""

from __future__ import annotations

from collections.abc import Sequence

from springtide.cluster.controller import Again, Controller, Permission, Watch
from springtide.cluster.resources import Key, Object
from springtide.simulator.behaviours.daemons import available_at, decide, make_pod, outdated, status_of
from springtide.simulator.behaviours.kinds import ALL_NODES, ALL_PODS, DAEMON_SETS, NODES, PODS, owned, to_controller
from springtide.simulator.behaviours.naming import free_names
from springtide.simulator.behaviours.owning import claim, create_once, delete_pod, pod_exists, write_status


class DaemonSets(Controller):
    """The DaemonSet controller; a key without a namespace is that of a node, which concerns all DaemonSets."""

    name = "daemonset"
    watches = (Watch(owned(DAEMON_SETS)), Watch(ALL_PODS, to_controller("DaemonSet")), Watch(ALL_NODES))
    permissions = (
        Permission(DAEMON_SETS, ("get", "list", "watch")),
        Permission(DAEMON_SETS, ("patch",), "status"),
        Permission(PODS, ("get", "list", "watch", "create", "patch", "delete")),
        Permission(NODES, ("get", "list", "watch")),
    )

    async def reconcile(self, key: Key, now: int) -> Again | None:
        """Give every node its pod, or one node the pods of all DaemonSets."""
        sets = self.tools.store(self.watches[0].cached)
        if not key.namespace:
            node = self.tools.store(ALL_NODES).get(key)
            if node is not None:
                for item in sets.values():
                    await self._place(item, [node])
            return None
        item = sets.get(key)
        if item is None:
            return None
        nodes = self.tools.store(ALL_NODES).values()
        pods = await self._place(item, nodes)
        for pod in outdated(item, nodes, pods, now):
            await delete_pod(self.tools, pod, because="its template is outdated")
        status = status_of(item, nodes, pods, now)
        await write_status(self.tools, DAEMON_SETS, item, status, because="nodes or pods have changed")
        later = [at for pod in pods if (at := available_at(item, pod)) is not None and at > now]
        return Again(at=min(later)) if later else None

    async def _place(self, item: Object, nodes: Sequence[Object]) -> list[Object]:
        pods = await claim(self.tools, DAEMON_SETS, item, of=ALL_PODS, selector=item["spec"]["selector"])
        plan = decide(item, nodes, pods)
        namespace = item["metadata"]["namespace"]
        for node in plan.create:
            name = next(free_names(item, lambda taken: pod_exists(self.tools, namespace, taken), node))
            because = f"node {node} takes the pods of DaemonSet {item['metadata']['name']}"
            await create_once(self.tools, PODS, make_pod(item, node, name), because=because)
        for pod, because in plan.delete:
            await delete_pod(self.tools, pod, because=because)
        return pods
