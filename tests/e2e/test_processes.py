"""Programs during the tests: they are watched, and they never outlive the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.processes import Program, ProgramFailed, free_ports
from tests.e2e.waiting import eventually

_STARTER = """
import sys
from pathlib import Path
from tests.e2e.processes import Program
program = Program("sleeper", ["sh", "-c", "sleep 300 & sleep 300"], log=Path(sys.argv[1]))
program.start()
print(program.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Program]:
    program = Program("sleeper", ["sh", "-c", "echo begun; exec sleep 300"], log=tmp_path / "log")
    yield program
    if program.running:
        program.kill()


def test_a_program_can_be_stopped_and_started_again(sleeper: Program) -> None:
    sleeper.start()
    first = sleeper.pid
    sleeper.wait_until("begun", lambda: "begun" in sleeper.last_words())

    assert sleeper.stop() == -signal.SIGTERM
    assert not sleeper.running

    sleeper.start()

    assert sleeper.running
    assert sleeper.pid != first


def test_a_halted_program_can_be_stopped(sleeper: Program) -> None:
    sleeper.start()
    sleeper.signal(signal.SIGSTOP)

    assert sleeper.stop() == -signal.SIGTERM


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    stubborn = Program(
        "stubborn", ["sh", "-c", "trap '' TERM; echo deaf; sleep 300 & wait; wait"], log=tmp_path / "log"
    )
    stubborn.start()
    stubborn.wait_until("deaf", lambda: "deaf" in stubborn.last_words())

    assert stubborn.stop(patience=0.2) == -signal.SIGKILL


def test_a_program_that_exits_early_is_reported_with_its_last_output(tmp_path: Path) -> None:
    broken = Program("broken", ["sh", "-c", "echo no such flag >&2; exit 2"], log=tmp_path / "log")
    broken.start()

    with pytest.raises(ProgramFailed, match=r"broken has ended, expected it to be ready:\nno such flag"):
        broken.wait_until("ready", lambda: False)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of the death of their parents")
def test_programs_die_with_their_parent_process(tmp_path: Path) -> None:
    """Also where it is killed, and can clear nothing away."""
    with subprocess.Popen(
        [sys.executable, "-c", _STARTER, str(tmp_path / "log")],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        os.kill(pid, 0)
        starter.kill()

    eventually("the program is gone", lambda: not Path(f"/proc/{pid}").exists(), patience=5)


def test_free_ports_are_different() -> None:
    ports = free_ports(20)

    assert len(set(ports)) == 20
