"""`springtide preview`: data for scripts, and every picture."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from tests.cli.conftest import Run

from springtide.apis.yaml import Document, read

EXAMPLES = Path(__file__).parents[2] / "examples"
WEEK = ("--from", "2026-06-05T00:00:00Z", "--for", "7d")


def test_levels_in_json(run: Run) -> None:
    """Changes in (from, until], the current value, and the next change."""
    result = run("preview", EXAMPLES / "scheduled-capacity.yaml", *WEEK, "-o", "json")
    (producer,) = json.loads(result.stdout)["objects"]
    (lane,) = producer.pop("lanes")
    assert producer == {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "MetricsProducer",
        "namespace": "default",
        "name": "scheduling",
        "from": "2026-06-05T00:00:00Z",
        "until": "2026-06-12T00:00:00Z",
        "problems": [],
    }
    assert (lane["lane"], lane["current"]) == ("replicas", 2)
    assert [(change["at"], change["value"]) for change in lane["changes"]] == [
        ("2026-06-05T16:00:00Z", 3),
        ("2026-06-06T00:00:00Z", 1),
        ("2026-06-08T16:00:00Z", 3),
        ("2026-06-09T00:00:00Z", 2),
        ("2026-06-09T16:00:00Z", 3),
        ("2026-06-10T00:00:00Z", 2),
        ("2026-06-10T16:00:00Z", 3),
        ("2026-06-11T00:00:00Z", 2),
        ("2026-06-11T16:00:00Z", 3),
        ("2026-06-12T00:00:00Z", 2),
    ]
    assert lane["next"] == {"at": "2026-06-05T16:00:00Z", "value": 3}
    assert lane["changes"][0]["because"] == "behaviour `office-hours` starts (09:00 America/Los_Angeles)"


def test_firings_in_json(run: Run) -> None:
    """One entry per firing; the current value is what the latest one set."""
    result = run(
        "preview", EXAMPLES / "cron-two-zones.yaml", "--from", "2026-06-05T00:00:00Z", "--for", "2d", "-o", "json"
    )
    shanghai, los_angeles = json.loads(result.stdout)["objects"][0]["lanes"]
    assert shanghai["lane"] == "scale-up-asia-shanghai"
    assert shanghai["current"] == {"min": 1000}
    assert [change["at"] for change in shanghai["changes"]] == ["2026-06-05T23:30:00Z", "2026-06-06T23:30:00Z"]
    assert [change["at"] for change in los_angeles["changes"]] == ["2026-06-05T14:30:00Z", "2026-06-06T14:30:00Z"]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param((), ["20%", 0, "20%", "20%"], id="without the number of nodes"),
        pytest.param(("--nodes", 12), [3, 0, 3, 3], id="with the number of nodes"),
    ],
)
def test_budgets_in_json(run: Run, nodes: tuple[object, ...], expected: list[object]) -> None:
    result = run("preview", EXAMPLES / "budgets-business-hours.yaml", *WEEK, *nodes, "-o", "json")
    pool = next(item for item in json.loads(result.stdout)["objects"] if item["kind"] == "NodePool")
    assert [lane["lane"] for lane in pool["lanes"]] == ["Empty", "Drifted", "Underutilized", "Expired"]
    assert [lane["current"] for lane in pool["lanes"]] == expected


def test_a_buffer_is_active_or_not(run: Run) -> None:
    result = run("preview", EXAMPLES / "buffer-deployment.yaml", *WEEK, "-o", "json")
    (lane,) = json.loads(result.stdout)["objects"][0]["lanes"]
    assert (lane["lane"], lane["current"], lane["changes"][0]["value"]) == ("active", False, True)
    assert lane["changes"][0]["at"] == "2026-06-05T07:00:00Z", "eight o'clock in London, in summer"


def test_yaml_equals_json(run: Run) -> None:
    arguments = ("preview", EXAMPLES / "black-friday.yaml", *WEEK, "-o")
    (document,) = read(run(*arguments, "yaml").stdout)
    assert isinstance(document, Document)
    assert document.value == json.loads(run(*arguments, "json").stdout)


def test_times_are_utc_whatever_the_zone(run: Run) -> None:
    plain = run("preview", EXAMPLES / "scheduled-capacity.yaml", *WEEK, "-o", "json").stdout
    assert (
        run("preview", EXAMPLES / "scheduled-capacity.yaml", *WEEK, "--tz", "Asia/Tokyo", "-o", "json").stdout == plain
    )


def test_a_local_time_is_in_the_given_zone(run: Run) -> None:
    arguments = ("preview", EXAMPLES / "scheduled-capacity.yaml", "--tz", "Asia/Tokyo", "-o", "json", "--from")
    assert json.loads(run(*arguments, "2026-06-05").stdout)["objects"][0]["from"] == "2026-06-04T15:00:00Z"
    assert json.loads(run(*arguments, "2026-06-05T09:30").stdout)["objects"][0]["from"] == "2026-06-05T00:30:00Z"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("output", ["text", "svg", "html", "ics"])
def test_every_example_in_every_format(run: Run, path: Path, output: str) -> None:
    result = run("preview", path, *WEEK, "-o", output)
    assert result.exit_code == 0
    if output == "svg":
        ElementTree.fromstring(result.stdout)
    assert result.stdout


HOSTILE = "Black <b>Friday</b> & \x1b[31mmore\r\n; a, b\u202e"


@pytest.mark.parametrize(
    ("output", "written"),
    [
        pytest.param("text", "Black <b>Friday</b> & \\x1b[31mmore ; a, b\\u202e\n", id="text"),
        pytest.param("svg", ">Black &lt;b&gt;Friday&lt;/b&gt; &amp; \\x1b[31mmore ; a, b\\u202e</text>", id="svg"),
        pytest.param("html", "<h1>Black &lt;b&gt;Friday&lt;/b&gt; &amp; \\x1b[31mmore  ; a, b\\u202e</h1>", id="html"),
        pytest.param("ics", "X-WR-CALNAME:Black <b>Friday</b> & \\\\x1b[31mmore  \\; a\\, b\\\\u202e\r\n", id="ics"),
    ],
)
def test_a_title_is_written_as_text(run: Run, output: str, written: str) -> None:
    result = run("preview", EXAMPLES / "black-friday.yaml", *WEEK, "-o", output, "--title", HOSTILE)
    assert result.exit_code == 0
    assert result.stdout_bytes.decode().count(written) == 1


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_data_has_no_title(run: Run, output: str) -> None:
    result = run("preview", EXAMPLES / "black-friday.yaml", "-o", output, "--title", "x")
    assert result.exit_code == 2
    assert "--title" in result.stderr


def test_the_picture_of_the_readme_is_what_the_command_draws(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.cli.sources.time", SimpleNamespace(time=lambda: 1_790_000_000))
    files = (EXAMPLES / "scheduled-capacity.yaml", EXAMPLES / "budgets-business-hours.yaml")
    options = ("--from", "2026-12-14", "--tz", "Europe/Berlin", "--nodes", 40, "-o", "svg")
    picture = EXAMPLES.parent / "docs" / "images" / "preview.svg"

    assert run("preview", *files, *options).stdout == picture.read_text(encoding="utf-8"), (
        "write it anew: springtide preview examples/scheduled-capacity.yaml examples/budgets-business-hours.yaml"
        " --from 2026-12-14 --tz Europe/Berlin --nodes 40 -o svg > docs/images/preview.svg"
    )


def test_an_object_with_errors_has_no_lanes_but_its_problems(run: Run) -> None:
    text = (EXAMPLES / "scheduled-capacity.yaml").read_text(encoding="utf-8").replace("hours: 17", "hours: 25")
    result = run("preview", "-", *WEEK, "-o", "json", input=text)
    assert result.exit_code == 1
    (producer,) = json.loads(result.stdout)["objects"]
    assert producer["lanes"] == []
    assert {problem["path"] for problem in producer["problems"]} >= {"spec.schedule.behaviors[0].start.hours"}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--for", "5 parsecs", "write 7d, 36h, 2w or 1d12h"),
        ("--from", "tomorrow", "write 2026-11-27T06:00:00Z"),
        ("--from", "2026-02-30", "is not a time"),
        ("--tz", "Europe/Berln", "Europe/Berlin"),
    ],
)
def test_invalid_options_say_what_is_expected(run: Run, option: str, value: str, message: str) -> None:
    result = run("preview", EXAMPLES / "black-friday.yaml", option, value)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


BROKEN_POOL = (
    (EXAMPLES / "budgets-by-reason.yaml")
    .read_text(encoding="utf-8")
    .replace("reasons: [Drifted]", "reasons: [Drifted]\n        schedule: nonsense")
)


def test_a_pool_with_an_invalid_budget_is_drawn_as_in_a_cluster(run: Run) -> None:
    result = run("preview", "-", *WEEK, "-o", "json", input=BROKEN_POOL)
    assert result.exit_code == 1
    (pool,) = json.loads(result.stdout)["objects"]
    assert {lane["lane"]: lane["current"] for lane in pool["lanes"]} == {
        "Empty": 5,
        "Drifted": 0,
        "Underutilized": 15,
        "Expired": 5,
    }


def test_rules_beside_an_invalid_one_are_drawn(run: Run) -> None:
    text = (EXAMPLES / "cron-deployment.yaml").read_text(encoding="utf-8").replace("30 08 * * *", "30 25 * * *")
    result = run("preview", "-", *WEEK, "-o", "json", input=text)
    assert result.exit_code == 1
    assert [lane["lane"] for lane in json.loads(result.stdout)["objects"][0]["lanes"]] == ["Scale-Down"]


@pytest.mark.parametrize("output", ["text", "json", "yaml", "svg", "html", "ics"])
def test_problems_are_reported_with_every_output_format(run: Run, output: str) -> None:
    result = run("preview", "-", *WEEK, "-o", output, input=f"{BROKEN_POOL}---\na: [\n")
    assert result.exit_code == 2
    assert result.stdout
    assert "<stdin>:" in result.stderr, "unreadable documents are reported"


def test_missing_holidays_are_reported_and_other_lanes_are_drawn(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package of public holidays is optional."""
    monkeypatch.setitem(sys.modules, "holidays", None)
    monkeypatch.setattr("springtide.apis.springtide.calendars.find_spec", lambda _: None)
    result = run("preview", EXAMPLES / "black-friday.yaml", *WEEK, "-o", "json")
    assert result.exit_code == 0
    producer, calendar = json.loads(result.stdout)["objects"]
    assert producer["lanes"]
    assert calendar["lanes"] == []
    assert [problem["message"] for problem in producer["problems"]] == [
        "Calendar `german-holidays` cannot be evaluated"
    ]
    assert "pip install './springtide[holidays]', in the folder with the clone" in [
        problem["hint"] for problem in calendar["problems"]
    ]


