"""The series of a process: the values of MetricsProducers, for scrapes and for autoscalers in the same process.

Every series has the labels `name` and `namespace` of its object. Values are exact, and become floats only for
Prometheus. The metrics-producer controller of the leader fills the store, and resets it when its term ends: a process
that does not lead exports no series, and the series of a deleted object are removed.

The store also lists objects whose values are pending, because after a restart a sum over the known series would be too
small. Until the store is synced, even that list is incomplete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from springtide.cluster.clock import Clock
from springtide.cluster.resources import Key
from springtide.cluster.state import SharedState

SeriesValue: TypeAlias = int | Fraction | None
"""None is NaN: there is nothing to divide by."""

STALENESS_LIMIT = 300
"""Seconds for which an outdated value may still be used; equal to the lookback delta of Prometheus."""
AGE = "springtide_metrics_producer_age_seconds"

HELP: Mapping[str, str] = {
    "karpenter_scheduled_capacity": "Replicas that a schedule asks for now.",
    "karpenter_scheduled_replicas_value": "Replicas that a schedule asks for now.",
    "karpenter_queue_length": "Messages that wait in a queue.",
    "karpenter_queue_oldest_message_age_seconds": "How long the oldest message of a queue has waited.",
    "karpenter_pending_capacity_schedulable_pods": "Pending pods that a new node of a group would take.",
    **{
        f"karpenter_reserved_capacity_{resource}_{part}": words.format(resource)
        for resource in ("cpu", "memory", "pods")
        for part, words in (
            ("reserved", "Requested {} of a group of nodes."),
            ("capacity", "Allocatable {} of a group of nodes."),
            ("utilization", "Requested part of the {} of a group of nodes."),
        )
    },
}
"""All metrics of MetricsProducers, with their help texts."""


@dataclass(frozen=True, slots=True)
class ObjectSeries:
    """The values of an object."""

    values: Mapping[str, SeriesValue]
    """By the names of metrics."""
    fresh_until: int | None
    """The instant from which on the values are outdated; None: they are valid until the object changes."""

    def age(self, now: int) -> int:
        """Return for how many seconds the values have been outdated."""
        return 0 if self.fresh_until is None else max(0, now - self.fresh_until)


class SeriesChange(NamedTuple):
    """Metrics of an object whose values have changed."""

    key: Key
    metrics: frozenset[str]


class SeriesStore(SharedState[SeriesChange]):
    """The series of all objects of a process; the MetricsProducer controller provides them."""

    def __init__(self) -> None:
        self.synced = False
        """Whether all existing objects are known; otherwise a missing object may exist nevertheless."""
        self._by_object: dict[Key, ObjectSeries] = {}
        self._by_metric: dict[tuple[str, str], dict[Key, SeriesValue]] = {}
        """The series by metric and namespace."""
        self._expected: dict[Key, tuple[str, ...]] = {}
        """Objects without values so far, with the metrics that they will have."""
        self._pending: dict[tuple[str, str], dict[Key, None]] = {}
        """The same by metric and namespace."""

    def mark_synced(self) -> None:
        """Declare that all existing objects have values or are expected."""
        self.synced = True

    def expect(self, key: Key, metrics: Iterable[str]) -> None:
        """Add an object whose values are pending, unless it has values."""
        if key in self._by_object:
            return
        self._clear_expected(key)
        self._expected[key] = tuple(metrics)
        for metric in self._expected[key]:
            self._pending.setdefault((metric, key.namespace), {})[key] = None

    def put(self, key: Key, values: Mapping[str, SeriesValue], *, fresh_until: int | None) -> None:
        """Set the values of an object, which replace its previous ones."""
        before = self._by_object.get(key)
        self._by_object[key] = ObjectSeries(dict(values), fresh_until)
        self._update_index(key, before.values if before is not None else {}, values, self._clear_expected(key))

    def remove(self, key: Key) -> None:
        """Remove an object that was deleted, or has no series."""
        before = self._by_object.pop(key, None)
        self._update_index(key, before.values if before is not None else {}, {}, self._clear_expected(key))

    def reset(self) -> None:
        """Remove everything: the term of leadership is over."""
        self.synced = False
        for key in (*self._by_object, *self._expected):
            self.remove(key)

    def get(self, key: Key) -> ObjectSeries | None:
        """Return the values of an object."""
        return self._by_object.get(key)

    def age(self, key: Key, now: int) -> int:
        """Return for how many seconds the values of an object have been outdated."""
        reading = self._by_object.get(key)
        return 0 if reading is None else reading.age(now)

    def of(self, metric: str, namespace: str, name: str | None = None) -> list[tuple[Key, SeriesValue]]:
        """List the series of a metric in a namespace, ordered by object; with a name, at most that of one object."""
        series = self._by_metric.get((metric, namespace), {})
        if name is not None:
            key = Key(namespace, name)
            return [(key, series[key])] if key in series else []
        return [(key, series[key]) for key in sorted(series)]

    def pending(self, metric: str, namespace: str, name: str | None = None) -> list[Key]:
        """List the objects of a namespace whose value of a metric is pending; with a name, at most that one."""
        pending = self._pending.get((metric, namespace), {})
        if name is not None:
            key = Key(namespace, name)
            return [key] if key in pending else []
        return sorted(pending)

    def items(self) -> Iterator[tuple[Key, ObjectSeries]]:
        """Return all objects with their values, in no order."""
        return iter(list(self._by_object.items()))

    def _clear_expected(self, key: Key) -> tuple[str, ...]:
        """Remove an object from the pending ones; return the metrics that it was expected to have."""
        metrics = self._expected.pop(key, ())
        for metric in metrics:
            waiting = self._pending[metric, key.namespace]
            del waiting[key]
            if not waiting:
                del self._pending[metric, key.namespace]
        return metrics

    def _update_index(
        self, key: Key, before: Mapping[str, SeriesValue], after: Mapping[str, SeriesValue], expected: Sequence[str]
    ) -> None:
        """Update the index by metric, and publish the changed metrics."""
        for metric in before:
            if metric not in after:
                del self._by_metric[metric, key.namespace][key]
        for metric, value in after.items():
            self._by_metric.setdefault((metric, key.namespace), {})[key] = value
        changed = frozenset(expected).union(
            name
            for name in {**before, **after}
            if (name in before) != (name in after) or before.get(name) != after.get(name)
        )
        if changed:
            self.publish(SeriesChange(key, changed))


class SeriesCollector(Collector):
    """Exports the series of a store to Prometheus."""

    def __init__(self, store: SeriesStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yield all series with their current values."""
        now = self._clock.now()
        families: dict[str, GaugeMetricFamily] = {}
        ages = GaugeMetricFamily(AGE, "For how many seconds the value of a producer has been outdated.", labels=_LABELS)
        for key, reading in sorted(self._store.items(), key=lambda entry: entry[0]):
            labels = (key.name, key.namespace)
            for name, value in reading.values.items():
                if name not in families:
                    families[name] = GaugeMetricFamily(name, HELP.get(name, ""), labels=_LABELS)
                families[name].add_metric(labels, float("nan") if value is None else float(value))
            ages.add_metric(labels, reading.age(now))
        yield from (families[name] for name in sorted(families))
        yield ages


_LABELS = ("name", "namespace")
