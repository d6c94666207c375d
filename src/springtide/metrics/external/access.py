"""Whether somebody may ask: the cluster decides, by a SubjectAccessReview, and its answer holds for some seconds.

Autoscalers ask again and again; a cluster that is asked about each request has twice the work. Where it gives no
answer, nobody gets one from us.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from springtide.cluster.clock import Clock
from springtide.cluster.controller import Permission
from springtide.cluster.errors import ClusterError, Forbidden, ServerError
from springtide.cluster.port import Transport, Write
from springtide.cluster.resources import Resource
from springtide.metrics.external.front_proxy import Caller

REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
PERMISSIONS = (Permission(REVIEWS, ("create",)),)

_REMEMBERED_SECONDS = 10.0
_MOST_REMEMBERED = 1024
_WRITE = Write("springtide-external-metrics", "somebody asks for external metrics")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for: a metric of a namespace, or a path that is no object."""

    path: str
    namespace: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""

    def attributes(self) -> dict[str, Any]:
        """Write it as a review does; several values of a metric are listed, even where there is one."""
        if not self.resource:
            return {"nonResourceAttributes": {"path": self.path, "verb": "get"}}
        return {
            "resourceAttributes": {
                "namespace": self.namespace,
                "verb": "list",
                "group": self.group,
                "version": self.version,
                "resource": self.resource,
            }
        }

    def __str__(self) -> str:
        if not self.resource:
            return f'get path "{self.path}"'
        return f'list resource "{self.resource}" in API group "{self.group}" in the namespace "{self.namespace}"'


class Access:
    """Asks the cluster, and remembers what it said."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._remembered: dict[tuple[Caller, Asked], tuple[float, str | None]] = {}

    async def check(self, caller: Caller, asked: Asked) -> None:
        """Pass if the caller may; raises `Forbidden`, or `ServerError` where nobody can tell."""
        now = self._clock.monotonic()
        until, refusal = self._remembered.get((caller, asked), (now, None))
        if until <= now:
            refusal = await self._review(caller, asked)
            self._remember(caller, asked, refusal)
        if refusal is not None:
            raise Forbidden(refusal)

    async def _review(self, caller: Caller, asked: Asked) -> str | None:
        """Give the words of a refusal, or nothing."""
        body = {
            "apiVersion": REVIEWS.api_version,
            "kind": REVIEWS.kind,
            "spec": {
                "user": caller.user,
                **({"uid": caller.uid} if caller.uid else {}),
                "groups": list(caller.groups),
                "extra": {name: list(values) for name, values in caller.extra},
                **asked.attributes(),
            },
        }
        try:
            status = (await self._transport.create(REVIEWS, body, _WRITE)).get("status") or {}
        except ClusterError as failure:
            words = f"whether {caller.user} may {asked} could not be found out: {failure}"
            raise ServerError(words, code=503, reason="ServiceUnavailable", retry_after=1) from failure
        if status.get("allowed") is True and not status.get("denied"):
            return None
        why = f": {status['reason']}" if status.get("reason") else ""
        return f'User "{caller.user}" cannot {asked}{why}'

    def _remember(self, caller: Caller, asked: Asked, refusal: str | None) -> None:
        while len(self._remembered) >= _MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        # The newest stands last, so that the first to go is the oldest.
        self._remembered.pop((caller, asked), None)
        self._remembered[caller, asked] = (self._clock.monotonic() + _REMEMBERED_SECONDS, refusal)
