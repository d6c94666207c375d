"""The MetricsProducer controller: makes metrics from schedules, queues and nodes, and tells in the status what it made.

What is exported is put down before the status is written: a metric does not wait for the API server. All that a value
depends on is the spec, other objects and the present, so it is right after a restart, a stall or a step of the clock.
"""

from __future__ import annotations

from springtide.apis.scheduled.producer import (
    MetricsProducer,
    MetricsProducerSpec,
    QueueSpec,
    ReservedCapacitySpec,
    ScheduleSpec,
)
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Watch, cache_only
from springtide.cluster.kinds import DEFINITIONS, KindInfo, KindRegistry
from springtide.cluster.kinds import PERMISSIONS as DEFINITION_PERMISSIONS
from springtide.cluster.pods_and_nodes import ALL_NODES, ALL_PODS
from springtide.cluster.pods_and_nodes import READ_PERMISSIONS as NODE_PERMISSIONS
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.controllers.calendars import ALL_CALENDARS
from springtide.controllers.calendars import PERMISSIONS as CALENDAR_PERMISSIONS
from springtide.controllers.grants import ALL_GRANTS
from springtide.controllers.grants import PERMISSIONS as GRANT_PERMISSIONS
from springtide.controllers.metrics_producer.clock_steps import on_clock_set_back
from springtide.controllers.metrics_producer.decide import ProducerDecision, decide_last_known
from springtide.controllers.metrics_producer.queues import QueueLengths
from springtide.controllers.metrics_producer.records import (
    ALL_PRODUCERS,
    METRICS_PRODUCERS,
    ProducerRecord,
    WrittenProducer,
    expected_metrics,
)
from springtide.controllers.metrics_producer.reserved_capacity import ReservedCapacity
from springtide.controllers.metrics_producer.schedules import Schedules
from springtide.controllers.validated import Validated, validated
from springtide.metrics.series import SeriesStore

_NOT_KNOWN = Condition("Calculable", ConditionStatus.UNKNOWN, "Invalid", "what the metric is made from is not known")
_PENDING_CAPACITY = ProducerDecision(
    active=Condition(
        "Active",
        ConditionStatus.FALSE,
        "NotComputedYet",
        "this version does not compute pending capacity: no metric is exported",
    ),
    calculable=Condition("Calculable", ConditionStatus.UNKNOWN, "NotComputedYet", "pending pods are not looked at"),
)


class MetricsProducerController(Controller):
    """Exports the metrics of MetricsProducers, and keeps their status."""

    name = "metrics-producer"
    independent = True
    watches = (
        Watch(ALL_PRODUCERS),
        Watch(ALL_CALENDARS, keys=cache_only, optional=True),
        Watch(DEFINITIONS, keys=cache_only),
        Watch(ALL_GRANTS, keys=cache_only, optional=True),
        Watch(ALL_NODES, keys=cache_only),
        Watch(ALL_PODS, keys=cache_only),
    )
    permissions = (
        Permission(METRICS_PRODUCERS, ("get", "list", "watch")),
        Permission(METRICS_PRODUCERS, ("patch",), subresource="status"),
        *CALENDAR_PERMISSIONS,
        *DEFINITION_PERMISSIONS,
        *GRANT_PERMISSIONS,
        *NODE_PERMISSIONS,
    )
    workers = 16

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._book = context.services.get(SeriesStore)
        self._kinds = KindRegistry(context.store(DEFINITIONS))
        self._schedules = Schedules(context)
        self._reservations = ReservedCapacity(context)
        self._queues = QueueLengths(context)
        self._read: dict[Key, tuple[WrittenProducer, Validated[MetricsProducer]]] = {}
        context.on_release(self._book.reset)
        context.follow(ALL_PRODUCERS, self._producer_changed)
        # Now that all producers are expected, what nobody expects is not there.
        self._book.mark_synced()
        context.follow(DEFINITIONS, self._definition_changed)
        on_clock_set_back(context, self._look_at_all)

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Export what a producer comes to, write its status, and come back when that changes."""
        record = self.context.store(ALL_PRODUCERS).get(key)
        if record is None:
            return None
        status = record.status()
        outcome = self._outcome(record, status, now)
        if not isinstance(outcome, ProducerDecision):
            return outcome
        if outcome.series is not None:
            self._book.put(key, outcome.series.values, fresh_until=outcome.series.fresh_until)
        else:
            self._book.remove(key)
        await self._tell(record, status, outcome, now)
        return outcome.again

    def _outcome(self, record: ProducerRecord, status: Object, now: int) -> ProducerDecision | Result | None:
        """Ask the source of a producer; what is no outcome says when there will be one."""
        key, found = record.key, self._judged(record, now)
        match found.sound:
            case None:
                invalid = Condition("Active", ConditionStatus.FALSE, "Invalid", found.words)
                return decide_last_known(invalid, _NOT_KNOWN, status, self._book.get(key), now)
            case MetricsProducer(spec=MetricsProducerSpec(schedule=ScheduleSpec() as schedule)):
                return self._schedules.produce(record, schedule, status, now)
            case MetricsProducer(spec=MetricsProducerSpec(reserved_capacity=ReservedCapacitySpec() as reserved)):
                return self._reservations.produce(key, reserved)
            case MetricsProducer(spec=MetricsProducerSpec(queue=QueueSpec() as queue)):
                return self._queues.produce(key, queue, status, self._book.get(key), now)
            case _:
                return _PENDING_CAPACITY

    def _judged(self, record: ProducerRecord, now: int) -> Validated[MetricsProducer]:
        """Read a producer, once for what its author has written; no error of it depends on the present."""
        read = self._read.get(record.key)
        if read is None or read[0] != record.written:
            self._forget(record.key)
            found = validated(record.as_read(), MetricsProducer, now=now, default_zone=self.context.default_zone)
            read = self._read[record.key] = (record.written, found)
        return read[1]

    def _forget(self, key: Key) -> None:
        self._read.pop(key, None)
        for source in (self._schedules, self._reservations, self._queues):
            source.forget(key)

    async def _tell(self, record: ProducerRecord, status: Object, outcome: ProducerDecision, now: int) -> None:
        origin = record.as_origin(status)
        written = await self.context.client.apply_status(
            METRICS_PRODUCERS,
            self._kinds.declared(METRICS_PRODUCERS, outcome.status),
            outcome.conditions,
            of=origin,
            now=now,
            because=outcome.active.message,
            observes_generation=False,
        )
        if written:
            for notice in (*outcome.notices, *outcome.warnings(status)):
                self.context.events.record(METRICS_PRODUCERS, origin, notice)

    def _producer_changed(self, delta: Delta[ProducerRecord]) -> None:
        if delta.new is None:
            # Here and not when it is reconciled: while everything is paused nothing is, and its metric must go.
            self._book.remove(delta.key)
            self._forget(delta.key)
        elif delta.old is None or delta.old.written != delta.new.written:
            self._book.expect(delta.key, expected_metrics(delta.new.written.spec))

    def _definition_changed(self, delta: Delta[tuple[KindInfo, ...]]) -> None:
        """Write statuses anew when the schema of producers changes: it may have more places than before."""
        if delta.old is not None and delta.key.name == str(METRICS_PRODUCERS):
            self._look_at_all()

    def _look_at_all(self) -> None:
        for key in self.context.store(ALL_PRODUCERS).keys():  # noqa: SIM118 - a store is no dictionary: its keys are in order
            self.context.enqueue(key)
