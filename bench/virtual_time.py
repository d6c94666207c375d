"""Measures the cost of virtual time: a million wake-ups by timers, and a million turns of asyncio's own loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from springtide.simulator.virtual_time import VirtualClock, run

TASKS = 200
WAKE_UPS = 1_000_000


async def wake_ups(nap: Callable[[], Awaitable[None]]) -> None:
    """Let tasks sleep and wake up, a million times in total."""

    async def sleeper() -> None:
        for _ in range(WAKE_UPS // TASKS):
            await nap()

    await asyncio.gather(*(sleeper() for _ in range(TASKS)))


async def virtually(clock: VirtualClock) -> None:
    await wake_ups(lambda: clock.sleep(60))


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    ours = timed(lambda: run(virtually))
    plain = timed(lambda: asyncio.run(wake_ups(lambda: asyncio.sleep(0))))
    print(f"virtual timers  {WAKE_UPS:,} wake-ups in {ours:5.2f} s   {WAKE_UPS / ours:9,.0f}/s")
    print(f"asyncio turns   {WAKE_UPS:,} wake-ups in {plain:5.2f} s   {WAKE_UPS / plain:9,.0f}/s")
    print(f"a wake-up by a virtual timer takes {ours / plain:.1f}x a turn of asyncio's loop")


if __name__ == "__main__":
    main()
