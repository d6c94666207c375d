"""Producers that follow a schedule: compiles schedules, and searches in the background what takes too long.

A schedule that comes and goes all the time without effect, or has very many behaviours, takes seconds to search. Few
users write such schedules, and no reconcile of another object waits for them. The search for ambiguities covers years
and is always made in the background: once for schedules with equal specs, and again when a calendar changes.
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
from springtide.controllers.calendar.state import Calendars
from springtide.controllers.decision import Decision
from springtide.controllers.metrics_producer.compiled_spec import (
    LISTED_CHANGES,
    QUICK_BUDGET,
    THOROUGH_BUDGET,
    CalendarsUsed,
    CompiledSchedule,
    ScheduleState,
    calendars_used,
    compile_with_calendars,
)
from springtide.controllers.metrics_producer.decide import SeriesAction, decide_schedule
from springtide.controllers.metrics_producer.records import ProducerRecord, WrittenProducer

S = TypeVar("S", bound=Hashable)
R = TypeVar("R")


@dataclass(slots=True)
class _PendingWork(Generic[R]):
    work: Callable[[], Awaitable[R]]
    keys: dict[Key, None] = field(default_factory=dict)
    """The keys to enqueue afterwards, in order."""


class BackgroundWork(Generic[S, R]):
    """Runs one piece of work after the other, each once for all keys that request the same subject."""

    def __init__(self, context: ControllerContext, name: str, store: Callable[[S, R], None]) -> None:
        self._context = context
        self._name = name
        self._store = store
        self._pending: OrderedDict[S, _PendingWork[R]] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        context.on_release(self._stop)

    def submit(self, subject: S, key: Key, work: Callable[[], Awaitable[R]]) -> None:
        """Queue work unless it is queued already; the key is enqueued when the result is stored."""
        self._pending.setdefault(subject, _PendingWork(work)).keys[key] = None
        if self._task is None:
            self._task = asyncio.ensure_future(self._work())

    async def _work(self) -> None:
        while self._pending:
            subject, pending = next(iter(self._pending.items()))
            try:
                self._store(subject, await pending.work())
            except Exception:
                # No key is enqueued: the next reconcile of any of them requests it again.
                self._context.log.exception("%s failed; other work goes on", self._name)
                del self._pending[subject]
                continue
            # Taken out only now, so that keys that requested it meanwhile are enqueued as well.
            for key in self._pending.pop(subject).keys:
                self._context.enqueue(key)
        self._task = None

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


_PRESENT_COST = 0.5


class BackgroundSearches:
    """Searches the states of schedules that a reconcile has no time for, and keeps the last one of each."""

    def __init__(self, context: ControllerContext, listed: int) -> None:
        self._context = context
        self._listed = listed
        self._compiled: dict[Key, CompiledSchedule] = {}
        self._states: dict[Key, ScheduleState] = {}
        self._work_queue = BackgroundWork[Key, tuple[CompiledSchedule, ScheduleState]](
            context, "the search of a schedule", self._store
        )

    def last_state(self, key: Key, compiled: CompiledSchedule, now: int, *, needs_value: bool) -> ScheduleState | None:
        """Return the last known state, None before the first; the key is enqueued when there is a newer one.

        A search is queued if the last state lacks the next change or, with `needs_value`, the present value.
        """
        if self._compiled.get(key) is not compiled:
            self.forget(key)
            self._compiled[key] = compiled
        known = self._states.get(key)
        if known is None or not known.knows_next_change(now) or (needs_value and not known.holds(now)):
            self._work_queue.submit(key, key, lambda: self._search(compiled, now))
        return known

    def forget(self, key: Key) -> None:
        """Drop a schedule that is gone."""
        self._compiled.pop(key, None)
        self._states.pop(key, None)

    async def _search(self, compiled: CompiledSchedule, now: int) -> tuple[CompiledSchedule, ScheduleState]:
        arguments = (compiled.schedule, compiled.zone.name, compiled.calendars)
        return compiled, await self._context.compute.run(
            _search_present, *arguments, now, self._listed, cost=_PRESENT_COST
        )

    def _store(self, key: Key, result: tuple[CompiledSchedule, ScheduleState]) -> None:
        compiled, state = result
        if self._compiled.get(key) is compiled:
            self._states[key] = state


def _search_present(
    schedule: ScheduleSpec, zone: str, calendars: CalendarsUsed, now: int, listed: int
) -> ScheduleState:
    return compile_with_calendars(schedule, zone, calendars).at(now, listed, THOROUGH_BUDGET)


_Subject: TypeAlias = tuple[WrittenProducer, CalendarsUsed]
MOST_CACHED = 16_384
"""How many different schedules are cached; the least recently used one is dropped."""
SEARCH_AGAIN_AFTER = 30 * 24 * 60 * 60
"""Seconds after which a schedule is searched again: what happens once is over some day."""
_AMBIGUITY_COST = 0.002


@dataclass(frozen=True, slots=True)
class _SearchResult:
    findings: tuple[ScheduleFinding, ...]
    at: int


class AmbiguitySearches:
    """Searches schedules for ambiguities, one after the other."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._results: OrderedDict[_Subject, _SearchResult] = OrderedDict()
        self._work_queue = BackgroundWork[_Subject, _SearchResult](
            context, "the search for ambiguities in a schedule", self._store
        )

    def known_findings(
        self, written: WrittenProducer, compiled: CompiledSchedule, key: Key, now: int
    ) -> tuple[ScheduleFinding, ...] | None:
        """Return the ambiguities of a schedule, or None before they are known; the key is enqueued when they are."""
        subject = (written, compiled.calendars)
        result = self._results.get(subject)
        if result is not None:
            self._results.move_to_end(subject)
        if result is None or abs(now - result.at) > SEARCH_AGAIN_AFTER:
            self._work_queue.submit(subject, key, lambda: self._search(compiled, now))
        return result.findings if result is not None else None

    async def _search(self, compiled: CompiledSchedule, now: int) -> _SearchResult:
        context = ValidationContext(now=now, default_zone=self._context.default_zone)
        return _SearchResult(
            await self._context.compute.run(
                _search_ambiguities, compiled.schedule, context, compiled.usable, cost=_AMBIGUITY_COST
            ),
            now,
        )

    def _store(self, subject: _Subject, result: _SearchResult) -> None:
        self._results[subject] = result
        self._results.move_to_end(subject)
        if len(self._results) > MOST_CACHED:
            self._results.popitem(last=False)


