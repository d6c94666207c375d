"""Clocks that are set back: what was true an hour ago is true again, and nobody waits for that.

Whoever waits for an instant notices by himself that a clock was set forward. After a step back the next instant to wait
for may lie before the one that is waited for, so everything must be looked at again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from springtide.cluster.clock import Clock
from springtide.cluster.context import ControllerContext

CHECK_PERIOD = 60.0
"""Seconds between two looks at the clock."""
SMALLEST_STEP = 2
"""Seconds by which a clock must have been set back; less is the difference between two roundings."""


def on_clock_set_back(context: ControllerContext, notice: Callable[[], None]) -> None:
    """Call somebody soon after the clock was set back, for as long as the controller works."""
    task = asyncio.ensure_future(_watch(context.clock, notice))

    def stop() -> None:
        task.cancel()

    context.on_release(stop)


async def _watch(clock: Clock, notice: Callable[[], None]) -> None:
    began = _monotonic_epoch(clock)
    while True:
        await clock.sleep(CHECK_PERIOD)
        begins = _monotonic_epoch(clock)
        if began - begins >= SMALLEST_STEP:
            notice()
        began = begins


def _monotonic_epoch(clock: Clock) -> int:
    """Give the instant at which its seconds began to be counted, which stays the same unless the clock is set."""
    return clock.now() - int(clock.monotonic())
