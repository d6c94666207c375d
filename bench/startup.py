"""How long commands take, compared with starting Python."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 15
SPRINGTIDE = str(Path(sys.executable).with_name("springtide"))
EXAMPLE = str(Path(__file__).parents[1] / "examples" / "scheduled-capacity.yaml")
COMMANDS = {
    "bare python": [sys.executable, "-c", "pass"],
    "springtide --help": [SPRINGTIDE, "--help"],
    "springtide check --help": [SPRINGTIDE, "check", "--help"],
    "springtide check FILE": [SPRINGTIDE, "check", EXAMPLE],
    "springtide preview FILE": [SPRINGTIDE, "preview", EXAMPLE],
}


def seconds(command: list[str]) -> float:
    """Time one run."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):  # interleaved, so that load on the machine affects all of them
        for name, command in COMMANDS.items():
            times[name].append(seconds(command))
    bare = statistics.median(times["bare python"])
    for name, measured in times.items():
        median = statistics.median(measured)
        print(f"{name:28} {1000 * median:7.1f} ms   {median / bare:5.1f}x a bare start")


if __name__ == "__main__":
    main()
