"""Label and field selectors.

Label selectors, as text or as objects in specs, become a `LabelSelector`: requirements that must all hold. As in
Kubernetes, an inequality also holds for objects without the label.

Which fields can be selected depends on the kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from springtide.apiserver.names import label_value_problem, qualified_name_problem
from springtide.apiserver.values import path_steps, value_at
from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object, Resource

_TOKEN = re.compile(r"\s*+(?:(==|!=|[=!<>(),])|([^\s=!<>(),]++))")

_EVERY_KIND = ("metadata.name", "metadata.namespace")

_BY_KIND = {
    ("", "Pod"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    ("", "Node"): ("spec.unschedulable",),
    ("", "Namespace"): ("status.phase",),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP", "spec.type"),
    ("", "ReplicationController"): ("status.replicas",),
    ("batch", "Job"): ("status.successful",),
    ("", "Event"): (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}

_PATHS = {"source": "source.component", "status.successful": "status.succeeded"}
"""Fields with another path in the object."""

_DEFAULTS = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.replicas": "0",
    "status.successful": "0",
}
"""The values of fields that an object does not have; otherwise empty."""

_ESCAPED = re.compile(r"\\([\\,=])")
_INVALID_ESCAPE = re.compile(r"(?<=[^\\])\\[^\\,=]")
_TERM = re.compile(r"((?:\\[\\,=]|[^\\,=!])+)(!=|==|=)((?:\\[\\,=]|[^\\,=])*)")


class LabelOperator(StrEnum):
    """The operator of a requirement."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER = ">"
    LESS = "<"


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One requirement on one label."""

    key: str
    operator: LabelOperator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels satisfy the requirement."""
        value = labels.get(self.key)
        match self.operator:
            case LabelOperator.IN:
                return value in self.values
            case LabelOperator.NOT_IN:
                return value not in self.values
            case LabelOperator.EXISTS:
                return value is not None
            case LabelOperator.DOES_NOT_EXIST:
                return value is None
            case LabelOperator.GREATER:
                return _is_integer(value) and int(value or "") > int(self.values[0])
            case LabelOperator.LESS:
                return _is_integer(value) and int(value or "") < int(self.values[0])

    def __str__(self) -> str:
        match self.operator, self.values:
            case LabelOperator.IN, [value]:
                return f"{self.key}={value}"
            case LabelOperator.NOT_IN, [value]:
                return f"{self.key}!={value}"
            case ((LabelOperator.IN | LabelOperator.NOT_IN), values):
                return f"{self.key} {self.operator} ({','.join(sorted(values))})"
            case LabelOperator.EXISTS, _:
                return self.key
            case LabelOperator.DOES_NOT_EXIST, _:
                return f"!{self.key}"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all hold; without any it matches everything."""

    requirements: tuple[LabelRequirement, ...] = ()
    nothing: bool = False
    """Matches nothing."""

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether labels match."""
        held = labels or {}
        return not self.nothing and all(requirement.holds(held) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in sorted(self.requirements, key=lambda each: each.key))


NOTHING = LabelSelector(nothing=True)


def _is_integer(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"[+-]?[0-9]+", text) is not None


# Label selectors in specs

_OPERATORS = {
    "In": LabelOperator.IN,
    "NotIn": LabelOperator.NOT_IN,
    "Exists": LabelOperator.EXISTS,
    "DoesNotExist": LabelOperator.DOES_NOT_EXIST,
}


def selector_of(value: Object | None) -> LabelSelector:
    """Parse a LabelSelector of a spec, or a plain map of labels; None matches nothing.

    An unknown operator makes a selector of nothing: what validation accepted must not select everything.
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
            LabelRequirement(each["key"], _OPERATORS[each["operator"]], tuple(each.get("values") or ()))
            for each in expressions
        )
    )


def _equalities(labels: Mapping[str, str]) -> tuple[LabelRequirement, ...]:
    return tuple(LabelRequirement(key, LabelOperator.IN, (value,)) for key, value in labels.items())


# Label selectors in requests


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> LabelSelector:
    """Parse a selector such as `app=web,tier in (front,back),!canary`."""
    parser = _Parser(text)
    requirements: list[LabelRequirement] = []
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
    """A parser over the tokens of a selector."""

    def __init__(self, text: str) -> None:
        self._tokens = [operator or word for operator, word in _TOKEN.findall(text.strip())]
        self._next = 0

    def peek(self) -> str:
        """Return the next token; empty at the end."""
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def take(self) -> str:
        """Consume and return the next token."""
        token = self.peek()
        self._next += 1
        return token

    def requirement(self) -> LabelRequirement:
        """Parse one requirement."""
        if self.peek() == "!":
            self.take()
            return LabelRequirement(self._key(), LabelOperator.DOES_NOT_EXIST)
        key = self._key()
        if self.peek() in ("", ","):
            return LabelRequirement(key, LabelOperator.EXISTS)
        match self.take():
            case "=" | "==":
                return LabelRequirement(key, LabelOperator.IN, (self._value(key),))
            case "!=":
                return LabelRequirement(key, LabelOperator.NOT_IN, (self._value(key),))
            case "in":
                return LabelRequirement(key, LabelOperator.IN, self._values(key))
            case "notin":
                return LabelRequirement(key, LabelOperator.NOT_IN, self._values(key))
            case ">" | "<" as sign:
                value = self._value(key)
                if not _is_integer(value):
                    raise _unparsable(
                        f"values[0]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
                    )
                return LabelRequirement(key, LabelOperator(sign), (value,))
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


# Field selectors


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One comparison of a field."""

    field: str
    equal: bool
    value: str

    def holds(self, item: Object) -> bool:
        """Return whether an object matches."""
        return (_text(item, self.field) == self.value) is self.equal


@lru_cache(maxsize=1024)
def parse_fields(text: str, resource: Resource, selectable: tuple[str, ...] = ()) -> tuple[FieldRequirement, ...]:
    """Parse a selector such as `spec.nodeName=a,status.phase!=Failed`; `selectable` are the fields that a CRD adds."""
    known = _EVERY_KIND + _BY_KIND.get((resource.group, resource.kind), ()) + selectable
    terms = []
    for part in filter(None, _split(text)):
        match = _TERM.fullmatch(part)
        if match is None and (invalid := _INVALID_ESCAPE.search(part)):
            raise BadRequest(f"invalid field selector: invalid escape sequence: {invalid[0]}")
        if match is None:
            raise BadRequest(f"invalid selector: '{text}'; can't understand '{part}'")
        field, sign, value = match.groups()
        if field not in known:
            raise BadRequest(_unknown(field, resource, selectable))
        terms.append(FieldRequirement(field, sign != "!=", _ESCAPED.sub(r"\1", value)))
    return tuple(terms)


def all_hold(terms: tuple[FieldRequirement, ...]) -> Callable[[Object], bool]:
    """Return the conjunction of requirements."""
    return lambda item: all(term.holds(item) for term in terms)


def _split(text: str) -> list[str]:
    """Split at unescaped commas."""
    parts, start, position = [], 0, 0
    while position < len(text):
        if text[position] == "\\":
            position += 1
        elif text[position] == ",":
            parts.append(text[start:position])
            start = position + 1
        position += 1
    return [*parts, text[start:]]


def _unknown(field: str, resource: Resource, selectable: tuple[str, ...]) -> str:
    if (resource.group, resource.kind) in _BY_KIND or selectable:
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _text(item: Object, field: str) -> str:
    value: Any = value_at(item, path_steps(_PATHS.get(field, field)))
    if value is None:
        return _DEFAULTS.get(field, "")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
