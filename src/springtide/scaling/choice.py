"""What several recommendations come to together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Select(StrEnum):
    """Which of several is taken in a direction."""

    MAX = "Max"
    """Of recommendations the highest; of policies the one that allows most."""
    MIN = "Min"
    """Of recommendations the lowest; of policies the one that allows least."""
    DISABLED = "Disabled"
    """Nothing moves this way."""

    def among(self, numbers: Iterable[int]) -> int:
        """Take one of some recommendations; a direction that is disabled still has a highest one."""
        return min(numbers) if self is Select.MIN else max(numbers)


@dataclass(frozen=True, slots=True)
class Agreement:
    """What is asked for, all in all."""

    replicas: int
    overruled: int | None = None
    """The highest recommendation, where fewer are asked for all the same; None: nobody wants more."""


def agreed(
    recommendations: Sequence[int], current: int, *, up: Select, down: Select, overruled: int | None = None
) -> Agreement:
    """Give what is asked for, judged for each direction by its own rule.

    More replicas are asked for if the choice for more says so; else fewer, if the choice for fewer does. A rule for one
    direction never moves anything in the other.

    The highest for more and the lowest for fewer would contradict each other for ever, one undoing what the other did.
    So what was overruled when fewer were asked for asks for more only when it rises.
    """
    more, fewer = up.among(recommendations), down.among(recommendations)
    known = None if overruled is None else min(overruled, more)
    if more > current and (known is None or more > known):
        return Agreement(more)
    if fewer < current:
        return Agreement(fewer, more if more > fewer else None)
    return Agreement(current, known)


def certain(recommendations: Sequence[int], current: int, *, up: Select, overruled: int | None = None) -> int:
    """Give what is asked for in any case, while some recommendations are not known: never fewer than there are.

    Of the highest it is certain that it is no lower than the highest that is known. Of the lowest nothing is. What was
    overruled before stays so: that another metric is missing is no reason to bring it back.
    """
    if not recommendations or up is Select.MIN:
        return current
    most = max(recommendations)
    return max(current, most) if overruled is None or most > overruled else current
