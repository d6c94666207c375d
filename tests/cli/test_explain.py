"""`springtide explain`: what it reads from a cluster, its data for scripts, and its text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.api_server import served_objects
from tests.cli.conftest import Run

from springtide.apis.meta.times import parse_instant
from springtide.apis.yaml import Document, read
from springtide.assembly.cluster_reader import ReadableCluster
from springtide.cli.explain import render_explanation
from springtide.cluster.errors import Forbidden
from springtide.cluster.http import HttpTransport
from springtide.cluster.resources import Selection
from springtide.controllers.explanation import (
    Blocker,
    ExplainedObject,
    Explanation,
    ObservedCondition,
    PastEvent,
    UpcomingChange,
)

AT = parse_instant("2026-11-16T23:30:00Z")
HELD = "fewer than 9 not before 2026-11-16T23:34:00Z: within the last 300 s more replicas were asked for than now"
EXPLANATION = Explanation(
    subject=ExplainedObject(
        api_version="autoscaling.karpenter.sh/v1alpha1",
        kind="HorizontalAutoscaler",
        namespace="shop",
        name="web",
        at=AT,
    ),
    zone="Europe/Berlin",
    wants={"replicas": 9},
    headline="9 replicas",
    because=("`peak` is 2, at 1 for each replica: 2 replicas", "the bounds are 1 and 10"),
    next=(
        UpcomingChange(AT + 300, 6, "replicas", "behaviour `early` starts (00:35 Europe/Berlin)", "Europe/Berlin"),
        UpcomingChange(AT + 36_000, {"min": 5}, "up", "rule `up` fires (18:30 Asia/Tokyo)", "Asia/Tokyo"),
    ),
    stopped=(Blocker("AbleToScale is False", HELD, AT + 240),),
    conditions=(
        ObservedCondition("Ready", "False", "Held", HELD, AT),
        ObservedCondition("AbleToScale", "False", "Held", HELD, AT),
        ObservedCondition("Active", "True", "MetricsRead", "all metrics are read", None),
    ),
    history=(
        PastEvent(AT - 60, "SuccessfulRescale: from 6 to 9 replicas"),
        PastEvent(AT - 90, f"Held: {HELD}", bad=True),
    ),
    notes=("a note",),
)
WIDE = """\
HorizontalAutoscaler/web in namespace shop, Tue 2026-11-17 00:30 Europe/Berlin (Mon 23:30 UTC)

wants       9 replicas
because     `peak` is 2, at 1 for each replica: 2 replicas
            the bounds are 1 and 10
next        Tue 2026-11-17 00:35             Mon 23:35 UTC  in 5min  6      behaviour `early` starts
            Tue 2026-11-17 18:30 Asia/Tokyo  09:30 UTC      in 10h   min 5  rule `up` fires
stopped by  AbleToScale is False: fewer than 9 not before 2026-11-16T23:34:00Z: within the last 300
              s more replicas were asked for than now; until Tue 2026-11-17 00:34 Europe/Berlin (Mon
              23:34 UTC)
conditions  False   Ready: Held
            False   AbleToScale: Held
            True    Active: all metrics are read
