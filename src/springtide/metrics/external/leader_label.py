"""Leads a Service to the replica that leads, by a label that this one's pod bears and the others' do not.

Series are those of the leader; a Service that spread requests over all replicas would get no answer from most. Pods
that do not lead must be ready all the same, for they serve webhooks and take over. So the Service selects by a label,
and whoever leads puts it on its own pod and takes it off all others. Should it stand on the wrong pod for a moment,
that one answers 503 by itself: nothing is told that may be wrong.
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
"""After how many glances the labels are looked at although nothing has changed: others may have changed them."""

log = logging.getLogger(__name__)


class LeaderLabel:
    """The label, as one replica keeps it."""

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
        """Keep the labels right until cancelled; a replica that does not lead takes care of its own alone."""
        settled: bool | None = None
        glances = 0
        while True:
            leads = self._leading()
            glances += 1
            if leads is not settled or glances >= _POLLS_PER_RESYNC:
                settled = leads if await self._settle(leads) else None
                glances = 0
            await asyncio.sleep(self._glance_seconds)

    async def _settle(self, leads: bool) -> bool:
        try:
            found = await self._transport.list(Selection(PODS, self._pod.namespace, labels=f"{LABEL}=true"))
            marked = [item["metadata"]["name"] for item in found.items]
            for name in marked:
                if name != self._pod.name and leads:
                    await self._mark(name, None, leads)
            if leads is not (self._pod.name in marked):
                await self._mark(self._pod.name, "true" if leads else None, leads)
        except NotLeader:
            return False
        except ClusterError as failure:
            log.warning("the label %s that leads external metrics to the leader is not right yet: %s", LABEL, failure)
            return False
        return True

    async def _mark(self, name: str, value: str | None, leads: bool) -> None:
        def permit() -> None:
            if self._leading() is not leads:
                raise NotLeader("who leads has changed meanwhile")

        body: Object = {"metadata": {"labels": {LABEL: value}}}
        write = Write(
            "springtide-external-metrics", "the Service of external metrics leads to the leader", permit=permit
        )
        try:
            await self._transport.patch(PODS, Key(self._pod.namespace, name), Patch.merge(body), write)
        except NotFound:
            if name == self._pod.name:
                raise
