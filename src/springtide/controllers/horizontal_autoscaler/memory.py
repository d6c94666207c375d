"""What is remembered of an autoscaler between two looks at it, for as long as we lead.

What was recommended is lost with the process, and that is safe: nothing moves before a whole window of its direction
has been seen again. What was changed is not, where policies count it: the status keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from springtide.cluster.resources import Object
from springtide.controllers.horizontal_autoscaler.specs import written
from springtide.scaling import History, Recommendations


@dataclass(frozen=True, slots=True)
class Look:
    """A look at an autoscaler: what was written then, and when the next one is due."""

    of: tuple[Any, ...]
    made: int
    due: int
    settling: bool = False
    """Whether the metrics do not show yet what was done: until the next look is due, their changes mean nothing."""

    @classmethod
    def at(cls, autoscaler: Object, now: int, due: int, *, settling: bool = False) -> Look:
        """Take down a look."""
        return cls(written(autoscaler), now, due, settling)

    def suffices(self, autoscaler: Object, now: int, *, woken: bool) -> bool:
        """Tell whether it need not be looked again: not yet, and nobody but us has written; and the clock goes on.

        Somebody who is woken looks at once, unless what was done must show first.
        """
        early = self.made <= now < self.due and (self.settling or not woken)
        return early and written(autoscaler) == self.of


@dataclass(frozen=True, slots=True)
class Rescale:
    """A change of a scale that was sent."""

    at: int
    before: int
    after: int
    because: str


@dataclass(slots=True)
class Memory:
    """The past of one autoscaler with one target."""

    subject: tuple[str, str]
    """The identities of the two; with another one, there is no past."""
    history: History = field(default_factory=History)
    under_way: Rescale | None = None
    """What was sent and not answered: whether it took effect shows when the scale is read again."""
    last_scale: int | None = None
    """When the scale was changed last."""
    looked: int | None = None
    """When it was decided last."""

    def decided(self, history: History, now: int) -> None:
        """Take down what is known after a decision."""
        self.history = history
        self.looked = now

    def gap(self, now: int, longest: int) -> None:
        """Forget what was recommended before a time in which nobody looked: it has not been seen for a whole window."""
        if self.looked is not None and now - self.looked > longest:
            self.history = replace(self.history, recommendations=Recommendations())

    def done(self, rescale: Rescale) -> None:
        """Take down that a change took effect."""
        self.history = self.history.changed(rescale.at, rescale.before, rescale.after)
        self.last_scale = rescale.at
        self.under_way = None

    def settle(self, asked: int) -> Rescale | None:
        """Find out what became of a change without an answer, from what is asked for now; gives it if it was made."""
        rescale, self.under_way = self.under_way, None
        if rescale is None or asked != rescale.after:
            return None
        self.done(rescale)
        return rescale
