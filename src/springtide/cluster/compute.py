"""Where long decisions run: never on the event loop of a live controller.

A decision that takes seconds would stop renewals of the lease, watches and health checks. Live it runs in a thread or
a process; in a simulation it runs inline, and the clock is moved by what it would have taken. The function and its
arguments must be pure values: a process gets copies of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Protocol, TypeVar, TypeVarTuple

from springtide.cluster.clock import Clock

Args = TypeVarTuple("Args")
Result = TypeVar("Result")


class Compute(Protocol):
    """Runs a pure function and gives its result, or raises what it raised."""

    async def run(self, function: Callable[[*Args], Result], *args: *Args, cost: float) -> Result:
        """Run it; `cost` is how many seconds it is expected to take, which only a simulation believes."""
        ...


class InlineCompute:
    """For simulations: the same result on any machine, after the time that was named."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def run(self, function: Callable[[*Args], Result], *args: *Args, cost: float) -> Result:
        """Run it here and now; whoever asked gets the result when the modelled time is over."""
        result = function(*args)
        if cost > 0:
            await self._clock.sleep(cost)
        return result


class _PoolCompute:
    """Hands functions to a pool of the standard library.

    A pool that breaks (one of its processes was killed) fails all that it was doing; those who try again get a new one.
    """

    def __init__(self, make: Callable[[], Executor]) -> None:
        self._make = make
        self._pool = make()

    async def run(self, function: Callable[[*Args], Result], *args: *Args, cost: float) -> Result:  # noqa: ARG002
        """Run it beside the event loop, for as long as it takes."""
        pool = self._pool
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, function, *args)
        except BrokenExecutor:
            if self._pool is pool:
                self._pool = self._make()
                pool.shutdown(wait=False)
            raise

    def close(self) -> None:
        """Let running functions end, and take no more."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class ThreadCompute(_PoolCompute):
    """For work that releases the interpreter's lock, or is short: numpy, compression, parsing."""

    def __init__(self, threads: int = 2) -> None:
        super().__init__(lambda: ThreadPoolExecutor(threads, thread_name_prefix="compute"))


class ProcessCompute(_PoolCompute):
    """For searches in plain Python; functions must be importable by name, and arguments picklable."""

    def __init__(self, processes: int = 1) -> None:
        # A forked child would inherit locks and sockets of the event loop in whatever state they are in.
        super().__init__(lambda: ProcessPoolExecutor(processes, mp_context=get_context("spawn")))
