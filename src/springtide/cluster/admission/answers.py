"""What is said about a review: yes, with warnings and repairs, or no, with everything that is wrong."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from springtide.apis.problems import Problem, format_path
from springtide.cluster.admission.reviews import ADMISSION, CONVERSION
from springtide.cluster.errors import Cause, Invalid
from springtide.cluster.resources import Object

MOST_LISTED = 100
"""How many problems are listed; an answer must stay readable, and far smaller than what it is about."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to an AdmissionReview."""

    refusal: Object | None = None
    """The Status that says why not; None: the object may be stored."""
    warnings: tuple[str, ...] = ()
    patch: tuple[Object, ...] = ()
    """What is to be changed before it is stored, as a JSON patch."""

    def written(self, uid: str) -> bytes:
        """Write the answer for the review with this uid."""
        response: dict[str, Any] = {"uid": uid, "allowed": self.refusal is None}
        if self.refusal is not None:
            response["status"] = self.refusal
        if self.warnings:
            response["warnings"] = list(self.warnings)
        if self.patch:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(msgspec.json.encode(self.patch)).decode()
        return msgspec.json.encode({"apiVersion": ADMISSION, "kind": "AdmissionReview", "response": response})


ALLOWED = Verdict()


def verdict(item: Object, problems: Sequence[Problem], *, patch: tuple[Object, ...] = ()) -> Verdict:
    """Judge by problems: errors refuse the object, all of them at once; warnings are passed on to the user."""
    errors = [problem for problem in problems if problem.severity == "error"]
    warnings = [_line(problem) for problem in problems if problem.severity == "warning"]
    told = tuple(_listed(list(dict.fromkeys(warnings))))
    return Verdict(_refusal(item, errors) if errors else None, told, patch)


def _refusal(item: Object, errors: Sequence[Problem]) -> Object:
    """Write a Status as the API server's own validation does, so that kubectl shows every cause on its own line."""
    kind, group = item["kind"], item["apiVersion"].rpartition("/")[0]
    metadata = item.get("metadata")
    name = (metadata.get("name") or metadata.get("generateName") or "") if isinstance(metadata, dict) else ""
    lines = _listed([_line(problem) for problem in errors])
    listed = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    causes = tuple(Cause(format_path(problem.path), _words(problem)) for problem in errors[:MOST_LISTED])
    status = Invalid(f'{kind}.{group} "{name}" is invalid: {listed}', causes=causes).status()
    details: Object = {"name": str(name), "group": group, "kind": kind, **status["details"]}
    return {**status, "details": details}


def _listed(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_LISTED
    return lines if more <= 0 else [*lines[:MOST_LISTED], f"and {more} more"]


def _line(problem: Problem) -> str:
    place = format_path(problem.path)
    # A warning travels in an HTTP header, which has no room for lines and control characters.
    words = "".join(character if character.isprintable() else " " for character in _words(problem))
    return f"{place}: {words}" if place else words


def _words(problem: Problem) -> str:
    return f"{problem.message} ({problem.hint})" if problem.hint else problem.message


def converted(uid: str, objects: list[Object]) -> bytes:
    """Write the answer to a ConversionReview."""
    return _conversion({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}})


def not_converted(uid: str, message: str) -> bytes:
    """Write the answer to a ConversionReview that cannot be fulfilled: none of its objects is given."""
    return _conversion({"uid": uid, "convertedObjects": [], "result": {"status": "Failure", "message": message}})


def _conversion(response: Object) -> bytes:
    return msgspec.json.encode({"apiVersion": CONVERSION, "kind": "ConversionReview", "response": response})