happened    Tue 2026-11-17 00:29  SuccessfulRescale: from 6 to 9 replicas
notes       a note
"""


def test_layout() -> None:
    assert click.unstyle(render_explanation(EXPLANATION, width=200, unicode=True)) == WIDE


@pytest.mark.parametrize("width", [44, 60, 80, 100, 200])
def test_lines_are_not_longer_than_the_terminal(width: int) -> None:
    lines = click.unstyle(render_explanation(EXPLANATION, width=width, unicode=True)).splitlines()
    assert [line for line in lines if len(line) > min(width, 100)] == []


def test_rows_break_between_cells() -> None:
    """A time of the next changes stays in one piece."""
    lines = click.unstyle(render_explanation(EXPLANATION, width=60, unicode=True)).splitlines()
    begin = lines.index("            Tue 2026-11-17 18:30 Asia/Tokyo  09:30 UTC")
    assert lines[begin + 1 : begin + 3] == ["              in 10h   min 5", "              rule `up` fires"]


def test_an_empty_column_is_left_out() -> None:
    """Where local times are in UTC, there is no column of UTC times."""
    in_utc = replace(
        EXPLANATION, zone="UTC", next=(UpcomingChange(AT + 300, {"min": 5}, "up", "rule `up` fires", "UTC"),)
    )
    text = click.unstyle(render_explanation(in_utc, width=80, unicode=True))
    assert "next        Mon 2026-11-16 23:35  in 5min  min 5  rule `up` fires\n" in text


def test_without_blockers_it_is_stopped_by_nothing() -> None:
    calm = Explanation(
        subject=ExplainedObject(
            api_version="autoscaling.karpenter.sh/v1alpha1",
            kind="MetricsProducer",
            namespace=None,
            name="peak\x07",
            at=AT,
        ),
        zone="UTC",
        wants={},
        headline="2 replicas",
        because=(),
    )
    text = click.unstyle(render_explanation(calm, width=80, unicode=True))
    assert "stopped by  nothing\n" in text
    assert "next" not in text
    assert "\x07" not in text


STATUS_TIME = "2026-11-16T11:30:00Z"
OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: springtide.dev/v1alpha1
kind: Calendar
metadata: {name: closed}
spec: {timeZone: Europe/Berlin, dates: ["2026-11-17"]}
---
apiVersion: springtide.dev/v1alpha1
kind: Grant
metadata: {name: for-shop}
spec: {namespaces: [shop], nodeGroups: ["shop-*"]}
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata:
  name: peak
  namespace: shop
  annotations: {tests/event: "from 2 to 6 replicas: behaviour `day` is active"}
spec:
  schedule:
    timezone: Europe/Berlin
    defaultReplicas: 2
    behaviors:
    - {name: day, replicas: 6, start: {hours: 9}, end: {hours: 18}, calendars: [{name: closed}]}
status:
  scheduledCapacity: {currentValue: 6}
  conditions:
  - {type: Ready, status: "True", reason: Ready, message: "6 replicas: behaviour `day` is active (Europe/Berlin)"}
  - {type: Active, status: "True", reason: Active, message: "6 replicas: behaviour `day` is active (Europe/Berlin)"}
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: HorizontalAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 8
  metrics:
  - prometheus: {query: 'karpenter_scheduled_capacity{name="peak"}', target: {type: AverageValue, value: 1}}
status:
  desiredReplicas: 8
  conditions:
  - type: AbleToScale
    status: "False"
    reason: ScaleDownStabilized
    message: fewer than 8 not before 2026-11-16T11:34:00Z
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: nightly, namespace: shop, annotations: {springtide.dev/paused: "true"}}
spec:
  scaleTargetRef: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, name: web}
  rules:
  - {name: up, schedule: "30 8 * * *", targetMinReplicas: 5, timeZone: Europe/Berlin}
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: lost, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: wep}
  rules:
  - {name: up, schedule: "30 8 * * *", targetReplicas: 5}
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: stiff, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: springtide.dev/v1alpha1, kind: Calendar, name: closed}
  rules:
  - {name: up, schedule: "30 8 * * *", targetReplicas: 5}
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata: {name: foreign, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: example.com/v1, kind: Widget, name: w}
  rules:
  - {name: up, schedule: "30 8 * * *", targetReplicas: 5}
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: ScalableNodeGroup
metadata: {name: pool, namespace: shop}
spec: {replicas: 3, type: AWSEC2AutoScalingGroup, id: shop-nodes}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}
  minReplicas: 3
  maxReplicas: 20
status:
  desiredReplicas: 0
  conditions:
  - {type: AbleToScale, status: "False", reason: FailedGetScale, message: the scale cannot be read}
  - {type: ScalingLimited, status: "False", reason: DesiredWithinRange, message: within the range}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 8
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other, namespace: shop}
spec:
  replicas: 8
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: other, image: "web:1"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: idle, namespace: shop}
spec:
  replicas: 8
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: idle, image: "web:1"}]}
"""


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with served_objects(tmp_path_factory.mktemp("cluster"), OBJECTS) as path:
        yield path


@pytest.fixture
def explain(run: Run, kubeconfig: Path) -> Run:
    """Explain an object in the namespace `shop`."""
    return lambda *arguments: run("explain", *arguments, "-n", "shop", "--kubeconfig", kubeconfig)


