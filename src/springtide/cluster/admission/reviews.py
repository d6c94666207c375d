"""AdmissionReview and ConversionReview: requests as the API server sends them, and the responses to them.

Requests are decoded strictly: any body is either a review or a `MalformedReview` error. An admission response allows
the object, with warnings and a JSON patch, or refuses it with all of its problems.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from springtide.apis.problems import Problem, format_path
from springtide.cluster.errors import Invalid, StatusCause
from springtide.cluster.resources import Object

MOST_BYTES = 8 * 1024 * 1024
"""The largest review: it contains two versions of an object, and the API server accepts objects of 3 MiB."""
MOST_DECODED_BYTES = 128 * 1024 * 1024
"""The largest review when decoded: a text of 8 MiB can have millions of values, of which each takes some 50 bytes."""
_DECODED = ((b'"', 25), (b"{", 200), (b"[", 90), (b":", 30), (b",", 44))
"""Bytes of memory for each of these characters: what strings, objects, lists, members and values take, rounded up."""
MAX_DEPTH = 128
"""How deep an object may be nested: far beyond any schema, and within the recursion limit."""

T = TypeVar("T")


class MalformedReview(ValueError):
    """A body that is not a review; the message says why."""


class AdmissionReviewRequest(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The request of an AdmissionReview."""

    uid: str
    operation: str
    sub_resource: str | None = None
    object: Object | None = None
    old_object: Object | None = None


class AdmissionReview(
    msgspec.Struct, frozen=True, rename="camel", tag_field="kind", tag="AdmissionReview", kw_only=True
):
    """An AdmissionReview."""

    api_version: str
    request: AdmissionReviewRequest


class ConversionRequest(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The request of a ConversionReview."""

    uid: str
    desired_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[Object]


class ConversionReview(
    msgspec.Struct, frozen=True, rename="camel", tag_field="kind", tag="ConversionReview", kw_only=True
):
    """A ConversionReview."""

    api_version: str
    request: ConversionRequest


ADMISSION = "admission.k8s.io/v1"
CONVERSION = "apiextensions.k8s.io/v1"


class _Uid(msgspec.Struct, frozen=True):
    uid: str = ""


class _Anonymous(msgspec.Struct, frozen=True):
    request: _Uid = _Uid()


def read_admission(body: bytes) -> AdmissionReviewRequest:
    """Decode an AdmissionReview."""
    review = _read(body, AdmissionReview)
    if review.api_version != ADMISSION:
        raise MalformedReview(f'apiVersion is "{review.api_version[:100]}", expected "{ADMISSION}"')
    _refuse_deep((review.request.object, review.request.old_object))
    return review.request


def read_conversion(body: bytes) -> ConversionRequest:
    """Decode a ConversionReview."""
    review = _read(body, ConversionReview)
    if review.api_version != CONVERSION:
        raise MalformedReview(f'apiVersion is "{review.api_version[:100]}", expected "{CONVERSION}"')
    _refuse_deep(review.request.objects)
    return review.request


def decoded_bytes(part: bytes) -> int:
    """Return about how much memory a part of a review takes when it is decoded; too much rather than too little."""
    return len(part) + sum(part.count(mark) * size for mark, size in _DECODED)


def uid_of(body: bytes) -> str:
    """Decode only the uid, which every response needs; empty if it cannot be decoded."""
    try:
        return msgspec.json.decode(body, type=_Anonymous).request.uid
    except (ValueError, RecursionError):
        return ""


def _read(body: bytes, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except (ValueError, RecursionError) as failure:
        raise MalformedReview(f"the body is no {type_.__name__}: {failure}") from failure


def _refuse_deep(roots: Iterable[Any]) -> None:
    """Refuse objects that are nested so deeply that recursive functions might fail."""
    level: list[Any] = [part for part in roots if isinstance(part, dict)]
    for _ in range(MAX_DEPTH):
        level = [inner for part in level for inner in _inner(part) if isinstance(inner, dict | list)]
        if not level:
            return
    raise MalformedReview(f"an object is nested more than {MAX_DEPTH} levels deep")


def _inner(part: Any) -> Iterable[Any]:
    return part.values() if isinstance(part, dict) else part


MOST_LISTED = 100
"""How many problems a response lists, so that it stays readable and much smaller than the object."""


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """The response to an AdmissionReview."""

    refusal: Object | None = None
    """The Status that says why the object is refused; None: it is allowed."""
    warnings: tuple[str, ...] = ()
    patch: tuple[Object, ...] = ()
    """The changes to make before the object is stored, as a JSON patch."""

    def encode(self, uid: str) -> bytes:
        """Encode the response to the review with this uid."""
        response: dict[str, Any] = {"uid": uid, "allowed": self.refusal is None}
        if self.refusal is not None:
            response["status"] = self.refusal
        if self.warnings:
            response["warnings"] = list(self.warnings)
        if self.patch:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(msgspec.json.encode(self.patch)).decode()
        return msgspec.json.encode({"apiVersion": ADMISSION, "kind": "AdmissionReview", "response": response})


ALLOWED = AdmissionResponse()


def admission_response(
    item: Object, problems: Sequence[Problem], *, patch: tuple[Object, ...] = (), note: str = ""
) -> AdmissionResponse:
    """Refuse an object with all of its errors, or allow it; its warnings are passed on to the user either way.

    `note` is a warning about an object that is allowed.
    """
    errors = [problem for problem in problems if problem.severity == "error"]
    warnings = [_problem_line(problem) for problem in problems if problem.severity == "warning"]
    distinct = tuple(_listed(list(dict.fromkeys(warnings))))
    if note and not errors:
        distinct = (*distinct, note)
    return AdmissionResponse(_refusal(item, errors) if errors else None, distinct, patch)


def _refusal(item: Object, errors: Sequence[Problem]) -> Object:
    """Make a Status as the validation of the API server does, so that kubectl shows every cause on a line."""
    kind, group = item["kind"], item["apiVersion"].rpartition("/")[0]
    metadata = item.get("metadata")
    name = (metadata.get("name") or metadata.get("generateName") or "") if isinstance(metadata, dict) else ""
    lines = _listed([_problem_line(problem) for problem in errors])
    listed = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    causes = tuple(StatusCause(format_path(problem.path), _problem_text(problem)) for problem in errors[:MOST_LISTED])
    status = Invalid(f'{kind}.{group} "{name}" is invalid: {listed}', causes=causes).status()
    details: Object = {"name": str(name), "group": group, "kind": kind, **status["details"]}
    return {**status, "details": details}


def _listed(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_LISTED
    return lines if more <= 0 else [*lines[:MOST_LISTED], f"and {more} more"]


def _problem_line(problem: Problem) -> str:
    place = format_path(problem.path)
    # A warning is sent in an HTTP header, which cannot contain line breaks and control characters.
    text = "".join(character if character.isprintable() else " " for character in _problem_text(problem))
    return f"{place}: {text}" if place else text


def _problem_text(problem: Problem) -> str:
    return f"{problem.message} ({problem.hint})" if problem.hint else problem.message


def conversion_success(uid: str, objects: list[Object]) -> bytes:
    """Encode the response to a ConversionReview."""
    return _conversion({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}})


def conversion_failure(uid: str, message: str) -> bytes:
    """Encode the response to a ConversionReview that failed: it contains no objects."""
    return _conversion({"uid": uid, "convertedObjects": [], "result": {"status": "Failure", "message": message}})


def _conversion(response: Object) -> bytes:
    return msgspec.json.encode({"apiVersion": CONVERSION, "kind": "ConversionReview", "response": response})
