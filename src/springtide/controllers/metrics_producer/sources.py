"""The sources of MetricsProducers: validates each producer, and decides about it by what its metrics are made from."""

from __future__ import annotations

from springtide.apis.scheduled.producer import (
    MetricsProducer,
    MetricsProducerSpec,
    QueueSpec,
    ReservedCapacitySpec,
    ScheduleSpec,
)
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Result
from springtide.cluster.resources import Key, Object
from springtide.controllers.decision import Decision
from springtide.controllers.metrics_producer.decide import SeriesAction, decide_invalid, decide_pending_capacity
from springtide.controllers.metrics_producer.queues import QueueLengths
from springtide.controllers.metrics_producer.records import ProducerRecord, WrittenProducer
from springtide.controllers.metrics_producer.reserved_capacity import ReservedCapacity
from springtide.controllers.metrics_producer.schedules import Schedules
from springtide.controllers.validated import Validated, validated
from springtide.metrics.series import SeriesStore


class ProducerSources:
    """The schedules, queues and groups of nodes of all producers, each under the key of its producer."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._series = context.state(SeriesStore)
        self._schedules = Schedules(context)
        self._reserved = ReservedCapacity(context)
        self._queues = QueueLengths(context)
        self._validated: dict[Key, tuple[WrittenProducer, Validated[MetricsProducer]]] = {}

    def decide(
        self, record: ProducerRecord, status: Object, now: int
    ) -> tuple[Decision[SeriesAction] | None, Result | None]:
        """Decide by the source of a producer; no decision while the source is still being read or searched."""
        key = record.key
        verdict = self._validate(record, now)
        match verdict.sound:
            case None:
                return decide_invalid(verdict.error_message, status, self._series.get(key), now), None
            case MetricsProducer(spec=MetricsProducerSpec(schedule=ScheduleSpec() as schedule)):
                return self._schedules.decide(record, schedule, status, now)
            case MetricsProducer(spec=MetricsProducerSpec(reserved_capacity=ReservedCapacitySpec() as reserved)):
                return self._reserved.decide(key, reserved, status)
            case MetricsProducer(spec=MetricsProducerSpec(queue=QueueSpec() as queue)):
                return self._queues.decide(key, queue, status, self._series.get(key), now)
            case _:
                return decide_pending_capacity(status), None

    def forget(self, key: Key) -> None:
        """Drop a producer that is gone, or whose spec a user has changed."""
        self._validated.pop(key, None)
        for source in (self._schedules, self._reserved, self._queues):
            source.forget(key)

    def _validate(self, record: ProducerRecord, now: int) -> Validated[MetricsProducer]:
        """Validate a producer once for each spec that a user writes; no error depends on the present."""
        known = self._validated.get(record.key)
        if known is None or known[0] != record.written:
            self.forget(record.key)
            verdict = validated(record.as_read(), MetricsProducer, now=now, default_zone=self._context.default_zone)
            known = self._validated[record.key] = (record.written, verdict)
        return known[1]
