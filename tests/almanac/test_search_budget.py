"""Searches that come to an end whatever they search through, and after the same work on every machine."""

from __future__ import annotations

import pytest

from springtide.almanac import Timeline, TimePattern, load_zone, overlay, recurring, with_lead_time
from springtide.almanac.search_budget import DEFAULT_SEARCH_STEPS, SearchScope, exceeds_budget, limit_search

NOW = 1_780_000_000
PLENTY = 10**9
EVERY_HOUR = ",".join(map(str, range(24)))
EVEN, ODD = (",".join(map(str, range(first, 60, 2))) for first in (0, 1))


def each_minute(first: str, then: str, zone: str = "Europe/Berlin") -> Timeline[bool]:
    """Make a window that opens and closes every other minute."""
    start, end = (TimePattern.parse(hours=EVERY_HOUR, minutes=minutes) for minutes in (first, then))
    return recurring(start, end, load_zone(zone))


BUSY = each_minute(EVEN, ODD)
PAUSE = each_minute(ODD, EVEN)
NEVER_SEEN = recurring(TimePattern.parse(hours="9"), TimePattern.parse(hours="17"), load_zone("UTC"))


@pytest.mark.parametrize(
    "timeline",
    [
        pytest.param(overlay([(BUSY, 5), (PAUSE, 5), (NEVER_SEEN, 8)], 5), id="a-layer-that-never-wins"),
        pytest.param(overlay([*[(BUSY, 5), (PAUSE, 5)] * 100, (NEVER_SEEN, 8)], 5), id="below-many"),
        pytest.param(with_lead_time(each_minute(EVEN, ODD, "UTC"), 60), id="a-lead-that-fills-pauses"),
        pytest.param(overlay([(with_lead_time(BUSY, 3600 + more), more) for more in range(100)], 5), id="many-of-them"),
    ],
)
def test_a_search_for_a_change_is_given_up_after_a_number_of_steps(timeline: Timeline[object]) -> None:
    """The steps of all layers count, not only those at which they meet."""
    with limit_search(PLENTY) as effort:
        with limit_search(DEFAULT_SEARCH_STEPS) as bounded:
            assert timeline.next_change(NOW) is None
        assert bounded.exhausted

    assert DEFAULT_SEARCH_STEPS < PLENTY - effort.left < 1.01 * DEFAULT_SEARCH_STEPS


def test_nobody_has_to_set_a_bound() -> None:
    """A timeline that is asked by itself gives up as well, and the next question begins anew."""
    lasting = with_lead_time(each_minute(EVEN, ODD, "UTC"), 60)

    assert [lasting.next_change(NOW), lasting.at(NOW)] == [None, True]
    with SearchScope() as effort:
        assert effort.left == DEFAULT_SEARCH_STEPS


def test_changes_that_come_are_all_found() -> None:
    """The bound is on the way to one change, not on how many there are."""
    assert len(BUSY.changes(NOW, NOW + 500 * 86_400)) > DEFAULT_SEARCH_STEPS


def test_a_bound_within_a_bound_is_a_part_of_it() -> None:
    """What is spent within counts outside, and nobody gets more than is left."""
    with limit_search(10) as outer:
        with limit_search(4) as inner:
            assert [exceeds_budget(3), exceeds_budget(3)] == [False, True]
        assert (inner.exhausted, outer.left) == (True, 4)
        with limit_search(100) as inner:
            assert inner.left == 4
    assert not exceeds_budget(PLENTY)


def test_a_failure_leaves_no_bound_behind() -> None:
    """Whoever searches next has all steps, whatever happened before."""
    with pytest.raises(ZeroDivisionError), limit_search(1):
        _ = 1 // 0
    with pytest.raises(ZeroDivisionError), SearchScope():
        _ = 1 // 0

    assert not exceeds_budget(PLENTY)
