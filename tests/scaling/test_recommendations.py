"""From values and targets to replicas: exact, and on target where the target is met."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.scaling import MOST, Tolerance, in_proportion, per_replica

EXACT = Tolerance()
TENTH = Tolerance(Fraction(1, 10), Fraction(1, 10))


@pytest.mark.parametrize(
    ("ratio", "asked", "present", "tolerance", "expected"),
    [
        pytest.param(Fraction(1), 7, 7, EXACT, 7, id="on-target"),
        pytest.param(Fraction("0.55") * 100 / 55, 7, 7, EXACT, 7, id="no-float-rounds-up"),
        pytest.param(Fraction(17, 12), 5, 5, EXACT, 8, id="in-proportion"),
        pytest.param(Fraction(1), 8, 5, EXACT, 8, id="on-target-while-some-are-coming"),
        pytest.param(Fraction(11, 10), 10, 10, EXACT, 11, id="zero-tolerance"),
        pytest.param(Fraction(11, 10), 10, 10, TENTH, 10, id="tolerated-above"),
        pytest.param(Fraction(9, 10), 10, 10, TENTH, 10, id="tolerated-below"),
        pytest.param(Fraction(89, 100), 10, 10, TENTH, 9, id="beyond-tolerance"),
        pytest.param(Fraction(5), 0, 0, EXACT, 1, id="from-none-to-one"),
        pytest.param(Fraction(0), 5, 5, EXACT, 1, id="never-to-none"),
        pytest.param(Fraction(1), 0, 0, EXACT, 1, id="on-target-with-none"),
        pytest.param(Fraction(2), 50, 0, EXACT, 50, id="nothing-is-known-of-those-that-are-not-there"),
        pytest.param(Fraction(10**12), 5, 5, EXACT, MOST, id="no-more-than-the-api-can-say"),
    ],
)
def test_in_proportion(ratio: Fraction, asked: int, present: int, tolerance: Tolerance, expected: int) -> None:
    assert in_proportion(ratio, asked=asked, present=present, tolerance=tolerance) == expected


@pytest.mark.parametrize(
    ("ratio", "current", "tolerance", "expected"),
    [
        pytest.param(Fraction(304, 50), 1, EXACT, 7, id="a-part-counts-as-one"),
        pytest.param(Fraction(304, 50), 0, EXACT, 7, id="however-many-there-are"),
        pytest.param(Fraction(0), 5, EXACT, 0, id="nobody-is-needed"),
        pytest.param(Fraction(-3), 5, EXACT, 0, id="less-than-nothing"),
        pytest.param(Fraction(105, 10), 10, TENTH, 10, id="tolerated"),
        pytest.param(Fraction(111, 10), 10, TENTH, 12, id="beyond-tolerance"),
        pytest.param(Fraction(105, 10), 10, Tolerance(down=Fraction(1, 10)), 11, id="only-fewer-are-tolerated"),
        pytest.param(Fraction(95, 10), 11, Tolerance(up=Fraction(1, 10)), 10, id="only-more-are-tolerated"),
        pytest.param(Fraction(0), 0, TENTH, 0, id="nobody-is-there-to-have-a-share"),
    ],
)
def test_per_replica(ratio: Fraction, current: int, tolerance: Tolerance, expected: int) -> None:
    assert per_replica(ratio, current=current, tolerance=tolerance) == expected


@given(st.fractions(0, 1000), st.integers(1, 500))
def test_the_least_number_that_is_enough(ratio: Fraction, present: int) -> None:
    """One replica fewer would each have more than its share."""
    enough = per_replica(ratio, current=present, tolerance=EXACT)

    assert enough >= ratio > enough - 1
    assert in_proportion(ratio, asked=present, present=present, tolerance=EXACT) == max(
        1, per_replica(ratio * present, current=present, tolerance=EXACT)
    )
