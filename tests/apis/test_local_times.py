"""Times without an offset: in which zone each is read, what is said about it, and what `convert` writes."""

from __future__ import annotations

import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.karpenter.samples import node_pool
from tests.apis.manifests import loaded

from springtide.almanac import load_zone
from springtide.apis.canonical import canonical, canonical_text
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import parse_instant, rfc3339_in, written_time
from springtide.apis.problems import format_path
from springtide.apis.scheme import find_kind
from springtide.apis.validation import ANNOTATION, validate_object

LOCAL, LATER = "2099-11-27T06:00", "2099-11-27 22:00:00"
BERLIN, BERLIN_LATER = "2099-11-27T06:00:00+01:00", "2099-11-27T22:00:00+01:00"


def producer(start: str = LOCAL, end: str = LATER, zone: str | None = "Europe/Berlin") -> dict[str, Any]:
    schedule: dict[str, Any] = {
        "defaultReplicas": 1,
        "behaviors": [{"name": "launch", "replicas": 20, "from": start, "until": end}],
    }
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "MetricsProducer",
        "metadata": {"name": "shop"},
        "spec": {"schedule": schedule | ({"timezone": zone} if zone is not None else {})},
    }


def cron_rule(zone: str | None) -> dict[str, Any]:
    rule = {"name": "launch", "at": LOCAL, "targetReplicas": 20} | ({"timeZone": zone} if zone is not None else {})
    return {
        "apiVersion": "autoscaling.karmada.io/v1alpha1",
        "kind": "CronFederatedHPA",
        "metadata": {"name": "shop"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}, "rules": [rule]},
    }


def buffer(zone: str | None) -> dict[str, Any]:
    schedule: dict[str, Any] = {"windows": [{"from": LOCAL, "until": LATER}]}
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "shop"},
        "spec": {
            "podTemplateRef": {"name": "chunk"},
            "replicas": 1,
            "schedule": schedule | ({"timeZone": zone} if zone is not None else {}),
        },
    }


def at(tree: Any, path: str) -> Any:
    for step in path.split("."):
        tree = tree[int(step) if step.isdigit() else step]
    return tree


@pytest.mark.parametrize(
    ("value", "path", "zone"),
    [
        pytest.param(producer(), "spec.schedule.behaviors.0.from", "Europe/Berlin", id="behaviour"),
        pytest.param(producer(zone=None), "spec.schedule.behaviors.0.from", "Asia/Tokyo", id="behaviour-default-zone"),
        pytest.param(cron_rule("Europe/Berlin"), "spec.rules.0.at", "Europe/Berlin", id="rule"),
        pytest.param(cron_rule(None), "spec.rules.0.at", "Asia/Tokyo", id="rule-default-zone"),
        pytest.param(buffer("Europe/Berlin"), "spec.schedule.windows.0.from", "Europe/Berlin", id="buffer"),
        pytest.param(buffer(None), "spec.schedule.windows.0.from", "Asia/Tokyo", id="buffer-default-zone"),
        pytest.param(
            node_pool({"budgets": [{"nodes": "5"}, {"nodes": "0", "from": LOCAL, "until": LATER}]}),
            "spec.disruption.budgets.1.from",
            "Asia/Tokyo",
            id="budgets-have-no-zone-without-a-schedule",
        ),
    ],
)
def test_the_zone_is_that_of_the_schedule(value: dict[str, Any], path: str, zone: str) -> None:
    """Without one, it is the default zone; the canonical form has the offset."""
    offset = {"Europe/Berlin": "+01:00", "Asia/Tokyo": "+09:00"}[zone]
    found = loaded(value, ValidationContext(now=1_780_000_000, default_zone="Asia/Tokyo"))

    assert at(found.value, path) == f"2099-11-27T06:00:00{offset}"
    assert at(canonical(value, "Asia/Tokyo").value, path) == f"2099-11-27T06:00:00{offset}"
    assert at(value, path) == LOCAL
    first = found.problems[0]
    assert (first.severity, format_path(first.path)) == ("warning", path.replace(".0", "[0]").replace(".1", "[1]"))
    assert first.message == f"`{LOCAL}` has no offset: it is read in {zone}, as 2099-11-27T06:00:00{offset}"
    assert first.hint == f"write 2099-11-27T06:00:00{offset}: API servers accept no time without an offset"
    assert found.sound


