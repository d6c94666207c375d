"""A lane as spans, what holds and what comes, and how tall values are."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.pictures.samples import lane

from springtide.apis.forecast import Change, Lane, LaneStyle, LaneValue
from springtide.cli.pictures.firings import cluster, cluster_forms
from springtide.cli.pictures.heights import FULL_HEIGHT, height_scale, is_blocked, is_ever_blocked, tell
from springtide.cli.pictures.spans import Crowd, Span, crowd_together, lane_spans, upcoming, value_at

LEVELS = lane("replicas", LaneStyle.LEVEL, 2, [(10, 3), (20, 1), (100, 4)])


def budget(*values: LaneValue) -> Lane:
    return lane("Drifted", LaneStyle.BUDGET, values[0], [(at, value) for at, value in enumerate(values[1:], 1)])


def test_spans_run_from_change_to_change_and_end_with_the_range() -> None:
    assert [(s.start, s.end, s.value) for s in lane_spans(LEVELS, 0, 50)] == [(0, 10, 2), (10, 20, 3), (20, 50, 1)]


def test_a_change_at_the_very_end_has_no_span() -> None:
    assert [(span.start, span.end) for span in lane_spans(LEVELS, 0, 20)] == [(0, 10), (10, 20)]


def test_a_lane_without_changes_is_one_span() -> None:
    assert [Span(0, 9, 5, "why")] == lane_spans(lane("x", LaneStyle.LEVEL, 5, [], because="why"), 0, 9)


@given(st.lists(st.integers(1, 500), unique=True).map(sorted), st.integers(1, 60))
def test_crowds_cover_what_their_spans_did(instants: list[int], shortest: int) -> None:
    spans = lane_spans(lane("x", LaneStyle.LEVEL, 0, [(at, at) for at in instants]), 0, 501)

    shown = crowd_together(spans, shortest)

    assert spans == [span for part in shown for span in (part.spans if isinstance(part, Crowd) else (part,))]
    assert all(one.end == two.start for one, two in pairwise(shown))
    assert all(len(part.spans) > 1 for part in shown if isinstance(part, Crowd))


def test_a_span_that_is_just_long_enough_stands_alone() -> None:
    spans = lane_spans(lane("x", LaneStyle.LEVEL, 0, [(10, 1), (20, 2)]), 0, 29)

    assert spans == crowd_together(spans, 10)
    assert [Crowd] == [type(part) for part in crowd_together(spans, 11)]


@pytest.mark.parametrize(("at", "value"), [(0, 2), (9, 2), (10, 3), (19, 3), (20, 1), (500, 4)])
def test_the_value_at_an_instant_is_that_of_the_latest_change(at: int, value: int) -> None:
    assert value == value_at(LEVELS, at)[0]


@pytest.mark.parametrize(("now", "at"), [(-5, 10), (10, 20), (99, 100), (100, None)])
def test_what_comes_next_is_later_than_now(now: int, at: int | None) -> None:
    change = upcoming(LEVELS, now)

    assert at == (change.at if change else None)


def test_what_comes_next_may_lie_beyond_the_range() -> None:
    beyond = lane("x", LaneStyle.LEVEL, 1, [(900, 2)], until=100)

    assert (len(beyond.changes), getattr(upcoming(beyond, 50), "at", None)) == (0, 900)


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
def test_a_budget_that_lets_nothing_through_is_blocked(value: LaneValue, blocked: bool) -> None:
    assert blocked == is_blocked(budget(value), value)
    assert blocked == is_ever_blocked(budget("unlimited", value))
    assert blocked == tell(budget(value), value).endswith("(blocked)")


def test_a_level_of_zero_is_not_blocked() -> None:
    assert not is_blocked(LEVELS, 0)


def test_levels_are_as_tall_as_their_share_of_the_tallest() -> None:
    height = height_scale(lane("x", LaneStyle.LEVEL, 0, [(1, 4), (2, 2)]))

    assert (height(0), height(2), height(4)) == (0, FULL_HEIGHT // 2, FULL_HEIGHT)


def test_budgets_rise_from_blocked_over_limited_to_unlimited() -> None:
    height = height_scale(budget(0, 1, 10, "5%", "50%", {"min": ["50%", 1]}, "unlimited"))

    assert 0 == height(0) < height(1) < height(10) < height("unlimited") == FULL_HEIGHT
    assert 0 < height("5%") < height("50%") < FULL_HEIGHT
    assert height({"min": ["50%", 1]}) == height(1)


def test_a_lane_of_zeros_has_a_scale_too() -> None:
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
def test_firings_that_come_thick_are_told_by_how_often(changes: list[tuple[int, int]], words: str) -> None:
    group = [Change(at, value, "") for at, value in changes]

    assert [tuple(group)] == cluster(group, 1000)
    assert words == cluster_forms(group)[0]


def test_firings_far_apart_stay_alone() -> None:
    assert [len(group) for group in cluster([Change(0, 1, ""), Change(10, 1, "")], 10)] == [1, 1]
