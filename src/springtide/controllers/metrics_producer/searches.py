"""The search for surprises in schedules: beside everything else, and once for schedules that are written the same.

Those that refer to calendars are searched anew when a calendar changes.

It looks through years of time, which takes a thousand times as long as to tell the present value. So nobody waits for
it: whoever asks is told what is known, and woken when more is.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from springtide.almanac import Calendar
from springtide.apis.fields import Context
from springtide.apis.meta.windows import KnownCalendars
from springtide.apis.scheduled.behaviors import ScheduleSpec
from springtide.apis.scheduled.conflicts import Surprise, surprises
from springtide.cluster.resources import Key
from springtide.cluster.tools import Tools
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


@dataclass(slots=True)
class _Asked:
    plan: Plan
    at: int
    keys: dict[Key, None] = field(default_factory=dict)
    """Who asks, in order."""


class Searches:
    """Searches schedules one after the other."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._found: OrderedDict[_Subject, _Found] = OrderedDict()
        self._asked: OrderedDict[_Subject, _Asked] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        tools.when_released(self._stop)

    def found(self, written: Written, plan: Plan, key: Key, now: int) -> tuple[Surprise, ...] | None:
        """Give what was found in a schedule, or None where that is not known yet; the key is woken when it is."""
        subject = (written, plan.calendars)
        found = self._found.get(subject)
        if found is not None:
            self._found.move_to_end(subject)
        if found is None or abs(now - found.at) > FRESH:
            self._asked.setdefault(subject, _Asked(plan, now)).keys[key] = None
            if self._task is None:
                self._task = asyncio.ensure_future(self._work())
        return found.surprises if found is not None else None

    async def _work(self) -> None:
        while self._asked:
            subject, asked = next(iter(self._asked.items()))
            context = Context(now=asked.at, default_zone=self._tools.default_zone)
            try:
                self._keep(subject, _Found(await self._searched(asked.plan, context), asked.at))
            except Exception:
                # Nobody is woken: whoever comes again, for whatever reason, asks again.
                self._tools.log.exception("the search for surprises in a schedule failed; others go on")
                del self._asked[subject]
                continue
            # Not sooner: whoever has asked meanwhile is told as well.
            for key in self._asked.pop(subject).keys:
                self._tools.wake(key)
        self._task = None

    async def _searched(self, plan: Plan, context: Context) -> tuple[Surprise, ...]:
        return await self._tools.compute.run(_search, plan.schedule, context, plan.usable, cost=_COST)

    def _keep(self, subject: _Subject, found: _Found) -> None:
        self._found[subject] = found
        self._found.move_to_end(subject)
        if len(self._found) > REMEMBERED:
            self._found.popitem(last=False)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _search(schedule: ScheduleSpec, context: Context, calendars: Mapping[str, Calendar]) -> tuple[Surprise, ...]:
    return tuple(surprises(schedule, context, KnownCalendars(calendars, all_there_are=True)))
