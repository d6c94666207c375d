"""`springtide simulate`: traces as text and as JSON lines, and what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

CALENDAR = """
apiVersion: springtide.dev/v1alpha1
kind: Calendar
metadata: {name: freeze}
spec: {timeZone: Europe/Berlin, dates: [2026-12-24]}
"""


@pytest.fixture
def calendar(tmp_path: Path) -> Path:
    file = tmp_path / "calendar.yaml"
    file.write_text(CALENDAR)
    return file


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_lines_have_time_actor_change_and_reason(run: Run, calendar: Path) -> None:
    result = run("simulate", calendar, "--from", "2026-12-23T00:00:00Z", "--for", "2d", "-o", "json")

    *entries, end = _lines(result.stdout)
    assert result.exit_code == 0
    assert end == {"end": "2026-12-25T00:00:00Z", "complete": True}
    begin = [entry for entry in entries if entry["at"] == "2026-12-23T23:00:00Z"]
    assert [(entry["actor"], entry["verb"], entry["object"]) for entry in begin] == [
        ("springtide-calendar", "patch", {"kind": "Calendar", "namespace": "", "name": "freeze"})
    ]
    assert begin[0]["change"]["status.conditions[Active].status"] == ["False", "True"]
    assert begin[0]["because"] == "2026-12-24 is in the calendar (Europe/Berlin)"


def test_text_has_time_actor_change_and_reason(run: Run, calendar: Path) -> None:
    result = run("simulate", calendar, "--from", "2026-12-23T00:00:00Z", "--for", "2d")

    assert "2026-12-23T23:00:00Z  Calendar freeze: patch by springtide-calendar" in result.stdout
    assert "    status.conditions[Active].status: False → True" in result.stdout
    assert "    because 2026-12-24 is in the calendar (Europe/Berlin)" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("2026-12-25T00:00:00Z  end: ")


CAPPED = Path(__file__).parents[1] / "fixtures" / "black-friday-capped.yaml"
NODES = Path(__file__).parents[2] / "examples" / "nodes.yaml"
BLACK_FRIDAY = ("--from", "2026-11-26T00:00:00Z", "--for", "3d")
SUMMARY = [
    "Deployment default/web: 2 to 3 replicas in 2 changes, 2 at the end",
    "HorizontalAutoscaler default/web: capped at maxReplicas 3 for 16h; 20 replicas were asked for",
]


def test_the_summary_names_replicas_and_the_bound_that_cut_them(run: Run) -> None:
    result = run("simulate", CAPPED, NODES, *BLACK_FRIDAY)
    *trace, summary, replicas, bound, end = result.stdout.splitlines()
    assert len(trace) > 50
    assert [summary, replicas.strip(), bound.strip()] == ["summary", *SUMMARY]
    assert end.startswith("2026-11-29T00:00:00Z  end: ")


def test_quiet_prints_the_summary_only(run: Run) -> None:
    result = run("simulate", CAPPED, NODES, *BLACK_FRIDAY, "--quiet")
    assert result.exit_code == 0
    assert [line.strip() for line in result.stdout.splitlines()[:-1]] == ["summary", *SUMMARY]
    data = run("simulate", CAPPED, NODES, *BLACK_FRIDAY, "--quiet", "-o", "json")
    assert _lines(data.stdout) == [{"end": "2026-11-29T00:00:00Z", "complete": True, "summary": SUMMARY}]


def test_pods_that_stay_pending_are_counted(run: Run) -> None:
    """The third one, of the scheduled day, is deleted while it is pending."""
    result = run("simulate", CAPPED, *BLACK_FRIDAY, "--quiet")
    assert (
        "2 pods: FailedScheduling, first at 2026-11-26T00:00:00Z: no nodes available to schedule pods" in result.stdout
    )


def test_an_autoscaler_of_kubernetes_that_is_capped_is_named(run: Run, tmp_path: Path) -> None:
    producer, _, deployment = CAPPED.read_text(encoding="utf-8").split("---\n")
    autoscaler = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 4
  maxReplicas: 8
  metrics:
  - type: External
    external:
      metric: {name: karpenter_scheduled_capacity, selector: {matchLabels: {name: web}}}
      target: {type: AverageValue, averageValue: "1"}
"""
    file = tmp_path / "stock.yaml"
    file.write_text("---\n".join((producer, autoscaler, deployment)), encoding="utf-8")
    lines = run("simulate", file, NODES, *BLACK_FRIDAY, "--quiet").stdout.splitlines()
    assert lines[1].strip() == "Deployment default/web: 2 to 8 replicas in 3 changes, 4 at the end"
    assert [re.sub("for .*", "", line).strip() for line in lines[2:4]] == [
        "HorizontalPodAutoscaler default/web: held at minReplicas 4",
        "HorizontalPodAutoscaler default/web: capped at maxReplicas 8",
    ]


