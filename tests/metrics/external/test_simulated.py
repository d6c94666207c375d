"""A book as the metrics of a simulated autoscaler: the series that its selector means, added up."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from springtide.cluster.resources import Key, Object
from springtide.metrics.external import SeriesMetrics
from springtide.metrics.series import OLDEST, SeriesBook
from springtide.simulator.behaviours.autoscaling.proposals import Tolerance, Unmeasurable, Workload, propose

METRIC = "karpenter_scheduled_capacity"
NOW = 1_767_571_200
WORKLOAD = Workload("default", 1, 1, ())


def book() -> SeriesBook:
    made = SeriesBook()
    made.put(Key("default", "shop"), {METRIC: 3}, good_until=None)
    made.put(Key("default", "depot"), {METRIC: Fraction(5, 2)}, good_until=None)
    made.put(Key("default", "empty"), {"karpenter_queue_length": None}, good_until=None)
    made.put(Key("elsewhere", "shop"), {METRIC: 9}, good_until=None)
    made.open()
    return made


def external(selector: dict[str, Any] | None, metric: str = METRIC) -> Object:
    source = {"name": metric, **({} if selector is None else {"selector": selector})}
    target = {"type": "AverageValue", "averageValue": "1"}
    return {"type": "External", "external": {"metric": source, "target": target}}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({"matchLabels": {"name": "shop"}}, 3, id="one"),
        pytest.param({"matchExpressions": [{"key": "name", "operator": "NotIn", "values": ["shop"]}]}, 3, id="set"),
        pytest.param({}, 6, id="empty-selector"),
        pytest.param(None, 6, id="no-selector"),
    ],
)
def test_what_is_meant_is_added_up(selector: dict[str, Any] | None, expected: int) -> None:
    proposal = propose(external(selector), WORKLOAD, SeriesMetrics([book()]), Tolerance(), NOW)

    assert proposal.replicas == expected


@pytest.mark.parametrize(
    "metric",
    [
        pytest.param(external({"matchLabels": {"name": "none"}}), id="nothing-is-meant"),
        pytest.param(external({"matchLabels": {"name": "empty"}}, "karpenter_queue_length"), id="not-a-number"),
        pytest.param(external(None, "karpenter_queue_oldest_message_age_seconds"), id="no-series"),
    ],
)
def test_nothing_is_not_zero(metric: Object) -> None:
    with pytest.raises(Unmeasurable, match="no metrics returned from external metrics API"):
        propose(metric, WORKLOAD, SeriesMetrics([book()]), Tolerance(), NOW)


@pytest.mark.parametrize(
    ("value", "good_until"),
    [pytest.param(1, NOW - OLDEST - 1, id="too-old"), pytest.param(None, None, id="not-a-number")],
)
def test_a_sum_of_which_a_part_is_not_known_is_not_told(value: int | None, good_until: int | None) -> None:
    made = book()
    made.put(Key("default", "other"), {METRIC: value}, good_until=good_until)

    with pytest.raises(Unmeasurable):
        propose(external(None), WORKLOAD, SeriesMetrics([made]), Tolerance(), NOW)


def test_only_the_book_of_the_leader_counts() -> None:
    """Others are closed, and know nothing."""
    proposal = propose(external(None), WORKLOAD, SeriesMetrics([SeriesBook(), book()]), Tolerance(), NOW)
    assert proposal.replicas == 6

    with pytest.raises(Unmeasurable):
        propose(external(None), WORKLOAD, SeriesMetrics([SeriesBook()]), Tolerance(), NOW)


def test_nothing_else_is_measured() -> None:
    metrics = SeriesMetrics([book()])

    assert metrics.of_pods("cpu", "default", ["a"], "", NOW) == {}
    assert metrics.of_object(METRIC, "default", "Deployment", "shop", NOW) is None
