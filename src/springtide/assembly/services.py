"""What a process offers its controllers in each world: series, readings, queues, providers, and whom it trusts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass

from springtide.apis.scheduled.producer import QueueSpec
from springtide.cluster.clock import Clock
from springtide.cluster.context import Services
from springtide.controllers.cron_federated_hpa.executor import CronMetrics
from springtide.controllers.grant.state import GrantPolicy
from springtide.metrics import ProcessMetrics
from springtide.metrics.queues import DelegatingQueueReader
from springtide.metrics.queues.port import QueueError, QueueLength, QueueReader, QueueTarget
from springtide.metrics.queues.sqs import SqsQueueReader
from springtide.metrics.reading.prometheus import PrometheusReader, PrometheusSettings
from springtide.metrics.reading.queries import QueryReader, QuerySource
from springtide.metrics.series import SeriesStore
from springtide.providers import Providers
from springtide.providers.aws import AwsProvider
from springtide.providers.cluster_api import ClusterApiProvider
from springtide.providers.simulated import SimulatedProvider


@dataclass(frozen=True, slots=True)
class MetricSourceSettings:
    """Where metrics are read."""

    source: QuerySource = QuerySource.AUTO
    prometheus: PrometheusSettings | None = None


_IN_PROCESS = MetricSourceSettings()


@asynccontextmanager
async def live_services(
    metrics: ProcessMetrics,
    clock: Clock,
    *,
    book: SeriesStore | None = None,
    sources: MetricSourceSettings = _IN_PROCESS,
    own_cluster: bool = False,
) -> AsyncIterator[Services]:
    """Offer what a process has that reaches the world, within the block.

    A cluster of one's own is an embedded one: it has simulated groups of nodes, and no Grant is needed for anything.
    """
    book = book if book is not None else SeriesStore()
    metrics.export(book, clock)
    async with AsyncExitStack() as stack:
        prometheus = None
        if sources.prometheus is not None:
            prometheus = await stack.enter_async_context(PrometheusReader(sources.prometheus))
        reading = QueryReader(book, prometheus, source=sources.source, now=clock.now)
        aws = stack.enter_context(closing(AwsProvider()))
        sqs = stack.enter_context(closing(SqsQueueReader()))
        providers = [ClusterApiProvider(), aws, *([SimulatedProvider()] if own_cluster else [])]
        yield Services(
            book,
            reading,
            DelegatingQueueReader(reading, sqs=sqs),
            Providers(providers),
            GrantPolicy(everything=own_cluster),
            CronMetrics(metrics.registry),
        )


def simulated_services(book: SeriesStore, clock: Clock) -> Services:
    """Offer what a simulated process has: all that is in its cluster, and nothing of the world outside."""
    reading = QueryReader(book, source=QuerySource.IN_PROCESS, now=clock.now)
    return Services(
        book,
        reading,
        DelegatingQueueReader(reading, sqs=_UnreachableQueues(), http=_UnreachableQueues()),
        Providers([ClusterApiProvider(), SimulatedProvider()]),
        GrantPolicy(everything=True),
        CronMetrics(),
    )


class _UnreachableQueues(QueueReader):
    """Queues outside of a simulation: nobody is asked, or the same seed would give different traces."""

    def target(self, queue: QueueSpec) -> QueueTarget | None:  # noqa: ARG002
        """Reach nothing."""
        return None

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:  # noqa: ARG002
        """Say why there is no length."""
        raise QueueError("NotSimulated", f"a simulation does not ask queues of type {queue.type}", retryable=False)
