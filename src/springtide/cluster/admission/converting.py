"""Conversion between the versions of a kind: all objects of a review, or none and the name of the one that cannot."""

from __future__ import annotations

from springtide.apis.conversion import Unconvertible, convert
from springtide.cluster.admission.answers import converted, not_converted
from springtide.cluster.admission.reviews import read_conversion
from springtide.cluster.resources import Object


def convert_all(body: bytes) -> bytes:
    """Answer a ConversionReview; raises `Malformed` for what is none."""
    request = read_conversion(body)
    made: list[Object] = []
    for position, item in enumerate(request.objects):
        try:
            # Without metadata the API server takes no object back, be it empty.
            made.append({"metadata": {}, **convert(item, request.desired_version)})
        except Unconvertible as failure:
            return not_converted(request.uid, f"{_named(item, position)}: {failure}")
    return converted(request.uid, made)


def _named(item: Object, position: int) -> str:
    metadata = item.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    kind = item.get("kind")
    return f"{kind} {name}" if isinstance(kind, str) and isinstance(name, str) else f"objects[{position}]"
