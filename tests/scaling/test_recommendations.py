"""Recommendations: from values and targets to replicas, and from several metrics to one number.

What several recommendations come to.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.scaling import (
    MOST,
    CombinedRecommendation,
    PolicySelect,
    ScalingTolerance,
    average_value_replicas,
    combine_known,
    combine_recommendations,
    proportional_replicas,
)

EXACT = ScalingTolerance()
TENTH = ScalingTolerance(Fraction(1, 10), Fraction(1, 10))


@pytest.mark.parametrize(
    ("ratio", "asked", "present", "tolerance", "expected"),
    [
        pytest.param(Fraction(1), 7, 7, EXACT, 7, id="on-target"),
        pytest.param(Fraction("0.55") * 100 / 55, 7, 7, EXACT, 7, id="no-float-rounds-up"),
        pytest.param(Fraction(17, 12), 5, 5, EXACT, 8, id="in-proportion"),
        pytest.param(Fraction(1), 8, 5, EXACT, 8, id="on-target-while-some-are-not-present"),
        pytest.param(Fraction(11, 10), 10, 10, EXACT, 11, id="zero-tolerance"),
        pytest.param(Fraction(11, 10), 10, 10, TENTH, 10, id="tolerated-above"),
        pytest.param(Fraction(9, 10), 10, 10, TENTH, 10, id="tolerated-below"),
        pytest.param(Fraction(89, 100), 10, 10, TENTH, 9, id="beyond-tolerance"),
        pytest.param(Fraction(5), 0, 0, EXACT, 1, id="from-none-to-one"),
        pytest.param(Fraction(0), 5, 5, EXACT, 1, id="never-to-none"),
        pytest.param(Fraction(1), 0, 0, EXACT, 1, id="on-target-with-none"),
        pytest.param(Fraction(2), 50, 0, EXACT, 50, id="ratio-of-no-present-replicas"),
        pytest.param(Fraction(10**12), 5, 5, EXACT, MOST, id="the-largest-number-of-the-api"),
    ],
)
def test_proportional(ratio: Fraction, asked: int, present: int, tolerance: ScalingTolerance, expected: int) -> None:
    assert proportional_replicas(ratio, asked=asked, present=present, tolerance=tolerance) == expected


@pytest.mark.parametrize(
    ("ratio", "current", "tolerance", "expected"),
    [
        pytest.param(Fraction(304, 50), 1, EXACT, 7, id="rounded-up"),
        pytest.param(Fraction(304, 50), 0, EXACT, 7, id="independent-of-the-current-number"),
        pytest.param(Fraction(0), 5, EXACT, 0, id="to-zero"),
        pytest.param(Fraction(-3), 5, EXACT, 0, id="negative"),
        pytest.param(Fraction(105, 10), 10, TENTH, 10, id="tolerated"),
        pytest.param(Fraction(111, 10), 10, TENTH, 12, id="beyond-tolerance"),
        pytest.param(Fraction(105, 10), 10, ScalingTolerance(down=Fraction(1, 10)), 11, id="only-fewer-are-tolerated"),
        pytest.param(Fraction(95, 10), 11, ScalingTolerance(up=Fraction(1, 10)), 10, id="only-more-are-tolerated"),
        pytest.param(Fraction(0), 0, TENTH, 0, id="zero-stays-zero"),
    ],
)
def test_average_value_replicas(ratio: Fraction, current: int, tolerance: ScalingTolerance, expected: int) -> None:
    assert average_value_replicas(ratio, current=current, tolerance=tolerance) == expected


@given(st.fractions(0, 1000), st.integers(1, 500))
def test_the_smallest_sufficient_number(ratio: Fraction, present: int) -> None:
    """With one replica less, each would have more than its target."""
    enough = average_value_replicas(ratio, current=present, tolerance=EXACT)

    assert enough >= ratio > enough - 1
    assert proportional_replicas(ratio, asked=present, present=present, tolerance=EXACT) == max(
        1, average_value_replicas(ratio * present, current=present, tolerance=EXACT)
    )


MAX, MIN, DISABLED = PolicySelect.MAX, PolicySelect.MIN, PolicySelect.DISABLED


@pytest.mark.parametrize(
    ("recommendations", "up", "down", "expected"),
    [
        pytest.param([3, 4], MAX, MAX, 4, id="highest-of-fewer"),
        pytest.param([3, 4], MAX, MIN, 3, id="lowest-of-fewer"),
        pytest.param([3, 8], MAX, MAX, 8, id="highest-of-both"),
        pytest.param([6, 8], MIN, MAX, 6, id="lowest-of-more"),
        pytest.param([3, 8], MIN, MAX, 5, id="each-direction-has-its-own-rule"),
        pytest.param([3, 8], MIN, MIN, 3, id="both-lowest"),
        pytest.param([8], DISABLED, MAX, 8, id="disabled-does-not-limit-recommendations"),
        pytest.param([5, 5], MAX, MAX, 5, id="as-it-is"),
    ],
)
def test_combined(recommendations: list[int], up: PolicySelect, down: PolicySelect, expected: int) -> None:
    """There are five replicas."""
    assert combine_recommendations(recommendations, 5, up=up, down=down).replicas == expected


@pytest.mark.parametrize(
    ("recommendations", "current", "overruled", "expected"),
    [
        pytest.param([3, 4], 5, None, CombinedRecommendation(3, 4), id="fewer-although-one-wants-more"),
        pytest.param([3, 4], 3, 4, CombinedRecommendation(3, 4), id="which-undoes-nothing"),
        pytest.param([3, 6], 3, 4, CombinedRecommendation(6), id="until-it-rises"),
        pytest.param([3, 3], 3, 4, CombinedRecommendation(3, 3), id="it-has-fallen"),
        pytest.param([3, 4], 3, 3, CombinedRecommendation(4), id="and-rises-again"),
        pytest.param([3, 4], 2, None, CombinedRecommendation(4), id="nothing-was-overruled"),
    ],
)
def test_max_for_up_and_min_for_down(
    recommendations: list[int], current: int, overruled: int | None, expected: CombinedRecommendation
) -> None:
    """They contradict each other, and must not flap."""
    assert combine_recommendations(recommendations, current, up=MAX, down=MIN, overruled=overruled) == expected


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=3),
    st.sampled_from(PolicySelect),
    st.sampled_from(PolicySelect),
    st.integers(0, 20),
)
def test_combined_recommendations_are_stable(
    recommendations: list[int], up: PolicySelect, down: PolicySelect, current: int
) -> None:
    """With constant metrics, the number is stable after at most one move each way."""
    overruled = None
    course = [current]
    for _ in range(6):
        agreement = combine_recommendations(recommendations, course[-1], up=up, down=down, overruled=overruled)
        course.append(agreement.replicas)
        overruled = agreement.overruled

    assert course[2:] == [course[2]] * 5


@pytest.mark.parametrize(
    ("recommendations", "up", "overruled", "expected"),
    [
        pytest.param([], MAX, None, 5, id="nothing-is-known"),
        pytest.param([3], MAX, None, 5, id="never-fewer"),
        pytest.param([3, 8], MAX, None, 8, id="at-least-as-many"),
        pytest.param([8, 9], MIN, None, 5, id="the-missing-one-may-be-the-lowest"),
        pytest.param([3, 8], MAX, 8, 5, id="what-was-overruled-stays-so"),
        pytest.param([3, 9], MAX, 8, 9, id="until-it-rises"),
        pytest.param([3, 4], MAX, 8, 5, id="the-missing-one-was-overruled"),
    ],
)
def test_combine_known(recommendations: list[int], up: PolicySelect, overruled: int | None, expected: int) -> None:
    """At five replicas, with one more metric that is unknown."""
    assert combine_known(recommendations, 5, up=up, overruled=overruled) == expected
