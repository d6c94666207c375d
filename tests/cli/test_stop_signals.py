"""A long-lived command: asked to end once, it ends in order; asked twice, at once; asked early, it does not begin."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import click
import pytest
from tests.cli.up_process import treating

from springtide.cli.console import FORCED_EXIT_CODE, cancelled_on_stop, run_until_signalled


def tell(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_who_is_told_ends_in_order(number: int) -> None:
    async def main(stop: asyncio.Event) -> int:
        tell(number)
        await stop.wait()
        return 7

    with treating(number, signal.SIG_DFL):
        assert run_until_signalled(main) == 7


def test_who_is_told_twice_is_torn_away() -> None:
    async def main(stop: asyncio.Event) -> int:
        tell()
        await stop.wait()
        tell()
        await asyncio.sleep(30)
        return 7

    assert run_until_signalled(main) == FORCED_EXIT_CODE


def test_what_has_not_begun_is_given_up() -> None:
    async def main(stop: asyncio.Event) -> int:
        with cancelled_on_stop(stop):
            tell()
            await asyncio.sleep(30)
        return 7

    assert run_until_signalled(main) == 0


def test_what_has_begun_is_ended_in_order() -> None:
    async def main(stop: asyncio.Event) -> int:
        with cancelled_on_stop(stop):
            await asyncio.sleep(0)
        tell()
        await stop.wait()
        await asyncio.sleep(0.01)
        return 7

    assert run_until_signalled(main) == 7


def test_who_shall_survive_the_terminal_does() -> None:
    async def main(stop: asyncio.Event) -> int:
        tell(signal.SIGHUP)
        await asyncio.sleep(0.01)
        return 0 if stop.is_set() else 7

    with treating(signal.SIGHUP, signal.SIG_IGN):
        assert run_until_signalled(main) == 7


def test_an_end_does_not_wait_for_somebody_to_hear_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever read what we say may be gone: `springtide controller 2>&1 | head`."""

    def broken(*_: Any, **__: Any) -> None:
        raise BrokenPipeError

    async def main(stop: asyncio.Event) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()
        return 7

    monkeypatch.setattr(click, "echo", broken)
    assert run_until_signalled(main) == 7
