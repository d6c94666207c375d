"""Queries that read like arithmetic but are not PromQL."""

from __future__ import annotations

import pytest

from springtide.apis.scheduled.promql import misaggregations, query_problems


@pytest.mark.parametrize(
    ("query", "legal"),
    [
        pytest.param(
            'max(karpenter_queue_length{name="ml-training-queue"},karpenter_scheduled_capacity{name="schedules"})',
            'max(karpenter_queue_length{name="ml-training-queue"} or karpenter_scheduled_capacity{name="schedules"})',
            id="of-the-design",
        ),
        pytest.param(
            'MIN(a{n="1"}, b{n="2"}, (c{m="x",n="3"}))',
            'MIN(a{n="1"} or b{n="2"} or (c{m="x",n="3"}))',
            id="three",
        ),
        pytest.param('sum by (job) (a{n="1"}, b{n=""})', 'sum by (job) (a{n="1"} or b{n=""})', id="grouped"),
        pytest.param('1 + avg(a{n="1"}, b{n="2"})', 'avg(a{n="1"} or b{n="2"})', id="inside"),
        pytest.param('max(a{n="1"}, 3)', 'max(a{n="1"} or vector(3))', id="number"),
        pytest.param('max(a{n="1"}, -(1 + 2))', 'max(a{n="1"} or vector(-(1 + 2)))', id="sum-of-numbers"),
        pytest.param('max(scalar(b), a{n="1"})', 'max(vector(scalar(b)) or a{n="1"})', id="scalar"),
        pytest.param('max(a{n="1"}, vector(3))', 'max(a{n="1"} or vector(3))', id="a-vector-already"),
        pytest.param('a) + max(b{n="1"}, 1)', 'max(b{n="1"} or vector(1))', id="a-bracket-too-many-before"),
        pytest.param('(a] + max(b{n="1"}, 1)', 'max(b{n="1"} or vector(1))', id="brackets-of-two-kinds-before"),
        pytest.param(
            'max(a{n="1"}, 1) + c{l="max(d, e)', 'max(a{n="1"} or vector(1))', id="a-quote-that-is-not-closed"
        ),
        pytest.param('max(a{l="\\",)"}, 1)', 'max(a{l="\\",)"} or vector(1))', id="escaped-quotes"),
        pytest.param('max(a{l="x,y)#"}, 1)', 'max(a{l="x,y)#"} or vector(1))', id="strings-are-skipped"),
        pytest.param('max(a{n="1"}, # the floor\n1)', 'max(a{n="1"} or vector(1))', id="comments-are-left-out"),
        pytest.param("max(a, b)", None, id="without-labels"),
        pytest.param('max(a{n="1"}, b{n="1"})', None, id="the-same-labels"),
        pytest.param('max(a{n="1"}, b{m="1"})', None, id="labels-that-may-be-the-same"),
        pytest.param('max(a{n="1"}, b{n!="1"})', None, id="not-equal-is-not-certain-enough"),
        pytest.param('max(a{n="1"}, b{n="2"}, c{n="1"})', None, id="two-of-three-are-the-same"),
        pytest.param('max({__name__="a"}, {__name__="b"})', None, id="names-of-metrics-are-no-labels"),
        pytest.param("max(sum(a), sum(b))", None, id="no-labels-at-all"),
        pytest.param('max(a{n="1"} / 4, b{n="2"})', None, id="arithmetic"),
        pytest.param("max(a, 3)", None, id="what-may-have-no-labels"),
        pytest.param("max(2, 3)", None, id="numbers-only"),
        pytest.param('max(a{n="1"}, 3,)', None, id="an-argument-that-is-missing"),
        pytest.param('max(a{n="1"}, b c)', None, id="no-query"),
    ],
)
def test_second_argument(query: str, legal: str | None) -> None:
    """The valid form is shown if it means the same: `or` drops what has the labels of its left side."""
    assert [legal] == [
        None if found.legal is None else " ".join(found.legal.split()) for found in misaggregations(query)
    ]


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
        pytest.param("a # not max(a, b)", id="comment"),
        pytest.param("a # it's not\n + b # max(a, b)", id="comments-with-a-quote"),
        pytest.param("", id="empty"),
    ],
)
def test_legal_or_unreadable(query: str) -> None:
    assert list(misaggregations(query)) == []


@pytest.mark.parametrize(
    ("query", "severity", "words", "hint"),
    [
        pytest.param("max(a, b)", "warning", "`max(a, b)` is not PromQL", "as separate metrics", id="two-arguments"),
        pytest.param(
            'max(a{n="1"}, b{n="2"})',
            "warning",
            "is not PromQL",
            'write `max(a{n="1"} or b{n="2"})`, or list',
            id="several-arguments-with-labels",
        ),
        pytest.param("sum(a, b)", "warning", "`sum(a, b)` is not PromQL", "aggregate one vector", id="sum"),
        pytest.param(
            f'max(a{{n="{"x" * 200}"}}, 3)',
            "warning",
            "is not PromQL",
            "write `or` between the arguments",
            id="several-long-arguments",
        ),
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
        pytest.param("a" * 20_000, "warning", "20000 characters is too long", "split it", id="long"),
        pytest.param("a offset Inf", "warning", "cannot be parsed here", "", id="parser-that-breaks"),
    ],
)
def test_problems(query: str, severity: str, words: str, hint: str) -> None:
    """A query that every Prometheus rejects is an error; one that another server may accept is a warning."""
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
        pytest.param("max(a) # not max(a, b)", id="comment-at-the-end"),
        pytest.param("2", id="number"),
    ],
)
def test_sound(query: str) -> None:
    assert list(query_problems(query, ("query",))) == []


CPU, MEMORY = "karpenter_reserved_capacity_cpu_utilization", "karpenter_reserved_capacity_memory_utilization"


@pytest.mark.parametrize(
    ("query", "unread"),
    [
        pytest.param(f'max({CPU}{{name="g"}} or {MEMORY}{{name="g"}})', [MEMORY], id="one-producer"),
        pytest.param(f"1 + -max(({CPU}) or on (name) ({MEMORY}))", [MEMORY], id="all-producers"),
        pytest.param(f"clamp_max(max({MEMORY} or {CPU}), 3)", [CPU], id="within-a-function"),
        pytest.param(f'max({CPU}{{name="g"}} or {MEMORY}{{name="h"}})', [], id="two-producers"),
        pytest.param(f'max({CPU}{{name="g"}} or {MEMORY})', [], id="other-producers-too"),
        pytest.param(f"max({CPU} or {MEMORY} offset 5m)", [], id="another-time"),
        pytest.param("max(karpenter_queue_oldest_message_age_seconds or karpenter_queue_length)", [], id="queue"),
        pytest.param("max(karpenter_queue_length or karpenter_scheduled_capacity)", [], id="two-kinds-of-producers"),
        pytest.param("max(up or down)", [], id="metrics-of-others"),
        pytest.param(f"{CPU} and {MEMORY}", [], id="no-union"),
    ],
)
def test_a_part_that_is_never_read(query: str, unread: list[str]) -> None:
    """Both metrics are those of the same producers, with the same labels."""
    problems = list(query_problems(query, ("query",)))

    assert [problem.severity for problem in problems] == ["warning"] * len(unread)
    assert all(name in problem.message for problem, name in zip(problems, unread, strict=True))
