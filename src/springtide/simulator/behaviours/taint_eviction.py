"""Taints that drive pods away, and pods whose node is gone: both end with the pod deleted, but not in the same way."""

from __future__ import annotations

from typing import ClassVar

from springtide.apis.meta.instants import parse_instant
from springtide.cluster.controller import Again, Controller, Permission, Watch
from springtide.cluster.errors import NotFound
from springtide.cluster.resources import Key, Object
from springtide.simulator.behaviours.kinds import ALL_NODES, ALL_PODS, NODES, ON_NODE, PODS, to_node
from springtide.simulator.behaviours.owning import delete_pod
from springtide.simulator.behaviours.pods import is_terminating
from springtide.simulator.behaviours.predicates import NOT_READY, UNREACHABLE, is_tolerated_by
from springtide.simulator.behaviours.settings import DEFAULT, Settings


def leaves_at(pod: Object, node: Object, settings: Settings) -> int | None:
    """Tell when a pod must leave its node for the taints of that; None: it may stay.

    Every taint counts from its own time. A toleration without seconds tolerates for ever. A taint that nothing
    tolerates drives the pod away at once, but those of nodes in trouble are tolerated for a while by pods that do not
    speak of them. Taints whose time is not written yet count from when it is.
    """
    ends = [
        _tolerated_until(pod["spec"].get("tolerations") or [], taint, settings)
        for taint in (node.get("spec") or {}).get("taints") or ()
        if taint["effect"] == "NoExecute" and "timeAdded" in taint
    ]
    return min((end for end in ends if end is not None), default=None)


def _tolerated_until(tolerations: list[Object], taint: Object, settings: Settings) -> int | None:
    since = parse_instant(taint["timeAdded"])
    seconds = [entry.get("tolerationSeconds") for entry in tolerations if is_tolerated_by(entry, taint)]
    if not seconds:
        return since + (settings.eviction_seconds if taint["key"] in (NOT_READY, UNREACHABLE) else 0)
    limited = [max(0, int(count)) for count in seconds if count is not None]
    return since + min(limited) if limited else None


class TaintEviction(Controller):
    """Deletes the pods that a taint drives away."""

    name = "taint-eviction"
    watches = (Watch(ALL_NODES), Watch(ALL_PODS, to_node))
    permissions = (
        Permission(NODES, ("get", "list", "watch")),
        Permission(PODS, ("get", "list", "watch", "delete")),
    )
    settings: ClassVar[Settings] = DEFAULT

    async def reconcile(self, key: Key, now: int) -> Again | None:
        """Delete whom a taint of the node drives away by now; come back for the next."""
        node = self.tools.store(ALL_NODES).get(key)
        if node is None:
            return None
        later = []
        for pod in self.tools.store(ALL_PODS).by(ON_NODE, key.name):
            at = None if is_terminating(pod) else leaves_at(pod, node, self.settings)
            if at is not None and at <= now:
                await delete_pod(self.tools, pod, because=f"a taint of node {key.name} drives it away")
            elif at is not None:
                later.append(at)
        return Again(at=min(later)) if later else None


class PodGarbage(Controller):
    """Deletes, without grace, pods that are bound to a node that is not there: nobody is left to stop them."""

    name = "pod-garbage"
    watches = (Watch(ALL_NODES), Watch(ALL_PODS, to_node))
    permissions = (
        Permission(NODES, ("get", "list", "watch")),
        Permission(PODS, ("get", "list", "watch", "delete")),
    )

    async def reconcile(self, key: Key, now: int) -> Again | None:  # noqa: ARG002
        """Delete the pods of a node that is gone."""
        pods = self.tools.store(ALL_PODS).by(ON_NODE, key.name)
        if not pods or key in self.tools.store(ALL_NODES) or await self._exists(key):
            return None
        for pod in pods:
            if pod["metadata"].get("deletionGracePeriodSeconds") != 0:
                await delete_pod(self.tools, pod, because=f"its node {key.name} does not exist", grace_seconds=0)
        return None

    async def _exists(self, key: Key) -> bool:
        """Ask the server itself: the store of nodes may be behind that of pods."""
        try:
            await self.tools.client.get(NODES, key)
        except NotFound:
            return False
        return True
