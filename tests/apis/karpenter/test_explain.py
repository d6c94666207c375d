"""How many nodes may still be disrupted: both equations, what is counted, and the words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.karpenter.samples import LETTERS, compiled, instant, node_pool

from springtide.apis.karpenter.budgets import AccountingEquation, BudgetDefault, DisruptionReason
from springtide.apis.karpenter.explain import DisruptionExplanation, DisruptionLimitChange, explain_disruption
from springtide.apis.karpenter.forecast import pool_budgets

FLOOR, FALLBACK = BudgetDefault.FLOOR, BudgetDefault.FALLBACK
PER_REASON, TOTAL = AccountingEquation.PER_REASON, AccountingEquation.TOTAL
THREE = "15@D,U; 10@D; 5"
FOURTEEN = {"D": 3, "U": 6, "X": 3, "E": 2}


def asked(
    listed: str, nodes: int = 100, disrupting: dict[str, int] | None = None, *, at: int = 0, **more: Any
) -> DisruptionExplanation:
    counts = {LETTERS[letter]: count for letter, count in (disrupting or {}).items()}
    return explain_disruption(compiled(listed), at=at, nodes=nodes, disrupting=counts, **more)


def allowed(explanation: DisruptionExplanation) -> dict[str, int]:
    return {letter: explanation.reasons[reason].allowed for letter, reason in LETTERS.items()}


@pytest.mark.parametrize(
    ("listed", "disrupting", "unhealthy", "reading", "equation", "expected"),
    [
        pytest.param(
            THREE, {}, 0, FALLBACK, TOTAL, {"D": 10, "U": 15, "E": 5, "X": 5}, id="fallback-nothing-disrupting"
        ),
        pytest.param(
            THREE, FOURTEEN, 0, FALLBACK, PER_REASON, {"D": 7, "U": 9, "E": 0, "X": 0}, id="fallback-per-reason"
        ),
        pytest.param(THREE, FOURTEEN, 0, FALLBACK, TOTAL, {"D": 0, "U": 1, "E": 0, "X": 0}, id="fallback-total"),
        pytest.param(THREE, FOURTEEN, 0, FLOOR, TOTAL, {"D": 0, "U": 0, "E": 0, "X": 0}, id="floor-total"),
        pytest.param(THREE, {"D": 4}, 0, FLOOR, TOTAL, {"D": 1, "U": 1, "E": 1, "X": 1}, id="floor-with-four-drifted"),
        pytest.param(THREE, FOURTEEN, 0, FLOOR, PER_REASON, {"D": 2, "U": 0, "E": 3, "X": 2}, id="no-bucket-in-floor"),
        pytest.param(THREE, FOURTEEN, 1, FALLBACK, PER_REASON, {"D": 6, "U": 8, "E": 0, "X": 0}, id="unhealthy"),
        pytest.param(
            "10@D,U; 30", {}, 0, FALLBACK, TOTAL, {"D": 10, "U": 10, "E": 30, "X": 30}, id="fallback-for-other-reasons"
        ),
        pytest.param(
            "10@D,U; 30",
            {"E": 12},
            0,
            FALLBACK,
            TOTAL,
            {"D": 0, "U": 0, "E": 18, "X": 18},
            id="fallback-total-with-twelve-empty",
        ),
        pytest.param(
            "10@D,U; 30",
            {"E": 12},
            0,
            FALLBACK,
            PER_REASON,
            {"D": 10, "U": 10, "E": 18, "X": 18},
            id="fallback-per-reason-with-twelve-empty",
        ),
        pytest.param(
            "10@D,U; 5@E",
            {},
            0,
            FALLBACK,
            TOTAL,
            {"D": 10, "U": 10, "E": 5, "X": 100},
            id="reason-without-a-budget-fallback",
        ),
        pytest.param(
            "10@D,U; 5@E", {}, 0, FLOOR, TOTAL, {"D": 10, "U": 10, "E": 5, "X": 100}, id="reason-without-a-budget-floor"
        ),
        pytest.param(
            "10@D,U; 5@E",
            {"D": 20},
            0,
            FALLBACK,
            TOTAL,
            {"D": 0, "U": 0, "E": 0, "X": 80},
            id="limits-below-disrupting",
        ),
        pytest.param(
            "15@D,U", {"D": 3}, 1, FLOOR, TOTAL, {"D": 11, "U": 11, "E": 96, "X": 96}, id="unhealthy-node-counts"
        ),
    ],
)
def test_equations(
    listed: str,
    disrupting: dict[str, int],
    unhealthy: int,
    reading: BudgetDefault,
    equation: AccountingEquation,
    expected: dict[str, int],
) -> None:
    """What is allowed is the limit less what is taken, and never less than nothing."""
    found = asked(listed, disrupting=disrupting, unhealthy=unhealthy, reading=reading, equation=equation)

    assert expected == allowed(found)


@pytest.mark.parametrize(
    ("listed", "settings", "expected"),
    [
        pytest.param("10", {}, None, id="left-out-without-repair"),
        pytest.param("10", {"repair": {"after": "30m"}}, (10, 3, 7), id="repair-under-the-budget-of-all-reasons"),
        pytest.param("", {"repair": {"after": "30m"}}, (None, 3, 97), id="repair-without-a-limit"),
    ],
)
def test_nodes_that_are_not_ready_do_not_use_up_the_budget_of_their_repair(
    listed: str, settings: dict[str, Any], expected: tuple[int | None, int, int] | None
) -> None:
    """Disrupted nodes do, whatever the reason of their disruption."""
    pool = compiled(listed or [], **settings)
    found = explain_disruption(pool, at=0, nodes=100, disrupting={LETTERS["D"]: 3}, unhealthy=4)
    unhealthy = found.reasons.get(DisruptionReason.UNHEALTHY)

    assert expected == (None if unhealthy is None else (unhealthy.limit, unhealthy.consuming, unhealthy.allowed))
    assert found.reasons[DisruptionReason.DRIFTED].consuming == 7
    if unhealthy is not None:
        assert unhealthy.because.endswith(
            "3 nodes are unavailable already (3 disrupted); 4 nodes are not ready and not counted: this budget limits"
            " their repair"
        )


@pytest.mark.parametrize(
    ("listed", "nodes", "taken", "expected"),
    [
        pytest.param("10%", 35, 0, 4, id="tenth-rounded-up"),
        pytest.param("10%", 35, 3, 1, id="tenth-less-disrupting"),
        pytest.param("10%", 1, 0, 1, id="tenth-of-one-node"),
        pytest.param("10%", 1, 1, 0, id="tenth-of-one-disrupting-node"),
        pytest.param("100%", 10, 0, 10, id="all-nodes"),
        pytest.param("10%", 10, 10, 0, id="tenth-with-all-disrupting"),
        pytest.param("100%", 10, 2, 8, id="all-less-disrupting"),
        pytest.param("30%", 10, 0, 3, id="three-tenths"),
        pytest.param("0%", 10, 0, 0, id="zero-percent"),
        pytest.param("50%", 3, 0, 2, id="half-rounded-up"),
        pytest.param("1", 3, 0, 1, id="count"),
        pytest.param("20%@D", 5, 0, 1, id="fifth-of-five"),
        pytest.param("2@D", 5, 0, 2, id="count-for-a-reason"),
    ],
)
def test_accounting(listed: str, nodes: int, taken: int, expected: int) -> None:
    """Nodes that are not ready are taken just as disrupted ones."""
    found = asked(listed, nodes, unhealthy=taken)

    assert expected == allowed(found)["D"]


@pytest.mark.parametrize(
    ("settings", "reading", "equation"),
    [
        pytest.param({}, FLOOR, TOTAL, id="v1"),
        pytest.param({"budgetDefault": "Fallback"}, FALLBACK, TOTAL, id="fallback"),
        pytest.param({"budgetAccounting": "PerReason"}, FLOOR, PER_REASON, id="per-reason"),
    ],
)
def test_the_pool_says_how_it_is_read(
    settings: dict[str, str], reading: BudgetDefault, equation: AccountingEquation
) -> None:
    """Reading and equation are the pool's own unless the caller overrides them."""
    found = explain_disruption(compiled("5", **settings), at=0, nodes=10)

    assert (reading, equation) == (found.reading, found.equation)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        pytest.param({"nodes": "5"}, "budget 0 allows 5; no node is being disrupted", id="count"),
        pytest.param({"nodes": "10%"}, "budget 0 allows 10% of 100 nodes = 10; no node is being disrupted", id="share"),
        pytest.param({"nodes": "0"}, "budget 0 blocks; no node is being disrupted", id="zero"),
        pytest.param(
            {"nodes": "5", "schedule": "@daily", "duration": "1h", "timeZone": "Europe/Berlin", "mode": "Allow"},
            "budget 0 allows Drifted only in its window (`@daily` for 1h, Europe/Berlin); no node is being disrupted",
            id="closed",
        ),
        pytest.param(
            {"nodes": "5", "maxPer": {"nodes": 2, "period": "1h"}, "cooldown": "10m"},
            "budget 0 allows 5; earlier disruptions count as well (budget 0: at most 2 nodes per 1h"
            " and 10m between two nodes); no node is being disrupted",
            id="rates",
        ),
        pytest.param(
            {"nodes": "5", "reasons": ["Empty"]},
            "no active budget covers Drifted: no limit; no node is being disrupted",
            id="none",
        ),
    ],
)
def test_words(budget: dict[str, Any], words: str) -> None:
    """The sentence names the budget that binds, its window and what else counts."""
    found = explain_disruption(compiled([budget]), at=instant("2024-01-10 12:00"), nodes=100)

    assert words == found.reasons[LETTERS["D"]].because


