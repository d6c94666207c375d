"""Becomes another program that dies when its parent does, however the parent ends.

Run as a script, in place of the program: `launch.py PARENT PROGRAM ARGUMENT…`. The tests may be killed at any moment,
and a control plane must not stay behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Tie this process to its parent, and become the program."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # The parent has died before the signal was set up.
        sys.exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
