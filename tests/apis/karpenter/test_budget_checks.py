"""Budgets that do not do what they seem to: windows, budgets that never bind, reasons that are blocked for good."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.karpenter.samples import beta_pool, budgets, node_pool
from tests.apis.manifests import problems_of

from springtide.apis.problems import format_path

ROOT = "spec.disruption."


def said(disruption: dict[str, Any], *, beta: bool = False) -> list[tuple[str, str, str]]:
    """Return severity, path and message of everything that is said about a pool's disruption."""
    found = problems_of(beta_pool(disruption) if beta else node_pool(disruption))
    return [(p.severity, format_path(p.path).removeprefix(ROOT), p.message) for p in found]


@pytest.mark.parametrize(
    ("budget", "severity", "path", "part"),
    [
        pytest.param({"schedule": "@daily"}, "error", "budgets[0].schedule", "has no `duration`", id="lone-schedule"),
        pytest.param({"duration": "1h"}, "error", "budgets[0].duration", "has no `schedule`", id="lone-duration"),
        pytest.param({"timeZone": "UTC"}, "error", "budgets[0].timeZone", "without `schedule`", id="lone-zone"),
        pytest.param(
            {"from": "2027-01-01T00:00:00Z", "until": "2027-01-02T00:00:00Z", "timeZone": "UTC"},
            "error",
            "budgets[0].timeZone",
            "without `schedule`",
            id="zone-of-instants",
        ),
        pytest.param({"from": "2027-01-01T00:00:00Z"}, "error", "budgets[0]", "never closes", id="no-until"),
        pytest.param({"until": "2027-01-01T00:00:00Z"}, "error", "budgets[0]", "never opens", id="no-from"),
        pytest.param(
            {"from": "2027-01-02T00:00:00Z", "until": "2027-01-02T00:00:00Z"},
            "error",
            "budgets[0].until",
            "is not after",
            id="turned-round",
        ),
        pytest.param(
            {"from": "2027-01-02T00:00:00Z", "until": "2027-01-03T00:00:00Z", "schedule": "@daily", "duration": "1h"},
            "error",
            "budgets[0].from",
            "cannot recur and happen once",
            id="both",
        ),
        pytest.param(
            {"from": "2025-01-02T00:00:00Z", "until": "2025-01-03T00:00:00Z"},
            "warning",
            "budgets[0].until",
            "has been over since",
            id="over",
        ),
        pytest.param(
            {"schedule": "@daily", "duration": "48h"},
            "warning",
            "budgets[0].duration",
            "always active",
            id="duration-longer-than-the-period",
        ),
        pytest.param(
            {"schedule": "@hourly", "duration": "60m"},
            "warning",
            "budgets[0].duration",
            "always active",
            id="duration-equal-to-the-period",
        ),
        pytest.param({"mode": "Allow"}, "warning", "budgets[0].mode", "always open", id="allow-always"),
        pytest.param({"mode": "Deny"}, "error", "budgets[0].mode", "Allow, Limit", id="unknown-mode"),
        pytest.param({"cooldown": "Never"}, "error", "budgets[0].cooldown", "Never", id="endless-cooldown"),
        pytest.param(
            {"maxPer": {"nodes": 0, "period": "1h"}}, "error", "budgets[0].maxPer.nodes", "at least 1", id="no-rate"
        ),
    ],
)
def test_windows(budget: dict[str, Any], severity: str, path: str, part: str) -> None:
    """What makes no sense is an error, what is surprising a warning; nothing else is said."""
    ((found_severity, found_path, message),) = said({"budgets": [{"nodes": "5", **budget}]})

    assert (severity, path) == (found_severity, found_path)
    assert part in message


def test_c6_lone_schedules_of_v1beta1_are_warned_of() -> None:
    """There they are read, as always active."""
    ((severity, path, message),) = said({"budgets": [{"nodes": "5", "schedule": "@daily"}]}, beta=True)

    assert (severity, path) == ("warning", "budgets[0].schedule")
    assert "always active" in message


@pytest.mark.parametrize(
    ("listed", "settings", "idle"),
    [
        pytest.param("5; 10", {}, {1: "budget 0"}, id="looser-count"),
        pytest.param("10; 5", {}, {0: "budget 1"}, id="tighter-count-later"),
        pytest.param("5; 5", {}, {1: "budget 0"}, id="repeated"),
        pytest.param("10%; 20%", {}, {1: "budget 0"}, id="looser-share"),
        pytest.param("10%; 5", {}, {}, id="share-and-count"),
        pytest.param("5@E; 10@D", {}, {}, id="other-reasons"),
        pytest.param("5; 10@D", {}, {1: "budget 0"}, id="floor-covers-all"),
        pytest.param("5; 10@D", {"budgetDefault": "Fallback"}, {}, id="fallback-steps-aside"),
        pytest.param("10@E,D,U,X; 5", {"budgetDefault": "Fallback"}, {1: "name every reason"}, id="nothing-left"),
        pytest.param("5; 10 [0 9 * * * +1h]", {}, {1: "budget 0"}, id="looser-in-its-window"),
        pytest.param("5 [0 9 * * * +1h]; 10", {}, {}, id="looser-outside-a-window"),
        pytest.param("5 [0 9 * * * +1h]; 10 [30 9 * * * +1h]", {}, {}, id="windows-that-overlap"),
        pytest.param("5 [0 9 * * * +2h]; 10 [30 9 * * * +1h]", {}, {1: "budget 0"}, id="window-within-a-window"),
        pytest.param("5 [0 0 * * * +12h]; 5 [0 12 * * * +12h]; 7", {}, {2: "budget 0 or budget 1"}, id="together"),
        pytest.param("0 [0 9 * * * +1h]; 10% [0 9 * * * +1h]", {}, {1: "budget 0"}, id="nothing-beats-any-share"),
        pytest.param("0 [0 9 * * * +1h]; 0% [0 9 * * * +1h]", {}, {1: "budget 0"}, id="nothing-twice"),
    ],
)
def test_budgets_that_never_bind(listed: str, settings: dict[str, str], idle: dict[int, str]) -> None:
    """A budget beside which another is always at least as tight is pointed out, with the one that is."""
    found = said({"budgets": budgets(listed), "expirationPolicy": "Graceful", **settings})

    assert {f"budgets[{index}]" for index in idle} == {path for _, path, _ in found}
    assert all(severity == "warning" for severity, _, _ in found)
    assert all(idle[int(path[8])] in message for _, path, message in found)


@pytest.mark.parametrize(
    ("listed", "blocked"),
    [
        pytest.param("0@D; 5@E", ["Drifted"], id="blocked-reason-without-a-window"),
        pytest.param("0%@D,U", ["Drifted", "Underutilized"], id="share"),
        pytest.param("0@D [0 0 * * * +12h]; 0@D [0 12 * * * +12h]", ["Drifted"], id="round-the-clock"),
        pytest.param("0@D [0 0 * * * +12h]", [], id="half-the-day"),
        pytest.param("0", ["Empty", "Drifted", "Underutilized", "Expired"], id="everything"),
    ],
)
def test_reasons_that_are_blocked_for_good(listed: str, blocked: list[str]) -> None:
    """A limit of 0 at all times is pointed out for every reason."""
    found = said({"budgets": budgets(listed), "expirationPolicy": "Graceful"})

    assert [f"no node is ever disrupted for {reason}" for reason in blocked] == [
        message.partition(":")[0] for _, _, message in found
    ]


def test_forceful_expiry_is_never_blocked() -> None:
    """Expired nodes do not wait for the budget, so nothing is blocked; the message says so."""
    found = said({"budgets": budgets("0@X")})

    assert [(severity, path) for severity, path, _ in found] == [("warning", "budgets[0].reasons")]


def test_calendars_leave_it_open() -> None:
    """Which days remain is not known to the object, so budgets are not compared."""
    listed = budgets("0@D; 5@D")
    listed[0]["calendars"] = [{"name": "freeze"}]

    found = problems_of(node_pool({"budgets": listed}))

    assert [problem for problem in found if "calendars" not in problem.path] == []


