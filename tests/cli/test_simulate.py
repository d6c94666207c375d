"""`springtide simulate`: traces as text and as JSON lines, and what is refused."""

from __future__ import annotations

import json
import os
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
