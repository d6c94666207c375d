"""The Grant controller: tells whether a grant is in force, and what it allows.

A grant with errors allows nothing, which those it was written for would notice only by being refused.
"""

from __future__ import annotations

from springtide.apis.springtide.types import Grant, GrantSpec
from springtide.cluster.conditions import Condition, Truth
from springtide.cluster.controller import Again, Cached, Controller, Permission, Watch
from springtide.cluster.events import warning
from springtide.cluster.resources import Key, Object, Selection
from springtide.controllers.judged import judged
from springtide.controllers.trust import GRANTS

_GRANTS = Cached(Selection(GRANTS))


class GrantController(Controller):
    """Keeps the status of Grant objects."""

    name = "grant"
    watches = (Watch(_GRANTS),)
    permissions = (
        Permission(GRANTS, ("get", "list", "watch")),
        Permission(GRANTS, ("patch",), subresource="status"),
    )

    async def reconcile(self, key: Key, now: int) -> Again | None:
        """Write whether the grant is in force; only a change of it changes that."""
        grant = self.tools.store(_GRANTS).get(key)
        if grant is None:
            return None
        ready = decide(grant, now, self.tools.default_zone)
        changed = await self.tools.client.apply_status(GRANTS, {}, (ready,), of=grant, now=now, because=ready.message)
        if changed and ready.status is Truth.FALSE:
            self.tools.events.record(GRANTS, grant, warning(ready.reason, ready.message))
        return None


def decide(grant: Object, now: int, default_zone: str = "UTC") -> Condition:
    """Read a grant and tell whether it is in force."""
    verdict = judged(grant, Grant, now=now, default_zone=default_zone)
    if verdict.sound is None:
        return Condition("Ready", Truth.FALSE, "Invalid", f"nothing is allowed by a grant with errors: {verdict.words}")
    return Condition("Ready", Truth.TRUE, "InForce", _allowance(verdict.sound.spec))


def _allowance(spec: GrantSpec) -> str:
    listed = (
        ("node group", "node groups", spec.node_groups),
        ("queue", "queues", spec.queues),
        ("address", "addresses", spec.urls),
    )
    counted = [f"{len(ids)} {one if len(ids) == 1 else many}" for one, many, ids in listed if ids]
    reach = f"what it lists: {', '.join(counted)}" if counted else "nothing by it"
    return f"objects of {', '.join(spec.namespaces)} may reach {reach}"
