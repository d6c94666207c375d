"""A process with an embedded API server full of schedules: `python -m bench.scaling.server COUNT SECONDS`.

The boundaries are SECONDS after its start. It prints its URL and the boundaries; then, for every line on its standard
input, the writes after the boundaries so far, and the CPU time that it has used.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from random import Random
from typing import Any

from bench.scaling.objects import BURST, CRONS, DEPLOYMENTS, PRODUCERS, SINGLES, cron, producer, target

from springtide.apiserver.admission import ADMIN
from springtide.apiserver.http import ApiApp
from springtide.apiserver.server import ApiServer, CommittedWrite
from springtide.cluster.certificates import make_authority, make_serving
from springtide.cluster.compute import tune_gc
from springtide.cluster.serving import TlsIdentity, serving
from springtide.cluster.transport import Write
from springtide.simulator.bootstrap import install

_BENCH = Write("bench")
_BETWEEN = 90
"""Seconds between the boundary of the producers and that of the cron rules."""


class WriteTimes:
    """Records when each object got its new value, by the clock of the server."""

    def __init__(self) -> None:
        self.producers: dict[str, float] = {}
        self.targets: dict[str, float] = {}
        self.recorded: dict[str, float] = {}

    def record(self, written: CommittedWrite) -> None:
        """Record the time of a write."""
        item = written.new
        if item is None:
            return
        name, now = item["metadata"]["name"], time.time()
        if item["kind"] == PRODUCERS.kind:
            status: Any = (item.get("status") or {}).get("scheduledCapacity") or {}
            if status.get("currentValue") == BURST:
                self.producers.setdefault(name, now)
        elif item["kind"] == DEPLOYMENTS.kind:
            if item["spec"].get("replicas") == BURST:
                self.targets.setdefault(name, now)
        elif item["kind"] == CRONS.kind:
            histories = (item.get("status") or {}).get("executionHistories") or ()
            if any(one["ruleName"] == "burst" and one.get("successfulExecutions") for one in histories):
                self.recorded.setdefault(name, now)


def populated_server(count: int, boundary: int) -> ApiServer:
    """Return a server with this number of objects of each kind."""
    server = ApiServer(now=lambda: int(time.time()), random=Random(0))
    install(server)
    far = time.gmtime(boundary + 12 * 3600).tm_hour
    for number in range(count):
        server.create(PRODUCERS, producer(number, boundary), _BENCH, namespace="default")
        server.create(DEPLOYMENTS, target(number), _BENCH, namespace="default")
        server.create(CRONS, cron(number, boundary + _BETWEEN, far), _BENCH, namespace="default")
    return server


async def main(count: int, seconds: int) -> None:
    """Serve until the input ends."""
    began = int(time.time())
    boundary = began + seconds
    server = populated_server(count, boundary)
    times = WriteTimes()
    server.observers.append(times.record)
    token = secrets.token_urlsafe()
    authority = make_authority("bench", now=began, seconds=86_400)
    identity = TlsIdentity(make_serving(authority, ["127.0.0.1"], now=began, seconds=86_400))
    app = ApiApp(server, authenticate=lambda given: ADMIN if given == token else None)
    async with serving(app, identity=identity, dated=False) as served:
        endpoint = {"url": served.url, "ca": authority.certificate.decode(), "token": token}
        print(json.dumps(endpoint | {"producers": boundary, "crons": boundary + _BETWEEN}), flush=True)
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            singles = {f"cron-{n}": boundary + _BETWEEN + 60 + n for n in range(SINGLES)}
            print(
                json.dumps(
                    {
                        "cpu": time.process_time(),
                        "producers": sorted(at - boundary for at in times.producers.values()),
                        "crons": sorted(
                            at - boundary - _BETWEEN for name, at in times.recorded.items() if name not in singles
                        ),
                        "singles": sorted(
                            at - singles[f"cron-{name.removeprefix('target-')}"]
                            for name, at in times.targets.items()
                            if f"cron-{name.removeprefix('target-')}" in singles
                        ),
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    tune_gc()
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
