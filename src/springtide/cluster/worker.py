"""Runs one controller: takes keys from its queue, reconciles them, and tries again what failed.

Whatever a controller raises stays here: it is logged, counted and tried again later, and nobody else notices.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any, cast

from springtide.cluster.clock import Clock, first_of
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Watch
from springtide.cluster.errors import ApiError, ClusterError, Conflict, NotLeader, NotSent
from springtide.cluster.events import normal
from springtide.cluster.health import ControllerHealth, ReconcileMetrics, ReconcileOutcome
from springtide.cluster.logs import log_subject
from springtide.cluster.pausing import ANNOTATION, GlobalPause, PausedObjects
from springtide.cluster.resources import Key
from springtide.cluster.store import Delta
from springtide.cluster.transport import ObjectVersion
from springtide.cluster.workqueue import QueueShutDown, WorkQueue

CANCEL_GRACE = 5.0
"""Seconds that a reconcile has to end when it is cancelled; one that takes longer is left behind."""


class Worker:
    """One controller at work, from the time its caches are complete until it is stopped."""

    def __init__(
        self,
        controller: Controller,
        queue: WorkQueue[Key],
        *,
        context: ControllerContext,
        health: ControllerHealth,
        clock: Clock,
        marks: PausedObjects,
        switch: GlobalPause,
        telemetry: ReconcileMetrics,
    ) -> None:
        self.queue = queue
        self._controller = controller
        self._watches: Sequence[Watch] = controller.watches
        self._primary = context.store(controller.watches[0].cached)
        self._resource = controller.watches[0].cached.selection.resource
        self._tools = context
        self._health = health
        self._clock = clock
        self._marks = marks
        self._switch = switch
        self._telemetry = telemetry
        self._told: dict[Key, ObjectVersion] = {}
        """Paused objects of which people were told."""
        self._workers: list[asyncio.Task[None]] = []
        self._waiting: list[asyncio.Task[Any]] = []
        """Workers that have a key, and wait until the stores show what was written."""
        self._log: logging.Logger = context.log

    def enqueue_all(self) -> None:
        """Queue all that the controller looks after, also what is gone and only others still speak of."""
        for watch in self._watches:
            store = self._tools.store(watch.cached)
            keys = store.keys()
            for key in keys:
                self._enqueue(watch, key, (store.get(key),))

    def changed(self, watch: Watch, delta: Delta[Any]) -> None:
        """Queue those whom a change concerns."""
        self._enqueue(watch, delta.key, (delta.old, delta.new))

    async def run(self) -> None:
        """Work until cancelled, or until the queue is shut down and empty."""
        self._workers = [asyncio.ensure_future(self._work()) for _ in range(self._controller.workers)]
        try:
            await asyncio.wait(self._workers)
        finally:
            # A reconcile may ignore that it is cancelled: let it find nothing more to do when it comes back.
            self.queue.shut_down(drain=False)
            for worker in self._workers:
                worker.cancel()
            await first_of(asyncio.wait(self._workers), self._clock.sleep(CANCEL_GRACE))
        for worker in self._workers:
            if not worker.cancelled():
                worker.result()

    def finish(self) -> None:
        """Take no more keys, and drop those whose reconcile has not begun; `run` returns when the others are done."""
        self.queue.shut_down(drain=False)
        for task in self._waiting:
            task.cancel()

    async def gone(self) -> None:
        """Wait until also those reconciles have ended that were left behind."""
        if any(not worker.done() for worker in self._workers):
            self._log.warning("a reconcile of an earlier term has not ended yet; the next one waits for it")
            await asyncio.wait(self._workers)

    def _enqueue(self, watch: Watch, key: Key, records: Iterable[Any]) -> None:
        for record in records:
            if record is None:
                continue
            try:
                if watch.keys is not None:
                    concerned: Iterable[Key] = tuple(watch.keys(key, record))
                else:
                    concerned = (key,) if watch is not self._watches[0] or self._controller.owns(record) else ()
            except Exception as failure:
                self._failed(f"the keys that a change of {watch.cached.selection.resource} {key} concerns", failure)
                continue
            for one in concerned:
                self.queue.add(one)

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueShutDown:
                return
            try:
                with log_subject(f"{self._resource.kind} {key}"):
                    await self._handle(key)
            finally:
                self.queue.done(key)

    async def _handle(self, key: Key) -> None:
        began: float | None = None
        result = ReconcileOutcome.ERROR
        try:
            await self._caught_up(key)
            # Only now: a pause may have come while we waited.
            if self._is_paused(key) or not self._is_ours(key):
                self.queue.forget(key)
                return
            self._health.reconciles += 1
            began = perf_counter()
            again = await self._controller.reconcile(key, self._clock.now())
        except NotLeader as failure:
            # The end of the term stops us in a moment; if it was renewed at the last moment, the key is still there.
            result = ReconcileOutcome.NOT_SENT
            self._log.info("%s: %s", key, failure)
            self._retry(key)
        except NotSent as failure:
            # Everything is paused; the end of the pause brings the key again.
            result = ReconcileOutcome.NOT_SENT
            self._log.info("%s: %s", key, failure)
            self.queue.forget(key)
        except Conflict as failure:
            result = ReconcileOutcome.CONFLICT
            self._health.conflicts += 1
            self._log.info("%s: %s", key, failure)
            self._retry(key)
        except asyncio.CancelledError as failure:
            if _present_task().cancelling():
                result = ReconcileOutcome.STOPPED
                raise
            # Not we are cancelled, but something that the reconcile waited for: its failure as any other.
            cancelled = RuntimeError("something that it waited for was cancelled")
            cancelled.__cause__ = failure
            self._failed(str(key), cancelled)
            self._retry(key)
        except Exception as failure:
            self._failed(str(key), failure)
            self._retry(key, failure.retry_after if isinstance(failure, ApiError) else None)
        else:
            result = ReconcileOutcome.SUCCESS if again is None else ReconcileOutcome.REQUEUE_AFTER
            self.queue.forget(key)
            if again is not None and again.at is not None:
                self.queue.add_at(key, again.at)
            if again is not None and again.after is not None:
                self.queue.add_after(key, again.after)
        finally:
            if began is not None:
                self._telemetry.reconciled(self._health.name, perf_counter() - began, result)

    def _retry(self, key: Key, after: float | None = None) -> None:
        """Let a key come again: when the server has asked for it, else later with each failure in a row."""
        self._health.retries += 1
        if after:
            self.queue.add_after(key, after)
        else:
            self.queue.add_failed(key)

    async def _caught_up(self, key: Key) -> None:
        task = _present_task()
        self._waiting.append(task)
        barrier = self._tools.barrier
        try:
            await (barrier.shows(key) if self._controller.independent else barrier.caught_up())
        finally:
            self._waiting.remove(task)

    def _is_ours(self, key: Key) -> bool:
        """Tell whether an object is ours; one that is gone was, or is somebody's whom a change of another concerns."""
        record = self._primary.get(key)
        return record is None or self._controller.owns(record)

    def _is_paused(self, key: Key) -> bool:
        if self._switch.on:
            return True
        paused = key in self._marks
        if paused and key not in self._told:
            origin = self._told[key] = self._marks.origin(key)
            self._log.info("%s is paused by its annotation %s", key, ANNOTATION)
            message = f"left alone as long as the annotation {ANNOTATION} is there"
            self._tools.events.record(self._resource, origin, normal("Paused", message))
        elif not paused and key in self._told:
            origin = self._told.pop(key)
            if key in self._primary:
                self._log.info("%s is not paused any more", key)
                message = f"looked after again: the annotation {ANNOTATION} is gone"
                self._tools.events.record(self._resource, origin, normal("Resumed", message))
        return paused

    def _failed(self, what: str, failure: Exception) -> None:
        self._health.errors += 1
        self._health.last_error = f"{what}: {failure}"
        # What a cluster answers needs no stack: the words say it all.
        stack = None if isinstance(failure, ClusterError) else failure
        self._log.error("%s failed: %s", what, failure, exc_info=stack)


def _present_task() -> asyncio.Task[Any]:
    return cast("asyncio.Task[Any]", asyncio.current_task())