@pytest.mark.parametrize(
    ("chosen", "kinds"),
    [
        pytest.param(["--kind", "deploy"], {"Deployment", "Event"}, id="a-kind-by-its-short-name"),
        pytest.param(
            ["--kind", "Deployment", "--kind", "hauto"], {"Deployment", "HorizontalAutoscaler", "Event"}, id="two"
        ),
        pytest.param(["--object", "horizontalautoscaler/web"], {"HorizontalAutoscaler", "Event"}, id="an-object"),
        pytest.param(["--object", "deployment/other"], set(), id="an-object-that-does-not-exist"),
    ],
)
def test_kinds_and_objects_can_be_chosen(run: Run, chosen: list[str], kinds: set[str]) -> None:
    """Events are those about the chosen objects."""
    result = run("simulate", CAPPED, NODES, *BLACK_FRIDAY, *chosen, "-o", "json")
    *entries, end = _lines(result.stdout)
    assert end == {"end": "2026-11-29T00:00:00Z", "complete": True}
    about = {
        entry["change"]["involvedObject"][1]["kind"]
        for entry in entries
        if entry["object"]["kind"] == "Event" and "involvedObject" in entry["change"]
    }
    assert {entry["object"]["kind"] for entry in entries} | about <= kinds
    assert {entry["object"]["kind"] for entry in entries} >= kinds - {"Event"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--kind", "Deploymnt"], "did you mean Deployment?", id="a-misspelt-kind"),
        pytest.param(["--object", "web"], "is not KIND/NAME", id="no-kind"),
        pytest.param(["--object", "thing/web"], "has no kind 'thing'", id="an-unknown-kind"),
    ],
)
def test_a_wrong_choice_says_what_is_expected(run: Run, arguments: list[str], words: str) -> None:
    result = run("simulate", CAPPED, *arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("start", "zones", "begins", "notes"),
    [
        pytest.param("2026-12-24", ["Europe/Berlin"], "2026-12-23T23:00:00Z", False, id="a-date-of-the-zone"),
        pytest.param("2026-12-24T08:00", ["Asia/Tokyo"], "2026-12-23T23:00:00Z", False, id="a-time-of-the-zone"),
        pytest.param("2026-12-24T08:00:00Z", ["Asia/Tokyo"], "2026-12-24T08:00:00Z", False, id="with-an-offset"),
        pytest.param("2026-12-24", ["Asia/Tokyo", "Europe/Berlin"], "2026-12-24T00:00:00Z", True, id="several-zones"),
    ],
)
def test_a_local_start_is_read_in_the_zone_of_the_objects(
    run: Run, tmp_path: Path, start: str, zones: list[str], begins: str, notes: bool
) -> None:
    file = tmp_path / "calendars.yaml"
    head = "apiVersion: springtide.dev/v1alpha1, kind: Calendar, metadata: {name: c"
    file.write_text(
        "\n---\n".join(
            f"{{{head}{number}}}, spec: {{timeZone: {zone}, dates: [2027-01-01]}}}}"
            for number, zone in enumerate(zones)
        )
    )
    result = run("simulate", file, "--from", start, "--for", "1h", "-o", "json")
    assert _lines(result.stdout)[0]["at"] == begins
    said = f"note: {start} is read in UTC, as {begins}: the manifests name {', '.join(zones)}"
    assert result.stderr == (f"{said}\n" if notes else "")


def test_the_same_seed_gives_the_same_trace_under_faults(run: Run, calendar: Path) -> None:
    arguments = (
        "simulate",
        calendar,
        "--from",
        "2026-12-23T00:00:00Z",
        "--for",
        "2h",
        "--faults",
        "heavy",
        "-o",
        "json",
    )
    first, again, other = run(*arguments, "--seed", 3), run(*arguments, "--seed", 3), run(*arguments, "--seed", 4)

    assert first.exit_code == 0
    assert first.stdout == again.stdout
    assert first.stdout != other.stdout


