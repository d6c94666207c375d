"""`springtide convert` on objects of KEDA, cronhpa and kube-downscaler: replaced in place, and nothing else changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from springtide.apis.yaml import Document, read

Write = Callable[[str, str], Path]

EXAMPLES = Path(__file__).parents[2] / "examples" / "importers"

KEDA = """\
# the shop's office hours
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: shop
spec:
  scaleTargetRef: {name: shop}
  triggers:
  - type: cron   # local time
    metadata:
      timezone: Europe/Berlin
      start: 0 8 * * 1-5
      end: 0 18 * * 1-5
      desiredReplicas: "6"
"""
OTHER = "# of another project\napiVersion: example.com/v1\nkind: Widget\nspec: {b: 1,   a: 2}\n"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  annotations:
    downscaler/uptime: UPTIME
    note: stays  # and so does this
spec:
  replicas: 4
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: registry.example.com/shop:1}]}
"""


def kinds(text: str) -> list[str]:
    return [document.value["kind"] for document in read(text) if isinstance(document, Document)]


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_examples_become_objects_without_errors(run: Run, write: Write, name: str) -> None:
    converted = run("convert", EXAMPLES / name)
    assert converted.exit_code == 0
    checked = run("check", "-o", "json", write(name, converted.stdout))
    assert checked.exit_code == 0
    problems = json.loads(checked.stdout)["problems"]
    assert [problem for problem in problems if "is not in these files" not in problem["message"]] == []
    assert {"ScaledObject", "CronHorizontalPodAutoscaler"}.isdisjoint(kinds(converted.stdout))


def test_an_object_is_replaced_in_place(run: Run) -> None:
    result = run("convert", "-", input=f"{OTHER}---\n{KEDA}---\n{OTHER}")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{OTHER}---\n# the shop's office hours\napiVersion: autoscaling.karpenter.sh")
    assert result.stdout.endswith(f"---\n{OTHER}")
    assert kinds(result.stdout) == ["Widget", "MetricsProducer", "HorizontalAutoscaler", "Widget"]
    assert (
        "<stdin>:7: ScaledObject `shop` became MetricsProducer `shop` and HorizontalAutoscaler `shop`" in result.stderr
    )
    assert "<stdin>:14: the comment `# local time` was removed with its field" in result.stderr


def test_slips_before_an_object_have_their_original_lines(run: Run) -> None:
    text = f"{KEDA}---\napiversion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n"
    result = run("convert", "-", input=text)
    assert "<stdin>:16: `apiversion` is now `apiVersion`" in result.stderr
    assert result.stdout.endswith("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")


def test_annotations_are_removed_from_workloads(run: Run) -> None:
    result = run("convert", "-", "-q", input=DEPLOYMENT.replace("UPTIME", "Mon-Fri 08:00-18:00 UTC"))
    assert result.stdout.startswith(DEPLOYMENT.replace("    downscaler/uptime: UPTIME\n", ""))
    assert kinds(result.stdout) == ["Deployment", "MetricsProducer", "HorizontalAutoscaler"]
    assert "warning: Deployment/shop spec.replicas: applying Deployment `shop` again sets" in result.stderr
    assert result.stderr.count("warning") == 1


def test_files_are_changed_in_place_and_only_once(run: Run, write: Write) -> None:
    path = write("a.yaml", KEDA)
    assert run("convert", "-w", path).exit_code == 0
    converted = path.read_text(encoding="utf-8")
    assert kinds(converted) == ["MetricsProducer", "HorizontalAutoscaler"]
    assert run("convert", path).stdout == converted


def test_line_ends_are_kept(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_bytes(KEDA.replace("\n", "\r\n").encode())
    run("convert", "-w", path)
    data = path.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") > 20


def test_members_of_a_list_are_replaced_in_the_list(run: Run) -> None:
    member = KEDA.partition("\n")[2].replace("\n", "\n  ").rstrip()
    widget = "- {apiVersion: example.com/v1, kind: Widget}  # stays"
    result = run("convert", "-", "-q", input=f"apiVersion: v1\nkind: List\nitems:\n{widget}\n- {member}\n")
    (document,) = read(result.stdout)
    assert isinstance(document, Document)
    assert [item["kind"] for item in document.value["items"]] == ["Widget", "MetricsProducer", "HorizontalAutoscaler"]
    assert widget in result.stdout


@pytest.mark.parametrize("indent", [None, 2])
def test_json_stays_json(run: Run, indent: int | None) -> None:
    (document,) = read(KEDA)
    assert isinstance(document, Document)
    result = run("convert", "-", "-q", input=json.dumps(document.value, indent=indent) + "\n")
    value = json.loads(result.stdout)
    assert [item["kind"] for item in value["items"]] == ["MetricsProducer", "HorizontalAutoscaler"]
    assert (len(result.stdout.splitlines()) > 1) is (indent is not None)


def test_a_document_on_the_line_of_its_marker(run: Run) -> None:
    trigger = "{type: cron, metadata: {timezone: UTC, start: 0 8 * * *, end: 0 9 * * *, desiredReplicas: '2'}}"
    spec = f"{{scaleTargetRef: {{name: b}}, triggers: [{trigger}]}}"
    inline = f"--- {{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {{name: a}}, spec: {spec}}}\n"
    assert kinds(run("convert", "-", "-q", input=inline).stdout) == ["MetricsProducer", "HorizontalAutoscaler"]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        pytest.param(KEDA[KEDA.index("    metadata:\n      t") :], "", 9, "no `metadata`", id="no metadata"),
        pytest.param('      desiredReplicas: "6"\n', "", 10, "no `desiredReplicas`", id="no replicas"),
        pytest.param("      timezone: Europe/Berlin\n", "", 10, "no `timezone`", id="no zone"),
        pytest.param("0 8 * * 1-5", '"-30 * * * *"', 12, "minute '-30'", id="negative minute"),
        pytest.param("0 18 * * 1-5", "0 18 * -3 1-5", 13, "month '-3'", id="negative month"),
        pytest.param("0 18 * * 1-5", "0 8 * * 1-5", 13, "start and end are the same", id="start is end"),
    ],
)
def test_errors_of_keda_triggers_have_a_line(run: Run, old: str, new: str, line: int, said: str) -> None:
    text = KEDA.replace(old, new)
    result = run("convert", "-", input=text)
    assert result.exit_code == 1
    assert result.stdout == text
    assert f"<stdin>:{line}:" in result.stderr
    assert "error: " in result.stderr
    assert said in result.stderr


def test_an_error_does_not_stop_other_conversions(run: Run) -> None:
    broken = KEDA.replace("Europe/Berlin", "Mars/One")
    result = run("convert", "-", input=f"{broken}---\n{KEDA}")
    assert result.exit_code == 1
    assert result.stdout.startswith(broken)
    assert kinds(result.stdout) == ["ScaledObject", "MetricsProducer", "HorizontalAutoscaler"]


def test_exit_code_2_for_unreadable_documents_has_precedence(run: Run) -> None:
    broken = KEDA.replace("Europe/Berlin", "Mars/One")
    assert run("convert", "-", input=f"a: [\n---\n{broken}").exit_code == 2


@pytest.mark.parametrize(
    ("uptime", "at", "replicas"),
    [
        pytest.param("Sat-Sun 15:30-16:00 UTC", "2017-11-26T15:33:00Z", 4, id="in the window"),
        pytest.param("Sat-Sun 15:34-16:00 UTC", "2017-11-26T15:33:00Z", 0, id="before the window"),
        pytest.param("Mon-Fri 08:00-18:00 UTC", "2017-11-26T15:33:00Z", 0, id="other weekday"),
        pytest.param("Mon-Fri 09:00-10:00 Pacific/Auckland", "2018-11-04T20:30:00Z", 4, id="other weekday in UTC"),
        pytest.param("Mon-Mon 00:00-00:00 CET", "2026-01-05T00:00:00Z", 0, id="empty window"),
        pytest.param("Mon-Sun 00:00-24:00 CET", "2026-01-05T00:00:00Z", 4, id="always"),
    ],
)
def test_uptime_means_the_same_as_in_kube_downscaler(
    run: Run, write: Write, uptime: str, at: str, replicas: int
) -> None:
    path = write("a.yaml", run("convert", "-", "-q", input=DEPLOYMENT.replace("UPTIME", uptime)).stdout)
    result = run("preview", "-o", "json", "--from", at, path)
    assert result.exit_code == 0
    (shown,) = (item for item in json.loads(result.stdout)["objects"] if item["kind"] == "MetricsProducer")
    (lane,) = shown["lanes"]
    assert lane["current"] == replicas
    if uptime.startswith(("Mon-Mon", "Mon-Sun")):
        assert lane["next"] is None


@pytest.mark.parametrize("uptime", ["Mon-Thur 08:00-18:00 UTC", '""'], ids=["name of four letters", "empty"])
def test_times_that_kube_downscaler_cannot_parse(run: Run, uptime: str) -> None:
    text = DEPLOYMENT.replace("UPTIME", uptime)
    result = run("convert", "-", input=text)
    assert (result.exit_code, result.stdout) == (1, text)
    assert "<stdin>:6:5: error: Deployment/shop metadata.annotations[downscaler/uptime]" in result.stderr
    assert "is not a time" in result.stderr


def test_an_invalid_result_is_refused(run: Run) -> None:
    text = KEDA.replace("name: shop\nspec", "name: My_Shop\nspec")
    result = run("convert", "-", input=text)
    assert (result.exit_code, result.stdout) == (1, text)
    assert "the new object is not valid: MetricsProducer.metadata.name" in result.stderr


def test_the_zone_of_the_controller_is_an_option(run: Run) -> None:
    text = DEPLOYMENT.replace("UPTIME", "Mon-Fri 08:00-18:00")
    assert run("convert", "-", input=text).exit_code == 1
    assert "timezone: Asia/Tokyo" in run("convert", "-", "--timezone", "Asia/Tokyo", input=text).stdout
    assert "did you mean Asia/Tokyo?" in run("convert", "-", "--timezone", "tokyo", input=text).stderr
