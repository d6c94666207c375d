"""Reviews as the API server sends them, and the answers to them.

What comes in is read strictly, and whatever it is, reading it ends: with a review, or with `Malformed` and words that
tell what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from springtide.cluster.resources import Object

MOST_BYTES = 8 * 1024 * 1024
"""A review holds two versions of an object at most, and the API server takes objects of 3 MiB."""
DEEPEST = 128
"""How deep a review may be nested: far beyond any schema, and within what recursion takes."""

T = TypeVar("T")


class Malformed(ValueError):
    """A body that is no review; the message says why."""


class AdmissionRequest(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What is about to be written."""

    uid: str
    operation: str
    sub_resource: str | None = None
    object: Object | None = None
    old_object: Object | None = None


class AdmissionReview(
    msgspec.Struct, frozen=True, rename="camel", tag_field="kind", tag="AdmissionReview", kw_only=True
):
    """The question whether, and how, an object is to be stored."""

    api_version: str
    request: AdmissionRequest


class ConversionRequest(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Objects that are wanted in another version."""

    uid: str
    desired_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[Object]


class ConversionReview(
    msgspec.Struct, frozen=True, rename="camel", tag_field="kind", tag="ConversionReview", kw_only=True
):
    """The request to convert objects."""

    api_version: str
    request: ConversionRequest


ADMISSION = "admission.k8s.io/v1"
CONVERSION = "apiextensions.k8s.io/v1"


class _Uid(msgspec.Struct, frozen=True):
    uid: str = ""


class _Anonymous(msgspec.Struct, frozen=True):
    request: _Uid = _Uid()


def read_admission(body: bytes) -> AdmissionRequest:
    """Read an AdmissionReview."""
    review = _read(body, AdmissionReview)
    if review.api_version != ADMISSION:
        raise Malformed(f'apiVersion is "{review.api_version[:100]}", expected "{ADMISSION}"')
    _refuse_deep((review.request.object, review.request.old_object))
    return review.request


def read_conversion(body: bytes) -> ConversionRequest:
    """Read a ConversionReview."""
    review = _read(body, ConversionReview)
    if review.api_version != CONVERSION:
        raise Malformed(f'apiVersion is "{review.api_version[:100]}", expected "{CONVERSION}"')
    _refuse_deep(review.request.objects)
    return review.request


def uid_of(body: bytes) -> str:
    """Read only whom the answer is for, for when nothing else can be said; empty where even that cannot be read."""
    try:
        return msgspec.json.decode(body, type=_Anonymous).request.uid
    except (ValueError, RecursionError):
        return ""


def _read(body: bytes, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except (ValueError, RecursionError) as failure:
        raise Malformed(f"the body is no {type_.__name__}: {failure}") from failure


def _refuse_deep(roots: Iterable[Any]) -> None:
    """Refuse what is nested so deeply that working on it might not end well."""
    level: list[Any] = [part for part in roots if isinstance(part, dict)]
    for _ in range(DEEPEST):
        level = [inner for part in level for inner in _inner(part) if isinstance(inner, dict | list)]
        if not level:
            return
    raise Malformed(f"an object is nested more than {DEEPEST} levels deep")


def _inner(part: Any) -> Iterable[Any]:
    return part.values() if isinstance(part, dict) else part
