"""Work that nobody waits for: done beside everything else, one piece after the other.

Whoever asks goes on with what is known, and is woken when more is.

Looks at schedules that take too long to be looked at on the way: beside everything else.

Such a schedule comes and goes all the time without any effect, or is made of very many behaviours that do. Hardly
anybody means it, but nobody else must wait for it.

The search for surprises in schedules: beside everything else, and once for schedules that are written the same.

Those that refer to calendars are searched anew when a calendar changes.

It looks through years of time, which takes a thousand times as long as to tell the present value. So nobody waits for
it.

Producers that follow a schedule: their compiled plans, and who must be told when a calendar changes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypeVar

from springtide.almanac import DayCalendar
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import KnownCalendars
from springtide.apis.scheduled.producer import ScheduleSpec
from springtide.apis.scheduled.schedule import ScheduleFinding, schedule_findings
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Result
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.controllers.calendars import ALL_CALENDARS, CompiledCalendar
from springtide.controllers.metrics_producer.compiled_spec import (
    QUICK_BUDGET,
    THOROUGH_BUDGET,
    CalendarsUsed,
    CompiledSchedule,
    ScheduleState,
    calendars_used,
    compile_with_calendars,
    compile_with_store,
)
from springtide.controllers.metrics_producer.decide import LISTED_CHANGES, ProducerDecision, decide_schedule
from springtide.controllers.metrics_producer.records import ProducerRecord, WrittenProducer

S = TypeVar("S", bound=Hashable)
R = TypeVar("R")


@dataclass(slots=True)
class _PendingWork(Generic[R]):
    work: Callable[[], Awaitable[R]]
    keys: dict[Key, None] = field(default_factory=dict)
    """Who asks, in order."""


class BackgroundWork(Generic[S, R]):
    """Does one piece of work for each subject, for all who ask about it meanwhile."""

    def __init__(self, context: ControllerContext, name: str, keep: Callable[[S, R], None]) -> None:
        self._tools = context
        self._name = name
        self._keep = keep
        self._asked: OrderedDict[S, _PendingWork[R]] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        context.on_release(self._stop)

    def ask(self, subject: S, key: Key, work: Callable[[], Awaitable[R]]) -> None:
        """Have work done, unless it is on its way; the key is woken when its result is kept."""
        self._asked.setdefault(subject, _PendingWork(work)).keys[key] = None
        if self._task is None:
            self._task = asyncio.ensure_future(self._work())

    async def _work(self) -> None:
        while self._asked:
            subject, asked = next(iter(self._asked.items()))
            try:
                self._keep(subject, await asked.work())
            except Exception:
                # Nobody is woken: whoever comes again, for whatever reason, asks again.
                self._tools.log.exception("%s failed; others go on", self._name)
                del self._asked[subject]
                continue
            # Not sooner: whoever has asked meanwhile is told as well.
            for key in self._asked.pop(subject).keys:
                self._tools.enqueue(key)
        self._task = None

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


_PRESENT_COST = 0.5


class BackgroundSearches:
    """Keeps the last thorough look at each plan that needs one."""

    def __init__(self, context: ControllerContext, listed: int) -> None:
        self._tools = context
        self._listed = listed
        self._plans: dict[Key, CompiledSchedule] = {}
        self._seen: dict[Key, ScheduleState] = {}
        self._errands = BackgroundWork[Key, tuple[CompiledSchedule, ScheduleState]](
            context, "the look at a schedule", self._keep
        )

    def seen(self, key: Key, plan: CompiledSchedule, now: int, *, at_present: bool) -> ScheduleState | None:
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

    async def _look(self, plan: CompiledSchedule, now: int) -> tuple[CompiledSchedule, ScheduleState]:
        place = (plan.schedule, plan.zone.name, plan.calendars)
        return plan, await self._tools.compute.run(_search_present, *place, now, self._listed, cost=_PRESENT_COST)

    def _keep(self, key: Key, look: tuple[CompiledSchedule, ScheduleState]) -> None:
        plan, present = look
        if self._plans.get(key) is plan:
            self._seen[key] = present


def _search_present(
    schedule: ScheduleSpec, zone: str, calendars: CalendarsUsed, now: int, listed: int
) -> ScheduleState:
    return compile_with_calendars(schedule, zone, calendars).at(now, listed, THOROUGH_BUDGET)


_Subject: TypeAlias = tuple[WrittenProducer, CalendarsUsed]
MOST_CACHED = 16_384
"""How many different schedules are kept in mind; the one not asked for in the longest time is forgotten."""
SEARCH_AGAIN_AFTER = 30 * 24 * 60 * 60
"""Seconds after which a schedule is searched anew: what happens once is over some day."""
_AMBIGUITY_COST = 0.002


@dataclass(frozen=True, slots=True)
class _FoundAmbiguities:
    surprises: tuple[ScheduleFinding, ...]
    at: int


class AmbiguitySearches:
    """Searches schedules one after the other."""

    def __init__(self, context: ControllerContext) -> None:
        self._tools = context
        self._found: OrderedDict[_Subject, _FoundAmbiguities] = OrderedDict()
        self._errands = BackgroundWork[_Subject, _FoundAmbiguities](
            context, "the search for surprises in a schedule", self._keep
        )

    def found(
        self, written: WrittenProducer, plan: CompiledSchedule, key: Key, now: int
    ) -> tuple[ScheduleFinding, ...] | None:
        """Give what was found in a schedule, or None where that is not known yet; the key is woken when it is."""
        subject = (written, plan.calendars)
        found = self._found.get(subject)
        if found is not None:
            self._found.move_to_end(subject)
        if found is None or abs(now - found.at) > SEARCH_AGAIN_AFTER:
            self._errands.ask(subject, key, lambda: self._searched(plan, now))
        return found.surprises if found is not None else None

    async def _searched(self, plan: CompiledSchedule, now: int) -> _FoundAmbiguities:
        context = ValidationContext(now=now, default_zone=self._tools.default_zone)
        return _FoundAmbiguities(
            await self._tools.compute.run(
                _search_ambiguities, plan.schedule, context, plan.usable, cost=_AMBIGUITY_COST
            ),
            now,
        )

    def _keep(self, subject: _Subject, found: _FoundAmbiguities) -> None:
        self._found[subject] = found
        self._found.move_to_end(subject)
        if len(self._found) > MOST_CACHED:
            self._found.popitem(last=False)


def _search_ambiguities(
    schedule: ScheduleSpec, context: ValidationContext, calendars: Mapping[str, DayCalendar]
) -> tuple[ScheduleFinding, ...]:
    return tuple(schedule_findings(schedule, context, KnownCalendars(calendars, complete=True)))


_RETRY_AFTER = 60
"""Seconds after which somebody comes again who was not woken: the look that he waits for may have failed."""


class Schedules:
    """The plans of all producers that follow a schedule."""

    def __init__(self, context: ControllerContext) -> None:
        self._tools = context
        self._searches = AmbiguitySearches(context)
        self._lookouts = BackgroundSearches(context, LISTED_CHANGES)
        self._plans: dict[Key, CompiledSchedule] = {}
        self._presents: dict[Key, ScheduleState] = {}
        self._users: dict[str, dict[Key, None]] = {}
        """By the names of calendars: who refers to them, in order."""
        context.follow(ALL_CALENDARS, self._calendar_changed)

    def produce(
        self, record: ProducerRecord, schedule: ScheduleSpec, status: Object, now: int
    ) -> ProducerDecision | Result:
        """Tell what a schedule without errors comes to now; where that is not known yet, the producer will be woken."""
        plan = self._plan(record.key, schedule)
        present = self._present(record.key, plan, now)
        if present is None:
            return Result(requeue_after=_RETRY_AFTER)
        return decide_schedule(plan, present, self._searches.found(record.written, plan, record.key, now), status, now)

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

    def _plan(self, key: Key, schedule: ScheduleSpec) -> CompiledSchedule:
        """Give the plan of a schedule, compiled anew only where the schedule or a calendar has changed."""
        calendars = self._tools.store(ALL_CALENDARS)
        plan = self._plans.get(key)
        if plan is None or plan.schedule is not schedule or plan.calendars != calendars_used(schedule, calendars):
            self.forget(key)
            plan = self._plans[key] = compile_with_store(schedule, self._tools.default_zone, calendars)
            for name, _ in plan.calendars:
                self._users.setdefault(name, {})[key] = None
        return plan

    def _present(self, key: Key, plan: CompiledSchedule, now: int) -> ScheduleState | None:
        """Look at the plan anew only where what was seen last does not hold: every write brings a key once more."""
        present = self._presents.get(key)
        if present is None or not present.holds(now):
            present = self._presents[key] = plan.at(now, LISTED_CHANGES, QUICK_BUDGET)
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
            self._tools.enqueue(key)
