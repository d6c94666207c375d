"""What renderers share: spans, values at a time, heights, groups of firings, collisions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.pictures import samples
from tests.cli.pictures.samples import DAY, START, lane

from springtide.apis.forecast import Lane, LaneChange, LaneCollision, LaneStyle, LaneValue
from springtide.cli.pictures.lanes import (
    FULL_HEIGHT,
    DenseSpans,
    Span,
    collision_sentences,
    describe_value,
    firing_group_forms,
    group_firings,
    height_scale,
    is_blocked,
    is_ever_blocked,
    lane_spans,
    merge_short_spans,
    next_change_after,
    number_collisions,
    value_at,
)
from springtide.cli.pictures.time_axis import zone_clock

LEVELS = lane("replicas", LaneStyle.LEVEL, 2, [(10, 3), (20, 1), (100, 4)])


def budget(*values: LaneValue) -> Lane:
    return lane("Drifted", LaneStyle.BUDGET, values[0], [(at, value) for at, value in enumerate(values[1:], 1)])


def test_spans_run_from_change_to_change_and_end_with_the_range() -> None:
    assert [(s.start, s.end, s.value) for s in lane_spans(LEVELS, 0, 50)] == [(0, 10, 2), (10, 20, 3), (20, 50, 1)]


def test_a_change_at_the_very_end_has_no_span() -> None:
    assert [(span.start, span.end) for span in lane_spans(LEVELS, 0, 20)] == [(0, 10), (10, 20)]


def test_a_lane_without_changes_is_one_span() -> None:
    assert [Span(0, 9, 5, "why")] == list(lane_spans(lane("x", LaneStyle.LEVEL, 5, [], because="why"), 0, 9))


@given(st.lists(st.integers(1, 500), unique=True).map(sorted), st.integers(1, 60))
def test_merged_spans_cover_the_same_time(instants: list[int], shortest: int) -> None:
    spans = list(lane_spans(lane("x", LaneStyle.LEVEL, 0, [(at, at) for at in instants]), 0, 501))

    shown = merge_short_spans(spans, shortest)

    assert spans == [span for part in shown for span in (part.spans if isinstance(part, DenseSpans) else (part,))]
    assert all(one.end == two.start for one, two in pairwise(shown))
    assert all(len(part.spans) > 1 for part in shown if isinstance(part, DenseSpans))


def test_a_span_that_is_just_long_enough_is_not_merged() -> None:
    spans = list(lane_spans(lane("x", LaneStyle.LEVEL, 0, [(10, 1), (20, 2)]), 0, 29))

    assert spans == merge_short_spans(spans, 10)
    assert [DenseSpans] == [type(part) for part in merge_short_spans(spans, 11)]


@pytest.mark.parametrize(("at", "value"), [(0, 2), (9, 2), (10, 3), (19, 3), (20, 1), (500, 4)])
def test_the_value_at_an_instant_is_that_of_the_latest_change(at: int, value: int) -> None:
    assert value == value_at(LEVELS, at)[0]


@pytest.mark.parametrize(("now", "at"), [(-5, 10), (10, 20), (99, 100), (100, None)])
def test_the_next_change_is_later_than_now(now: int, at: int | None) -> None:
    change = next_change_after(LEVELS, now)

    assert at == (change.at if change else None)


def test_the_next_change_may_be_after_the_range() -> None:
    beyond = lane("x", LaneStyle.LEVEL, 1, [(900, 2)], until=100)

    assert (len(beyond.changes), getattr(next_change_after(beyond, 50), "at", None)) == (0, 900)


@pytest.mark.parametrize(
    ("value", "blocked"),
    [
        pytest.param(0, True, id="zero"),
        pytest.param("0", True, id="zero-as-text"),
        pytest.param("0%", True, id="zero-percent"),
        pytest.param({"min": ["20%", 0]}, True, id="smaller-is-zero"),
        pytest.param(1, False, id="one"),
        pytest.param("10%", False, id="percent"),
        pytest.param({"min": ["20%", 5]}, False, id="smaller-of-two"),
        pytest.param("unlimited", False, id="unlimited"),
        pytest.param(None, False, id="nothing"),
    ],
)
def test_a_budget_that_allows_nothing_is_blocked(value: LaneValue, blocked: bool) -> None:
    assert blocked == is_blocked(budget(value), value)
    assert blocked == is_ever_blocked(budget("unlimited", value))
    assert blocked == describe_value(budget(value), value).endswith("(blocked)")


def test_a_level_of_zero_is_not_blocked() -> None:
    assert not is_blocked(LEVELS, 0)


def test_levels_are_drawn_in_proportion_to_the_largest() -> None:
    height = height_scale(lane("x", LaneStyle.LEVEL, 0, [(1, 4), (2, 2)]))

    assert (height(0), height(2), height(4)) == (0, FULL_HEIGHT // 2, FULL_HEIGHT)


def test_lanes_that_are_compared_have_one_scale() -> None:
    height = height_scale(replace(lane("x", LaneStyle.LEVEL, 0, [(1, 3), (2, 2)]), most=20))
    assert [height(value) for value in (0, 2, 3, 20)] == [0, 100, 150, 1000]


def test_budgets_rise_from_blocked_over_limited_to_unlimited() -> None:
    height = height_scale(budget(0, 1, 10, "5%", "50%", {"min": ["50%", 1]}, "unlimited"))

    assert 0 == height(0) < height(1) < height(10) < height("unlimited") == FULL_HEIGHT
    assert 0 < height("5%") < height("50%") < FULL_HEIGHT
    assert height({"min": ["50%", 1]}) == height(1)


def test_a_lane_of_zeros_has_a_scale() -> None:
    assert height_scale(lane("x", LaneStyle.LEVEL, 0, []))(0) == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([(0, 1), (300, 1), (600, 1)], "1, every 5min (3×)"),
        ([(0, 1), (300, 2), (600, 1)], "every 5min (3×)"),
        ([(0, 1), (300, 1), (900, 1)], "1, 3×"),
        ([(0, 1), (300, 2)], "2×"),
    ],
    ids=["even-and-equal", "even", "equal", "neither"],
)
def test_dense_firings_are_described_by_their_interval(changes: list[tuple[int, int]], words: str) -> None:
    group = [LaneChange(at, value, "") for at, value in changes]

    assert [tuple(group)] == group_firings(group, 1000)
    assert words == firing_group_forms(group)[0]


def test_firings_that_are_far_apart_are_not_grouped() -> None:
    assert [len(group) for group in group_firings([LaneChange(0, 1, ""), LaneChange(10, 1, "")], 10)] == [1, 1]


BEFORE, WITHIN, AFTER = START - 2 * DAY, START + DAY, START + 9 * DAY


@pytest.mark.parametrize(
    ("style", "start", "until", "sentence", "length", "drawn"),
    [
        pytest.param(
            LaneStyle.LEVEL, WITHIN, WITHIN + 3600, "Sat 31 Oct 2026 19:00 – 20:00 UTC: a and b", 3600, True, id="span"
        ),
        pytest.param(
            LaneStyle.LEVEL, WITHIN, None, "from Sat 31 Oct 2026 19:00 UTC on: a and b", 6 * DAY, True, id="open"
        ),
        pytest.param(LaneStyle.FIRINGS, WITHIN, WITHIN, "Sat 31 Oct 2026 19:00 UTC: a and b", 0, True, id="firings"),
        pytest.param(LaneStyle.LEVEL, WITHIN, WITHIN, "Sat 31 Oct 2026 19:00 UTC: a and b", 0, True, id="instant"),
        pytest.param(
            LaneStyle.LEVEL,
            BEFORE,
            WITHIN,
            "Wed 28 Oct 2026 19:00 UTC – Sat 31 Oct 19:00 UTC: a and b",
            3 * DAY,
            True,
            id="started before",
        ),
        pytest.param(
            LaneStyle.LEVEL, BEFORE, BEFORE + 3600, "Wed 28 Oct 2026 19:00 – 20:00 UTC: a and b", 3600, False, id="past"
        ),
        pytest.param(LaneStyle.FIRINGS, AFTER, AFTER, "Sun 8 Nov 2026 19:00 UTC: a and b", 0, False, id="later"),
    ],
)
def test_a_collision_has_its_time(
    style: LaneStyle, start: int, until: int | None, sentence: str, length: int, drawn: bool
) -> None:
    lane = samples.lane("x", style, 1, [])
    forecast = samples.forecast(lane, collisions=(LaneCollision(start, until, "a and b"),))

    (collision,) = number_collisions(forecast, zone_clock("UTC"))

    assert (1, start, sentence, drawn) == (collision.number, collision.start, collision.sentence, collision.drawn)
    assert length == collision.end - collision.start


@pytest.mark.parametrize(
    ("days", "when"),
    [
        pytest.param(1, "Sat 31 Oct 2026 19:00 UTC", id="once"),
        pytest.param(3, "Sat 31 Oct 2026 19:00 UTC; Sun 1 Nov 2026 19:00 UTC; Mon 2 Nov 2026 19:00 UTC", id="thrice"),
        pytest.param(
            4, "Sat 31 Oct 2026 19:00 UTC; Sun 1 Nov 2026 19:00 UTC; Mon 2 Nov 2026 19:00 UTC and once more", id="four"
        ),
        pytest.param(
            6,
            "Sat 31 Oct 2026 19:00 UTC; Sun 1 Nov 2026 19:00 UTC; Mon 2 Nov 2026 19:00 UTC and 3 more times",
            id="more",
        ),
    ],
)
def test_a_repeated_collision_has_one_sentence(days: int, when: str) -> None:
    again = tuple(LaneCollision(WITHIN + day * DAY, WITHIN + day * DAY, "a and b") for day in range(days))
    lane = samples.lane("x", LaneStyle.FIRINGS, 1, [])
    other = LaneCollision(WITHIN, WITHIN, "a and c")

    collisions = number_collisions(samples.forecast(lane, collisions=(*again, other)), zone_clock("UTC"))

    assert [collision.number for collision in collisions] == [*(1 for _ in again), 2], "every one is drawn"
    assert collision_sentences(collisions) == [(1, f"{when}: a and b"), (2, "Sat 31 Oct 2026 19:00 UTC: a and c")]
