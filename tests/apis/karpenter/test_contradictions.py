"""Where the design of budgets by reason contradicts itself, or what shipped: the resolution of each point."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.karpenter.samples import beta_pool, compiled, instant, limits, node_pool
from tests.apis.manifests import loaded, problems_of

from springtide.apis.karpenter.budgets import BudgetDefault, DisruptionReason
from springtide.apis.karpenter.conversion import to_v1
from springtide.apis.karpenter.explain import explain_disruption
from springtide.apis.karpenter.forecast import pool_budgets
from springtide.apis.problems import format_path

ALWAYS = {"schedule": "* * * * *"}
EXAMPLE = [
    {"nodes": 15, "reasons": ["drifted", "underutilized"], **ALWAYS},
    {"nodes": 10, "reasons": ["drifted"], **ALWAYS},
    {"nodes": 5, **ALWAYS},
]


def severities(value: dict[str, Any]) -> dict[str, str]:
    return {
        format_path(problem.path).removeprefix("spec.disruption."): problem.severity for problem in problems_of(value)
    }


def test_c1_budgets_without_reasons() -> None:
    """A floor in v1, a fallback in v1beta1; the worked example of the design holds, also once it is converted."""
    pool = loaded(beta_pool({"budgets": EXAMPLE})).value
    same_in_v1 = node_pool({"budgets": [{"nodes": "15", "reasons": ["Drifted", "Underutilized"]}, {"nodes": "5"}]})

    assert limits(pool_budgets(pool), 0, 100) == {"D": 10, "U": 15, "E": 5, "X": 5}
    assert limits(pool_budgets(to_v1(pool)), 0, 100) == {"D": 10, "U": 15, "E": 5, "X": 5}
    assert limits(pool_budgets(same_in_v1), 0, 100) == {"D": 5, "U": 5, "E": 5, "X": 5}


def test_c2_reasons_whose_budget_is_closed() -> None:
    """The fallback covers them meanwhile."""
    pool = compiled("10@D [0 9 * * * +1h]; 5", budgetDefault="Fallback")

    assert (
        limits(pool, instant("2024-01-10 09:00"), 99)["D"],
        limits(pool, instant("2024-01-10 10:00"), 99)["D"],
    ) == (10, 5)


@pytest.mark.parametrize("name", ["drift", "drifted", "Drifted", "consolidation", "expired", "Empty", "repair"])
def test_c3_names_of_reasons(name: str) -> None:
    """All names of the design are taken; those that are not canonical with a warning."""
    budgets = [{"nodes": "5", "reasons": [name]}]
    found = severities(node_pool({"budgets": budgets, "expirationPolicy": "Graceful", "repair": {}}))

    assert ({} if name in list(DisruptionReason) else {"budgets[0].reasons[0]": "warning"}) == found


@pytest.mark.parametrize(
    "reasons",
    [
        pytest.param({"reason": ["Drifted"]}, id="reason-list"),
        pytest.param({"reason": "Drifted"}, id="reason"),
        pytest.param({"reasons": "Drifted"}, id="reasons"),
        pytest.param({"reason": "Drifted", "reasons": ["Drifted"]}, id="both"),
    ],
)
def test_c4_reason_or_reasons(reasons: dict[str, Any]) -> None:
    """Each is read as the list `reasons`, with a warning."""
    found = loaded(node_pool({"budgets": [{"nodes": "5", **reasons}]}))

    assert found.value["spec"]["disruption"]["budgets"][0]["reasons"] == ["Drifted"]
    assert {"warning"} == {problem.severity for problem in found.problems}


def test_c5_lists_of_reasons() -> None:
    """Longer lists than there are reasons are taken; each reason stays once."""
    names = ["Empty", "Drifted", "Underutilized", "Expired", "empty", "drift"]

    found = loaded(beta_pool({"budgets": [{"nodes": "5", "reasons": names}]}))

    assert names[:4] == found.value["spec"]["disruption"]["budgets"][0]["reasons"]
    assert found.sound


def test_c6_schedules_without_duration() -> None:
    """An error in v1; always active, with a warning, in v1beta1."""
    budget = [{"nodes": "10", **ALWAYS}]

    assert severities(node_pool({"budgets": budget})) == {"budgets[0].schedule": "error"}
    assert severities(beta_pool({"budgets": budget})) == {"budgets[0].schedule": "warning"}
    assert dict.fromkeys("UEDX", 10) == limits(pool_budgets(beta_pool({"budgets": budget})), 0, 100)


@pytest.mark.parametrize(
    ("nodes", "severity"),
    [(10, "warning"), ("10", None), ("10%", None), (-1, "error"), ("101%", "error"), ("", "error")],
)
def test_c7_counts(nodes: Any, severity: str | None) -> None:
    """Integers are taken, with a warning; what is no count is an error."""
    assert ({} if severity is None else {"budgets[0].nodes": severity}) == severities(
        node_pool({"budgets": [{"nodes": nodes}]})
    )


@pytest.mark.parametrize(
    ("duration", "fine"),
    [
        *((text, True) for text in ("30m", "8h", "8h30m", "20m0s", "23h0m0s", "1h0m0s")),
        *((text, False) for text in ("30s", "1h30s", "-20m", "1d", "1h1h", "10mh", "")),
    ],
)
def test_c8_durations(duration: str, fine: bool) -> None:
    """Hours, minutes or both, as they shipped."""
    found = severities(node_pool({"budgets": [{"nodes": "5", "schedule": "@daily", "duration": duration}]}))

    assert ({} if fine else {"budgets[0].duration": "error"}) == found


@pytest.mark.parametrize("schedule", ["@dailyX", "0 0 9 * * *", "TZ=UTC 0 9 * * *", "a b c d e"])
def test_c9_schedules_are_parsed(schedule: str) -> None:
    """What the published pattern lets through is still refused."""
    found = severities(node_pool({"budgets": [{"nodes": "5", "schedule": schedule, "duration": "1h"}]}))

    assert found == {"budgets[0].schedule": "error"}


def test_c10_budgets_have_schedules() -> None:
    """The field that a comment swallowed is there."""
    assert severities(node_pool({"budgets": [{"nodes": "5", "schedule": "@daily", "duration": "1h"}]})) == {}


def test_c11_no_node_counts_twice() -> None:
    """Two nodes are not ready, one of them among the three that are disrupted: four are taken."""
    found = explain_disruption(
        compiled("15@D,U"), at=0, nodes=100, disrupting={DisruptionReason.DRIFTED: 3}, unhealthy=1
    )

    assert (found.reasons[DisruptionReason.DRIFTED].consuming, found.reasons[DisruptionReason.DRIFTED].allowed) == (
        4,
        11,
    )


def test_c12_percentages_are_of_the_nodes_and_rounded_up() -> None:
    """The sentence shows share, nodes and result."""
    found = explain_disruption(compiled("10%"), at=0, nodes=11).reasons[DisruptionReason.DRIFTED]

    assert found.limit == 2
    assert "10% of 11 nodes = 2" in found.because


@pytest.mark.parametrize("reading", list(BudgetDefault))
def test_c13_no_budget_is_no_limit(reading: BudgetDefault) -> None:
    """All nodes that are left may go."""
    found = explain_disruption(compiled("5@E"), at=0, nodes=100, unhealthy=20, reading=reading).document("p")[
        "reasons"
    ]["Expired"]

    assert (found["limit"], found["allowed"]) == ("unlimited", 80)


def test_c14_expiry() -> None:
    """Forceful in v1, graceful in v1beta1 and in what is converted from it; the numbers are always given."""
    in_v1 = explain_disruption(pool_budgets(node_pool({"budgets": [{"nodes": "5"}]})), at=0, nodes=9).reasons[
        DisruptionReason.EXPIRED
    ]
    converted = explain_disruption(pool_budgets(to_v1(beta_pool({"budgets": [{"nodes": "5"}]}))), at=0, nodes=9)

    assert in_v1.limit == 5
    assert "do not wait" in in_v1.because
    assert "do not wait" not in converted.reasons[DisruptionReason.EXPIRED].because


def test_c15_budgets_for_each_method() -> None:
    """They are read with a warning as budgets with that reason."""
    found = loaded(node_pool({"drift": {"budgets": [{"nodes": "5"}]}, "emptiness": {"budgets": [{"nodes": "7"}]}}))

    assert limits(pool_budgets(found.value), 0, 100) == {"U": None, "E": 7, "D": 5, "X": None}
    assert [problem.severity for problem in found.problems] == ["warning", "warning"]


def test_c16_names_of_v1beta1() -> None:
    """They are taken in v1, each with a warning."""
    found = severities(node_pool({"consolidationPolicy": "WhenUnderutilized", "expireAfter": "24h"}))

    assert found == {"consolidationPolicy": "warning", "expireAfter": "warning"}


@pytest.mark.parametrize(("taken", "allowed"), [(29, 1), (30, 0), (31, 0)])
def test_c17_less_than_the_limit(taken: int, allowed: int) -> None:
    """A node may go while fewer than the limit are taken; what is left is never negative."""
    found = explain_disruption(compiled("30"), at=0, nodes=100, disrupting={DisruptionReason.EMPTY: taken})

    assert allowed == found.reasons[DisruptionReason.DRIFTED].allowed


def test_c18_a_budget_of_two_reasons_is_shared() -> None:
    """Nodes that are disrupted for one reason are taken from the other's budget as well."""
    found = explain_disruption(compiled("10@D,U"), at=0, nodes=100, disrupting={DisruptionReason.DRIFTED: 4})

    assert (found.reasons[DisruptionReason.DRIFTED].allowed, found.reasons[DisruptionReason.UNDERUTILIZED].allowed) == (
        6,
        6,
    )
