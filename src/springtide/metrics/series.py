"""Values that belong to objects: what MetricsProducers make, for scrapes and for autoscalers of the same process.

Every series has the labels `name` and `namespace` of its object. Values are exact; they become floats only where
Prometheus reads them. The book is that of the process, its entries are those of a term of leading: a process that does
not lead exports none, and an object that goes takes its series along. Those who add series up are told of what is not
known yet: right after a restart, a sum of what is known so far would be too small. The book is closed until somebody
has told which objects there are: in one that is closed, what is not written down may be there all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from springtide.cluster.clock import Clock
from springtide.cluster.resources import Key

SeriesValue: TypeAlias = int | Fraction | None
"""None is what Prometheus calls NaN: there is nothing to divide by."""

STALENESS_LIMIT = 300
"""Seconds for which a value may have been old and still counts, as long as Prometheus looks back for a sample: nobody
scales by what was true long ago."""
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
"""All metrics that objects can have, with what they mean."""


@dataclass(frozen=True, slots=True)
class ObjectSeries:
    """What is known of an object."""

    values: Mapping[str, SeriesValue]
    """By the names of metrics."""
    fresh_until: int | None
    """The instant from which on it is old; None: it holds as long as the object stays as it is."""

    def age(self, now: int) -> int:
        """Tell for how many seconds this has been old."""
        return 0 if self.fresh_until is None else max(0, now - self.fresh_until)


SeriesListener: TypeAlias = Callable[[Key, frozenset[str]], None]


class SeriesStore:
    """The readings of all objects of a process."""

    def __init__(self) -> None:
        self.is_open = False
        """Whether it is known of all objects that there are; else that something is not in here means nothing."""
        self._readings: dict[Key, ObjectSeries] = {}
        self._by_metric: dict[tuple[str, str], dict[Key, SeriesValue]] = {}
        """The series of a metric in a namespace."""
        self._expected: dict[Key, tuple[str, ...]] = {}
        """Objects of which nothing is known yet, with the metrics that they will have."""
        self._awaited: dict[tuple[str, str], dict[Key, None]] = {}
        """The same by metric and namespace."""
        self._listeners: list[SeriesListener] = []

    def open(self) -> None:
        """Say that all objects that there are have been put down or are expected."""
        self.is_open = True

    def expect(self, key: Key, metrics: Iterable[str]) -> None:
        """Say that there is an object that will have series, if nothing is known of it yet."""
        if key in self._readings:
            return
        self._await_no_more(key)
        self._expected[key] = tuple(metrics)
        for metric in self._expected[key]:
            self._awaited.setdefault((metric, key.namespace), {})[key] = None

    def put(self, key: Key, values: Mapping[str, SeriesValue], *, fresh_until: int | None) -> None:
        """Say what holds for an object from now on, in place of what did before."""
        before = self._readings.get(key)
        self._readings[key] = ObjectSeries(dict(values), fresh_until)
        self._take_down(key, before.values if before is not None else {}, values, self._await_no_more(key))

    def drop(self, key: Key) -> None:
        """Forget an object, which is gone or has no series after all."""
        before = self._readings.pop(key, None)
        self._take_down(key, before.values if before is not None else {}, {}, self._await_no_more(key))

    def close(self) -> None:
        """Forget everything: the time of leading is over."""
        self.is_open = False
        for key in (*self._readings, *self._expected):
            self.drop(key)

    def get(self, key: Key) -> ObjectSeries | None:
        """Give what is known of an object."""
        return self._readings.get(key)

    def age(self, key: Key, now: int) -> int:
        """Tell for how many seconds what is known of an object has been old."""
        reading = self._readings.get(key)
        return 0 if reading is None else reading.age(now)

    def of(self, metric: str, namespace: str, name: str | None = None) -> list[tuple[Key, SeriesValue]]:
        """List the series of a metric in a namespace, in the order of their objects; of one object if it is named."""
        series = self._by_metric.get((metric, namespace), {})
        if name is not None:
            key = Key(namespace, name)
            return [(key, series[key])] if key in series else []
        return [(key, series[key]) for key in sorted(series)]

    def awaited(self, metric: str, namespace: str, name: str | None = None) -> list[Key]:
        """List objects of a namespace whose value of a metric is not known yet; at most the one that is named."""
        awaited = self._awaited.get((metric, namespace), {})
        if name is not None:
            key = Key(namespace, name)
            return [key] if key in awaited else []
        return sorted(awaited)

    def readings(self) -> Iterator[tuple[Key, ObjectSeries]]:
        """Give everything, in no order."""
        return iter(list(self._readings.items()))

    def listen(self, listener: SeriesListener) -> Callable[[], None]:
        """Tell somebody of every change of what is known: whose, and of which metrics; gives what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _await_no_more(self, key: Key) -> tuple[str, ...]:
        """Give the metrics for which an object was waited for."""
        metrics = self._expected.pop(key, ())
        for metric in metrics:
            waiting = self._awaited[metric, key.namespace]
            del waiting[key]
            if not waiting:
                del self._awaited[metric, key.namespace]
        return metrics

    def _take_down(
        self, key: Key, before: Mapping[str, SeriesValue], after: Mapping[str, SeriesValue], awaited: Sequence[str]
    ) -> None:
        """Keep the series of every metric in order, and tell what has changed."""
        for metric in before:
            if metric not in after:
                del self._by_metric[metric, key.namespace][key]
        for metric, value in after.items():
            self._by_metric.setdefault((metric, key.namespace), {})[key] = value
        changed = frozenset(awaited).union(
            name
            for name in {**before, **after}
            if (name in before) != (name in after) or before.get(name) != after.get(name)
        )
        if changed:
            for listener in list(self._listeners):
                listener(key, changed)


class SeriesCollector(Collector):
    """The book as Prometheus reads it."""

    def __init__(self, book: SeriesStore, clock: Clock) -> None:
        self._book = book
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Write everything down, now."""
        now = self._clock.now()
        families: dict[str, GaugeMetricFamily] = {}
        ages = GaugeMetricFamily(AGE, "For how many seconds the value of a producer has been old.", labels=_LABELS)
        for key, reading in sorted(self._book.readings(), key=lambda entry: entry[0]):
            labels = (key.name, key.namespace)
            for name, value in reading.values.items():
                if name not in families:
                    families[name] = GaugeMetricFamily(name, HELP.get(name, ""), labels=_LABELS)
                families[name].add_metric(labels, float("nan") if value is None else float(value))
            ages.add_metric(labels, reading.age(now))
        yield from (families[name] for name in sorted(families))
        yield ages


_LABELS = ("name", "namespace")
