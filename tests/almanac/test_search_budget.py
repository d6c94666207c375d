"""Search budgets: every search ends, and after the same number of steps on every machine."""

from __future__ import annotations

import pytest

from springtide.almanac import Timeline, TimePattern, load_zone, overlay, recurring, with_lead_time
from springtide.almanac.search_budget import DEFAULT_SEARCH_STEPS, BudgetScope, exceeds_budget, limit_search

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
        pytest.param(overlay([*[(BUSY, 5), (PAUSE, 5)] * 100, (NEVER_SEEN, 8)], 5), id="below-many-layers"),
        pytest.param(with_lead_time(each_minute(EVEN, ODD, "UTC"), 60), id="a-lead-time-that-fills-the-pauses"),
        pytest.param(
            overlay([(with_lead_time(BUSY, 3600 + more), more) for more in range(100)], 5), id="many-lead-times"
        ),
    ],
)
def test_a_search_for_a_change_ends_when_the_budget_is_exhausted(timeline: Timeline[object]) -> None:
    """The steps of all layers use the budget, not only those of the overlay."""
    with limit_search(PLENTY) as budget:
        with limit_search(DEFAULT_SEARCH_STEPS) as bounded:
            assert timeline.next_change(NOW) is None
        assert bounded.exhausted

    assert DEFAULT_SEARCH_STEPS < PLENTY - budget.left < 1.01 * DEFAULT_SEARCH_STEPS


def test_a_search_without_a_limit_uses_the_default_budget() -> None:
    """A query outside `limit_search` ends as well, and the next one has a new budget."""
    lasting = with_lead_time(each_minute(EVEN, ODD, "UTC"), 60)

    assert [lasting.next_change(NOW), lasting.at(NOW)] == [None, True]
    with BudgetScope() as budget:
        assert budget.left == DEFAULT_SEARCH_STEPS


def test_the_default_budget_is_for_one_change() -> None:
    """A timeline with more changes than the default budget has steps lists all of them."""
    assert len(BUSY.changes(NOW, NOW + 500 * 86_400)) > DEFAULT_SEARCH_STEPS


def test_a_nested_budget_is_part_of_the_outer_one() -> None:
    """Steps of the inner search reduce the outer budget, and an inner budget is never larger than what is left."""
    with limit_search(10) as outer:
        with limit_search(4) as inner:
            assert [exceeds_budget(3), exceeds_budget(3)] == [False, True]
        assert (inner.exhausted, outer.left) == (True, 4)
        with limit_search(100) as inner:
            assert inner.left == 4
    assert not exceeds_budget(PLENTY)


def test_an_exception_removes_the_budget() -> None:
    """A search after a failed one is not limited by the budget of the failed one."""
    with pytest.raises(ZeroDivisionError), limit_search(1):
        _ = 1 // 0
    with pytest.raises(ZeroDivisionError), BudgetScope():
        _ = 1 // 0

    assert not exceeds_budget(PLENTY)
