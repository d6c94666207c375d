"""`springtide check`: exit codes, output formats and inputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run

Write = Callable[[str, str], Path]

FINE = """\
apiVersion: springtide.dev/v1alpha1
kind: Calendar
metadata:
  name: fine
spec:
  yearly: ["12-25"]
"""
WARNED = FINE.replace('yearly: ["12-25"]', "{}").replace("spec:\n  {}", "spec: {}").replace("name: fine", "name: empty")
WRONG = FINE.replace("12-25", "13-45").replace("name: fine", "name: wrong")
UNREADABLE = "a: [\n"


@pytest.mark.parametrize(
    ("texts", "options", "code"),
    [
        pytest.param([FINE], [], 0, id="fine"),
        pytest.param([WARNED], [], 0, id="warnings pass"),
        pytest.param([WARNED], ["--strict"], 1, id="warnings fail if strict"),
        pytest.param([FINE], ["--strict"], 0, id="strict and fine"),
        pytest.param([WRONG], [], 1, id="an error"),
        pytest.param([UNREADABLE], [], 2, id="unreadable"),
        pytest.param([UNREADABLE, WRONG, FINE], [], 2, id="unreadable has precedence"),
        pytest.param(["apiVersion: example.com/v1\nkind: Widget\n"], ["--strict"], 0, id="an unknown kind is skipped"),
    ],
)
def test_exit_codes(run: Run, write: Write, texts: list[str], options: list[str], code: int) -> None:
    files = [write(f"{number}.yaml", text) for number, text in enumerate(texts)]
    assert run("check", *files, *options).exit_code == code


def test_files_that_cannot_be_read_do_not_hide_problems_of_others(run: Run, write: Write, tmp_path: Path) -> None:
    wrong = write("wrong.yaml", WRONG)
    result = run("check", tmp_path / "absent.yaml", write("broken.yaml", UNREADABLE), wrong)
    assert result.exit_code == 2
    assert "absent.yaml: error: no such file or directory" in result.stdout
    assert f"{wrong}:6:12: error: Calendar/wrong spec.yearly[0]: 13-45 is not a date of any year" in result.stdout


def test_json_has_every_key_of_the_contract(run: Run, write: Write) -> None:
    wrong = write("wrong.yaml", WRONG)
    result = run("check", wrong, "-o", "json")
    assert json.loads(result.stdout) == {
        "problems": [
            {
                "file": str(wrong),
                "line": 6,
                "column": 12,
                "apiVersion": "springtide.dev/v1alpha1",
                "kind": "Calendar",
                "namespace": None,
                "name": "wrong",
                "path": "spec.yearly[0]",
                "message": "13-45 is not a date of any year",
                "hint": "",
                "severity": "error",
            }
        ]
    }


def test_json_of_an_unreadable_document_has_line_and_column(run: Run, write: Write) -> None:
    (problem,) = json.loads(run("check", write("x.yaml", "a: 'b\n"), "-o", "json").stdout)["problems"]
    assert (problem["line"], problem["column"], problem["kind"]) == (1, 4, None)


def test_github_annotations_are_escaped(run: Run, write: Write) -> None:
    result = run("check", write("a,b.yaml", WRONG), "-o", "github")
    assert result.stdout.startswith("::error file=")
    assert "a%2Cb.yaml,line=6,col=12,title=spec.yearly[0]::13-45 is not" in result.stdout


def test_a_folder_is_searched_for_manifests(run: Run, write: Write, tmp_path: Path) -> None:
    write("m/deep/one.yaml", FINE)
    write("m/two.yml", WRONG)
    write("m/three.json", json.dumps({"apiVersion": "springtide.dev/v1alpha1"}))
    write("m/notes.txt", "not: [yaml")
    result = run("check", tmp_path / "m")
    assert result.exit_code == 1
    assert "2 objects checked: 2 errors, 0 warnings." in result.stderr


def test_standard_input(run: Run) -> None:
    result = run("check", "-", input=WRONG)
    assert result.stdout.startswith("<stdin>:6:12: error:")


def test_no_colours_without_a_terminal(run: Run, write: Write) -> None:
    assert "\x1b" not in run("check", write("x.yaml", WRONG)).output


def test_a_file_that_is_not_utf_8_is_unreadable(run: Run, tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xff\n")
    result = run("check", tmp_path / "latin.yaml")
    assert result.exit_code == 2
    assert "line 2: not UTF-8 text" in result.stdout


def test_the_default_zone_is_an_option(run: Run) -> None:
    result = run("check", "-", "--default-timezone", "Europe/Berln", input=FINE)
    assert result.exit_code == 2
    assert "Europe/Berlin" in result.stderr


def test_a_file_that_is_named_twice_is_read_once(run: Run, write: Write, tmp_path: Path) -> None:
    path = write("m/a.yaml", FINE)
    assert "1 object checked, no problems." in run("check", path, tmp_path / "m", path).stderr


def test_unknown_kinds_are_only_noted(run: Run) -> None:
    result = run("check", "-", "--strict", input="apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\n")
    assert result.exit_code == 0
    assert "Provisioner (karpenter.sh/v1alpha5): not a kind that Springtide knows, skipped" in result.stderr


@pytest.mark.parametrize("output", ["text", "json", "github"])
def test_control_characters_are_escaped(run: Run, write: Write, output: str) -> None:
    hostile = r"\e[2J\x9b31m\u202egnp\r\n::error::forged"
    text = FINE.replace("name: fine", f'name: "{hostile}"').replace("yearly:", f'"{hostile}": 1\n  yearly:')

    shown = run("check", write("hostile.yaml", text), "-o", output).stdout

    assert "[2J" in shown
    assert not set("\x1b\x9b\u202e\r") & set(shown)
    assert not [line for line in shown.splitlines() if line.startswith("::error::forged")]


@pytest.mark.parametrize("output", ["text", "json", "github"])
def test_kinds_without_controller_are_noted_once(run: Run, output: str) -> None:
    machines = (
        "{apiVersion: springtide.dev/v1alpha1, kind: NodeClass, metadata: {name: NAME}, spec: {provider: simulated}}"
    )
    text = f"{machines.replace('NAME', 'a')}\n---\n{machines.replace('NAME', 'b')}\n"
    result = run("check", "-", "--strict", "-o", output, input=text)
    note = "note: no controller acts on NodeClass yet: such objects are only validated and stored\n"
    assert result.exit_code == 0
    assert result.stderr.count(note) == 1
    assert "NodeClass" not in result.stdout
