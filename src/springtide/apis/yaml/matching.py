"""How alike two values are, and what became of what: the questions behind the smallest change of a text."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_EQUAL: Final = 1000
_RESPELT: Final = 900
_WRAPPED: Final = 600
_ALIKE: Final = 500
_SHORTEST_STEM: Final = 4
_MAX_COMPARISONS: Final = 10_000


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are one object for Kubernetes: `1`, `1.0` and `true` differ, key order does not."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def renamed_key(old: dict[str, Any], new: dict[str, Any]) -> tuple[str, str] | None:
    """The removed key and the added key whose values are most alike, if any are alike enough."""
    added = [name for name in new if name not in old]
    best: tuple[str, str] | None = None
    best_score = _ALIKE - 1
    for removed in (name for name in old if name not in new):
        for name in added:
            score = similarity(old[removed], new[name])
            if score > best_score:
                best, best_score = (removed, name), score
    return best


def similarity(one: Any, other: Any) -> int:
    """How much of a value is in the other, from 0 to 1000."""
    if same(one, other):
        return _EQUAL
    if isinstance(one, dict) and isinstance(other, dict):
        shared = sum(similarity(value, other[key]) for key, value in one.items() if key in other)
        return shared // len(one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return sum(map(similarity, one, other)) // max(len(one), len(other))
    if isinstance(one, list) or isinstance(other, list):
        items, item = (one, other) if isinstance(one, list) else (other, one)
        return max((_WRAPPED * similarity(item, candidate) // _EQUAL for candidate in items), default=0)
    if isinstance(one, dict) or isinstance(other, dict):
        return 0
    return _spelling(str(one).lower(), str(other).lower())


def _spelling(one: str, other: str) -> int:
    """How alike two words are: another case or type hardly matters, an ending a little."""
    if one == other:
        return _RESPELT
    stem = min(len(one), len(other))
    return _ALIKE if stem >= _SHORTEST_STEM and one[:stem] == other[:stem] else 0


def alignment(old: list[Any], new: list[Any]) -> list[tuple[int | None, int | None]]:
    """Pair the items of two lists in order, so that what is paired is most alike in all.

    Gives (position in old, position in new); None stands for an item that was inserted or removed. Items that are
    like nothing are paired too where some of both stand in one place: they were replaced.
    """
    prefix = 0
    while prefix < min(len(old), len(new)) and same(old[prefix], new[prefix]):
        prefix += 1
    suffix = 0
    while suffix < min(len(old), len(new)) - prefix and same(old[-1 - suffix], new[-1 - suffix]):
        suffix += 1
    old_end, new_end = len(old) - suffix, len(new) - suffix
    pairs: list[tuple[int | None, int | None]] = [(position, position) for position in range(prefix)]
    start = (prefix, prefix)
    alike = [(i + prefix, j + prefix) for i, j in _alike_pairs(old[prefix:old_end], new[prefix:new_end])]
    for i, j in [*alike, (old_end, new_end)]:
        pairs += zip_longest(range(start[0], i), range(start[1], j))
        pairs.append((i, j))
        start = (i + 1, j + 1)
    pairs.pop()
    return [*pairs, *zip(range(old_end, len(old)), range(new_end, len(new)), strict=True)]


def _alike_pairs(old: list[Any], new: list[Any]) -> Iterator[tuple[int, int]]:
    """The pairs of which the sum is most alike; none where looking for them would take too long."""
    if len(old) * len(new) > _MAX_COMPARISONS:
        return
    scores = [[similarity(before, after) for after in new] for before in old]
    # best[i][j] is the highest total that the items from i and j on can reach.
    best = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            best[i][j] = max(best[i + 1][j + 1] + scores[i][j], best[i + 1][j], best[i][j + 1])
    i = j = 0
    while i < len(old) and j < len(new):
        if scores[i][j] and best[i][j] == best[i + 1][j + 1] + scores[i][j]:
            yield i, j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
