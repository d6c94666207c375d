"""Match conditions: expressions by which a webhook says which requests it wants to hear of.

They see the object as it will be and as it was (null where there is none), and the request without the two. There is
no `authorizer`: the embedded server knows no authorization.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from springtide.cluster.resources import Object
from springtide.simulator.api.custom.rules.engine import CompileError, Program, RuleError, Variables

_NAMES = ("object", "oldObject", "request")


class ConditionFailed(Exception):
    """A condition that gives no answer."""


@lru_cache(maxsize=1024)
def _program(expression: str) -> Program:
    return Program(expression, _NAMES)


def problem(expression: str) -> str:
    """Tell what is wrong with the text of a condition; empty if nothing is."""
    try:
        result = _program(expression).result
    except CompileError as error:
        return f"compilation failed: {error}"
    return "" if result == "BOOL" else f"must evaluate to bool but got {result.lower()}"


def holds(expressions: Mapping[str, str], new: Object | None, old: Object | None, request: Object) -> bool:
    """Tell whether all conditions, by name, hold; one that does not settles it, whatever becomes of the others."""
    variables = Variables({"object": new, "oldObject": old, "request": request})
    failures: list[str] = []
    for expression in expressions.values():
        try:
            if not _program(expression).judge(variables):
                return False
        except RuleError as error:
            failures.append(f"expression '{expression}' resulted in error: {error}")
    if failures:
        raise ConditionFailed(failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]")
    return True
