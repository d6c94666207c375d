"""Collisions: where two things that someone wrote claim the same instant with different values.

Finding them is bounded: a search covers a stated time and gives up after a stated number of steps, because
a checker must answer at once. What it finds is true; what it does not find may still lie beyond.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Generic, TypeVar

from springtide.almanac.civil import DAY
from springtide.almanac.combining import merged
from springtide.almanac.firings import Firings
from springtide.almanac.search_budget import exceeds_budget, limit_search
from springtide.almanac.timeline import Timeline

V = TypeVar("V")

#: Nine years hold a leap year even across a century, so every date has come at least once.
OVERLAP_YEARS = 9
FIRING_YEARS = 2
_DAYS_PER_YEAR = 366

#: Steps of a search for overlaps, each of which looks at a change of a layer, or at some pairs of them.
OVERLAP_STEPS = 2_000_000
_PAIRS_PER_STEP = 8
#: Firings that a search for one pair of rules looks at.
FIRING_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class TimelineLayer(Generic[V]):
    """A named claim: while active, the value should hold. Higher priority wins, then the order of the layers."""

    name: str
    active: Timeline[bool]
    value: V
    priority: int = 0


@dataclass(frozen=True, slots=True)
class LayerOverlap:
    """Two layers with different values, the first spans in which both are active, and who wins.

    A span is half-open; its end is None where it lasts forever or beyond the search.
    """

    winner: str
    loser: str
    spans: tuple[tuple[int, int | None], ...]


@dataclass(frozen=True, slots=True)
class FiringRule(Generic[V]):
    """Named firings, and what each of them sets."""

    name: str
    firings: Firings
    values: Mapping[str, V] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleCoincidence:
    """Two rules that set one field to different values at the same instants; the winner is listed later."""

    winner: str
    loser: str
    field: str
    instants: tuple[int, ...]


def overlaps(
    layers: Sequence[TimelineLayer[V]], from_: int, until: int | None = None, first: int | None = 3
) -> list[LayerOverlap]:
    """Return every pair of layers that is active together with different values, with its first few spans, or all."""
    horizon = from_ + OVERLAP_YEARS * _DAYS_PER_YEAR * DAY if until is None else until
    with limit_search(OVERLAP_STEPS):
        return _overlaps(layers, from_, horizon, first)


def _overlaps(layers: Sequence[TimelineLayer[V]], from_: int, horizon: int, first: int | None) -> list[LayerOverlap]:
    ranked = sorted(range(len(layers)), key=lambda index: (-layers[index].priority, index))
    ordered = [layers[index] for index in ranked]
    found: dict[tuple[int, int], list[tuple[int, int | None]]] = {
        (a, b): [] for a, b in combinations(range(len(ordered)), 2) if ordered[a].value != ordered[b].value
    }
    missing = len(found)
    opened: dict[tuple[int, int], int] = {}
    for at, states in merged([layer.active for layer in ordered], from_):
        active = [index for index, state in enumerate(states) if state]
        if at >= horizon or not missing or exceeds_budget((len(opened) + len(active) ** 2) // _PAIRS_PER_STEP):
            break
        for pair in [pair for pair in opened if not (states[pair[0]] and states[pair[1]])]:
            found[pair].append((opened.pop(pair), at))
            missing -= len(found[pair]) == first
        for pair in combinations(active, 2):
            if pair in found and (first is None or len(found[pair]) < first):
                opened.setdefault(pair, at)
    for pair, start in opened.items():
        found[pair].append((start, None))
    return [LayerOverlap(ordered[a].name, ordered[b].name, tuple(spans)) for (a, b), spans in found.items() if spans]


def same_minute(
    rules: Sequence[FiringRule[V]], from_: int, until: int | None = None, first: int | None = 3
) -> list[RuleCoincidence]:
    """Return every pair of rules that disagrees about a field at the same instants, with the first few, or all."""
    horizon = from_ + FIRING_YEARS * _DAYS_PER_YEAR * DAY if until is None else until
    found: list[RuleCoincidence] = []
    for index, later in enumerate(rules):
        for earlier in rules[:index]:
            disputed = [
                name for name, value in earlier.values.items() if name in later.values and later.values[name] != value
            ]
            if not disputed:
                continue
            instants = _common_instants(earlier.firings, later.firings, from_, horizon, first)
            if instants:
                found.extend(RuleCoincidence(later.name, earlier.name, name, instants) for name in disputed)
    return found


def _common_instants(a: Firings, b: Firings, from_: int, horizon: int, first: int | None) -> tuple[int, ...]:
    """Return the first instants at which both fire, leaping from one to the other."""
    common: list[int] = []
    mine, theirs = a.after(from_ - 1), b.after(from_ - 1)
    for _ in range(FIRING_STEPS):
        if mine is None or theirs is None or max(mine, theirs) > horizon or len(common) == first:
            break
        if mine == theirs:
            common.append(mine)
            mine, theirs = a.after(mine), b.after(theirs)
        elif mine < theirs:
            mine = a.after(theirs - 1)
        else:
            theirs = b.after(mine - 1)
    return tuple(common)
