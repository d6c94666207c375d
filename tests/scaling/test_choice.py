"""What several recommendations come to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.scaling import Agreement, Select, agreed, certain

MAX, MIN, DISABLED = Select.MAX, Select.MIN, Select.DISABLED


@pytest.mark.parametrize(
    ("recommendations", "up", "down", "expected"),
    [
        pytest.param([3, 4], MAX, MAX, 4, id="highest-of-fewer"),
        pytest.param([3, 4], MAX, MIN, 3, id="lowest-of-fewer"),
        pytest.param([3, 8], MAX, MAX, 8, id="highest-of-both"),
        pytest.param([6, 8], MIN, MAX, 6, id="lowest-of-more"),
        pytest.param([3, 8], MIN, MAX, 5, id="each-direction-has-its-own-rule"),
        pytest.param([3, 8], MIN, MIN, 3, id="both-lowest"),
        pytest.param([8], DISABLED, MAX, 8, id="disabled-is-for-whoever-moves"),
        pytest.param([5, 5], MAX, MAX, 5, id="as-it-is"),
    ],
)
def test_agreed(recommendations: list[int], up: Select, down: Select, expected: int) -> None:
    """There are five replicas."""
    assert agreed(recommendations, 5, up=up, down=down).replicas == expected


@pytest.mark.parametrize(
    ("recommendations", "current", "overruled", "expected"),
    [
        pytest.param([3, 4], 5, None, Agreement(3, 4), id="fewer-although-one-wants-more"),
        pytest.param([3, 4], 3, 4, Agreement(3, 4), id="which-undoes-nothing"),
        pytest.param([3, 6], 3, 4, Agreement(6), id="until-it-rises"),
        pytest.param([3, 3], 3, 4, Agreement(3, 3), id="it-has-fallen"),
        pytest.param([3, 4], 3, 3, Agreement(4), id="and-rises-again"),
        pytest.param([3, 4], 2, None, Agreement(4), id="nothing-was-overruled"),
    ],
)
def test_the_highest_for_more_and_the_lowest_for_fewer(
    recommendations: list[int], current: int, overruled: int | None, expected: Agreement
) -> None:
    """They contradict each other, and must not take turns."""
    assert agreed(recommendations, current, up=MAX, down=MIN, overruled=overruled) == expected


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=3),
    st.sampled_from(Select),
    st.sampled_from(Select),
    st.integers(0, 20),
)
def test_what_is_agreed_on_stays(recommendations: list[int], up: Select, down: Select, current: int) -> None:
    """As long as the metrics stay as they are, it comes to rest after at most one move each way."""
    overruled = None
    course = [current]
    for _ in range(6):
        agreement = agreed(recommendations, course[-1], up=up, down=down, overruled=overruled)
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
def test_certain(recommendations: list[int], up: Select, overruled: int | None, expected: int) -> None:
    """There are five replicas, and one more metric that is missing."""
    assert certain(recommendations, 5, up=up, overruled=overruled) == expected
