"""How long to wait before trying again.

Two limits, both pure arithmetic: `Backoff` slows down one thing that keeps failing, `Bucket` slows down many things
that fail together. Neither reads a clock or draws a random number; whoever uses them passes in the time and the luck.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_MOST_DOUBLINGS = 512
"""Beyond any limit that makes sense, and far from where a float overflows."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double with every failure in a row. The defaults are those of Kubernetes' own controllers."""

    first: float = 0.005
    """Seconds after the first failure."""
    longest: float = 1000.0
    """Seconds that the doubling ends at."""
    jitter: float = 0.0
    """The share of a delay that luck may add to it, so that many who failed at once do not come back at once."""

    def after(self, failures: int, *, luck: float = 0.0) -> float:
        """Give the seconds to wait after so many failures in a row; `luck` is a random number in [0, 1)."""
        if failures <= 0:
            return 0.0
        delay = min(self.longest, math.ldexp(self.first, min(failures - 1, _MOST_DOUBLINGS)))
        return delay * (1.0 + self.jitter * luck)


@dataclass(frozen=True, slots=True)
class Rate:
    """So many a second in the long run, and so many at once. The defaults are those of Kubernetes' own controllers."""

    per_second: float = 10.0
    """Infinity switches the limit off."""
    burst: int = 100


class Bucket:
    """Shares a rate among all who ask: everybody gets a turn, in the order of asking."""

    def __init__(self, rate: Rate) -> None:
        self._interval = 1.0 / rate.per_second
        self._slack = self._interval * (rate.burst - 1)
        self._next = -math.inf

    def reserve(self, now: float) -> float:
        """Take the next turn, and give the seconds until it comes; `now` is monotonic."""
        turn = max(self._next, now)
        self._next = turn + self._interval
        return max(0.0, turn - self._slack - now)
