"""Speed limits by example."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.scaling import Changes, Policy, Select, farthest
from springtide.scaling.policies import SummedChanges

TWO = Policy(2, 60)
TENTH = Policy(10, 60, percent=True)


@pytest.mark.parametrize(
    ("policies", "select", "changes", "current", "up", "expected"),
    [
        pytest.param([TWO], Select.MAX, [], 5, True, 7, id="count-up"),
        pytest.param([TWO], Select.MAX, [], 5, False, 3, id="count-down"),
        pytest.param([TENTH], Select.MAX, [], 15, True, 17, id="percent-up-rounds-up"),
        pytest.param([TENTH], Select.MAX, [], 15, False, 13, id="percent-down-rounds-up"),
        pytest.param([TENTH], Select.MAX, [], 0, True, 1, id="percent-of-none"),
        pytest.param([TWO, TENTH], Select.MAX, [], 50, True, 55, id="most"),
        pytest.param([TWO, TENTH], Select.MIN, [], 50, True, 52, id="least"),
        pytest.param([TWO, TENTH], Select.MAX, [], 50, False, 45, id="most-down"),
        pytest.param([TWO, TENTH], Select.MIN, [], 50, False, 48, id="least-down"),
        pytest.param([TWO], Select.DISABLED, [], 5, True, 5, id="disabled"),
        pytest.param([], Select.MAX, [], 5, True, None, id="no-limit"),
        pytest.param([TWO], Select.MAX, [(-30, 1)], 6, True, 7, id="a-part-is-used-up"),
        pytest.param([TWO], Select.MAX, [(-60, 2)], 7, True, 9, id="a-period-ago-is-over"),
        pytest.param([TWO], Select.MAX, [(-59, 2)], 7, True, 7, id="used-up"),
        pytest.param([TWO], Select.MAX, [(-30, 2), (-20, -2)], 5, True, 7, id="taken-back"),
        pytest.param([TWO], Select.MAX, [(-30, -3)], 5, True, 10, id="back-to-where-it-was-and-on"),
        pytest.param([TENTH], Select.MAX, [(-30, 10)], 110, True, 110, id="percent-of-the-beginning"),
        pytest.param([TWO], Select.MAX, [(-30, 2)], 1, True, 1, id="somebody-else-took-away"),
    ],
)
def test_farthest(
    policies: list[Policy],
    select: Select,
    changes: list[tuple[int, int]],
    current: int,
    up: bool,
    expected: int | None,
) -> None:
    """It is the instant 0."""
    assert farthest(policies, select, Changes(tuple(changes)), current, 0, up=up) == expected


def test_changes_are_forgotten_when_no_period_looks_back_to_them() -> None:
    assert Changes(((0, 2), (1, 3))).as_of(60, keep=60).made == ((1, 3),)


def test_what_lies_in_the_future_has_just_happened() -> None:
    """The clock was set back: a change must not count for longer than its period."""
    assert Changes(((500, 2),)).as_of(60, keep=60).made == ((60, 2),)


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(-5, 5)), max_size=8),
    st.integers(1, 25),
    st.integers(-25, 25),
)
def test_summed_up_they_are_the_same(made: list[tuple[int, int]], period: int, now: int) -> None:
    changes = Changes(tuple(made))

    assert SummedChanges(changes).start(10, period, now) == changes.start(10, period, now)


@pytest.mark.parametrize(
    ("change", "up", "expected"),
    [
        pytest.param(3, True, 10, id="more-after-more"),
        pytest.param(3, False, 8, id="fewer-after-more"),
        pytest.param(-3, False, 10, id="fewer-after-fewer"),
        pytest.param(-3, True, 12, id="more-after-fewer"),
    ],
)
def test_what_somebody_changed_leaves_less_room_and_never_more(change: int, up: bool, expected: int) -> None:
    """Two are allowed in a minute; undoing what was changed would allow five."""
    changes = Changes(doubtful=((100, change),)).as_of(110, keep=60).counting(up=up)

    assert farthest([Policy(2, 60)], Select.MAX, changes, 10, 110, up=up) == expected
