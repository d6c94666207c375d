"""What the benchmarks print is true in one run, whatever ran before in the same process."""

from __future__ import annotations

import subprocess
import sys

from bench.children import memory, peak_memory

MEGABYTE = 1_000_000


def test_the_peak_of_a_child_is_its_own() -> None:
    """Also if the process that starts it is large."""
    ballast = bytearray(b"x") * (300 * MEGABYTE)
    command = "from bench.children import peak_memory; print(peak_memory())"
    printed = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout

    assert len(ballast) == 300 * MEGABYTE
    assert memory() > 300
    assert 5 < float(printed) < 100


def test_the_peak_stays_when_memory_is_freed() -> None:
    before = memory()
    ballast = bytearray(b"x") * (200 * MEGABYTE)
    del ballast

    assert peak_memory() > before + 150
    assert memory() < peak_memory()
