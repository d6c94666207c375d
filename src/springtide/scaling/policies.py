"""Speed limits: how much a number may change within a period, seen from where the period began."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from springtide.scaling.choice import Select


@dataclass(frozen=True, slots=True)
class Policy:
    """So much within so many seconds."""

    value: int
    period: int
    percent: bool = False
    """Whether `value` is a percentage of the replicas at the beginning of the period, and not a number of them."""
    least: int = 1
    """What a percentage comes to at least: else nothing would ever grow from none."""

    def change(self, start: int) -> int:
        """Tell by how many replicas it may change in a period that began with so many; a part of one counts as one."""
        return max(self.least, -(-start * self.value // 100)) if self.percent else self.value


@dataclass(frozen=True, slots=True)
class Changes:
    """What was changed: instants, and by how many replicas; fewer are negative."""

    made: tuple[tuple[int, int], ...] = ()
    doubtful: tuple[tuple[int, int], ...] = ()
    """Those of which nobody knows who made them: they leave less room to go on, and no more room to go back."""

    def as_of(self, now: int, *, keep: int) -> Changes:
        """Forget what is older than so many seconds; where the clock was set back, the future has just happened."""
        made, doubtful = (
            tuple((min(at, now), change) for at, change in changes if at > now - keep)
            for changes in (self.made, self.doubtful)
        )
        return Changes(made, doubtful)

    def then(self, now: int, change: int) -> Changes:
        """Add a change."""
        return Changes((*self.made, (now, change)), self.doubtful)

    def counting(self, *, up: bool) -> Changes:
        """Give those that count for whoever moves in a direction."""
        return Changes((*self.made, *((at, change) for at, change in self.doubtful if (change > 0) == up)))

    def start(self, current: int, period: int, now: int) -> int:
        """Tell how many replicas there would be without the changes of a period that ends now."""
        return current - sum(change for at, change in self.made if at > now - period)


class SummedChanges:
    """The same changes, summed up: for those who ask about very many periods."""

    def __init__(self, changes: Changes) -> None:
        made = sorted(changes.made)
        self._times = [at for at, _ in made]
        self._until = list(accumulate((change for _, change in made), initial=0))

    def start(self, current: int, period: int, now: int) -> int:
        """Tell how many replicas there would be without the changes of a period that ends now."""
        return current - (self._until[-1] - self._until[bisect_right(self._times, now - period)])


def farthest(
    policies: Sequence[Policy], select: Select, changes: Changes | SummedChanges, current: int, now: int, *, up: bool
) -> int | None:
    """Tell how far policies let a number move now; None where there are none."""
    if select is Select.DISABLED:
        return current
    sign = 1 if up else -1
    room = [
        # From where the period began, seen from where we are.
        policy.change(start) - sign * (current - start)
        for policy in policies
        for start in (changes.start(current, policy.period, now),)
    ]
    if not room:
        return None
    return current + sign * max(0, min(room) if select is Select.MIN else max(room))
