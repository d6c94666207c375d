"""An explanation on a screen: what stands where, and that nothing runs off it.

`springtide explain`: facts from a cluster, and an answer on a screen or for a script.
"""

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


def test_everything_has_its_place() -> None:
    assert click.unstyle(render_explanation(EXPLANATION, width=200, unicode=True)) == WIDE


@pytest.mark.parametrize("width", [44, 60, 80, 100, 200])
def test_nothing_runs_off_the_screen(width: int) -> None:
    lines = click.unstyle(render_explanation(EXPLANATION, width=width, unicode=True)).splitlines()
    assert [line for line in lines if len(line) > min(width, 100)] == []


def test_lines_are_broken_between_cells() -> None:
    """A time that is longer than a line would be one for nobody."""
    lines = click.unstyle(render_explanation(EXPLANATION, width=60, unicode=True)).splitlines()
    begin = lines.index("            Tue 2026-11-17 18:30 Asia/Tokyo  09:30 UTC")
    assert lines[begin + 1 : begin + 3] == ["              in 10h   min 5", "              rule `up` fires"]


def test_a_column_of_nothing_takes_no_room() -> None:
    """Where the times are in UTC, nothing stands beside them."""
    in_utc = replace(
        EXPLANATION, zone="UTC", next=(UpcomingChange(AT + 300, {"min": 5}, "up", "rule `up` fires", "UTC"),)
    )
    text = click.unstyle(render_explanation(in_utc, width=80, unicode=True))
    assert "next        Mon 2026-11-16 23:35  in 5min  min 5  rule `up` fires\n" in text


def test_where_nothing_is_in_the_way_it_says_so() -> None:
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


TestExplainAT = "2026-11-16T11:30:00Z"
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
  - {type: AbleToScale, status: "False", reason: Held, message: "fewer than 8 not before 2026-11-16T11:34:00Z"}
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
"""


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with served_objects(tmp_path_factory.mktemp("cluster"), OBJECTS) as path:
        yield path


@pytest.fixture
def explain(run: Run, kubeconfig: Path) -> Run:
    """Explain an object of the namespace."""
    return lambda *arguments: run("explain", *arguments, "-n", "shop", "--kubeconfig", kubeconfig)


@pytest.fixture
def told(explain: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Explain an object to a script, as if it were now that its status says what it says."""
    monkeypatch.setattr(ReadableCluster, "now", parse_instant(TestExplainAT))

    def ask(name: str) -> dict[str, Any]:
        result = explain(name, "-o", "json")
        assert result.exit_code == 0, result.stderr
        document = json.loads(result.stdout)
        assert isinstance(document, dict)
        return document

    return ask


def test_a_schedule_with_everything_around_it(told: Callable[[str], dict[str, Any]]) -> None:
    document = told("metricsproducer/peak")
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


def test_an_autoscaler_its_target_and_what_holds_it(told: Callable[[str], dict[str, Any]]) -> None:
    document = told("horizontalautoscaler/web")
    assert document["wants"] == {"replicas": 8}
    assert "Deployment `web` has 8 replicas, 0 of them exist" in document["because"]
    assert [stop["until"] for stop in document["stopped"]] == ["2026-11-16T11:34:00Z"]
    assert document["next"][0] == {
        "at": "2026-11-16T17:00:00Z",
        "value": 2,
        "lane": "replicas",
        "because": "behaviour `day` ends (18:00 Europe/Berlin): the default",
    }


def test_rules_that_move_bounds_and_are_paused(told: Callable[[str], dict[str, Any]]) -> None:
    document = told("cronfhpa/nightly")
    assert "HorizontalPodAutoscaler `web` has min 3, max 20" in document["because"]
    assert document["stopped"][0]["what"] == "no controller touches it"
    assert document["next"][0]["value"] == {"min": 5}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("lost", "there is no Deployment `wep` in namespace shop (did you mean web?)", id="not there"),
        pytest.param("stiff", "a Calendar has no scale subresource", id="no scale"),
        pytest.param("foreign", "the cluster knows no kind Widget in example.com/v1", id="no such kind"),
    ],
)
def test_targets_that_cannot_be_scaled(told: Callable[[str], dict[str, Any]], name: str, why: str) -> None:
    assert why in [stop["why"] for stop in told(f"cronfederatedhpa/{name}")["stopped"]]


