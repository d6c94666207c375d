"""Series of objects: what is exported of them, for how long, and who is told."""

from __future__ import annotations

from fractions import Fraction

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from springtide.cluster.resources import Key
from springtide.metrics.series import AGE, HELP, SeriesCollector, SeriesStore, SeriesValue

PEAK, OFFICE, OTHER = Key("shop", "peak"), Key("shop", "office"), Key("other", "peak")


class StandingClock:
    """A clock that shows what it is told."""

    def __init__(self, now: int) -> None:
        self.at = now

    def now(self) -> int:
        return self.at

    def monotonic(self) -> float:
        return float(self.at)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def sleep_until(self, at: int) -> None:
        raise NotImplementedError


def exported(book: SeriesStore, now: int) -> list[str]:
    """Write the samples as a scrape has them."""
    registry = CollectorRegistry()
    registry.register(SeriesCollector(book, StandingClock(now)))
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_every_object_has_its_own_series() -> None:
    """Labels are its name and namespace; what goes takes its series along."""
    book = SeriesStore()
    book.put(PEAK, {"karpenter_scheduled_capacity": 3}, fresh_until=100)
    book.put(OTHER, {"karpenter_scheduled_capacity": 5}, fresh_until=None)
    assert exported(book, 50) == [
        'karpenter_scheduled_capacity{name="peak",namespace="other"} 5.0',
        'karpenter_scheduled_capacity{name="peak",namespace="shop"} 3.0',
        f'{AGE}{{name="peak",namespace="other"}} 0.0',
        f'{AGE}{{name="peak",namespace="shop"}} 0.0',
    ]
    book.remove(OTHER)
    assert not [line for line in exported(book, 50) if 'namespace="other"' in line]
    book.reset()
    assert exported(book, 50) == []


@pytest.mark.parametrize(("fresh_until", "now", "age"), [(100, 99, 0), (100, 100, 0), (100, 130, 30), (None, 10**9, 0)])
def test_a_value_ages_from_the_time_on_at_which_it_should_have_been_made_anew(
    fresh_until: int | None, now: int, age: int
) -> None:
    book = SeriesStore()
    book.put(PEAK, {"karpenter_queue_length": 1}, fresh_until=fresh_until)
    assert f'{AGE}{{name="peak",namespace="shop"}} {age}.0' in exported(book, now)


def test_values_are_exact_until_they_are_exported() -> None:
    """A part of nothing is no number."""
    book = SeriesStore()
    book.put(PEAK, {"karpenter_reserved_capacity_cpu_utilization": Fraction(1, 3)}, fresh_until=None)
    book.put(OFFICE, {"karpenter_reserved_capacity_cpu_utilization": None}, fresh_until=None)
    assert book.of("karpenter_reserved_capacity_cpu_utilization", "shop") == [(OFFICE, None), (PEAK, Fraction(1, 3))]
    samples = exported(book, 0)
    assert 'karpenter_reserved_capacity_cpu_utilization{name="office",namespace="shop"} NaN' in samples
    assert 'karpenter_reserved_capacity_cpu_utilization{name="peak",namespace="shop"} 0.3333333333333333' in samples


def test_series_are_found_by_metric_and_namespace() -> None:
    book = SeriesStore()
    for key in (PEAK, OTHER, OFFICE):
        book.put(key, {"karpenter_queue_length": len(key.name)}, fresh_until=None)
    assert book.of("karpenter_queue_length", "shop") == [(OFFICE, 6), (PEAK, 4)]
    assert book.of("karpenter_queue_length", "shop", "peak") == [(PEAK, 4)]
    assert book.of("karpenter_queue_length", "shop", "nobody") == []
    assert book.of("karpenter_queue_length", "other") == [(OTHER, 4)]
    assert book.of("karpenter_scheduled_capacity", "shop") == []
    book.put(PEAK, {}, fresh_until=None)
    assert book.of("karpenter_queue_length", "shop") == [(OFFICE, 6)]


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
def test_listeners_hear_of_what_changes(values: dict[str, SeriesValue], changed: set[str]) -> None:
    book = SeriesStore()
    book.put(PEAK, {"a": 1, "b": None}, fresh_until=None)
    heard: list[tuple[Key, frozenset[str]]] = []
    end = book.listen(lambda key, names: heard.append((key, names)))
    book.put(PEAK, values, fresh_until=None)
    assert heard == ([(PEAK, frozenset(changed))] if changed else [])
    end()
    book.reset()
    assert len(heard) == bool(changed)


def test_what_is_expected_is_awaited_until_it_is_known() -> None:
    """Whoever has waited is told, whatever comes of it."""
    book = SeriesStore()
    heard: list[tuple[Key, frozenset[str]]] = []
    book.listen(lambda key, names: heard.append((key, names)))
    for key in (PEAK, OFFICE, OTHER):
        book.expect(key, ("a", "b"))
    assert book.pending("a", "shop") == [OFFICE, PEAK]
    assert book.pending("a", "shop", "peak") == [PEAK]
    assert book.pending("a", "shop", "nobody") == book.pending("c", "shop") == []
    assert heard == []

    book.put(PEAK, {"a": 1}, fresh_until=None)
    book.remove(OFFICE)
    assert book.pending("a", "shop") == book.pending("b", "shop") == []
    assert heard == [(PEAK, frozenset("ab")), (OFFICE, frozenset("ab"))]

    book.expect(PEAK, ("a", "c"))
    assert book.pending("a", "shop") == [], "the last value counts until there is another"
    book.reset()
    assert book.pending("a", "other") == []


def test_what_is_expected_may_change() -> None:
    book = SeriesStore()
    book.expect(PEAK, ("a",))
    book.expect(PEAK, ("b",))
    assert (book.pending("a", "shop"), book.pending("b", "shop")) == ([], [PEAK])


def test_a_book_is_open_from_when_all_is_expected_until_the_time_of_leading_is_over() -> None:
    book = SeriesStore()
    book.expect(PEAK, ("a",))
    assert not book.synced
    book.mark_synced()
    assert book.synced
    book.reset()
    assert not book.synced


def test_every_metric_has_its_help() -> None:
    assert all(HELP.values())
    assert len(HELP) == 14
