"""The metrics of autoscalers: reads them, and finds the autoscalers that a change of a series or a Grant concerns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from springtide.apis.scheduled.autoscaler import (
    MOST_METRICS,
    HorizontalAutoscalerSpec,
    PrometheusMetricSource,
    is_proportional,
    sources_of,
)
from springtide.apis.scheduled.promql import MAX_QUERY
from springtide.apis.springtide.grants import GrantedResource
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.controllers.grant.state import Grants
from springtide.controllers.horizontal_autoscaler.recommendation import MissingMetric
from springtide.metrics.reading.port import MetricReader, OwnSeries, QueryError
from springtide.metrics.series import SeriesStore


class MetricIndex:
    """Which autoscalers read which series of this process, and which query a server; follows all autoscalers."""

    def __init__(self, reader: MetricReader) -> None:
        self._reader = reader
        # Dictionaries, as sets have no order.
        self._by_series: dict[tuple[str, OwnSeries], dict[Key, None]] = {}
        self._remote: dict[Key, None] = {}

    def follow(self, delta: Delta[Object]) -> None:
        """Replace what is known of an autoscaler after a change of its spec."""
        if delta.old is not None and delta.new is not None and delta.old.get("spec") == delta.new.get("spec"):
            return
        if delta.old is not None:
            for series in self._read_by(delta.old):
                readers = self._by_series.get((delta.key.namespace, series), {})
                readers.pop(delta.key, None)
                if not readers:
                    self._by_series.pop((delta.key.namespace, series), None)
            self._remote.pop(delta.key, None)
        if delta.new is not None:
            for series in self._read_by(delta.new):
                self._by_series.setdefault((delta.key.namespace, series), {})[delta.key] = None
            if any(self._reader.address(query) is not None for query in _queries(delta.new)):
                self._remote[delta.key] = None

    def of_series(self, owner: Key, metrics: Iterable[str]) -> list[Key]:
        """List the autoscalers that read a series of an object; queries see the series of their own namespace only."""
        concerned: dict[Key, None] = {}
        for metric in sorted(metrics):
            for name in (owner.name, None):
                concerned |= self._by_series.get((owner.namespace, OwnSeries(metric, name)), {})
        return list(concerned)

    def of_grants(self) -> list[Key]:
        """List the autoscalers that query a server, for which they need a Grant."""
        return list(self._remote)

    def _read_by(self, autoscaler: Object) -> Iterator[OwnSeries]:
        for query in _queries(autoscaler):
            yield from self._reader.sources(query) or ()


async def read_metrics(
    grants: Grants, reader: MetricReader, sources: Sequence[PrometheusMetricSource], namespace: str
) -> list[Fraction | MissingMetric]:
    """Read all metrics of an autoscaler concurrently, so that a slow one delays no other."""
    return await asyncio.gather(*(_read(grants, reader, source.query, namespace) for source in sources))


async def _read(grants: Grants, reader: MetricReader, query: str, namespace: str) -> Fraction | MissingMetric:
    address = reader.address(query)
    refusal = grants.refusal(namespace, GrantedResource.URL, address) if address is not None else None
    if refusal is not None:
        return MissingMetric("NotGranted", f"`{query}` is not read: {refusal}")
    try:
        return await reader.read(query, namespace=namespace)
    except QueryError as failure:
        return MissingMetric(failure.reason, f"`{query}` cannot be read: {failure}")


def is_pushed(reader: MetricReader, spec: HorizontalAutoscalerSpec) -> bool:
    """Return whether every change of a recommendation enqueues the autoscaler; no event tells of present replicas."""
    return all(not is_proportional(source) and reader.sources(source.query) is not None for source in sources_of(spec))


def is_pending(
    reader: MetricReader,
    series: SeriesStore,
    sources: Sequence[PrometheusMetricSource],
    readings: Sequence[Fraction | MissingMetric],
    namespace: str,
) -> bool:
    """Return whether metrics are missing, and all of those read values that a producer is still computing."""
    pairs = zip(sources, readings, strict=True)
    missing = [source for source, reading in pairs if isinstance(reading, MissingMetric)]
    return bool(missing) and all(
        any(series.pending(one.metric, namespace, one.name) for one in reader.sources(source.query) or ())
        for source in missing
    )


def _queries(autoscaler: Object) -> Iterator[str]:
    metrics = (autoscaler.get("spec") or {}).get("metrics") or ()
    if len(metrics) > MOST_METRICS:
        return  # validation refuses it, so nothing is read
    for metric in metrics:
        query = (metric.get("prometheus") or {}).get("query")
        if query and len(query) <= MAX_QUERY:
            yield query
