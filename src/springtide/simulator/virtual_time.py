"""Virtual time: an event loop that jumps to the next timer when nothing is ready, and its clock.

The loop is deterministic where asyncio's own is not: time is counted in whole microseconds from 0, which floats hold
exactly for centuries, and timers fire in the order of (when, sequence), so equal deadlines are first come, first
served. It has no sockets, threads or signals. A simulated week takes seconds, and is the same on every machine.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

TICKS_PER_SECOND = 1_000_000
_MANY_CANCELLED = 128
_MOST_STEPS_AT_ONCE = 20_000_000

OWNER: ContextVar[object | None] = ContextVar("springtide_owner", default=None)
"""The owner of the current task; `freeze` stops all tasks of an owner."""


class Stalled(RuntimeError):
    """All tasks wait, and no timer is set."""


class Livelock(RuntimeError):
    """Tasks keep waking each other while virtual time stands still."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop with virtual time."""

    # The queue of ready handles of asyncio.BaseEventLoop, to which all of its methods append.
    _ready: deque[asyncio.Handle]

    def __init__(self) -> None:
        super().__init__()
        self.ticks = 0
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._sequence = 0
        self._cancelled = 0
        self._steps_at_once = 0
        self._frozen: dict[object, list[asyncio.Handle]] = {}
        self._owned: dict[object, dict[asyncio.Task[Any], None]] = {}
        self._clock_resolution = 1 / TICKS_PER_SECOND

    def time(self) -> float:
        """Return the virtual seconds since the loop was created."""
        return self.ticks / TICKS_PER_SECOND

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at a time of the loop."""
        ticks = math.ceil(when * TICKS_PER_SECOND)
        if ticks / TICKS_PER_SECOND < when:
            # The product was rounded down. After the timer `time() >= when` must hold, or the caller would wait again.
            ticks += 1
        return self.call_at_ticks(ticks, callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back after a delay in seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at_ticks(
        self, ticks: int, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at a time in ticks, without rounding."""
        timer = asyncio.TimerHandle(ticks / TICKS_PER_SECOND, callback, args, self, context)
        timer._scheduled = True  # type: ignore[attr-defined]
        self._sequence += 1
        heapq.heappush(self._timers, (ticks, self._sequence, timer))
        return timer

    def freeze(self, owner: object) -> None:
        """Stop all tasks of an owner until `thaw`; time passes for all others."""
        self._frozen.setdefault(owner, [])

    def thaw(self, owner: object) -> None:
        """Continue the tasks of an owner, with the callbacks that became ready meanwhile."""
        self._ready.extend(self._frozen.pop(owner, ()))

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """Start a task that belongs to the owner of the current task."""
        task = super().create_task(coro, **options)
        owner = OWNER.get()
        if owner is not None:
            self._own(owner, task)
        return task

    def create_owned_task(self, owner: object, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task that belongs to an owner, as do all tasks that it starts."""
        context = copy_context()
        context.run(OWNER.set, owner)
        return context.run(self.create_task, coroutine)

    def tasks_of(self, owner: object) -> list[asyncio.Task[Any]]:
        """List the running tasks of an owner in the order of their start."""
        return list(self._owned.get(owner, ()))

    def _own(self, owner: object, task: asyncio.Task[Any]) -> None:
        owned = self._owned.setdefault(owner, {})
        owned[task] = None
        task.add_done_callback(lambda done: owned.pop(done, None))

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:  # type: ignore[override]  # noqa: ARG002
        """Refuse: a thread runs in real time, while virtual time stands still."""
        msg = "threads cannot run in virtual time: long computations go through the compute port"
        raise RuntimeError(msg)

    def _run_once(self) -> None:
        if not self._ready:
            self._jump()
        self._steps_at_once += len(self._ready)
        if self._steps_at_once > _MOST_STEPS_AT_ONCE:
            msg = f"{self._steps_at_once} steps were taken at second {self.time()}, and time does not advance"
            raise Livelock(msg)
        ready = self._ready
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            if self._frozen:
                waiting = self._frozen.get(handle._context.get(OWNER))  # type: ignore[attr-defined]
                if waiting is not None:
                    waiting.append(handle)
                    continue
            handle._run()

    def _jump(self) -> None:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
            self._cancelled -= 1
        if not timers:
            if self._stopping:  # type: ignore[attr-defined]
                return
            msg = f"at second {self.time()} all tasks wait, and no timer is set"
            raise Stalled(msg)
        if timers[0][0] > self.ticks:
            self.ticks = timers[0][0]
            self._steps_at_once = 0
        while timers and timers[0][0] <= self.ticks:
            timer = heapq.heappop(timers)[2]
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer._cancelled:
                self._cancelled -= 1
            else:
                self._ready.append(timer)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if not handle._scheduled:  # type: ignore[attr-defined]
            return
        self._cancelled += 1
        if self._cancelled > _MANY_CANCELLED and self._cancelled * 2 > len(self._timers):
            # Each request sets a timeout and cancels it, so most timers never fire.
            self._timers = [entry for entry in self._timers if not entry[2]._cancelled]
            heapq.heapify(self._timers)
            self._cancelled = 0

    def _write_to_self(self) -> None:
        """Do nothing: this loop never sleeps, so it needs no waking."""


class VirtualClock:
    """A clock on virtual time; `start` is the instant of second 0 of the loop. Tests can set it."""

    def __init__(self, loop: VirtualLoop, start: int = 0) -> None:
        self._loop = loop
        self.start = start
        self._ahead = 0
        """Seconds by which the clock was set, in sum."""
        self._steps: list[asyncio.Future[int]] = []
        self._sleepers: dict[asyncio.Future[None], None] = {}

    def now(self) -> int:
        """Return the time in whole seconds since the epoch."""
        return self.start + self._ahead + self._loop.ticks // TICKS_PER_SECOND

    def monotonic(self) -> float:
        """Return the virtual seconds since the loop was created."""
        return self._loop.time()

    def step(self, seconds: int) -> None:
        """Set the clock forward, or back by a negative number; durations do not change."""
        self._ahead += seconds
        steps, self._steps = self._steps, []
        for step in steps:
            if not step.done():
                step.set_result(seconds)
        for sleeper in self._sleepers:
            settle(sleeper)

    async def stepped(self) -> int:
        """Wait until the clock is set; returns by how many seconds."""
        waiting: asyncio.Future[int] = self._loop.create_future()
        self._steps.append(waiting)
        return await waiting

    async def sleep(self, seconds: float) -> None:
        """Sleep for some seconds."""
        await asyncio.sleep(seconds)

    async def sleep_until(self, at: int) -> None:
        """Sleep until an instant, exactly."""
        if at <= self.now():
            await asyncio.sleep(0)
        while at > self.now():
            await self._sleep_to_tick((at - self.start - self._ahead) * TICKS_PER_SECOND)

    async def _sleep_to_tick(self, ticks: int) -> None:
        """Sleep until a tick of the loop, or until the clock is set."""
        woken: asyncio.Future[None] = self._loop.create_future()
        self._sleepers[woken] = None
        timer = self._loop.call_at_ticks(ticks, settle, woken)
        try:
            await woken
        finally:
            timer.cancel()
            del self._sleepers[woken]


def settle(future: asyncio.Future[None]) -> None:
    """Resolve a future that is still pending."""
    if not future.done():
        future.set_result(None)


def run(main: Callable[[VirtualClock], Coroutine[Any, Any, T]], *, start: int = 0) -> T:
    """Run a coroutine on a fresh virtual loop whose second 0 is the instant `start`."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)  # noqa: S101 - the runner was given its factory
        return runner.run(main(VirtualClock(loop, start)))
