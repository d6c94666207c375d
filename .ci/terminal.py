"""Runs a command in a pseudo-terminal: `terminal.py OUTPUT COMMAND...`.

The output goes to a file. SIGUSR1 sends Ctrl-C to the terminal. Exits with the command's exit code, or with 99 where
processes that it has started are left running.
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
    """List the processes of a session."""
    return subprocess.run(["pgrep", "-a", "-s", str(sid)], capture_output=True, text=True, check=False).stdout


def main(output: str, *command: str) -> int:
    """Run the command until it exits."""
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
    """Read output; once no process has the terminal open, Linux returns an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
