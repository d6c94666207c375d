"""Stops a long-running command: Ctrl-C, SIGTERM and the end of its terminal in order, a second signal at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from springtide.cluster.compute import tune_gc

FORCED_EXIT_CODE = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_until_signalled(main: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    """Run `main` with an event that the first Ctrl-C, SIGTERM or SIGHUP sets; a second signal cancels it.

    Returns the exit code of `main`, or 130 where it was cancelled. SIGHUP is left alone where it is ignored (`nohup`).
    """
    tune_gc()
    return asyncio.run(_run_until_signalled(main))


@contextmanager
def cancelled_on_stop(stop: asyncio.Event) -> Iterator[None]:
    """Cancel the block as soon as the command is asked to stop: it starts what would only be stopped again."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - this runs in a task
    stopped = asyncio.create_task(stop.wait())
    stopped.add_done_callback(lambda done: None if done.cancelled() else task.cancel())
    try:
        yield
    finally:
        stopped.cancel()


async def _run_until_signalled(main: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    stop = asyncio.Event()
    running = asyncio.ensure_future(main(stop))
    forced = False

    def on_signal() -> None:
        nonlocal forced
        if stop.is_set():
            forced = True
            running.cancel()
            return
        # Before the message: writing it can fail where the terminal is gone.
        stop.set()
        with suppress(OSError):
            click.echo("stopping; a second Ctrl-C stops at once", err=True)

    loop = asyncio.get_running_loop()
    handled = _SIGNALS if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (*_SIGNALS, signal.SIGHUP)
    for number in handled:
        loop.add_signal_handler(number, on_signal)
    try:
        return await running
    except asyncio.CancelledError:
        return FORCED_EXIT_CODE if forced else 0
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
