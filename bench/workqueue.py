"""Measures a virtual day of requeues: 200 keys, each processed and requeued after a minute."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from springtide.cluster.workqueue import QueueShutDown, WorkQueue
from springtide.simulator.virtual_time import VirtualClock, run

KEYS = 200
WORKERS = 4
MINUTE = 60
DAY = 24 * 60 * MINUTE


async def a_day(clock: VirtualClock, *, instants: bool) -> int:
    """Count the requeues of a day, by duration or by instant."""
    queue: WorkQueue[str] = WorkQueue(clock)
    requeues = 0

    async def work() -> None:
        nonlocal requeues
        while True:
            try:
                key = await queue.get()
            except QueueShutDown:
                return
            queue.forget(key)
            if instants:
                queue.add_at(key, clock.now() + MINUTE)
            else:
                queue.add_after(key, MINUTE)
            queue.done(key)
            requeues += 1

    workers = [asyncio.create_task(work()) for _ in range(WORKERS)]
    for n in range(KEYS):
        queue.add(f"key-{n}")
    await clock.sleep(DAY - 1)
    queue.shut_down(drain=False)
    for worker in workers:
        await worker
    return requeues


def main() -> None:
    for name, instants in (("add_after", False), ("add_at", True)):
        begin = time.perf_counter()
        requeues = run(partial(a_day, instants=instants))
        seconds = time.perf_counter() - begin
        print(f"{name:10} {requeues:9,} requeues of {KEYS} keys in {seconds:5.2f} s   {requeues / seconds:9,.0f}/s")


if __name__ == "__main__":
    main()
