"""Waiting for a live cluster: polling for a state, and an asynchronous block kept open beside a test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 30.0
_PAUSE = 0.1


def eventually(what: str, ask: Callable[[], T], *, patience: float = PATIENCE) -> T:
    """Ask until the answer is not nothing, and give it; the test fails after a while."""
    deadline = time.monotonic() + patience
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"not within {patience:g} s: {what}; the last answer was {answer!r}"
        time.sleep(_PAUSE)
    return answer


_PATIENCE = 60.0


@contextmanager
def in_background(make: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Keep an asynchronous block open for as long as this one lasts; what fails in either fails here."""
    entered: Future[tuple[T, Callable[[], object]]] = Future()

    async def live() -> None:
        loop = asyncio.get_running_loop()
        leaving = asyncio.Event()
        try:
            async with make() as value:
                entered.set_result((value, partial(loop.call_soon_threadsafe, leaving.set)))
                await leaving.wait()
        except BaseException as failure:
            if entered.done():
                raise
            entered.set_exception(failure)

    with ThreadPoolExecutor(1, "background") as thread:
        living = thread.submit(asyncio.run, live())
        value, leave = entered.result(_PATIENCE)
        try:
            yield value
        finally:
            leave()
            living.result(_PATIENCE)
