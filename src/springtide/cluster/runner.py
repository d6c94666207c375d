"""The place of one controller in a process: it stays, while the controller is made anew for every term of leading."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from springtide.cluster.client import Client, Mode, WriteBarrier
from springtide.cluster.clock import Backoff, Clock
from springtide.cluster.compute import Compute
from springtide.cluster.context import ControllerContext, Services
from springtide.cluster.controller import Cached, Controller, Watch
from springtide.cluster.events import EventRecorder, EventSink
from springtide.cluster.health import ControllerHealth, ControllerState, ReconcileMetrics
from springtide.cluster.leader_election import LeadershipTerm
from springtide.cluster.pausing import GlobalPause, PausedObjects
from springtide.cluster.resources import Key
from springtide.cluster.store import Store
from springtide.cluster.transport import Transport
from springtide.cluster.worker import Worker
from springtide.cluster.workqueue import WorkQueue


@dataclass(frozen=True, slots=True)
class SharedRuntime:
    """What all controllers of a process share."""

    transport: Transport
    clock: Clock
    compute: Compute
    switch: GlobalPause
    backoff: Backoff
    field_manager_prefix: str
    default_zone: str
    telemetry: ReconcileMetrics
    services: Services


class ControllerRunner:
    """One controller of a process, at work or not."""

    def __init__(
        self,
        kind: type[Controller],
        workplace: SharedRuntime,
        *,
        mode: Mode,
        stores: Mapping[Cached, Store[Any]],
        marks: PausedObjects,
    ) -> None:
        self.health = ControllerHealth(kind.name)
        self._kind = kind
        self._workplace = workplace
        self._mode = mode
        self._stores = {watch.cached: stores[watch.cached] for watch in kind.watches}
        self._marks = marks
        self._worker: Worker | None = None
        self._former: Worker | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._log = logging.getLogger(f"springtide.{kind.name}")
        marks.listen(self._resumed)
        for watch in kind.watches:
            self._listen(watch)

    async def serve(
        self,
        term: LeadershipTerm,
        sink: EventSink,
        ready: Callable[[Watch], Awaitable[None]],
        others: Callable[[], Awaitable[None]],
    ) -> None:
        """Let the controller work for one term, as soon as all that it knows is complete (`ready` waits for that).

        What it has made known is taken back when `others` have come to their end as well: they may still read it.
        """
        self.health.state = ControllerState.SYNCING
        context = self._equip(term, sink)
        try:
            for watch in self._kind.watches:
                await ready(watch)
            if self._former is not None:
                # One key is never reconciled twice at a time, not even in two terms.
                await self._former.gone()
            self._worker = self._employ(context)
            if self._worker is not None:
                self.health.state = ControllerState.RUNNING
                self._worker.enqueue_all()
                self._idle.clear()
                await self._worker.run()
                self._idle.set()
                await others()
        finally:
            self._idle.set()
            self._former, self._worker = self._worker or self._former, None
            context.release()
            if self.health.state is not ControllerState.FAILED:
                self.health.state = ControllerState.STANDING_BY

    @property
    def working(self) -> bool:
        """Whether the controller is there: it is not while its caches are incomplete."""
        return self._worker is not None

    async def idle(self) -> None:
        """Wait until nothing is worked on."""
        await self._idle.wait()

    def enqueue_all(self) -> None:
        """Look at everything again."""
        if self._worker is not None:
            self._worker.enqueue_all()

    def finish(self) -> None:
        """Take no more keys; `serve` returns when those are done that are being worked on."""
        if self._worker is not None:
            self._worker.finish()

    def measure(self) -> ControllerHealth:
        """Bring the numbers of the present up to date."""
        queue = self._worker.queue if self._worker is not None else None
        self.health.queued = len(queue) if queue is not None else 0
        self.health.delayed = queue.delayed if queue is not None else 0
        self.health.paused = self._marks.count
        self.health.unreadable = sum(len(store.unreadable) for store in self._stores.values())
        return self.health

    def _equip(self, term: LeadershipTerm, sink: EventSink) -> ControllerContext:
        place = self._workplace
        name = f"{place.field_manager_prefix}{self._kind.name}"

        def permit() -> None:
            term.permit()
            place.switch.permit()

        barrier = WriteBarrier(place.transport, [(cached.selection, store) for cached, store in self._stores.items()])
        client = Client(
            place.transport,
            manager=name,
            barrier=barrier,
            permit=permit,
            mode=self._mode,
            log=self._log,
            traffic=self.health.traffic,
        )
        return ControllerContext(
            client=client,
            events=EventRecorder(name, sink, place.clock),
            clock=place.clock,
            compute=place.compute,
            default_zone=place.default_zone,
            log=self._log,
            stores=self._stores,
            barrier=barrier,
            services=place.services,
        )

    def _employ(self, context: ControllerContext) -> Worker | None:
        place = self._workplace
        try:
            controller = self._kind(context)
        except Exception as failure:
            self.health.errors += 1
            self.health.state = ControllerState.FAILED
            self.health.last_error = str(failure)
            self._log.exception("the controller cannot be made; others go on without it")
            return None
        queue: WorkQueue[Key] = WorkQueue(place.clock, backoff=place.backoff)
        context.woken_by(queue.add)
        return Worker(
            controller,
            queue,
            context=context,
            health=self.health,
            clock=place.clock,
            marks=self._marks,
            switch=place.switch,
            telemetry=place.telemetry,
        )

    def _listen(self, watch: Watch) -> None:
        self._stores[watch.cached].listen(
            lambda delta: self._worker.changed(watch, delta) if self._worker is not None else None
        )

    def _resumed(self, key: Key) -> None:
        if self._worker is not None:
            self._worker.queue.add(key)
