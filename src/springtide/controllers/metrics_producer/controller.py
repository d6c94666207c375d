"""The MetricsProducer controller: exports metrics of schedules, queues and nodes, and writes the status.

A series is exported before the status is written: a metric does not wait for the API server. A value depends on nothing
but the spec, other objects and the present, so it is right after a restart, a stall or a step of the clock.
"""

from __future__ import annotations

from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Urgency, Watch, cache_only
from springtide.cluster.kinds import PERMISSIONS as DEFINITION_PERMISSIONS
from springtide.cluster.kinds import KindInfo, KindRegistry
from springtide.cluster.pods_and_nodes import ALL_NODES, ALL_PODS
from springtide.cluster.pods_and_nodes import READ_PERMISSIONS as NODE_PERMISSIONS
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.controllers.calendar.state import PERMISSIONS as CALENDAR_PERMISSIONS
from springtide.controllers.calendar.state import Calendars
from springtide.controllers.decision import Decision
from springtide.controllers.grant.state import PERMISSIONS as GRANT_PERMISSIONS
from springtide.controllers.grant.state import Grants
from springtide.controllers.metrics_producer.decide import ExportSeries, SeriesAction
from springtide.controllers.metrics_producer.records import (
    ALL_PRODUCERS,
    METRICS_PRODUCERS,
    ProducerRecord,
    expected_metrics,
)
from springtide.controllers.metrics_producer.sources import ProducerSources
from springtide.metrics.queues import QueueReader
from springtide.metrics.series import SeriesStore


class MetricsProducerController(Controller):
    """Exports the metrics of MetricsProducers, and keeps their status."""

    name = "metrics-producer"
    independent = True
    skips_own_writes = True
    watches = (
        Watch(ALL_PRODUCERS),
        Watch(ALL_NODES, keys=cache_only),
        Watch(ALL_PODS, keys=cache_only),
    )
    states = (KindRegistry, Calendars, Grants)
    provides = (SeriesStore,)
    optional_needs = (QueueReader,)
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
        self._series = context.state(SeriesStore)
        self._registry = context.state(KindRegistry)
        self._sources = ProducerSources(context)
        context.follow(ALL_PRODUCERS, self._follow_producer)
        # All producers are expected now: a series that no producer is expected to have does not exist.
        self._series.mark_synced()
        context.subscribe(KindRegistry, self._follow_definition)

    def urgency(self, record: ProducerRecord, now: int) -> Urgency:
        """Producers whose value has changed since their status was written come first, then new ones."""
        return record.urgency(now)

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Export the series of a producer, write its status, and requeue it for the next change."""
        record = self.context.store(ALL_PRODUCERS).get(key)
        if record is None:
            return None
        status = record.status()
        decision, requeue = self._sources.decide(record, status, now)
        if decision is None:
            return requeue
        for action in decision.actions:
            if isinstance(action, ExportSeries):
                self._series.put(key, action.values, fresh_until=action.fresh_until)
            else:
                self._series.remove(key)
        await self._write(record, status, decision, now)
        return requeue

    async def _write(self, record: ProducerRecord, status: Object, decision: Decision[SeriesAction], now: int) -> None:
        item = record.as_origin(status)
        changed = await self.context.client.apply_status(
            METRICS_PRODUCERS,
            self._registry.declared(METRICS_PRODUCERS, decision.status),
            decision.conditions,
            of=item,
            now=now,
            because=decision.condition("Active").message,
            observes_generation=False,
        )
        if changed:
            for event in decision.events:
                self.context.events.record(METRICS_PRODUCERS, item, event)

    def _follow_producer(self, delta: Delta[ProducerRecord]) -> None:
        if delta.new is None:
            # Here and not in reconcile, which does not run while everything is paused: the metric must go.
            self._series.remove(delta.key)
            self._sources.forget(delta.key)
        elif delta.old is None or delta.old.written != delta.new.written:
            self._series.expect(delta.key, expected_metrics(delta.new.written.spec))

    def _follow_definition(self, delta: Delta[tuple[KindInfo, ...]]) -> None:
        """Write all statuses again when the schema of producers changes: it may declare more fields than before."""
        if delta.old is not None and delta.key.name == str(METRICS_PRODUCERS):
            self._enqueue_all()

    def _enqueue_all(self) -> None:
        for key in self.context.store(ALL_PRODUCERS).keys():  # noqa: SIM118 - a store is no dictionary
            self.context.enqueue(key)
