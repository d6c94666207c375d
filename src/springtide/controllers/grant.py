"""The Grant controller: tells whether a grant is in force, and what it allows.

A grant with errors allows nothing, which those it was written for would notice only by being refused.
"""

from __future__ import annotations

from springtide.apis.springtide.grants import Grant, GrantSpec
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.controller import Cached, Controller, Permission, Result, Watch
from springtide.cluster.events import warning
from springtide.cluster.resources import Key, Object, Selection
from springtide.controllers.grants import GRANTS
from springtide.controllers.validated import validated

_GRANTS = Cached(Selection(GRANTS))


class GrantController(Controller):
    """Keeps the status of Grant objects."""

    name = "grant"
    watches = (Watch(_GRANTS),)
    permissions = (
        Permission(GRANTS, ("get", "list", "watch")),
        Permission(GRANTS, ("patch",), subresource="status"),
    )

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Write whether the grant is in force; only a change of it changes that."""
        grant = self.context.store(_GRANTS).get(key)
        if grant is None:
            return None
        ready = decide(grant, now, self.context.default_zone)
        changed = await self.context.client.apply_status(GRANTS, {}, (ready,), of=grant, now=now, because=ready.message)
        if changed and ready.status is ConditionStatus.FALSE:
            self.context.events.record(GRANTS, grant, warning(ready.reason, ready.message))
        return None


def decide(grant: Object, now: int, default_zone: str = "UTC") -> Condition:
    """Read a grant and tell whether it is in force."""
    verdict = validated(grant, Grant, now=now, default_zone=default_zone)
    if verdict.sound is None:
        return Condition(
            "Ready", ConditionStatus.FALSE, "Invalid", f"nothing is allowed by a grant with errors: {verdict.words}"
        )
    return Condition("Ready", ConditionStatus.TRUE, "InForce", _allowance(verdict.sound.spec))


def _allowance(spec: GrantSpec) -> str:
    listed = (
        ("node group", "node groups", spec.node_groups),
        ("queue", "queues", spec.queues),
        ("address", "addresses", spec.urls),
    )
    counted = [f"{len(ids)} {one if len(ids) == 1 else many}" for one, many, ids in listed if ids]
    reach = f"what it lists: {', '.join(counted)}" if counted else "nothing by it"
    return f"objects of {', '.join(spec.namespaces)} may reach {reach}"
