"""Scaling on time at size: ten thousand schedules and ten thousand cron objects of five rules each, in one process.

Server and controllers are separate processes, connected by HTTPS. The benchmark measures the first reconciles of new
objects, whose status is written for the first time, and those of a process that starts again and finds every status as
it should be. Then it measures the CPU time of the controllers while nothing changes, the time until a change of all
schedules at one instant is in every status, the same for cron rules that all fire at one minute, and the delay of cron
rules that fire alone. The cost of each boundary is the CPU time per object of both processes, which does not depend on
other load of the machine. The goals that are printed beside the numbers are for a machine of two cores without other
load.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

from bench.children import Child, child
from bench.scaling.objects import SINGLES

from springtide.apiserver.http.auth import kubeconfig

COUNT = 10_000
LEAD = 270
"""Seconds from the start of the server to the first boundary: both processes must be idle by then."""
IDLE = 30
MOST_OF_A_CORE = 0.05
MOST_MEGABYTES = 400
LONGEST_BOUNDARY = 20.0
LONGEST_START = 12.0
"""Seconds until a process that starts, or takes over, has reconciled every object once."""
LATEST = 1.0
"""Seconds that 99 of 100 single executions may be late."""
_POLL_INTERVAL = 1.0
"""Seconds between two requests to the server process, whose answer has some hundred kilobytes."""


def wait_until(at: float) -> None:
    """Wait for an instant."""
    time.sleep(max(0.0, at - time.time()))


def goal(value: float, limit: float, text: str) -> str:
    """Format the goal of a measurement, and whether it was reached."""
    return f"goal {text}: {'kept' if value < limit else 'MISSED'}"


def report(name: str, count: int, seconds: Sequence[float]) -> None:
    """Print the time from the boundary until the first, half and all objects were done."""
    missing = f", {count - len(seconds):,} MISSING" if len(seconds) < count else ""
    if not seconds:
        print(f"{name:28} none of {count:,}")
        return
    print(
        f"{name:28} {len(seconds):,} done after {seconds[-1]:.1f} s (first {seconds[0]:.2f} s, half"
        f" {seconds[len(seconds) // 2]:.1f} s){missing}"
    )


def measurements(process: Child) -> dict[str, Any]:
    """Ask a process for its measurements."""
    process.send("")
    answer: dict[str, Any] = process.read()
    return answer


def first_reconciles(name: str, count: int, controllers: Child) -> float:
    """Wait until a process that has started has reconciled every object; print and return the number of seconds."""
    seconds: float = controllers.read()["seconds"]
    cpu = measurements(controllers)["cpu"]
    print(f"{name:28} {2 * count:,} first reconciles in {seconds:.1f} s, with {cpu:.1f} s of CPU time")
    return seconds


def measure_boundary(name: str, field: str, count: int, until: float, server: Child, controllers: Child) -> float:
    """Measure from shortly before a boundary until all objects are done or the deadline has passed; print the result.

    Returns the number of seconds until all were done.
    """
    before = measurements(server), measurements(controllers)
    while len((after := measurements(server))[field]) < count and time.time() < until:
        time.sleep(_POLL_INTERVAL)
    report(name, count, after[field])
    spent = after["cpu"] - before[0]["cpu"], measurements(controllers)["cpu"] - before[1]["cpu"]
    each = [f"{1000 * seconds / max(1, len(after[field])):.2f} ms" for seconds in spent]
    print(f"{'':28} CPU time per object: {each[0]} in the server, {each[1]} in the controllers")
    last: float = after[field][-1] if len(after[field]) == count else inf
    return last


def main(count: int = COUNT, lead: int = LEAD) -> None:
    with child("bench.scaling.server", count, lead) as server, tempfile.TemporaryDirectory() as folder:
        endpoint = server.read()
        path = Path(folder) / "kubeconfig"
        path.write_text(kubeconfig(endpoint["url"], endpoint["ca"].encode(), endpoint["token"]))
        with child("bench.scaling.controllers", path, count) as controllers:
            first_reconciles("new objects", count, controllers)
        with child("bench.scaling.controllers", path, count) as controllers:
            seconds = first_reconciles("after a restart", count, controllers)
            print(f"{'':28} {goal(seconds, LONGEST_START, '12 s')}")
            if time.time() + IDLE + 5 > endpoint["producers"]:
                raise SystemExit("the first reconciles took longer than the time until the boundary")
            before = measurements(controllers)
            time.sleep(IDLE)
            idle = measurements(controllers)
            used = (idle["cpu"] - before["cpu"]) / IDLE
            print(
                f"{'idle':28} {used:.1%} of a core ({goal(used, MOST_OF_A_CORE, '5 %')}), {idle['memory']:.0f} MB,"
                f" {idle['peak']:.0f} MB at most ({goal(idle['peak'], MOST_MEGABYTES, '400 MB')})"
            )
            wait_until(endpoint["producers"] - 1)
            duration = measure_boundary(
                "schedules at one instant", "producers", count, endpoint["crons"] - 5, server, controllers
            )
            print(f"{'':28} {goal(duration, LONGEST_BOUNDARY, '20 s')}")
            wait_until(endpoint["crons"] - 1)
            measure_boundary(
                "cron rules at one minute", "crons", count - SINGLES, endpoint["crons"] + 55, server, controllers
            )
            wait_until(endpoint["crons"] + 60 + SINGLES + 5)
            late = measurements(server)["singles"]
            report("single executions", SINGLES, late)
            late += [inf] * (SINGLES - len(late))
            worst = late[int(SINGLES * 0.99)]
            print(f"{'':28} p50 {late[SINGLES // 2]:.2f} s, p99 {worst:.2f} s late ({goal(worst, LATEST, '1 s')})")


if __name__ == "__main__":
    main()
