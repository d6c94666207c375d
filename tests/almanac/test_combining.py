"""Combinations of timelines compared with their definition, instant by instant."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.almanac import (
    Timeline,
    always,
    both,
    combine,
    either,
    maximum,
    merged,
    minimum,
    negate,
    never,
    overlay,
    spans,
    steps,
    with_lead_time,
)
from springtide.almanac.timeline import Constant

HORIZON = 60

_cuts = st.lists(st.integers(0, 40), unique=True, max_size=8).map(sorted)


def _switching(cuts: list[int]) -> Timeline[bool]:
    return spans([(a, b) for a, b in zip(cuts[::2], [*cuts[1::2], None], strict=False)])


switches = st.one_of(_cuts.map(_switching), st.just(always()), st.just(never()))
levels = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=6).map(lambda points: steps(0, points))


def _values(timeline: Timeline[int] | Timeline[bool], t: int) -> list[int]:
    """Return the values from an instant on, read from one iteration, and check that it is that of a timeline."""
    segments = list(timeline.segments(t))
    assert segments[0][0] == t
    assert all(a[0] < b[0] and a[1] != b[1] for a, b in itertools.pairwise(segments))
    return [int(next(value for at, value in reversed(segments) if at <= x)) for x in range(t, t + HORIZON)]


@given(
    layers=st.lists(st.tuples(switches, st.integers(0, 3)), max_size=5), default=st.integers(0, 3), t=st.integers(0, 45)
)
def test_overlay_shows_the_first_active_layer(layers: list[tuple[Timeline[bool], int]], default: int, t: int) -> None:
    """At every instant the value is that of the first active layer, or the default."""
    expected = [next((value for active, value in layers if active.at(x)), default) for x in range(t, t + HORIZON)]

    assert _values(overlay(layers, default), t) == expected


@pytest.mark.parametrize(
    ("combined", "function"), [(minimum, min), (maximum, max), (lambda parts: combine(sum, parts), sum)]
)
@given(parts=st.lists(levels, min_size=1, max_size=4), t=st.integers(0, 45))
def test_numbers_combine_instant_by_instant(
    combined: Callable[[list[Timeline[int]]], Timeline[int]],
    function: Callable[[list[int]], int],
    parts: list[Timeline[int]],
    t: int,
) -> None:
    """The value of a combination is the function of the values at every instant."""
    expected = [function([part.at(x) for part in parts]) for x in range(t, t + HORIZON)]

    assert _values(combined(parts), t) == expected


@given(parts=st.lists(switches, max_size=4), t=st.integers(0, 45))
def test_switches_combine_instant_by_instant(parts: list[Timeline[bool]], t: int) -> None:
    """`both` is active where all are, `either` where any is, `negate` where none is."""
    states = [[part.at(x) for part in parts] for x in range(t, t + HORIZON)]

    assert _values(both(*parts), t) == [all(state) for state in states]
    assert _values(either(*parts), t) == [any(state) for state in states]
    assert _values(negate(either(*parts)), t) == [not any(state) for state in states]


@given(timeline=switches, lead=st.integers(0, 15), t=st.integers(0, 45))
def test_lead_moves_starts_and_keeps_ends(timeline: Timeline[bool], lead: int, t: int) -> None:
    """With a lead time a timeline is active if it is active now or within the lead time."""
    expected = [any(timeline.at(x + ahead) for ahead in range(lead + 1)) for x in range(t, t + HORIZON)]

    assert _values(with_lead_time(timeline, lead), t) == expected


@pytest.mark.parametrize(
    "timeline",
    [
        pytest.param(either(spans([(1, 2)]), always()), id="either-always"),
        pytest.param(both(spans([(1, 2)]), never()), id="both-never"),
        pytest.param(both(), id="both-of-none"),
        pytest.param(overlay([(always(), 3), (spans([(1, 2)]), 4)], 0), id="hidden-layer"),
        pytest.param(overlay([(spans([(1, 2)]), 4)], 4), id="layer-like-the-default"),
        pytest.param(overlay([(never(), 3)], 0), id="no-layer"),
        pytest.param(with_lead_time(always(), 10), id="led-always"),
        pytest.param(combine(sum, [steps(1, []), steps(2, [])]), id="sum-of-constants"),
    ],
)
def test_constant_results_are_recognised(timeline: Timeline[int]) -> None:
    """A result that no other part can change is a `Constant`."""
    assert isinstance(timeline, Constant)


def test_merged_reports_every_breakpoint_once() -> None:
    """Changes at one instant are reported together, in the order of the timelines."""
    walk = merged([steps(0, [(5, 1), (9, 2)]), steps(0, [(5, 7)])], 0)

    assert [(at, tuple(values)) for at, values in walk] == [(0, (0, 0)), (5, (1, 7)), (9, (2, 7))]


def test_spans_that_both_last_forever_are_the_last_ones() -> None:
    """Their conjunction ends with a segment that lasts forever too."""
    together = both(spans([(1, 3), (5, None)]), spans([(2, None)]))

    assert list(together.segments(0)) == [(0, False), (2, True), (3, False), (5, True)]
