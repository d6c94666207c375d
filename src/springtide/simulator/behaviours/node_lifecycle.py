"""The node lifecycle controller, taint-based eviction, and garbage collection of pods on deleted nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from springtide.apis.core.nodes import NodeRecord, NodeTaint, NodeView, node_record
from springtide.apis.core.pod_record import TaintToleration, pod_class_of
from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import parse_instant
from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.errors import Conflict, NotFound
from springtide.cluster.resources import NODES, PODS, Key, Object, key_of
from springtide.cluster.transport import Patch
from springtide.packing.predicates import NOT_READY, UNREACHABLE, UNSCHEDULABLE, is_tolerated_by
from springtide.simulator.behaviours import pod_status as state
from springtide.simulator.behaviours.kubelet import is_lost
from springtide.simulator.behaviours.ownership import delete_pod
from springtide.simulator.behaviours.pod_status import condition, is_terminating, with_conditions
from springtide.simulator.behaviours.resources import ALL_NODES, ALL_PODS, ON_NODE, to_node
from springtide.simulator.behaviours.settings import DEFAULT, LOST, BehaviourSettings

_CORDON: Object = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
_OURS = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)


def silent_at(node: Object, settings: BehaviourSettings) -> int | None:
    """Return when a lost node becomes unreachable; None while it sends heartbeats."""
    if not is_lost(node):
        return None
    try:
        return parse_instant(node["metadata"]["annotations"][LOST]) + settings.node_grace
    except ValueError:
        return 0


def wanted_taints(node: Object, now: str) -> list[Object]:
    """Return the taints of a node: those of its condition and cordon, and all others that it has."""
    spec = node.get("spec") or {}
    present = spec.get("taints") or []
    ready = (condition(node, "Ready") or {}).get("status")
    marks = [_CORDON] if spec.get("unschedulable") else []
    if ready is None:
        marks.append({"key": NOT_READY, "effect": "NoSchedule"})
    elif ready != "True":
        key = NOT_READY if ready == "False" else UNREACHABLE
        marks += [{"key": key, "effect": "NoSchedule"}, {"key": key, "effect": "NoExecute"}]
    kept = [taint for taint in present if taint["key"] not in _OURS or _is_one_of(taint, marks)]
    added = [mark for mark in marks if not _is_one_of(mark, present)]
    # tolerationSeconds counts from this time.
    return [{**taint, "timeAdded": now} if _lacks_time(taint) else taint for taint in [*kept, *added]]


def _is_one_of(taint: Object, listed: list[Object]) -> bool:
    return any(taint["key"] == other["key"] and taint["effect"] == other["effect"] for other in listed)


def _lacks_time(taint: Object) -> bool:
    return taint["effect"] == "NoExecute" and "timeAdded" not in taint


class NodeLifecycle(Controller):
    """Sets the Ready condition of silent nodes to Unknown, and taints nodes by their condition."""

    name = "node-lifecycle"
    watches = (Watch(ALL_NODES), Watch(ALL_PODS, to_node))
    permissions = (
        Permission(NODES, ("get", "list", "watch", "patch")),
        Permission(NODES, ("patch",), "status"),
        Permission(PODS, ("get", "list", "watch")),
        Permission(PODS, ("patch",), "status"),
    )
    settings: ClassVar[BehaviourSettings] = DEFAULT

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Update the condition, taints and pods of a node."""
        node = self.context.store(ALL_NODES).get(key)
        if node is None:
            return None
        silent = silent_at(node, self.settings)
        if silent is not None and silent <= now:
            node = await self._mark_unknown(node, now)
        taints = wanted_taints(node, format_instant(now))
        if taints != ((node.get("spec") or {}).get("taints") or []):
            change = Patch.merge({"spec": {"taints": taints or None}})
            ready = (condition(node, "Ready") or {}).get("status", "not known yet")
            because = "the node is ready" if ready == "True" else f"the node is not ready: its Ready is {ready}"
            await self.context.client.patch(NODES, change, of=node, because=because)
        if (condition(node, "Ready") or {}).get("status") in ("False", "Unknown"):
            await self._mark_pods(key.name, now)
        return Result(requeue_at=silent) if silent is not None and silent > now else None

    async def _mark_unknown(self, node: Object, now: int) -> Object:
        if (condition(node, "Ready") or {}).get("status") == "Unknown":
            return node
        unknown = {
            "type": "Ready",
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
        }
        conditions = with_conditions((node.get("status") or {}).get("conditions"), [unknown], format_instant(now))
        change = Patch.merge({"status": {"conditions": conditions}})
        because = f"the node sent no heartbeat for {self.settings.node_grace} s"
        return await self.context.client.patch(NODES, change, of=node, because=because, subresource="status")

    async def _mark_pods(self, node: str, now: int) -> None:
        """Mark the pods of an unreachable node as not ready; a conflict on one does not stop the others."""
        conflict: Conflict | None = None
        for pod in self.context.store(ALL_PODS).by(ON_NODE, node):
            if not state.is_ready(pod):
                continue
            unready = {**(condition(pod, "Ready") or {}), "status": "False"}
            conditions = with_conditions(pod["status"]["conditions"], [unready], format_instant(now))
            change = Patch.merge({"status": {"conditions": conditions}})
            try:
                await self.context.client.patch(
                    PODS, change, of=pod, because="its node is not ready", subresource="status"
                )
            except NotFound:
                self.context.log.info("pod %s is gone", key_of(pod))
            except Conflict as changed:
                conflict = changed
        if conflict is not None:
            raise conflict