def _search_ambiguities(
    schedule: ScheduleSpec, context: ValidationContext, calendars: Mapping[str, DayCalendar]
) -> tuple[ScheduleFinding, ...]:
    return tuple(schedule_findings(schedule, context, KnownCalendars(calendars, complete=True)))


_RETRY_AFTER = 60
"""Seconds until a producer is requeued that waits for a search, which may have failed."""


class Schedules:
    """The compiled schedules of all producers that have one."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._ambiguities = AmbiguitySearches(context)
        self._background = BackgroundSearches(context, LISTED_CHANGES)
        self._compiled: dict[Key, CompiledSchedule] = {}
        self._states: dict[Key, ScheduleState] = {}
        self._users: dict[str, dict[Key, None]] = {}
        """The producers that refer to each calendar, by its name, in order."""
        self._calendars = context.state(Calendars)
        context.subscribe(Calendars, self._enqueue_users)

    def decide(
        self, record: ProducerRecord, schedule: ScheduleSpec, status: Object, now: int
    ) -> tuple[Decision[SeriesAction] | None, Result | None]:
        """Decide about a schedule without errors; no decision while its value is being searched."""
        compiled = self._compile(record.key, schedule)
        state = self._state(record.key, compiled, now)
        if state is None:
            return None, Result(requeue_after=_RETRY_AFTER)
        findings = self._ambiguities.known_findings(record.written, compiled, record.key, now)
        decision = decide_schedule(compiled, state, findings, status, now)
        return decision, Result(requeue_at=decision.requeue_at) if decision.requeue_at is not None else None

    def forget(self, key: Key) -> None:
        """Drop a producer that is gone, or has another source now."""
        self._states.pop(key, None)
        self._background.forget(key)
        compiled = self._compiled.pop(key, None)
        for name, _ in compiled.calendars if compiled is not None else ():
            users = self._users[name]
            del users[key]
            if not users:
                del self._users[name]

    def _compile(self, key: Key, schedule: ScheduleSpec) -> CompiledSchedule:
        """Return a schedule compiled; it is compiled again only if it or one of its calendars has changed."""
        used = calendars_used(schedule, self._calendars.find)
        compiled = self._compiled.get(key)
        if compiled is None or compiled.schedule is not schedule or compiled.calendars != used:
            self.forget(key)
            compiled = self._compiled[key] = compile_with_calendars(schedule, self._context.default_zone, used)
            for name, _ in compiled.calendars:
                self._users.setdefault(name, {})[key] = None
        return compiled

    def _state(self, key: Key, compiled: CompiledSchedule, now: int) -> ScheduleState | None:
        """Return the state of a schedule; it is searched again only if the last one does not hold any more."""
        state = self._states.get(key)
        if state is None or not state.holds(now):
            state = self._states[key] = compiled.at(now, LISTED_CHANGES, QUICK_BUDGET)
        if state.complete:
            return state
        known = self._background.last_state(key, compiled, now, needs_value=not state.certain)
        if not state.certain:
            return known if known is not None and known.holds(now) else None
        if known is None or known.since > now:
            return state
        ahead = tuple(change for change in known.upcoming if change[0] > now)
        return replace(state, upcoming=ahead, complete=known.complete)

    def _enqueue_users(self, calendar: str) -> None:
        for key in self._users.get(calendar, ()):
            self._context.enqueue(key)
