"""Where long decisions run."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import BrokenExecutor

import pytest

from springtide.cluster.compute import InlineCompute, ProcessCompute, ThreadCompute
from springtide.simulator.time import VirtualClock, run


def test_inline_gives_the_result_when_the_modelled_time_is_over() -> None:
    """The simulated clock moves by the cost, whatever the machine takes."""

    async def main(clock: VirtualClock) -> tuple[int, float]:
        result = await InlineCompute(clock).run(max, 3, 4, cost=2.5)
        return result, clock.monotonic()

    assert run(main) == (4, 2.5)


def test_inline_raises_what_the_function_raises() -> None:
    """A decision that fails, fails in the reconcile that asked for it."""

    async def main(clock: VirtualClock) -> None:
        await InlineCompute(clock).run(int, "x", cost=1)

    with pytest.raises(ValueError, match="invalid literal"):
        run(main)


def test_threads_leave_the_loop_alone() -> None:
    """The function runs in another thread of the same process."""

    async def main() -> int:
        compute = ThreadCompute(1)
        try:
            return await compute.run(threading.get_ident, cost=0)
        finally:
            compute.close()

    assert asyncio.run(main()) != threading.get_ident()


def test_processes_leave_the_interpreter_alone() -> None:
    """The function runs in another process."""

    async def main() -> int:
        compute = ProcessCompute(1)
        try:
            return await compute.run(os.getpid, cost=0)
        finally:
            compute.close()

    assert asyncio.run(main()) != os.getpid()


def test_a_process_that_dies_does_not_take_the_next_ones_with_it() -> None:
    """What it was doing fails; whoever asks then gets a new process."""

    async def main() -> int:
        compute = ProcessCompute(1)
        try:
            with pytest.raises(BrokenExecutor):
                await compute.run(os._exit, 1, cost=0)
            return await compute.run(abs, -3, cost=0)
        finally:
            compute.close()

    assert asyncio.run(main()) == 3
