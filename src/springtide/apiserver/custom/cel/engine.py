"""The CEL engine: expressions are compiled once and evaluated often, and an error never counts as true.

The engine returns a failed evaluation as a value of type ERROR whose content is a non-empty string, which is true in
Python. So the type of a result is checked before its value, and every result that is no boolean is an error.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_optional, ext_strings

from springtide.apiserver.custom.cel.library import FUNCTIONS

OLD_SELF: Final = "oldSelf"
_OF_RULES: Final = ("self", OLD_SELF, "previous")
_OPTIONAL: Final = "cel.bind(oldSelf, previous == null ? optional.none() : optional.of(previous), {})"

_STATUS: Final = re.compile(r"^[A-Z_]+: ")
_MESSAGES: Final = (
    (re.compile(r'Key not found in map : "?(.*?)"?$'), r"no such key: \1"),
    (re.compile(r"No matching overloads found : .*"), "no such overload"),
    (re.compile(r"Applying SELECT to non-message type"), "no such overload"),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"Index error: index=(-?\d+).*"), r"index out of bounds: \1"),
)
"""Errors of evaluations in the words of kube-apiserver, where they differ from those of the engine."""


class CelError(Exception):
    """An expression could not be evaluated."""


class CelCompileError(CelError):
    """An expression does not compile."""


class CelLimitError(CelError):
    """An expression exceeded the limit of evaluation steps."""


@cache
def _environment(names: tuple[str, ...]) -> Any:
    extensions = [
        ext_strings.ExtStrings(2),
        ext_optional.ExtOptional(),
        ext_bindings.ExtBindings(),
        ext_encoders.ExtEncoders(),
        cel.CelExtension("kubernetes", _declarations()),
    ]
    return cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN), extensions=extensions)


def _declarations() -> list[Any]:
    overloads: dict[str, list[Any]] = {}
    for function in FUNCTIONS:
        named = overloads.setdefault(function.name, [])
        named.append(
            cel.Overload(
                id=f"kubernetes_{function.name}_{'_'.join(function.parameters)}_{function.member}".lower(),
                return_type=getattr(cel.Type, function.result),
                parameters=[getattr(cel.Type, parameter) for parameter in function.parameters],
                is_member=function.member,
                impl=function.call,
            )
        )
    return [cel.FunctionDecl(name, named) for name, named in overloads.items()]


class CelVariables:
    """The variables of an expression."""

    __slots__ = ("activation",)

    def __init__(self, values: dict[str, Any]) -> None:
        self.activation = _environment(tuple(values)).Activation(values)


class RuleVariables(CelVariables):
    """The variables of a validation rule: `self` and `oldSelf`."""

    __slots__ = ()

    def __init__(self, value: Any, old: Any = None) -> None:
        super().__init__({"self": value, OLD_SELF: old, "previous": old})


class CelProgram:
    """A compiled expression."""

    __slots__ = ("_expression",)

    def __init__(self, text: str, names: tuple[str, ...] = _OF_RULES) -> None:
        try:
            self._expression = _environment(names).compile(text)
        except RuntimeError as error:
            message = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
            raise CelCompileError(message) from None

    @property
    def result(self) -> str:
        """The type of the result, as far as the compiler knows it."""
        return str(self._expression.return_type().name())

    def may_return(self, name: str) -> bool:
        """Whether the result can have a type."""
        return self.result in (name, "DYN")

    def evaluate(self, scope: CelVariables) -> bool:
        """Evaluate a boolean expression."""
        outcome = self._run(scope)
        value = outcome.value()
        if value is True or value is False:
            return value
        raise CelError(f"rule must evaluate to a bool, not to {_type_name(outcome)},")

    def evaluate_string(self, scope: CelVariables) -> str | None:
        """Evaluate a string expression; None if it fails or returns something else."""
        try:
            outcome = self._run(scope).value()
        except CelError:
            return None
        return outcome if isinstance(outcome, str) else None

    def _run(self, scope: CelVariables) -> Any:
        try:
            outcome = self._expression.eval(scope.activation)
        except RuntimeError as error:
            raise CelLimitError(_STATUS.sub("", str(error)).removesuffix(" [INTERNAL]")) from None
        if outcome.type() == cel.Type.ERROR:
            raise CelError(_server_message(outcome.value()))
        return outcome


@cache
def program(text: str, *, optional_old_self: bool = False) -> CelProgram:
    """Compile an expression, once for all schemas; raises `CelCompileError`."""
    return CelProgram(_OPTIONAL.format(text) if optional_old_self else text)


def _type_name(outcome: Any) -> str:
    """Return the name of the type of a result."""
    return str(outcome.type().name()).lower()


def _server_message(failure: str) -> str:
    message = _STATUS.sub("", failure)
    for pattern, replacement in _MESSAGES:
        if pattern.match(message):
            return pattern.sub(replacement, message)
    return message
