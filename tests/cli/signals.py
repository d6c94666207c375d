"""How the process of the tests treats a signal, which what it starts inherits.

Tests may themselves be run by something that survives its terminal: what that ignores, they would ignore, too.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def treating(number: int, handler: signal.Handlers) -> Iterator[None]:
    """Treat a signal so for a while."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
