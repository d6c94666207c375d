"""Queries that read like arithmetic but are not PromQL."""

from __future__ import annotations

import pytest

from springtide.apis.scheduled.promql import misaggregations


@pytest.mark.parametrize(
    ("query", "legal"),
    [
        pytest.param("max(a, b)", "max(a or b)", id="X9"),
        pytest.param(
            'max(karpenter_queue_length{name="ml-training-queue"},karpenter_scheduled_capacity{name="schedules"})',
            'max(karpenter_queue_length{name="ml-training-queue"} or karpenter_scheduled_capacity{name="schedules"})',
            id="X9-of-the-design",
        ),
        pytest.param("MIN(a, b, c)", "MIN(a or b or c)", id="three"),
        pytest.param("sum by (job) (a, b)", "sum by (job) (a or b)", id="grouped"),
        pytest.param("1 + avg(rate(a[5m]), b)", "avg(rate(a[5m]) or b)", id="inside"),
        pytest.param("max(a, 3)", "max(a or vector(3))", id="number"),
        pytest.param('max(a{l="x,y)"}, b)', 'max(a{l="x,y)"} or b)', id="strings-are-skipped"),
    ],
)
def test_second_argument(query: str, legal: str) -> None:
    assert [legal] == [found.legal for found in misaggregations(query)]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("max(a or b)", id="union"),
        pytest.param('max(a{x="1",y="2"})', id="matchers"),
        pytest.param("sum(a) by (x, y)", id="grouping-after"),
        pytest.param("sum by (x, y) (a)", id="grouping-before"),
        pytest.param("quantile(0.9, a)", id="quantile"),
        pytest.param("topk(3, a)", id="topk"),
        pytest.param("count_values('v', a)", id="count-values"),
        pytest.param("max(clamp(a, 0, 5))", id="function-inside"),
        pytest.param("max_over_time(a[5m])", id="function-of-the-name"),
        pytest.param("label_replace(a, 'x', 'max(a, b)', 'y', '')", id="string"),
        pytest.param("job:max(a", id="unclosed"),
        pytest.param("max(a}, b)", id="unbalanced"),
        pytest.param("", id="empty"),
    ],
)
def test_legal_or_unreadable(query: str) -> None:
    assert list(misaggregations(query)) == []
