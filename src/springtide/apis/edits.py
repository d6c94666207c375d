"""Editing a text of manifests: what was changed, told by lines, and the form that the text had before."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from springtide.apis.yaml import Document, comments, read


@dataclass(frozen=True, slots=True)
class Change:
    """Something that was changed, and the line it was on."""

    line: int
    message: str


def lost_comments(document: Document, edited: str) -> Iterator[Change]:
    """Tell which comments have gone with what they were about; one document may have become several."""
    left = Counter[str]()
    for written in read(edited):
        if isinstance(written, Document):
            left += comments(written.text)
    lines = document.text.splitlines()
    for comment in (comments(document.text) - left).elements():
        line = next((number for number, line in enumerate(lines) if comment in line), 0)
        yield Change(document.segment.first_line + line, f"the comment `{comment}` has gone with what it was about")


def json_indentation(text: str) -> str | None:
    """Give the indentation of a text that is JSON, an empty one where all stands on a line; None for YAML."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        json.loads(text)
    except ValueError:
        return None
    indentation = re.search(r'\n( +|\t+)"', text)
    return "" if indentation is None else indentation[1]


def as_json(value: Any, indentation: str, before: str) -> str:
    """Write a value as JSON in place of a text, which it ends like."""
    return json.dumps(value, indent=indentation or None, ensure_ascii=False) + before[len(before.rstrip()) :]
