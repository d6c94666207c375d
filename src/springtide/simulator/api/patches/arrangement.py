"""The order of a list that a strategic merge patch has merged.

What the patch names comes in the order of the patch; what only the server has keeps the server's order; and the two are
zipped so that an entry of the server stays before those that it stood before.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any


def arranged(items: Sequence[tuple[Hashable, Any]], asked: Sequence[Hashable], server: Sequence[Hashable]) -> list[Any]:
    """Give the items, each with its key, in their final order."""
    wanted = _places(asked)
    known = _places(server)
    ours = sorted((item for item in items if item[0] in wanted), key=lambda item: wanted[item[0]])
    theirs = [item for item in items if item[0] not in wanted]
    result: list[Any] = []
    for key, item in ours:
        if key in known:
            while theirs and theirs[0][0] in known and known[theirs[0][0]] < known[key]:
                result.append(theirs.pop(0)[1])
        result.append(item)
    return result + [item for _, item in theirs]


def follows(part: Sequence[Hashable], whole: Sequence[Hashable]) -> bool:
    """Tell whether the keys of one sequence stand in another in the same order; an empty one makes no demands."""
    rest = iter(whole)
    return not whole or all(key in rest for key in part)


def _places(keys: Sequence[Hashable]) -> dict[Hashable, int]:
    """Tell where each key stands first."""
    return {key: place for place, key in reversed(list(enumerate(keys)))}
