"""What a write changes about what an object means, and which of its problems it brings along.

An object that is on its way out, or of which only labels, finalizers or status change, is not judged at all: whatever
is wrong with it, nobody could let go of it otherwise. A change of the spec is judged, but for what was wrong before:
an older version of the rules may have let it in, and its author must be able to mend one thing at a time.

Validation: the problems that `springtide check` finds, said before the object is stored.

Only what is ours is refused. Objects of others pass with warnings at most: their owners may know better.

The JSON patch from one tree to another, as small as can be told without searching.

Mappings are compared key by key. Lists are compared from both ends; what is left in the middle is replaced entry by
entry, and the rest of it removed or added.

Defaulting: what is read leniently is stored in its canonical form.

The defaults of fields stand in the CRDs. What they cannot do is to rename a reason that is written in lower case, or
to turn a count into the text that the schema asks for. Nothing depends on it: without this webhook the schema refuses
such an object, and says why.

Conversion between the versions of a kind: all objects of a review, or none and the name of the one that cannot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from springtide.apis import scheme as registry
from springtide.apis.kinds import Kind, KindVersion, ValidationContext
from springtide.apis.problems import Path, Problem
from springtide.apis.scheme import ConversionError, convert, owned
from springtide.apis.validation import ANNOTATION, validate_object
from springtide.cluster.admission.reviews import (
    ALLOWED,
    AdmissionRequest,
    AdmissionResponse,
    admission_response,
    conversion_failure,
    conversion_success,
    read_admission,
    read_conversion,
)
from springtide.cluster.resources import Object

_WRITE_OPERATIONS = ("CREATE", "UPDATE")
_NOT_USER_FIELDS = ("apiVersion", "kind", "metadata", "status")


def object_to_validate(request: AdmissionRequest) -> Object | None:
    """Give the object that a request is about, unless it must pass whatever it looks like."""
    item = request.object
    if item is None or request.operation not in _WRITE_OPERATIONS or request.sub_resource:
        return None
    if _metadata(item).get("deletionTimestamp") is not None:
        return None
    old = request.old_object
    return item if old is None or _user_fields(old) != _user_fields(item) else None


def downgrade_existing(problems: Iterable[Problem], before: Iterable[Problem]) -> list[Problem]:
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


def _user_fields(item: Object) -> Object:
    """Give what the author of an object decides: all but head, metadata and status, and the extensions."""
    annotations = _metadata(item).get("annotations")
    extensions = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return {ANNOTATION: extensions, **{name: part for name, part in item.items() if name not in _NOT_USER_FIELDS}}


def _metadata(item: Object) -> dict[str, Any]:
    metadata = item.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def validate(body: bytes, context: ValidationContext) -> bytes:
    """Answer an AdmissionReview; raises `Malformed` for what is none."""
    request = read_admission(body)
    return validated(request, context).written(request.uid)


def validated(request: AdmissionRequest, context: ValidationContext) -> AdmissionResponse:
    """Judge what is about to be stored."""
    item = object_to_validate(request)
    found = kind_of(item) if item is not None else None
    if item is None or found is None:
        return ALLOWED
    problems = list(validate_object(item, *found, context).problems)
    old = request.old_object
    earlier = kind_of(old) if old is not None else None
    if not owned(item):
        problems = as_warnings(problems)
    elif old is not None and earlier is not None:
        problems = downgrade_existing(problems, validate_object(old, *earlier, context).problems)
    return admission_response(item, problems)


def kind_of(item: Object) -> tuple[Kind, KindVersion] | None:
    """Find the kind of an object, if it is one of those that we define."""
    api_version, kind = item.get("apiVersion"), item.get("kind")
    found = registry.find_kind(api_version, kind) if isinstance(api_version, str) and isinstance(kind, str) else None
    return found if found is not None and not found[0].builtin else None


def json_patch(old: Any, new: Any) -> tuple[Object, ...]:
    """Give operations that, in this order, turn one tree into the other; none where they are the same."""
    return tuple(_operations(old, new, ""))


def _operations(old: Any, new: Any, path: str) -> Iterator[Object]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _in_mapping(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _in_list(old, new, path)
    elif not _same(old, new):
        yield {"op": "replace", "path": path, "value": new}


def _in_mapping(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Object]:
    for key, part in old.items():
        place = f"{path}/{_escaped(key)}"
        if key in new:
            yield from _operations(part, new[key], place)
        else:
            yield {"op": "remove", "path": place}
    for key, part in new.items():
        if key not in old:
            yield {"op": "add", "path": f"{path}/{_escaped(key)}", "value": part}


def _in_list(old: list[Any], new: list[Any], path: str) -> Iterator[Object]:
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if not _same(old[at], new[at])), shorter)
    tail = next((at for at in range(shorter - head) if not _same(old[-1 - at], new[-1 - at])), shorter - head)
    removed, added = old[head : len(old) - tail], new[head : len(new) - tail]
    both = min(len(removed), len(added))
    for at in range(both):
        yield from _operations(removed[at], added[at], f"{path}/{head + at}")
    for at in range(len(removed) - 1, both - 1, -1):
        yield {"op": "remove", "path": f"{path}/{head + at}"}
    for at in range(both, len(added)):
        yield {"op": "add", "path": f"{path}/{head + at}", "value": added[at]}


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does: `true` is not 1, although Python says so."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(part, other[key]) for key, part in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


_MOST_OPERATIONS = 10_000
"""The API server takes no longer patch; the lists of an object that needs one are too long for its schema anyway."""


def default_object(body: bytes) -> bytes:
    """Answer an AdmissionReview; raises `Malformed` for what is none."""
    request = read_admission(body)
    return defaulted(request).written(request.uid)


def defaulted(request: AdmissionRequest) -> AdmissionResponse:
    """Give the repairs of what is about to be stored, each with a warning; objects of others stay as they are."""
    item = object_to_validate(request)
    found = kind_of(item) if item is not None else None
    if item is None or found is None or not owned(item):
        return ALLOWED
    _, version = found
    if version.normalizer is None:
        return ALLOWED
    reading = version.normalizer(item)
    patch = json_patch(item, reading.value)
    return admission_response(item, reading.problems, patch=patch) if 0 < len(patch) <= _MOST_OPERATIONS else ALLOWED


def convert_all(body: bytes) -> bytes:
    """Answer a ConversionReview; raises `Malformed` for what is none."""
    request = read_conversion(body)
    made: list[Object] = []
    for position, item in enumerate(request.objects):
        try:
            # Without metadata the API server takes no object back, be it empty.
            made.append({"metadata": {}, **convert(item, request.desired_version)})
        except ConversionError as failure:
            return conversion_failure(request.uid, f"{_named(item, position)}: {failure}")
    return conversion_success(request.uid, made)


def _named(item: Object, position: int) -> str:
    metadata = item.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    kind = item.get("kind")
    return f"{kind} {name}" if isinstance(kind, str) and isinstance(name, str) else f"objects[{position}]"
