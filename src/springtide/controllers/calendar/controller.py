"""The Calendar controller: writes whether today is one of the days of a calendar, and which days come next.

It is the simplest controller and shows the shape of all: observe, decide, act. The status depends on nothing but the
spec and the present, so it is right after a restart, a stall or a step of the clock.
"""

from __future__ import annotations

from springtide.cluster.conditions import ConditionStatus
from springtide.cluster.controller import Cached, Controller, Permission, Result, Watch
from springtide.cluster.resources import Key, Selection
from springtide.controllers.calendar.decide import decide
from springtide.controllers.calendar.state import CALENDARS
from springtide.controllers.decision import warning_for

_CALENDARS = Cached(Selection(CALENDARS), trial=decide)


class CalendarController(Controller):
    """Keeps the status of Calendar objects."""

    name = "calendar"
    independent = True
    watches = (Watch(_CALENDARS),)
    permissions = (
        Permission(CALENDARS, ("get", "list", "watch")),
        Permission(CALENDARS, ("patch",), subresource="status"),
    )

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Write the status of a calendar, and requeue it for the instant at which the status changes."""
        calendar = self.context.store(_CALENDARS).get(key)
        if calendar is None:
            return None
        decision = decide(calendar, now, self.context.default_zone)
        changed = await self.context.client.apply_status(
            CALENDARS, decision.status, decision.conditions, of=calendar, now=now, because=decision.reasons[0]
        )
        ready = decision.condition("Ready")
        if changed and ready.status is ConditionStatus.FALSE:
            self.context.events.record(CALENDARS, calendar, warning_for(ready))
        return Result(requeue_at=decision.requeue_at) if decision.requeue_at is not None else None
