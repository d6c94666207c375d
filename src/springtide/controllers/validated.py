"""Objects from the cluster, validated as `springtide check` and the webhooks validate them.

Only the deep searches are left out, since they find nothing but warnings.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from springtide.apis import scheme as registry
from springtide.apis.kinds import ValidationContext, View
from springtide.apis.problems import Problem, format_path
from springtide.apis.validation import validate_object
from springtide.cluster.resources import Object

V = TypeVar("V", bound=View)


class Validated(msgspec.Struct, Generic[V], frozen=True):
    """The typed view of an object, and its errors."""

    view: V | None
    """None where the structure of the object is wrong."""
    errors: tuple[Problem, ...]

    @property
    def sound(self) -> V | None:
        """The view, if the object has no errors."""
        return self.view if not self.errors else None

    @property
    def error_message(self) -> str:
        """All errors in one line."""
        return "; ".join(problem_message(problem) for problem in self.errors)


def validated(item: Object, view: type[V], *, now: int, default_zone: str) -> Validated[V]:
    """Validate an object of a kind that Springtide knows; its status is left out, as users do not write it."""
    found = registry.find_kind(item["apiVersion"], item["kind"])
    assert found is not None  # noqa: S101 - a controller only watches kinds of the scheme
    written = {name: part for name, part in item.items() if name != "status"}
    verdict = validate_object(written, *found, ValidationContext(now=now, default_zone=default_zone, deep_search=False))
    errors = tuple(problem for problem in verdict.problems if problem.severity == "error")
    return Validated(verdict.view if isinstance(verdict.view, view) else None, errors)


def try_validation(item: Object, now: int, default_zone: str) -> None:
    """Validate an object in its trial; for kinds of which no more is computed from the object alone."""
    validated(item, View, now=now, default_zone=default_zone)


def problem_message(problem: Problem) -> str:
    """Write a problem as part of a sentence: path, message and hint."""
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{format_path(problem.path)}: {problem.message}{hint}"
