"""Pools with errors: what cannot be evaluated blocks, and only what it names."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apis.karpenter.budgets import BudgetReading, limit
from springtide.apis.karpenter.pools import pool_budgets
from springtide.apis.karpenter.reasons import REASONS

SOONER, LATER = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def limits(budgets: Any, *, version: str = "v1") -> list[int | None]:
    value = {"apiVersion": f"karpenter.sh/{version}", "kind": "NodePool", "spec": {"disruption": {"budgets": budgets}}}
    pool = pool_budgets(value)
    return [limit(pool, reason, pool.active.at(0), 100).count for reason in REASONS]


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        pytest.param([{"nodes": "7"}], [7, 7, 7, 7], id="sound"),
        pytest.param(None, [10, 10, 10, 10], id="the default of a tenth"),
        pytest.param([], [None, None, None, None], id="no budgets, no limit"),
        pytest.param([{"nodes": "101%"}], [0, 0, 0, 0], id="a bad number blocks all"),
        pytest.param([{"nodes": "101%", "reasons": ["Drifted"]}], [None, 0, None, None], id="or what it names"),
        pytest.param([{"nodes": {}, "reasons": ["Empty"]}, {"nodes": "5"}], [0, 5, 5, 5], id="a wrong type"),
        pytest.param(["x", {"nodes": "5"}], [0, 0, 0, 0], id="no mapping"),
        pytest.param("x", [0, 0, 0, 0], id="no list"),
        pytest.param([{"nodes": "5", "schedule": "0 0 * * 7", "duration": "1h"}], [0, 0, 0, 0], id="a bad schedule"),
        pytest.param([{"nodes": "5", "schedule": "0 0 * * *"}], [0, 0, 0, 0], id="no duration"),
        pytest.param([{"nodes": None, "mode": None}], [10, 10, 10, 10], id="null is not set"),
        pytest.param([{"nodes": "5", "timeZone": "UTC"}], [0, 0, 0, 0], id="a zone for nothing"),
        pytest.param([{"nodes": "5", "from": LATER, "until": SOONER}], [0, 0, 0, 0], id="ends before it begins"),
        pytest.param([{"nodes": "5", "from": SOONER}], [0, 0, 0, 0], id="never ends"),
        pytest.param(
            [{"nodes": "5", "schedule": "0 0 * * *", "duration": "1h", "from": SOONER, "until": LATER}],
            [0, 0, 0, 0],
            id="recurs and happens once",
        ),
    ],
)
def test_what_cannot_be_evaluated_blocks(budgets: Any, expected: list[int | None]) -> None:
    assert limits(budgets) == expected


def test_v1beta1_reads_a_schedule_without_duration_as_always_active() -> None:
    assert limits([{"nodes": "5", "schedule": "0 0 * * *"}], version="v1beta1") == [5, 5, 5, 5]


@pytest.mark.parametrize(("version", "reading"), [("v1", BudgetReading.FLOOR), ("v1beta1", BudgetReading.FALLBACK)])
def test_the_version_decides_the_reading(version: str, reading: BudgetReading) -> None:
    assert pool_budgets({"apiVersion": f"karpenter.sh/{version}", "spec": 5}).reading is reading


def test_a_word_that_is_no_reading_is_not_believed() -> None:
    value = {"apiVersion": "karpenter.sh/v1", "spec": {"disruption": {"budgetDefault": "fallback"}}}
    assert pool_budgets(value).reading is BudgetReading.FLOOR


def test_why_a_budget_blocks_is_said_in_words_of_ours() -> None:
    pool = pool_budgets({"spec": {"disruption": {"budgets": [{"nodes": "5", "reasons": ["Foo"]}]}}})
    assert pool.budgets[0].failure.startswith("reasons[0] must be one of ")
