"""The metric index: which autoscalers a change of a series enqueues."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.controllers.horizontal_autoscaler.harness import (
    LOAD,
    QUEUED,
    SCHEDULED,
    FakeMetricReader,
    autoscaler,
    metric,
)

from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.controllers.horizontal_autoscaler.metric_index import MetricIndex
from springtide.metrics.reading.queries import QueryReader
from springtide.metrics.series import SeriesStore

KEY = Key("shop", "web")
SCHEDULE, QUEUE = (Key("shop", query.split('"')[1]) for query in (SCHEDULED, QUEUED))
EMPTY: Object = {"metadata": {"name": "web", "namespace": "shop"}}
"""An object as a schema without a required spec stores it."""
FIRST, SECOND = autoscaler(metric(SCHEDULED)), autoscaler(metric(QUEUED), metric(LOAD))


@pytest.mark.parametrize(
    ("versions", "of_schedules", "of_queues", "of_grants"),
    [
        pytest.param([None, FIRST], [KEY], [], [], id="created"),
        pytest.param([None, FIRST, SECOND], [], [KEY], [KEY], id="query-changed"),
        pytest.param([None, SECOND, FIRST], [KEY], [], [], id="server-query-removed"),
        pytest.param([None, FIRST, {**FIRST, "status": {"desiredReplicas": 1}}], [KEY], [], [], id="status-changed"),
        pytest.param([None, SECOND, None], [], [], [], id="deleted"),
        pytest.param([None, SECOND, None, FIRST], [KEY], [], [], id="recreated"),
        pytest.param([None, autoscaler()], [], [], [], id="no-metrics"),
        pytest.param([None, autoscaler(*[metric(SCHEDULED)] * 33)], [], [], [], id="more-metrics-than-allowed"),
        pytest.param([None, EMPTY, FIRST], [KEY], [], [], id="empty-at-first"),
        pytest.param([None, FIRST, EMPTY], [], [], [], id="emptied"),
    ],
)
def test_index_follows_the_autoscalers(
    versions: list[Object | None], of_schedules: list[Key], of_queues: list[Key], of_grants: list[Key]
) -> None:
    index = MetricIndex(FakeMetricReader(SeriesStore(), {}))
    for old, new in pairwise(versions):
        index.follow(Delta(KEY, old, new))

    assert index.of_series(SCHEDULE, ["karpenter_scheduled_capacity"]) == of_schedules
    assert index.of_series(QUEUE, ["karpenter_queue_length"]) == of_queues
    for other in (Key("elsewhere", SCHEDULE.name), Key("shop", "another")):
        assert index.of_series(other, ["karpenter_scheduled_capacity", "karpenter_queue_length"]) == []
    assert index.of_grants() == of_grants


@pytest.mark.parametrize(
    "query", ["max(karpenter_queue_length)", 'karpenter_queue_length{name=~"j.*"}'], ids=["any", "by pattern"]
)
def test_query_without_an_exact_name_matches_all_series_of_its_metric(query: str) -> None:
    index = MetricIndex(QueryReader(SeriesStore()))
    index.follow(Delta(KEY, None, autoscaler(metric(query))))

    assert index.of_series(Key("shop", "any"), ["karpenter_queue_length"]) == [KEY]
    assert index.of_series(Key("shop", "any"), ["karpenter_scheduled_capacity"]) == []


def test_autoscaler_that_reads_two_series_is_listed_once() -> None:
    index = MetricIndex(QueryReader(SeriesStore()))
    queries = (
        'karpenter_queue_length{name="jobs"}',
        "karpenter_queue_length",
        'karpenter_scheduled_capacity{name="jobs"}',
    )
    index.follow(Delta(KEY, None, autoscaler(*(metric(query) for query in queries))))

    assert index.of_series(Key("shop", "jobs"), ["karpenter_queue_length", "karpenter_scheduled_capacity"]) == [KEY]
