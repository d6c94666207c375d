"""Waiting for what a live cluster does in its own time."""

from __future__ import annotations

import time
from collections.abc import Callable
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
