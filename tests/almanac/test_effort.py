"""Searches that come to an end whatever they search through, and after the same work on every machine."""

from __future__ import annotations

import pytest

from springtide.almanac import Pattern, Timeline, led_by, load_zone, overlay, recurring
from springtide.almanac.effort import QUIET_LIMIT, Searching, at_most, is_enough

NOW = 1_780_000_000
PLENTY = 10**9
EVERY_HOUR = ",".join(map(str, range(24)))
EVEN, ODD = (",".join(map(str, range(first, 60, 2))) for first in (0, 1))


def each_minute(first: str, then: str, zone: str = "Europe/Berlin") -> Timeline[bool]:
    """Make a window that opens and closes every other minute."""
    start, end = (Pattern.parse(hours=EVERY_HOUR, minutes=minutes) for minutes in (first, then))
    return recurring(start, end, load_zone(zone))


BUSY = each_minute(EVEN, ODD)
PAUSE = each_minute(ODD, EVEN)
NEVER_SEEN = recurring(Pattern.parse(hours="9"), Pattern.parse(hours="17"), load_zone("UTC"))


@pytest.mark.parametrize(
    "timeline",
    [
        pytest.param(overlay([(BUSY, 5), (PAUSE, 5), (NEVER_SEEN, 8)], 5), id="a-layer-that-never-wins"),
        pytest.param(overlay([*[(BUSY, 5), (PAUSE, 5)] * 100, (NEVER_SEEN, 8)], 5), id="below-many"),
        pytest.param(led_by(each_minute(EVEN, ODD, "UTC"), 60), id="a-lead-that-fills-pauses"),
        pytest.param(overlay([(led_by(BUSY, 3600 + more), more) for more in range(100)], 5), id="many-of-them"),
    ],
)
def test_a_search_for_a_change_is_given_up_after_a_number_of_steps(timeline: Timeline[object]) -> None:
    """The steps of all layers count, not only those at which they meet."""
    with at_most(PLENTY) as effort:
        with at_most(QUIET_LIMIT) as bounded:
            assert timeline.next_change(NOW) is None
        assert bounded.exhausted

    assert QUIET_LIMIT < PLENTY - effort.left < 1.01 * QUIET_LIMIT


def test_nobody_has_to_set_a_bound() -> None:
    """A timeline that is asked by itself gives up as well, and the next question begins anew."""
    lasting = led_by(each_minute(EVEN, ODD, "UTC"), 60)

    assert [lasting.next_change(NOW), lasting.at(NOW)] == [None, True]
    with Searching() as effort:
        assert effort.left == QUIET_LIMIT


def test_changes_that_come_are_all_found() -> None:
    """The bound is on the way to one change, not on how many there are."""
    assert len(BUSY.changes(NOW, NOW + 500 * 86_400)) > QUIET_LIMIT


def test_a_bound_within_a_bound_is_a_part_of_it() -> None:
    """What is spent within counts outside, and nobody gets more than is left."""
    with at_most(10) as outer:
        with at_most(4) as inner:
            assert [is_enough(3), is_enough(3)] == [False, True]
        assert (inner.exhausted, outer.left) == (True, 4)
        with at_most(100) as inner:
            assert inner.left == 4
    assert not is_enough(PLENTY)


def test_a_failure_leaves_no_bound_behind() -> None:
    """Whoever searches next has all steps, whatever happened before."""
    with pytest.raises(ZeroDivisionError), at_most(1):
        _ = 1 // 0
    with pytest.raises(ZeroDivisionError), Searching():
        _ = 1 // 0

    assert not is_enough(PLENTY)
