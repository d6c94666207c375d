"""The command itself: --help, errors of the command line, and `springtide crds`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.conftest import Run

from springtide import __version__
from springtide.apis.crds import Flavour, all_crds
from springtide.apis.yaml import Document, read
from springtide.cli import main


def test_help_lists_every_command(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ("check", "preview", "explain-budget", "plan", "convert", "crds"):
        assert command in result.stdout


@pytest.mark.parametrize("command", ["check", "preview", "explain-budget", "plan", "convert", "crds"])
def test_help_of_a_command_has_an_example_or_exit_codes(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "springtide" in result.stdout or "Exit codes" in result.stdout


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"springtide, version {__version__}\n"


def test_an_unknown_command_suggests_a_similar_one(run: Run) -> None:
    result = run("chek", "x.yaml")
    assert result.exit_code == 2
    assert "Did you mean 'check'?" in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("springtide ex", ["explain", "explain-budget"], id="command"),
        pytest.param("springtide simulate --faults ", ["none", "light", "heavy"], id="value-of-an-option"),
        pytest.param("springtide up --nod", ["--nodes"], id="option"),
    ],
)
def test_shells_complete(shell: str, words: str, expected: list[str]) -> None:
    *before, last = words.split(" ")
    asked = {
        "bash": {"COMP_WORDS": words, "COMP_CWORD": str(len(before))},
        "zsh": {"COMP_WORDS": words, "COMP_CWORD": str(len(before))},
        # fish names the word at the cursor itself.
        "fish": {"COMP_WORDS": words, "COMP_CWORD": last},
    }
    environment = {"_SPRINGTIDE_COMPLETE": f"{shell}_complete", **asked[shell]}

    result = CliRunner().invoke(main, prog_name="springtide", env=environment)

    found = [
        line.partition("\t")[0].partition(",")[2] if shell != "zsh" else line for line in result.output.splitlines()
    ]
    assert [line for line in found if line in expected] == expected


def test_help_imports_no_command() -> None:
    """Start-up time: --help loads neither the API kinds nor the controllers."""
    probe = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from springtide.cli import main\n"
        "CliRunner().invoke(main, ['--help'])\n"
        "print(sorted(name for name in sys.modules if name.startswith('springtide.')))\n"
    )
    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['springtide.cli', 'springtide.cli.main']"


@pytest.mark.parametrize("flavour", list(Flavour))
def test_crds_are_printed_as_a_stream_of_documents(run: Run, flavour: Flavour) -> None:
    documents = read(run("crds", "--flavour", flavour).stdout)
    assert [found.value for found in documents if isinstance(found, Document)] == all_crds(flavour)


def test_crds_are_printed_as_a_list_in_json(run: Run) -> None:
    value = json.loads(run("crds", "-o", "json").stdout)
    assert (value["kind"], value["items"]) == ("List", all_crds(Flavour.EXTENDED))


def test_crds_are_written_to_a_file_each(run: Run, tmp_path: Path) -> None:
    result = run("crds", "--into", tmp_path / "crds")
    assert "13 CRDs written to" in result.stderr
    assert len(list((tmp_path / "crds").glob("*.yaml"))) == 13
