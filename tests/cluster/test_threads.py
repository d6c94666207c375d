"""Threads that belong to somebody: what waits in them keeps nobody else waiting."""

from __future__ import annotations

import asyncio
import threading

import pytest

from springtide.cluster.threads import Threads


def test_a_call_gives_what_the_function_gives() -> None:
    """Its result or its failure, from another thread."""

    async def main() -> str:
        with Threads("test", 2) as threads:
            with pytest.raises(ZeroDivisionError):
                await threads.run(divmod, 1, 0)
            return await threads.run(lambda: threading.current_thread().name)

    assert asyncio.run(main()).startswith("test")


def test_nobody_waits_for_threads_of_others() -> None:
    """Neither other owners, nor the event loop, which looks up host names in threads of its own."""

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


def test_a_thread_is_its_owners_until_it_ends() -> None:
    """Who gives up and asks again does not get more threads by it."""

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


def test_a_failure_that_nobody_waits_for_is_not_told_by_anybody_else(caplog: pytest.LogCaptureFixture) -> None:
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
