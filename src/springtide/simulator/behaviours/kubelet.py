"""Kubelets: each node tells of itself and runs its pods, by the stages that are written for nodes and pods.

A node that is lost says and does nothing: its pods stay as they are, also those that were asked to go.
"""

from __future__ import annotations

from typing import ClassVar

from springtide.apis.forecast import format_instant
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.errors import Conflict, NotFound
from springtide.cluster.resources import NODES, PODS, Key, Object, Resource, key_of
from springtide.cluster.transport import Patch
from springtide.simulator.behaviours.pod_status import is_true
from springtide.simulator.behaviours.resources import ALL_NODES, ALL_PODS, ON_NODE, to_node
from springtide.simulator.behaviours.settings import DEFAULT, LOST, BehaviourSettings
from springtide.simulator.behaviours.stages import Stage, Stages, load_stages


def is_lost(node: Object) -> bool:
    """Return whether nothing is heard of a node."""
    return LOST in (node["metadata"].get("annotations") or {})


def node_lost_patch(now: int) -> Patch:
    """Return the patch of a node that lets it be lost from now on."""
    return Patch.merge({"metadata": {"annotations": {LOST: format_instant(now)}}})


def node_found_patch() -> Patch:
    """Return the patch of a node that lets it be back."""
    return Patch.merge({"metadata": {"annotations": {LOST: None}}})


class Kubelets(Controller):
    """All kubelets of the cluster; each has its node for a key."""

    name = "kubelet"
    watches = (Watch(ALL_NODES), Watch(ALL_PODS, to_node))
    permissions = (
        Permission(NODES, ("get", "list", "watch")),
        Permission(NODES, ("patch",), "status"),
        Permission(PODS, ("get", "list", "watch", "delete")),
        Permission(PODS, ("patch",), "status"),
    )
    workers = 8
    settings: ClassVar[BehaviourSettings] = DEFAULT

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._node_stages = load_stages("node", self.settings)
        self._pod_stages = load_stages("pod", self.settings)

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Play the stages of a node and of its pods that are due; come back for the next one."""
        node = self.context.store(ALL_NODES).get(key)
        if node is None or is_lost(node):
            return None
        later = await self._play(self._node_stages, NODES, node, now)
        if is_true(node, "Ready"):
            for pod in self.context.store(ALL_PODS).by(ON_NODE, key.name):
                at = await self._play(self._pod_stages, PODS, pod, now)
                if at is not None:
                    later = at if later is None else min(later, at)
        return None if later is None else Result(requeue_at=later)

    async def _play(self, stages: Stages, resource: Resource, item: Object, now: int) -> int | None:
        """Play the next stage of an object if it is due, else tell when it will be."""
        due = stages.next(item)
        if due is None:
            return None
        if due.at > now:
            return due.at
        try:
            await self._effect(stages, due.stage, resource, item, now)
        except NotFound:
            self.context.log.info("%s %s is gone", resource.kind, key_of(item))
        except Conflict as changed:
            # One pod that changes under our hands must not hold up its neighbours. Its change comes as an event, but a
            # server may refuse for less than a change.
            self.context.log.info("%s", changed)
            return now + 1
        return None

    async def _effect(self, stages: Stages, stage: Stage, resource: Resource, item: Object, now: int) -> None:
        change = stages.status(stage, item, now)
        if change is None:
            await self.context.client.delete(resource, of=item, because=stage.because, grace_seconds=0)
        else:
            await self.context.client.patch(
                resource, Patch.merge(change), of=item, because=stage.because, subresource="status"
            )
