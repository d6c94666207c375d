"""The moves of an autoscaler whose metrics are known in advance."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from springtide.scaling import (
    ChangePolicy,
    DirectionLimits,
    PolicySelect,
    ProjectionRules,
    ProjectionStart,
    RecommendationSteps,
    ReplicaChanges,
    ReplicaHistory,
    ScalingBehavior,
    ScalingBounds,
    ScalingTolerance,
    projected_moves,
)

AT_ONCE = DirectionLimits(0)
BEGIN = 10_000
TENTH = Fraction(1, 10)


def moves(
    values: Sequence[tuple[int, tuple[int, ...]]],
    *,
    bounds: tuple[int, int] = (0, 100),
    up: DirectionLimits = AT_ONCE,
    down: DirectionLimits = AT_ONCE,
    tolerance: Fraction = Fraction(0),
    highest: bool = False,
    start: ProjectionStart | None = None,
) -> list[tuple[int, int, int]]:
    """List seconds since the beginning, replicas and recommendation of each evaluation."""
    rules = ProjectionRules(
        ScalingBounds(*bounds), ScalingBehavior(up, down), ScalingTolerance(up=tolerance, down=tolerance), highest
    )
    given = [(BEGIN + at, tuple(Fraction(value) for value in each)) for at, each in values]
    return [(step.at - BEGIN, step.replicas, step.recommended) for step in projected_moves(given, rules, start)]


def test_replicas_are_recommended_and_within_bounds() -> None:
    found = moves([(0, (2,)), (60, (20,)), (120, (0,))], bounds=(1, 3))
    assert found == [(0, 2, 2), (60, 3, 20), (120, 1, 0)]


def test_a_window_delays_and_ends_in_an_evaluation_of_its_own() -> None:
    found = moves([(0, (9,)), (60, (2,))], down=DirectionLimits(300))
    assert found == [(0, 9, 9), (60, 9, 2), (360, 2, 2)]


def test_a_change_within_a_window_restarts_nothing_that_is_known() -> None:
    """The higher value of the window counts, as long as it lasts."""
    found = moves([(0, (9,)), (60, (2,)), (120, (4,)), (180, (2,))], down=DirectionLimits(300))
    assert found == [(0, 9, 9), (60, 9, 2), (120, 9, 4), (180, 9, 2), (360, 4, 2), (480, 2, 2)]


def test_policies_are_steps() -> None:
    policy = ChangePolicy(4, 600)
    found = moves([(0, (2,)), (60, (12,))], up=DirectionLimits(0, PolicySelect.MAX, (policy,)))
    assert found == [(0, 2, 2), (60, 6, 12), (660, 10, 12), (1260, 12, 12)]


@pytest.mark.parametrize(
    ("second", "replicas"),
    [
        pytest.param(22, 20, id="within"),
        pytest.param(23, 23, id="above"),
        pytest.param(18, 20, id="below-and-within"),
        pytest.param(17, 17, id="below"),
    ],
)
def test_within_the_tolerance_nothing_changes(second: int, replicas: int) -> None:
    assert moves([(0, (20,)), (60, (second,))], tolerance=TENTH)[-1][:2] == (60, replicas)


def test_a_disabled_direction_is_never_taken() -> None:
    found = moves([(0, (5,)), (60, (2,)), (120, (7,))], down=DirectionLimits(0, PolicySelect.DISABLED))
    assert [step[1] for step in found] == [5, 5, 7]


def test_of_several_metrics_the_selected_one_counts() -> None:
    least = DirectionLimits(0, PolicySelect.MIN)
    values = [(0, (5, 5)), (60, (8, 6)), (120, (2, 1))]
    assert [step[1] for step in moves(values)] == [5, 8, 2]
    assert [step[1] for step in moves(values, up=least, down=least)] == [5, 6, 1]
    assert [step[1] for step in moves(values, up=least, down=least, highest=True)] == [5, 8, 2]


def test_fractions_are_rounded_up() -> None:
    rules = ProjectionRules(ScalingBounds(0, 9), ScalingBehavior(AT_ONCE, AT_ONCE), ScalingTolerance())
    (step,) = projected_moves([(BEGIN, (Fraction(7, 3),))], rules)
    assert (step.replicas, step.waited) == (3, None)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param(ReplicaHistory(), [(0, 5, 2), (300, 2, 2)], id="nothing-is-known-of-the-window"),
        pytest.param(
            ReplicaHistory(RecommendationSteps(((BEGIN - 900, 9), (BEGIN - 100, 2)))),
            [(0, 5, 2), (200, 2, 2)],
            id="the-window-has-begun",
        ),
        pytest.param(ReplicaHistory(RecommendationSteps(((BEGIN - 900, 2),))), [(0, 2, 2)], id="the-window-is-over"),
    ],
)
def test_it_begins_with_given_replicas_and_a_given_past(
    history: ReplicaHistory, expected: list[tuple[int, int, int]]
) -> None:
    assert moves([(0, (2,))], down=DirectionLimits(300), start=ProjectionStart(5, history)) == expected


def test_changes_before_the_start_count_against_policies() -> None:
    up = DirectionLimits(0, PolicySelect.MAX, (ChangePolicy(4, 600),))
    start = ProjectionStart(6, ReplicaHistory(changes=ReplicaChanges(((BEGIN - 100, 3),))))
    assert moves([(0, (20,))], up=up, start=start, bounds=(0, 9)) == [(0, 7, 20), (500, 9, 20)]


def test_replicas_that_a_policy_allows_may_be_within_the_tolerance() -> None:
    """The next evaluation recommends them, which begins a window before the policy allows more."""
    up = DirectionLimits(600, PolicySelect.MAX, (ChangePolicy(3, 1800),))
    start = ProjectionStart(5, ReplicaHistory(RecommendationSteps(((BEGIN - 900, 9),))))
    found = moves([(0, (9,)), (300, (12,))], up=up, tolerance=Fraction(1, 5), start=start)
    assert found == [(0, 8, 9), (15, 8, 8), (300, 8, 12), (1800, 11, 12), (1815, 11, 11)]


def test_of_two_metrics_the_one_for_scaling_down_counts_in_the_next_evaluation() -> None:
    least = DirectionLimits(0, PolicySelect.MIN)
    assert moves([(0, (5, 5)), (60, (8, 2))], down=least) == [(0, 5, 5), (60, 8, 8), (75, 2, 2)]
