"""Computations beside the event loop, threads per owner, and garbage collection."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from springtide.cluster.compute import (
    ComputeLimitExceeded,
    InlineCompute,
    LiveCompute,
    Threads,
    tune_gc,
)
from springtide.simulator.virtual_time import VirtualClock, run

T = TypeVar("T")


def test_inline_returns_when_the_modelled_time_is_over() -> None:
    """The virtual clock advances by the cost, independent of the machine."""

    async def main(clock: VirtualClock) -> tuple[int, float]:
        result = await InlineCompute(clock).run(max, 3, 4, cost=2.5)
        return result, clock.monotonic()

    assert run(main) == (4, 2.5)


def test_closed_threads_take_no_more_calls() -> None:
    """They belong to a client that is closed as well."""

    async def main() -> None:
        with Threads("some", 2) as threads:
            assert await threads.run(len, "abc") == 3
        with pytest.raises(RuntimeError, match="after shutdown"):
            await threads.run(len, "abc")

    asyncio.run(main())


def test_inline_raises_what_the_function_raises() -> None:
    """A decision that fails, fails in the reconcile that asked for it."""

    async def main(clock: VirtualClock) -> None:
        await InlineCompute(clock).run(int, "x", cost=1)

    with pytest.raises(ValueError, match="invalid literal"):
        run(main)


def test_a_thread_does_not_block_the_event_loop() -> None:
    """The function runs in another thread of the same process."""

    async def main() -> int:
        compute = LiveCompute(1)
        try:
            return await compute.run(threading.get_ident, cost=0)
        finally:
            compute.close()

    assert asyncio.run(main()) != threading.get_ident()


def isolated(story: Callable[[LiveCompute], Coroutine[Any, Any, T]], *, seconds: float = 60.0) -> T:
    """Run a test with a child process."""

    async def main() -> T:
        compute = LiveCompute(1, seconds=seconds)
        try:
            return await story(compute)
        finally:
            compute.close()

    return asyncio.run(main())


def test_limited_calls_run_in_one_other_process() -> None:
    async def story(compute: LiveCompute) -> list[int]:
        return [await compute.run_limited(os.getpid, cost=0) for _ in range(3)]

    first, *others = isolated(story)
    assert first != os.getpid()
    assert others == [first, first]


def test_a_limited_call_returns_or_raises_what_the_function_does() -> None:
    async def story(compute: LiveCompute) -> int:
        with pytest.raises(ValueError, match="invalid literal"):
            await compute.run_limited(int, "x", cost=0)
        return await compute.run_limited(abs, -3, cost=0)

    assert isolated(story) == 3


def test_a_call_beyond_its_time_is_ended_and_others_go_on() -> None:
    """Also one that never returns to the interpreter, which could not be ended in a thread."""

    async def story(compute: LiveCompute) -> int:
        endless = asyncio.create_task(compute.run_limited(re.fullmatch, "(a|a)*b", "a" * 60, cost=0))
        waiting = asyncio.create_task(compute.run_limited(abs, -3, cost=0))
        with pytest.raises(ComputeLimitExceeded, match=r"more than 0\.3 s"):
            await endless
        return await waiting

    assert isolated(story, seconds=0.3) == 3


def test_a_call_beyond_its_cpu_time_is_ended_and_others_go_on() -> None:
    """Also one that never returns to the interpreter; time in which it waits does not count."""

    async def story(compute: LiveCompute) -> int:
        with pytest.raises(ComputeLimitExceeded, match=r"more than 0\.2 s of CPU time"):
            await compute.run_limited(re.fullmatch, "(a|a)*b", "a" * 60, cost=0, cpu=0.2)
        await compute.run_limited(time.sleep, 0.3, cost=0, cpu=0.2)
        return await compute.run_limited(abs, -3, cost=0)

    assert isolated(story, seconds=0.3) == 3


def test_a_call_beyond_its_memory_fails() -> None:
    async def story(compute: LiveCompute) -> int:
        with pytest.raises(ComputeLimitExceeded, match="memory"):
            await compute.run_limited(bytes, 2 << 30, cost=0)
        return await compute.run_limited(abs, -3, cost=0)

    assert isolated(story) == 3


def test_a_new_process_replaces_one_that_died() -> None:
    async def story(compute: LiveCompute) -> int:
        with pytest.raises(ComputeLimitExceeded, match="has ended"):
            await compute.run_limited(os._exit, 1, cost=0)
        return await compute.run_limited(abs, -3, cost=0)

    assert isolated(story) == 3


def test_closing_ends_a_running_call() -> None:
    async def story(compute: LiveCompute) -> asyncio.Task[None]:
        endless = asyncio.create_task(compute.run_limited(time.sleep, 3600.0, cost=0))
        while not compute._running:
            await asyncio.sleep(0.01)
        return endless

    async def main() -> None:
        compute = LiveCompute(1)
        endless = await story(compute)
        compute.close()
        with pytest.raises(ComputeLimitExceeded):
            await endless

    asyncio.run(main())


def test_a_call_returns_or_raises_what_the_function_does() -> None:
    """From another thread."""

    async def main() -> str:
        with Threads("test", 2) as threads:
            with pytest.raises(ZeroDivisionError):
                await threads.run(divmod, 1, 0)
            return await threads.run(lambda: threading.current_thread().name)

    assert asyncio.run(main()).startswith("test")


def test_owners_do_not_wait_for_threads_of_others() -> None:
    """Nor does the event loop, which resolves host names in threads of its own."""

    async def main() -> list[str]:
        answered = threading.Event()
        with Threads("test", 4, each=3) as threads:
            stuck = [asyncio.ensure_future(threads.run(answered.wait, owner="a")) for _ in range(50)]
            async with asyncio.timeout(10):
                await asyncio.sleep(0)
                found = [await threads.run(str, "another owner", owner="b")]
                await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80)
            answered.set()
            await asyncio.gather(*stuck)
        return found

    assert asyncio.run(main()) == ["another owner"]


def test_a_thread_counts_for_its_owner_until_it_ends() -> None:
    """A caller that gives up and calls again does not get more threads."""

    async def main() -> int:
        answered, begun = threading.Event(), threading.Semaphore(0)

        def wait() -> None:
            begun.release()
            answered.wait()

        with Threads("test", 8, each=2) as threads:
            for _ in range(5):
                call = asyncio.ensure_future(threads.run(wait, owner="a"))
                await asyncio.sleep(0.01)
                call.cancel()
            taken = sum(begun.acquire(blocking=False) for _ in range(8))
            answered.set()
            await threads.run(str, "in the end", owner="a")
        return taken

    assert asyncio.run(main()) == 2


def test_a_failure_after_the_caller_gave_up_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Who has given up does not want to know."""

    async def main() -> None:
        answered = threading.Event()

        def fail() -> None:
            answered.wait()
            raise ValueError

        with Threads("test", 1) as threads:
            call = asyncio.ensure_future(threads.run(fail))
            await asyncio.sleep(0.01)
            call.cancel()
            answered.set()
            await threads.run(str)

    asyncio.run(main())

    assert caplog.records == []


def test_garbage_is_collected_less_often() -> None:
    """It is still collected: a process with cycles must not grow without end."""
    usual = (700, 10, 10)
    before = gc.get_threshold()  # not the usual ones where a test before this one ran a command in this process
    try:
        gc.set_threshold(*usual)
        tune_gc()
        after = gc.get_threshold()
    finally:
        gc.set_threshold(*before)

    assert all(often < rare for often, rare in zip(usual, after, strict=True))
