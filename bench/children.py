"""Processes that benchmarks are made of: each answers lines with lines of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Child:
    """A process that answers lines with lines of JSON."""

    process: subprocess.Popen[str]

    def heard(self) -> Any:
        """Wait for its next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} has ended with {self.process.wait()}")
        return json.loads(line)

    def tell(self, line: str) -> None:
        """Give it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


@contextmanager
def child(module: str, *arguments: object) -> Iterator[Child]:
    """Run a module as a process of its own, which ends with the block."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Child(process)
    finally:
        process.terminate()
        process.communicate()
