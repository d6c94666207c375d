"""Runs a long-lived command until somebody ends it: Ctrl-C or SIGTERM asks for an orderly end, a second one insists."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import click

INSISTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_until_told(main: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    """Run `main` with an event that is set when it shall end; gives its exit code, or 130 if it was torn away."""
    return asyncio.run(_until_told(main))


async def _until_told(main: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    stop = asyncio.Event()
    running = asyncio.ensure_future(main(stop))

    def told() -> None:
        if stop.is_set():
            running.cancel()
            return
        click.echo("stopping; once more to stop at once", err=True)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, told)
    try:
        return await running
    except asyncio.CancelledError:
        return INSISTED
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
