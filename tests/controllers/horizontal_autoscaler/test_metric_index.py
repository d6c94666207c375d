"""Who is woken: those who read a series, as they are written now."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.controllers.horizontal_autoscaler.harness import LOAD, QUEUED, SCHEDULED, Meter, autoscaler, metric

from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.controllers.horizontal_autoscaler.metric_index import MetricIndex
from springtide.metrics.reading.queries import QueryReader
from springtide.metrics.series import SeriesStore

KEY = Key("shop", "web")
SCHEDULE, QUEUE = (Key("shop", query.split('"')[1]) for query in (SCHEDULED, QUEUED))
EMPTY: Object = {"metadata": {"name": "web", "namespace": "shop"}}
"""As a schema stores it that does not require a spec."""
FIRST, SECOND = autoscaler(metric(SCHEDULED)), autoscaler(metric(QUEUED), metric(LOAD))


@pytest.mark.parametrize(
    ("course", "of_schedules", "of_queues", "of_grants"),
    [
        pytest.param([None, FIRST], [KEY], [], [], id="appears"),
        pytest.param([None, FIRST, SECOND], [], [KEY], [KEY], id="reads-something-else"),
        pytest.param([None, SECOND, FIRST], [KEY], [], [], id="asks-the-server-no-more"),
        pytest.param([None, FIRST, {**FIRST, "status": {"desiredReplicas": 1}}], [KEY], [], [], id="only-its-status"),
        pytest.param([None, SECOND, None], [], [], [], id="goes"),
        pytest.param([None, SECOND, None, FIRST], [KEY], [], [], id="comes-back"),
        pytest.param([None, autoscaler()], [], [], [], id="reads-nothing"),
        pytest.param([None, autoscaler(*[metric(SCHEDULED)] * 33)], [], [], [], id="more-than-anybody-may-read"),
        pytest.param([None, EMPTY, FIRST], [KEY], [], [], id="says-nothing-at-first"),
        pytest.param([None, FIRST, EMPTY], [], [], [], id="says-nothing-any-more"),
    ],
)
def test_the_audience_follows_the_autoscalers(
    course: list[Object | None], of_schedules: list[Key], of_queues: list[Key], of_grants: list[Key]
) -> None:
    audience = MetricIndex(Meter(SeriesStore(), {}))
    for old, new in pairwise(course):
        audience.follow(Delta(KEY, old, new))

    assert audience.of_series(SCHEDULE, ["karpenter_scheduled_capacity"]) == of_schedules
    assert audience.of_series(QUEUE, ["karpenter_queue_length"]) == of_queues
    for stranger in (Key("elsewhere", SCHEDULE.name), Key("shop", "another")):
        assert audience.of_series(stranger, ["karpenter_scheduled_capacity", "karpenter_queue_length"]) == []
    assert audience.of_grants() == of_grants


@pytest.mark.parametrize(
    "query", ["max(karpenter_queue_length)", 'karpenter_queue_length{name=~"j.*"}'], ids=["any", "by pattern"]
)
def test_whoever_does_not_say_whose_series_is_woken_by_all(query: str) -> None:
    audience = MetricIndex(QueryReader(SeriesStore()))
    audience.follow(Delta(KEY, None, autoscaler(metric(query))))

    assert audience.of_series(Key("shop", "anybody"), ["karpenter_queue_length"]) == [KEY]
    assert audience.of_series(Key("shop", "anybody"), ["karpenter_scheduled_capacity"]) == []


def test_whoever_reads_two_of_the_series_is_woken_once() -> None:
    audience = MetricIndex(QueryReader(SeriesStore()))
    queries = (
        'karpenter_queue_length{name="jobs"}',
        "karpenter_queue_length",
        'karpenter_scheduled_capacity{name="jobs"}',
    )
    audience.follow(Delta(KEY, None, autoscaler(*(metric(query) for query in queries))))

    assert audience.of_series(Key("shop", "jobs"), ["karpenter_queue_length", "karpenter_scheduled_capacity"]) == [KEY]
