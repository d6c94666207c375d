"""The search for surprises in schedules: beside everything else, and once for schedules that are written the same.

Those that refer to calendars are searched anew when a calendar changes.

It looks through years of time, which takes a thousand times as long as to tell the present value. So nobody waits for
it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from springtide.almanac import Calendar
from springtide.apis.fields import Context
from springtide.apis.meta.windows import KnownCalendars
from springtide.apis.scheduled.behaviors import ScheduleSpec
from springtide.apis.scheduled.conflicts import Surprise, surprises
from springtide.cluster.resources import Key
from springtide.cluster.tools import Tools
from springtide.controllers.metrics_producer.errands import Errands
from springtide.controllers.metrics_producer.plans import CalendarsUsed, Plan
from springtide.controllers.metrics_producer.records import Written

_Subject: TypeAlias = tuple[Written, CalendarsUsed]
REMEMBERED = 16_384
"""How many different schedules are kept in mind; the one not asked for in the longest time is forgotten."""
FRESH = 30 * 24 * 60 * 60
"""Seconds after which a schedule is searched anew: what happens once is over some day."""
_COST = 0.002


@dataclass(frozen=True, slots=True)
class _Found:
    surprises: tuple[Surprise, ...]
    at: int


class Searches:
    """Searches schedules one after the other."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._found: OrderedDict[_Subject, _Found] = OrderedDict()
        self._errands = Errands[_Subject, _Found](tools, "the search for surprises in a schedule", self._keep)

    def found(self, written: Written, plan: Plan, key: Key, now: int) -> tuple[Surprise, ...] | None:
        """Give what was found in a schedule, or None where that is not known yet; the key is woken when it is."""
        subject = (written, plan.calendars)
        found = self._found.get(subject)
        if found is not None:
            self._found.move_to_end(subject)
        if found is None or abs(now - found.at) > FRESH:
            self._errands.ask(subject, key, lambda: self._searched(plan, now))
        return found.surprises if found is not None else None

    async def _searched(self, plan: Plan, now: int) -> _Found:
        context = Context(now=now, default_zone=self._tools.default_zone)
        return _Found(await self._tools.compute.run(_search, plan.schedule, context, plan.usable, cost=_COST), now)

    def _keep(self, subject: _Subject, found: _Found) -> None:
        self._found[subject] = found
        self._found.move_to_end(subject)
        if len(self._found) > REMEMBERED:
            self._found.popitem(last=False)


def _search(schedule: ScheduleSpec, context: Context, calendars: Mapping[str, Calendar]) -> tuple[Surprise, ...]:
    return tuple(surprises(schedule, context, KnownCalendars(calendars, all_there_are=True)))
