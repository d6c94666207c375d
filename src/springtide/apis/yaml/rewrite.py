"""Changing what a document says while its comments, order, quotes and layout stay.

The text is brought to its new value by small edits in places apart, and read anew before the next ones, so that no
edit has to know of the others. At the end the text is read once more: if it does not say exactly what it should, the
value is written from scratch. So the result is always right; only comments can be lost, and then we say so.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import yaml

from springtide.apis.yaml.compose import compose
from springtide.apis.yaml.document import Document
from springtide.apis.yaml.dump import dump
from springtide.apis.yaml.edits import Edit, Slot, insert, remove, rename, replace
from springtide.apis.yaml.layout import Layout
from springtide.apis.yaml.matching import alignment, renamed_key, same
from springtide.apis.yaml.nodes import MappingNode, Node, SequenceNode
from springtide.apis.yaml.reader import read
from springtide.apis.yaml.refusal import RefusedError
from springtide.apis.yaml.values import merges, name_of, value_of

_MAX_PASSES: Final = 1000


def rewrite(document_text: str, old_value: Any, new_value: Any) -> tuple[str, bool]:
    """Change the text of one document so that it reads as `new_value` instead of `old_value`.

    The flag tells whether every comment was kept, except those of removed parts, which go with them.
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


def _layout(text: str) -> Layout | None:
    try:
        roots = list(compose(text))
    except (yaml.YAMLError, RefusedError):
        return None
    return Layout(text, roots[0]) if len(roots) == 1 else None


def comments(text: str) -> Counter[str]:
    """Count the comments of a document's text."""
    layout = _layout(text)
    return Counter(comment.text for comment in layout.comments) if layout else Counter()


def _edits(layout: Layout, node: Node, new: Any, slot: Slot | None) -> list[Edit]:
    """Edits that bring a node nearer to its new value, in places that do not touch; none if there is no way."""
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
    # Where every part of a list or mapping goes, its comments are not lost but gone.
    is_emptied = type(old) is type(new) and new in ([], {})
    return [edit._replace(drops_until=edit.end) if is_emptied else edit]


def _mapping_edits(layout: Layout, node: MappingNode, old: dict[str, Any], new: dict[str, Any]) -> list[Edit]:
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
        for edit in _edits(layout, part.value, new[name], Slot(node, part))
    ]
    if within:
        return within
    # One part comes or goes at a time, new ones first, so that there is always one beside it.
    index = 0
    for name, value in new.items():
        if name not in old:
            return [insert(layout, node, index, name, value)]
        index = names.index(name) + 1
    return [remove(layout, node, index) for index, name in enumerate(old) if name not in new][:1]


def _sequence_edits(layout: Layout, node: SequenceNode, old: list[Any], new: list[Any]) -> list[Edit]:
    pairs = alignment(old, new)
    parts = layout.parts(node)
    within = [
        edit
        for before, after in pairs
        if before is not None and after is not None
        for edit in _edits(layout, parts[before].value, new[after], Slot(node, parts[before]))
    ]
    if within:
        return within
    index = 0
    for before, after in pairs:
        if before is None and after is not None:
            return [insert(layout, node, index, None, new[after])]
        index = index if before is None else before + 1
    return [remove(layout, node, before) for before, after in pairs if before is not None and after is None][:1]
