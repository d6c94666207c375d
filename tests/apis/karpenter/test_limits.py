"""How several budgets come together: both readings, overlaps, Allow windows, and the budget that binds.

What `nodes` of a budget comes to, and what is refused.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.karpenter.samples import compiled, instant, limits, node_pool
from tests.apis.manifests import problems_of

from springtide.apis.karpenter.budgets import BudgetDefault, DisruptionReason, disruption_limit
from springtide.apis.karpenter.forecast import pool_budgets

FLOOR, FALLBACK = BudgetDefault.FLOOR, BudgetDefault.FALLBACK


@pytest.mark.parametrize(
    ("listed", "reading", "expected"),
    [
        pytest.param("15@D,U; 10@D; 5", FALLBACK, {"D": 10, "U": 15, "E": 5, "X": 5}, id="three-budgets-fallback"),
        pytest.param("15@D,U; 10@D; 5", FLOOR, {"D": 5, "U": 5, "E": 5, "X": 5}, id="three-budgets-floor"),
        pytest.param("10@D,U; 30", FALLBACK, {"D": 10, "U": 10, "E": 30, "X": 30}, id="fallback-for-other-reasons"),
        pytest.param(
            "10@D,U; 5@E", FALLBACK, {"D": 10, "U": 10, "E": 5, "X": None}, id="reason-without-a-budget-fallback"
        ),
        pytest.param("10@D,U; 5@E", FLOOR, {"D": 10, "U": 10, "E": 5, "X": None}, id="reason-without-a-budget-floor"),
    ],
)
def test_readings(listed: str, reading: BudgetDefault, expected: dict[str, int | None]) -> None:
    """A budget without reasons is a floor for all reasons, or a fallback for unnamed ones."""
    assert expected == limits(compiled(listed), 0, 100, reading)


WEDNESDAY = "2024-01-10"


@pytest.mark.parametrize(
    ("listed", "at", "nodes", "expected"),
    [
        pytest.param("0 [0 9 * * mon-fri +8h]; 10", "10:00", 100, (0, 0, 0), id="blocked-in-office-hours"),
        pytest.param("20%@E,D; 5; 0@U [@daily +10m]", "12:00", 19, (5, 4, 4), id="smaller-than-the-percentage"),
        pytest.param("20%@E,D; 5; 0@U [@daily +10m]", "12:00", 26, (5, 5, 5), id="percentage-above-the-count"),
        pytest.param("20%@E,D; 5; 0@U [@daily +10m]", "00:05", 19, (0, 4, 4), id="blocked-after-midnight"),
        pytest.param("5 [0 10 * * * +4h]; 2 [0 12 * * * +4h]", "11:00", 9, (5, 5, 5), id="first-window-only"),
        pytest.param("5 [0 10 * * * +4h]; 2 [0 12 * * * +4h]", "13:00", 9, (2, 2, 2), id="both-windows"),
        pytest.param("5 [0 10 * * * +4h]; 2 [0 12 * * * +4h]", "15:00", 9, (2, 2, 2), id="second-window-only"),
        pytest.param("5 [0 10 * * * +4h]; 2 [0 12 * * * +4h]", "17:00", 9, (None, None, None), id="no-window"),
        pytest.param("0@D [0 0 * * * +9h]; 0@D [0 17 * * * +7h]", "12:00", 9, (None, None, None), id="drift-by-day"),
        pytest.param(
            "0@D [0 0 * * * +9h]; 0@D [0 17 * * * +7h]", "18:00", 9, (None, None, 0), id="drift-blocked-in-the-evening"
        ),
        pytest.param("10%@E,U [0 8 * * mon-fri +8h]; 0@D", "20:00", 9, (None, None, 0), id="drift-always-blocked"),
        pytest.param(
            "20%@E [0 6 * * * +20h]; 20%@U,E [0 2 * * * +4h]", "12:00", 50, (None, 10, None), id="window-of-empty-nodes"
        ),
        pytest.param(
            "20%@E [0 6 * * * +20h]; 20%@U,E [0 2 * * * +4h]",
            "03:00",
            50,
            (10, 10, None),
            id="both-percentages-at-night",
        ),
        pytest.param("1; 1% [@hourly +60m]; 0 [0 9 * * * +17h]", "01:00", 200, (0, 0, 0), id="blocked-at-night"),
        pytest.param(
            "1; 1% [@hourly +60m]; 0 [0 9 * * * +17h]", "03:00", 200, (1, 1, 1), id="one-node-in-the-open-hours"
        ),
        pytest.param("10%; 0 [0 16 * * mon-fri +16h]; 0 [0 0 * * 6,0 +24h]", "12:00", 50, (5, 5, 5), id="weekday-noon"),
    ],
)
def test_budgets_side_by_side(
    listed: str, at: str, nodes: int, expected: tuple[int | None, int | None, int | None]
) -> None:
    """Of the active budgets the tightest counts; where none is active there is no limit."""
    found = limits(compiled(listed), instant(f"{WEDNESDAY} {at}"), nodes)

    assert expected == (found["U"], found["E"], found["D"])


def test_a_budget_limits_only_in_its_window() -> None:
    """On a Thursday a budget for Mondays says nothing."""
    found = limits(compiled("35% [0 1 * * mon +4h]; 35%@E"), instant("2024-01-11 12:00"), 40)

    assert found == {"U": None, "E": 14, "D": None, "X": None}


@pytest.mark.parametrize(
    ("disruption", "nodes", "expected"),
    [
        pytest.param(None, 35, 4, id="no-disruption"),
        pytest.param({}, 35, 4, id="no-budgets"),
        pytest.param({}, 1, 1, id="one-node"),
        pytest.param({"budgets": [{}]}, 35, 4, id="no-nodes"),
        pytest.param({"budgets": []}, 35, None, id="empty-list"),
        pytest.param({"budgets": [{"nodes": "5", "reasons": []}]}, 100, 5, id="empty-reasons"),
    ],
)
def test_defaults(disruption: dict[str, Any] | None, nodes: int, expected: int | None) -> None:
    """Without budgets the limit is 10%; an empty list is no limit; empty reasons are no reasons."""
    assert dict.fromkeys("UEDX", expected) == limits(pool_budgets(node_pool(disruption)), 0, nodes)


@pytest.mark.parametrize(
    ("disruption", "path"),
    [
        pytest.param({"budgets": []}, ("budgets",), id="no-budgets"),
        pytest.param({"budgets": [{"nodes": "5", "reasons": []}]}, ("budgets", 0, "reasons"), id="no-reasons"),
    ],
)
def test_empty_lists_are_warned_of(disruption: dict[str, Any], path: tuple[str | int, ...]) -> None:
    """Both mean something else than they seem to."""
    found = problems_of(node_pool(disruption))

    assert [("warning", ("spec", "disruption", *path))] == [(p.severity, p.path) for p in found]


NIGHT = {"mode": "Allow", "schedule": "0 1 * * *", "duration": "4h"}
NOON = {"mode": "Allow", "schedule": "0 12 * * *", "duration": "1h"}
BEFORE, IN_NIGHT, AT_NOON = instant("2024-01-10 00:59:59"), instant("2024-01-10 02:00"), instant("2024-01-10 12:30")


@pytest.mark.parametrize(
    ("listed", "at", "reading", "expected"),
    [
        pytest.param([{"nodes": "5", **NIGHT}], BEFORE, FLOOR, (0, 0), id="closed"),
        pytest.param([{"nodes": "5", **NIGHT}], IN_NIGHT, FLOOR, (5, 5), id="open"),
        pytest.param([{"nodes": "5", **NIGHT}, {"nodes": "3", **NOON}], BEFORE, FLOOR, (0, 0), id="union-closed"),
        pytest.param([{"nodes": "5", **NIGHT}, {"nodes": "3", **NOON}], IN_NIGHT, FLOOR, (5, 5), id="union-first"),
        pytest.param([{"nodes": "5", **NIGHT}, {"nodes": "3", **NOON}], AT_NOON, FLOOR, (3, 3), id="union-second"),
        pytest.param([{"nodes": "5", **NIGHT}, {"nodes": "3", **NIGHT}], IN_NIGHT, FLOOR, (3, 3), id="min-of-open"),
        pytest.param(
            [{"nodes": "5", "reasons": ["Drifted"], **NIGHT}, {"nodes": "2"}], IN_NIGHT, FLOOR, (2, 2), id="with-limit"
        ),
        pytest.param(
            [{"nodes": "5", "reasons": ["Drifted"], **NIGHT}, {"nodes": "2"}], BEFORE, FLOOR, (0, 2), id="own-closed"
        ),
        pytest.param(
            [{"nodes": "5", "reasons": ["Drifted"], **NIGHT}, {"nodes": "2"}],
            IN_NIGHT,
            FALLBACK,
            (5, 2),
            id="fallback-open",
        ),
        pytest.param(
            [{"nodes": "5", "reasons": ["Drifted"], **NIGHT}, {"nodes": "2"}],
            BEFORE,
            FALLBACK,
            (0, 2),
            id="fallback-closed-still-counts",
        ),
        pytest.param(
            [{"nodes": "5", "reasons": ["Drifted"], **NIGHT}, {"nodes": "3", **NOON}],
            AT_NOON,
            FLOOR,
            (3, 3),
            id="floor-shares-the-reason",
        ),
        pytest.param(
            [{"nodes": "5", "reasons": ["Drifted"], **NIGHT}, {"nodes": "3", **NOON}],
            AT_NOON,
            FALLBACK,
            (0, 3),
            id="fallback-does-not",
        ),
    ],
)
def test_allow_windows(
    listed: list[dict[str, Any]], at: int, reading: BudgetDefault, expected: tuple[int, int]
) -> None:
    """Allow budgets of one reason are a union: blocked outside all of them, inside the least of the open ones."""
    found = limits(compiled(listed), at, 100, reading)

    assert expected == (found["D"], found["E"])


@pytest.mark.parametrize(
    ("listed", "nodes", "expected"),
    [
        pytest.param("5; 5", 100, 0, id="first-of-equals"),
        pytest.param("9; 5", 100, 1, id="tightest"),
        pytest.param("10%; 5", 50, 0, id="equal-once-counted"),
        pytest.param("10%; 5", 51, 1, id="tightest-once-counted"),
        pytest.param("5@E", 100, None, id="none"),
    ],
)
def test_the_budget_that_binds(listed: str, nodes: int, expected: int | None) -> None:
    """Of equal budgets it is the first."""
    claim = disruption_limit(
        compiled(listed), DisruptionReason.DRIFTED, tuple(range(listed.count(";") + 1)), nodes
    ).claim

    assert expected == (None if claim is None else claim.budget.index)


def test_c2_a_closed_budget_leaves_its_reason_to_the_fallback() -> None:
    """A reason counts as named only while a budget that names it is active."""
    pool = compiled("10@D [0 9 * * * +1h]; 5")

    assert limits(pool, instant("2024-01-10 09:30"), 100, FALLBACK)["D"] == 10
    assert limits(pool, instant("2024-01-10 12:00"), 100, FALLBACK)["D"] == 5


def test_a_broken_budget_without_reasons_blocks_also_what_others_name() -> None:
    """Its meaning is unknown, so ignoring it in a fallback could allow too much."""
    pool = pool_budgets(
        node_pool({"budgetDefault": "Fallback", "budgets": [{"nodes": "9", "reasons": ["Drifted"]}, {"nodes": "lots"}]})
    )

    assert limits(pool, 0, 100) == dict.fromkeys("UEDX", 0)


@pytest.mark.parametrize(
    ("nodes", "total", "expected"),
    [
        pytest.param("10%", 0, 0, id="percentage-of-zero"),
        pytest.param("10%", 11, 2, id="percentage-rounded-up"),
        pytest.param("100%", 7, 7, id="all"),
        pytest.param("007", 100, 7, id="count-with-leading-zeros"),
    ],
)
def test_limit_of_one_budget(nodes: str, total: int, expected: int) -> None:
    """A percentage of the nodes is rounded up; a count stays what it is."""
    found = limits(compiled(nodes), 0, total)

    assert dict.fromkeys("UEDX", expected) == found


REFUSED = [
    pytest.param("101%", id="more-than-all"),
    pytest.param("1000%", id="far-more-than-all"),
    pytest.param("-10", id="negative"),
    pytest.param("-10%", id="negative-percentage"),
    pytest.param("", id="empty"),
    pytest.param("1.5", id="fraction"),
    pytest.param("99999999999999999999", id="beyond-64-bits"),
    pytest.param("2147483648", id="beyond-32-bits"),
]


@pytest.mark.parametrize("nodes", REFUSED)
def test_refused_amounts(nodes: str) -> None:
    """What upstream refuses, or would misread, is an error at the field."""
    found = problems_of(node_pool({"budgets": [{"nodes": nodes}]}))

    assert [(p.severity, p.path) for p in found] == [("error", ("spec", "disruption", "budgets", 0, "nodes"))]


@pytest.mark.parametrize("nodes", REFUSED)
def test_refused_amounts_block_and_say_so(nodes: str) -> None:
    """In a stored pool such a budget is 0 for what it names, and nothing else."""
    pool = pool_budgets(node_pool({"budgets": [{"nodes": nodes, "reasons": ["Drifted"]}, {"nodes": "7"}]}))

    assert limits(pool, 0, 100) == {"U": 7, "E": 7, "D": 0, "X": 7}
    assert pool.budgets[0].failure


def test_the_largest_count_is_taken() -> None:
    """2147483647 is the largest count that a budget can have."""
    found = problems_of(node_pool({"budgets": [{"nodes": "2147483647"}]}))

    assert found == []
