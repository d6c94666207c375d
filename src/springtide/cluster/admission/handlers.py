"""The handlers of the webhooks, as pure functions from a review to its response: validate, default and convert.

Validation finds the problems that `springtide check` finds, before the object is stored. Only objects that Springtide
owns are refused; others are allowed with warnings. An object is not validated while it is being deleted, or if only
its labels, finalizers or status change: otherwise an invalid object could not be deleted. Errors that the object had
before a change are only warnings: an older version of the rules may have allowed them, and users must be able to fix
one error at a time.

Defaulting stores the canonical form of aliases, such as reasons in lower case and counts that the schema requires as
text. (The defaults of fields are in the CRDs.) Without this webhook the schema refuses such objects.

Conversion converts all objects of a review between the versions of a kind, or fails and names the object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from springtide.apis import scheme as registry
from springtide.apis.kinds import Kind, KindVersion, ValidationContext
from springtide.apis.problems import Path, Problem
from springtide.apis.scheme import ConversionError, convert, missing_effect, owned
from springtide.apis.validation import ANNOTATION, validate_object
from springtide.cluster.admission.reviews import (
    ALLOWED,
    AdmissionResponse,
    AdmissionReviewRequest,
    admission_response,
    conversion_failure,
    conversion_success,
    read_admission,
    read_conversion,
)
from springtide.cluster.resources import Object

_WRITE_OPERATIONS = ("CREATE", "UPDATE")
_NOT_USER_FIELDS = ("apiVersion", "kind", "metadata", "status")
_MOST_OPERATIONS = 10_000
"""The longest patch that the API server accepts."""


def validate(body: bytes, context: ValidationContext) -> bytes:
    """Handle an AdmissionReview; raises `MalformedReview`."""
    request = read_admission(body)
    return validated(request, context).encode(request.uid)


def default_object(body: bytes) -> bytes:
    """Handle an AdmissionReview; raises `MalformedReview`."""
    request = read_admission(body)
    return defaulted(request).encode(request.uid)


def convert_all(body: bytes) -> bytes:
    """Handle a ConversionReview; raises `MalformedReview`."""
    request = read_conversion(body)
    made: list[Object] = []
    for position, item in enumerate(request.objects):
        try:
            # The API server does not accept an object without metadata, even if that is empty.
            made.append({"metadata": {}, **convert(item, request.desired_version)})
        except ConversionError as failure:
            return conversion_failure(request.uid, f"{_named(item, position)}: {failure}")
    return conversion_success(request.uid, made)


def validated(request: AdmissionReviewRequest, context: ValidationContext) -> AdmissionResponse:
    """Validate the object of a request."""
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
    return admission_response(item, problems, note=missing_effect(item))


def defaulted(request: AdmissionReviewRequest) -> AdmissionResponse:
    """Patch the object of a request to its canonical form, with a warning for each change; only owned objects."""
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


def kind_of(item: Object) -> tuple[Kind, KindVersion] | None:
    """Find the kind of an object, if Springtide defines it."""
    api_version, kind = item.get("apiVersion"), item.get("kind")
    found = registry.find_kind(api_version, kind) if isinstance(api_version, str) and isinstance(kind, str) else None
    return found if found is not None and not found[0].builtin else None


def object_to_validate(request: AdmissionReviewRequest) -> Object | None:
    """Return the object of a request, or None if the request is allowed without validation."""
    item = request.object
    if item is None or request.operation not in _WRITE_OPERATIONS or request.sub_resource:
        return None
    if _metadata(item).get("deletionTimestamp") is not None:
        return None
    old = request.old_object
    return item if old is None or _user_fields(old) != _user_fields(item) else None


def downgrade_existing(problems: Iterable[Problem], before: Iterable[Problem]) -> list[Problem]:
    """Turn errors that an object had before into warnings, even if they have moved within a list."""
    existing = Counter(_identity(problem) for problem in before if problem.severity == "error")
    result: list[Problem] = []
    for problem in problems:
        identity = _identity(problem)
        if problem.severity == "error" and existing[identity] > 0:
            existing[identity] -= 1
            result += as_warnings([problem])
        else:
            result.append(problem)
    return result


def as_warnings(problems: Iterable[Problem]) -> list[Problem]:
    """Turn all problems into warnings."""
    return [msgspec.structs.replace(problem, severity="warning") for problem in problems]


def json_patch(old: Any, new: Any) -> tuple[Object, ...]:
    """Return the JSON patch from one tree to another; empty if they are equal.

    Mappings are compared by key. Lists are compared from both ends; the rest in the middle is replaced entry by entry.
    """
    return tuple(_operations(old, new, ""))


def _identity(problem: Problem) -> tuple[Path, str]:
    return tuple("*" if isinstance(step, int) else step for step in problem.path), problem.message


def _user_fields(item: Object) -> Object:
    """Return what users decide: everything except apiVersion, kind, metadata and status; plus the extensions."""
    annotations = _metadata(item).get("annotations")
    extensions = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return {ANNOTATION: extensions, **{name: part for name, part in item.items() if name not in _NOT_USER_FIELDS}}


def _metadata(item: Object) -> dict[str, Any]:
    metadata = item.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


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
    """Compare as JSON does: `true` is not 1, as it is in Python."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(part, other[key]) for key, part in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _named(item: Object, position: int) -> str:
    metadata = item.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    kind = item.get("kind")
    return f"{kind} {name}" if isinstance(kind, str) and isinstance(name, str) else f"objects[{position}]"
