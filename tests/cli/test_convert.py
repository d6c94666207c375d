"""`springtide convert`: canonical text, a list of the changes, and nothing else changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run

Write = Callable[[str, str], Path]

CRON = """\
# a peak
apiVersion: autoscaling.karmada.io/v1alpha1
kind: CronFederatedHPA
metadata:
  name: a   # keep me
spec:
  scaleTargetRef: {apiVersion: app/v1, kind: Deployment, name: shop}
  rules:
  - ruleName: "up"
    schedule: "30 08 * * *"
    targetReplicas: 3
"""
CONVERTED = CRON.replace("app/v1", "apps/v1").replace("ruleName", "name")


def test_slips_are_corrected_and_listed(run: Run, write: Write) -> None:
    path = write("a.yaml", CRON)
    result = run("convert", path)
    assert result.exit_code == 0
    assert result.stdout == CONVERTED
    assert f"{path}:7: spec.scaleTargetRef.apiVersion" in result.stderr
    assert f"{path}:9: spec.rules[0].ruleName" in result.stderr


def test_quiet_lists_no_changes(run: Run, write: Write) -> None:
    assert run("convert", "-q", write("a.yaml", CRON)).stderr == ""


def test_files_are_changed_in_place_on_request(run: Run, write: Write) -> None:
    path = write("a.yaml", CRON)
    result = run("convert", "--write", path)
    assert result.stdout == ""
    assert path.read_text(encoding="utf-8") == CONVERTED


def test_a_file_in_canonical_form_is_not_written(run: Run, write: Write) -> None:
    path = write("a.yaml", CONVERTED)
    before = path.stat().st_mtime_ns
    assert run("convert", "-w", path).exit_code == 0
    assert path.stat().st_mtime_ns == before


def test_line_ends_are_kept(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_bytes(CRON.replace("\n", "\r\n").encode())
    run("convert", "-w", path)
    assert path.read_bytes() == CONVERTED.replace("\n", "\r\n").encode()


def test_several_files_become_one_stream(run: Run, write: Write) -> None:
    first, second = write("a.yaml", CONVERTED), write("b.yaml", CONVERTED.rstrip("\n"))
    assert run("convert", first, second).stdout == f"{CONVERTED}---\n{CONVERTED}"


def test_standard_input(run: Run) -> None:
    assert run("convert", "-", "-q", input=CRON).stdout == CONVERTED


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [\n", id="unreadable"),
        pytest.param("apiVersion: example.com/v1\nkind: Widget\nspec: {b: 1,   a: 2}\n", id="unknown kind"),
        pytest.param("", id="empty"),
        pytest.param("# only a comment\n", id="comment"),
        pytest.param("just text\n", id="text"),
    ],
)
def test_other_text_is_left_unchanged(run: Run, text: str) -> None:
    assert run("convert", "-", input=text).stdout == text


def test_unreadable_documents_are_reported_and_others_converted(run: Run) -> None:
    result = run("convert", "-", input=f"a: [\n---\n{CRON}")
    assert result.exit_code == 2
    assert result.stdout == f"a: [\n---\n{CONVERTED}"
    assert "<stdin>:1:" in result.stderr


def test_members_of_a_list_are_converted(run: Run) -> None:
    member = CRON.replace("# a peak\n", "").replace("\n", "\n    ").strip()
    text = f"apiVersion: v1\nkind: List\nitems:\n  - {member}\n"
    result = run("convert", "-", "-q", input=text)
    assert result.stdout == text.replace("app/v1", "apps/v1").replace("ruleName", "name")


BETA_POOL = """\
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      nodeClassRef:
        apiVersion: karpenter.k8s.aws/v1beta1
        kind: EC2NodeClass
        name: default
      requirements: []
  disruption:
    consolidationPolicy: WhenUnderutilized  # save money
    expireAfter: 48h
    budgets:
    - nodes: 10%   # a tenth
"""
POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      nodeClassRef:
        group: karpenter.k8s.aws
        kind: EC2NodeClass
        name: default
      requirements: []
      expireAfter: 48h
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized  # save money
    budgets:
    - nodes: 10%   # a tenth
    budgetDefault: Fallback
    expirationPolicy: Graceful
"""


def test_v1beta1_pools_become_v1(run: Run) -> None:
    assert run("convert", "-", "-q", input=BETA_POOL).stdout == POOL


def test_moved_and_added_fields_are_listed(run: Run) -> None:
    output = run("convert", "-", input=BETA_POOL).stderr
    assert "`spec.disruption.expireAfter` was moved to `spec.template.spec.expireAfter`" in output
    assert "`spec.disruption.budgetDefault: Fallback` was added" in output


def test_lost_comments_are_listed(run: Run) -> None:
    result = run("convert", "-", input=BETA_POOL.replace("expireAfter: 48h", "expireAfter: 48h  # two days"))
    assert "# two days" not in result.stdout
    assert "<stdin>:15: the comment `# two days` was removed with its field" in result.stderr


def test_renamed_lists_keep_their_form_and_comments(run: Run) -> None:
    text = BETA_POOL.replace(
        "    - nodes: 10%   # a tenth\n", "    - nodes: 10%\n      reason: [drift, empty]  # why\n"
    )
    assert "      reasons: [Drifted, Empty]  # why\n" in run("convert", "-", "-q", input=text).stdout


@pytest.mark.parametrize("indent", [None, 2])
def test_json_stays_json(run: Run, indent: int | None) -> None:
    rule = {"ruleName": "up", "schedule": "0 9 * * *", "targetReplicas": 3}
    value = {
        "apiVersion": "autoscaling.karmada.io/v1alpha1",
        "kind": "CronFederatedHPA",
        "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "b"}, "rules": [rule]},
    }
    result = run("convert", "-", "-q", input=json.dumps(value, indent=indent) + "\n")
    rule["name"] = rule.pop("ruleName")
    assert json.loads(result.stdout) == value
    assert (len(result.stdout.splitlines()) > 1) is (indent is not None)


def test_a_file_that_cannot_be_written_is_reported(run: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    path = write("a.yaml", CRON)
    monkeypatch.setattr(Path, "write_bytes", refuse)
    result = run("convert", "-w", path)
    assert result.exit_code == 2
    assert f"{path}: permission denied" in result.stderr


def test_misspelled_type_fields_are_corrected_before_the_conversion(run: Run) -> None:
    result = run("convert", "-", input=BETA_POOL.replace("apiVersion: karpenter.sh", "apiVersio: karpenter.sh"))
    assert result.stdout == POOL
    assert "<stdin>:1: `apiVersio` is now `apiVersion`" in result.stderr


def test_changes_have_the_lines_of_the_original_text(run: Run) -> None:
    text = """\
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: a}
spec:
  scheduleSpec:
    defaultReplicas: 1
    behaviors:
    - replicas: 2
      start: {weekdays: Mon-Fri}
      end: {weekdays: Sat}
"""
    output = run("convert", "-", input=text).stderr.splitlines()
    assert [line.split(" ")[0] for line in output] == ["<stdin>:5:", "<stdin>:9:"]
    assert "spec.scheduleSpec.behaviors[0].start.weekdays" in output[1]


def test_kinds_of_ours_in_a_wrong_group_are_errors(run: Run) -> None:
    text = "apiVersion: springtide.dev/v1alpha1\nkind: MetricsProducer\nmetadata: {name: a}\n"
    result = run("convert", "-", input=text)
    assert (result.exit_code, result.stdout) == (1, text)
    assert "there is no MetricsProducer in springtide.dev/v1alpha1" in result.stderr
    assert "write autoscaling.karpenter.sh/v1alpha1" in result.stderr