def leaves_at(pod: Object, node: NodeRecord, settings: BehaviourSettings) -> int | None:
    """Return when the NoExecute taints of a node evict a pod; None: it may stay.

    Each taint counts from its timeAdded. A toleration without seconds has no end. A taint without a matching
    toleration evicts at once, except not-ready and unreachable, which pods without such tolerations tolerate for a
    default time. A taint without timeAdded does not count yet.
    """
    taints = [taint for taint in node.taints if taint.effect == "NoExecute"]
    if not taints:
        return None
    tolerations = pod_class_of(pod["spec"]).tolerations
    ends = [
        _tolerated_until(tolerations, taint, taint.added_at, settings) for taint in taints if taint.added_at is not None
    ]
    return min((end for end in ends if end is not None), default=None)


def _tolerated_until(
    tolerations: Iterable[TaintToleration], taint: NodeTaint, since: int, settings: BehaviourSettings
) -> int | None:
    seconds = [entry.toleration_seconds for entry in tolerations if is_tolerated_by(entry, taint)]
    if not seconds:
        return since + (settings.eviction_seconds if taint.key in (NOT_READY, UNREACHABLE) else 0)
    limited = [max(0, count) for count in seconds if count is not None]
    return since + min(limited) if limited else None


class TaintEviction(Controller):
    """Deletes pods that do not tolerate a NoExecute taint of their node."""

    name = "taint-eviction"
    watches = (Watch(ALL_NODES), Watch(ALL_PODS, to_node))
    permissions = (
        Permission(NODES, ("get", "list", "watch")),
        Permission(PODS, ("get", "list", "watch", "delete")),
    )
    settings: ClassVar[BehaviourSettings] = DEFAULT

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Delete the pods whose toleration has ended; requeue for the next."""
        node = self.context.store(ALL_NODES).get(key)
        if node is None or not (node.get("spec") or {}).get("taints"):
            return None
        record = node_record(msgspec.convert(node, NodeView))
        later = []
        for pod in self.context.store(ALL_PODS).by(ON_NODE, key.name):
            at = None if is_terminating(pod) else leaves_at(pod, record, self.settings)
            if at is not None and at <= now:
                await delete_pod(self.context, pod, because=f"it does not tolerate a taint of node {key.name}")
            elif at is not None:
                later.append(at)
        return Result(requeue_at=min(later)) if later else None


class PodGarbage(Controller):
    """Deletes pods of deleted nodes with grace period 0, because no kubelet is left to stop them."""

    name = "pod-garbage"
    watches = (Watch(ALL_NODES), Watch(ALL_PODS, to_node))
    permissions = (
        Permission(NODES, ("get", "list", "watch")),
        Permission(PODS, ("get", "list", "watch", "delete")),
    )

    async def reconcile(self, key: Key, now: int) -> Result | None:  # noqa: ARG002
        """Delete the pods of a deleted node."""
        pods = self.context.store(ALL_PODS).by(ON_NODE, key.name)
        if not pods or key in self.context.store(ALL_NODES) or await self._exists(key):
            return None
        for pod in pods:
            if pod["metadata"].get("deletionGracePeriodSeconds") != 0:
                await delete_pod(self.context, pod, because=f"its node {key.name} does not exist", grace_seconds=0)
        return None

    async def _exists(self, key: Key) -> bool:
        """Read the node from the API server: the cache of nodes may be older than that of pods."""
        try:
            await self.context.client.get(NODES, key)
        except NotFound:
            return False
        return True
