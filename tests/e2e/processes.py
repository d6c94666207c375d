"""Programs that run during the tests: each with a log and a process group of its own, and none stays behind."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_LAUNCHER = Path(__file__).parent / "launch.py"
_TOLD = 40
"""How many lines of its log are shown of a program that failed."""


class ProgramFailed(Exception):
    """A program has ended, or does not do what it was started for; the message shows its last words."""


class Program:
    """A program that can be started, stopped, killed, halted and started again, always with the same arguments."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._command = [str(part) for part in command]
        self._environment = dict(environment) if environment is not None else None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The number of the running process."""
        assert self._process is not None, f"{self.name} has not been started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it runs, or is halted."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; what it says goes to the end of its log."""
        assert not self.running, f"{self.name} runs already"
        launch = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid())]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*launch, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                process_group=0,
            )

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, and to whatever it has started."""
        if self.running:
            os.killpg(self.pid, number)

    def stop(self, patience: float = 20.0) -> int:
        """Ask it to end, and insist after a while; gives what it exited with."""
        if self._process is None:
            return 0
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self._process.wait(patience)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """End it at once; gives what it exited with."""
        assert self._process is not None
        self.signal(signal.SIGKILL)
        return self._process.wait()

    def wait_until(self, what: str, reached: Callable[[], bool], patience: float = 60.0) -> None:
        """Wait for something that the program does; raises `ProgramFailed` where it ends or takes too long."""
        deadline = time.monotonic() + patience
        while not reached():
            if not self.running:
                raise ProgramFailed(f"{self.name} has ended, expected it to be {what}:\n{self.last_words()}")
            if time.monotonic() > deadline:
                raise ProgramFailed(f"{self.name} is not {what} after {patience:g} s:\n{self.last_words()}")
            time.sleep(0.05)

    def last_words(self) -> str:
        """Return the end of its log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TOLD:])


def free_ports(count: int) -> list[int]:
    """Find ports of loopback that are not in use.

    They lie below those that outgoing connections are given, so that a server can be stopped and come back under the
    same port without a stranger having got it meanwhile.
    """
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            candidate = socket.socket()
            try:
                candidate.bind(("127.0.0.1", random.randrange(20_000, 32_000)))
            except OSError:
                candidate.close()
            else:
                held.append(candidate)
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()