def messages(budgets: list[dict[str, Any]]) -> list[str]:
    return [problem.message for problem in problems_of(node_pool({"budgets": budgets}))]


def test_a_rate_is_not_outdone_by_a_smaller_count() -> None:
    """Removing such a budget would remove its rate."""
    budgets: list[dict[str, Any]] = [
        {"nodes": "10"},
        {"nodes": "20", "cooldown": "10m", "maxPer": {"nodes": 1, "period": "24h"}},
    ]

    assert messages(budgets) == []


def test_a_block_that_ends_is_not_called_one_for_ever() -> None:
    """However far away its end is."""
    assert messages([{"nodes": "0", "from": "2026-01-01T00:00:00Z", "until": "2036-01-01T00:00:00Z"}]) == []


def test_blocks_of_several_budgets_are_one_problem() -> None:
    budgets = [
        {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 0 * * *", "duration": "12h"},
        {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 12 * * *", "duration": "12h"},
    ]

    assert messages(budgets) == [
        "no node is ever disrupted for Drifted: budget 0 and budget 1 hold it at 0 at all times"
    ]


def test_a_window_that_calendars_cut_is_not_called_always_active() -> None:
    """A freeze on the days of a calendar is written just so."""
    freeze = {"nodes": "0", "schedule": "@daily", "duration": "24h", "calendars": [{"name": "c", "mode": "Only"}]}

    assert messages([freeze]) == []


def test_a_window_that_first_opens_in_months_is_met() -> None:
    """Budgets are compared over a whole year."""
    budgets = [{"nodes": "5"}, {"nodes": "3", "schedule": "0 0 1 4 *", "duration": "1h"}]

    assert messages(budgets) == []


def test_a_rate_needs_a_period() -> None:
    assert messages([{"nodes": "5", "maxPer": {"nodes": 1, "period": "0h"}}]) == ["a rate needs a period longer than 0"]


@pytest.mark.parametrize(
    ("settings", "group", "paths"),
    [
        pytest.param({}, "springtide.dev", ["budgets[1].reasons"], id="without-repair"),
        pytest.param({"repair": {"after": "30m"}}, "springtide.dev", [], id="with-repair"),
        pytest.param({}, "karpenter.k8s.aws", [], id="repair-of-karpenter"),
    ],
)
def test_budgets_for_unhealthy_need_repair(settings: dict[str, Any], group: str, paths: list[str]) -> None:
    """Karpenter switches repair on for all of its pools, so only pools of Springtide need the field."""
    value = node_pool({"budgets": [{"nodes": "5"}, {"nodes": "1", "reasons": ["Unhealthy"]}], **settings})
    value["spec"]["template"]["spec"]["nodeClassRef"]["group"] = group

    found = [problem for problem in problems_of(value) if "repair" in problem.message]

    assert [format_path(problem.path) for problem in found] == [f"spec.disruption.{path}" for path in paths]
    assert all(problem.severity == "warning" and "`repair: {after: 30m}`" in problem.hint for problem in found)


def test_a_delay_of_a_reason_that_the_policy_excludes() -> None:
    value = node_pool({"consolidationPolicy": "WhenEmpty", "disruptAfter": {"Empty": "5m", "Underutilized": "1h"}})

    assert [(problem.severity, format_path(problem.path)) for problem in problems_of(value)] == [
        ("warning", "spec.disruption.disruptAfter.Underutilized")
    ]


@pytest.mark.parametrize(
    ("repair", "path"),
    [
        pytest.param({"after": "soon"}, "after", id="after"),
        pytest.param({"maxUnhealthy": "120%"}, "maxUnhealthy", id="percentage-above-100"),
        pytest.param({"maxUnhealthy": -1}, "maxUnhealthy", id="negative-count"),
    ],
)
def test_settings_of_repair(repair: dict[str, Any], path: str) -> None:
    (found,) = problems_of(node_pool({"repair": repair}))

    assert (found.severity, format_path(found.path)) == ("error", f"spec.disruption.repair.{path}")