@pytest.mark.parametrize("output", ["text", "json"])
def test_kinds_of_ours_in_a_wrong_group_are_errors(run: Run, output: str) -> None:
    text = "apiVersion: springtide.dev/v1alpha1\nkind: MetricsProducer\nmetadata: {name: a}\n"
    result = run("preview", "-", "-o", output, input=text)
    assert result.exit_code == 1
    assert result.stderr.count("there is no MetricsProducer in springtide.dev/v1alpha1") == 1


@pytest.mark.parametrize("output", ["text", "json", "svg"])
def test_kinds_without_controller_are_noted(run: Run, output: str) -> None:
    result = run("preview", "examples/budgets-by-reason.yaml", "-o", output)
    assert "note: no controller acts on NodePool yet" in result.stderr


CAPPED = Path(__file__).parents[1] / "fixtures" / "black-friday-capped.yaml"
BLACK_FRIDAY = ("--from", "2026-11-26T00:00:00Z", "--for", "3d")


def test_an_autoscaler_that_cuts_its_schedule_is_drawn_beside_it(run: Run) -> None:
    producer, autoscaler = json.loads(run("preview", CAPPED, *BLACK_FRIDAY, "-o", "json").stdout)["objects"]
    assert [lane["lane"] for lane in producer["lanes"]] == ["replicas"]
    assert [change["value"] for change in producer["lanes"][0]["changes"]] == [20, 2]
    assert (autoscaler["kind"], autoscaler["name"]) == ("HorizontalAutoscaler", "web")
    lanes = {lane["lane"]: [(one["at"], one["value"]) for one in lane["changes"]] for lane in autoscaler["lanes"]}
    assert lanes == {
        "replicas": [("2026-11-27T05:00:00Z", 3), ("2026-11-27T21:05:00Z", 2)],
        "schedule": [("2026-11-27T05:00:00Z", 20), ("2026-11-27T21:00:00Z", 2)],
    }
    assert [problem["path"] for problem in autoscaler["problems"]] == ["spec.maxReplicas"]


