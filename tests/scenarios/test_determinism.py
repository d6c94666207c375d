"""The same seed gives the same trace, byte for byte, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.scenarios.calendar_lease import LENGTH, calendar_lease

import springtide

_ROOT = Path(__file__).parents[2]
_SOURCES = Path(springtide.__file__).parents[1]
"""The code that this process tests: an installed package must not come before it in the others."""


def _output_of(*arguments: str, hash_seed: str = "1") -> bytes:
    paths = os.pathsep.join((str(_SOURCES), str(_ROOT)))
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=_ROOT, env=environment, check=True, stdout=subprocess.PIPE).stdout


def _trace(story: str, seed: int, hash_seed: str, *options: str) -> bytes:
    return _output_of(*options, "-m", "tests.scenarios.story", story, str(seed), hash_seed=hash_seed)


def test_other_processes_run_the_code_of_this_one() -> None:
    found = _output_of("-c", "import springtide; print(springtide.__file__)").decode().strip()

    assert found == springtide.__file__


@pytest.mark.parametrize("story", ["lease", "year"])
def test_two_processes_produce_the_same_trace(story: str) -> None:
    """Neither hash randomisation nor the layout of memory nor asyncio's debug mode makes a difference."""
    first = _trace(story, 5, "1")
    second = _trace(story, 5, "4711", "-X", "dev", "-W", "ignore")

    assert first.count(b"\n") > 20
    assert first == second


def test_another_seed_produces_another_trace() -> None:
    assert calendar_lease().run(LENGTH, seed=1).trace_bytes() != calendar_lease().run(LENGTH, seed=2).trace_bytes()


def test_a_run_does_not_affect_the_next_run() -> None:
    """Caches of compiled schemas and the like are shared by all worlds of a process."""
    first = calendar_lease().run(LENGTH, seed=4).trace_bytes()
    calendar_lease().run(LENGTH, seed=9)

    assert first == calendar_lease().run(LENGTH, seed=4).trace_bytes()
