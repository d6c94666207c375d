"""Where long decisions run: never on the event loop of a live controller.

A decision that takes seconds would stop renewals of the lease, watches and health checks. Live it runs in a thread or
a process; in a simulation it runs inline, and the clock is moved by what it would have taken. The function and its
arguments must be pure values: a process gets copies of them.

Threads for libraries that wait for the network: their own, so that nobody else waits for them.

The event loop looks up host names in threads that it has for everybody. Servers that never answer would take all of
those, and with them the connections to the API server and the lease.

Python's search for garbage, for processes that hold much for long.

What is used no more is freed at once, by counting references; the search is for cycles alone, of which there are few
here. It looks at young objects whenever seven hundred have come, and at all there are when their number has grown by a
quarter. To a process with records of many thousands of objects that is a tenth to a third of its time, spent while
others wait.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

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


class Threads:
    """So many threads, of which nobody who asks has more than a part."""

    def __init__(self, name: str, most: int, *, each: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix=name)
        self._each = most if each is None else each
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """By who asks, as long as he has a thread or waits for one."""

    async def run(self, function: Callable[[*Args], Result], *args: *Args, owner: str = "") -> Result:
        """Call a function in a thread, for an owner; gives what it gives, or raises what it raises."""
        turn = self._turns.setdefault(owner, asyncio.Semaphore(self._each))
        await turn.acquire()

        def ended(call: asyncio.Future[Any]) -> None:
            # Not when the caller gives up: the thread goes on, and is the owner's until it ends.
            turn.release()
            if not call.cancelled():
                call.exception()

        call = asyncio.get_running_loop().run_in_executor(self._pool, function, *args)
        call.add_done_callback(ended)
        await asyncio.wait((call,))
        return call.result()

    def close(self) -> None:
        """Begin nothing more; what has begun ends by itself, and its own time limits say when."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_YOUNG = 50_000
"""New objects after which the young ones are looked at: some megabytes."""
_GENERATIONS = 20
"""Looks at one generation after which the next older one is looked at, too."""


def tune_gc() -> None:
    """Look for cycles less often, in the whole process: for programs to call, and never for libraries."""
    gc.set_threshold(_YOUNG, _GENERATIONS, _GENERATIONS)
