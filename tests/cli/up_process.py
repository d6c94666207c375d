"""Runs `springtide up` as a process, with the default handling of signals.

Child processes inherit ignored signals: under `nohup`, those of the tests would ignore SIGHUP.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

from springtide.cluster.http import HttpTransport, load_kubeconfig


@contextmanager
def signal_handler(number: int, handler: signal.Handlers) -> Iterator[None]:
    """Set the handler of a signal within the block."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


PATIENCE = 60.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Up:
    """A running `springtide up` process."""

    process: subprocess.Popen[str]
    kubeconfig: Path

    def ask(self, question: Callable[[HttpTransport], Awaitable[T]]) -> T:
        """Run requests to its API server."""

        async def asked() -> T:
            async with HttpTransport(load_kubeconfig(self.kubeconfig), random=Random(0)) as transport:
                return await question(transport)

        return asyncio.run(asked())

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Send a signal; returns the exit code and the whole output."""
        self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said


@contextmanager
def up(folder: Path, *arguments: object) -> Iterator[Up]:
    """Start the process and wait until it is ready; it is stopped at the end of the block."""
    kubeconfig = folder / "kubeconfig"
    process = started("up", *arguments, "--port", 0, "--kubeconfig", kubeconfig)
    try:
        deadline = time.monotonic() + PATIENCE
        while not kubeconfig.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise AssertionError(f"it is not up: {process.communicate()[0]}")
            time.sleep(0.05)
        yield Up(process, kubeconfig)
    finally:
        process.kill()
        process.communicate()


def started(*arguments: object) -> subprocess.Popen[str]:
    """Start `springtide` with arguments; standard output and error go to one stream."""
    command = [sys.executable, "-c", "from springtide.cli import main; main()", *map(str, arguments)]
    with signal_handler(signal.SIGHUP, signal.SIG_DFL):
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )
