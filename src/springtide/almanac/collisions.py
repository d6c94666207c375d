"""Collisions: layers or rules that set different values at the same instant.

The search covers a stated time and gives up after a stated number of steps, because a checker must answer at once. All
collisions that it returns exist; further ones may exist beyond the search.
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

#: Nine years contain a leap year even across a century, and so every date at least once.
OVERLAP_YEARS = 9
FIRING_YEARS = 2
_DAYS_PER_YEAR = 366

#: Steps of a search for overlaps: one for each change of a layer, and for every `_PAIRS_PER_STEP` pairs of layers.
OVERLAP_STEPS = 2_000_000
_PAIRS_PER_STEP = 8
#: The number of firings that the search for one pair of rules visits.
FIRING_STEPS = 20_000
#: The same for all pairs together; a pair counts `_STEPS_PER_PAIR` more. Some hundred rules are compared completely.
ALL_FIRING_STEPS = 1_000_000
_STEPS_PER_PAIR = 8


@dataclass(frozen=True, slots=True)
class TimelineLayer(Generic[V]):
    """A named value that is wanted while a timeline is active. The highest priority wins, then the first layer."""

    name: str
    active: Timeline[bool]
    value: V
    priority: int = 0


@dataclass(frozen=True, slots=True)
class LayerOverlap:
    """Two layers with different values, the first spans in which both are active, and the layer that wins.

    A span is half-open; its end is None if it never ends, or ends beyond the search.
    """

    winner: str
    loser: str
    spans: tuple[tuple[int, int | None], ...]


@dataclass(frozen=True, slots=True)
class FiringRule(Generic[V]):
    """A named rule: when it fires, and the fields that it sets then."""

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
    left = ALL_FIRING_STEPS
    for index, later in enumerate(rules):
        for earlier in rules[:index]:
            if (left := left - _STEPS_PER_PAIR) < 0:
                return found
            disputed = [
                name for name, value in earlier.values.items() if name in later.values and later.values[name] != value
            ]
            if not disputed:
                continue
            instants, steps = _common_instants(earlier.firings, later.firings, from_, horizon, first)
            left -= steps
            if instants:
                found.extend(RuleCoincidence(later.name, earlier.name, name, instants) for name in disputed)
    return found


def _common_instants(
    a: Firings, b: Firings, from_: int, horizon: int, first: int | None
) -> tuple[tuple[int, ...], int]:
    """Return the first instants at which both fire, and the steps taken; skips from firings of one to the other's."""
    common: list[int] = []
    left, right = a.after(from_ - 1), b.after(from_ - 1)
    steps = 0
    while steps < FIRING_STEPS:
        if left is None or right is None or max(left, right) > horizon or len(common) == first:
            break
        steps += 1
        if left == right:
            common.append(left)
            left, right = a.after(left), b.after(right)
        elif left < right:
            left = a.after(right - 1)
        else:
            right = b.after(left - 1)
    return tuple(common), steps
