"""The measure itself finds superlinear cost, in Python and within one call of a library, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.costs.growth import excessive_steps, excessive_time


def linear(size: int) -> Callable[[], object]:
    """Visit every entry once."""
    return lambda: [number + 1 for number in range(size)]


def quadratic(size: int) -> Callable[[], object]:
    """Visit every pair."""

    def visit() -> int:
        visited = 0
        for _ in range(size):
            for _ in range(size):
                visited += 1
        return visited

    return visit


def quadratic_in_one_call(size: int) -> Callable[[], object]:
    """Backtrack over adjacent repetitions."""
    return lambda: re.fullmatch(r"\s*[a-z]*\s*", " " * size + "!")


@pytest.mark.parametrize(
    ("make", "found"),
    [
        pytest.param(linear, False, id="linear"),
        pytest.param(quadratic, True, id="quadratic"),
    ],
)
def test_steps_are_counted(make: Callable[[int], Callable[[], object]], found: bool) -> None:
    assert bool(excessive_steps(make, 100)) is found


@pytest.mark.parametrize(
    ("make", "size", "found"),
    [
        pytest.param(linear, 2_000_000, False, id="linear-and-noticeable"),
        pytest.param(quadratic, 3_000, True, id="quadratic"),
        pytest.param(quadratic_in_one_call, 8_000, True, id="quadratic-in-one-call"),
    ],
)
def test_time_is_compared(make: Callable[[int], Callable[[], object]], size: int, found: bool) -> None:
    assert bool(excessive_time(make, size)) is found
