"""`springtide explain-budget`: numbers, data for scripts, and text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

EXAMPLES = Path(__file__).parents[2] / "examples"
BY_REASON = EXAMPLES / "budgets-by-reason.yaml"
AT = ("--at", "2026-06-05T12:00:00Z", "--nodes", "100")


def allowed(run: Run, *arguments: object) -> dict[str, Any]:
    result = run("explain-budget", BY_REASON, *AT, *arguments, "-o", "json")
    (pool,) = json.loads(result.stdout)["pools"]
    return {reason: found["allowed"] for reason, found in pool["reasons"].items()}


DISRUPTING = ("--disrupting", "drifted=3,underutilized=6,expiration=3,empty=2")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param((), (5, 10, 15, 5), id="nothing is disrupted"),
        pytest.param((*DISRUPTING, "--equation", "1"), (0, 7, 9, 0), id="counted per reason"),
        pytest.param(DISRUPTING, (0, 0, 1, 0), id="counted in total"),
        pytest.param((*DISRUPTING, "--reading", "floor"), (0, 0, 0, 0), id="default budgets as a floor"),
        pytest.param(
            ("--disrupting", "drift=4", "--reading", "floor"),
            (1, 1, 1, 1),
            id="default budgets as a floor, fewer disrupted",
        ),
        pytest.param(("--unhealthy", "2", "--disrupting", "drifted=2"), (1, 6, 11, 1), id="unhealthy nodes count"),
    ],
)
def test_allowed_numbers(run: Run, arguments: tuple[str, ...], expected: tuple[int, ...]) -> None:
    reasons = ("Empty", "Drifted", "Underutilized", "Expired")
    assert allowed(run, *arguments) == dict(zip(reasons, expected, strict=True))


def test_json_has_every_key_of_the_contract(run: Run) -> None:
    result = run("explain-budget", EXAMPLES / "budgets-business-hours.yaml", *AT, "-o", "json")
    (pool,) = json.loads(result.stdout)["pools"]
    drifted = pool["reasons"]["Drifted"]
    assert {key: pool[key] for key in ("name", "reading", "equation", "nodes")} == {
        "name": "business-hours",
        "reading": "Floor",
        "equation": 2,
        "nodes": 100,
    }
    assert drifted.pop("because").startswith("budget 0 allows 20% of 100 nodes = 20 in its window")
    assert drifted == {
        "limit": 20,
        "consuming": 0,
        "allowed": 20,
        "budget": 0,
        "next": {"at": "2026-06-05T15:00:00Z", "limit": 0},
    }


def test_a_budget_that_cannot_be_evaluated_blocks_the_reasons_it_names(run: Run) -> None:
    text = BY_REASON.read_text(encoding="utf-8").replace(
        "reasons: [Drifted]", "reasons: [Drifted]\n        timeZone: Mars"
    )
    result = run("explain-budget", "-", *AT, "-o", "json", input=text)
    assert result.exit_code == 1
    (pool,) = json.loads(result.stdout)["pools"]
    assert {reason: found["limit"] for reason, found in pool["reasons"].items()} == {
        "Empty": 5,
        "Drifted": 0,
        "Underutilized": 15,
        "Expired": 5,
    }


def test_text_has_a_row_and_a_sentence_for_each_reason(run: Run) -> None:
    result = run("explain-budget", BY_REASON, *AT)
    assert result.exit_code == 0
    defaults = "budgets without reasons apply to reasons that no active budget names; all disrupted nodes count"
    assert defaults in result.stdout.splitlines()
    for reason in ("Empty", "Drifted", "Underutilized", "Expired"):
        assert f"  {reason}: budget " in result.stdout
        assert any(line.startswith(f"  {reason} ") for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    ("value", "message"),
    [("rusty=3", "'rusty' is not a reason"), ("drifted", "reason=number"), ("drifted=x", "reason=number")],
)
def test_invalid_counts(run: Run, value: str, message: str) -> None:
    result = run("explain-budget", BY_REASON, *AT, "--disrupting", value)
    assert result.exit_code == 2
    assert message in result.stderr


def test_files_without_a_pool(run: Run) -> None:
    result = run("explain-budget", EXAMPLES / "cron-deployment.yaml", *AT)
    assert result.exit_code == 2
    assert "there is no NodePool in these files" in result.stderr


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("Nodes:", "nodes:"),
        ("budgts:", "budgets:"),
        ("disuption:", "disruption:"),
        ("specs:", "spec:"),
        ("apiversion:", "apiVersion:"),
    ],
)
def test_a_misspelled_field_is_read_as_it_was_meant(run: Run, wrong: str, right: str) -> None:
    """The numbers agree with the hint about the field, and are never more permissive than what was meant."""
    text = BY_REASON.read_text(encoding="utf-8")
    meant = run("explain-budget", "-", *AT, "-o", "json", input=text)
    result = run("explain-budget", "-", *AT, "-o", "json", input=text.replace(right, wrong))
    assert result.exit_code == 1
    assert result.stdout == meant.stdout


@pytest.mark.parametrize("disruption", ["x", "[1]", "5"])
def test_a_disruption_of_another_type_blocks(run: Run, disruption: str) -> None:
    text = f"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: a}}\nspec:\n  disruption: {disruption}\n"
    result = run("explain-budget", "-", *AT, "-o", "json", input=text)
    (pool,) = json.loads(result.stdout)["pools"]
    assert {found["limit"] for found in pool["reasons"].values()} == {0}
