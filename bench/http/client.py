"""A process that caches the pods of a cluster: `python -m bench.http.client KUBECONFIG COUNT`.

It lists them, caches and indexes a record of each, and queues each once for a controller that does nothing. It prints
a line of JSON when it has seen them all. With `--watch` it then waits for a line with a version on its standard input,
and prints another line when its cache has reached that.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from bench.children import memory, peak_memory
from bench.http.pods import SmallPodView, small_pod_record

from springtide.apis.core.pod_record import PodView, pod_record
from springtide.cluster.clock import WallClock
from springtide.cluster.controller import Cached, Controller, Permission, Result, Watch
from springtide.cluster.http import HttpTransport, load_kubeconfig
from springtide.cluster.manager import Manager, ManagerSettings
from springtide.cluster.resources import PODS, Key, Selection

_BY_NODE = {"node": lambda pod: (pod.node,)}


class Idle(Controller):
    """Reconciles every pod once, without any writes."""

    name = "idle"
    watches = (
        Watch(Cached(Selection(PODS, view=PodView), pod_record, _BY_NODE))
        if "--shared-record" in sys.argv
        else Watch(Cached(Selection(PODS, view=SmallPodView), small_pod_record, _BY_NODE)),
    )
    permissions = (Permission(PODS, ("get", "list", "watch")),)
    workers = 4
    seen = 0
    store: Any = None

    async def reconcile(self, key: Key, now: int) -> Result | None:  # noqa: ARG002
        """Count."""
        type(self).seen += 1
        type(self).store = self.context.store(self.watches[0].cached)
        return None


async def main(kubeconfig: str, count: int, *, watch: bool) -> None:
    """Cache the pods, and print how long it took."""
    async with HttpTransport(load_kubeconfig(Path(kubeconfig)), random=Random(0)) as transport:
        before = memory()
        begin = time.perf_counter()
        manager = Manager(
            transport, WallClock(), [Idle], random=Random(0), settings=ManagerSettings(pausable=False, sync_timeout=300)
        )
        running = asyncio.create_task(manager.run())
        while Idle.seen < count:
            await asyncio.sleep(0.01)
        seconds = time.perf_counter() - begin
        peak = peak_memory()
        print(json.dumps({"seconds": seconds, "memory": memory() - before, "peak": peak - before}), flush=True)
        if watch:
            loop = asyncio.get_running_loop()
            version = int(await loop.run_in_executor(None, sys.stdin.readline))
            while Idle.store.version < version:
                await asyncio.sleep(0.001)
            print(json.dumps({"reached": time.time()}), flush=True)
        await manager.stop()
        await running


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), watch="--watch" in sys.argv))
