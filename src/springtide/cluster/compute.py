"""Work beside the event loop: long computations, blocking libraries, and garbage collection.

A decision that takes seconds would delay lease renewals, watches and health checks. In a live process a `Compute` runs
it in a thread or a process; in a simulation it runs inline, and the virtual clock advances by its modelled cost. The
function and its arguments must be pure values: a process gets copies of them.

`Threads` runs calls of blocking network libraries in a pool of its own. The event loop resolves host names in its
default pool: servers that never answer would occupy that pool, and with it the connections to the API server.

`tune_gc` makes the cyclic garbage collector run less often. Reference counting frees almost everything here at once;
by default the collector would take a tenth to a third of the time of a process with many thousands of records.
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
ComputeResult = TypeVar("ComputeResult")


class Compute(Protocol):
    """Runs a pure function and gives its result, or raises what it raised."""

    async def run(self, function: Callable[[*Args], ComputeResult], *args: *Args, cost: float) -> ComputeResult:
        """Run it; `cost` is the modelled time in seconds, which only a simulation uses."""
        ...


class InlineCompute:
    """For simulations: the same result at the same virtual time on any machine."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def run(self, function: Callable[[*Args], ComputeResult], *args: *Args, cost: float) -> ComputeResult:
        """Run it at once, and return when the modelled time is over."""
        result = function(*args)
        if cost > 0:
            await self._clock.sleep(cost)
        return result


class _PoolCompute:
    """Runs functions in a pool of the standard library.

    If the pool breaks (one of its processes was killed), all calls that are under way fail; later calls get a new pool.
    """

    def __init__(self, make: Callable[[], Executor]) -> None:
        self._make = make
        self._pool = make()

    async def run(self, function: Callable[[*Args], ComputeResult], *args: *Args, cost: float) -> ComputeResult:  # noqa: ARG002
        """Run it beside the event loop, without a time limit."""
        pool = self._pool
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, function, *args)
        except BrokenExecutor:
            if self._pool is pool:
                self._pool = self._make()
                pool.shutdown(wait=False)
            raise

    def close(self) -> None:
        """Wait for running functions, and accept no more."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class ThreadCompute(_PoolCompute):
    """For work that releases the global interpreter lock, or is short: numpy, compression, parsing."""

    def __init__(self, threads: int = 2) -> None:
        super().__init__(lambda: ThreadPoolExecutor(threads, thread_name_prefix="compute"))


class ProcessCompute(_PoolCompute):
    """For searches in plain Python; functions must be importable by name, and arguments picklable."""

    def __init__(self, processes: int = 1) -> None:
        # A forked child would inherit locks and sockets of the event loop in whatever state they are in.
        super().__init__(lambda: ProcessPoolExecutor(processes, mp_context=get_context("spawn")))


class Threads:
    """A pool of threads of which each owner may use only a part."""

    def __init__(self, name: str, most: int, *, each: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix=name)
        self._each = most if each is None else each
        self._slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """By owner, as long as one of its calls runs or waits."""

    async def run(self, function: Callable[[*Args], ComputeResult], *args: *Args, owner: str = "") -> ComputeResult:
        """Call a function in a thread, on behalf of an owner; returns or raises what the function does."""
        slot = self._slots.setdefault(owner, asyncio.Semaphore(self._each))
        await slot.acquire()

        def ended(call: asyncio.Future[Any]) -> None:
            # Not when the caller gives up: the thread goes on, and counts for the owner until it ends.
            slot.release()
            if not call.cancelled():
                call.exception()

        call = asyncio.get_running_loop().run_in_executor(self._pool, function, *args)
        call.add_done_callback(ended)
        await asyncio.wait((call,))
        return call.result()

    def close(self) -> None:
        """Accept no more calls; running ones end by their own timeouts."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_YOUNG = 50_000
"""New objects after which the youngest generation is collected: some megabytes."""
_GENERATIONS = 20
"""Collections of one generation after which the next older one is collected, too."""


def tune_gc() -> None:
    """Collect cyclic garbage less often in this process; for programs to call, never for libraries."""
    gc.set_threshold(_YOUNG, _GENERATIONS, _GENERATIONS)
