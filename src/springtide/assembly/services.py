"""The services that controllers use in each world: series, metric readers, queues, node group providers, grants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass

from springtide.apis.scheduled.producer import QueueSpec
from springtide.cluster.client import Mode
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
    """Where HorizontalAutoscalers read metrics."""

    source: QuerySource = QuerySource.AUTO
    prometheus: PrometheusSettings | None = None


_IN_PROCESS = MetricSourceSettings()


@asynccontextmanager
async def live_services(
    metrics: ProcessMetrics,
    clock: Clock,
    *,
    series: SeriesStore | None = None,
    sources: MetricSourceSettings = _IN_PROCESS,
    own_cluster: bool = False,
    mode: Mode = Mode.ACT,
) -> AsyncIterator[Services]:
    """Open the services of a process that reaches real systems; they are closed at the end of the block.

    A cluster of one's own is an embedded one: it has simulated groups of nodes, and no Grant is needed for anything.
    In mode `observe` the series are not exported: the process beside it that acts exports the same ones.
    """
    series = series if series is not None else SeriesStore()
    if mode is not Mode.OBSERVE:
        metrics.export(series, clock)
    async with AsyncExitStack() as stack:
        prometheus = None
        if sources.prometheus is not None:
            prometheus = await stack.enter_async_context(PrometheusReader(sources.prometheus))
        reading = QueryReader(series, prometheus, source=sources.source, now=clock.now)
        aws = stack.enter_context(closing(AwsProvider()))
        sqs = stack.enter_context(closing(SqsQueueReader()))
        providers = [ClusterApiProvider(), aws, *([SimulatedProvider()] if own_cluster else [])]
        yield Services(
            series,
            reading,
            DelegatingQueueReader(reading, sqs=sqs),
            Providers(providers),
            GrantPolicy(everything=own_cluster),
            CronMetrics(metrics.registry),
        )


def simulated_services(series: SeriesStore, clock: Clock) -> Services:
    """Create the services of a simulated process: nothing outside its cluster is reached."""
    reading = QueryReader(series, source=QuerySource.IN_PROCESS, now=clock.now)
    return Services(
        series,
        reading,
        DelegatingQueueReader(reading, sqs=_UnreachableQueues(), http=_UnreachableQueues()),
        Providers([ClusterApiProvider(), SimulatedProvider()]),
        GrantPolicy(everything=True),
        CronMetrics(),
    )


class _UnreachableQueues(QueueReader):
    """Fails for queues outside the cluster: reading them would make traces depend on more than the seed."""

    def target(self, queue: QueueSpec) -> QueueTarget | None:  # noqa: ARG002
        """Return no target."""
        return None

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:  # noqa: ARG002
        """Raise an error that names the queue type."""
        raise QueueError("NotSimulated", f"a simulation does not ask queues of type {queue.type}", retryable=False)
