"""What the comments of the examples say, asked of `springtide preview` and `explain-budget`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

EXAMPLES = Path(__file__).parents[2] / "examples"
REASONS = ("Empty", "Drifted", "Underutilized", "Expired")


@pytest.mark.parametrize(
    ("example", "at", "value"),
    [
        pytest.param("black-friday", "2026-11-20T12:00", 4, id="a-friday"),
        pytest.param("black-friday", "2026-11-27T05:30", 50, id="black-friday-begins-early"),
        pytest.param("black-friday", "2026-11-27T12:00", 50, id="black-friday-wins"),
        pytest.param("black-friday", "2026-12-25T12:00", 1, id="a-friday-that-is-a-holiday"),
        pytest.param("black-friday", "2027-03-04T08:00", 80, id="launch"),
        pytest.param("black-friday", "2028-03-04T08:00", 1, id="launch-happens-once"),
        pytest.param("morning-peak", "2026-11-27T08:29", 2, id="before-half-past-8"),
        pytest.param("morning-peak", "2026-11-27T08:30", 6, id="at-half-past-8"),
        pytest.param("first-quarter", "2026-03-31T20:00", 7, id="march"),
        pytest.param("first-quarter", "2026-04-01T20:00", 2, id="april"),
        pytest.param("scheduled-capacity", "2026-11-19T20:00", 3, id="office-hours"),
        pytest.param("scheduled-capacity", "2026-11-20T06:00", 2, id="night"),
        pytest.param("scheduled-capacity", "2026-11-21T20:00", 1, id="weekend"),
    ],
)
def test_schedules(run: Run, example: str, at: str, value: int) -> None:
    arguments = ("--from", at, "--for", "1m", "--default-timezone", "Europe/Berlin", "-o", "json")
    result = run("preview", EXAMPLES / f"{example}.yaml", *arguments)
    (lane,) = (each["lanes"][0] for each in json.loads(result.stdout)["objects"] if each["kind"] == "MetricsProducer")
    assert lane["current"] == value


@pytest.mark.parametrize(
    ("example", "at", "limits"),
    [
        pytest.param("budgets-business-hours", "2026-12-14T08:59+01:00", (20, 0, 20, 20), id="upgrades-not-before-9"),
        pytest.param(
            "budgets-business-hours", "2026-12-14T09:00+01:00", (20, 20, 20, 20), id="upgrades-in-business-hours"
        ),
        pytest.param("budgets-business-hours", "2026-12-14T17:00+01:00", (20, 0, 20, 20), id="upgrades-not-after-5"),
        pytest.param(
            "budgets-business-hours", "2026-12-12T12:00+01:00", (20, 0, 20, 20), id="upgrades-not-on-saturdays"
        ),
        pytest.param("budgets-business-hours", "2026-12-18T17:59+01:00", (20, 0, 20, 20), id="before-the-freeze"),
        pytest.param("budgets-business-hours", "2026-12-18T18:00+01:00", (0, 0, 0, 0), id="freeze-begins"),
        pytest.param("budgets-business-hours", "2027-01-04T07:59+01:00", (0, 0, 0, 0), id="freeze-ends"),
        pytest.param("budgets-business-hours", "2027-01-04T09:00+01:00", (20, 20, 20, 20), id="after-the-freeze"),
        pytest.param("budgets-business-hours", "2028-05-01T00:00+02:00", (0, 0, 0, 0), id="public-holiday"),
        pytest.param("budgets-by-reason", "2026-12-14T12:00+01:00", (5, 10, 15, 5), id="smallest-of-each-reason"),
        pytest.param("budgets-fallback", "2026-12-14T12:00+01:00", (30, 10, 10, 30), id="other-reasons"),
        pytest.param("budgets-unlimited-rest", "2026-12-14T12:00+01:00", (5, 10, 10, "unlimited"), id="no-limit"),
        pytest.param("budgets-windows", "2026-12-01T00:30:00Z", (10, 20, 10, 10), id="first-hour-of-a-month"),
        pytest.param(
            "budgets-windows", "2026-12-06T01:30:00Z", ("unlimited", 10, "unlimited", "unlimited"), id="sunday"
        ),
        pytest.param("budgets-windows", "2026-11-01T00:30:00Z", (10, 10, 10, 10), id="smallest-of-several-windows"),
        pytest.param("budgets-windows", "2026-12-02T00:30:00Z", ("unlimited",) * 4, id="no-window"),
    ],
)
def test_budgets(run: Run, example: str, at: str, limits: tuple[int | str, ...]) -> None:
    arguments = ("--at", at, "--nodes", "100", "-o", "json")
    result = run("explain-budget", EXAMPLES / f"{example}.yaml", *arguments)
    (pool,) = json.loads(result.stdout)["pools"]
    assert {reason: found["limit"] for reason, found in pool["reasons"].items()} == dict(
        zip(REASONS, limits, strict=True)
    )


def test_the_budget_of_repair(run: Run) -> None:
    example = EXAMPLES / "budgets-repair.yaml"
    result = run("explain-budget", example, "--nodes", "100", "--disrupting", "drift=1", "-o", "json")
    (pool,) = json.loads(result.stdout)["pools"]
    assert (pool["reasons"]["Unhealthy"]["limit"], pool["reasons"]["Unhealthy"]["allowed"]) == (2, 1)


@pytest.mark.parametrize(
    ("example", "firings"),
    [
        pytest.param("cron-deployment", {"Scale-Up": "08:30", "Scale-Down": "11:00"}, id="peak-in-utc"),
        pytest.param(
            "cron-two-zones",
            {"scale-up-asia-shanghai": "23:30", "scale-up-america-los-angeles": "15:30"},
            id="rules-of-two-zones",
        ),
        pytest.param("cron-hpa", {"morning": "05:30", "night": "19:00", "sale": None}, id="paris"),
    ],
)
def test_rules(run: Run, example: str, firings: dict[str, str | None]) -> None:
    arguments = ("--from", "2026-11-23T10:30:00Z", "--for", "1d", "-o", "json")
    result = run("preview", EXAMPLES / f"{example}.yaml", *arguments)
    (cron,) = (each for each in json.loads(result.stdout)["objects"] if each["kind"] == "CronFederatedHPA")
    found = {lane["lane"]: [change["at"][11:16] for change in lane["changes"]] for lane in cron["lanes"]}
    assert found == {name: [] if at is None else [at] for name, at in firings.items()}
