"""Runs one controller of a process across leadership terms; the controller is re-created for each term."""

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
from springtide.cluster.controller import CLUSTER, Cached, Controller, SingletonController, Watch
from springtide.cluster.events import EventRecorder, EventSink
from springtide.cluster.health import ControllerHealth, ControllerState, ReconcileMetrics
from springtide.cluster.leader_election import LeadershipTerm
from springtide.cluster.pausing import GlobalPause, PausedObjects
from springtide.cluster.resources import Key
from springtide.cluster.state import SharedStates, StateWatch, sources_of, states_read_by
from springtide.cluster.store import Store
from springtide.cluster.transport import Transport
from springtide.cluster.worker import SingletonWorker, Worker
from springtide.cluster.workqueue import WorkQueue


@dataclass(frozen=True, slots=True)
class SharedRuntime:
    """What all controllers of a process share."""

    transport: Transport
    clock: Clock
    compute: Compute
    pause: GlobalPause
    backoff: Backoff
    field_manager_prefix: str
    default_zone: str
    metrics: ReconcileMetrics
    services: Services
    states: SharedStates


class ControllerRunner:
    """One controller of a process, running or not."""

    def __init__(
        self,
        kind: type[Controller],
        runtime: SharedRuntime,
        *,
        mode: Mode,
        stores: Mapping[Cached, Store[Any]],
        paused: PausedObjects,
    ) -> None:
        self.kind = kind
        self.health = ControllerHealth(kind.name)
        self._runtime = runtime
        self._mode = mode
        caches = (*(watch.cached for watch in kind.watches), *(cached for cached, _ in sources_of(kind)))
        self._stores = {cached: stores[cached] for cached in caches}
        self._paused = paused
        self._worker: Worker | None = None
        self._former: Worker | None = None
        self._first_pass = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._log = logging.getLogger(f"springtide.{kind.name}")
        paused.listen(self._enqueue)
        for watch in kind.watches:
            self._listen(watch)
        for read in kind.states:
            self._subscribe(read)

    def begin_term(self) -> None:
        """Prepare for a term: nothing has been attempted in it."""
        # A new event, since a reconcile that was left behind in the former term may still set the old one.
        self._first_pass = asyncio.Event()

    async def serve(
        self,
        term: LeadershipTerm,
        sink: EventSink,
        synced: Callable[[Cached, bool], Awaitable[None]],
        others: Callable[[], Awaitable[None]],
    ) -> None:
        """Run the controller for one term, as soon as its caches (`synced`) and its shared states are complete.

        `on_release` functions are called when all `others` are idle as well: those may still read what they clear.
        """
        self.health.state = ControllerState.SYNCING
        context = self._make_context(term, sink)
        try:
            for watch in self.kind.watches:
                await synced(watch.cached, watch.optional)
            await self._states_ready()
            # One key is never reconciled twice at a time, not even in two terms.
            await self.former_gone()
            self._worker = self._make_worker(context)
            if self._worker is not None:
                self.health.state = ControllerState.RUNNING
                self._worker.enqueue_all()
                self._idle.clear()
                await self._worker.run()
                self._idle.set()
                await others()
        finally:
            self._idle.set()
            # After a failure nothing more comes: readers of a state that this controller provides must not wait.
            self._first_pass.set()
            self._former, self._worker = self._worker or self._former, None
            context.release()
            if self.health.state is not ControllerState.FAILED:
                self.health.state = ControllerState.STANDING_BY

    @property
    def working(self) -> bool:
        """Whether the controller exists: it does not while its caches or shared states are incomplete."""
        return self._worker is not None

    async def first_pass(self) -> None:
        """Wait until every key of the initial list was attempted once, or the controller has failed."""
        await self._first_pass.wait()

    async def former_gone(self) -> None:
        """Wait until reconciles of an earlier term have ended."""
        if self._former is not None:
            await self._former.gone()

    async def idle(self) -> None:
        """Wait until no reconcile is under way."""
        await self._idle.wait()

    def enqueue_all(self) -> None:
        """Reconcile every object again."""
        if self._worker is not None:
            self._worker.enqueue_all()

    def finish(self) -> None:
        """Take no more keys; `serve` returns when the reconciles that are under way are done."""
        if self._worker is not None:
            self._worker.finish()

    def measure(self) -> ControllerHealth:
        """Update the current numbers, and give all of them."""
        queue = self._worker.queue if self._worker is not None else None
        self.health.queued = len(queue) if queue is not None else 0
        self.health.delayed = queue.delayed if queue is not None else 0
        self.health.paused = self._paused.count
        self.health.unreadable = sum(len(store.unreadable) for store in self._stores.values())
        return self.health

    async def _states_ready(self) -> None:
        states = self._runtime.states
        for kind in self.kind.provides:
            await states.built(kind)
        for kind in states_read_by(self.kind):
            if kind not in self.kind.provides:
                await states.complete(kind)

    def _make_context(self, term: LeadershipTerm, sink: EventSink) -> ControllerContext:
        runtime = self._runtime
        name = f"{runtime.field_manager_prefix}{self.kind.name}"

        def permit() -> None:
            term.permit()
            runtime.pause.permit()

        barrier = WriteBarrier(runtime.transport, [(cached.selection, store) for cached, store in self._stores.items()])
        client = Client(
            runtime.transport,
            manager=name,
            barrier=barrier,
            permit=permit,
            mode=self._mode,
            log=self._log,
            traffic=self.health.traffic,
        )
        return ControllerContext(
            kind=self.kind,
            client=client,
            events=EventRecorder(name, sink, runtime.clock),
            clock=runtime.clock,
            compute=runtime.compute,
            default_zone=runtime.default_zone,
            log=self._log,
            stores=self._stores,
            barrier=barrier,
            states=runtime.states,
            services=runtime.services,
        )

    def _make_worker(self, context: ControllerContext) -> Worker | None:
        runtime = self._runtime
        try:
            controller = self.kind(context)
        except Exception as failure:
            self.health.errors += 1
            self.health.state = ControllerState.FAILED
            self.health.last_error = str(failure)
            self._log.exception("the controller could not be created; other controllers are not affected")
            return None
        queue: WorkQueue[Key] = WorkQueue(runtime.clock, backoff=runtime.backoff)
        shared: dict[str, Any] = {
            "context": context,
            "health": self.health,
            "paused": self._paused,
            "pause": runtime.pause,
            "metrics": runtime.metrics,
            "first_pass": self._first_pass.set,
        }
        if isinstance(controller, SingletonController):
            worker: Worker = SingletonWorker(controller, queue, **shared)
        else:
            worker = Worker(controller, queue, **shared)
        context.set_queue(worker.enqueue)
        return worker

    def _listen(self, watch: Watch) -> None:
        self._stores[watch.cached].listen(
            lambda delta: self._worker.changed(watch, delta) if self._worker is not None else None
        )
        if watch is self.kind.watches[0]:
            self._stores[watch.cached].listen_to_set_aside(self._enqueue)

    def _subscribe(self, read: Any) -> None:
        if not isinstance(read, StateWatch):
            if not issubclass(self.kind, SingletonController):
                return
            read = StateWatch(read, _wake_singleton)
        self._runtime.states.get(read.state).subscribe(
            lambda change: self._worker.state_changed(read, change) if self._worker is not None else None
        )

    def _enqueue(self, key: Key) -> None:
        if self._worker is not None:
            self._worker.enqueue(key)


def _wake_singleton(change: Any) -> tuple[Key, ...]:  # noqa: ARG001
    """Map any change of a state to the only key of a singleton."""
    return (CLUSTER,)
