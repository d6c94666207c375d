"""Which node a pod goes to.

What was thought of a node is remembered for as long as the node stays as it is: a thousand pods of one template are
judged on every node once, and then only on those that have got something since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from springtide.simulator.behaviours import predicates
from springtide.simulator.behaviours.demands import Demand
from springtide.simulator.behaviours.predicates import Room, Score

_MOST_REMEMBERED = 64
"""How many demands; a template has hundreds of pods, or its pods come once each and are not worth it."""


class Choice(NamedTuple):
    """Where a pod goes, and why; or why nowhere."""

    node: str | None
    because: str


@dataclass(frozen=True, slots=True)
class _Verdict:
    room: Room
    """The node as it was judged; rooms are made anew when anything changes."""
    refusals: tuple[str, ...]
    score: Score


class Judge:
    """Chooses among nodes, and remembers what it thought of them."""

    def __init__(self) -> None:
        self._verdicts: dict[Demand, list[_Verdict]] = {}

    def choose(self, demand: Demand, rooms: Sequence[Room]) -> Choice:
        """Choose a node: the best score wins, then the first in order. Without one, tell why none is fit."""
        verdicts = self._judged(demand, rooms)
        fit = [verdict for verdict in verdicts if not verdict.refusals]
        if not fit:
            return Choice(None, predicates.told(len(rooms), [verdict.refusals for verdict in verdicts]))
        best = max(fit, key=lambda verdict: verdict.score)
        because = f"{len(fit)} of {len(rooms)} nodes are fit, and this one has most to spare"
        return Choice(best.room.node["metadata"]["name"], because)

    def _judged(self, demand: Demand, rooms: Sequence[Room]) -> list[_Verdict]:
        before = self._verdicts.pop(demand, [])
        if len(before) == len(rooms):
            judged = [
                verdict if verdict.room is room else _judge(demand, room)
                for verdict, room in zip(before, rooms, strict=True)
            ]
        else:
            judged = [_judge(demand, room) for room in rooms]
        # The demand that was not asked about for the longest time stands first, and goes first.
        self._verdicts[demand] = judged
        if len(self._verdicts) > _MOST_REMEMBERED:
            del self._verdicts[next(iter(self._verdicts))]
        return judged


def _judge(demand: Demand, room: Room) -> _Verdict:
    refusals = predicates.refusals(demand, room)
    return _Verdict(room, refusals, (0, 0) if refusals else predicates.score(demand, room))
