"""What somebody probably meant: the nearest known name, or the place where a name belongs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from springtide.apis.fields import View
from springtide.apis.schema import Schema, schema_of

_DEEPEST = 12
_LONGEST_WORD = 80


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Find the known name that a word is a slip of: another case, a plural, an abbreviation, or a typing error."""
    if len(word) > _LONGEST_WORD:
        return None
    names = list(known)
    folded = word.lower()
    for name in names:
        if name.lower() == folded:
            return name
    for name in names:
        if len(folded) >= 3 and name.lower().startswith(folded) and len(name) <= 3 * len(word):
            return name
    best = min(((_distance(folded, name.lower()), name) for name in names), default=None)
    if best is not None and 3 * best[0] <= max(len(word), len(best[1])) and best[0] < min(len(word), len(best[1])):
        return best[1]
    return None


def _distance(a: str, b: str) -> int:
    """Count the edits from one word to the other, a swap of neighbours being one."""
    older: list[int] = []
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        older, previous = previous, row
    return previous[-1]


def home_of(name: str, root: type[View], path: tuple[str | int, ...]) -> str | None:
    """Find where in the kind a misplaced field belongs: the place that shares most with where it stands."""
    steps = tuple(step for step in path if isinstance(step, str))
    places = _places(root).get(name)
    if not places:
        return None
    best = max(places, key=lambda place: (_shared(place, steps), -len(place)))
    return ".".join(best)


def _shared(place: tuple[str, ...], steps: tuple[str, ...]) -> int:
    shared = 0
    for a, b in zip(place, steps, strict=False):
        if a.removesuffix("[]") != b:
            break
        shared += 1
    return shared


@cache
def _places(root: type[View]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Index every field of a kind by its name: the objects that may hold it."""
    found: dict[str, list[tuple[str, ...]]] = {}

    def walk(schema: Schema, place: tuple[str, ...]) -> None:
        if len(place) > _DEEPEST:
            return
        if schema.items is not None:
            mark = "[]" if schema.shape == "list" else ""
            walk(schema.items, (*place[:-1], place[-1] + mark) if place else place)
        for name in schema.known:
            found.setdefault(name, []).append(place)
        for field in schema.fields:
            walk(field.schema, (*place, field.name))

    walk(schema_of(root), ())
    return {name: tuple(place for place in places if place) for name, places in found.items()}
