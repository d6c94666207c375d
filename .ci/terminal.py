"""Runs a command in a terminal of its own, as a person does: `terminal.py OUTPUT COMMAND...`.

What it shows goes to a file. On SIGUSR1 somebody presses Ctrl-C. Ends with the command's exit code, or with 99 where
something that it has started is left running.
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

LEFT_RUNNING = 99
_CTRL_C = b"\x03"


def session_of(sid: int) -> str:
    """List what runs in a session."""
    return subprocess.run(["pgrep", "-a", "-s", str(sid)], capture_output=True, text=True, check=False).stdout


def main(output: str, *command: str) -> int:
    """Run the command until it ends."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    signal.signal(signal.SIGUSR1, lambda *_: os.write(terminal, _CTRL_C))
    with Path(output).open("wb", buffering=0) as file:
        while shown := _read(terminal):
            file.write(shown)
    _, status = os.waitpid(child, 0)
    time.sleep(0.5)
    if left := session_of(child):
        print(f"left running:\n{left}")
        return LEFT_RUNNING
    return os.waitstatus_to_exitcode(status)


def _read(terminal: int) -> bytes:
    """Read what is shown; a terminal that nobody writes to any more gives an error on Linux."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
