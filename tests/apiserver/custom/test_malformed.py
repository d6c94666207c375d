"""A malformed definition or object is served or rejected, but never fails with an unexpected error."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.custom.recorded import custom_object, definition

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
MALFORMED: list[Any] = [
    None, "", "x", "(", 0, -1, 1.5, True, [], {}, [None], ["x"], [{}], {"x": None}, {"": []}, {"type": "object"},
]  # fmt: skip


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield all paths of a tree."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in inner:
        yield from paths_of(part, (*path, step))


PATHS = [path for path in paths_of(definition(SCHEMA, version=VERSION)["spec"]) if path]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PATHS), st.sampled_from(MALFORMED))
def test_a_malformed_definition_is_served_or_rejected(path: tuple[Any, ...], malformed: Any) -> None:
    crd = copy.deepcopy(definition(SCHEMA, version=VERSION))
    part = crd["spec"]
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = malformed
    with suppress(Invalid):
        for kind in custom.served_kinds(crd):
            kind.validate(kind.apply_defaults(custom_object({"a": "a", "l": [{"k": "x"}], "m": {"n": 1}})), None)
        custom.with_accepted_status(crd)


@settings(max_examples=200, deadline=None)
@given(st.recursive(st.sampled_from(MALFORMED), lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts)))
def test_a_malformed_object_is_validated_the_same_every_time(malformed: Any) -> None:
    (kind,) = custom.served_kinds(definition(SCHEMA, version=VERSION))
    for value in (
        custom_object(copy.deepcopy(malformed)),
        custom_object({"a": malformed, "l": malformed, "m": malformed}),
    ):
        whole = kind.apply_defaults(copy.deepcopy(value))
        assert kind.validate(whole, None) == kind.validate(copy.deepcopy(whole), None)
        kind.validate(whole, custom_object(copy.deepcopy(malformed)))
