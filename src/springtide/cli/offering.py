"""What a process offers its controllers in each world: series, readings, queues, providers, and whom it trusts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass

from springtide.apis.scheduled.queue import QueueSpec
from springtide.cluster.clock import Clock
from springtide.cluster.services import Services
from springtide.controllers.cron.metrics import CronMetrics
from springtide.controllers.trust import Trust
from springtide.metrics import Metrics
from springtide.metrics.queues import Queues
from springtide.metrics.queues.port import QueueError, QueueLength, QueueReader, Target
from springtide.metrics.queues.sqs import SqsQueues
from springtide.metrics.reading.combined import Reading, Source
from springtide.metrics.reading.prometheus import PrometheusReader
from springtide.metrics.reading.prometheus_settings import PrometheusSettings
from springtide.metrics.series import SeriesBook
from springtide.providers import Providers
from springtide.providers.aws import AwsProvider
from springtide.providers.cluster_api import ClusterApiProvider
from springtide.providers.simulated import SimulatedProvider


@dataclass(frozen=True, slots=True)
class MetricSources:
    """Where metrics are read."""

    source: Source = Source.AUTO
    prometheus: PrometheusSettings | None = None


_OUR_OWN = MetricSources()


@asynccontextmanager
async def offered(
    metrics: Metrics,
    clock: Clock,
    *,
    book: SeriesBook | None = None,
    sources: MetricSources = _OUR_OWN,
    own_cluster: bool = False,
) -> AsyncIterator[Services]:
    """Offer what a process has that reaches the world, within the block.

    A cluster of one's own is an embedded one: it has simulated groups of nodes, and no Grant is needed for anything.
    """
    book = book if book is not None else SeriesBook()
    metrics.export(book, clock)
    async with AsyncExitStack() as stack:
        prometheus = None
        if sources.prometheus is not None:
            prometheus = await stack.enter_async_context(PrometheusReader(sources.prometheus))
        reading = Reading(book, prometheus, source=sources.source, now=clock.now)
        aws = stack.enter_context(closing(AwsProvider()))
        sqs = stack.enter_context(closing(SqsQueues()))
        providers = [ClusterApiProvider(), aws, *([SimulatedProvider()] if own_cluster else [])]
        yield Services(
            book,
            reading,
            Queues(reading, sqs=sqs),
            Providers(providers),
            Trust(everything=own_cluster),
            CronMetrics(metrics.registry),
        )


def offered_in_simulation(book: SeriesBook, clock: Clock) -> Services:
    """Offer what a simulated process has: all that is in its cluster, and nothing of the world outside."""
    reading = Reading(book, source=Source.IN_PROCESS, now=clock.now)
    return Services(
        book,
        reading,
        Queues(reading, sqs=_Nowhere(), http=_Nowhere()),
        Providers([ClusterApiProvider(), SimulatedProvider()]),
        Trust(everything=True),
        CronMetrics(),
    )


class _Nowhere(QueueReader):
    """Queues outside of a simulation: nobody is asked, or the same seed would give different traces."""

    def target(self, queue: QueueSpec) -> Target | None:  # noqa: ARG002
        """Reach nothing."""
        return None

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:  # noqa: ARG002
        """Say why there is no length."""
        raise QueueError("NotSimulated", f"a simulation does not ask queues of type {queue.type}", retryable=False)
