"""What a process offers its controllers besides the cluster: metrics, providers of nodes, whom it trusts.

The runtime knows none of these. Whoever puts a process together offers them, and a controller asks for the one that it
needs by its type, so that it is given the same in every world.
"""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class Services:
    """Things that are offered, found by what they are."""

    def __init__(self, *offered: object) -> None:
        self._offered = offered

    def get(self, kind: type[T]) -> T:
        """Give the first that is of a type; a `LookupError` says that nobody has offered one."""
        for one in self._offered:
            if isinstance(one, kind):
                return one
        names = ", ".join(type(one).__name__ for one in self._offered) or "nothing"
        msg = f"this process offers no {kind.__name__}, only {names}"
        raise LookupError(msg)


NONE = Services()
