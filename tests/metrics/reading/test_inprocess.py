"""Queries that are evaluated in process: results and errors."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.metrics.reading.series_stores import CAPACITY, QUEUE, RESERVED, SCHEDULED, store_of

from springtide.cluster.resources import Key
from springtide.metrics.reading.inprocess import evaluate
from springtide.metrics.reading.port import QueryError
from springtide.metrics.reading.queries import compile_query
from springtide.metrics.series import SeriesStore

UTILIZATION = "karpenter_reserved_capacity_cpu_utilization"
AGE = "karpenter_queue_oldest_message_age_seconds"

STORE = store_of(
    {
        "shop/jobs": {QUEUE: 41, AGE: 7},
        "shop/mail": {QUEUE: 9, AGE: 3},
        "shop/peak": {SCHEDULED: 6},
        "shop/pool": {RESERVED: Fraction(3, 2), CAPACITY: 4, UTILIZATION: Fraction(3, 8)},
        "shop/void": {RESERVED: 0, CAPACITY: 0, UTILIZATION: None},
        "bank/jobs": {QUEUE: 1000},
    }
)


OVERSIZED = "[^a]{900}" * 4


def _answer(query: str, store: SeriesStore = STORE, namespace: str = "shop") -> Fraction:
    return evaluate(compile_query(query), store, namespace=namespace)


@pytest.mark.parametrize(
    ("query", "number"),
    [
        pytest.param(SCHEDULED, "6", id="the-only-series"),
        pytest.param(f'{QUEUE}{{name="jobs"}}', "41", id="equal"),
        pytest.param(f'{QUEUE}{{name!="jobs"}}', "9", id="not-equal"),
        pytest.param(f'{QUEUE}{{name=~"jo.s|x"}}', "41", id="pattern"),
        pytest.param(f'{QUEUE}{{name!~"jo.*"}}', "9", id="not-pattern"),
        pytest.param(f'{QUEUE}{{name=~".+",name!="mail"}}', "41", id="several-matchers"),
        pytest.param(f'{QUEUE}{{name="jobs",namespace="shop"}}', "41", id="own-namespace"),
        pytest.param(f'sum({QUEUE}{{namespace=~"shop|bank"}})', "50", id="only-the-own-namespace-is-seen"),
        pytest.param(f'{{__name__="{SCHEDULED}"}}', "6", id="name-as-matcher"),
        pytest.param(f'{{"{SCHEDULED}"}}', "6", id="name-in-quotes"),
        pytest.param(f"sum({QUEUE})", "50", id="sum"),
        pytest.param(f"min({QUEUE})", "9", id="min"),
        pytest.param(f"max({QUEUE})", "41", id="max"),
        pytest.param(f"avg({QUEUE})", "25", id="avg"),
        pytest.param(f"SUM({QUEUE})", "50", id="capitals"),
        pytest.param(f"avg({QUEUE} or {SCHEDULED})", "56/3", id="avg-is-exact"),
        pytest.param(f"sum by (namespace) ({QUEUE})", "50", id="by"),
        pytest.param(f"sum({QUEUE}) by (namespace)", "50", id="by-after"),
        pytest.param(f"sum without (name) ({QUEUE})", "50", id="without"),
        pytest.param(f"sum without (name, job, instance) ({QUEUE})", "50", id="without-what-is-not-there"),
        pytest.param(f"max(sum by (name) ({QUEUE}))", "41", id="groups"),
        pytest.param(f'max({QUEUE}{{name="jobs"}} or {SCHEDULED}{{name="peak"}})', "41", id="legal-form-of-the-design"),
        pytest.param(f'{QUEUE}{{name="gone"}} or {SCHEDULED}', "6", id="or-takes-the-right-where-the-left-is-empty"),
        pytest.param(f'{QUEUE}{{name="jobs"}} or {AGE}{{name="jobs"}}', "41", id="or-compares-without-metric-names"),
        pytest.param(f"max({QUEUE} or on () {SCHEDULED})", "41", id="or-on-nothing"),
        pytest.param(f"sum({QUEUE} or ignoring (name) {SCHEDULED})", "50", id="or-ignoring"),
        pytest.param(f"max({SCHEDULED} or vector(60))", "60", id="vector"),
        pytest.param("vector(1 + 2)", "3", id="vector-of-arithmetic"),
        pytest.param("2", "2", id="number"),
        pytest.param("0x10", "16", id="hexadecimal"),
        pytest.param("1e-3", "1/1000", id="exponent"),
        pytest.param("5m", "300", id="duration"),
        pytest.param("0.1 + 0.2", "3/10", id="decimals-are-exact"),
        pytest.param("1 - 2 - 3", "-4", id="left-to-right"),
        pytest.param("2 * 3 ^ 2", "18", id="power-binds-most"),
        pytest.param("2 + 3 * 4", "14", id="precedence"),
        pytest.param("(2 + 3) * 4", "20", id="parentheses"),
        pytest.param("-2 ^ 2", "-4", id="minus-binds-less-than-power"),
        pytest.param("2 ^ -2", "1/4", id="negative-exponent"),
        pytest.param("2 ^ 3 ^ 2", "512", id="powers-from-right-to-left"),
        pytest.param("2 ^ -(1 + 1)", "1/4", id="computed-exponent"),
        pytest.param("7 % 4", "3", id="modulo"),
        pytest.param("-7 % 4", "-3", id="modulo-has-the-sign-of-the-left"),
        pytest.param("7 % -4", "3", id="modulo-of-a-negative"),
        pytest.param("7.5 % 2", "3/2", id="modulo-of-fractions"),
        pytest.param(f"{SCHEDULED} + 1", "7", id="plus"),
        pytest.param(f"10 - {SCHEDULED}", "4", id="number-first"),
        pytest.param(f"{SCHEDULED} * 1.5", "9", id="times"),
        pytest.param(f"{SCHEDULED} / 4", "3/2", id="divided"),
        pytest.param(f"{SCHEDULED} ^ 2", "36", id="power"),
        pytest.param(f"-{SCHEDULED}", "-6", id="minus"),
        pytest.param(f"+{SCHEDULED}", "6", id="plus-sign"),
        pytest.param(f"sum({QUEUE}) / 3 # messages a worker takes\n", "50/3", id="comment"),
        pytest.param(f'{RESERVED}{{name="pool"}} / {CAPACITY}', "3/8", id="same-labels"),
        pytest.param(f"sum({QUEUE}) + sum({SCHEDULED})", "56", id="sums"),
        pytest.param(f"sum({QUEUE} + {AGE})", "60", id="pairs"),
        pytest.param(f"{SCHEDULED} - on (namespace) sum by (namespace) ({QUEUE})", "-44", id="on"),
        pytest.param(f'{SCHEDULED} * ignoring (name) {QUEUE}{{name="mail"}}', "54", id="ignoring"),
        pytest.param(f"max({UTILIZATION})", "3/8", id="max-passes-over-nan"),
        pytest.param(f"min({UTILIZATION})", "3/8", id="min-passes-over-nan"),
    ],
)
def test_answer(query: str, number: str) -> None:
    assert _answer(query) == Fraction(number)


@pytest.mark.parametrize(
    ("query", "reason", "words"),
    [
        pytest.param(QUEUE, "ManySamples", '2 samples instead of one ({name="jobs",namespace="shop"}', id="many"),
        pytest.param(QUEUE, "ManySamples", "sum(…) or max(…)", id="many-hint"),
        pytest.param(f"sum by (name) ({QUEUE})", "ManySamples", '({name="jobs"}, {name="mail"})', id="many-groups"),
        pytest.param(
            f'{QUEUE}{{name="gone"}}',
            "NoSample",
            f'no series `{QUEUE}{{name="gone"}}` in namespace shop (MetricsProducers that have one: jobs, mail)',
            id="none-of-that-name",
        ),
        pytest.param(
            "karpenter_pending_capacity_schedulable_pods", "NoSample", "no MetricsProducer has one", id="none-at-all"
        ),
        pytest.param(f"sum({QUEUE}{{name='gone'}})", "NoSample", 'name="gone"', id="sum-of-none"),
        pytest.param(f"{SCHEDULED} + {QUEUE}", "NoSample", "its sides have no labels in common", id="no-pairs"),
        pytest.param(f'{SCHEDULED} + {QUEUE}{{name="x"}}', "NoSample", 'name="x"', id="no-pair-on-the-right"),
        pytest.param(
            f'{QUEUE}{{namespace="bank"}}',
            "OtherNamespace",
            'only series of namespace shop can be read from here: remove `namespace="bank"`',
            id="other-namespace",
        ),
        pytest.param(f'{QUEUE}{{namespace!="shop"}}', "OtherNamespace", "another namespace", id="not-own-namespace"),
        pytest.param(f'{QUEUE}{{namespace=~"b.*"}}', "OtherNamespace", "another namespace", id="other-namespaces"),
        pytest.param(f'{UTILIZATION}{{name="void"}}', "NoValue", "NaN", id="nan"),
        pytest.param(f"sum({UTILIZATION})", "NoValue", "NaN", id="sum-with-nan"),
        pytest.param(f"avg({UTILIZATION})", "NoValue", "NaN", id="avg-with-nan"),
        pytest.param(f'max({UTILIZATION}{{name="void"}})', "NoValue", "NaN", id="max-of-nan"),
        pytest.param(f"-({UTILIZATION}{{name='void'}} * 2)", "NoValue", "NaN", id="arithmetic-of-nan"),
        pytest.param(f"{UTILIZATION}{{name='void'}} / 0", "NoValue", "NaN", id="nan-by-zero"),
        pytest.param("NaN", "NoValue", "NaN", id="nan-as-written"),
        pytest.param("1 / 0", "DivisionByZero", "`1 / 0` divides by zero", id="by-zero"),
        pytest.param(f"{RESERVED} / {CAPACITY}", "DivisionByZero", "divides by zero", id="one-of-them-by-zero"),
        pytest.param("5 % 0", "DivisionByZero", "divides by zero", id="modulo-zero"),
        pytest.param("0 ^ -1", "DivisionByZero", "divides by zero", id="power-of-zero"),
        pytest.param(
            f"{SCHEDULED} / ignoring (name) {QUEUE}",
            "AmbiguousMatch",
            'several samples with the labels {namespace="shop"} on the right side',
            id="many-on-the-right",
        ),
        pytest.param(
            f"{QUEUE} / ignoring (name) {SCHEDULED}", "AmbiguousMatch", "on the left side", id="many-on-the-left"
        ),
        pytest.param("((10 ^ 64) ^ 64) ^ 64", "TooLarge", "too many digits", id="astronomical"),
        pytest.param("1.2345e300 ^ 4", "NoValue", "Prometheus would call it infinite", id="larger-than-a-float"),
        pytest.param("-(1.2345e300 ^ 4)", "NoValue", "Prometheus would call it infinite", id="smaller-than-a-float"),
        pytest.param(f"max({QUEUE}, {SCHEDULED})", "NotPromQL", "as separate metrics", id="two-vectors"),
        pytest.param("1 +", "NotPromQL", "`1 +` is not PromQL", id="syntax"),
        pytest.param("", "NotPromQL", "the query is empty", id="empty"),
        pytest.param(f"{QUEUE} or 3", "NotPromQL", "`a or vector(3)`", id="or-number"),
        pytest.param(f'{QUEUE}{{name=~"("}}', "NotPromQL", "illegal regex", id="bad-pattern"),
        pytest.param(
            f'{QUEUE}{{name=~"(?x)jobs"}}',
            "NotPromQL",
            "`(?x)jobs` is not a regular expression of PromQL",
            id="dialect",
        ),
        pytest.param("-" * 9_000 + "1", "NotPromQL", "too long to be parsed", id="stack-of-the-parser"),
        pytest.param("-" * 20_000 + "1", "NotPromQL", "at most 10000", id="too-many-characters"),
        pytest.param("1 offset Inf", "NotPromQL", "", id="offset-of-a-number"),
        pytest.param(f"{QUEUE} offset Inf", "NotPromQL", "cannot be parsed here", id="panic-of-the-parser"),
        pytest.param("'text'", "NotANumber", "a text", id="text"),
        pytest.param(f"({QUEUE}[5m])", "NotANumber", "a range of samples over time", id="range"),
    ],
)
def test_no_answer(query: str, reason: str, words: str) -> None:
    with pytest.raises(QueryError) as failure:
        _answer(query)
    assert (failure.value.reason, words in str(failure.value)) == (reason, True), str(failure.value)


@pytest.mark.parametrize(
    ("query", "known"),
    [
        pytest.param(f"sum({QUEUE})", False, id="a-sum-would-be-too-small"),
        pytest.param(f'{QUEUE}{{name="late"}}', False, id="the-series-itself"),
        pytest.param(f'{QUEUE}{{name="late"}} or {SCHEDULED}', False, id="a-fallback-is-not-meant-for-that"),
        pytest.param(f'max({SCHEDULED} or {QUEUE}{{name=~"l.*"}})', False, id="by-a-pattern"),
        pytest.param(f'sum({QUEUE}{{name!="late"}})', True, id="without-it"),
        pytest.param(f'{QUEUE}{{name="jobs"}}', True, id="another-one"),
        pytest.param(f"sum({SCHEDULED})", True, id="another-metric"),
    ],
)
def test_no_result_while_a_series_is_pending(query: str, known: bool) -> None:
    store = store_of({"shop/jobs": {QUEUE: 41}, "shop/peak": {SCHEDULED: 6}})
    store.expect(Key("shop", "late"), (QUEUE,))
    store.expect(Key("bank", "late"), (SCHEDULED,))
    if known:
        assert _answer(query, store) in (41, 6)
    else:
        with pytest.raises(QueryError, match=r"MetricsProducer late .* is not known yet") as failure:
            _answer(query, store)
        assert failure.value.reason == "NotKnownYet"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        pytest.param(f"rate({QUEUE}[5m])", f"`rate({QUEUE}[5m])` is", id="function"),
        pytest.param(f"scalar({QUEUE})", f"`scalar({QUEUE})` is", id="scalar"),
        pytest.param("time()", "`time()` is", id="time"),
        pytest.param(f"{QUEUE} offset 5m", "a value of another time", id="offset"),
        pytest.param(f"{QUEUE} @ 5", "a value of another time", id="at"),
        pytest.param(f"max_over_time({QUEUE}[1h:5m])", "is", id="subquery"),
        pytest.param(f"{QUEUE} > 3", f"`{QUEUE} > 3` is", id="comparison"),
        pytest.param(f"{QUEUE} == bool 3", "is", id="comparison-to-bool"),
        pytest.param(f"{QUEUE} and {SCHEDULED}", "is", id="and"),
        pytest.param(f"{QUEUE} unless {SCHEDULED}", "is", id="unless"),
        pytest.param(f"{QUEUE} atan2 {SCHEDULED}", "is", id="atan2"),
        pytest.param(f"count({QUEUE})", "is", id="count"),
        pytest.param(f"topk(1, {QUEUE})", "is", id="topk"),
        pytest.param(f"{QUEUE} / on (namespace) group_left () {SCHEDULED}", "is", id="many-to-one"),
        pytest.param(f"2 ^ {SCHEDULED}", "whose exponent is not a whole number up to 64", id="exponent-of-a-series"),
        pytest.param("2 ^ 3 ^ 4", "whose exponent is not a whole number up to 64", id="power-of-a-power"),
        pytest.param("2 ^ 0.5", "whose exponent is not a whole number up to 64", id="root"),
        pytest.param("2 ^ 65", "whose exponent is not a whole number up to 64", id="large-exponent"),
        pytest.param("Inf", "an infinite number is", id="infinite"),
        pytest.param("up", "`up`, no metric of a MetricsProducer, is", id="foreign-metric"),
        pytest.param(f"{QUEUE} or up", "`up`", id="foreign-metric-among-ours"),
        pytest.param('{__name__=~"karpenter_.*"}', "without the name of one metric", id="pattern-of-names"),
        pytest.param(f'{QUEUE}{{job="x"}}', "the label `job`", id="label-of-prometheus"),
        pytest.param(f"sum by (job) ({QUEUE})", "the label `job`", id="by-label-of-prometheus"),
        pytest.param(f"{QUEUE} + on (job) {SCHEDULED}", "the label `job`", id="on-label-of-prometheus"),
        pytest.param(f'{QUEUE}{{name="a" or name="b"}}', "`or` between matchers", id="or-between-matchers"),
        pytest.param(
            f'{QUEUE}{{name=~"{OVERSIZED}"}}', "(it needs more than 256 KiB of memory) is", id="oversized-pattern"
        ),
        pytest.param("-(" * 60 + "1" + ")" * 60, "so many levels", id="deep"),
    ],
)
def test_for_prometheus_only(query: str, words: str) -> None:
    with pytest.raises(QueryError) as failure:
        compile_query(query)
    received = str(failure.value)
    assert failure.value.reason == "NotInProcess"
    assert failure.value.permanent
    assert words in received
    assert received.endswith("answered by Prometheus only: start the controller with --prometheus-url")


def test_long_lists_are_cut() -> None:
    store = store_of({f"shop/q{number}": {QUEUE: number} for number in range(9)})
    with pytest.raises(QueryError, match=r"q0, q1, q2, q3, q4 and 4 more"):
        _answer(f'{QUEUE}{{name="x"}}', store)


def test_a_sum_of_a_thousand_unlike_fractions_is_exact() -> None:
    values = {f"shop/q{number}": {UTILIZATION: Fraction(1, 2 * number + 1)} for number in range(1000)}
    expected = sum(Fraction(1, 2 * number + 1) for number in range(1000))
    assert _answer(f"sum({UTILIZATION})", store_of(values)) == expected


def test_the_message_of_a_store_that_is_not_synced() -> None:
    """The metrics-producer controller may run in another process: then only Prometheus has the series."""
    with pytest.raises(QueryError, match="let Prometheus answer with --metrics-source prometheus") as received:
        evaluate(compile_query(QUEUE), SeriesStore(), namespace="shop")
    assert received.value.reason == "NotKnownYet"


@pytest.mark.parametrize(
    "query", [QUEUE, f"{QUEUE} or vector(1)", f"max({QUEUE} or vector(1))", f"vector(1) or {QUEUE}"]
)
def test_no_result_before_the_store_is_synced(query: str) -> None:
    """Otherwise a fallback would be the result."""
    store = store_of({"shop/jobs": {QUEUE: 3}})
    store.reset()
    with pytest.raises(QueryError) as received:
        evaluate(compile_query(query), store, namespace="shop")
    assert received.value.reason == "NotKnownYet"


def test_a_query_whose_patterns_take_too_long_is_refused() -> None:
    """Users write the patterns, and matching them blocks the event loop of the process."""
    store = store_of({f"shop/{'ab' * 100}{number}": {QUEUE: 1} for number in range(200)})
    assert _answer(f'sum({QUEUE}{{name=~"a.*"}})', store) == 200

    for _ in range(3):  # a query that is repeated is refused again
        with pytest.raises(QueryError, match="name one with name=") as received:
            _answer(f'sum({QUEUE}{{name=~"{"|".join([".*a.{20}"] * 100)}"}})', store)
        assert (received.value.reason, received.value.permanent) == ("TooCostly", False)


def test_a_pattern_over_thousands_of_series() -> None:
    store = store_of({f"shop/worker-{number:04d}": {QUEUE: 1} for number in range(3000)})

    assert _answer(f'sum({QUEUE}{{name=~"worker-.*"}})', store) == 3000
