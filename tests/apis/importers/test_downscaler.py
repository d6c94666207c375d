"""The importer of kube-downscaler: the new objects scale as kube-downscaler does."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.apis.importers.conversions import NOW, applied_at, converted, errors_of, replicas_at, views_of, warnings_of

from springtide.apis.importers import ConversionOptions, convert_downscaler

UP, DOWN = 4, 1


def workload(kind: str = "Deployment", api_version: str = "apps/v1", **annotations: str) -> dict[str, Any]:
    written = {f"downscaler/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "shop", "annotations": {"other": "stays", **written}},
        "spec": {"replicas": UP},
    }


def autoscaler(**annotations: str) -> dict[str, Any]:
    made = workload("HorizontalPodAutoscaler", "autoscaling/v2", **annotations)
    return {**made, "spec": {"minReplicas": UP, "maxReplicas": 9}}


def instant(text: str) -> int:
    return int(datetime.datetime.fromisoformat(text).timestamp())


@pytest.mark.parametrize(
    ("uptime", "at", "up"),
    [
        pytest.param("Sat-Sun 15:30-16:00 UTC", "2017-11-26T15:33:00+00:00", True, id="inside"),
        pytest.param("Sat-Sun 15:34-16:00 UTC", "2017-11-26T15:33:00+00:00", False, id="one-minute-before"),
        pytest.param("Mon-Fri 08:00-18:00 UTC", "2017-11-26T15:33:00+00:00", False, id="other-weekday"),
        pytest.param("Mon-Fri 09:00-10:00 Pacific/Auckland", "2018-11-04T20:30:00+00:00", True, id="other-zone"),
        pytest.param("Mon-Mon 00:00-00:00 CET", "2026-01-05T00:00:00+01:00", False, id="empty-range"),
        pytest.param("Mon-Sun 00:00-24:00 CET", "2026-01-05T00:00:00+01:00", True, id="whole-week"),
        pytest.param("Mon-Sun 00:00-24:00 CET", "2026-07-11T23:59:59+02:00", True, id="whole-week-in-summer"),
        pytest.param("Sun-Fri 08:00-18:00 UTC", "2026-01-04T09:00:00+00:00", True, id="week-wraps"),
        pytest.param("Sun-Fri 08:00-18:00 UTC", "2026-01-03T09:00:00+00:00", False, id="week-wraps-out"),
        pytest.param("Mon-Fri 23:30-09:30 UTC", "2026-01-05T23:45:00+00:00", False, id="midnight-does-not-wrap"),
        pytest.param("Mon-Fri 08:00-18:00 UTC", "2026-01-05T18:00:00+00:00", False, id="end-excluded"),
        pytest.param(
            "2026-01-05T08:00:00+00:00-2026-01-05T18:00:00+00:00", "2026-01-05T18:00:00+00:00", True, id="end-included"
        ),
        pytest.param(
            "2026-01-05T08:00:00+00:00-2026-01-05T18:00:00+00:00", "2026-01-05T18:00:01+00:00", False, id="end-over"
        ),
        pytest.param("Mon-Fri 00:00-24:00 UTC", "2026-01-09T23:59:59+00:00", True, id="whole-days"),
        pytest.param("Mon-Fri 00:00-24:00 UTC", "2026-01-10T00:00:00+00:00", False, id="whole-days-over"),
        pytest.param("Mon-Fri 09:00-24:00 UTC", "2026-01-10T00:00:00+00:00", False, id="midnight-over"),
        pytest.param("always", "2026-01-05T00:00:00+00:00", True, id="always"),
        pytest.param("Never", "2026-01-05T00:00:00+00:00", False, id="never"),
    ],
)
def test_uptime(uptime: str, at: str, up: bool) -> None:
    conversion = converted(convert_downscaler, workload(uptime=uptime, downtime_replicas=str(DOWN)))
    assert replicas_at(conversion)(instant(at)) == (UP if up else DOWN)


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        pytest.param(
            {"uptime": "Mon-Thur 08:00-18:00 UTC"},
            '"Mon-Thur 08:00-18:00 UTC" is not a time',
            id="name-of-four-letters",
        ),
        pytest.param({"uptime": ""}, '"" is not a time', id="empty"),
        pytest.param({"uptime": "Mon-Xyz 08:00-18:00 UTC"}, '"Xyz"', id="no-weekday"),
        pytest.param({"uptime": "Mon-Fri 08:00-25:00 UTC"}, "25:00", id="no-hour"),
        pytest.param({"uptime": "Mon-Fri 08:61-09:00 UTC"}, "08:61", id="no-minute"),
        pytest.param({"uptime": "Mon-Fri 08:00-18:00"}, "names no zone", id="no-zone"),
        pytest.param({"uptime": "08:00-18:00 UTC"}, "names no weekdays", id="no-weekdays"),
        pytest.param({"uptime": "Mon-Fri 08:00-18:00 Mars/One"}, "is unknown", id="unknown-zone"),
        pytest.param({"uptime": "2026-02-30T08:00:00+00:00-2026-03-01T08:00:00+00:00"}, "2026-02-30", id="no-date"),
        pytest.param({"uptime": "Mon-Fri 08:00-18:00 UTC", "downtime": "Mon-Fri 09:00-10:00 CET"}, "zones", id="zones"),
        pytest.param({"uptime": "always", "downtime_replicas": "10%"}, '"10%"', id="percent"),
        pytest.param({"uptime": "always", "exclude_until": "soon"}, '"soon"', id="exclude-until"),
        pytest.param({"uptime": "always", "original_replicas": "x"}, "'x'", id="original"),
        pytest.param({"upscale_period": "always"}, "never begins", id="period-always"),
        pytest.param(
            {"upscale_period": "Mon-Fri 08:00-18:00 UTC", "downscale_period": "Fri-Fri 17:00-19:00 CET"},
            "overlap",
            id="periods-overlap",
        ),
        pytest.param(
            {"upscale_period": "Mon-Fri 08:00-18:00 UTC", "force_uptime": "true"}, "beside periods", id="forced-period"
        ),
    ],
)
def test_an_error_leaves_the_object_unchanged(annotations: dict[str, str], said: str) -> None:
    value = workload(**annotations)
    conversion = converted(convert_downscaler, value)
    assert [message for message in errors_of(conversion) if said in message], conversion.problems
    assert (conversion.kept, conversion.made) == (value, ())


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(workload(uptime="always", grace_period="300"), "no equivalent", id="grace-period"),
        pytest.param(workload(uptime="Mon-Fri 22:00-06:00 UTC"), "is never active", id="over-midnight"),
        pytest.param(workload(uptime="always", exclude_until="2020-01-01"), "past", id="exclude-until-past"),
        pytest.param(workload(uptime="always", force_downtime="true"), "namespaces only", id="forced"),
        pytest.param(workload(uptime="always", misspelt="x"), "not an annotation", id="unknown"),
        pytest.param(
            workload(uptime="always", upscale_period="Mon-Fri 08:00-18:00 UTC"), "is ignored", id="periods-win"
        ),
        pytest.param({**workload(uptime="never"), "spec": {}}, "`replicas` is not set", id="no-replicas"),
    ],
)
def test_a_difference_is_a_warning(value: dict[str, Any], said: str) -> None:
    conversion = converted(convert_downscaler, value)
    assert [message for message in warnings_of(conversion) if said in message], conversion.problems
    assert conversion.made


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(workload("Namespace", "v1", uptime="always"), "every workload of the namespace", id="namespace"),
        pytest.param(workload("CronJob", "batch/v1", uptime="always"), "suspends the CronJob", id="cron-job"),
        pytest.param(workload("DaemonSet", uptime="always"), "removes the DaemonSet", id="daemon-set"),
        pytest.param(workload("ScaledObject", "keda.sh/v1alpha1", uptime="always"), "pauses", id="scaled-object"),
        pytest.param(workload("Widget", "example.com/v1", uptime="always"), "no equivalent", id="foreign"),
        pytest.param(workload(exclude="true", uptime="always"), "excluded", id="excluded"),
        pytest.param(workload(grace_period="300"), "nothing to convert", id="no-times"),
    ],
)
def test_an_object_that_is_not_converted_has_a_warning(value: dict[str, Any], said: str) -> None:
    conversion = converted(convert_downscaler, value)
    assert (conversion.kept, conversion.made) == (value, ())
    assert [message for message in warnings_of(conversion) if said in message], conversion.problems


def test_a_misspelt_annotation_has_a_warning_with_the_right_name() -> None:
    (unknown, _) = converted(convert_downscaler, workload(uptim="always")).problems
    assert (unknown.message, unknown.hint) == (
        "is not an annotation of kube-downscaler: it has no effect",
        "did you mean `downscaler/uptime`?",
    )


def test_without_times_nothing_is_converted() -> None:
    assert not any(
        "the schedule" in message
        for message in warnings_of(converted(convert_downscaler, workload(grace_period="300")))
    )


def test_an_object_without_annotations_is_not_handled() -> None:
    assert convert_downscaler(workload(), ConversionOptions(NOW)) is None


def test_the_object_stays_without_the_annotations() -> None:
    conversion = converted(convert_downscaler, workload(uptime="always"))
    assert conversion.kept is not None
    assert conversion.kept["metadata"] == {"name": "shop", "annotations": {"other": "stays"}}
    bare = workload(uptime="always")
    bare["metadata"]["annotations"].pop("other")
    kept = converted(convert_downscaler, bare).kept
    assert kept is not None
    assert kept["metadata"] == {"name": "shop"}


def test_a_zone_can_be_given() -> None:
    conversion = converted(convert_downscaler, workload(uptime="Mon-Fri 08:00-18:00"), zone="Asia/Tokyo")
    assert views_of(conversion)[0].spec.schedule.timezone == "Asia/Tokyo"


def test_exclusion_and_force_win_over_times() -> None:
    value = workload(uptime="never", exclude_until="2026-01-06", force_downtime="Thu-Thu 00:00-24:00 UTC")
    at = replicas_at(converted(convert_downscaler, value))
    assert [at(NOW), at(NOW + 86399), at(NOW + 86400)] == [UP, UP, 0]
    forced = workload(downtime="always", force_uptime="Thu-Thu 10:00-12:00 UTC")
    at = replicas_at(converted(convert_downscaler, forced))
    assert [at(instant(f"2026-01-08T{clock}+00:00")) for clock in ("09:59", "10:00", "12:00")] == [0, UP, 0]


def test_periods_become_rules_at_their_beginning() -> None:
    value = workload(
        upscale_period="Mon-Fri 07:30-08:00 Europe/Berlin, 2026-01-10T09:00:00+00:00-2026-01-10T10:00:00+00:00",
        downscale_period="Mon-Fri 18:00-18:30 America/New_York",
    )
    conversion = converted(convert_downscaler, value)
    at = applied_at(conversion)
    assert at(instant("2026-01-05T07:30:00+01:00")) == {"replicas": UP}
    assert at(instant("2026-01-05T18:00:00-05:00")) == {"replicas": 0}
    assert at(instant("2026-01-10T08:59:59+00:00")) == {"replicas": 0}
    assert at(instant("2026-01-10T09:00:00+00:00")) == {"replicas": UP}
    assert any("acts once" in message for message in warnings_of(conversion))


def test_the_minimum_of_an_autoscaler_is_at_least_one() -> None:
    conversion = converted(convert_downscaler, autoscaler(uptime="Mon-Fri 08:00-18:00 UTC"))
    assert applied_at(conversion)(NOW) == {"min": 1}
    assert any("at least 1" in message for message in warnings_of(conversion))


@pytest.mark.parametrize(
    "annotations",
    [
        {"uptime": "Mon-Fri 08:00-18:00 UTC, Sat-Sat 08:00-18:00 CET"},
        {"downtime": "2026-01-05T08:00:00+00:00-2026-01-05T18:00:00+00:00"},
        {"uptime": "Mon-Fri 08:00-18:00 UTC", "force_uptime": "true"},
        {"uptime": "always"},
    ],
    ids=["zones", "dates", "forced", "no-change"],
)
def test_times_that_rules_of_an_autoscaler_cannot_express(annotations: dict[str, str]) -> None:
    assert errors_of(converted(convert_downscaler, autoscaler(**annotations)))


# kube-downscaler's own rule, minute by minute: up while an uptime matches and no downtime does.

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Weekly:
    first: int
    last: int
    opens: int
    closes: int
    zone: str

    @property
    def text(self) -> str:
        opens, closes = (f"{minute // 60:02}:{minute % 60:02}" for minute in (self.opens, self.closes))
        return f"{WEEKDAYS[self.first]}-{WEEKDAYS[self.last]} {opens}-{closes} {self.zone}"

    def matches(self, at: int) -> bool:
        local = datetime.datetime.fromtimestamp(at, ZoneInfo(self.zone))
        if self.first > self.last:
            on_day = local.weekday() >= self.first or local.weekday() <= self.last
        else:
            on_day = self.first <= local.weekday() <= self.last
        return on_day and self.opens <= local.hour * 60 + local.minute < self.closes


@dataclass(frozen=True)
class Between:
    begins: int
    ends: int

    @property
    def text(self) -> str:
        return "-".join(
            datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat() for at in (self.begins, self.ends)
        )

    def matches(self, at: int) -> bool:
        return self.begins <= at <= self.ends


@st.composite
def weeklies(draw: st.DrawFn, zone: str) -> Weekly:
    minutes = st.integers(0, 96).map(lambda quarter: quarter * 15)
    return Weekly(draw(st.integers(0, 6)), draw(st.integers(0, 6)), draw(minutes), draw(minutes), zone)


def spans() -> st.SearchStrategy[Between]:
    moments = st.integers(0, 8 * 96).map(lambda quarter: NOW + quarter * 900)
    return st.builds(Between, moments, moments)


def specs(zone: str, *, dates: bool) -> st.SearchStrategy[list[Weekly | Between]]:
    part: st.SearchStrategy[Weekly | Between] = st.one_of(weeklies(zone), spans()) if dates else weeklies(zone)
    return st.lists(part, min_size=1, max_size=3)


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York"])
INSTANTS = st.lists(st.integers(0, 8 * 96), min_size=20, max_size=60, unique=True)


def matches(spec: list[Weekly | Between] | None, at: int, *, default: bool) -> bool:
    return default if spec is None else any(part.matches(at) for part in spec)


@given(data=st.data(), zone=ZONES, quarters=INSTANTS)
def test_a_workload_is_up_when_kube_downscaler_has_it_up(data: st.DataObject, zone: str, quarters: list[int]) -> None:
    uptime = data.draw(st.none() | specs(zone, dates=True), label="uptime")
    downtime = data.draw(st.none() | specs(zone, dates=True), label="downtime")
    annotations = {
        name: ", ".join(part.text for part in spec)
        for name, spec in (("uptime", uptime), ("downtime", downtime))
        if spec is not None
    }
    conversion = converted(
        convert_downscaler, workload(downtime_replicas=str(DOWN), **(annotations or {"uptime": "always"}))
    )
    at = replicas_at(conversion)
    for moment in (NOW + quarter * 900 + second for quarter in quarters for second in (-1, 0, 1)):
        up = matches(uptime, moment, default=True) and not matches(downtime, moment, default=False)
        assert at(moment) == (UP if up else DOWN)


@given(data=st.data(), zone=ZONES, quarters=INSTANTS)
def test_a_minimum_is_up_when_kube_downscaler_has_it_up(data: st.DataObject, zone: str, quarters: list[int]) -> None:
    uptime = data.draw(specs(zone, dates=False), label="uptime")
    downtime = data.draw(st.none() | specs(zone, dates=False), label="downtime")
    annotations = {"uptime": ", ".join(part.text for part in uptime)}
    if downtime is not None:
        annotations["downtime"] = ", ".join(part.text for part in downtime)
    conversion = converted(convert_downscaler, autoscaler(downtime_replicas=str(DOWN), **annotations))
    if errors_of(conversion):
        event("never changes")
        states = {matches(uptime, NOW + quarter * 900, default=True) for quarter in range(8 * 96)}
        assert downtime is not None or len(states) == 1
        return
    at = applied_at(conversion)
    for moment in (NOW + quarter * 900 + second for quarter in quarters for second in (-1, 0, 1)):
        up = matches(uptime, moment, default=True) and not matches(downtime, moment, default=False)
        assert at(moment) == {"min": UP if up else DOWN}
