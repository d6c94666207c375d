"""Stop signals of long-running commands: the first one stops in order, the second one cancels."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import click
import pytest
from tests.cli.up_process import signal_handler

from springtide.cli.stop_signals import FORCED_EXIT_CODE, cancelled_on_stop, run_until_signalled


def send_signal(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_sets_the_stop_event(number: int) -> None:
    async def main(stop: asyncio.Event) -> int:
        send_signal(number)
        await stop.wait()
        return 7

    with signal_handler(number, signal.SIG_DFL):
        assert run_until_signalled(main) == 7


def test_a_second_signal_cancels_the_command() -> None:
    async def main(stop: asyncio.Event) -> int:
        send_signal()
        await stop.wait()
        send_signal()
        await asyncio.sleep(30)
        return 7

    assert run_until_signalled(main) == FORCED_EXIT_CODE


def test_a_block_before_readiness_is_cancelled_on_stop() -> None:
    async def main(stop: asyncio.Event) -> int:
        with cancelled_on_stop(stop):
            send_signal()
            await asyncio.sleep(30)
        return 7

    assert run_until_signalled(main) == 0


def test_after_that_block_a_stop_cancels_nothing() -> None:
    async def main(stop: asyncio.Event) -> int:
        with cancelled_on_stop(stop):
            await asyncio.sleep(0)
        send_signal()
        await stop.wait()
        await asyncio.sleep(0.01)
        return 7

    assert run_until_signalled(main) == 7


def test_an_ignored_hangup_stays_ignored() -> None:
    async def main(stop: asyncio.Event) -> int:
        send_signal(signal.SIGHUP)
        await asyncio.sleep(0.01)
        return 0 if stop.is_set() else 7

    with signal_handler(signal.SIGHUP, signal.SIG_IGN):
        assert run_until_signalled(main) == 7


def test_a_closed_terminal_does_not_keep_a_command_from_stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of the output may have exited: `springtide controller 2>&1 | head`."""

    def broken(*_: Any, **__: Any) -> None:
        raise BrokenPipeError

    async def main(stop: asyncio.Event) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()
        return 7

    monkeypatch.setattr(click, "echo", broken)
    assert run_until_signalled(main) == 7