def test_words_about_broken_budgets() -> None:
    """A budget that cannot be evaluated says why."""
    found = explain_disruption(pool_budgets(node_pool({"budgets": [{"nodes": "many"}]})), at=0, nodes=100)

    assert "budget 0 blocks because it cannot be evaluated" in found.reasons[LETTERS["D"]].because


@pytest.mark.parametrize(
    ("policy", "waits"), [pytest.param("Forceful", False, id="forceful"), pytest.param("Graceful", True, id="graceful")]
)
def test_words_about_expiry(policy: str, waits: bool) -> None:
    """Forceful expiry is said not to wait; the numbers are given all the same."""
    found = explain_disruption(compiled("5", expirationPolicy=policy), at=0, nodes=100).reasons[LETTERS["X"]]

    assert (found.limit, found.allowed) == (5, 5)
    assert waits is ("do not wait" not in found.because)


def test_document() -> None:
    """Scripts read exactly this."""
    found = asked("0@D [0 9 * * mon-fri +8h]; 5@D,E", 50, {"D": 3}, unhealthy=1, at=instant("2024-01-10 17:00:00"))

    assert found.document("default") == {
        "name": "default",
        "reading": "Floor",
        "equation": 2,
        "nodes": 50,
        "reasons": {
            "Empty": {
                "limit": 5,
                "consuming": 4,
                "allowed": 1,
                "budget": 1,
                "because": "budget 1 allows 5; 4 nodes are unavailable already (3 disrupted, 1 not ready)",
                "next": None,
            },
            "Drifted": {
                "limit": 5,
                "consuming": 4,
                "allowed": 1,
                "budget": 1,
                "because": "budget 1 allows 5; 4 nodes are unavailable already (3 disrupted, 1 not ready)",
                "next": {"at": "2024-01-11T09:00:00Z", "limit": 0},
            },
            "Underutilized": {
                "limit": "unlimited",
                "consuming": 4,
                "allowed": 46,
                "budget": None,
                "because": "no active budget covers Underutilized: no limit;"
                " 4 nodes are unavailable already (3 disrupted, 1 not ready)",
                "next": None,
            },
            "Expired": {
                "limit": "unlimited",
                "consuming": 4,
                "allowed": 46,
                "budget": None,
                "because": "no active budget covers Expired: no limit; expiry is forceful:"
                " expired nodes do not wait for this; 4 nodes are unavailable already (3 disrupted, 1 not ready)",
                "next": None,
            },
        },
    }


