"""The store of series: exported samples, their age, pending objects, and listeners."""

from __future__ import annotations

from fractions import Fraction

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from springtide.cluster.resources import Key
from springtide.metrics.series import AGE, HELP, SeriesChange, SeriesCollector, SeriesStore, SeriesValue

PEAK, OFFICE, OTHER = Key("shop", "peak"), Key("shop", "office"), Key("other", "peak")


class StandingClock:
    """A clock with a fixed time."""

    def __init__(self, now: int) -> None:
        self.at = now

    def now(self) -> int:
        return self.at

    def monotonic(self) -> float:
        return float(self.at)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def stepped(self) -> int:
        raise NotImplementedError

    async def sleep_until(self, at: int) -> None:
        raise NotImplementedError


def exported(store: SeriesStore, now: int) -> list[str]:
    """Return the samples of a scrape as text lines."""
    registry = CollectorRegistry()
    registry.register(SeriesCollector(store, StandingClock(now)))
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_every_object_has_its_own_series() -> None:
    """With its name and namespace as labels; a removed object has none."""
    store = SeriesStore()
    store.put(PEAK, {"karpenter_scheduled_capacity": 3}, fresh_until=100)
    store.put(OTHER, {"karpenter_scheduled_capacity": 5}, fresh_until=None)
    assert exported(store, 50) == [
        'karpenter_scheduled_capacity{name="peak",namespace="other"} 5.0',
        'karpenter_scheduled_capacity{name="peak",namespace="shop"} 3.0',
        f'{AGE}{{name="peak",namespace="other"}} 0.0',
        f'{AGE}{{name="peak",namespace="shop"}} 0.0',
    ]
    store.remove(OTHER)
    assert not [line for line in exported(store, 50) if 'namespace="other"' in line]
    store.reset()
    assert exported(store, 50) == []


@pytest.mark.parametrize(("fresh_until", "now", "age"), [(100, 99, 0), (100, 100, 0), (100, 130, 30), (None, 10**9, 0)])
def test_the_age_of_a_value_counts_from_fresh_until(fresh_until: int | None, now: int, age: int) -> None:
    store = SeriesStore()
    store.put(PEAK, {"karpenter_queue_length": 1}, fresh_until=fresh_until)
    assert f'{AGE}{{name="peak",namespace="shop"}} {age}.0' in exported(store, now)


def test_values_are_exact_until_they_are_exported() -> None:
    """A ratio without a denominator is NaN."""
    store = SeriesStore()
    store.put(PEAK, {"karpenter_reserved_capacity_cpu_utilization": Fraction(1, 3)}, fresh_until=None)
    store.put(OFFICE, {"karpenter_reserved_capacity_cpu_utilization": None}, fresh_until=None)
    assert store.of("karpenter_reserved_capacity_cpu_utilization", "shop") == [(OFFICE, None), (PEAK, Fraction(1, 3))]
    samples = exported(store, 0)
    assert 'karpenter_reserved_capacity_cpu_utilization{name="office",namespace="shop"} NaN' in samples
    assert 'karpenter_reserved_capacity_cpu_utilization{name="peak",namespace="shop"} 0.3333333333333333' in samples


def test_series_are_found_by_metric_and_namespace() -> None:
    store = SeriesStore()
    for key in (PEAK, OTHER, OFFICE):
        store.put(key, {"karpenter_queue_length": len(key.name)}, fresh_until=None)
    assert store.of("karpenter_queue_length", "shop") == [(OFFICE, 6), (PEAK, 4)]
    assert store.of("karpenter_queue_length", "shop", "peak") == [(PEAK, 4)]
    assert store.of("karpenter_queue_length", "shop", "missing") == []
    assert store.of("karpenter_queue_length", "other") == [(OTHER, 4)]
    assert store.of("karpenter_scheduled_capacity", "shop") == []
    store.put(PEAK, {}, fresh_until=None)
    assert store.of("karpenter_queue_length", "shop") == [(OFFICE, 6)]


@pytest.mark.parametrize(
    ("values", "changed"),
    [
        ({"a": 1, "b": None}, set()),
        ({"a": 2, "b": None}, {"a"}),
        ({"a": 1, "b": 0}, {"b"}),
        ({"a": 1}, {"b"}),
        ({"a": 1, "b": None, "c": None}, {"c"}),
    ],
    ids=["nothing", "a value", "nothing to a value", "one less", "one more"],
)
def test_listeners_are_called_with_the_changed_metrics(values: dict[str, SeriesValue], changed: set[str]) -> None:
    store = SeriesStore()
    store.put(PEAK, {"a": 1, "b": None}, fresh_until=None)
    heard: list[SeriesChange] = []
    end = store.subscribe(heard.append)
    store.put(PEAK, values, fresh_until=None)
    assert heard == ([(PEAK, frozenset(changed))] if changed else [])
    end()
    store.reset()
    assert len(heard) == bool(changed)


def test_an_expected_object_is_pending_until_it_has_values() -> None:
    """Listeners are called in any case."""
    store = SeriesStore()
    heard: list[SeriesChange] = []
    store.subscribe(heard.append)
    for key in (PEAK, OFFICE, OTHER):
        store.expect(key, ("a", "b"))
    assert store.pending("a", "shop") == [OFFICE, PEAK]
    assert store.pending("a", "shop", "peak") == [PEAK]
    assert store.pending("a", "shop", "missing") == store.pending("c", "shop") == []
    assert heard == []

    store.put(PEAK, {"a": 1}, fresh_until=None)
    store.remove(OFFICE)
    assert store.pending("a", "shop") == store.pending("b", "shop") == []
    assert heard == [(PEAK, frozenset("ab")), (OFFICE, frozenset("ab"))]

    store.expect(PEAK, ("a", "c"))
    assert store.pending("a", "shop") == [], "the last value counts until there is another"
    store.reset()
    assert store.pending("a", "other") == []


def test_the_expected_metrics_may_change() -> None:
    store = SeriesStore()
    store.expect(PEAK, ("a",))
    store.expect(PEAK, ("b",))
    assert (store.pending("a", "shop"), store.pending("b", "shop")) == ([], [PEAK])


def test_a_store_is_synced_until_it_is_reset() -> None:
    store = SeriesStore()
    store.expect(PEAK, ("a",))
    assert not store.synced
    store.mark_synced()
    assert store.synced
    store.reset()
    assert not store.synced


def test_every_metric_has_a_help_text() -> None:
    assert all(HELP.values())
    assert len(HELP) == 14
