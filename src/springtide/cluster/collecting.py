"""Python's search for garbage, for processes that hold much for long.

What is used no more is freed at once, by counting references; the search is for cycles alone, of which there are few
here. It looks at young objects whenever seven hundred have come, and at all there are when their number has grown by a
quarter. To a process with records of many thousands of objects that is a tenth to a third of its time, spent while
others wait.
"""

from __future__ import annotations

import gc

_YOUNG = 50_000
"""New objects after which the young ones are looked at: some megabytes."""
_GENERATIONS = 20
"""Looks at one generation after which the next older one is looked at, too."""


def search_rarely() -> None:
    """Look for cycles less often, in the whole process: for programs to call, and never for libraries."""
    gc.set_threshold(_YOUNG, _GENERATIONS, _GENERATIONS)
