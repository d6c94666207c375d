"""Match conditions: expressions by which a webhook says which requests it wants to hear of.

They see the object as it will be and as it was (null where there is none), and the request without the two. There is
no `authorizer`: the embedded server knows no authorization.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from springtide.apiserver.custom.cel.engine import CelCompileError, CelError, CelProgram, CelVariables
from springtide.cluster.resources import Object

_NAMES = ("object", "oldObject", "request")


class ConditionFailed(Exception):
    """A condition that gives no answer."""


@lru_cache(maxsize=1024)
def _program(expression: str) -> CelProgram:
    return CelProgram(expression, _NAMES)


def condition_problem(expression: str) -> str:
    """Tell what is wrong with the text of a condition; empty if nothing is."""
    try:
        result = _program(expression).result
    except CelCompileError as error:
        return f"compilation failed: {error}"
    return "" if result == "BOOL" else f"must evaluate to bool but got {result.lower()}"


def conditions_hold(expressions: Mapping[str, str], new: Object | None, old: Object | None, request: Object) -> bool:
    """Tell whether all conditions, by name, hold; one that does not settles it, whatever becomes of the others."""
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
