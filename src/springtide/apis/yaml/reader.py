"""Reading files of manifests: every document for itself, so that an unreadable one never hides the others.

A line that begins with `---` ends a document whatever stands before it, even an open quote.
So a file can be cut there before anything is parsed, and each part gets its own parser and its own verdict.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import yaml

from springtide.apis.yaml.causes import explain
from springtide.apis.yaml.characters import BYTE_ORDER_MARK, LINE_BREAK
from springtide.apis.yaml.compose import compose
from springtide.apis.yaml.document import Document, Segment, Unreadable, document_of
from springtide.apis.yaml.failures import failure_of
from springtide.apis.yaml.parsers import ParserFactory, fastest_parser
from springtide.apis.yaml.refusal import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKER: Final = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)[ \t]*(?:\r?\n)?", re.MULTILINE)
_DIRECTIVES: Final = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*%[^\n]*\n(?:[ \t\r]*(?:[#%][^\n]*)?\n)*")


def read(text: str, parser: ParserFactory = fastest_parser) -> list[Document | Unreadable]:
    """Read every document of a file, in order; empty ones are left out."""
    return [result for segment in segments(text) for result in read_segment(segment, parser)]


def segments(text: str) -> Iterator[Segment]:
    """Cut a file at its document markers; YAML directives stay with the document they are for."""
    start = 1 if text.startswith(BYTE_ORDER_MARK) else 0
    line, column = 1, 1
    for marker in _MARKER.finditer(text, start):
        before = text[start : marker.start()]
        if _DIRECTIVES.fullmatch(before):
            continue
        yield Segment(before, start, line, column)
        line += _count_lines(text[start : marker.end()])
        column = 1 if marker[0].endswith("\n") else len(marker[0]) + 1
        start = marker.end()
    yield Segment(text[start:], start, line, column)


def _count_lines(text: str) -> int:
    return sum(1 for _ in LINE_BREAK.finditer(text))


def read_segment(segment: Segment, parser: ParserFactory = fastest_parser) -> Iterator[Document | Unreadable]:
    """Read the document of one part of a file."""
    try:
        roots = list(compose(segment.text, parser))
    except RefusedError as refused:
        position = segment.position(refused.line, refused.column)
        yield Unreadable(*position, refused.message, refused.hint)
    except yaml.YAMLError as error:
        cause = explain(segment.text, failure_of(error), parser)
        yield Unreadable(*segment.position(cause.line, cause.column), cause.message, cause.hint)
    else:
        for document in (document_of(root, segment) for root in roots):
            if document.value is not None or document.problems:
                yield document
