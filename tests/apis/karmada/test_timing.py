"""Times of cron rules: once or again and again, in time or too late, and rules that meet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.almanac.builders import utc
from tests.apis.karmada.objects import FEDERATED, cron, rule
from tests.apis.manifests import problems_of, shown

from springtide.almanac import Cron, Dialect, load_zone
from springtide.apis.karmada.cron import CronFederatedHPARule
from springtide.apis.karmada.rules import closest_firings, timing_problems
from springtide.apis.kinds import ValidationContext

NOW = ValidationContext(now=utc("2026-06-01T00:00:00"))
RULE = "spec.rules[0]"
SUMMER, WINTER = "2026-06-01T00:00:00", "2026-02-01T00:00:00"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"schedule": "30 8 * * *"}, [], id="schedule"),
        pytest.param({"at": "2026-11-27T06:00:00Z"}, [], id="once"),
        pytest.param({"at": "2026-11-27T06:00:00+01:00", "maxDelaySeconds": 600}, [], id="once-with-delay"),
        pytest.param({}, [f"error {RULE}.schedule"], id="neither"),
        pytest.param({"schedule": "30 8 * * *", "at": "2026-11-27T06:00:00Z"}, [f"error {RULE}.at"], id="both"),
        pytest.param({"at": "2026-05-31T23:59:59Z"}, [f"warning {RULE}.at"], id="past"),
        pytest.param({"at": "2026-11-27"}, [f"error {RULE}.at"], id="not-a-time"),
    ],
)
def test_schedule_or_instant(fields: dict[str, Any], expected: list[str]) -> None:
    assert expected == shown(problems_of(cron({"name": "a", "targetReplicas": 1, **fields}), NOW))


@pytest.mark.parametrize(
    ("schedule", "zone", "now", "gap"),
    [
        pytest.param("* * * * *", "UTC", SUMMER, 60, id="every-minute"),
        pytest.param("*/30 * * * *", "UTC", SUMMER, 1800, id="half-hourly"),
        pytest.param("0 9 * * *", "UTC", SUMMER, 86400, id="daily"),
        pytest.param("0 9 * * *", "America/New_York", SUMMER, 82800, id="daily-over-a-short-day"),
        pytest.param("0 9,17 * * *", "UTC", SUMMER, 8 * 3600, id="twice-a-day"),
        pytest.param("0 0 28,1 * *", "UTC", SUMMER, 86400, id="end-of-february"),
        pytest.param("30 2 * * *", "America/New_York", WINTER, 82800 + 1800, id="after-the-gap"),
        pytest.param("30 1,2 * * *", "America/New_York", WINTER, 1800, id="gap-pushes-them-together"),
        pytest.param("0 0 1 1 *", "UTC", SUMMER, 365 * 86400, id="yearly"),
    ],
)
def test_smallest_gap(schedule: str, zone: str, now: str, gap: int) -> None:
    """Clocks that change count, so that a delay never reaches the next firing."""
    closest = closest_firings(Cron.parse(schedule, Dialect.RULE), load_zone(zone), utc(now))

    assert closest is not None
    assert closest[1] - closest[0] == gap


def test_leap_day_has_no_gap_within_two_years() -> None:
    assert closest_firings(Cron.parse("0 0 29 2 *", Dialect.RULE), load_zone("UTC"), NOW.now) is None


@pytest.mark.parametrize(
    ("schedule", "delay", "expected"),
    [
        pytest.param("*/30 * * * *", 1799, [], id="smaller"),
        pytest.param("*/30 * * * *", 1800, [f"error {RULE}.maxDelaySeconds"], id="equal"),
        pytest.param("0 0 29 2 *", 2**31 - 1, [], id="rare"),
        pytest.param("0 9 * * *", 0, [f"error {RULE}.maxDelaySeconds"], id="zero"),
    ],
)
def test_delay_is_smaller_than_the_gap(schedule: str, delay: int, expected: list[str]) -> None:
    """A late firing after the next one would undo it."""
    value = cron(rule(schedule=schedule, targetReplicas=1, maxDelaySeconds=delay))

    assert expected == shown(problems_of(value, NOW))


def test_longest_delay_is_proposed() -> None:
    (found,) = problems_of(cron(rule(schedule="*/30 * * * *", targetReplicas=1, maxDelaySeconds=3600)), NOW)

    assert "1799" in found.hint


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param([rule("a", targetReplicas=1), rule("b", targetReplicas=2)], ["warning spec.rules[1]"], id="same"),
        pytest.param([rule("a", targetReplicas=1), rule("b", targetReplicas=1)], [], id="same-value"),
        pytest.param([rule("a", targetReplicas=1), rule("b", "31 8 * * *", targetReplicas=2)], [], id="other-minute"),
        pytest.param(
            [rule("a", targetReplicas=1), rule("b", "30 8 * * *", targetReplicas=2, timeZone="Asia/Tokyo")],
            [],
            id="same-words-in-another-zone",
        ),
        pytest.param(
            [rule("a", targetReplicas=1), rule("b", "30 17 * * *", targetReplicas=2, timeZone="Asia/Tokyo")],
            ["warning spec.rules[1]"],
            id="same-instant-in-another-zone",
        ),
        pytest.param([rule("a", targetReplicas=1), rule("b", targetReplicas=2, suspend=True)], [], id="suspended"),
        pytest.param(
            [rule("a", targetReplicas=1), rule("b", targetReplicas=2, calendars=[{"name": "c"}])],
            [],
            id="calendars-may-part-them",
        ),
        pytest.param(
            [rule("a", targetReplicas=1), rule("b", None, at="2026-06-05T08:30:00Z", targetReplicas=2)],
            ["warning spec.rules[1]"],
            id="once",
        ),
    ],
)
def test_rules_that_meet(rules: list[dict[str, Any]], expected: list[str]) -> None:
    assert expected == shown(problems_of(cron(*rules), NOW))


def test_rules_meet_by_field() -> None:
    """One sets the minimum, the other the maximum: no conflict."""
    apart = cron(rule("a", targetMinReplicas=1), rule("b", targetMaxReplicas=2), target=FEDERATED)
    against = cron(
        rule("a", targetMinReplicas=1), rule("b", targetMinReplicas=2, targetMaxReplicas=9), target=FEDERATED
    )

    assert problems_of(apart, NOW) == []
    (found,) = problems_of(against, NOW)
    assert "set min to 1 and 2, first on Mon 2026-06-01 08:30" in found.message
    assert "`b` wins, as it is listed last" in found.message


def test_the_closest_firings_are_found_around_a_change_of_clocks() -> None:
    """Half an hour back on Lord Howe Island: 01:50 is followed by another 01:30 ten minutes later."""
    zone = load_zone("Australia/Lord_Howe")
    first, second = closest_firings(Cron.parse("30,50 * * * *", Dialect.RULE), zone, 1777593600) or (0, 0)

    assert second - first == 600


def test_days_on_which_clocks_change_count_however_often_a_rule_fires() -> None:
    """All that falls into the gap fires at its end, five minutes before the next."""
    often = Cron.parse("5,15,25,35,45,55 0-23 * * *", Dialect.RULE)

    first, second = closest_firings(often, load_zone("Europe/Berlin"), utc("2026-01-01T00:00:00")) or (0, 0)

    assert second - first == 300


def test_a_rule_that_fires_right_now_is_past() -> None:
    """What is due at this very moment is not ahead any more."""
    rule = msgspec.convert({"name": "a", "at": "2026-06-01T00:00:00Z", "targetReplicas": 1}, CronFederatedHPARule)

    (found,) = timing_problems(rule, ValidationContext(now=1780272000))

    assert found.severity == "warning"