@pytest.fixture
def explained(explain: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Explain an object as JSON, at the time of the statuses."""
    monkeypatch.setattr(ReadableCluster, "now", parse_instant(STATUS_TIME))

    def ask(name: str) -> dict[str, Any]:
        result = explain(name, "-o", "json")
        assert result.exit_code == 0, result.stderr
        document = json.loads(result.stdout)
        assert isinstance(document, dict)
        return document

    return ask


def test_a_schedule_with_its_events_and_readers(explained: Callable[[str], dict[str, Any]]) -> None:
    document = explained("metricsproducer/peak")
    assert document["wants"] == {"replicas": 6, "behavior": "day", "timezone": "Europe/Berlin"}
    assert [(one["at"], one["value"]) for one in document["next"][:2]] == [
        ("2026-11-16T17:00:00Z", 2),
        ("2026-11-18T08:00:00Z", 6),
    ]
    assert document["stopped"] == []
    assert document["history"] == [
        {
            "at": "2026-11-16T11:00:00Z",
            "what": "ValueChanged: from 2 to 6 replicas: behaviour `day` is active (3 times)",
            "bad": False,
        }
    ]
    assert document["notes"] == [
        'HorizontalAutoscaler `web` follows it for Deployment `web`: karpenter_scheduled_capacity{name="peak"}'
    ]


def test_an_autoscaler_with_its_target_and_stabilization(explained: Callable[[str], dict[str, Any]]) -> None:
    document = explained("horizontalautoscaler/web")
    assert document["wants"] == {"replicas": 8}
    assert "Deployment `web` has 8 replicas, 0 of them exist" in document["because"]
    assert [stop["until"] for stop in document["stopped"]] == ["2026-11-16T11:34:00Z"]
    assert document["next"][:2] == [
        {
            "at": "2026-11-16T11:34:00Z",
            "value": 6,
            "lane": "replicas",
            "because": "behaviour `day` is active (12:30 Europe/Berlin); after the stabilization window of 300 s",
        },
        {
            "at": "2026-11-16T17:05:00Z",
            "value": 2,
            "lane": "replicas",
            "because": "window of behaviour `day` over (18:00 Europe/Berlin): back to the default of 2;"
            " after the stabilization window of 300 s",
        },
    ]


def test_paused_rules_that_set_bounds(explained: Callable[[str], dict[str, Any]]) -> None:
    document = explained("cronfhpa/nightly")
    assert "HorizontalPodAutoscaler `web` has min 3, max 20" in document["because"]
    assert document["stopped"][0]["what"] == "no controller touches it"
    assert document["next"][0]["value"] == {"min": 5}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("lost", "there is no Deployment `wep` in namespace shop (did you mean web?)", id="missing"),
        pytest.param("stiff", "a Calendar has no scale subresource", id="no scale subresource"),
        pytest.param("foreign", "the cluster knows no kind Widget in example.com/v1", id="unknown kind"),
    ],
)
def test_targets_that_cannot_be_scaled(explained: Callable[[str], dict[str, Any]], name: str, why: str) -> None:
    assert why in [stop["why"] for stop in explained(f"cronfederatedhpa/{name}")["stopped"]]


def test_a_node_group_with_its_grant(explained: Callable[[str], dict[str, Any]]) -> None:
    document = explained("scalablenodegroup/pool")
    assert document["notes"] == ['the node group "shop-nodes" is allowed by Grant `for-shop`']
    assert [stop["what"] for stop in document["stopped"]] == ["no controller has reported yet"]


def test_for_another_time_the_schedule_counts_and_not_the_status(explain: Run) -> None:
    night = json.loads(explain("horizontalautoscaler/web", "--at", "2026-11-16T20:30:00Z", "-o", "json").stdout)
    assert night["wants"] == {"replicas": 2}
    assert night["because"][0].endswith("its schedule says 2, which recommends 2")
    assert "at present Deployment `web` has 8 replicas, 0 of them exist" in night["because"]
    assert night["stopped"] == []
    assert "conditions, events and the target are those of the present" in night["notes"][0]


def test_yaml_equals_json(explain: Run, explained: Callable[[str], dict[str, Any]]) -> None:
    (document,) = read(explain("metricsproducer/peak", "--at", STATUS_TIME, "-o", "yaml").stdout)
    assert isinstance(document, Document)
    assert document.value == explained("metricsproducer/peak")


@pytest.mark.parametrize(
    ("columns", "title"),
    [
        pytest.param(
            80,
            ["MetricsProducer/peak in namespace shop", "  Mon 2026-11-16 12:30 Europe/Berlin (11:30 UTC)"],
            id="title on two lines",
        ),
        pytest.param(
            130,
            ["MetricsProducer/peak in namespace shop, Mon 2026-11-16 12:30 Europe/Berlin (11:30 UTC)"],
            id="title on one line",
        ),
    ],
)
def test_text_uses_the_width_of_the_terminal(
    explain: Run, monkeypatch: pytest.MonkeyPatch, columns: int, title: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    result = explain("metricsproducer/peak", "--at", STATUS_TIME)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[: len(title) + 3] == [
        *title,
        "",
        "wants       6 replicas",
        "because     behaviour `day` is active (12:30 Europe/Berlin)",
    ]
    assert lines[len(title) + 3].startswith("next        Mon 2026-11-16 18:00  17:00 UTC  in 5h 30min  2")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("metricsproducer", "'metricsproducer' is not KIND/NAME", id="no name"),
        pytest.param("metricsproducer/peek", "did you mean peak?", id="a wrong name"),
        pytest.param("metricproducer/peak", "did you mean metricsproducer", id="a wrong kind"),
        pytest.param("ns/shop", "a Namespace cannot be explained; these can: metricsproducer", id="another kind"),
    ],
)
def test_unknown_names_suggest_similar_ones(explain: Run, name: str, message: str) -> None:
    result = explain(name)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_missing_namespace_suggests_a_similar_one(run: Run, kubeconfig: Path) -> None:
    result = run("explain", "metricsproducer/peak", "-n", "shp", "--kubeconfig", kubeconfig)
    assert result.exit_code == 2
    assert "there is no namespace `shp`; did you mean shop?" in result.stderr


def test_a_missing_kubeconfig_is_reported(run: Run) -> None:
    result = run("explain", "metricsproducer/peak", "--kubeconfig", "/nonexistent/config")
    assert result.exit_code == 2
    assert "/nonexistent/config" in result.stderr


def test_forbidden_kinds_are_noted(explained: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    listing = HttpTransport.list

    async def guarded(transport: HttpTransport, selection: Selection, **options: Any) -> Any:
        if selection.resource.kind in ("Calendar", "Event") or not selection.namespace:
            raise Forbidden(f"{selection.resource} is forbidden")
        return await listing(transport, selection, **options)

    monkeypatch.setattr(HttpTransport, "list", guarded)
    document = explained("metricsproducer/peak")
    assert document["history"] == []
    assert [note.split(":")[0] for note in document["notes"]] == [
        "HorizontalAutoscaler `web` follows it for Deployment `web`",
        "calendars are not considered",
        "grants are not considered",
        "events are not considered",
    ]


def test_workload_is_explained_by_its_autoscaler(explained: Callable[[str], dict[str, Any]]) -> None:
    scaled, autoscaler = explained("deployment/web"), explained("horizontalautoscaler/web")
    assert scaled["wants"] == autoscaler["wants"] == {"replicas": 8}
    assert scaled["because"][0] == "HorizontalAutoscaler `web` sets its replicas"
    assert set(autoscaler["because"]) < set(scaled["because"])
    assert [scaled[key] for key in ("next", "nextUnknown", "stopped")] == [
        autoscaler[key] for key in ("next", "nextUnknown", "stopped")
    ]
    assert scaled["notes"] == ["`springtide explain horizontalautoscaler/web -n shop` says more about it"]
    assert scaled.keys() == autoscaler.keys()


def test_foreign_autoscaler_is_explained_by_the_rules_that_move_its_bounds(
    explained: Callable[[str], dict[str, Any]], explain: Run
) -> None:
    moved, rules = explained("hpa/web"), explained("cronfederatedhpa/nightly")
    assert moved["because"][:2] == [
        "CronFederatedHPA `nightly` sets its bounds",
        "it scales Deployment `other` between 3 and 20 replicas",
    ]
    assert moved["next"] == rules["next"] != []
    assert "wants       a minimum of 5, as CronFederatedHPA `nightly` says\n" in explain("hpa/web").stdout
    assert moved["stopped"] == [
        *rules["stopped"],
        {"what": "AbleToScale is False", "why": "the scale cannot be read", "until": None},
    ]


def test_workload_of_a_foreign_autoscaler_names_the_rules_too(explained: Callable[[str], dict[str, Any]]) -> None:
    scaled = explained("deployment/other")
    assert scaled["because"][0] == "HorizontalPodAutoscaler `web` sets its replicas"
    assert "CronFederatedHPA `nightly` sets its bounds" in scaled["because"]
    assert scaled["next"] == explained("hpa/web")["next"]


def test_workload_without_autoscaler(explained: Callable[[str], dict[str, Any]], explain: Run) -> None:
    idle = explained("deployment/idle")
    assert (idle["wants"], idle["next"], idle["stopped"]) == ({}, [], [])
    assert "wants       what it is set to: nothing scales it\n" in explain("deployment/idle").stdout


def test_calendar_is_explained_by_its_days_and_its_users(explained: Callable[[str], dict[str, Any]]) -> None:
    calendar = explained("calendar/closed")
    assert calendar["wants"] == {"active": False}
    assert calendar["because"] == ["the next day in the calendar is 2026-11-17 (Europe/Berlin)"]
    assert [(one["at"], one["value"], one["lane"]) for one in calendar["next"]] == [
        ("2026-11-16T23:00:00Z", True, "active"),
        ("2026-11-17T23:00:00Z", False, "active"),
    ]
    assert calendar["notes"] == ["MetricsProducer `peak` in namespace shop depends on its days"]
