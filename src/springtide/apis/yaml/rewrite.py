"""Changing the value of a document while its comments, order, quotes and layout stay.

The text is changed by small edits in separate places and parsed again after each round, so that no edit depends on
another. At the end the text is parsed once more; if its value is not exactly the wanted one, the value is written from
scratch. So the value is always right; only comments can be lost, which the result says.

Which old part corresponds to which new one is decided by how similar they are (`similarity`, `alignment`).
"""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import yaml

from springtide.apis.yaml.document import Document, read
from springtide.apis.yaml.dump import dump
from springtide.apis.yaml.edits import TextEdit, TextLayout, ValueSlot, insert, remove, rename, replace
from springtide.apis.yaml.nodes import MappingNode, Node, RefusedError, SequenceNode, compose
from springtide.apis.yaml.values import merges, name_of, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator


_EQUAL: Final = 1000
_SAME_LETTERS: Final = 900
_WRAPPED_IN_LIST: Final = 600
_SIMILAR: Final = 500
_MIN_STEM: Final = 4
_MAX_COMPARISONS: Final = 10_000
_MAX_PASSES: Final = 1000


def rewrite(document_text: str, old_value: Any, new_value: Any) -> tuple[str, bool]:
    """Change the text of one document so that its value is `new_value` instead of `old_value`.

    The flag tells whether every comment was kept, except those of removed parts.
    """
    if same(old_value, new_value):
        return document_text, True
    if not _reads_as(document_text, old_value):
        return dump(new_value), False
    text_ended = document_text.endswith("\n")
    text = document_text if text_ended else document_text + "\n"
    expected = comments(text)
    for _ in range(_MAX_PASSES):
        layout = _layout(text)
        edits = _edits(layout, layout.root, new_value, None) if layout else []
        if layout is None or not edits:
            break
        for edit in sorted(edits, reverse=True):
            expected -= Counter(c.text for c in layout.comments if edit.start <= c.start < edit.drops_until)
            text = text[: edit.start] + edit.text + text[edit.end :]
    # A text block at the end of a file may need the line break that the file did not have.
    candidates = [text] if text_ended else [text.removesuffix("\n"), text]
    for candidate in candidates:
        if _reads_as(candidate, new_value):
            return candidate, expected <= comments(candidate)
    return dump(new_value), not expected


def _reads_as(text: str, value: Any) -> bool:
    results = read(text)
    return (
        len(results) == 1
        and isinstance(results[0], Document)
        and same(results[0].value, value)
        and not any(found.problem.severity == "error" for found in results[0].problems)
    )


def _layout(text: str) -> TextLayout | None:
    try:
        roots = list(compose(text))
    except (yaml.YAMLError, RefusedError):
        return None
    return TextLayout(text, roots[0]) if len(roots) == 1 else None


def comments(text: str) -> Counter[str]:
    """Count the comments of a document's text."""
    layout = _layout(text)
    return Counter(comment.text for comment in layout.comments) if layout else Counter()


def _edits(layout: TextLayout, node: Node, new: Any, slot: ValueSlot | None) -> list[TextEdit]:
    """Return edits of separate places that bring a node closer to its new value; none if there are none."""
    old, _ = value_of(node)
    if same(old, new):
        return []
    if isinstance(node, MappingNode) and isinstance(new, dict) and old and new and not merges(node):
        return _mapping_edits(layout, node, old, new)
    if isinstance(node, SequenceNode) and isinstance(new, list) and old and new:
        return _sequence_edits(layout, node, old, new)
    if slot is None:
        return []
    edit = replace(layout, node, new, slot)
    # The comments of an emptied list or mapping are removed on purpose, not lost.
    is_emptied = type(old) is type(new) and new in ([], {})
    return [edit._replace(drops_until=edit.end) if is_emptied else edit]


