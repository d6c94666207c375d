"""The Grant controller: writes whether a grant is in force, and what it allows.

A grant with errors allows nothing. Its status says so, since its author would otherwise notice only by refusals.
"""

from __future__ import annotations

from springtide.cluster.conditions import ConditionStatus
from springtide.cluster.controller import Cached, Controller, Permission, Result, Watch
from springtide.cluster.resources import Key, Selection
from springtide.controllers.decision import warning_for
from springtide.controllers.grant.decide import decide
from springtide.controllers.grant.state import GRANTS
from springtide.controllers.validated import try_validation

_GRANTS = Cached(Selection(GRANTS), trial=try_validation)


class GrantController(Controller):
    """Keeps the status of Grant objects."""

    name = "grant"
    watches = (Watch(_GRANTS),)
    permissions = (
        Permission(GRANTS, ("get", "list", "watch")),
        Permission(GRANTS, ("patch",), subresource="status"),
    )

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Write the status of a grant; it only changes when the grant does."""
        grant = self.context.store(_GRANTS).get(key)
        if grant is None:
            return None
        decision = decide(grant, now, self.context.default_zone)
        changed = await self.context.client.apply_status(
            GRANTS, decision.status, decision.conditions, of=grant, now=now, because=decision.reasons[0]
        )
        ready = decision.condition("Ready")
        if changed and ready.status is ConditionStatus.FALSE:
            self.context.events.record(GRANTS, grant, warning_for(ready))
        return None
