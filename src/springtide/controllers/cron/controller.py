"""Looks after CronFederatedHPAs: applies the firings of their rules, and tells what became of them.

The order of writes makes every firing applied at least once and recorded exactly once: first the target, then the
status with all records of the pass, then the cursor. Whoever dies in between finds the firing due again, or recorded
and only the cursor behind. Only the first cursor of an object comes before everything else: it says that nothing is
done yet. Between two firings nothing is written, and nobody wakes, but for times at which a calendar keeps a rule from
firing: the cursor goes past them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from springtide.almanac import Calendar
from springtide.cluster.conditions import Condition
from springtide.cluster.controller import Again, Controller, Permission, Watch, to_nobody
from springtide.cluster.errors import ClusterError
from springtide.cluster.kinds import DEFINITIONS, Kinds
from springtide.cluster.kinds import PERMISSIONS as READING_DEFINITIONS
from springtide.cluster.modes import Mode
from springtide.cluster.port import Patch
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.cluster.tools import Tools
from springtide.controllers import scalers
from springtide.controllers.calendars import ALL_CALENDARS, NO_CALENDARS, CompiledCalendar, calendars_in
from springtide.controllers.calendars import PERMISSIONS as READING_CALENDARS
from springtide.controllers.cron import opposition as rivalry
from springtide.controllers.cron.applying import Applier
from springtide.controllers.cron.cursor import ANNOTATION, Mark, write_cursor
from springtide.controllers.cron.history import News
from springtide.controllers.cron.judgement import Judgement, judgement_of
from springtide.controllers.cron.meaning import meaning_of
from springtide.controllers.cron.metrics import CronMetrics
from springtide.controllers.cron.notices import Notices
from springtide.controllers.cron.plan import Rival
from springtide.controllers.cron.records import ALL_CRONS, BY_CALENDAR, CRON_FEDERATED_HPAS, CronRecord
from springtide.controllers.cron.targets import Target
from springtide.controllers.cron.words import in_force
from springtide.controllers.scalers import BY_TARGET, scalers_of

PATIENCE = 10
"""Seconds after which an object is looked at again when the cluster could not be read or written."""


class CronFederatedHPAController(Controller):
    """Applies the rules of CronFederatedHPAs at their times."""

    name = "cron-federated-hpa"
    by_itself = True
    scales = True
    workers = 32
    watches = (
        Watch(ALL_CRONS),
        Watch(DEFINITIONS, to_nobody),
        Watch(ALL_CALENDARS, to_nobody, optional=True),
        Watch(scalers.ALL_HPAS, to_nobody),
        Watch(scalers.ALL_FEDERATED_HPAS, to_nobody, optional=True),
        Watch(scalers.ALL_HORIZONTAL_AUTOSCALERS, to_nobody, optional=True),
        Watch(scalers.ALL_SCALED_OBJECTS, to_nobody, optional=True),
    )
    permissions = (
        Permission(CRON_FEDERATED_HPAS, ("get", "list", "watch", "patch")),
        Permission(CRON_FEDERATED_HPAS, ("patch",), subresource="status"),
        *READING_DEFINITIONS,
        *READING_CALENDARS,
        *rivalry.PERMISSIONS,
    )

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._kinds = Kinds(tools.store(DEFINITIONS))
        self._metrics = _measured_by(tools)
        self._applier = Applier(tools, self._kinds, self._metrics)
        self._notices = Notices(tools.events)
        self._judged: tuple[int, dict[Key, tuple[CronRecord, Judgement]]] = (0, {})
        """What was found of rivals, as of an instant."""
        rivalry.wake_the_opposed(tools)
        tools.follow(ALL_CALENDARS, self._wake_those_with)

    async def reconcile(self, key: Key, now: int) -> Again | None:
        """Do what is due of one object, record it, and come back when more is."""
        record: CronRecord | None = self.tools.store(ALL_CRONS).get(key)
        if record is None or record.going:
            self._applier.forget(key)
            self._notices.forget(key)
            return None
        try:
            with self._metrics.looking_after():
                return await self._look_after(key, record, now)
        except ClusterError as failure:
            if not failure.retriable:
                raise
            # Pauses that grow would let a firing wait as long again as the cluster was away.
            self.tools.log.warning("%s is looked at again in %d s: %s", key, PATIENCE, failure)
            return Again(after=PATIENCE)

    async def _look_after(self, key: Key, record: CronRecord, now: int) -> Again | None:
        judgement = self._judge(record, now)
        if judgement.before is None:
            # First of all: an object that is edited before it has a cursor loses what was due until then.
            await self._write_cursor(key, record, judgement.first_marks())
            begun = await self._seen_again(key, record)
            if begun is None:
                return None
            record, judgement = begun, self._judge(begun, now)
        news, pending = await self._applier.carry_out(key, judgement, now)
        await self._record(key, record, judgement, news, now)
        await self._write_cursor(key, record, judgement.marks(pending))
        attempts = self._applier.attempts
        attempts.settle(key, frozenset(pending))
        times = [at for at in (judgement.plan.wake, attempts.next_try(key)) if at is not None]
        return Again(at=min(times)) if times else None

    def _judge(self, record: CronRecord, now: int) -> Judgement:
        zone = self.tools.default_zone
        known = self._calendars(record)
        meaning = meaning_of(record, zone)
        return judgement_of(
            record,
            meaning,
            known,
            default_zone=zone,
            now=now,
            rivals=lambda: self._rivals(record, now),
            applied=self._applier.unrecorded.times(record.origin.key),
        )

    def _rivals(self, record: CronRecord, now: int) -> Sequence[Rival]:
        """Find the rules of other objects that have the same target; one that is paused or going does not act."""
        found: list[Rival] = []
        for other in self.tools.store(ALL_CRONS).by(BY_TARGET, record.target):
            if other.origin.uid != record.origin.uid and not (other.paused or other.going):
                found += self._alone(other, now).as_rivals(precedes=other.origin.key < record.origin.key)
        return found

    def _alone(self, record: CronRecord, now: int) -> Judgement:
        """Judge an object as if it had no rivals, once in a second: all of its rivals ask for it when they fire."""
        if self._judged[0] != now:
            self._judged = (now, {})
        known = self._judged[1].get(record.origin.key)
        if known is None or known[0] is not record:
            zone = self.tools.default_zone
            meaning = meaning_of(record, zone)
            known = record, judgement_of(record, meaning, self._calendars(record), default_zone=zone, now=now)
            self._judged[1][record.origin.key] = known
        return known[1]

    async def _record(self, key: Key, record: CronRecord, judgement: Judgement, news: News, now: int) -> None:
        """Write what happened and what comes next, all in one, and tell people."""
        conditions = self._conditions(record, judgement)
        fields = self._kinds.declared(
            CRON_FEDERATED_HPAS, {"executionHistories": judgement.histories(news) or None, "conditions": []}
        )
        told = conditions if fields.pop("conditions", None) is not None else ()
        before = record.observed()
        await self.tools.client.apply_status(
            CRON_FEDERATED_HPAS, fields, told, of=before, now=now, because=_summary(news)
        )
        self._applier.unrecorded.settle(key)
        reference = judgement.meaning.target
        target = "" if reference is None else str(Target(reference, key.namespace))
        done = news if self.tools.client.mode is Mode.ACT else News()  # who only observes has scaled nothing
        self._notices.tell(record, before["status"].get("conditions") or [], conditions, done, target)

    def _conditions(self, record: CronRecord, judgement: Judgement) -> tuple[Condition, ...]:
        meaning = judgement.meaning
        ready = in_force(meaning, meaning.missing_calendars(judgement.calendars))
        if meaning.target is None:
            return (ready,)
        return ready, rivalry.unopposed(meaning.target, scalers_of(self.tools, record.target))

    async def _write_cursor(self, key: Key, record: CronRecord, marks: Mapping[str, Mark]) -> None:
        """Write how far the rules have come, where that is not what stands there."""
        cursor = write_cursor(marks)
        if cursor == record.cursor:
            return
        latest = await self._seen_again(key, record)
        if latest is None or latest.cursor != record.cursor:
            return  # somebody else has moved it: that change brings the object here again
        change: Object = {"metadata": {"annotations": {ANNOTATION: cursor}}}
        because = "this is how far the rules have come"
        await self.tools.client.patch(CRON_FEDERATED_HPAS, Patch.merge(change), of=latest.origin, because=because)

    async def _seen_again(self, key: Key, record: CronRecord) -> CronRecord | None:
        """Give the same object as our own writes have left it; None where it is gone."""
        await self.tools.shown(key)
        latest: CronRecord | None = self.tools.store(ALL_CRONS).get(key)
        return latest if latest is not None and latest.origin.uid == record.origin.uid else None

    def _calendars(self, record: CronRecord) -> Mapping[str, Calendar]:
        return calendars_in(self.tools.store(ALL_CALENDARS)) if record.calendars else NO_CALENDARS

    def _wake_those_with(self, delta: Delta[CompiledCalendar]) -> None:
        for key in self.tools.store(ALL_CRONS).keys_by(BY_CALENDAR, delta.key.name):
            self.tools.wake(key)


def _measured_by(tools: Tools) -> CronMetrics:
    try:
        return tools.services.get(CronMetrics)
    except LookupError:
        return CronMetrics()


def _summary(news: News) -> str:
    done = [f"`{rule}` was applied{_times(len(found))}" for rule, found in news.successes.items()]
    failed = [f"`{rule}` was not" for rule in news.failures]
    return f"of the rules {', '.join((*done, *failed))}" if done or failed else "the rules say what comes next"


def _times(count: int) -> str:
    return "" if count == 1 else f" {count} times"
