"""Producers that follow a schedule: their compiled plans, and who must be told when a calendar changes."""

from __future__ import annotations

from dataclasses import replace

from springtide.apis.scheduled.behaviors import ScheduleSpec
from springtide.cluster.controller import Again
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.cluster.tools import Tools
from springtide.controllers.calendars import ALL_CALENDARS, CompiledCalendar
from springtide.controllers.metrics_producer.lookouts import Lookouts
from springtide.controllers.metrics_producer.outcomes import Outcome
from springtide.controllers.metrics_producer.plans import AT_ONCE, Plan, Present, calendars_used, compile_plan
from springtide.controllers.metrics_producer.records import ProducerRecord
from springtide.controllers.metrics_producer.schedule_outcomes import LISTED, decide
from springtide.controllers.metrics_producer.searches import Searches

_PATIENCE = 60
"""Seconds after which somebody comes again who was not woken: the look that he waits for may have failed."""


class Schedules:
    """The plans of all producers that follow a schedule."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._searches = Searches(tools)
        self._lookouts = Lookouts(tools, LISTED)
        self._plans: dict[Key, Plan] = {}
        self._presents: dict[Key, Present] = {}
        self._users: dict[str, dict[Key, None]] = {}
        """By the names of calendars: who refers to them, in order."""
        tools.follow(ALL_CALENDARS, self._calendar_changed)

    def produce(self, record: ProducerRecord, schedule: ScheduleSpec, status: Object, now: int) -> Outcome | Again:
        """Tell what a schedule without errors comes to now; where that is not known yet, the producer will be woken."""
        plan = self._plan(record.key, schedule)
        present = self._present(record.key, plan, now)
        if present is None:
            return Again(after=_PATIENCE)
        return decide(plan, present, self._searches.found(record.written, plan, record.key, now), status, now)

    def forget(self, key: Key) -> None:
        """Keep nothing of a producer that is gone, or follows no schedule any more."""
        self._presents.pop(key, None)
        self._lookouts.forget(key)
        plan = self._plans.pop(key, None)
        for name, _ in plan.calendars if plan is not None else ():
            users = self._users[name]
            del users[key]
            if not users:
                del self._users[name]

    def _plan(self, key: Key, schedule: ScheduleSpec) -> Plan:
        """Give the plan of a schedule, compiled anew only where the schedule or a calendar has changed."""
        calendars = self._tools.store(ALL_CALENDARS)
        plan = self._plans.get(key)
        if plan is None or plan.schedule is not schedule or plan.calendars != calendars_used(schedule, calendars):
            self.forget(key)
            plan = self._plans[key] = compile_plan(schedule, self._tools.default_zone, calendars)
            for name, _ in plan.calendars:
                self._users.setdefault(name, {})[key] = None
        return plan

    def _present(self, key: Key, plan: Plan, now: int) -> Present | None:
        """Look at the plan anew only where what was seen last does not hold: every write brings a key once more."""
        present = self._presents.get(key)
        if present is None or not present.holds(now):
            present = self._presents[key] = plan.at(now, LISTED, AT_ONCE)
        if present.complete:
            return present
        seen = self._lookouts.seen(key, plan, now, at_present=not present.certain)
        if not present.certain:
            return seen if seen is not None and seen.holds(now) else None
        if seen is None or seen.since > now:
            return present
        ahead = tuple(change for change in seen.upcoming if change[0] > now)
        return replace(present, upcoming=ahead, complete=seen.complete)

    def _calendar_changed(self, delta: Delta[CompiledCalendar]) -> None:
        for key in self._users.get(delta.key.name, ()):
            self._tools.wake(key)
