"""Which queries are evaluated in process, and which by Prometheus."""

from __future__ import annotations

import asyncio
from fractions import Fraction

import pytest
from tests.metrics.reading.series_stores import QUEUE, SCHEDULED, store_of

from springtide.cluster.resources import Key
from springtide.metrics.reading.port import MetricReader, OwnSeries, QueryError
from springtide.metrics.reading.queries import QueryReader, QuerySource
from springtide.metrics.series import SeriesStore

STORE = store_of({"shop/jobs": {QUEUE: 41}, "shop/peak": {SCHEDULED: 6}})
ADDRESS = "https://prometheus.example.com/"


class OtherServer(MetricReader):
    """Returns the same number for every query except `max(a, b)`."""

    async def read(self, query: str, *, namespace: str) -> Fraction:
        if "," in query:
            raise QueryError("NotPromQL", "parse error", permanent=True)
        return Fraction(1000)

    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:
        return None

    def address(self, query: str) -> str | None:
        return ADDRESS


def _read(reading: QueryReader, query: str) -> Fraction:
    return asyncio.run(reading.read(query, namespace="shop"))


@pytest.mark.parametrize(
    ("query", "source", "answer", "sources"),
    [
        pytest.param(QUEUE, QuerySource.AUTO, 41, [(QUEUE, None)], id="own"),
        pytest.param(f'{QUEUE}{{name="jobs"}}', QuerySource.AUTO, 41, [(QUEUE, "jobs")], id="own-by-name"),
        pytest.param(f'{QUEUE}{{name=~"jobs|x"}}', QuerySource.AUTO, 41, [(QUEUE, None)], id="own-by-pattern"),
        pytest.param(f'{QUEUE}{{name!="x"}}', QuerySource.AUTO, 41, [(QUEUE, None)], id="own-but-for-one"),
        pytest.param(
            f'max({QUEUE} or {SCHEDULED}{{name="peak"}} or {QUEUE})',
            QuerySource.AUTO,
            41,
            [(QUEUE, None), (SCHEDULED, "peak")],
            id="own-two",
        ),
        pytest.param("vector(3)", QuerySource.AUTO, 3, [], id="constant"),
        pytest.param("up", QuerySource.AUTO, 1000, None, id="foreign"),
        pytest.param(f"max({QUEUE} or up)", QuerySource.AUTO, 1000, None, id="own-and-foreign"),
        pytest.param(f"rate({QUEUE}[5m])", QuerySource.AUTO, 1000, None, id="own-with-history"),
        pytest.param("newest_function(up)", QuerySource.AUTO, 1000, None, id="what-only-the-server-knows"),
        pytest.param(QUEUE, QuerySource.IN_PROCESS, 41, [(QUEUE, None)], id="own-in-process"),
        pytest.param(QUEUE, QuerySource.PROMETHEUS, 1000, None, id="own-of-prometheus"),
    ],
)
def test_where_a_query_is_evaluated(
    query: str, source: QuerySource, answer: int, sources: list[tuple[str, str | None]] | None
) -> None:
    reading = QueryReader(STORE, OtherServer(), source=source)
    assert _read(reading, query) == answer
    assert reading.sources(query) == (None if sources is None else tuple(sources))
    assert reading.address(query) == (ADDRESS if sources is None else None)


@pytest.mark.parametrize(
    ("query", "reading", "reason"),
    [
        pytest.param("up", QueryReader(STORE), "NotInProcess", id="foreign-without-prometheus"),
        pytest.param(
            "up", QueryReader(STORE, OtherServer(), source=QuerySource.IN_PROCESS), "NotInProcess", id="in-process"
        ),
        pytest.param("max(a, b)", QueryReader(STORE), "NotPromQL", id="invalid-query"),
        pytest.param("up[5m]", QueryReader(STORE, OtherServer()), "NotANumber", id="range"),
    ],
)
def test_queries_without_a_source(query: str, reading: QueryReader, reason: str) -> None:
    for _ in range(2):  # the second time from memory
        with pytest.raises(QueryError) as received:
            _read(reading, query)
        assert (received.value.reason, received.value.permanent) == (reason, True)
    assert (reading.sources(query), reading.address(query)) == (None, None)


def test_the_hint_is_added_to_the_message_of_the_server() -> None:
    with pytest.raises(QueryError, match=r"parse error \(`max\(a, b\)` is not PromQL.*as separate metrics"):
        _read(QueryReader(STORE, OtherServer()), "max(a, b)")


def test_results_are_not_cached() -> None:
    store = store_of({"shop/jobs": {QUEUE: 1}})
    reading = QueryReader(store)
    assert _read(reading, QUEUE) == 1
    store.put(next(key for key, _ in store.items()), {QUEUE: 2}, fresh_until=None)
    assert _read(reading, QUEUE) == 2


def test_a_missing_url_of_prometheus_is_an_error() -> None:
    with pytest.raises(ValueError, match="--prometheus-url"):
        QueryReader(STORE, source=QuerySource.PROMETHEUS)


@pytest.mark.parametrize(
    ("now", "answered"),
    [(1000, True), (1300, True), (1301, False), (9000, False)],
    ids=["fresh", "old", "too old", "much too old, and told in the same words"],
)
def test_an_outdated_series_has_no_result(now: int, answered: bool) -> None:
    """Without a result, an autoscaler keeps its replicas."""
    store = SeriesStore()
    store.put(Key("shop", "jobs"), {QUEUE: 41}, fresh_until=1000)
    store.mark_synced()
    reading = QueryReader(store, now=lambda: now)
    if answered:
        assert _read(reading, QUEUE) == 41
        return
    with pytest.raises(QueryError, match="jobs has been outdated since 1970-01-01T00:16:40Z") as received:
        _read(reading, QUEUE)
    assert (received.value.reason, received.value.permanent) == ("Outdated", False)
