"""How the cost of a call grows with the size of its input: by counted steps where they can be counted, else by time.

Steps are the lines and calls of Python that are executed, which a slow or busy machine does not change. What happens
inside of one step, as in a pattern or a comparison of texts, is only seen by its CPU time. It is compared over a factor
of eight in size, where cost that is linear grows eightfold and quadratic cost 64-fold; and only where it is noticeable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import process_time
from types import FrameType
from typing import Any

FACTOR = 8
NOTICEABLE = 0.1
"""Seconds of CPU time below which nothing is compared; quadratic cost is above it at the sizes of these tests."""
_MOST_GROWTH = 3 * FACTOR
_RUNS = 3


class _Enough(BaseException):
    """Ends a call whose steps are more than matters."""


def steps_of(call: Callable[[], object], most: float = inf) -> int:
    """Count the lines and calls that a call executes; a call that executes more than `most` is ended."""
    counted = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal counted
        counted += 1
        if counted > most:
            raise _Enough
        return trace

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal counted
        if event == "c_call":
            counted += 1

    tracing, profiling = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        with suppress(_Enough):
            call()
    finally:
        sys.settrace(tracing)
        sys.setprofile(profiling)
    return counted


def cpu_of(call: Callable[[], object]) -> float:
    """Measure the CPU time of a call."""
    began = process_time()
    call()
    return process_time() - began


def excessive_steps(make: Callable[[int], Callable[[], object]], size: int) -> str:
    """Say by how much the steps of a call grow from a size to four times as much; empty if that is about fourfold."""
    make(1)()  # fills caches
    small, large = steps_of(make(size)), steps_of(make(4 * size))
    return f"{small} steps at {size}, {large} at {4 * size}" if large > 6 * small + 5_000 else ""


def excessive_time(make: Callable[[int], Callable[[], object]], size: int) -> str:
    """Say by how much the cost of a call grows up to a size; empty if it is not noticeable, or about linear."""
    if cpu_of(make(size)) < NOTICEABLE:
        return ""
    part = size // FACTOR
    steps = steps_of(make(part))
    most = _MOST_GROWTH * steps
    if steps_of(make(size), most) > most:
        return f"{steps} steps at {part}, more than {most} at {size}"
    small, large = (min(cpu_of(make(each)) for _ in range(_RUNS)) for each in (part, size))
    if large < NOTICEABLE or large <= _MOST_GROWTH * small:
        return ""
    return f"{small:.4f} s at {part}, {large:.4f} s at {size}"
