"""The jobs of kubernetes-cronhpa-controller as cron rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.importers.conversions import NOW, applied_at, converted, errors_of, views_of, warnings_of

from springtide.apis.importers import ConversionOptions, convert_cronhpa
from springtide.apis.karmada.rules import firings_of

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
AUTOSCALER = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}


def cronhpa(*jobs: dict[str, Any], target: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.alibabacloud.com/v1beta1",
        "kind": "CronHorizontalPodAutoscaler",
        "metadata": {"name": "shop", "namespace": "web"},
        "spec": {"scaleTargetRef": target or DEPLOYMENT, **spec, "jobs": list(jobs)},
    }


def job(schedule: str, size: Any = 5, name: str = "up", **fields: Any) -> dict[str, Any]:
    return {"name": name, "schedule": schedule, "targetSize": size, **fields}


@pytest.mark.parametrize(
    ("schedule", "timing"),
    [
        pytest.param("0 30 8 * * 1-5", {"schedule": "30 8 * * 1-5", "timeZone": "UTC"}, id="six-fields"),
        pytest.param("00 30 8 * * ?", {"schedule": "30 8 * * ?", "timeZone": "UTC"}, id="two-zeros"),
        pytest.param("@daily", {"schedule": "@daily", "timeZone": "UTC"}, id="macro"),
        pytest.param("@date 2026-11-27 06:00:30", {"at": "2026-11-27T06:00:30Z"}, id="date"),
    ],
)
def test_schedules_with_an_exact_equivalent(schedule: str, timing: dict[str, str]) -> None:
    conversion = converted(convert_cronhpa, cronhpa(job(schedule)), zone="UTC")
    assert conversion.problems == ()
    assert views_of(conversion)
    assert conversion.made[0]["spec"]["rules"] == [{"name": "up", **timing, "targetReplicas": 5}]


@pytest.mark.parametrize(
    ("given", "timing", "said"),
    [
        pytest.param(job("30 30 8 * * *"), {"schedule": "30 8 * * *"}, "no seconds", id="seconds"),
        pytest.param(job("*/10 * 8 * * *"), {"schedule": "* 8 * * *"}, "no seconds", id="many-seconds"),
        pytest.param(job("@every 15m"), {"schedule": "*/15 * * * *"}, "counts from", id="every-quarter"),
        pytest.param(job("@every 1h"), {"schedule": "0 * * * *"}, "counts from", id="every-hour"),
        pytest.param(job("@every 6h"), {"schedule": "0 */6 * * *"}, "counts from", id="every-six-hours"),
        pytest.param(job("@every 24h"), {"schedule": "0 0 * * *"}, "counts from", id="every-day"),
        pytest.param(
            job("@date 2020-11-27 06:00:00"), {"at": "2020-11-27T06:00:00Z"}, "is in the past", id="in-the-past"
        ),
        pytest.param(job("0 0 9 * * *", runOnce=True), {"at": "2026-01-05T09:00:00Z"}, "runs once", id="run-once"),
    ],
)
def test_schedules_with_a_warning(given: dict[str, Any], timing: dict[str, str], said: str) -> None:
    conversion = converted(convert_cronhpa, cronhpa(given), zone="UTC")
    (rule,) = conversion.made[0]["spec"]["rules"]
    assert {key: rule[key] for key in timing} == timing
    assert views_of(conversion)
    assert said in warnings_of(conversion)[0]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(cronhpa(job("30 8 * * *")), "has 5 fields", id="five-fields"),
        pytest.param(cronhpa(job("x 30 8 * * *")), "second 'x'", id="no-second"),
        pytest.param(cronhpa(job("0 61 8 * * *")), "minute '61'", id="no-minute"),
        pytest.param(cronhpa(job("0 0 8 30 2 *")), "never fires", id="impossible"),
        pytest.param(cronhpa(job("@every 7m")), "does not divide", id="every-seven-minutes"),
        pytest.param(cronhpa(job("@every soon")), "does not divide", id="every-nonsense"),
        pytest.param(cronhpa(job("@date tomorrow")), "is not a date", id="no-date"),
        pytest.param(cronhpa(job("@date 2026-02-30 00:00:00")), "is not a date", id="no-day"),
        pytest.param(cronhpa(job("@sometimes")), "is unknown", id="macro"),
        pytest.param(cronhpa(job("")), "no schedule", id="empty"),
        pytest.param(cronhpa(job("0 0 8 * * *", -1)), "not a number of replicas", id="negative"),
        pytest.param(cronhpa(job("0 0 8 * * *", None)), "the job has no `targetSize`", id="no-size"),
        pytest.param(cronhpa(job("daily")), "has 1 field,", id="one-field"),
        pytest.param(cronhpa(), "no jobs", id="no-jobs"),
        pytest.param(cronhpa(job("0 0 8 * * *"), target={"kind": "Deployment"}), "no name", id="no-target"),
        pytest.param(
            cronhpa(job("0 0 8 15 * *"), excludeDates=["* * * * * 0"]), "names days of the month", id="exclude-and-days"
        ),
        pytest.param(
            cronhpa(job("0 0 8 15 * 1"), excludeDates=["* * * * * 0"]), "names days of the month", id="exclude-and-both"
        ),
        pytest.param(
            cronhpa(job("0 0 8 * 11,12 *"), excludeDates=["* * * * 12 0"]), "months beyond", id="exclude-some-months"
        ),
        pytest.param(
            cronhpa(job("0 0 8 * * 0,6"), excludeDates=["* * * * * 0", "* * * * * 6"]),
            "never runs",
            id="exclude-all-left",
        ),
        pytest.param(
            cronhpa(job("@date 2026-11-29 06:00:00"), excludeDates=["* * * * * 0"]), "never runs", id="exclude-the-date"
        ),
        pytest.param(cronhpa(job("0 0 8 * * *"), excludeDates=["* * * * * *"]), "every day", id="exclude-all"),
        pytest.param(cronhpa(job("0 0 8 * * *"), excludeDates=["* * 1 *"]), "4 fields", id="exclude-short"),
    ],
)
def test_an_error_leaves_the_object_unchanged(value: dict[str, Any], said: str) -> None:
    conversion = converted(convert_cronhpa, value, zone="UTC")
    assert [message for message in errors_of(conversion) if said in message], conversion.problems
    assert (conversion.kept, conversion.made) == (value, ())


def test_the_zone_is_that_of_the_chart_unless_another_is_given() -> None:
    value = cronhpa(job("0 30 7 * * *"), job("@date 2026-11-27 06:00:00", name="once"))
    conversion = converted(convert_cronhpa, value)
    assert [rule.time_zone for rule in views_of(conversion)[0].spec.rules] == ["Asia/Shanghai", None]
    assert conversion.made[0]["spec"]["rules"][1]["at"] == "2026-11-26T22:00:00Z"
    assert "Asia/Shanghai" in warnings_of(conversion)[0]
    assert warnings_of(converted(convert_cronhpa, value, zone="Europe/Berlin")) == []


def test_excluded_dates_become_a_calendar() -> None:
    excluded = ["* * * 24-26 12 *", "* * * 29 2 *", "@date 2026-05-01 00:00:00"]
    conversion = converted(convert_cronhpa, cronhpa(job("0 0 8 * * *"), excludeDates=excluded), zone="UTC")
    rules, calendar = views_of(conversion)
    assert calendar.metadata.name == "web-shop-excluded"
    assert calendar.spec.yearly == ("02-29", "12-24", "12-25", "12-26")
    assert calendar.spec.dates == ("2026-05-01",)
    assert [(one.name, one.mode) for one in rules.spec.rules[0].calendars] == [("web-shop-excluded", "Exclude")]


@pytest.mark.parametrize(
    ("given", "excluded", "schedule"),
    [
        pytest.param("0 30 8 * * *", ["* * * * * 0"], "30 8 * * mon-sat", id="every-day-but-sunday"),
        pytest.param("0 30 8 ? * ?", ["* * * * * 0,6"], "30 8 ? * mon-fri", id="question-marks"),
        pytest.param("0 30 8 * * *", ["* * * * * 0", "* * * * * 3"], "30 8 * * mon,tue,thu-sat", id="two-entries"),
        pytest.param("0 30 8 * * *", ["* * * * * 1"], "30 8 * * tue-sat,sun", id="every-day-but-monday"),
        pytest.param("@daily", ["* * * ? * SUN"], "0 0 * * mon-sat", id="macro"),
        pytest.param("@every 6h", ["* * * * * 0"], "0 */6 * * mon-sat", id="interval"),
        pytest.param("0 30 8 * * 1-5", ["* * * * * 5"], "30 8 * * mon-thu", id="among-the-weekdays-of-the-job"),
        pytest.param("0 30 8 * * 1-5", ["* * * * * 0"], "30 8 * * 1-5", id="not-among-them"),
        pytest.param("0 30 8 * 12 *", ["* * * * 11,12 0"], "30 8 * 12 mon-sat", id="in-the-months-of-the-job"),
        pytest.param("0 30 8 * 6 *", ["* * * * 12 0"], "30 8 * 6 *", id="in-other-months"),
    ],
)
def test_excluded_weekdays_are_taken_out_of_schedules(given: str, excluded: list[str], schedule: str) -> None:
    """A Calendar has dates only."""
    conversion = converted(convert_cronhpa, cronhpa(job(given), excludeDates=excluded), zone="UTC")
    assert errors_of(conversion) == []
    (cron,) = views_of(conversion)
    assert [rule.schedule for rule in cron.spec.rules] == [schedule]


def test_days_joined_by_or_are_excluded_by_both_means() -> None:
    """`1-7 * 0` is the first week of every month, and every Sunday."""
    conversion = converted(convert_cronhpa, cronhpa(job("0 0 8 * * *"), excludeDates=["* * * 1,2 1 0"]), zone="UTC")
    assert [message for message in errors_of(conversion) if "months beyond" in message]

    conversion = converted(convert_cronhpa, cronhpa(job("0 0 8 * 1 *"), excludeDates=["* * * 1,2 1 0"]), zone="UTC")
    rules, calendar = views_of(conversion)
    assert rules.spec.rules[0].schedule == "0 8 * 1 mon-sat"
    assert calendar.spec.yearly == ("01-01", "01-02")


def test_a_job_that_runs_once_runs_after_excluded_weekdays() -> None:
    value = cronhpa(job("0 0 9 * * *", runOnce=True), excludeDates=["* * * * * 1,2"])
    conversion = converted(convert_cronhpa, value, zone="UTC")
    assert conversion.made[0]["spec"]["rules"][0]["at"] == "2026-01-07T09:00:00Z"


@given(st.integers(0, 127), st.lists(st.integers(0, 6), min_size=1, max_size=6, unique=True))
def test_excluded_weekdays_are_those_of_the_clock(mask: int, excluded: list[int]) -> None:
    """Every firing of the rule is one of the job on another weekday, and every such one is a firing."""
    own = [day for day in range(7) if mask >> day & 1] or list(range(7))
    field = ",".join(str(day) for day in own)
    value = cronhpa(job(f"0 0 8 * * {field}"), excludeDates=[f"* * * * * {day}" for day in excluded])
    conversion = converted(convert_cronhpa, value, zone="UTC")
    left = [day for day in own if day not in excluded]
    if not left:
        assert "never runs" in errors_of(conversion)[0]
        return
    (cron,) = views_of(conversion)
    firings = firings_of(cron.spec.rules[0], "UTC", {}).between(NOW, NOW + 14 * 86400)
    days = [NOW + n * 86400 + 8 * 3600 for n in range(14)]
    assert list(firings) == [at for at in days if (at // 86400 + 4) % 7 in left]


def test_sizes_of_an_autoscaler_become_its_minimum() -> None:
    value = cronhpa(job("0 0 8 * * *", 5), job("0 0 18 * * *", 0, "down"), target=AUTOSCALER)
    conversion = converted(convert_cronhpa, value, zone="UTC")
    at = applied_at(conversion)
    assert [at(NOW + hour * 3600) for hour in (8, 18)] == [{"min": 5}, {"min": 1}]
    assert len(warnings_of(conversion)) == 2


def test_rule_names_are_short_and_unique() -> None:
    long = "a-name-that-is-longer-than-rules-allow"
    conversion = converted(convert_cronhpa, cronhpa(*[job("0 0 8 * * *", name=long)] * 2), zone="UTC")
    names = [rule.name for rule in views_of(conversion)[0].spec.rules]
    assert names == [long[:32], f"{long[:30]}-2"]


def test_other_kinds_are_not_handled() -> None:
    assert convert_cronhpa({"apiVersion": "apps/v1", "kind": "Deployment"}, ConversionOptions(NOW)) is None
