"""Windows by example; `test_moving_oracle.py` holds them against a slow reading of the same.

Speed limits by example.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.scaling import (
    ChangePolicy,
    PolicySelect,
    RecommendationSteps,
    ReplicaChanges,
    StabilizedReplicas,
    furthest_allowed,
    stabilize,
)
from springtide.scaling.behavior import SummedChanges

LONG_AGO = -10_000


def _history(*steps: tuple[int, int]) -> RecommendationSteps:
    return RecommendationSteps(steps)


@pytest.mark.parametrize(
    ("steps", "current", "window", "expected"),
    [
        pytest.param([(LONG_AGO, 5), (0, 3)], 5, 300, StabilizedReplicas(5, 300), id="just-fallen"),
        pytest.param([(LONG_AGO, 5), (-299, 3)], 5, 300, StabilizedReplicas(5, 1), id="a-second-is-left"),
        pytest.param([(LONG_AGO, 5), (-300, 3)], 5, 300, StabilizedReplicas(3), id="over"),
        pytest.param([(LONG_AGO, 5), (0, 3)], 5, 0, StabilizedReplicas(3), id="no-window"),
        pytest.param([(LONG_AGO, 9), (-200, 7), (-100, 3)], 9, 300, StabilizedReplicas(9, 100), id="first-step-of-two"),
        pytest.param([(LONG_AGO, 9), (-200, 7), (-100, 3)], 9, 150, StabilizedReplicas(7, 50), id="second-step-of-two"),
        pytest.param(
            [(LONG_AGO, 4), (-50, 9), (-50, 3)], 9, 300, StabilizedReplicas(9, 250), id="of-one-instant-all-count"
        ),
        pytest.param([(LONG_AGO, 3), (0, 8)], 5, 60, StabilizedReplicas(5, 60), id="up-is-stabilized"),
        pytest.param([(LONG_AGO, 6), (0, 8)], 5, 60, StabilizedReplicas(6, 60), id="up-to-the-lowest"),
        pytest.param([(LONG_AGO, 3), (0, 8)], 5, 0, StabilizedReplicas(8), id="up-without-a-window"),
        pytest.param([(-60, 3)], 5, 300, StabilizedReplicas(5, 240, unseen=True), id="window-not-observed-yet"),
        pytest.param([(-60, 9), (-20, 3)], 5, 300, StabilizedReplicas(5, 280), id="both-the-later-counts"),
        pytest.param([(-60, 5)], 5, 300, StabilizedReplicas(5), id="no-change"),
    ],
)
def test_stabilised(steps: list[tuple[int, int]], current: int, window: int, expected: StabilizedReplicas) -> None:
    """At instant 0."""
    assert stabilize(_history(*steps), current, window, 0) == expected


@pytest.mark.parametrize(
    ("steps", "now", "replicas", "keep", "expected"),
    [
        pytest.param([], 10, 5, 300, [(10, 5)], id="first"),
        pytest.param([(10, 5)], 25, 5, 300, [(10, 5)], id="unchanged"),
        pytest.param([(10, 5)], 25, 3, 300, [(10, 5), (25, 3)], id="another"),
        pytest.param([(10, 5), (25, 3)], 325, 3, 300, [(25, 3)], id="forgotten-a-window-after-its-end"),
        pytest.param([(10, 5), (25, 3)], 324, 3, 300, [(10, 5), (25, 3)], id="not-before"),
        pytest.param([(10, 5), (25, 3)], 20, 4, 300, [(10, 5), (20, 3), (20, 4)], id="the-clock-was-set-back"),
    ],
)
def test_a_recommendation_is_added(
    steps: list[tuple[int, int]], now: int, replicas: int, keep: int, expected: list[tuple[int, int]]
) -> None:
    assert _history(*steps).then(now, replicas, keep=keep).steps == tuple(expected)


TWO = ChangePolicy(2, 60)
TENTH = ChangePolicy(10, 60, percent=True)


@pytest.mark.parametrize(
    ("policies", "select", "changes", "current", "up", "expected"),
    [
        pytest.param([TWO], PolicySelect.MAX, [], 5, True, 7, id="count-up"),
        pytest.param([TWO], PolicySelect.MAX, [], 5, False, 3, id="count-down"),
        pytest.param([TENTH], PolicySelect.MAX, [], 15, True, 17, id="percent-up-rounds-up"),
        pytest.param([TENTH], PolicySelect.MAX, [], 15, False, 13, id="percent-down-rounds-up"),
        pytest.param([TENTH], PolicySelect.MAX, [], 0, True, 1, id="percent-of-none"),
        pytest.param([TWO, TENTH], PolicySelect.MAX, [], 50, True, 55, id="most"),
        pytest.param([TWO, TENTH], PolicySelect.MIN, [], 50, True, 52, id="least"),
        pytest.param([TWO, TENTH], PolicySelect.MAX, [], 50, False, 45, id="most-down"),
        pytest.param([TWO, TENTH], PolicySelect.MIN, [], 50, False, 48, id="least-down"),
        pytest.param([TWO], PolicySelect.DISABLED, [], 5, True, 5, id="disabled"),
        pytest.param([], PolicySelect.MAX, [], 5, True, None, id="no-limit"),
        pytest.param([TWO], PolicySelect.MAX, [(-30, 1)], 6, True, 7, id="a-part-is-used-up"),
        pytest.param([TWO], PolicySelect.MAX, [(-60, 2)], 7, True, 9, id="a-period-ago-is-over"),
        pytest.param([TWO], PolicySelect.MAX, [(-59, 2)], 7, True, 7, id="used-up"),
        pytest.param([TWO], PolicySelect.MAX, [(-30, 2), (-20, -2)], 5, True, 7, id="taken-back"),
        pytest.param([TWO], PolicySelect.MAX, [(-30, -3)], 5, True, 10, id="back-to-where-it-was-and-on"),
        pytest.param([TENTH], PolicySelect.MAX, [(-30, 10)], 110, True, 110, id="percent-of-the-beginning"),
        pytest.param([TWO], PolicySelect.MAX, [(-30, 2)], 1, True, 1, id="another-writer-scaled-down"),
    ],
)
def test_furthest_allowed(
    policies: list[ChangePolicy],
    select: PolicySelect,
    changes: list[tuple[int, int]],
    current: int,
    up: bool,
    expected: int | None,
) -> None:
    """At instant 0."""
    assert furthest_allowed(policies, select, ReplicaChanges(tuple(changes)), current, 0, up=up) == expected


def test_changes_older_than_all_periods_are_dropped() -> None:
    assert ReplicaChanges(((0, 2), (1, 3))).as_of(60, keep=60).made == ((1, 3),)


def test_changes_in_the_future_are_moved_to_now() -> None:
    """The clock was set back: a change must not count for longer than its period."""
    assert ReplicaChanges(((500, 2),)).as_of(60, keep=60).made == ((60, 2),)


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(-5, 5)), max_size=8),
    st.integers(1, 25),
    st.integers(-25, 25),
)
def test_prefix_sums_agree(made: list[tuple[int, int]], period: int, now: int) -> None:
    changes = ReplicaChanges(tuple(made))

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
def test_changes_of_other_writers_never_allow_more(change: int, up: bool, expected: int) -> None:
    """The policy allows two in a minute; undoing the change would allow five."""
    changes = ReplicaChanges(doubtful=((100, change),)).as_of(110, keep=60).counting(up=up)

    assert furthest_allowed([ChangePolicy(2, 60)], PolicySelect.MAX, changes, 10, 110, up=up) == expected
