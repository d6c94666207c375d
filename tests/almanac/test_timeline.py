"""Timelines: the values at instants, the changes between them, and when a search gives up."""

import itertools
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.almanac import Timeline, active_spans, always, constant, never, spans, steps
from springtide.almanac.civil import CYCLE
from springtide.almanac.search_budget import DEFAULT_SEARCH_STEPS
from springtide.almanac.timeline import SETTLED_BREAKPOINTS, SETTLED_TIME, from_spans, to_segments

UPS = steps("low", [(10, "mid"), (20, "high")])


@pytest.mark.parametrize(
    ("t", "value", "following"),
    [
        pytest.param(9, "low", (10, "mid"), id="before"),
        pytest.param(10, "mid", (20, "high"), id="at-a-change"),
        pytest.param(19, "mid", (20, "high"), id="between"),
        pytest.param(20, "high", None, id="after-the-last"),
    ],
)
def test_value_and_next_change(t: int, value: str, following: tuple[int, str] | None) -> None:
    """A value holds from its change until just before the next."""
    assert UPS.at(t) == value
    assert UPS.next_change(t) == following


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(0, 30, [(10, "mid"), (20, "high")], id="all"),
        pytest.param(10, 20, [(20, "high")], id="after-a-up-to-b"),
        pytest.param(10, 19, [], id="none"),
    ],
)
def test_changes_lie_after_a_and_up_to_b(a: int, b: int, expected: list[tuple[int, str]]) -> None:
    """The interval is open at its start and closed at its end."""
    assert UPS.changes(a, b) == expected


def test_steps_in_any_order_without_repetition() -> None:
    """Steps are sorted, the last of one instant counts, equal neighbours are one."""
    timeline = steps(0, [(30, 2), (10, 1), (20, 1), (30, 3)])

    assert list(timeline.segments(0)) == [(0, 0), (10, 1), (30, 3)]


def test_constants_have_no_changes() -> None:
    """A constant has its value at every instant and no next change."""
    assert list(constant(7).segments(-5)) == [(-5, 7)]
    assert always().at(0)
    assert not never().at(0)
    assert always().next_change(0) is None


def test_spans_are_half_open_and_may_last_forever() -> None:
    """Touching spans are joined, and a span with the end None does not end."""
    timeline = spans([(30, None), (10, 20), (20, 25)])

    assert list(timeline.segments(0)) == [(0, False), (10, True), (25, False), (30, True)]
    assert list(active_spans(timeline, 15)) == [(15, 25), (30, None)]
    assert list(active_spans(timeline, 25)) == [(30, None)]


def test_map_joins_what_becomes_equal() -> None:
    """Changes between values that the function maps to one value are dropped."""
    assert list(UPS.map(lambda value: value != "low").segments(0)) == [(0, False), (10, True)]
    assert constant(2).map(str).at(0) == "2"


@given(
    intervals=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=6),
    t=st.integers(0, 80),
)
def test_lazy_spans_are_the_union_of_their_intervals(intervals: list[tuple[int, int]], t: int) -> None:
    """Intervals that overlap or touch become one."""

    def ending_after(at: int) -> Iterator[tuple[int, int | None]]:
        yield from sorted((a, a + length) for a, length in intervals if a + length > at)

    expected = [any(a <= x < a + length for a, length in intervals) for x in range(t, 100)]
    segments = list(from_spans(ending_after).segments(t))
    found = [next(value for at, value in reversed(segments) if at <= x) for x in range(t, 100)]

    assert found == expected
    assert all(a[0] < b[0] and a[1] != b[1] for a, b in itertools.pairwise(segments))


def test_what_lasts_a_cycle_of_the_calendar_lasts_forever() -> None:
    """An endless chain of touching intervals is one interval without end."""

    def years(_: int) -> Iterator[tuple[int, int | None]]:
        start = 0
        while True:
            yield start, start + CYCLE // 400
            start += CYCLE // 400

    assert from_spans(years).next_change(1) is None


def test_endless_breakpoints_without_effect_end() -> None:
    """The search gives up after a stated number of breakpoints without a change."""

    def flat() -> Iterator[tuple[int, bool]]:
        at = 0
        while True:
            yield at, True
            at += 1

    assert list(to_segments(flat())) == [(0, True)]
    late = ((at, at >= DEFAULT_SEARCH_STEPS - 1) for at in range(2 * DEFAULT_SEARCH_STEPS))
    assert list(to_segments(late)) == [(0, False), (DEFAULT_SEARCH_STEPS - 1, True)]


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_value_that_does_not_change_for_decades_is_settled(at_once: int) -> None:
    """The instants of breakpoints count, however many breakpoints there are at one."""
    seen: set[int] = set()

    def flat() -> Iterator[tuple[int, bool]]:
        yield 0, True
        for number in itertools.count(1):
            seen.add(number)
            for _ in range(at_once):
                yield number * (SETTLED_TIME // SETTLED_BREAKPOINTS + 1), True

    assert list(to_segments(flat())) == [(0, True)]
    assert len(seen) == SETTLED_BREAKPOINTS + 1


@pytest.mark.parametrize(
    ("quiet", "change"),
    [
        pytest.param(range(SETTLED_BREAKPOINTS + 2), SETTLED_TIME, id="decades-with-many-breakpoints"),
        pytest.param((0, CYCLE), CYCLE + 1, id="a-cycle-of-the-calendar"),
    ],
)
def test_a_change_at_the_end_of_a_search_is_found(quiet: Sequence[int], change: int) -> None:
    """A search is given up after that time, not when it is over."""
    points = [*((at, True) for at in quiet), (change, False), (change + 1, False)]

    assert list(to_segments(points)) == [(0, True), (change, False)]


def test_the_value_at_an_instant_needs_no_look_ahead() -> None:
    """`at` does not search for the next change."""

    def points() -> Iterator[tuple[int, int]]:
        yield 0, 1
        raise AssertionError

    timeline: Timeline[int] = Timeline(lambda t: to_segments(points()))

    assert timeline.at(0) == 1
