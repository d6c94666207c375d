"""Queues whose length is a metric already."""

from __future__ import annotations

from springtide.apis.scheduled.queue import QueueSpec
from springtide.apis.springtide.grants import Reach
from springtide.metrics.queues.port import QueueError, QueueLength, QueueReader, Target, whole_messages
from springtide.metrics.reading.port import MetricReader, Unreadable


class PrometheusQueues(QueueReader):
    """Reads queues by queries."""

    def __init__(self, reader: MetricReader | None) -> None:
        self._reader = reader

    def target(self, queue: QueueSpec) -> Target | None:
        """Tell which server would be asked; none where the query is answered in this process."""
        address = self._required().address(queue.id)
        return Target(Reach.URL, address) if address is not None else None

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        """Take the one sample of the query for the length."""
        try:
            value = await self._required().read(queue.id, namespace=namespace)
        except Unreadable as failure:
            raise QueueError(failure.reason, str(failure), retryable=not failure.lasting) from failure
        return QueueLength(whole_messages(value, "the query"))

    def _required(self) -> MetricReader:
        if self._reader is None:
            msg = "no Prometheus is configured: start the controller with --prometheus-url"
            raise QueueError("NoPrometheus", msg, retryable=False)
        return self._reader
