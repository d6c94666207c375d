"""Writes the address of the leader to the Endpoints of external metrics, whose Service has no selector.

Only the leader has series, but all pods must be ready, for they serve webhooks and take over. A Service cannot select
the leader by a label without a right to change pods, all of them, since RBAC cannot name pods that come and go. So the
leader writes its address to one Endpoints object, which the installer creates, and the right is for this name alone.
While the address is that of a former leader for a moment, it answers 503: no wrong values are served.

Endpoints and not an EndpointSlice: before Kubernetes 1.33 the API server calls a Service only if it has Endpoints.
Kubernetes copies them to EndpointSlices itself, one for each address family.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from springtide.cluster.controller import Permission
from springtide.cluster.errors import ClusterError, Conflict, NotFound, NotLeader
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch, Precondition, Transport, Write

ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
SERVICE_NAME = "springtide-external-metrics"
"""The name of the Service and its Endpoints in the chart; a cluster has one provider of external metrics."""
PORT_NAME = "https"
"""The name of the port of that Service."""
PERMISSIONS = (Permission(ENDPOINTS, ("get", "patch"), names=(SERVICE_NAME,), own_namespace=True),)

_POLL_SECONDS = 1.0
_POLLS_PER_RESYNC = 30
"""After how many polls the object is read again although leadership has not changed: other writers may change it."""

log = logging.getLogger(__name__)


class LeaderEndpoints:
    """Keeps the address for one replica."""

    def __init__(
        self,
        transport: Transport,
        service: Key,
        address: str,
        port: int,
        leading: Callable[[], bool],
        *,
        poll_seconds: float = _POLL_SECONDS,
    ) -> None:
        self._transport = transport
        self._service = service
        self._own: Object = {
            "addresses": [{"ip": address}],
            "ports": [{"name": PORT_NAME, "port": port, "protocol": "TCP"}],
        }
        self._leading = leading
        self._poll_seconds = poll_seconds

    async def run(self) -> None:
        """Reconcile the object until cancelled; a replica that does not lead removes only its own address."""
        settled: bool | None = None
        polls = 0
        while True:
            leads = self._leading()
            polls += 1
            if leads is not settled or polls >= _POLLS_PER_RESYNC:
                settled = leads if await self._settle(leads) else None
                polls = 0
            await asyncio.sleep(self._poll_seconds)

    async def _settle(self, leads: bool) -> bool:
        def permit() -> None:
            if self._leading() is not leads:
                raise NotLeader("the leader has changed meanwhile")

        write = Write(
            "springtide-external-metrics", "the Service of external metrics leads to the leader", permit=permit
        )
        try:
            found = await self._transport.get(ENDPOINTS, self._service)
            subsets = found.get("subsets") or []
            wanted = [self._own] if leads else [] if self._own in subsets else subsets
            if subsets != wanted:
                precondition = Precondition(version=found["metadata"]["resourceVersion"])
                change = Patch.merge({"subsets": wanted})
                await self._transport.patch(ENDPOINTS, self._service, change, write, precondition=precondition)
        except (Conflict, NotLeader):
            return False
        except NotFound:
            if leads:
                log.warning(
                    "the Endpoints %s are not installed, so the Service of external metrics does not lead to the"
                    " leader: upgrade the release, or create them without subsets",
                    self._service,
                )
            return not leads
        except ClusterError as failure:
            log.warning(
                "the Endpoints %s, by which the Service of external metrics leads to the leader, could not be"
                " written: %s",
                self._service,
                failure,
            )
            return False
        return True
