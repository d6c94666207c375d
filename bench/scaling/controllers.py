"""A process with the controllers of scaling on time: `python -m bench.scaling.controllers KUBECONFIG COUNT`.

It prints a line when every object was reconciled and all queues are empty; then, for every line on its standard input,
the CPU time and the memory that it has used so far.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from random import Random

from bench.children import memory, peak_memory

from springtide.assembly.services import live_services
from springtide.cluster.clock import WallClock
from springtide.cluster.compute import tune_gc
from springtide.cluster.http import HttpTransport, load_kubeconfig
from springtide.cluster.manager import Manager, ManagerSettings
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.controllers.metrics_producer import MetricsProducerController
from springtide.metrics import ProcessMetrics


def is_idle(manager: Manager, count: int) -> bool:
    """Return whether every object was reconciled and all queues are empty."""
    return all(health.reconciles >= count and not health.queued for health in manager.health())


async def main(kubeconfig: str, count: int) -> None:
    """Run the controllers until the input ends."""
    clock, metrics = WallClock(), ProcessMetrics()
    async with (
        HttpTransport(load_kubeconfig(Path(kubeconfig)), random=Random(0)) as http,
        live_services(metrics, clock) as services,
    ):
        begin = time.perf_counter()
        manager = Manager(
            metrics.measured(http),
            clock,
            [MetricsProducerController, CronFederatedHPAController],
            random=Random(0),
            settings=ManagerSettings(sync_timeout=300),
            metrics=metrics,
            services=services,
        )
        metrics.follow(manager, clock)
        running = asyncio.create_task(manager.run())
        idle_polls = 0
        while idle_polls < 20:
            await asyncio.sleep(0.1)
            idle_polls = idle_polls + 1 if is_idle(manager, count) else 0
        print(json.dumps({"seconds": time.perf_counter() - begin - 2}), flush=True)
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            peak = peak_memory()
            print(json.dumps({"cpu": time.process_time(), "memory": memory(), "peak": peak}), flush=True)
        running.cancel()


if __name__ == "__main__":
    tune_gc()
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
