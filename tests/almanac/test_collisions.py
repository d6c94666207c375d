"""Collisions: which layers or rules set different values at one instant, when first, and which wins."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.almanac.builders import utc

from springtide.almanac import (
    UTC,
    Cron,
    Dialect,
    FiringRule,
    Firings,
    LayerOverlap,
    RuleCoincidence,
    TimelineLayer,
    TimePattern,
    always,
    collisions,
    load_zone,
    overlaps,
    recurring,
    same_minute,
    spans,
)

DAY = 86_400


def _daily(name: str, start: int, end: int, value: int, priority: int = 0) -> TimelineLayer[int]:
    return TimelineLayer(
        name, recurring(TimePattern.parse(hours=start), TimePattern.parse(hours=end), UTC), value, priority
    )


def _rule(name: str, text: str, **values: int) -> FiringRule[int]:
    return FiringRule(name, Firings.of(Cron.parse(text, Dialect.RULE), UTC), values)


def test_overlapping_layers_are_found_with_their_first_spans() -> None:
    """The layer listed first wins; the spans are where both are active."""
    inner, outer = _daily("inner", 12, 13, 8), _daily("outer", 8, 20, 3)
    noon = utc("2026-06-05T12:00")

    found = overlaps([inner, outer], utc("2026-06-05"), first=2)

    assert found == [LayerOverlap("inner", "outer", ((noon, noon + 3600), (noon + DAY, noon + DAY + 3600)))]


def test_priority_wins_over_order() -> None:
    """A layer listed later wins if its priority is higher."""
    layers = [_daily("first", 8, 20, 3), _daily("urgent", 12, 13, 8, priority=10)]

    assert [(o.winner, o.loser) for o in overlaps(layers, utc("2026-06-05"))] == [("urgent", "first")]


@pytest.mark.parametrize(
    "layers",
    [
        pytest.param([_daily("a", 8, 12, 1), _daily("b", 12, 16, 2)], id="touching"),
        pytest.param([_daily("a", 8, 14, 1), _daily("b", 12, 16, 1)], id="same-value"),
        pytest.param([], id="none"),
        pytest.param([_daily("a", 8, 14, 1)], id="alone"),
    ],
)
def test_no_collision(layers: list[TimelineLayer[int]]) -> None:
    """Windows that only touch, or have equal values, do not collide."""
    assert overlaps(layers, utc("2026-06-05")) == []


def test_overlap_that_lasts_forever_or_beyond_the_search_has_no_end() -> None:
    """An overlap still open at the end of the search is reported as open."""
    forever = [TimelineLayer("a", always(), 1), TimelineLayer("b", spans([(50, None)]), 2)]
    long = [TimelineLayer("a", always(), 1), TimelineLayer("b", spans([(50, 500)]), 2)]

    assert overlaps(forever, 0) == [LayerOverlap("a", "b", ((50, None),))]
    assert overlaps(long, 0, until=100) == [LayerOverlap("a", "b", ((50, None),))]
    assert overlaps(long, 0, until=40) == []


def test_an_overlap_in_leap_years_only_is_found() -> None:
    """The search reaches the next 29 February."""
    leap_day = recurring(
        TimePattern.parse(days=29, months="Feb"), TimePattern.parse(days=29, months="Feb", hours=6), UTC
    )
    layers = [TimelineLayer("leap", leap_day, 1), _daily("night", 3, 4, 2)]

    found = overlaps(layers, utc("2028-03-01"), first=1)

    assert found[0].spans == ((utc("2032-02-29T03:00"), utc("2032-02-29T04:00")),)


@given(
    windows=st.lists(
        st.tuples(
            st.lists(st.integers(0, 40), unique=True, max_size=6).map(sorted), st.integers(0, 2), st.integers(0, 2)
        ),
        max_size=4,
    ),
    from_=st.integers(0, 20),
)
def test_overlaps_are_where_both_are_active(windows: list[tuple[list[int], int, int]], from_: int) -> None:
    """Every pair with different values is found at exactly the instants at which both are active."""
    layers = [
        TimelineLayer(str(index), spans(zip(cuts[::2], cuts[1::2], strict=False)), value, priority)
        for index, (cuts, value, priority) in enumerate(windows)
    ]
    expected = {}
    for a, b in combinations(layers, 2):
        winner, loser = (b, a) if b.priority > a.priority else (a, b)
        both = [t for t in range(from_, 50) if a.active.at(t) and b.active.at(t)]
        if both and a.value != b.value:
            expected[winner.name, loser.name] = both

    found = overlaps(layers, from_, until=50, first=10)

    assert {(o.winner, o.loser): [t for a, b in o.spans for t in range(a, b or 50)] for o in found} == expected


def test_many_layers_are_searched_quickly() -> None:
    """Fifty windows that never overlap are searched in seconds, not minutes."""
    layers = [
        TimelineLayer(
            f"l{i}",
            recurring(
                TimePattern.parse(hours=i // 3, minutes=i % 3 * 20),
                TimePattern.parse(hours=i // 3, minutes=i % 3 * 20 + 15),
                UTC,
            ),
            i,
        )
        for i in range(50)
    ]

    assert overlaps(layers, utc("2026-06-05")) == []


def test_rules_at_the_same_minute() -> None:
    """Two rules that fire together and disagree are found; the later one in the list wins."""
    rules = [_rule("nightly", "0 22 * * *", replicas=1), _rule("friday", "0 22 * * fri", replicas=5)]

    assert same_minute(rules, utc("2026-06-01"), first=2) == [
        RuleCoincidence("friday", "nightly", "replicas", (utc("2026-06-05T22:00"), utc("2026-06-12T22:00")))
    ]


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([_rule("a", "0 8 * * *", min=1), _rule("b", "0 8 * * *", max=5)], id="other-field"),
        pytest.param([_rule("a", "0 8 * * *", min=1), _rule("b", "0 8 * * *", min=1)], id="same-value"),
        pytest.param([_rule("a", "0 8 * * *", min=1), _rule("b", "1 8 * * *", min=2)], id="other-minute"),
    ],
)
def test_rules_that_do_not_collide(rules: list[FiringRule[int]]) -> None:
    """Rules collide only at one instant, in one field, with two values."""
    assert same_minute(rules, utc("2026-06-01")) == []


def test_every_disputed_field_is_named() -> None:
    """Rules that disagree about two fields collide twice."""
    rules = [_rule("a", "0 8 * * *", min=1, max=5), _rule("b", "0 8 * * mon", min=2, max=9)]

    assert [collision.field for collision in same_minute(rules, utc("2026-06-01"))] == ["min", "max"]


def test_rules_collide_at_the_end_of_a_gap() -> None:
    """02:30 and 03:00 are one instant on the day that has no 02:30."""
    zone = load_zone("America/New_York")
    rules = [
        FiringRule(text, Firings.of(Cron.parse(text, Dialect.RULE), zone), {"replicas": index})
        for index, text in enumerate(("30 2 * * *", "0 3 * * *"))
    ]

    found = same_minute(rules, utc("2026-01-01"), first=1)

    assert found == [RuleCoincidence("0 3 * * *", "30 2 * * *", "replicas", (utc("2026-03-08T07:00"),))]


def test_dense_rules_are_compared_quickly() -> None:
    """The search skips from firing to firing and does not visit every minute of the denser rule."""
    rules = [_rule("dense", "*/2 * * * *", replicas=1), _rule("rare", "1 9 * * *", replicas=2)]

    assert same_minute(rules, utc("2026-06-01")) == []


def test_many_rules_take_no_more_steps_than_the_search_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of pairs grows with the square of the rules, the search does not."""
    asked = 0
    after = Firings.after

    def counted(self: Firings, t: int) -> int | None:
        nonlocal asked
        asked += 1
        return after(self, t)

    monkeypatch.setattr(collisions, "ALL_FIRING_STEPS", 10_000)
    monkeypatch.setattr(Firings, "after", counted)
    costs = []
    for count in (200, 400):
        asked = 0
        rules = [_rule(f"r{n}", f"{n % 60} {n % 24} * * *", replicas=n) for n in range(count)]
        same_minute(rules, utc("2026-06-05"), until=utc("2026-06-06"))
        costs.append(asked)

    assert costs[1] == costs[0]
    assert costs[0] <= 2 * 10_000


