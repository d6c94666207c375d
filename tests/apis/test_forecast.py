"""Sequences of a forecast that are computed while they are read, and how instants are written."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from springtide.apis.forecast import LazySequence, format_instant

LONG = 5_000


class CountedItems:
    """Items that count how many of them have been computed."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.computed = 0

    def __call__(self) -> Iterator[int]:
        for number in range(self.length):
            self.computed += 1
            yield number


def every(items: LazySequence[int]) -> int:
    """Read every item; `list` would ask for the length first."""
    return sum(1 for _ in items)


@pytest.mark.parametrize(
    ("length", "read", "computed"),
    [
        pytest.param(3, lambda items: [every(items), every(items), len(items)], 3, id="a-short-one-is-kept"),
        pytest.param(0, lambda items: [every(items), every(items), len(items)], 0, id="an-empty-one"),
        pytest.param(LONG, lambda items: list(islice(items, 2)), 2, id="nothing-is-computed-ahead"),
        pytest.param(
            LONG, lambda items: [every(items), every(items)], 2 * LONG, id="a-long-one-is-not-kept-by-reading"
        ),
        pytest.param(LONG, lambda items: [items[-1], len(items), list(items)], LONG, id="a-long-one-is-kept-by-index"),
        pytest.param(LONG, lambda items: [items[2:4], items[7]], LONG, id="a-long-one-is-kept-by-a-slice"),
        pytest.param(LONG, lambda items: [list(items), list(items)], LONG, id="a-long-one-is-kept-by-a-list"),
    ],
)
def test_items_are_computed_when_they_are_read(
    length: int, read: Callable[[LazySequence[int]], Any], computed: int
) -> None:
    counted = CountedItems(length)
    read(LazySequence(counted))
    assert counted.computed == computed


@pytest.mark.parametrize("length", [0, 3, 1_000, 1_001, LONG])
def test_a_lazy_sequence_equals_the_tuple_of_its_items(length: int) -> None:
    items, expected = LazySequence(CountedItems(length)), tuple(range(length))
    assert tuple(items) == expected, "the first time"
    assert tuple(items) == expected, "again"
    assert items == expected
    assert (len(items), items[-2:], bool(items)) == (length, expected[-2:], length > 0)
    assert (items == (*expected, 1)) is False


@pytest.mark.parametrize(
    "moment",
    ["1970-01-01T00:00:00", "2026-02-28T23:59:59", "1969-12-31T23:59:59", "0001-01-01T00:00:00", "9999-12-31T23:59:59"],
)
def test_instants_are_written_as_rfc_3339(moment: str) -> None:
    at = (datetime.datetime.fromisoformat(moment) - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1)  # noqa: DTZ001
    assert format_instant(at) == f"{moment}Z"
