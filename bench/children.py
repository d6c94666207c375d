"""Child processes of benchmarks: each answers lines on its standard input with lines of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def memory() -> float:
    """Return the resident memory of this process, in MB."""
    return _status("VmRSS")


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in MB.

    The `ru_maxrss` of getrusage survives exec: that of a child begins with what its parent had when it was started.
    """
    return _status("VmHWM")


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    kibibytes = next(line.split()[1] for line in lines if line.startswith(f"{field}:"))
    return int(kibibytes) * 1024 / 1e6


@dataclass(frozen=True, slots=True)
class Child:
    """A process that answers lines with lines of JSON."""

    process: subprocess.Popen[str]

    def read(self) -> Any:
        """Wait for the next line of JSON."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} exited with {self.process.wait()}")
        return json.loads(line)

    def send(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


@contextmanager
def child(module: str, *arguments: object) -> Iterator[Child]:
    """Run a module as a separate process, which is terminated at the end of the block."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Child(process)
    finally:
        process.terminate()
        process.communicate()