def test_workloads_run_on_the_nodes_of_the_manifests(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text("""
apiVersion: v1
kind: Node
metadata: {name: machine}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
""")
    result = run("simulate", file, "--for", "5m", "-o", "json")

    entries = _lines(result.stdout)[:-1]
    running = [entry for entry in entries if entry["change"].get("status.phase") == ["Pending", "Running"]]
    available = [entry for entry in entries if entry["change"].get("status.availableReplicas", [0, 0])[1] == 2]
    assert result.exit_code == 0, result.stderr
    assert len(running) == 2
    assert [entry["object"]["kind"] for entry in available] == ["ReplicaSet", "Deployment"]


def test_manifests_with_errors_are_not_simulated(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(CALENDAR.replace("2026-12-24", "2026-13-24"))

    result = run("simulate", file)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert "2026-13-24" in result.stderr
    assert "nothing was simulated" in result.stderr


def test_all_refusals_of_the_api_server_are_shown(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "refused.yaml"
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec: {ports: [{port: 80}]}\n"
    file.write_text("---\n".join(service.replace("NAME", name) for name in ("UPPER", "fine", "MORE")))

    result = run("simulate", file, "-o", "json")

    assert result.exit_code == 1
    assert result.stdout == ""
    first, second, last = result.stderr.splitlines()
    assert first.startswith(f'{file}:1: error: Service "UPPER" is invalid: metadata.name')
    assert second.startswith(f'{file}:11: error: Service "MORE" is invalid: metadata.name')
    assert last == "nothing was simulated: the API server refuses the objects above"


def test_unknown_kinds_and_kinds_without_controller_are_noted(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "folder.yaml"
    file.write_text(
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}}\n---\n"
        "{apiVersion: springtide.dev/v1alpha1, kind: NodeClass, metadata: {name: machines},\n"
        "  spec: {provider: simulated}}\n---\n"
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n"
    )

    result = run("simulate", file, "--for", "1h")

    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"note: {file}:1: Ingress web (networking.k8s.io/v1): the cluster has no such kind, skipped",
        "note: no controller acts on NodeClass yet: such objects are only validated and stored",
    ]


def test_objects_without_a_zone_use_the_default_one(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "calendar.yaml"
    file.write_text(CALENDAR.replace("timeZone: Europe/Berlin, ", ""))

    result = run(
        *("simulate", file, "--from", "2026-12-23", "--for", "3d", "-o", "json", "--default-timezone", "Asia/Tokyo")
    )

    active = [entry for entry in _lines(result.stdout) if "status.conditions[Active].status" in entry.get("change", {})]
    assert [entry["at"] for entry in active] == ["2026-12-23T15:00:00Z", "2026-12-24T15:00:00Z"]


def test_a_failing_controller_ends_the_simulation(run: Run, calendar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("springtide.controllers.calendar.controller.decide", fail)

    result = run("simulate", calendar, "--from", "2026-12-23T00:00:00Z", "--for", "1d", "-o", "json")

    assert result.exit_code == 1
    assert _lines(result.stdout)[-1]["complete"] is False
    assert "KeyError: 'a bug'" in result.stderr
    assert "--from 2026-12-23T00:00:00Z --for 86400s --faults none --seed 0" in result.stderr


def test_text_is_concise(run: Run, tmp_path: Path) -> None:
    """A new condition is one line with reason and message, and counts of events are left out."""
    file = tmp_path / "pod.yaml"
    file.write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}")

    result = run("simulate", file, "--for", "5m")

    assert (
        "    status.conditions[PodScheduled]: False, Unschedulable: no nodes available to schedule pods"
        in result.stdout
    )
    assert "count" not in result.stdout


@pytest.mark.parametrize("moment", ["9999-12-30", "9999-12-31T23:59:59Z"])
def test_a_simulation_cannot_go_beyond_the_calendar(run: Run, calendar: Path, moment: str) -> None:
    result = run("simulate", calendar, "--from", moment, "--for", "7d")

    assert result.exit_code == 2
    assert "would end after the year 9999" in result.stderr


def test_text_in_another_encoding_than_utf_8(calendar: Path) -> None:
    springtide = [sys.executable, "-c", "from springtide.cli import main; main()"]
    for output in ("text", "json"):
        result = subprocess.run(
            [*springtide, "simulate", calendar, "--from", "2026-12-23", "--for", "2d", "-o", output],
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
        )
        assert (result.returncode, result.stderr) == (0, b"")
        assert (b"False -> True" in result.stdout) is (output == "text")


def test_a_missing_file_is_an_error(run: Run, tmp_path: Path) -> None:
    result = run("simulate", tmp_path / "missing.yaml")

    assert result.exit_code == 2


def test_after_ctrl_c_the_trace_is_marked_as_incomplete(calendar: Path) -> None:
    # A shell ignores SIGINT in what it runs in the background, and children inherit that.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    springtide = [sys.executable, "-c", f"{program}; from springtide.cli import main; main()"]
    with subprocess.Popen(
        [*springtide, "simulate", calendar, "--from", "2026-12-01", "--for", "520w", "--faults", "light", "-o", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=60)
        finally:
            process.kill()

    *_, end = _lines((first + rest).decode())
    assert process.returncode == 130
    assert end["complete"] is False
    assert end["end"] < "2036"
    assert b"Traceback" not in errors