@pytest.mark.parametrize(
    ("written", "read", "said"),
    [
        pytest.param("2027-03-28T02:30", "2027-03-28T03:00:00+02:00", "clocks skip that time", id="gap"),
        pytest.param("2027-10-31T02:30", "2027-10-31T02:30:00+02:00", "clocks show that time twice", id="fold"),
        pytest.param("2027-10-31 03:00:30", "2027-10-31T03:00:30+01:00", "no offset", id="seconds"),
        pytest.param("2027-06-01T06:00Z", "2027-06-01T06:00:00Z", "is read as", id="no-seconds"),
        pytest.param("2027-06-01t06:00:00z", "2027-06-01T06:00:00Z", "is read as", id="lower-case"),
        pytest.param("2027-06-01 06:00:00-03:30", "2027-06-01T06:00:00-03:30", "is read as", id="space"),
    ],
)
def test_forms_of_times(written: str, read: str, said: str) -> None:
    found = loaded(producer(start=written))

    assert at(found.value, "spec.schedule.behaviors.0.from") == read
    assert said in found.problems[0].message


@pytest.mark.parametrize("written", ["2027-06-01T06:00:00Z", "2027-06-01T06:00:00+02:00", "2027-06-01T06:00:00.5Z"])
def test_complete_times_are_left_alone(written: str) -> None:
    given = producer(written, BERLIN_LATER)

    assert canonical(given).value == given


@pytest.mark.parametrize("written", ["tomorrow", "2027-06-01", "2027-02-30T06:00", "2027-06-01T24:00", "6:00"])
def test_other_texts_are_errors(written: str) -> None:
    found = [problem for problem in loaded(producer(start=written)).problems if problem.severity == "error"]

    assert [format_path(problem.path) for problem in found] == ["spec.schedule.behaviors[0].from"]
    assert "such as 2026-11-27T06:00:00Z or 2026-11-27T07:00:00+01:00" in found[0].hint


def test_an_unknown_zone_is_the_only_error() -> None:
    found = loaded(producer(zone="Mars/Olympus"))

    assert [format_path(p.path) for p in found.problems if p.severity == "error"] == ["spec.schedule.timezone"]


def test_extensions_may_have_local_times() -> None:
    """On stock CRDs they are in an annotation, which the API server does not validate."""
    value = producer()
    value["spec"]["schedule"]["behaviors"] = [{"name": "launch", "replicas": 20}]
    value["metadata"]["annotations"] = {
        ANNOTATION: f"schedule: {{behaviors: [{{name: launch, from: {LOCAL}, until: {LATER}}}]}}"
    }
    found = find_kind(value["apiVersion"], value["kind"])
    assert found is not None

    validated = validate_object(value, *found, ValidationContext(now=0))

    assert at(validated.value, "spec.schedule.behaviors.0.from") == BERLIN
    assert at(validated.value, "spec.schedule.behaviors.0.until") == BERLIN_LATER
    assert not [problem for problem in validated.problems if problem.severity == "error"]


def test_convert_writes_the_offset_and_keeps_comments() -> None:
    text = """\
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: shop}
spec:
  schedule:
    timezone: Europe/Berlin
    defaultReplicas: 1
    behaviors:
    - {name: launch, replicas: 20, from: 2099-11-27T06:00, until: 2099-11-27 22:00}  # Black Friday
"""
    expected = text.replace("2099-11-27T06:00", f'"{BERLIN}"').replace("2099-11-27 22:00", f'"{BERLIN_LATER}"')

    assert canonical_text(text).text == expected


ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"]
FIRST, LAST = (datetime.datetime(year, 1, 1) for year in (1990, 2060))  # noqa: DTZ001 - local times
LOCAL_TIMES = st.datetimes(FIRST, LAST)


@given(st.sampled_from(ZONES), LOCAL_TIMES, st.booleans())
def test_the_instant_is_that_of_the_standard_library(zone: str, moment: datetime.datetime, seconds: bool) -> None:
    """Where the local time exists; in a fold, of its first pass."""
    moment = moment.replace(microsecond=0, second=moment.second if seconds else 0, fold=0)
    aware = moment.replace(tzinfo=ZoneInfo(zone))
    exists = aware.astimezone(datetime.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) == moment
    written = written_time(moment.isoformat(timespec="seconds" if seconds else "minutes"))
    assert written is not None
    text = rfc3339_in(load_zone(zone).instant(written.wall), load_zone(zone))

    assert parse_instant(text) == load_zone(zone).instant(written.wall)
    if exists:
        assert datetime.datetime.fromisoformat(text) == aware