@pytest.mark.parametrize("output", ["text", "svg", "html"])
def test_every_picture_has_the_replicas_and_the_schedule(run: Run, output: str) -> None:
    result = run("preview", CAPPED, *BLACK_FRIDAY, "-o", output)
    assert result.exit_code == 0
    assert "HorizontalAutoscaler/web" in result.stdout
    assert "cut to maxReplicas 3" in " ".join(result.stdout.split())


def test_a_calendar_of_events_has_the_schedule_only(run: Run) -> None:
    result = run("preview", CAPPED, *BLACK_FRIDAY, "-o", "ics")
    assert "HorizontalAutoscaler" not in result.stdout
    assert "MetricsProducer" in result.stdout


def test_an_autoscaler_within_its_bounds_is_noted(run: Run) -> None:
    result = run("preview", EXAMPLES / "scheduled-capacity.yaml", *WEEK)
    assert "HorizontalAutoscaler/" not in result.stdout
    assert (
        "note: HorizontalAutoscaler `scheduling` follows MetricsProducer `scheduling` within its bounds of 1 and 5"
        in result.stderr
    )


def test_an_autoscaler_with_other_metrics_is_noted(run: Run) -> None:
    result = run("preview", EXAMPLES / "live" / "queue-with-floor.yaml", *WEEK)
    assert (
        "HorizontalAutoscaler `ml-training` is not drawn: it follows MetricsProducer `ml-training-floor`,"
        " and metrics that are not schedules" in " ".join(result.stderr.split())
    )


KEDA = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: peak}
spec:
  schedule:
    timezone: Europe/Berlin
    defaultReplicas: 2
    behaviors: [{replicas: 20, start: {hours: "8"}, end: {hours: "20"}}]
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web}
spec:
  scaleTargetRef: {name: web}
  triggers:
  - type: prometheus
    metadata: {serverAddress: "http://prom:9090", query: 'karpenter_scheduled_capacity{name="peak"}', threshold: "1"}
"""


def test_the_note_of_a_scaled_object_names_keda(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "keda.yaml"
    file.write_text(KEDA)
    noted = " ".join(run("preview", file, *WEEK).stderr.split())
    assert (
        "ScaledObject `web` is not drawn: it follows MetricsProducer `peak`, and KEDA also activates and deactivates"
        " it, after periods of its own" in noted
    )
    assert "metrics that are not schedules" not in noted
