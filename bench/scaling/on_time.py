"""Scaling on time at size: ten thousand schedules and ten thousand cron objects of five rules each, in one process.

Server and controllers are processes of their own, with HTTPS between them. Told are what the controllers cost while
nothing happens, how long it takes until a change of all schedules at one instant stands in every status, the same for
cron rules that all fire at one minute, and how late cron rules are that fire alone. What each boundary costs is told
for both processes, as time of a core for each object, since that is the same on a machine that is busy with others.
Beside each number stands what it is meant to stay below on a machine of two cores that does nothing else.
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
LEAD = 240
"""Seconds from the start of the server to the first boundary: both processes must be at rest by then."""
IDLE = 30
MOST_OF_A_CORE = 0.05
MOST_MEGABYTES = 400
LONGEST_BOUNDARY = 20.0
LATEST = 1.0
"""Seconds that 99 of 100 single executions may be late."""
_LOOK_EVERY = 1.0
"""Seconds: what the server has seen is some hundred kilobytes, and telling it takes its time."""


def wait_until(at: float) -> None:
    """Wait for an instant."""
    time.sleep(max(0.0, at - time.time()))


def against(value: float, goal: float, spoken: str) -> str:
    """Say what a number is meant to stay below, and whether it does."""
    return f"goal {spoken}: {'kept' if value < goal else 'MISSED'}"


def tell(name: str, count: int, seconds: Sequence[float]) -> None:
    """Print how long something took, from the boundary to the first, the middle and the last."""
    missing = f", {count - len(seconds):,} MISSING" if len(seconds) < count else ""
    if not seconds:
        print(f"{name:28} none of {count:,}")
        return
    print(
        f"{name:28} {len(seconds):,} through after {seconds[-1]:.1f} s (first {seconds[0]:.2f} s, half"
        f" {seconds[len(seconds) // 2]:.1f} s){missing}"
    )


def asked(process: Child) -> dict[str, Any]:
    """Ask a process what it has seen and used."""
    process.tell("")
    answer: dict[str, Any] = process.heard()
    return answer


def followed(name: str, seen: str, count: int, until: float, server: Child, controllers: Child) -> float:
    """Watch a boundary from shortly before it until all are through or the time is over, and tell what it took.

    Gives after how many seconds all were through.
    """
    before = asked(server), asked(controllers)
    while len((after := asked(server))[seen]) < count and time.time() < until:
        time.sleep(_LOOK_EVERY)
    tell(name, count, after[seen])
    spent = after["cpu"] - before[0]["cpu"], asked(controllers)["cpu"] - before[1]["cpu"]
    each = [f"{1000 * seconds / max(1, len(after[seen])):.2f} ms" for seconds in spent]
    print(f"{'':28} for each {each[0]} of a core in the server, {each[1]} in the controllers")
    last: float = after[seen][-1] if len(after[seen]) == count else inf
    return last


def main(count: int = COUNT, lead: int = LEAD) -> None:
    with child("bench.scaling.server", count, lead) as server, tempfile.TemporaryDirectory() as folder:
        where = server.heard()
        path = Path(folder) / "kubeconfig"
        path.write_text(kubeconfig(where["url"], where["ca"].encode(), where["token"]))
        with child("bench.scaling.controllers", path, count) as controllers:
            print(f"{'first look':28} {2 * count:,} objects in {controllers.heard()['seconds']:.1f} s")
            if time.time() + IDLE + 5 > where["producers"]:
                raise SystemExit("the first look took longer than the time until the boundary")
            before = asked(controllers)
            time.sleep(IDLE)
            idle = asked(controllers)
            used = (idle["cpu"] - before["cpu"]) / IDLE
            print(
                f"{'idle':28} {used:.1%} of a core ({against(used, MOST_OF_A_CORE, '5 %')}), {idle['held']:.0f} MB,"
                f" {idle['peak']:.0f} MB at most ({against(idle['peak'], MOST_MEGABYTES, '400 MB')})"
            )
            wait_until(where["producers"] - 1)
            through = followed("schedules at one instant", "producers", count, where["crons"] - 5, server, controllers)
            print(f"{'':28} {against(through, LONGEST_BOUNDARY, '20 s')}")
            wait_until(where["crons"] - 1)
            followed("cron rules at one minute", "crons", count - SINGLES, where["crons"] + 55, server, controllers)
            wait_until(where["crons"] + 60 + SINGLES + 5)
            late = asked(server)["singles"]
            tell("single executions", SINGLES, late)
            late += [inf] * (SINGLES - len(late))
            worst = late[int(SINGLES * 0.99)]
            print(f"{'':28} p50 {late[SINGLES // 2]:.2f} s, p99 {worst:.2f} s late ({against(worst, LATEST, '1 s')})")


if __name__ == "__main__":
    main()
