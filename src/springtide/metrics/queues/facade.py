"""All kinds of queues behind one port."""

from __future__ import annotations

from springtide.apis.scheduled.queue import QueueSpec
from springtide.metrics.queues.http import HttpQueues
from springtide.metrics.queues.port import QueueLength, QueueReader, Target
from springtide.metrics.queues.prometheus import PrometheusQueues
from springtide.metrics.queues.sqs import SqsQueues
from springtide.metrics.reading.port import MetricReader


class Queues(QueueReader):
    """Asks for each queue whoever knows queues of its type."""

    def __init__(
        self, reader: MetricReader | None = None, *, sqs: QueueReader | None = None, http: QueueReader | None = None
    ) -> None:
        """Without a reader of metrics, queues of type Prometheus cannot be read, and say so."""
        self._readers: dict[str, QueueReader] = {
            "AWSSQSQueue": sqs or SqsQueues(),
            "HTTP": http or HttpQueues(),
            "Prometheus": PrometheusQueues(reader),
        }

    def target(self, queue: QueueSpec) -> Target | None:
        """Tell what would be reached to read a queue."""
        return self._readers[queue.type].target(queue)

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        """Ask for the length of a queue."""
        return await self._readers[queue.type].read(queue, namespace=namespace)
