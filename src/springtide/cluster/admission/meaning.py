"""What a write changes about what an object means, and which of its problems it brings along.

An object that is on its way out, or of which only labels, finalizers or status change, is not judged at all: whatever
is wrong with it, nobody could let go of it otherwise. A change of the spec is judged, but for what was wrong before:
an older version of the rules may have let it in, and its author must be able to mend one thing at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from springtide.apis.extensions import ANNOTATION
from springtide.apis.problems import Path, Problem
from springtide.cluster.admission.reviews import AdmissionRequest
from springtide.cluster.resources import Object

_WRITES = ("CREATE", "UPDATE")
_NOT_MEANT = ("apiVersion", "kind", "metadata", "status")


def to_be_judged(request: AdmissionRequest) -> Object | None:
    """Give the object that a request is about, unless it must pass whatever it looks like."""
    item = request.object
    if item is None or request.operation not in _WRITES or request.sub_resource:
        return None
    if _metadata(item).get("deletionTimestamp") is not None:
        return None
    old = request.old_object
    return item if old is None or _meant(old) != _meant(item) else None


def without_lingering(problems: Iterable[Problem], before: Iterable[Problem]) -> list[Problem]:
    """Turn errors that an object had before into warnings, wherever in a list they have moved to."""
    lingering = Counter(_identity(problem) for problem in before if problem.severity == "error")
    judged: list[Problem] = []
    for problem in problems:
        identity = _identity(problem)
        if problem.severity == "error" and lingering[identity] > 0:
            lingering[identity] -= 1
            judged += as_warnings([problem])
        else:
            judged.append(problem)
    return judged


def as_warnings(problems: Iterable[Problem]) -> list[Problem]:
    """Say the same without refusing anything."""
    return [msgspec.structs.replace(problem, severity="warning") for problem in problems]


def _identity(problem: Problem) -> tuple[Path, str]:
    return tuple("*" if isinstance(step, int) else step for step in problem.path), problem.message


def _meant(item: Object) -> Object:
    """Give what the author of an object decides: all but head, metadata and status, and the extensions."""
    annotations = _metadata(item).get("annotations")
    extensions = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return {ANNOTATION: extensions, **{name: part for name, part in item.items() if name not in _NOT_MEANT}}


def _metadata(item: Object) -> dict[str, Any]:
    metadata = item.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
