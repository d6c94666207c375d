"""Virtual time: a week in seconds, the same on every machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from springtide.simulator.time.clock import VirtualClock
from springtide.simulator.time.loop import Livelock, Stalled, VirtualLoop

T = TypeVar("T")


def run(main: Callable[[VirtualClock], Coroutine[Any, Any, T]], *, start: int = 0) -> T:
    """Run a coroutine on a fresh virtual loop whose second 0 is the instant `start`."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)  # noqa: S101 - the runner was given its factory
        return runner.run(main(VirtualClock(loop, start)))


__all__ = ["Livelock", "Stalled", "VirtualClock", "VirtualLoop", "run"]
