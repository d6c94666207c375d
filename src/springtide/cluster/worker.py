"""Runs the reconciles of one controller: takes keys from its work queue, reconciles them, and requeues what failed.

An exception of a controller ends here: it is logged and counted, its key is requeued with backoff, and other keys and
controllers are not affected.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, cast

from springtide.cluster.clock import Clock, first_of
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import CLUSTER, Controller, SingletonController, Urgency, Watch, cache_only
from springtide.cluster.errors import ApiError, ClusterError, Conflict, NotLeader, NotSent
from springtide.cluster.events import normal, warning
from springtide.cluster.health import ControllerHealth, ReconcileMetrics, ReconcileOutcome
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.logs import log_subject
from springtide.cluster.pausing import ANNOTATION, GlobalPause, PausedObjects
from springtide.cluster.resources import Key, Resource
from springtide.cluster.state import StateWatch
from springtide.cluster.store import Delta
from springtide.cluster.transport import ObjectVersion
from springtide.cluster.trials import too_costly
from springtide.cluster.workqueue import QueueShutDown, WorkQueue

CANCEL_GRACE = 5.0
"""Seconds that a reconcile has to end when it is cancelled; one that takes longer is left behind."""


def _no_provider() -> None:
    """Do nothing: no shared state depends on this controller."""


class Worker:
    """Runs a controller, from the time its caches are complete until it is stopped."""

    def __init__(
        self,
        controller: Controller,
        queue: WorkQueue[Key],
        *,
        context: ControllerContext,
        health: ControllerHealth,
        paused: PausedObjects,
        pause: GlobalPause,
        metrics: ReconcileMetrics,
        first_pass: Callable[[], None] = _no_provider,
    ) -> None:
        """Prepare; `first_pass` is called when every key of the first `enqueue_all` was attempted once."""
        self.queue = queue
        self._controller = controller
        self._watches: Sequence[Watch] = controller.watches
        self._context = context
        self._health = health
        self._clock = context.clock
        self._paused = paused
        self._pause = pause
        self._metrics = metrics
        self._paused_events: dict[Key, ObjectVersion] = {}
        """Paused objects for which the event was recorded."""
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: list[asyncio.Task[Any]] = []
        """Tasks that have a key, and wait until the caches show what was written."""
        self._first_pass = first_pass
        self._unattempted: set[Key] | None = None
        """Keys of the first pass that were not attempted yet; None before it begins."""
        self._log: logging.Logger = context.log
        self._own_writes: dict[Key, list[int]] = {}
        """The resourceVersions of writes to objects that their watch has not delivered yet."""
        self._delivered: dict[Key, list[int]] = {}
        """The versions that the watch delivers of objects while they are reconciled: a watch may be faster than the
        answer to the write."""
        self._set_aside_events: dict[Key, str] = {}
        """The last message about an object that is set aside, where its status has no conditions."""
        if controller.skips_own_writes:
            context.barrier.listen(self._note_own_write)

    def enqueue_all(self) -> None:
        """Enqueue every key that any record of any watch maps to, also keys of objects that are gone."""
        now = self._clock.now()
        keys: dict[Key, Urgency] = {}
        for watch in self._watches:
            if watch.keys is not cache_only:
                store = self._context.store(watch.cached)
                for key in store.keys():  # noqa: SIM118 - a store is no dictionary: its keys are in order
                    record = store.get(key)
                    urgency = self._urgency_of(key, record, now) if watch is self._watches[0] else Urgency.LATER
                    for each in self._keys_of(watch, key, (record,)):
                        keys[each] = min(keys.get(each, urgency), urgency)
                if watch is self._watches[0]:
                    keys |= dict.fromkeys((key for key in store.unreadable if store.set_aside(key)), Urgency.LATER)
        self._start(keys)

    def changed(self, watch: Watch, delta: Delta[Any]) -> None:
        """Enqueue the keys that a change in a cache maps to."""
        if watch is self._watches[0] and self._is_own_write(watch, delta.key):
            return
        for key in self._keys_of(watch, delta.key, (delta.old, delta.new)):
            self.enqueue(key)

    def _note_own_write(self, resource: Resource, key: Key, version: int) -> None:
        if key in self._delivered and resource == self._watches[0].cached.selection.resource:
            self._own_writes.setdefault(key, []).append(version)

    def _is_own_write(self, watch: Watch, key: Key) -> bool:
        """Return whether a change is a write of this controller, or may be one as the key is reconciled now."""
        version = self._context.store(watch.cached).version
        if key in self._delivered:
            self._delivered[key].append(version)
            return True
        own = self._own_writes.get(key, ())
        if version in own:
            self._forget_own_writes(key, (version,))
            return True
        return False

    def _forget_own_writes(self, key: Key, versions: Iterable[int]) -> None:
        left = [one for one in self._own_writes.pop(key, ()) if one not in versions]
        if left:
            self._own_writes[key] = left

    def state_changed(self, watch: StateWatch[Any], change: Any) -> None:
        """Enqueue the keys that a change of a shared state maps to."""
        try:
            keys = tuple(watch.keys(change))
        except Exception as failure:
            self._failed(f"mapping a change of {watch.state.__name__} to keys", failure)
            return
        for key in keys:
            self.enqueue(key)

    def enqueue(self, key: Key) -> None:
        """Reconcile a key soon."""
        self.queue.add(key)

    async def run(self) -> None:
        """Work until cancelled, or until the queue is shut down and empty."""
        self._tasks = [asyncio.ensure_future(self._work()) for _ in range(self._controller.workers)]
        try:
            await asyncio.wait(self._tasks)
        finally:
            # A reconcile may suppress its cancellation: the queue must be empty when it returns.
            self.queue.shut_down(drain=False)
            for task in self._tasks:
                task.cancel()
            await first_of(asyncio.wait(self._tasks), self._clock.sleep(CANCEL_GRACE))
        for task in self._tasks:
            if not task.cancelled():
                task.result()

    def finish(self) -> None:
        """Take no more keys, and drop those whose reconcile has not begun; `run` returns when the others are done."""
        self.queue.shut_down(drain=False)
        for task in self._waiting:
            task.cancel()

    async def gone(self) -> None:
        """Wait until the reconciles that were left behind have ended as well."""
        if any(not task.done() for task in self._tasks):
            self._log.warning("a reconcile of an earlier term has not ended yet; the new term waits for it")
            await asyncio.wait(self._tasks)

    def _urgency_of(self, key: Key, record: Any, now: int) -> Urgency:
        try:
            return self._controller.urgency(record, now)
        except Exception as failure:
            self._failed(f"reading from the status of {key} whether it is due", failure)
            return Urgency.UNKNOWN

    def _start(self, keys: Mapping[Key, Urgency]) -> None:
        """Enqueue keys at once; the first call begins the first pass."""
        queued = set(keys)
        for key, urgency in keys.items():
            self.queue.add(key, urgency)
        # A key that is gone since, because everything was paused meanwhile, is not waited for.
        self._unattempted = queued if self._unattempted is None else self._unattempted & queued
        self._end_first_pass()

    def _attempted(self, key: Key) -> None:
        if self._unattempted:
            self._unattempted.discard(key)
            self._end_first_pass()

    def _end_first_pass(self) -> None:
        if not self._unattempted:
            self._first_pass()

    def _keys_of(self, watch: Watch, key: Key, records: Iterable[Any]) -> list[Key]:
        """Map the records before and after a change to keys."""
        keys: list[Key] = []
        for record in records:
            if record is None:
                continue
            try:
                if watch.keys is not None:
                    keys.extend(watch.keys(key, record))
                elif watch is not self._watches[0] or self._controller.owns(record):
                    keys.append(key)
            except Exception as failure:
                self._failed(f"mapping a change of {watch.cached.selection.resource} {key} to keys", failure)
        return keys

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueShutDown:
                return
            try:
                with log_subject(self._subject(key)):
                    if await self._handle(key):
                        self._attempted(key)
            finally:
                self.queue.done(key)

    async def _handle(self, key: Key) -> bool:
        """Reconcile a key if it is not paused; tells whether this counts as an attempt."""
        began: float | None = None
        outcome = ReconcileOutcome.ERROR
        try:
            await self._wait_for_writes(key)
            # Only now: a pause may have begun during the wait.
            if self._pause.on:
                self.queue.forget(key)
                return False
            if self._is_paused(key) or not self._is_owned(key):
                self.queue.forget(key)
                return True
            self._health.reconciles += 1
            began = perf_counter()
            if self._controller.skips_own_writes:
                self._own_writes.pop(key, None)
                self._delivered[key] = []
            result = await self._controller.reconcile(key, self._clock.now())
            await self._report_set_aside(key)
        except NotLeader as failure:
            # The end of the term cancels this worker in a moment; if the lease is renewed after all, the key is there.
            outcome = ReconcileOutcome.NOT_SENT
            self._log.info("%s: %s", key, failure)
            self._retry(key)
            return False
        except NotSent as failure:
            # Everything is paused; the end of the pause enqueues the key again.
            outcome = ReconcileOutcome.NOT_SENT
            self._log.info("%s: %s", key, failure)
            self.queue.forget(key)
            return False
        except Conflict as failure:
            outcome = ReconcileOutcome.CONFLICT
            self._health.conflicts += 1
            self._log.info("%s: %s", key, failure)
            self._retry(key)
        except asyncio.CancelledError as failure:
            if _present_task().cancelling():
                outcome = ReconcileOutcome.STOPPED
                raise
            # Not this worker is cancelled, but something that the reconcile awaited: a failure like any other.
            cancelled = RuntimeError("something that it waited for was cancelled")
            cancelled.__cause__ = failure
            self._failed(str(key), cancelled)
            self._retry(key)
        except Exception as failure:
            self._failed(str(key), failure)
            self._retry(key, failure.retry_after if isinstance(failure, ApiError) else None)
        else:
            outcome = ReconcileOutcome.SUCCESS if result is None else ReconcileOutcome.REQUEUE_AFTER
            self.queue.forget(key)
            if result is not None and result.requeue_at is not None:
                self.queue.add_at(key, result.requeue_at)
            if result is not None and result.requeue_after is not None:
                self.queue.add_after(key, result.requeue_after)
        finally:
            delivered = self._delivered.pop(key, [])
            if any(version not in self._own_writes.get(key, ()) for version in delivered):
                self.enqueue(key)
            self._forget_own_writes(key, delivered)
            if began is not None:
                self._metrics.reconciled(self._health.name, perf_counter() - began, outcome)
        return True

    async def _report_set_aside(self, key: Key) -> None:
        """Say in the status of an object that is too costly that it is set aside; the rest of the status stays."""
        cached = self._watches[0].cached
        held = self._context.store(cached).set_aside(key)
        if held is None or held.item["metadata"].get("deletionTimestamp"):
            return
        condition = too_costly(held.reason)
        if self._has_conditions():
            status = held.item.get("status") or {}
            changed = await self._context.client.apply_status(
                cached.selection.resource,
                {name: value for name, value in status.items() if name != "conditions"},
                (condition,),
                of=held.item,
                now=self._clock.now(),
                because=condition.message,
                observes_generation=False,
            )
        else:
            changed = self._set_aside_events.get(key) != condition.message
            self._set_aside_events[key] = condition.message
        if changed:
            event = warning(condition.reason, condition.message)
            self._context.events.record(cached.selection.resource, ObjectVersion.of(held.item), event)

    def _has_conditions(self) -> bool:
        """Return whether the CRD in the cluster declares conditions; upstream's of CronFederatedHPAs does not."""
        if KindRegistry not in self._context.kind.states:
            return True
        resource = self._watches[0].cached.selection.resource
        return "conditions" in self._context.state(KindRegistry).declared(resource, {"conditions": []})

    def _retry(self, key: Key, after: float | None = None) -> None:
        """Requeue a key after a failure: when the server has asked for it, else with backoff."""
        self._health.retries += 1
        if after:
            self.queue.add_after(key, after)
        else:
            self.queue.add_failed(key)

    async def _wait_for_writes(self, key: Key) -> None:
        """Wait until the caches show what this controller wrote (to this object, if objects are independent)."""
        task = _present_task()
        self._waiting.append(task)
        barrier = self._context.barrier
        try:
            await (barrier.wait_for_object(key) if self._controller.independent else barrier.wait_for_writes())
        finally:
            self._waiting.remove(task)

    def _subject(self, key: Key) -> str:
        return f"{self._watches[0].cached.selection.resource.kind} {key}"

    def _is_owned(self, key: Key) -> bool:
        """Return whether this controller owns an object; one that is gone counts as owned, so that it is cleaned up."""
        record = self._context.store(self._watches[0].cached).get(key)
        return record is None or self._controller.owns(record)

    def _is_paused(self, key: Key) -> bool:
        """Return whether an object is paused by its annotation; record events when the pause begins and ends."""
        resource = self._watches[0].cached.selection.resource
        paused = key in self._paused
        if paused and key not in self._paused_events:
            version = self._paused_events[key] = self._paused.version(key)
            self._log.info("%s is paused by its annotation %s", key, ANNOTATION)
            message = f"not reconciled as long as the annotation {ANNOTATION} is there"
            self._context.events.record(resource, version, normal("Paused", message))
        elif not paused and key in self._paused_events:
            version = self._paused_events.pop(key)
            if key in self._context.store(self._watches[0].cached):
                self._log.info("%s is not paused any more", key)
                message = f"reconciled again: the annotation {ANNOTATION} is gone"
                self._context.events.record(resource, version, normal("Resumed", message))
        return paused

    def _failed(self, what: str, failure: Exception) -> None:
        self._health.errors += 1
        self._health.last_error = f"{what}: {failure}"
        # An answer of the API server needs no stack trace: its message says it all.
        stack = None if isinstance(failure, ClusterError) else failure
        self._log.error("%s failed: %s", what, failure, exc_info=stack)


