"""Label selectors: as text in requests, as objects in specs.

Both become a `LabelSelector`, a list of requirements that all have to hold. A requirement that a label be unequal to
something also holds where there is no such label.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object
from springtide.simulator.api.names import label_value_problem, qualified_name_problem


class Operator(StrEnum):
    """What a requirement asks of a label."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER = ">"
    LESS = "<"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with these labels is meant."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GREATER:
                return _is_integer(value) and int(value or "") > int(self.values[0])
            case Operator.LESS:
                return _is_integer(value) and int(value or "") < int(self.values[0])

    def __str__(self) -> str:
        match self.operator, self.values:
            case Operator.IN, [value]:
                return f"{self.key}={value}"
            case Operator.NOT_IN, [value]:
                return f"{self.key}!={value}"
            case ((Operator.IN | Operator.NOT_IN), values):
                return f"{self.key} {self.operator} ({','.join(sorted(values))})"
            case Operator.EXISTS, _:
                return self.key
            case Operator.DOES_NOT_EXIST, _:
                return f"!{self.key}"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Conditions that all have to hold; none: everything is meant."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    """Nothing is meant, whatever its labels."""

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Tell whether an object with these labels is meant."""
        held = labels or {}
        return not self.nothing and all(requirement.holds(held) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in sorted(self.requirements, key=lambda each: each.key))


NOTHING = LabelSelector(nothing=True)


def _is_integer(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"[+-]?[0-9]+", text) is not None


# Selectors as objects

_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def selector_of(value: Object | None) -> LabelSelector:
    """Read a selector from a spec: a LabelSelector, or a plain map of labels; none at all means nothing.

    An operator that does not exist makes a selector of nothing: what validation let pass must not select everything.
    """
    if value is None:
        return NOTHING
    if not value.keys() <= {"matchLabels", "matchExpressions"}:
        return LabelSelector(_equalities(value))
    expressions: list[Any] = value.get("matchExpressions") or []
    if any(expression.get("operator") not in _OPERATORS for expression in expressions):
        return NOTHING
    return LabelSelector(
        _equalities(value.get("matchLabels") or {})
        + tuple(
            Requirement(each["key"], _OPERATORS[each["operator"]], tuple(each.get("values") or ()))
            for each in expressions
        )
    )


def _equalities(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, Operator.IN, (value,)) for key, value in labels.items())


# Selectors as text

_TOKEN = re.compile(r"\s*(?:(==|!=|[=!<>(),])|([^\s=!<>(),]+))")


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> LabelSelector:
    """Read a selector as requests write it, such as `app=web,tier in (front,back),!canary`."""
    parser = _Parser(text)
    requirements: list[Requirement] = []
    expected = "!, identifier, or 'end of string'"
    while first := parser.peek():
        if first != "!" and not _is_word(first):
            raise BadRequest(f"found '{first}', expected: {expected}")
        expected = "identifier after ','"
        requirements.append(parser.requirement())
        if (found := parser.take()) and found != ",":
            raise BadRequest(f"found '{found}', expected: ',' or 'end of string'")
        if found and not parser.peek():
            raise BadRequest(f"found '', expected: {expected}")
    return LabelSelector(tuple(requirements))


class _Parser:
    """Reads the tokens of a selector one by one."""

    def __init__(self, text: str) -> None:
        self._tokens = [operator or word for operator, word in _TOKEN.findall(text)]
        self._next = 0

    def peek(self) -> str:
        """Show the next token; empty at the end."""
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def take(self) -> str:
        """Give the next token and go on."""
        token = self.peek()
        self._next += 1
        return token

    def requirement(self) -> Requirement:
        """Read one condition."""
        if self.peek() == "!":
            self.take()
            return Requirement(self._key(), Operator.DOES_NOT_EXIST)
        key = self._key()
        if self.peek() in ("", ","):
            return Requirement(key, Operator.EXISTS)
        match self.take():
            case "=" | "==":
                return Requirement(key, Operator.IN, (self._value(key),))
            case "!=":
                return Requirement(key, Operator.NOT_IN, (self._value(key),))
            case "in":
                return Requirement(key, Operator.IN, self._values(key))
            case "notin":
                return Requirement(key, Operator.NOT_IN, self._values(key))
            case ">" | "<" as sign:
                value = self._value(key)
                if not _is_integer(value):
                    raise _unparsable(
                        f"values[0]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
                    )
                return Requirement(key, Operator(sign), (value,))
            case other:
                raise _unparsable(f"found '{other}', expected: in, notin, =, ==, !=, gt, lt")

    def _key(self) -> str:
        key = self.take()
        if not _is_word(key):
            raise _unparsable(f"found '{key}', expected: identifier")
        if problem := qualified_name_problem(key):
            raise _unparsable(f'<nil>: Invalid value: "{key}": {problem}')
        return key

    def _value(self, key: str) -> str:
        value = self.take() if _is_word(self.peek()) else ""
        if problem := label_value_problem(value):
            raise _unparsable(f'values[0][{key}]: Invalid value: "{value}": {problem}')
        return value

    def _values(self, key: str) -> tuple[str, ...]:
        if (found := self.take()) != "(":
            raise _unparsable(f"found '{found}' expected: '('")
        values = [self._value(key)]
        while (found := self.take()) == ",":
            values.append(self._value(key))
        if found != ")":
            raise _unparsable(f"found '{found}', expected: ',' or ')'")
        return tuple(values)


def _is_word(token: str) -> bool:
    return bool(token) and token[0] not in "=!<>(),"


def _unparsable(why: str) -> BadRequest:
    return BadRequest(f"unable to parse requirement: {why}")
