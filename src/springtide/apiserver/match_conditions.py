"""Match conditions of webhooks: CEL expressions over the request.

The variables are `object`, `oldObject` (null where there is none) and `request`. There is no `authorizer`, since the
embedded server has no authorization.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from springtide.apiserver.custom.cel.engine import CelCompileError, CelError, CelProgram, CelVariables
from springtide.cluster.resources import Object

_NAMES = ("object", "oldObject", "request")


class ConditionFailed(Exception):
    """The evaluation of a condition failed."""


@lru_cache(maxsize=1024)
def _program(expression: str) -> CelProgram:
    return CelProgram(expression, _NAMES)


def condition_problem(expression: str) -> str:
    """Return what is wrong with an expression; empty if it is valid."""
    try:
        result = _program(expression).result
    except CelCompileError as error:
        return f"compilation failed: {error}"
    return "" if result == "BOOL" else f"must evaluate to bool but got {result.lower()}"


def conditions_hold(expressions: Mapping[str, str], new: Object | None, old: Object | None, request: Object) -> bool:
    """Return whether all conditions hold; a false one decides, even if others fail."""
    variables = CelVariables({"object": new, "oldObject": old, "request": request})
    failures: list[str] = []
    for expression in expressions.values():
        try:
            if not _program(expression).evaluate(variables):
                return False
        except CelError as error:
            failures.append(f"expression '{expression}' resulted in error: {error}")
    if failures:
        raise ConditionFailed(failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]")
    return True
