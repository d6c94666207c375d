"""Field selectors: which fields each kind can be selected by, and how they are compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object, Resource
from springtide.simulator.api.values import found, steps

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

_STORED_ELSEWHERE = {"source": "source.component", "status.successful": "status.succeeded"}
"""Fields that are called otherwise in the object."""

_WHERE_ABSENT = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.replicas": "0",
    "status.successful": "0",
}
"""What stands for a field that an object does not write; elsewhere it is empty."""

_ESCAPED = re.compile(r"\\([\\,=])")
_STRANGE_ESCAPE = re.compile(r"(?<=[^\\])\\[^\\,=]")
_TERM = re.compile(r"((?:\\[\\,=]|[^\\,=!])+)(!=|==|=)((?:\\[\\,=]|[^\\,=])*)")


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One comparison of one field."""

    field: str
    equal: bool
    value: str

    def holds(self, item: Object) -> bool:
        """Tell whether an object is meant."""
        return (_text(item, self.field) == self.value) is self.equal


@lru_cache(maxsize=1024)
def parse_fields(text: str, resource: Resource, selectable: tuple[str, ...] = ()) -> tuple[FieldTerm, ...]:
    """Read a selector such as `spec.nodeName=a,status.phase!=Failed`; `selectable` are the fields a CRD adds."""
    known = _EVERY_KIND + _BY_KIND.get((resource.group, resource.kind), ()) + selectable
    terms = []
    for part in filter(None, _split(text)):
        match = _TERM.fullmatch(part)
        if match is None and (strange := _STRANGE_ESCAPE.search(part)):
            raise BadRequest(f"invalid field selector: invalid escape sequence: {strange[0]}")
        if match is None:
            raise BadRequest(f"invalid selector: '{text}'; can't understand '{part}'")
        field, sign, value = match.groups()
        if field not in known:
            raise BadRequest(_unknown(field, resource, selectable))
        terms.append(FieldTerm(field, sign != "!=", _ESCAPED.sub(r"\1", value)))
    return tuple(terms)


def holds_all(terms: tuple[FieldTerm, ...]) -> Callable[[Object], bool]:
    """Make one test of all comparisons."""
    return lambda item: all(term.holds(item) for term in terms)


def _split(text: str) -> list[str]:
    """Split at commas that no backslash escapes."""
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
    value: Any = found(item, steps(_STORED_ELSEWHERE.get(field, field)))
    if value is None:
        return _WHERE_ABSENT.get(field, "")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
