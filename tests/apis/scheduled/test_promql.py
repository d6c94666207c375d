"""Queries that read like arithmetic but are not PromQL."""

from __future__ import annotations

import pytest

from springtide.apis.scheduled.promql import misaggregations, query_problems


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
        pytest.param("a) + max(b, c)", "max(b or c)", id="a-bracket-too-many-before"),
        pytest.param("(a] + max(b, c)", "max(b or c)", id="brackets-of-two-kinds-before"),
        pytest.param('max(a, b) + c{l="max(d, e)', "max(a or b)", id="a-quote-that-is-not-closed"),
        pytest.param('max(a{l="\\",)"}, b)', 'max(a{l="\\",)"} or b)', id="escaped-quotes"),
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


@pytest.mark.parametrize(
    ("query", "severity", "words", "hint"),
    [
        pytest.param("max(a, b)", "warning", "`max(a, b)` is not PromQL", "write `max(a or b)`", id="X9"),
        pytest.param("sum(a", "error", "unclosed left parenthesis", "", id="unclosed"),
        pytest.param("1 +", "error", "`1 +` is not PromQL", "", id="unfinished"),
        pytest.param("  ", "error", "the query is empty", "write PromQL", id="empty"),
        pytest.param("a or 3", "error", "set operator 'or' not allowed", "vector(3)", id="or-number"),
        pytest.param('a{x=~"("}', "error", "illegal regex", "", id="pattern"),
        pytest.param("sum(3)", "error", "expected type vector", "", id="type"),
        pytest.param("a[5m]", "error", "a range of samples over time, not a number", "one number", id="range"),
        pytest.param("(a)[5m:1m]", "error", "a range of samples over time", "one number", id="subquery"),
        pytest.param("('x')", "error", "a text, not a number", "one number", id="text"),
        pytest.param("newest(a)", "warning", "unknown function", "one that your Prometheus has", id="newer-function"),
        pytest.param("(" * 9000 + "a" + ")" * 900, "warning", "too long to be parsed here", "split it", id="deep"),
        pytest.param("a" + " or a" * 600, "warning", "too long to be parsed here", "split it", id="many-operators"),
        pytest.param("a" * 20_000, "warning", "too long to be parsed here", "split it", id="long"),
        pytest.param("a offset Inf", "warning", "cannot be parsed here", "", id="parser-that-breaks"),
    ],
)
def test_problems(query: str, severity: str, words: str, hint: str) -> None:
    """What no Prometheus understands is an error; where another server may know better, it is a warning."""
    (problem,) = query_problems(query, ("query",))
    assert (problem.path, problem.severity) == (("query",), severity)
    assert words in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("sum(rate(http_requests_total[5m])) / 3", id="rate"),
        pytest.param("max_over_time(a[1h:5m])", id="subquery-inside"),
        pytest.param('histogram_quantile(0.9, sum by (le) (rate(a_bucket{job=~"x|y"}[5m])))', id="quantile"),
        pytest.param("a # it's (a comment\n + 1", id="comment"),
        pytest.param("2", id="number"),
    ],
)
def test_sound(query: str) -> None:
    assert list(query_problems(query, ("query",))) == []
