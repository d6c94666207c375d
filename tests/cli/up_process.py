"""How the process of the tests treats a signal, which what it starts inherits.

Tests may themselves be run by something that survives its terminal: what that ignores, they would ignore, too.

Runs `springtide up` as a process of its own, as people do.
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
def treating(number: int, handler: signal.Handlers) -> Iterator[None]:
    """Treat a signal so for a while."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


PATIENCE = 60.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Up:
    """A process that is up."""

    process: subprocess.Popen[str]
    kubeconfig: Path

    def ask(self, question: Callable[[HttpTransport], Awaitable[T]]) -> T:
        """Talk to its API server."""

        async def asked() -> T:
            async with HttpTransport(load_kubeconfig(self.kubeconfig), random=Random(0)) as transport:
                return await question(transport)

        return asyncio.run(asked())

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Send it a signal, and give its exit code and all it has said."""
        self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said


@contextmanager
def up(folder: Path, *arguments: object) -> Iterator[Up]:
    """Start it and wait until it is ready; it is gone when the block is left."""
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
    """Start `springtide` with these arguments; what it says on both streams comes together."""
    command = [sys.executable, "-c", "from springtide.cli import main; main()", *map(str, arguments)]
    with treating(signal.SIGHUP, signal.SIG_DFL):
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )
