"""The time that answers bear: the cluster's, which is how clients learn of a clock that is not theirs."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate


class Dates:
    """Writes the present for the header `Date`, once a second."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._second: int | None = None
        self._written = b""

    def header(self) -> bytes:
        """Give the present, as HTTP writes it."""
        now = self._now()
        if now != self._second:
            self._second, self._written = now, formatdate(now, usegmt=True).encode()
        return self._written
