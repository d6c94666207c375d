"""The search for surprises in schedules: beside everything else, and once for schedules that are written the same.

It looks through years of time, which takes a thousand times as long as to tell the present value. So nobody waits for
it: whoever asks is told what is known, and woken when more is.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

from springtide.apis.fields import Context
from springtide.apis.scheduled.behaviors import ScheduleSpec
from springtide.apis.scheduled.conflicts import Surprise, surprises
from springtide.cluster.resources import Key
from springtide.cluster.tools import Tools
from springtide.controllers.metrics_producer.records import Written

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
    schedule: ScheduleSpec
    at: int
    keys: dict[Key, None] = field(default_factory=dict)
    """Who asks, in order."""


class Searches:
    """Searches schedules one after the other."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._found: OrderedDict[Written, _Found] = OrderedDict()
        self._asked: OrderedDict[Written, _Asked] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        tools.when_released(self._stop)

    def found(self, written: Written, schedule: ScheduleSpec, key: Key, now: int) -> tuple[Surprise, ...] | None:
        """Give what was found in a schedule, or None where that is not known yet; the key is woken when it is."""
        found = self._found.get(written)
        if found is not None:
            self._found.move_to_end(written)
        if found is None or abs(now - found.at) > FRESH:
            self._asked.setdefault(written, _Asked(schedule, now)).keys[key] = None
            if self._task is None:
                self._task = asyncio.ensure_future(self._work())
        return found.surprises if found is not None else None

    async def _work(self) -> None:
        while self._asked:
            written, asked = next(iter(self._asked.items()))
            context = Context(now=asked.at, default_zone=self._tools.default_zone)
            try:
                self._keep(written, _Found(await self._searched(asked.schedule, context), asked.at))
            except Exception:
                # Nobody is woken: whoever comes again, for whatever reason, asks again.
                self._tools.log.exception("the search for surprises in a schedule failed; others go on")
                del self._asked[written]
                continue
            # Not sooner: whoever has asked meanwhile is told as well.
            for key in self._asked.pop(written).keys:
                self._tools.wake(key)
        self._task = None

    async def _searched(self, schedule: ScheduleSpec, context: Context) -> tuple[Surprise, ...]:
        return await self._tools.compute.run(_search, schedule, context, cost=_COST)

    def _keep(self, written: Written, found: _Found) -> None:
        self._found[written] = found
        self._found.move_to_end(written)
        if len(self._found) > REMEMBERED:
            self._found.popitem(last=False)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _search(schedule: ScheduleSpec, context: Context) -> tuple[Surprise, ...]:
    return tuple(surprises(schedule, context))
