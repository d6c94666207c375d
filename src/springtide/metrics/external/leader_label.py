"""Labels the pod of the leader, so that the Service of external metrics selects it.

Only the leader has series, but all pods must be ready, for they serve webhooks and take over. So the Service selects by
a label, which the leader sets on its own pod and removes from all others. While the label is on the wrong pod for a
moment, that pod answers 503: no wrong values are served.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from springtide.cluster.controller import Permission
from springtide.cluster.errors import ClusterError, NotFound, NotLeader
from springtide.cluster.resources import PODS, Key, Object, Selection
from springtide.cluster.transport import Patch, Transport, Write

LABEL = "springtide.dev/leads"
PERMISSIONS = (Permission(PODS, ("list", "patch"), own_namespace=True),)

_POLL_SECONDS = 1.0
_POLLS_PER_RESYNC = 30
"""After how many polls the labels are read again although leadership has not changed: other writers may change them."""

log = logging.getLogger(__name__)


class LeaderLabel:
    """Keeps the label for one replica."""

    def __init__(
        self,
        transport: Transport,
        pod: Key,
        leading: Callable[[], bool],
        *,
        poll_seconds: float = _POLL_SECONDS,
    ) -> None:
        self._transport = transport
        self._pod = pod
        self._leading = leading
        self._glance_seconds = poll_seconds

    async def run(self) -> None:
        """Reconcile the labels until cancelled; a replica that does not lead changes only its own pod."""
        settled: bool | None = None
        polls = 0
        while True:
            leads = self._leading()
            polls += 1
            if leads is not settled or polls >= _POLLS_PER_RESYNC:
                settled = leads if await self._settle(leads) else None
                polls = 0
            await asyncio.sleep(self._glance_seconds)

    async def _settle(self, leads: bool) -> bool:
        try:
            found = await self._transport.list(Selection(PODS, self._pod.namespace, labels=f"{LABEL}=true"))
            labelled = [item["metadata"]["name"] for item in found.items]
            for name in labelled:
                if name != self._pod.name and leads:
                    await self._set_label(name, None, leads)
            if leads is not (self._pod.name in labelled):
                await self._set_label(self._pod.name, "true" if leads else None, leads)
        except NotLeader:
            return False
        except ClusterError as failure:
            log.warning(
                "the label %s, by which the Service of external metrics selects the leader, could not be set: %s",
                LABEL,
                failure,
            )
            return False
        return True

    async def _set_label(self, name: str, value: str | None, leads: bool) -> None:
        def permit() -> None:
            if self._leading() is not leads:
                raise NotLeader("the leader has changed meanwhile")

        body: Object = {"metadata": {"labels": {LABEL: value}}}
        write = Write(
            "springtide-external-metrics", "the Service of external metrics selects the leader", permit=permit
        )
        try:
            await self._transport.patch(PODS, Key(self._pod.namespace, name), Patch.merge(body), write)
        except NotFound:
            if name == self._pod.name:
                raise
