"""Manifests from files, folders and standard input."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = (".yaml", ".yml", ".json")
"""How the names of manifests end."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text that was read, and what to call it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read at all."""

    name: str
    message: str
    hint: str = ""


def read_inputs(paths: tuple[str, ...]) -> tuple[list[Source], list[Unread]]:
    """Read everything that is named; what cannot be read is told and keeps nothing else from being read."""
    sources: list[Source] = []
    unread: list[Unread] = []
    seen: set[str] = set()
    for path in paths:
        names, failure = _expand(path)
        if failure is not None:
            unread.append(failure)
        for name in names:
            # A file that is named twice, or stands in a folder that is named as well, is read once.
            if (real := name if name == "-" else os.path.realpath(name)) in seen:
                continue
            seen.add(real)
            outcome = _read(name)
            if isinstance(outcome, Source):
                sources.append(outcome)
            else:
                unread.append(outcome)
    return sources, unread


def _expand(path: str) -> tuple[list[str], Unread | None]:
    """List the manifests below a folder, in a stable order; a file is itself."""
    if path == "-" or not Path(path).is_dir():
        return [path], None
    found = [
        os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if name.endswith(SUFFIXES)
    ]
    if not found:
        return [], Unread(path, f"no {', '.join(SUFFIXES)} file in this folder")
    return sorted(found), None


def _read(name: str) -> Source | Unread:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as failure:
        return Unread(name, (failure.strerror or str(failure)).lower())
    label = "<stdin>" if name == "-" else name
    try:
        return Source(label, data.decode("utf-8-sig"))
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        return Unread(label, f"line {line}: not UTF-8 text")
