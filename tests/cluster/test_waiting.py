"""Waiting for whatever comes first."""

from __future__ import annotations

import asyncio

import pytest

from springtide.cluster.waiting import first_of
from springtide.simulator.time import VirtualClock, run


def test_the_others_are_cancelled() -> None:
    """What lost has no reason to go on."""

    async def main(clock: VirtualClock) -> tuple[float, bool]:
        slow = asyncio.ensure_future(clock.sleep(1000))
        await first_of(clock.sleep(3), slow)
        await asyncio.wait((slow,))
        return clock.monotonic(), slow.cancelled()

    assert run(main) == (3, True)


def test_what_is_shielded_goes_on() -> None:
    """A future of the caller's own is not ended by our waiting for it."""

    async def main(clock: VirtualClock) -> bool:
        own = asyncio.ensure_future(clock.sleep(10))
        await first_of(clock.sleep(3), asyncio.shield(own))
        await own
        return own.cancelled()

    assert run(main) is False


def test_whoever_is_cancelled_while_waiting_leaves_nothing_behind() -> None:
    """All of them end with the one who waits."""

    async def main(clock: VirtualClock) -> None:
        parts = [asyncio.ensure_future(clock.sleep(1000)) for _ in range(2)]
        waiting = asyncio.ensure_future(first_of(*parts))
        await clock.sleep(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait(parts)
        assert clock.monotonic() == 1

    run(main)
