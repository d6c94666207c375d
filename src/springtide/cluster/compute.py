"""Work beside the event loop: long computations, blocking libraries, and garbage collection.

A decision that takes seconds would delay lease renewals, watches and health checks. In a live process a `Compute` runs
it in a thread; in a simulation it runs inline, and the virtual clock advances by its modelled cost. What works on large
inputs of users runs with `run_limited`, in a live process in a child process with limits of time and memory. Its
function must be importable by name, and its arguments and result picklable.

`Threads` runs calls of blocking network libraries in a pool of its own. The event loop resolves host names in its
default pool: servers that never answer would occupy that pool, and with it the connections to the API server.

`tune_gc` makes the cyclic garbage collector run less often. Reference counting frees almost everything here at once;
by default the collector would take a tenth to a third of the time of a process with many thousands of records.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
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

    async def run_limited(
        self, function: Callable[[*Args], ComputeResult], *args: *Args, cost: float, cpu: float | None = None
    ) -> ComputeResult:
        """Run it within limits, of which `cpu` seconds of CPU time may be one.

        Raises `ComputeLimitExceeded`, which a simulation never does; `ComputeInterrupted` where it may be no fault of
        the function.
        """
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

    async def run_limited(
        self,
        function: Callable[[*Args], ComputeResult],
        *args: *Args,
        cost: float,
        cpu: float | None = None,  # noqa: ARG002
    ) -> ComputeResult:
        """Run it as any other: limits of time exist only in a live process."""
        return await self.run(function, *args, cost=cost)


class ComputeLimitExceeded(Exception):
    """A function took more time or memory than one call may; the message says which."""


class ComputeInterrupted(ComputeLimitExceeded):
    """A call ended for a reason that may lie outside of it: a busy machine, or a signal from elsewhere."""


class LiveCompute:
    """Runs functions in threads, and limited calls in child processes, of which one that exceeds its limits is killed.

    Threads are for work that is short, or releases the global interpreter lock. They would not do for limited calls:
    the interpreter runs one thread at a time, a pattern or the decoding of a document is one step for it, and a thread
    cannot be ended. A child starts with the first limited call. Its memory is limited, too, since the process of a
    container would be killed together with its child.
    """

    def __init__(self, threads: int = 2, *, processes: int = 1, seconds: float = 5.0) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="compute")
        self._seconds = seconds
        self._waiters = ThreadPoolExecutor(processes, thread_name_prefix="limited")
        """One thread for each child: it waits for the answer, which takes nothing of the interpreter."""
        self._idle: SimpleQueue[_Child] = SimpleQueue()
        self._running: set[_Child] = set()
        self._closed = False

    async def run(self, function: Callable[[*Args], ComputeResult], *args: *Args, cost: float) -> ComputeResult:  # noqa: ARG002
        """Run it in a thread, without a time limit."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)

    async def run_limited(
        self,
        function: Callable[[*Args], ComputeResult],
        *args: *Args,
        cost: float,  # noqa: ARG002
        cpu: float | None = None,
    ) -> ComputeResult:
        """Run it in a child; a call that waits for a child does not use up its time."""
        request = pickle.dumps((function, args))
        loop = asyncio.get_running_loop()
        module = str(getattr(function, "__module__", ""))
        answer: ComputeResult = await loop.run_in_executor(self._waiters, self._call, module, request, cpu)
        return answer

    def close(self) -> None:
        """Wait for functions in threads, end those in children, and accept no more."""
        self._closed = True
        self._waiters.shutdown(wait=False, cancel_futures=True)
        for child in tuple(self._running):
            child.kill()
        self._waiters.shutdown(wait=True)
        with suppress(Empty):
            while True:
                self._idle.get_nowait().end()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _call(self, module: str, request: bytes, cpu: float | None) -> Any:
        try:
            child = self._idle.get_nowait()
        except Empty:
            child = _Child()
        self._running.add(child)
        if self._closed:  # which may not have seen this child
            child.kill()
        try:
            succeeded, value = child.call(module, request, self._seconds, cpu)
        except BaseException:
            child.end()
            raise
        finally:
            self._running.discard(child)
        self._idle.put(child)
        if succeeded:
            return value
        raise value


_START_SECONDS = 60.0
"""The time in which a child must have imported the module of a function; on a busy machine it takes seconds."""
_BUSY = 20
"""How many times as long as its limit of CPU time a call may take."""
_CHILD_BYTES = 1 << 30
"""The address space of a child, of which the interpreter and its libraries take about a quarter."""


class _Child:
    """A child process with a connection to it."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        with theirs:
            program = f"from {__name__} import serve_calls; serve_calls({theirs.fileno()})"
            # The same modules as here, wherever they are from.
            place = f"import sys; sys.path[:] = {sys.path!r}; "
            self._process = subprocess.Popen(  # noqa: S603 - the interpreter that runs this, and text from here
                [sys.executable, "-c", place + program],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )

    def call(self, module: str, request: bytes, seconds: float, cpu: float | None) -> tuple[bool, Any]:
        """Send a call; return whether it succeeded, and its result or exception."""
        try:
            self._connection.send((module, request, cpu))
            self._await(_START_SECONDS, "importing its modules took")
            self._connection.recv()
            if cpu is None:
                self._await(seconds, "it took", ComputeLimitExceeded)
            else:
                # On a busy machine, a second of CPU time takes many of wall time.
                self._await(max(seconds, _BUSY * cpu), "it took")
            return pickle.loads(self._connection.recv_bytes())  # type: ignore[no-any-return]  # noqa: S301 - from a child
        except (EOFError, OSError) as failure:
            with suppress(subprocess.TimeoutExpired):
                if self._process.wait(1) == -signal.SIGPROF:
                    raise ComputeLimitExceeded(f"it took more than {cpu:g} s of CPU time") from failure
            raise ComputeInterrupted(
                "the process that computed it has ended: it may have needed too much memory"
            ) from failure

    def kill(self) -> None:
        """Kill the process, so that a call in another thread fails; that thread then calls `end`."""
        self._process.kill()

    def end(self) -> None:
        """Kill the process and release what belongs to it."""
        self._process.kill()
        self._process.wait()
        self._connection.close()

    def _await(self, seconds: float, what: str, error: type[ComputeLimitExceeded] = ComputeInterrupted) -> None:
        if not self._connection.poll(seconds):
            raise error(f"{what} more than {seconds:g} s")


def serve_calls(number: int) -> None:
    """Run calls in a child process until the connection with this file descriptor is closed; for `LiveCompute`."""
    # The parent ends its children; Ctrl-C in a terminal reaches all of them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_CHILD_BYTES, _CHILD_BYTES))
    connection: Connection[Any, Any] = Connection(number)
    with suppress(EOFError, OSError):
        while True:
            module, request, cpu = connection.recv()
            with suppress(ImportError):
                importlib.import_module(module)
            connection.send("")
            connection.send_bytes(_answer_of(request, cpu or 0.0))


def _answer_of(request: bytes, cpu: float) -> bytes:
    try:
        function, args = pickle.loads(request)  # noqa: S301 - from the parent
        # The signal ends the process, also within a single step of the interpreter.
        signal.setitimer(signal.ITIMER_PROF, cpu)
        try:
            value = function(*args)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return pickle.dumps((True, value))
    except MemoryError:
        return pickle.dumps((False, ComputeLimitExceeded(f"it needs more than {_CHILD_BYTES >> 20} MiB of memory")))
    except Exception as failure:
        try:
            return pickle.dumps((False, failure))
        except Exception:
            return pickle.dumps((False, RuntimeError(f"{type(failure).__name__}: {failure}")))


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
