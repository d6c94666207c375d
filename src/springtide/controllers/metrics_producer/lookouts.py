"""Looks at schedules that take too long to be looked at on the way: beside everything else.

Such a schedule comes and goes all the time without any effect, or is made of very many behaviours that do. Hardly
anybody means it, but nobody else must wait for it.
"""

from __future__ import annotations

from springtide.apis.scheduled.behaviors import ScheduleSpec
from springtide.cluster.resources import Key
from springtide.cluster.tools import Tools
from springtide.controllers.metrics_producer.errands import Errands
from springtide.controllers.metrics_producer.plans import THOROUGH, CalendarsUsed, Plan, Present, compiled

_COST = 0.5


class Lookouts:
    """Keeps the last thorough look at each plan that needs one."""

    def __init__(self, tools: Tools, listed: int) -> None:
        self._tools = tools
        self._listed = listed
        self._plans: dict[Key, Plan] = {}
        self._seen: dict[Key, Present] = {}
        self._errands = Errands[Key, tuple[Plan, Present]](tools, "the look at a schedule", self._keep)

    def seen(self, key: Key, plan: Plan, now: int, *, at_present: bool) -> Present | None:
        """Give the last look at a plan, or None before the first; the key is woken when there is a newer one.

        There will be one where the last does not say what comes next or, if that is asked for, what is now.
        """
        if self._plans.get(key) is not plan:
            self.forget(key)
            self._plans[key] = plan
        seen = self._seen.get(key)
        if seen is None or not seen.says_what_comes(now) or (at_present and not seen.holds(now)):
            self._errands.ask(key, key, lambda: self._look(plan, now))
        return seen

    def forget(self, key: Key) -> None:
        """Keep nothing of a plan that is gone."""
        self._plans.pop(key, None)
        self._seen.pop(key, None)

    async def _look(self, plan: Plan, now: int) -> tuple[Plan, Present]:
        place = (plan.schedule, plan.zone.name, plan.calendars)
        return plan, await self._tools.compute.run(_look, *place, now, self._listed, cost=_COST)

    def _keep(self, key: Key, look: tuple[Plan, Present]) -> None:
        plan, present = look
        if self._plans.get(key) is plan:
            self._seen[key] = present


def _look(schedule: ScheduleSpec, zone: str, calendars: CalendarsUsed, now: int, listed: int) -> Present:
    return compiled(schedule, zone, calendars).at(now, listed, THOROUGH)
