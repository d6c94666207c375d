"""Windows by example; `test_moving_oracle.py` holds them against a slow reading of the same."""

from __future__ import annotations

import pytest

from springtide.scaling import Recommendations, Stable, stabilised

LONG_AGO = -10_000


def _history(*steps: tuple[int, int]) -> Recommendations:
    return Recommendations(steps)


@pytest.mark.parametrize(
    ("steps", "current", "window", "expected"),
    [
        pytest.param([(LONG_AGO, 5), (0, 3)], 5, 300, Stable(5, 300), id="just-fallen"),
        pytest.param([(LONG_AGO, 5), (-299, 3)], 5, 300, Stable(5, 1), id="a-second-is-left"),
        pytest.param([(LONG_AGO, 5), (-300, 3)], 5, 300, Stable(3), id="over"),
        pytest.param([(LONG_AGO, 5), (0, 3)], 5, 0, Stable(3), id="no-window"),
        pytest.param([(LONG_AGO, 9), (-200, 7), (-100, 3)], 9, 300, Stable(9, 100), id="first-step-of-two"),
        pytest.param([(LONG_AGO, 9), (-200, 7), (-100, 3)], 9, 150, Stable(7, 50), id="second-step-of-two"),
        pytest.param([(LONG_AGO, 4), (-50, 9), (-50, 3)], 9, 300, Stable(9, 250), id="of-one-instant-all-count"),
        pytest.param([(LONG_AGO, 3), (0, 8)], 5, 60, Stable(5, 60), id="growing-is-held-as-well"),
        pytest.param([(LONG_AGO, 6), (0, 8)], 5, 60, Stable(6, 60), id="growing-to-the-lowest"),
        pytest.param([(LONG_AGO, 3), (0, 8)], 5, 0, Stable(8), id="growing-at-once"),
        pytest.param([(-60, 3)], 5, 300, Stable(5, 240, unseen=True), id="not-watched-for-long-enough"),
        pytest.param([(-60, 9), (-20, 3)], 5, 300, Stable(5, 280), id="both-the-later-counts"),
        pytest.param([(-60, 5)], 5, 300, Stable(5), id="nothing-is-wanted"),
    ],
)
def test_stabilised(steps: list[tuple[int, int]], current: int, window: int, expected: Stable) -> None:
    """It is the instant 0."""
    assert stabilised(_history(*steps), current, window, 0) == expected


@pytest.mark.parametrize(
    ("steps", "now", "replicas", "keep", "expected"),
    [
        pytest.param([], 10, 5, 300, [(10, 5)], id="first"),
        pytest.param([(10, 5)], 25, 5, 300, [(10, 5)], id="the-same-again-is-no-news"),
        pytest.param([(10, 5)], 25, 3, 300, [(10, 5), (25, 3)], id="another"),
        pytest.param([(10, 5), (25, 3)], 325, 3, 300, [(25, 3)], id="forgotten-a-window-after-its-end"),
        pytest.param([(10, 5), (25, 3)], 324, 3, 300, [(10, 5), (25, 3)], id="not-before"),
        pytest.param([(10, 5), (25, 3)], 20, 4, 300, [(10, 5), (20, 3), (20, 4)], id="the-clock-was-set-back"),
    ],
)
def test_then(
    steps: list[tuple[int, int]], now: int, replicas: int, keep: int, expected: list[tuple[int, int]]
) -> None:
    assert _history(*steps).then(now, replicas, keep=keep).steps == tuple(expected)
