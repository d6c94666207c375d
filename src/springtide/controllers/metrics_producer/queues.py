"""Producers of queue lengths: reads queues periodically, in background tasks.

The server of a queue may be slow, and must not delay schedules. So a reconcile never waits for an answer: it starts a
read, and the answer enqueues the producer again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from weakref import WeakValueDictionary

from springtide.apis.scheduled.producer import QueueSpec
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Result
from springtide.cluster.resources import Key, Object
from springtide.controllers.decision import Decision
from springtide.controllers.grant.state import Grants
from springtide.controllers.metrics_producer.decide import (
    SeriesAction,
    decide_queue_length,
    decide_queue_not_granted,
    decide_queue_unreadable,
    queue_pause,
)
from springtide.metrics.queues import QueueError, QueueLength, QueueReader
from springtide.metrics.series import ObjectSeries

MOST_CONCURRENT = 32
"""How many queues are read concurrently."""
MOST_PER_NAMESPACE = 8
"""How many of them are of one namespace, so that servers that never answer delay no other namespace for ever."""


@dataclass(slots=True)
class _PolledQueue:
    """The queue of one producer."""

    answer: QueueLength | QueueError | None = None
    at: int = 0
    """The instant of the answer."""
    due: float = 0.0
    """When it is read again, on the monotonic clock."""
    failures: int = 0
    task: asyncio.Task[None] | None = None
    """The read that is in flight."""

    def stop(self) -> None:
        """Cancel the read that is in flight."""
        if self.task is not None:
            self.task.cancel()
            self.task = None


class QueueLengths:
    """The queues of all producers that have one."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._polled: dict[Key, _PolledQueue] = {}
        self._asking = asyncio.Semaphore(MOST_CONCURRENT)
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """By namespace, as long as a read of it is in flight or waiting."""
        self._grants = context.state(Grants)
        context.subscribe(Grants, self._enqueue_all)
        context.on_release(self._stop)

    def decide(
        self, key: Key, queue: QueueSpec, status: Object, reading: ObjectSeries | None, now: int
    ) -> tuple[Decision[SeriesAction] | None, Result | None]:
        """Decide by the last answer, and start a read where it is due; no decision before the first answer."""
        queue_state = self._polled.setdefault(key, _PolledQueue())
        refusal = self._refusal(key, queue)
        if refusal is not None:
            queue_state.stop()
            self._polled[key] = _PolledQueue()
            return decide_queue_not_granted(refusal, status), None
        present = self._context.clock.monotonic()
        if queue_state.task is None and queue_state.due <= present:
            queue_state.task = asyncio.ensure_future(self._poll(key, queue, queue_state))
        requeue = Result(requeue_after=queue_state.due - present) if queue_state.task is None else None
        match queue_state.answer:
            case None:
                return None, requeue
            case QueueLength() as length:
                return decide_queue_length(length, queue_state.at, status), requeue
            case QueueError() as failure:
                return decide_queue_unreadable(failure, status, reading, now), requeue

    def forget(self, key: Key) -> None:
        """Stop reading for a producer that is gone, or has another source now."""
        queue_state = self._polled.pop(key, None)
        if queue_state is not None:
            queue_state.stop()

    def _refusal(self, key: Key, queue: QueueSpec) -> str | None:
        """Say that no Grant allows the queue; a malformed id is left to the reader, which refuses it."""
        try:
            target = self._reader.target(queue)
        except QueueError:
            return None
        return None if target is None else self._grants.refusal(key.namespace, target.reach, target.name)

    async def _poll(self, key: Key, queue: QueueSpec, queue_state: _PolledQueue) -> None:
        turn = self._turns.setdefault(key.namespace, asyncio.Semaphore(MOST_PER_NAMESPACE))
        async with turn, self._asking:
            answer = await self._answer(key, queue)
        failure = answer if isinstance(answer, QueueError) else None
        queue_state.failures = queue_state.failures + 1 if failure is not None else 0
        queue_state.answer, queue_state.at = answer, self._context.clock.now()
        queue_state.due = self._context.clock.monotonic() + queue_pause(failure, queue_state.failures)
        queue_state.task = None
        self._context.enqueue(key)

    async def _answer(self, key: Key, queue: QueueSpec) -> QueueLength | QueueError:
        try:
            return await self._reader.read(queue, namespace=key.namespace)
        except QueueError as failure:
            # A copy without the traceback, which would keep its frames alive.
            return QueueError(failure.reason, str(failure), retryable=failure.retryable)
        except Exception as failure:
            self._context.log.exception("reading the queue of %s failed with an unexpected error", key)
            msg = f"reading the queue failed with an unexpected error ({type(failure).__name__})"
            return QueueError("InternalError", msg, retryable=True)

    @property
    def _reader(self) -> QueueReader:
        reader = self._context.optional_dependency(QueueReader)
        if reader is None:
            msg = "this process reads no queues"
            raise LookupError(msg)
        return reader

    def _enqueue_all(self, _: None) -> None:
        for key in self._polled:
            self._context.enqueue(key)

    def _stop(self) -> None:
        for queue_state in self._polled.values():
            queue_state.stop()
