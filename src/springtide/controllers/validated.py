"""Objects as controllers read them: judged as `check` and the webhooks do, but for searches that find only warnings."""

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
    """An object of ours: what it means, and what is wrong with it."""

    view: V | None
    """What it means; None where its structure does not allow to tell."""
    errors: tuple[Problem, ...]

    @property
    def sound(self) -> V | None:
        """What it means, if nothing is wrong with it."""
        return self.view if not self.errors else None

    @property
    def words(self) -> str:
        """All that is wrong, in one line."""
        return "; ".join(problem_message(problem) for problem in self.errors)


def validated(item: Object, view: type[V], *, now: int, default_zone: str) -> Validated[V]:
    """Read an object that the server has; what stands in its status is nobody's mistake."""
    found = registry.find_kind(item["apiVersion"], item["kind"])
    assert found is not None  # noqa: S101 - a controller asks about the kind that it watches
    written = {name: part for name, part in item.items() if name != "status"}
    verdict = validate_object(written, *found, ValidationContext(now=now, default_zone=default_zone, deep_search=False))
    errors = tuple(problem for problem in verdict.problems if problem.severity == "error")
    return Validated(verdict.view if isinstance(verdict.view, view) else None, errors)


def problem_message(problem: Problem) -> str:
    """Write a problem as part of a sentence."""
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{format_path(problem.path)}: {problem.message}{hint}"