@pytest.mark.parametrize(("until", "spans_found"), [(13, 1), (12, 0)])
def test_overlaps_begin_before_the_end_of_the_search(until: int, spans_found: int) -> None:
    """One that begins at the very end of it is not found; one that begins before is, with its own end."""
    layers = [_daily("inner", 12, 14, 8), _daily("outer", 8, 20, 3)]
    day = utc("2026-06-05")

    found = overlaps(layers, day, day + until * 3600, first=None)

    assert [len(overlap.spans) for overlap in found] == [spans_found] * spans_found


@pytest.mark.parametrize(("until", "expected"), [(9 * 3600 - 1, 0), (9 * 3600, 1), (DAY + 9 * 3600, 2)])
def test_rules_are_compared_up_to_the_end_of_the_search(until: int, expected: int) -> None:
    """Firings at its last second count."""
    day = utc("2026-06-05")
    rules = [_rule("low", "0 9 * * *", replicas=1), _rule("high", "0 9 * * *", replicas=2)]

    found = same_minute(rules, day, day + until, first=None)

    assert sum(len(coincidence.instants) for coincidence in found) == expected


def test_the_steps_of_all_pairs_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every firing that is visited counts, so that dense rules leave no steps for later pairs."""
    monkeypatch.setattr(collisions, "ALL_FIRING_STEPS", 100)
    rules = [_rule(f"rule-{number}", "* * * * *", replicas=number) for number in range(3)]

    found = same_minute(rules, utc("2026-06-05"), utc("2026-06-05T01:00"), first=None)

    assert [(one.winner, one.loser) for one in found] == [("rule-1", "rule-0"), ("rule-2", "rule-0")]
