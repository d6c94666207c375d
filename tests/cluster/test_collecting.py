"""Looking for garbage less often: what it sets, for the whole process."""

from __future__ import annotations

import gc

from springtide.cluster.collecting import search_rarely


def test_cycles_are_looked_for_less_often() -> None:
    """They still are: a process that has some must not grow without end."""
    before = gc.get_threshold()
    try:
        search_rarely()
        after = gc.get_threshold()
    finally:
        gc.set_threshold(*before)

    assert all(0 < usual < rare for usual, rare in zip(before, after, strict=True))
