"""Mending a text that cannot be read as it was meant, where only one thing can have been meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Final, NamedTuple

from springtide.apis.problems import error
from springtide.apis.yaml.diagnosis import find_mistake
from springtide.apis.yaml.document import (
    Document,
    FileSegment,
    PlacedProblem,
    Position,
    UnreadableDocument,
    read_segment,
    segments,
)
from springtide.apis.yaml.failures import COMMENT_REPAIR, Mistake, find_failure
from springtide.apis.yaml.nodes import MappingNode, Node, ScalarNode, compose, scalars

_SLASHES: Final = re.compile(r"(?<=\s)//[^\n]*")
_OBJECT_KEYS: Final = ("apiversion", "kind", "metadata")
_MARKER: Final = "---\n"


class Repair(NamedTuple):
    """A mistake, the place where it stood, how to mend it, and what was done."""

    position: Position
    message: str
    hint: str
    done: str


def repair(text: str) -> tuple[str, list[Repair]]:
    """Mend comments that begin with `//`, colons that are missing, and objects without `---` between them.

    A document that is as it was meant, or that cannot be mended beyond doubt, stays as it is.
    """
    mended, repairs, done = "", list[Repair](), 0
    for segment in segments(text):
        part, found = _repair_segment(segment)
        for start, placed in reversed(list(_missing_markers(replace(segment, text=part)))):
            part = part[:start] + _MARKER + part[start:]
            found.append(Repair(placed.position, placed.problem.message, placed.problem.hint, "wrote `---` before it"))
        mended += text[done : segment.offset] + part
        done = segment.offset + len(segment.text)
        repairs += sorted(found)
    return mended + text[done:], repairs


def read_repaired(text: str) -> list[Document | UnreadableDocument]:
    """Read every document of a file and, beside each mistake that can be mended, what was meant.

    So a slip hides nothing that comes after it: all of the text is judged, as it would be without the slip.
    """
    return [result for segment in segments(text) for result in _read_through(segment)]


def _read_through(segment: FileSegment) -> Iterator[Document | UnreadableDocument]:
    mended, repairs = _repair_segment(segment)
    for found in repairs:
        yield UnreadableDocument(*found.position, found.message, found.hint)
    segment = replace(segment, text=mended)
    joints = list(_missing_markers(segment))
    starts = [0, *(start for start, _ in joints)]
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(mended)], strict=True)):
        before = segment if number == 0 else _from(segment, start, joints[number - 1][1].position)
        for result in read_segment(replace(before, text=mended[start:end])):
            if number and isinstance(result, Document):
                yield replace(result, problems=(joints[number - 1][1], *result.problems))
            else:
                yield result


def _from(segment: FileSegment, start: int, position: Position) -> FileSegment:
    return FileSegment(segment.text[start:], segment.offset + start, position.line, position.column)


def _repair_segment(segment: FileSegment) -> tuple[str, list[Repair]]:
    """Mend what keeps a document from being read."""
    text = segment.text
    mistakes: dict[int, Mistake] = {}
    while failure := find_failure(text):
        mistake = find_mistake(text, failure)
        if mistake is None or not mistake.repair:
            return segment.text, []
        mistakes |= dict.fromkeys(_changed_lines(text, mistake.mended), mistake)
        text = mistake.mended
    comment = next((mistake for mistake in mistakes.values() if mistake.repair == COMMENT_REPAIR), None)
    if comment is not None:
        commented = _comment_out_slashes(text)
        mistakes |= dict.fromkeys(_changed_lines(text, commented), comment)
        text = commented
    if mistakes and not all(isinstance(result, Document) for result in read_segment(replace(segment, text=text))):
        return segment.text, []
    before, after = segment.text.splitlines(), text.splitlines()
    return text, [
        Repair(segment.position(line, _column(before[line], after[line])), made.message, made.hint, made.repair)
        for line, made in sorted(mistakes.items())
    ]


def _column(before: str, after: str) -> int:
    """Where a mended line begins to differ: at the slashes, or at the word that lacks its colon."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    return common if before[common:].startswith("//") else len(before) - len(before.lstrip(" -"))


def _comment_out_slashes(text: str) -> str:
    """Mend the comments that were taken for a part of an unquoted value, and so went unnoticed."""
    unquoted = [scalar for scalar in scalars(next(compose(text))) if not scalar.style]
    commented = text
    for scalar in reversed(unquoted):
        for found in reversed(list(_SLASHES.finditer(text, scalar.start, scalar.end))):
            commented = f"{commented[: found.start()]}#{commented[found.start() + 2 :]}"
    return commented if find_failure(commented) is None else text


def _changed_lines(before: str, after: str) -> list[int]:
    pairs = zip(before.splitlines(), after.splitlines(), strict=True)
    return [number for number, (one, other) in enumerate(pairs) if one != other]


def _missing_markers(segment: FileSegment) -> Iterator[tuple[int, PlacedProblem]]:
    """Find where another object begins in a readable document without a marker: it says again what it is."""
    if find_failure(segment.text) is not None:
        return
    for root in compose(segment.text):
        if not isinstance(root, MappingNode) or root.flow:
            continue
        seen: set[str] = set()
        for key, _ in root.entries:
            name = _name(key)
            if name in seen and name in _OBJECT_KEYS and _begins_another(name, seen):
                problem = error((), "another object begins here", "write `---` on a line of its own before it")
                yield key.start, PlacedProblem(problem, segment.position(key.line, key.column))
                seen = set()
            seen.add(name)


def _begins_another(name: str, seen: set[str]) -> bool:
    """Tell the head of another object from a line of the same head that is there twice."""
    if name == "apiversion":
        return "kind" in seen
    return bool({"metadata", "spec"} & seen and {"apiversion", "kind"} & seen)


def _name(key: Node) -> str:
    return key.text.lower() if isinstance(key, ScalarNode) else ""
