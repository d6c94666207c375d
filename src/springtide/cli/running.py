"""Runs a long-lived command until somebody ends it: Ctrl-C or SIGTERM asks for an orderly end, a second one insists.

To close the terminal is to ask as well, unless the command was started so that it survives that (`nohup`).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from springtide.cluster.collecting import search_rarely

INSISTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_until_told(main: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    """Run `main` with an event that is set when it shall end; gives its exit code, or 130 if it was torn away."""
    search_rarely()
    return asyncio.run(_until_told(main))


def failed(words: str) -> int:
    """Tell why the command cannot go on; gives the exit code."""
    click.echo(f"{click.style('error', fg='red', bold=True)}: {words}", err=True)
    return 1


@contextmanager
def given_up_when_told(stop: asyncio.Event) -> Iterator[None]:
    """Do not finish the block once the command shall end: nobody waits for what it begins."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - only coroutines of a task can be told
    told = asyncio.create_task(stop.wait())
    told.add_done_callback(lambda done: None if done.cancelled() else task.cancel())
    try:
        yield
    finally:
        told.cancel()


async def _until_told(main: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    stop = asyncio.Event()
    running = asyncio.ensure_future(main(stop))
    insisted = False

    def told() -> None:
        nonlocal insisted
        if stop.is_set():
            insisted = True
            running.cancel()
            return
        # First of all: whoever reads what we say may be gone, and must not keep us from ending.
        stop.set()
        with suppress(OSError):
            click.echo("stopping; once more to stop at once", err=True)

    loop = asyncio.get_running_loop()
    heeded = _SIGNALS if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (*_SIGNALS, signal.SIGHUP)
    for number in heeded:
        loop.add_signal_handler(number, told)
    try:
        return await running
    except asyncio.CancelledError:
        return INSISTED if insisted else 0
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)
