"""Judges manifests of the kinds that Kubernetes defines with the rules of the embedded API server.

The typed views of `springtide.apis.core` know the fields that Springtide reads, and give better hints. The API server
has a schema and rules for everything else: metrics and behavior of autoscalers, strategies, ports, probes, volumes.
What both report is reported once, in the words of the views.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec

from springtide.apis.formats import FORMATS
from springtide.apis.meta.scaling import expected_api_version
from springtide.apis.objects import LoadedObject
from springtide.apis.problems import Path, Problem, error, warning
from springtide.apis.schema import ValueShape, ViewSchema, nearest
from springtide.apis.structural_validation import shorten, wrong_shape
from springtide.apiserver import builtin
from springtide.apiserver.builtin.validation import NO_INT32, type_errors
from springtide.apiserver.field_errors import format_value
from springtide.apiserver.kinds import ServedKind, StructureNode, undeclared_fields
from springtide.apiserver.values import deep_copy
from springtide.cluster.errors import StatusCause

_MOST_GUESSES = 50
"""For how many unknown fields of an object a similar name is searched."""
_LONGEST = 400
"""The maximum length of a message: the API server quotes whole objects."""
_INVALID = "FieldValueInvalid"
_NOT_FOUND = "FieldValueNotFound"
_REQUIRED = "FieldValueRequired"
_UNSUPPORTED = "FieldValueNotSupported"
_TYPE = "FieldValueTypeInvalid"

_OTHER_PATHS = (
    ("autoscaling/v1", "spec.metrics[0].resource.target.averageUtilization", "spec.targetCPUUtilizationPercentage"),
    ("", "metadata.taints", "spec.taints"),
    *(
        ("", f"{template}.{field}", f"{template}.metadata.{field}")
        for template in ("spec.template", "template")
        for field in ("labels", "annotations")
    ),
)
"""Paths of causes that are not those of the manifest: the `apiVersion` (any, if empty), the path, and the right one."""

_CONSEQUENCES: tuple[tuple[Path, Path], ...] = (
    (("template", "metadata", "labels"), ("selector",)),
    (("selector",), ("selector",)),
    (("limits",), ("requests",)),
    (("operator",), ("value",)),
)
"""A problem at the first field follows from an error at or below the second one, of the same mapping."""

_SCALE_TO_ZERO = "0 needs the feature gate HPAScaleToZero, which is off by default"


def judge(loaded: LoadedObject) -> LoadedObject:
    """Return the object with the problems for which the API server would reject it, or warn of it."""
    served = _served_kinds().get((loaded.api_version, loaded.kind.kind)) if loaded.kind.builtin else None
    if served is None:
        return loaded
    reported = _Reported(loaded.problems, loaded.value)
    added: list[Problem] = []
    for problem in _problems(loaded, served):
        placed = msgspec.structs.replace(problem, path=loaded.written(problem.path))
        if not reported.covers(placed.path):
            reported.add(placed)
            added.append(placed)
    return replace(loaded, problems=(*loaded.problems, *added))


@cache
def _served_kinds() -> dict[tuple[str, str], ServedKind]:
    return {(kind.resource.api_version, kind.resource.kind): kind for kind in builtin.kinds()}


def _problems(loaded: LoadedObject, served: ServedKind) -> Iterator[Problem]:
    value = deep_copy(loaded.value)
    value.pop("status", None)  # the API server ignores it
    for number, path in enumerate(list(undeclared_fields(value, served.structure, (), closed=True))):
        yield _unknown(value, served.structure, path, guessed=number < _MOST_GUESSES)
    for cause in _causes(value, served):
        yield _problem(cause, _path_of(cause.field, value, loaded.api_version), value)


def _causes(value: dict[str, Any], served: ServedKind) -> Iterator[StatusCause]:
    """Yield all causes. The rules of a kind rely on its types, so values of wrong types are replaced first.

    Types are checked before defaults are set, which replace empty values of any type.
    """
    found = type_errors(value, served.structure, except_for=("apiVersion", "kind"))
    wrong = {_steps(cause.field): cause for cause in found if _is_of_wrong_type(cause)}
    yield from wrong.values()
    judged = deep_copy(value)
    for path, cause in sorted(wrong.items(), key=lambda item: len(item[0]), reverse=True):
        _put(judged, path, _placeholder(cause))
    around = {path[:length] for path in wrong for length in range(len(path) + 1)}
    for cause in _validated(judged, served):
        path = _steps(cause.field)
        if path not in around and not any(path[:length] in wrong for length in range(1, len(path))):
            yield cause


def _validated(value: dict[str, Any], served: ServedKind) -> tuple[StatusCause, ...]:
    return served.validate(served.apply_defaults(deep_copy(value)), None)


_NO_QUANTITY = "quantities must match the regular expression"


def _is_of_wrong_type(cause: StatusCause) -> bool:
    return cause.reason == _TYPE or _NO_QUANTITY in cause.message or NO_INT32 in cause.message


def _placeholder(cause: StatusCause) -> Any:
    """Return a value of the right type for a scalar; None for what cannot be replaced."""
    if _NO_QUANTITY in cause.message:
        return "1"
    return {"integer": 1, "integer or string": 1, "number": 1, "string": "x"}.get(_expected_type(cause))


def _expected_type(cause: StatusCause) -> str:
    return cause.message.rpartition("must be of type ")[2]


def _put(value: Any, path: Path, part: Any) -> None:
    """Set a field, or remove it, where the part is None."""
    holder = _at(value, path[:-1])
    if isinstance(holder, dict) and part is None:
        holder.pop(path[-1], None)
    elif isinstance(holder, dict):
        holder[path[-1]] = part
    elif isinstance(holder, list) and isinstance(path[-1], int) and path[-1] < len(holder):
        holder[path[-1]] = {} if part is None else part


def _at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


_STEP = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


def _steps(field: str) -> Path:
    """Split the path of a cause: names, and list positions or keys in brackets."""
    return tuple(
        int(inside) if inside.isdecimal() and inside.isascii() else inside or name
        for inside, name in _STEP.findall(field)
    )


def _path_of(field: str, value: dict[str, Any], api_version: str) -> Path:
    """Return the path in the manifest."""
    for version, given, right in _OTHER_PATHS:
        if version in ("", api_version) and field.startswith(given):
            field = right + field.removeprefix(given)
    path: list[str | int] = []
    for step in _steps(field):
        holder = _at(value, tuple(path))
        path.append(str(step) if isinstance(holder, dict) else step)
    return tuple(path)


def _unknown(value: Any, structure: StructureNode, path: Path, *, guessed: bool) -> Problem:
    """Report an unknown field, and drop or rename it.

    It may belong to a newer version of Kubernetes, so it is an error only if it is a likely misspelling.
    """
    node, holder, name = structure, value, str(path[-1])
    for step in path[:-1]:
        node = node.items or node if isinstance(step, int) else node.child(step)
        holder = holder[step]
    message, part = f"unknown field `{shorten(name)}`", holder.pop(name)
    guess = nearest(name, [each for each in node.fields if each not in holder]) if guessed else None
    if guess is not None:
        holder[guess] = part
        return error(path, message, f"did you mean `{guess}`?")
    return warning(path, message, f"known here: {', '.join(sorted(node.fields))}")


_HEAD = re.compile(r"(Invalid value|Duplicate value|Not found|Forbidden|Too long|Too many)(: )?")
_WORDS = {
    "Invalid value": "invalid value ",
    "Duplicate value": "duplicate value ",
    "Not found": "there is no ",
    "Forbidden": "is not allowed: ",
    "Too long": "is too long: ",
    "Too many": "are too many: ",
}


_INVALID_VALUE = "Invalid value: "
_QUOTED = json.JSONDecoder()
_UNSET = re.compile(r'Invalid value: (?:0|""|null): ')
"""The message for a field that is not set: the API server names its zero value."""
_SHAPES = {
    "array": ValueShape.LIST,
    "boolean": ValueShape.BOOLEAN,
    "integer": ValueShape.INTEGER,
    "integer or string": ValueShape.INT_OR_STRING,
    "number": ValueShape.NUMBER,
    "object": ValueShape.MAP,
    "string": ValueShape.STRING,
}


def _problem(cause: StatusCause, path: Path, value: dict[str, Any]) -> Problem:
    given, text = _at(value, path), cause.message
    if _is_of_wrong_type(cause):
        return _type_problem(cause, path, given)
    if cause.reason == _UNSUPPORTED:
        if isinstance(given, dict):
            path, given = (*path, "type"), given.get("type")  # a strategy: the API server names the whole of it
        choices = re.findall(r'"([^"]*)"', text.partition("supported values: ")[2])
        expected = f"must be {'one of ' if len(choices) > 1 else ''}{', '.join(choices)}"
        if given is None:
            return error(path, f"is missing: {expected}", _write(path))
        guess = nearest(str(given), choices)
        hint = f"did you mean {guess}?" if guess is not None else ""
        return error(path, f"{expected}, is {shorten(format_value(given))}", hint)
    unset = _UNSET.match(text) if given is None else None
    if cause.reason == _REQUIRED or unset is not None:
        detail = text[unset.end() :] if unset is not None else text.removeprefix("Required value").removeprefix(": ")
        if given is not None:
            return error(path, detail or f"must be set, is {format_value(given)}")
        return error(path, f"is missing: {detail}" if detail else "is missing", _hint(path, value) or _write(path))
    if cause.reason == _INVALID and isinstance(given, dict | list):
        # The quoted object, as Go writes it, would hide the rest.
        text = text[_QUOTED.raw_decode(text, len(_INVALID_VALUE))[1] :].removeprefix(": ")
        return error(path, shorten(text, _LONGEST))
    head = _HEAD.match(text)
    text = f"{_WORDS[head[1]]}{text[head.end() :]}" if head is not None else text
    hint = "add it to `volumes`" if cause.reason == _NOT_FOUND else _hint(path, value)
    return error(path, shorten(text, _LONGEST), hint)


def _write(path: Path) -> str:
    return f"write `{path[-1]}`"


def _type_problem(cause: StatusCause, path: Path, given: Any) -> Problem:
    if _NO_QUANTITY in cause.message:
        return next(problem.under(*path) for problem in FORMATS["quantity"](given))
    if NO_INT32 in cause.message:
        return error(path, f"{NO_INT32}, is {shorten(str(given))}")
    return wrong_shape(given, ViewSchema(shape=_SHAPES[_expected_type(cause)]), path)


def _hint(path: Path, value: dict[str, Any]) -> str:
    found = _at(value, path)
    if path == ("spec", "minReplicas") and found == 0:
        return _SCALE_TO_ZERO
    if path[-1:] == ("apiVersion",):
        kind = _at(value, (*path[:-1], "kind"))
        expected = expected_api_version(kind, found) if isinstance(kind, str) else None
        return f"write `apiVersion: {expected}`" if expected else ""
    return ""


class _Reported:
    """The problems that have been reported, to find those that say the same or follow from them.

    The views report some at an entry where the API server names the mapping (`requests.cpu` for `requests`), and fields
    that are missing once, not also what is missing within. All are sets, because an object can have very many problems.
    """

    def __init__(self, problems: Iterable[Problem], value: dict[str, Any]) -> None:
        self._value = value
        self._paths: set[Path] = set()
        self._errors: set[Path] = set()
        """The paths of errors and everything that they are within."""
        self._parents: set[Path] = set()
        """What errors are directly within."""
        self._missing: set[Path] = set()
        self._volumes: set[tuple[Path, str]] = set()
        """Pod specs, each with the name of a volume that has an error."""
        for problem in problems:
            self.add(problem)

    def add(self, problem: Problem) -> None:
        """Register a problem."""
        path = problem.path
        self._paths.add(path)
        if _at(self._value, path) is None:
            self._missing.add(path)
        if problem.severity == "error":
            self._errors.update(path[:length] for length in range(len(path) + 1))
            self._parents.add(path[:-1])
            for place, step in enumerate(path[:-2]):
                if step == "volumes":
                    self._volumes.add((path[:place], str(_at(self._value, (*path[: place + 2], "name")))))

    def covers(self, path: Path) -> bool:
        """Return whether a problem at this path, or the one that it follows from, has been reported."""
        if path in self._paths or path in self._parents:
            return True
        if any(path[:length] in self._missing for length in range(1, len(path))):
            return True
        if path[-3:-2] == ("volumeMounts",) and (path[:-5], str(_at(self._value, path))) in self._volumes:
            return True
        return any(
            path[-len(effect) :] == effect and (*path[: -len(effect)], *reason) in self._errors
            for effect, reason in _CONSEQUENCES
        )
