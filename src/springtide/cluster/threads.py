"""Threads for libraries that wait for the network: their own, so that nobody else waits for them.

The event loop looks up host names in threads that it has for everybody. Servers that never answer would take all of
those, and with them the connections to the API server and the lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

Args = TypeVarTuple("Args")
Result = TypeVar("Result")


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
