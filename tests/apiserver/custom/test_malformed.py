"""Whatever a definition holds, it is served or refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.custom.recorded import definition, thing

from springtide.apiserver import custom
from springtide.cluster.errors import Invalid

FIELD = {"type": "string", "pattern": "^a", "enum": ["a"], "default": "a", "maxLength": 3}
LIST = {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]}}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "a": FIELD,
                "d": {"type": "string", "format": "date", "nullable": True},
                "l": LIST | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
                "m": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
            },
            "x-kubernetes-validations": [{"rule": "has(self.a)", "message": "m", "fieldPath": ".a"}],
            "anyOf": [{"required": ["a"]}, {"properties": {"a": {"minLength": 1}}}],
        }
    },
}
VERSION = {
    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}},
    "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
}
NONSENSE: list[Any] = [
    None, "", "x", "(", 0, -1, 1.5, True, [], {}, [None], ["x"], [{}], {"x": None}, {"": []}, {"type": "object"},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """List every place in a tree."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in inner:
        yield from places(part, (*path, step))


PLACES = [path for path in places(definition(SCHEMA, version=VERSION)["spec"]) if path]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(NONSENSE))
def test_nonsense_in_a_definition_is_answered(path: tuple[Any, ...], nonsense: Any) -> None:
    crd = copy.deepcopy(definition(SCHEMA, version=VERSION))
    part = crd["spec"]
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = nonsense
    with suppress(Invalid):
        for kind in custom.served_kinds(crd):
            kind.validate(kind.apply_defaults(thing({"a": "a", "l": [{"k": "x"}], "m": {"n": 1}})), None)
        custom.with_accepted_status(crd)


@settings(max_examples=200, deadline=None)
@given(st.recursive(st.sampled_from(NONSENSE), lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts)))
def test_nonsense_in_an_object_is_answered(nonsense: Any) -> None:
    (kind,) = custom.served_kinds(definition(SCHEMA, version=VERSION))
    for value in (thing(copy.deepcopy(nonsense)), thing({"a": nonsense, "l": nonsense, "m": nonsense})):
        whole = kind.apply_defaults(copy.deepcopy(value))
        assert kind.validate(whole, None) == kind.validate(copy.deepcopy(whole), None)
        kind.validate(whole, thing(copy.deepcopy(nonsense)))
