"""One object, judged: what it means, and everything that is wrong with it.

This needs nothing but the object as a tree. Where the tree was read from a text, `springtide.apis.objects` adds the
places; an admission webhook has no text, and shows the same problems without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from springtide.apis.extensions import merge_extensions
from springtide.apis.fields import Context, View
from springtide.apis.kinds import Kind, Version
from springtide.apis.problems import Path, Problem, earlier_path, error, warning
from springtide.apis.structure import check


@dataclass(frozen=True, slots=True)
class Judged:
    """What is known about an object of a kind that we know."""

    value: dict[str, Any]
    """The canonical tree: extensions merged, aliases resolved."""
    view: View | None
    """The typed view; absent where the structure does not allow one."""
    problems: tuple[Problem, ...]
    """All problems, at the paths under which the fields were written."""
    origins: dict[Path, Path]
    """For parts of the canonical tree that stood elsewhere: where."""


def judge(value: dict[str, Any], kind: Kind, version: Version, context: Context) -> Judged:
    """Judge an object; the tree it is made from stays as it is."""
    meant, problems = merge_extensions(value)
    origins: dict[Path, Path] = {}
    if version.lenient is not None:
        reading = version.lenient(meant)
        meant, origins = reading.value, reading.origins
        problems += reading.problems
    checked = check(meant, version.view, context, foreign=kind.builtin)
    problems += (
        msgspec.structs.replace(problem, path=earlier_path(problem.path, origins))
        for problem in (*checked.problems, *_placement(meant, kind))
    )
    misspelt = {right: earlier_path(wrong, origins) for right, wrong in checked.misspelt.items()}
    return Judged(checked.value, checked.view, tuple(problems), {**origins, **misspelt})


def _placement(value: dict[str, Any], kind: Kind) -> Iterator[Problem]:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return
    if metadata.get("name") is None and metadata.get("generateName") is None:
        yield error(("metadata", "name"), "is missing", "every object needs a name")
    if kind.scope == "Cluster" and metadata.get("namespace") is not None:
        hint = "remove `metadata.namespace`"
        yield warning(("metadata", "namespace"), f"{kind.kind} objects are in no namespace: this is ignored", hint)