def test_next_is_a_change_of_the_limit() -> None:
    """Windows that do not change the limit are passed over, also where it never changes again."""
    found = asked("5@D; 9@D [0 9 * * * +1h]; 3@E [0 10 * * * +1h]; 3@E [0 11 * * * +1h]", at=0)

    assert found.reasons[LETTERS["D"]].next is None
    following = found.reasons[LETTERS["E"]].next
    assert following is not None
    assert (following.at, following.limit) == (10 * 3600, 3)


def test_next_may_be_the_end_of_a_limit() -> None:
    """No limit is written as `unlimited` there as well."""
    found = asked("3 [0 10 * * * +1h]", at=10 * 3600)

    assert found.document("p")["reasons"]["Empty"]["next"] == {"at": "1970-01-01T11:00:00Z", "limit": "unlimited"}


def test_every_closed_window_that_could_open_is_named() -> None:
    """Two Allow budgets are a union, so neither alone says when it opens."""
    allow = [
        {"nodes": "1", "reasons": ["Drifted"], "mode": "Allow", "schedule": f"0 {hour} * * *", "duration": "1h"}
        for hour in (9, 16)
    ]
    pool = pool_budgets({"apiVersion": "karpenter.sh/v1", "spec": {"disruption": {"budgets": allow}}})

    because = explain_disruption(pool, at=0, nodes=10).reasons[DisruptionReason.DRIFTED].because

    assert "0 9 * * *" in because
    assert "0 16 * * *" in because


def test_a_limit_inside_an_allow_window_is_the_next_change() -> None:
    """An Allow budget opens what a Limit budget then narrows."""
    budgets = [
        {"nodes": "3", "schedule": "0 2 * * *", "duration": "1h"},
        {"nodes": "5", "mode": "Allow", "schedule": "0 0 * * *", "duration": "6h"},
    ]
    pool = pool_budgets({"apiVersion": "karpenter.sh/v1", "spec": {"disruption": {"budgets": budgets}}})

    found = explain_disruption(pool, at=3600, nodes=10).reasons[DisruptionReason.EMPTY]

    assert (found.limit, found.next) == (5, DisruptionLimitChange(2 * 3600, 3))


def test_pools_are_independent() -> None:
    """What one pool consumes says nothing about another of the same budgets."""
    pool = pool_budgets({"apiVersion": "karpenter.sh/v1", "spec": {"disruption": {"budgets": [{"nodes": "2"}]}}})

    busy = explain_disruption(pool, at=0, nodes=10, disrupting={DisruptionReason.EMPTY: 2})

    assert (
        busy.reasons[DisruptionReason.EMPTY].allowed,
        explain_disruption(pool, at=0, nodes=10).reasons[DisruptionReason.EMPTY].allowed,
    ) == (0, 2)
