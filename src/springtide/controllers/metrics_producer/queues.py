"""Producers that tell how long a queue is: asked for again and again, beside everything else.

Somebody else's server may take its time, and must not keep schedules waiting. So a reconcile never waits for an answer:
it asks for one, and comes again when it is there.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from springtide.apis.scheduled.producer import QueueSpec
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Result
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.controllers.grants import ALL_GRANTS, grant_refusal
from springtide.controllers.metrics_producer.decide import (
    ProducerDecision,
    decide_queue_length,
    decide_queue_not_granted,
    decide_queue_unreadable,
    pause_after,
)
from springtide.metrics.queues import QueueError, QueueLength, QueueReader
from springtide.metrics.series import ObjectSeries

MOST_CONCURRENT = 32
"""How many queues are asked side by side."""
MOST_PER_NAMESPACE = 8
"""How many of them are of one namespace: servers that never answer keep those of others waiting no longer."""


@dataclass(slots=True)
class _PolledQueue:
    """What is known of a queue that somebody asks about."""

    answer: QueueLength | QueueError | None = None
    at: int = 0
    """When the answer came."""
    due: float = 0.0
    """When it is time to ask again, on the clock that never steps."""
    failures: int = 0
    task: asyncio.Task[None] | None = None
    """The question that is under way."""

    def stop(self) -> None:
        """Want no answer any more."""
        if self.task is not None:
            self.task.cancel()
            self.task = None


class QueueLengths:
    """All producers of this kind."""

    def __init__(self, context: ControllerContext) -> None:
        self._tools = context
        self._watched: dict[Key, _PolledQueue] = {}
        self._asking = asyncio.Semaphore(MOST_CONCURRENT)
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """By namespace, as long as somebody there asks or waits."""
        context.follow(ALL_GRANTS, self._grant_changed)
        context.on_release(self._stop)

    def produce(
        self, key: Key, queue: QueueSpec, status: Object, reading: ObjectSeries | None, now: int
    ) -> ProducerDecision | Result | None:
        """Tell what is known of a queue, and ask where it is time; None while the first answer is under way."""
        watched = self._watched.setdefault(key, _PolledQueue())
        refusal = self._refusal(key, queue)
        if refusal is not None:
            watched.stop()
            self._watched[key] = _PolledQueue()
            return decide_queue_not_granted(refusal)
        present = self._tools.clock.monotonic()
        if watched.task is None and watched.due <= present:
            watched.task = asyncio.ensure_future(self._ask(key, queue, watched))
        again = Result(requeue_after=watched.due - present) if watched.task is None else None
        match watched.answer:
            case None:
                return again
            case QueueLength() as length:
                return decide_queue_length(length, watched.at, again)
            case QueueError() as failure:
                return decide_queue_unreadable(failure, status, reading, now, again)

    def forget(self, key: Key) -> None:
        """Ask no more for a producer that is gone, or tells something else now."""
        watched = self._watched.pop(key, None)
        if watched is not None:
            watched.stop()

    def _refusal(self, key: Key, queue: QueueSpec) -> str | None:
        """Give the words of a refusal; what cannot even be named is refused by whoever is asked."""
        try:
            target = self._reader.target(queue)
        except QueueError:
            return None
        return None if target is None else grant_refusal(self._tools, key.namespace, target.reach, target.name)

    async def _ask(self, key: Key, queue: QueueSpec, watched: _PolledQueue) -> None:
        turn = self._turns.setdefault(key.namespace, asyncio.Semaphore(MOST_PER_NAMESPACE))
        async with turn, self._asking:
            answer = await self._answer(key, queue)
        failure = answer if isinstance(answer, QueueError) else None
        watched.failures = watched.failures + 1 if failure is not None else 0
        watched.answer, watched.at = answer, self._tools.clock.now()
        watched.due = self._tools.clock.monotonic() + pause_after(failure, watched.failures)
        watched.task = None
        self._tools.enqueue(key)

    async def _answer(self, key: Key, queue: QueueSpec) -> QueueLength | QueueError:
        try:
            return await self._reader.read(queue, namespace=key.namespace)
        except QueueError as failure:
            # A copy: what is kept must not hold on to all that was there when it was raised.
            return QueueError(failure.reason, str(failure), retryable=failure.retryable)
        except Exception as failure:
            self._tools.log.exception("reading the queue of %s failed in a way that nobody has foreseen", key)
            msg = f"reading the queue failed in a way that nobody has foreseen ({type(failure).__name__})"
            return QueueError("InternalError", msg, retryable=True)

    @property
    def _reader(self) -> QueueReader:
        return self._tools.services.get(QueueReader)

    def _grant_changed(self, delta: Delta[Any]) -> None:  # noqa: ARG002 - any grant may concern anybody
        for key in self._watched:
            self._tools.enqueue(key)

    def _stop(self) -> None:
        for watched in self._watched.values():
            watched.stop()