def _mapping_edits(layout: TextLayout, node: MappingNode, old: dict[str, Any], new: dict[str, Any]) -> list[TextEdit]:
    names = [name_of(key) for key, _ in node.entries]
    if names != list(old):
        return []
    if renaming := renamed_key(old, new):
        key, _ = node.entries[names.index(renaming[0])]
        return [rename(key, renaming[1], flow=node.flow)]
    within = [
        edit
        for name, part in zip(old, layout.parts(node), strict=True)
        if name in new
        for edit in _edits(layout, part.value, new[name], ValueSlot(node, part))
    ]
    if within:
        return within
    # One part is inserted or removed at a time, new ones first, so that the mapping is never empty.
    index = 0
    for name, value in new.items():
        if name not in old:
            return [insert(layout, node, index, name, value)]
        index = names.index(name) + 1
    return [remove(layout, node, index) for index, name in enumerate(old) if name not in new][:1]


def _sequence_edits(layout: TextLayout, node: SequenceNode, old: list[Any], new: list[Any]) -> list[TextEdit]:
    pairs = alignment(old, new)
    parts = layout.parts(node)
    within = [
        edit
        for before, after in pairs
        if before is not None and after is not None
        for edit in _edits(layout, parts[before].value, new[after], ValueSlot(node, parts[before]))
    ]
    if within:
        return within
    index = 0
    for before, after in pairs:
        if before is None and after is not None:
            return [insert(layout, node, index, None, new[after])]
        index = index if before is None else before + 1
    return [remove(layout, node, before) for before, after in pairs if before is not None and after is None][:1]


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal for Kubernetes: `1`, `1.0` and `true` differ, the order of keys does not."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def renamed_key(old: dict[str, Any], new: dict[str, Any]) -> tuple[str, str] | None:
    """Return the removed and the added key whose values are most similar, if any are similar enough."""
    added = [name for name in new if name not in old]
    best: tuple[str, str] | None = None
    best_score = _SIMILAR - 1
    for removed in (name for name in old if name not in new):
        for name in added:
            score = similarity(old[removed], new[name])
            if score > best_score:
                best, best_score = (removed, name), score
    return best


def similarity(one: Any, other: Any) -> int:
    """Return the similarity of two values, from 0 to 1000."""
    if same(one, other):
        return _EQUAL
    if isinstance(one, dict) and isinstance(other, dict):
        shared = sum(similarity(value, other[key]) for key, value in one.items() if key in other)
        return shared // len(one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return sum(map(similarity, one, other)) // max(len(one), len(other))
    if isinstance(one, list) or isinstance(other, list):
        items, item = (one, other) if isinstance(one, list) else (other, one)
        return max((_WRAPPED_IN_LIST * similarity(item, candidate) // _EQUAL for candidate in items), default=0)
    if isinstance(one, dict) or isinstance(other, dict):
        return 0
    return _word_similarity(str(one).lower(), str(other).lower())


def _word_similarity(one: str, other: str) -> int:
    """Return the similarity of two words; a different case or type counts little, a different ending more."""
    if one == other:
        return _SAME_LETTERS
    stem = min(len(one), len(other))
    return _SIMILAR if stem >= _MIN_STEM and one[:stem] == other[:stem] else 0


def alignment(old: list[Any], new: list[Any]) -> list[tuple[int | None, int | None]]:
    """Pair the items of two lists in order, with the highest total similarity.

    Returns (position in old, position in new), with None for an item that was inserted or removed. Items without a
    similar one are paired if both lists have some at the same place: they were replaced.
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
    similar = [(i + prefix, j + prefix) for i, j in _most_similar_pairs(old[prefix:old_end], new[prefix:new_end])]
    for i, j in [*similar, (old_end, new_end)]:
        pairs += zip_longest(range(start[0], i), range(start[1], j))
        pairs.append((i, j))
        start = (i + 1, j + 1)
    pairs.pop()
    return [*pairs, *zip(range(old_end, len(old)), range(new_end, len(new)), strict=True)]


def _most_similar_pairs(old: list[Any], new: list[Any]) -> Iterator[tuple[int, int]]:
    """Yield the pairs with the highest total similarity; none if the lists are too long to compare."""
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
