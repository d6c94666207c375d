"""The documents of the API: exact values of one namespace, and discovery that does not change.

A store as the metrics of a simulated autoscaler: the series that its selector means, added up.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.cluster.errors import NotFound, ServerError
from springtide.cluster.resources import Key, Object
from springtide.metrics.external import SeriesMetrics
from springtide.metrics.external.app import SeriesSelector
from springtide.metrics.external.documents import PATH, amount, group, group_list, resource_list, value_list
from springtide.metrics.series import HELP, STALENESS_LIMIT, SeriesStore, SeriesValue
from springtide.quantity import Quantity
from springtide.simulator.behaviours.autoscaling.proposals import MetricUnavailable, ScaledWorkload, Tolerance, propose

METRIC = "karpenter_scheduled_capacity"
NOW = 1_767_571_200
EVERYTHING = SeriesSelector().matches


def store(*, fresh_until: int | None = None, **values: SeriesValue) -> SeriesStore:
    """Make a store with one series for each name, in the namespace default."""
    made = SeriesStore()
    for name, value in values.items():
        made.put(Key("default", name), {METRIC: value}, fresh_until=fresh_until)
    made.mark_synced()
    return made


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(0, "0", id="zero"),
        pytest.param(3, "3", id="whole"),
        pytest.param(1_000_000, "1000000", id="large"),
        pytest.param(Fraction(6, 2), "3", id="whole-fraction"),
        pytest.param(Fraction(1, 4), "250m", id="quarter"),
        pytest.param(Fraction(3, 2), "1500m", id="one-and-a-half"),
        pytest.param(Fraction(1, 3), "334m", id="third-rounds-up"),
        pytest.param(Fraction(-1, 3), "-334m", id="below-zero-away-from-it"),
        pytest.param(Fraction(1, 10**9), "1m", id="tiny"),
    ],
)
def test_amounts(value: int | Fraction, expected: str) -> None:
    assert amount(value) == expected


@given(st.fractions(min_value=-(10**9), max_value=10**9))
def test_an_amount_is_never_farther_than_a_thousandth_and_never_closer_to_zero(value: Fraction) -> None:
    read = Fraction(Quantity.parse(amount(value)).nano, 10**9)

    assert abs(value) <= abs(read) < abs(value) + Fraction(1, 1000)


def test_values_are_of_one_namespace_and_in_order() -> None:
    made = store(shop=3, depot=Fraction(1, 4))
    made.put(Key("elsewhere", "shop"), {METRIC: 9}, fresh_until=None)

    assert value_list(made, METRIC, "default", EVERYTHING, NOW) == {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {
                "metricName": METRIC,
                "metricLabels": {"name": name, "namespace": "default"},
                "timestamp": "2026-01-05T00:00:00Z",
                "value": value,
            }
            for name, value in (("depot", "250m"), ("shop", "3"))
        ],
    }


@pytest.mark.parametrize(
    ("made", "metric", "selector", "expected"),
    [
        pytest.param(store(shop=3, depot=1), METRIC, "name=shop", ["3"], id="selected"),
        pytest.param(store(shop=3), METRIC, "name=none", [], id="nothing-selected"),
        pytest.param(store(shop=None, depot=1), METRIC, "name=depot", ["1"], id="not-a-number-is-not-selected"),
        pytest.param(store(shop=3), "karpenter_queue_length", "", [], id="known-and-without-series"),
        pytest.param(store(shop=3, fresh_until=NOW - STALENESS_LIMIT), METRIC, "", ["3"], id="old-but-not-too-old"),
        pytest.param(store(), METRIC, "", [], id="empty"),
    ],
)
def test_selected_series(made: SeriesStore, metric: str, selector: str, expected: list[str]) -> None:
    received = value_list(made, metric, "default", SeriesSelector.parse(selector).matches, NOW)

    assert [item["value"] for item in received["items"]] == expected


def test_the_timestamp_is_when_the_value_was_fresh() -> None:
    received = value_list(store(shop=3, fresh_until=NOW - 60), METRIC, "default", EVERYTHING, NOW)

    assert received["items"][0]["timestamp"] == "2026-01-04T23:59:00Z"


def test_a_series_that_is_too_old_fails_the_sum_and_is_named() -> None:
    """Without it the sum would be too small, and an autoscaler would scale down."""
    made = store(shop=3, fresh_until=NOW - STALENESS_LIMIT - 1)
    made.put(Key("default", "depot"), {METRIC: 1}, fresh_until=None)

    with pytest.raises(ServerError, match=r"MetricsProducer default/shop has been outdated for 301 s") as refused:
        value_list(made, METRIC, "default", EVERYTHING, NOW)
    assert refused.value.code == 503
    received = value_list(made, METRIC, "default", SeriesSelector.parse("name=depot").matches, NOW)
    assert [item["value"] for item in received["items"]] == ["1"]


def test_a_series_without_a_value_fails_the_sum_and_is_named() -> None:
    """There is nothing to divide by, and the sum of the others would be too small."""
    with pytest.raises(ServerError, match=r"MetricsProducer default/shop has no value now") as refused:
        value_list(store(shop=None, depot=1), METRIC, "default", EVERYTHING, NOW)
    assert refused.value.code == 503


def test_a_series_that_is_not_known_yet_fails_the_sum_and_is_named() -> None:
    """Right after a restart the sum of the known series would be too small."""
    made = store(depot=1)
    made.expect(Key("default", "shop"), (METRIC,))

    with pytest.raises(ServerError, match=r"MetricsProducer default/shop is not known yet") as refused:
        value_list(made, METRIC, "default", EVERYTHING, NOW)
    assert refused.value.code == 503
    received = value_list(made, METRIC, "default", SeriesSelector.parse("name=depot").matches, NOW)
    assert [item["value"] for item in received["items"]] == ["1"]


def test_no_values_before_the_store_is_synced() -> None:
    """An empty list would mean that there are none."""
    made = store(shop=3)
    made.reset()

    with pytest.raises(ServerError, match="have not been read yet") as refused:
        value_list(made, METRIC, "default", EVERYTHING, NOW)
    assert (refused.value.code, refused.value.retry_after) == (503, 1)


def test_an_unknown_metric_is_not_found() -> None:
    with pytest.raises(NotFound, match=r"no external metric 'karpenter_scheduled', expected one of .*karpenter_sched"):
        value_list(store(shop=3), "karpenter_scheduled", "default", EVERYTHING, NOW)


def test_discovery_lists_all_metrics() -> None:
    listed = resource_list()

    assert [resource["name"] for resource in listed["resources"]] == sorted(HELP)
    assert all(resource["namespaced"] for resource in listed["resources"])
    assert f"/apis/{listed['groupVersion']}" == PATH
    assert group_list()["groups"][0]["name"] == group()["name"] == "external.metrics.k8s.io"
    assert group()["preferredVersion"] == group()["versions"][0]


WORKLOAD = ScaledWorkload("default", 1, 1, ())


def book_test_simulated() -> SeriesStore:
    made = SeriesStore()
    made.put(Key("default", "shop"), {METRIC: 3}, fresh_until=None)
    made.put(Key("default", "depot"), {METRIC: Fraction(5, 2)}, fresh_until=None)
    made.put(Key("default", "empty"), {"karpenter_queue_length": None}, fresh_until=None)
    made.put(Key("elsewhere", "shop"), {METRIC: 9}, fresh_until=None)
    made.mark_synced()
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
def test_selected_series_are_added_up(selector: dict[str, Any] | None, expected: int) -> None:
    proposal = propose(external(selector), WORKLOAD, SeriesMetrics([book_test_simulated()]), Tolerance(), NOW)

    assert proposal.replicas == expected


@pytest.mark.parametrize(
    "metric",
    [
        pytest.param(external({"matchLabels": {"name": "none"}}), id="nothing-selected"),
        pytest.param(external({"matchLabels": {"name": "empty"}}, "karpenter_queue_length"), id="not-a-number"),
        pytest.param(external(None, "karpenter_queue_oldest_message_age_seconds"), id="no-series"),
    ],
)
def test_no_series_is_not_zero(metric: Object) -> None:
    with pytest.raises(MetricUnavailable, match="no metrics returned from external metrics API"):
        propose(metric, WORKLOAD, SeriesMetrics([book_test_simulated()]), Tolerance(), NOW)


@pytest.mark.parametrize(
    ("value", "fresh_until"),
    [pytest.param(1, NOW - STALENESS_LIMIT - 1, id="too-old"), pytest.param(None, None, id="not-a-number")],
)
def test_no_sum_with_an_unknown_part(value: int | None, fresh_until: int | None) -> None:
    made = book_test_simulated()
    made.put(Key("default", "other"), {METRIC: value}, fresh_until=fresh_until)

    with pytest.raises(MetricUnavailable):
        propose(external(None), WORKLOAD, SeriesMetrics([made]), Tolerance(), NOW)


def test_only_the_store_of_the_leader_counts() -> None:
    """The stores of the others are not synced."""
    proposal = propose(
        external(None), WORKLOAD, SeriesMetrics([SeriesStore(), book_test_simulated()]), Tolerance(), NOW
    )
    assert proposal.replicas == 6

    with pytest.raises(MetricUnavailable):
        propose(external(None), WORKLOAD, SeriesMetrics([SeriesStore()]), Tolerance(), NOW)


def test_there_are_no_other_metrics() -> None:
    metrics = SeriesMetrics([book_test_simulated()])

    assert metrics.of_pods("cpu", "default", ["a"], "", NOW) == {}
    assert metrics.of_object(METRIC, "default", "Deployment", "shop", NOW) is None
