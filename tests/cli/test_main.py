"""The command itself: help that teaches, mistakes that are told kindly."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.cli.conftest import Run

from springtide import __version__


def test_help_lists_every_command(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ("check", "preview", "explain-budget", "convert", "crds"):
        assert command in result.stdout


@pytest.mark.parametrize("command", ["check", "preview", "explain-budget", "convert", "crds"])
def test_every_command_teaches_with_an_example_or_its_exit_codes(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "springtide" in result.stdout or "Exit codes" in result.stdout


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"springtide, version {__version__}\n"


def test_a_misspelt_command_is_answered_with_the_right_one(run: Run) -> None:
    result = run("chek", "x.yaml")
    assert result.exit_code == 2
    assert "Did you mean 'check'?" in result.stderr


def test_help_imports_no_command() -> None:
    """What makes help instant: neither the kinds nor the engines are loaded for it."""
    probe = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from springtide.cli import main\n"
        "CliRunner().invoke(main, ['--help'])\n"
        "print(sorted(name for name in sys.modules if name.startswith('springtide.')))\n"
    )
    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['springtide.cli', 'springtide.cli.main']"