def test_a_group_of_nodes_and_its_grant(told: Callable[[str], dict[str, Any]]) -> None:
    document = told("scalablenodegroup/pool")
    assert document["notes"] == ['the node group "shop-nodes" is allowed by Grant `for-shop`']
    assert [stop["what"] for stop in document["stopped"]] == ["no controller has reported yet"]


def test_of_another_time_schedules_tell_and_not_the_status(explain: Run) -> None:
    night = json.loads(explain("horizontalautoscaler/web", "--at", "2026-11-16T20:30:00Z", "-o", "json").stdout)
    assert night["wants"] == {"replicas": 2}
    assert night["because"][0].endswith("its schedule says 2, which recommends 2")
    assert "at present Deployment `web` has 8 replicas, 0 of them exist" in night["because"]
    assert night["stopped"] == []
    assert "conditions, events and the target are those of the present" in night["notes"][0]


def test_yaml_says_the_same_as_json(explain: Run, told: Callable[[str], dict[str, Any]]) -> None:
    (document,) = read(explain("metricsproducer/peak", "--at", TestExplainAT, "-o", "yaml").stdout)
    assert isinstance(document, Document)
    assert document.value == told("metricsproducer/peak")


def test_text_for_people(explain: Run) -> None:
    result = explain("metricsproducer/peak", "--at", TestExplainAT)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:6] == [
        "MetricsProducer/peak in namespace shop",
        "  Mon 2026-11-16 12:30 Europe/Berlin (11:30 UTC)",
        "",
        "wants       6 replicas",
        "because     behaviour `day` is active (12:30 Europe/Berlin)",
        "next        Mon 2026-11-16 18:00  17:00 UTC  in 5h 30min  2",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("metricsproducer", "'metricsproducer' is not KIND/NAME", id="no name"),
        pytest.param("metricsproducer/peek", "did you mean peak?", id="a wrong name"),
        pytest.param("metricproducer/peak", "did you mean metricsproducer", id="a wrong kind"),
        pytest.param("deploy/web", "a Deployment cannot be explained; these can: metricsproducer", id="another kind"),
    ],
)
def test_names_of_nothing_are_told_with_what_was_meant(explain: Run, name: str, words: str) -> None:
    result = explain(name)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


def test_a_namespace_that_is_not_there_is_told(run: Run, kubeconfig: Path) -> None:
    result = run("explain", "metricsproducer/peak", "-n", "shp", "--kubeconfig", kubeconfig)
    assert result.exit_code == 2
    assert "there is no namespace `shp`; did you mean shop?" in result.stderr


def test_a_cluster_that_is_not_there_is_told(run: Run) -> None:
    result = run("explain", "metricsproducer/peak", "--kubeconfig", "/nonexistent/config")
    assert result.exit_code == 2
    assert "/nonexistent/config" in result.stderr


def test_what_may_not_be_read_is_noted_and_left_out(
    told: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = HttpTransport.list

    async def guarded(transport: HttpTransport, selection: Selection, **options: Any) -> Any:
        if selection.resource.kind in ("Calendar", "Event") or not selection.namespace:
            raise Forbidden(f"{selection.resource} is forbidden")
        return await listing(transport, selection, **options)

    monkeypatch.setattr(HttpTransport, "list", guarded)
    document = told("metricsproducer/peak")
    assert document["history"] == []
    assert [note.split(":")[0] for note in document["notes"]] == [
        "HorizontalAutoscaler `web` follows it for Deployment `web`",
        "calendars are not looked at",
        "grants are not looked at",
        "events are not looked at",
    ]