class SingletonWorker(Worker):
    """Runs a singleton controller: every change enqueues its only key, after a batching window."""

    def __init__(self, controller: SingletonController, queue: WorkQueue[Key], **shared: Any) -> None:
        super().__init__(controller, queue, **shared)
        self._window = BatchWindow(
            self._clock,
            idle=controller.batch_idle,
            longest=controller.batch_max,
            close=lambda: self.queue.add(CLUSTER),
        )

    def enqueue_all(self) -> None:
        """Reconcile the cluster, without a window: the caches are complete."""
        self._start({CLUSTER: Urgency.DUE})

    def enqueue(self, key: Key) -> None:  # noqa: ARG002 - there is only one
        """Reconcile the cluster when the batching window closes."""
        self._window.open()

    def finish(self) -> None:
        """Take no more changes."""
        super().finish()
        self._window.stop()

    async def run(self) -> None:
        """Work until cancelled, or until the queue is shut down and empty."""
        try:
            await super().run()
        finally:
            self._window.stop()

    def _subject(self, key: Key) -> str:  # noqa: ARG002
        return "cluster"

    def _is_owned(self, key: Key) -> bool:  # noqa: ARG002
        return True

    def _is_paused(self, key: Key) -> bool:  # noqa: ARG002
        return False

    async def _report_set_aside(self, key: Key) -> None:
        """Do nothing: no object is reconciled under the key of a singleton."""


class BatchWindow:
    """Collects changes: closes `idle` seconds after the last one, and `longest` seconds after the first at the latest.

    With `idle` 0 every change closes it at once.
    """

    def __init__(self, clock: Clock, *, idle: float, longest: float, close: Callable[[], None]) -> None:
        self._clock = clock
        self._idle = idle
        self._longest = longest
        self._close = close
        self._first = 0.0
        self._last = 0.0
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Note a change: open the window, or keep it open for longer."""
        if min(self._idle, self._longest) <= 0:
            self._close()
            return
        self._last = self._clock.monotonic()
        if self._task is None:
            self._first = self._last
            self._task = asyncio.create_task(self._wait())

    def stop(self) -> None:
        """Drop what was collected."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _wait(self) -> None:
        while (left := min(self._first + self._longest, self._last + self._idle) - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)
        self._task = None
        self._close()


def _present_task() -> asyncio.Task[Any]:
    return cast("asyncio.Task[Any]", asyncio.current_task())
