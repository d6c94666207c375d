"""Repairing YAML mistakes that have only one possible correction."""

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
_MOST_REPAIRS: Final = 100
"""How many mistakes of a document are repaired: each means to parse the document again."""


class Repair(NamedTuple):
    """A mistake, its position, how to correct it, and what was done."""

    position: Position
    message: str
    hint: str
    done: str


def repair(text: str) -> tuple[str, list[Repair]]:
    """Repair comments that begin with `//`, missing colons, and objects without `---` between them.

    A document without mistakes, or with one that has several possible corrections, is not changed.
    """
    corrected, repairs, done = "", list[Repair](), 0
    for segment in segments(text):
        part, found = _repair_segment(segment)
        for start, placed in reversed(list(_missing_markers(replace(segment, text=part)))):
            part = part[:start] + _MARKER + part[start:]
            found.append(Repair(placed.position, placed.problem.message, placed.problem.hint, "wrote `---` before it"))
        corrected += text[done : segment.offset] + part
        done = segment.offset + len(segment.text)
        repairs += sorted(found)
    return corrected + text[done:], repairs


def read_repaired(text: str) -> list[Document | UnreadableDocument]:
    """Parse every document of a file; a mistake that can be repaired is reported, and the rest is parsed as repaired.

    So a mistake does not hide the problems after it.
    """
    return [result for segment in segments(text) for result in _read_through(segment)]


def _read_through(segment: FileSegment) -> Iterator[Document | UnreadableDocument]:
    corrected, repairs = _repair_segment(segment)
    for found in repairs:
        yield UnreadableDocument(*found.position, found.message, found.hint)
    segment = replace(segment, text=corrected)
    markers = list(_missing_markers(segment))
    starts = [0, *(start for start, _ in markers)]
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(corrected)], strict=True)):
        before = segment if number == 0 else _from(segment, start, markers[number - 1][1].position)
        for result in read_segment(replace(before, text=corrected[start:end])):
            if number and isinstance(result, Document):
                yield replace(result, problems=(markers[number - 1][1], *result.problems))
            else:
                yield result


def _from(segment: FileSegment, start: int, position: Position) -> FileSegment:
    return FileSegment(segment.text[start:], segment.offset + start, position.line, position.column)


def _repair_segment(segment: FileSegment) -> tuple[str, list[Repair]]:
    """Repair the mistakes that make a document unreadable."""
    text = segment.text
    mistakes: dict[int, Mistake] = {}
    while failure := find_failure(text):
        mistake = find_mistake(text, failure)
        if mistake is None or not mistake.repair or len(mistakes) >= _MOST_REPAIRS:
            return segment.text, []
        mistakes |= dict.fromkeys(_changed_lines(text, mistake.corrected), mistake)
        text = mistake.corrected
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
    """Return where a repaired line begins to differ: at the slashes, or at the word without a colon."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    return common if before[common:].startswith("//") else len(before) - len(before.lstrip(" -"))


def _comment_out_slashes(text: str) -> str:
    """Repair comments that were parsed as part of an unquoted value, and so caused no failure."""
    unquoted = [scalar for scalar in scalars(next(compose(text))) if not scalar.style]
    parts, end = list[str](), 0
    for scalar in unquoted:
        for found in _SLASHES.finditer(text, scalar.start, scalar.end):
            parts += (text[end : found.start()], "#")
            end = found.start() + 2
    commented = "".join((*parts, text[end:]))
    return commented if find_failure(commented) is None else text


def _changed_lines(before: str, after: str) -> list[int]:
    pairs = zip(before.splitlines(), after.splitlines(), strict=True)
    return [number for number, (one, other) in enumerate(pairs) if one != other]


def _missing_markers(segment: FileSegment) -> Iterator[tuple[int, PlacedProblem]]:
    """Find where another object begins without a marker: at a repeated `apiVersion`, `kind` or `metadata`."""
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
    """Return whether a repeated key begins another object, and is not repeated within one."""
    if name == "apiversion":
        return "kind" in seen
    return bool({"metadata", "spec"} & seen and {"apiversion", "kind"} & seen)


def _name(key: Node) -> str:
    return key.text.lower() if isinstance(key, ScalarNode) else ""
