"""A compiled schema: what the server does with a custom resource, in the order in which it does it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.custom import wording
from springtide.simulator.api.custom.embedded import judge_embedded
from springtide.simulator.api.custom.filling import fill, prune
from springtide.simulator.api.custom.lists import judge_lists
from springtide.simulator.api.custom.places import Place, read
from springtide.simulator.api.custom.quick import quick_check
from springtide.simulator.api.custom.rules import RuledPlace, judge_rules, rules_of
from springtide.simulator.api.custom.structures import structure_of
from springtide.simulator.api.custom.validation import validate
from springtide.simulator.api.structure import Node

_BLOCKING: Final = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
"""Failures after which rules are not tried, because they could not be made sense of."""

_NOT_CHECKED: Final = Cause(
    wording.NOWHERE,
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)


class Schema:
    """The schema of one version of a custom resource. Its parts are compiled when they are first needed."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @cached_property
    def structure(self) -> Node:
        """The tree that patches and managed fields work on."""
        return structure_of(self.place)

    @cached_property
    def _accepts(self) -> Any:
        return quick_check(self.place)

    @cached_property
    def _rules(self) -> RuledPlace | None:
        return rules_of(self.place, root=True)

    def prune(self, value: Object) -> Object:
        """Drop fields that the schema does not have, and nulls where none may be; changes the object it is given."""
        prune(value, self.place)
        return value

    def default(self, value: Object) -> Object:
        """Fill in defaults; changes the object it is given."""
        fill(value, self.place)
        return value

    def judge(self, new: Object, old: Object | None) -> tuple[Cause, ...]:
        """Find what is wrong with an object, given what it was before; an empty result lets it pass."""
        causes: list[Cause] = [] if self._accepts(new) else validate(self.place, new, old)
        causes += judge_embedded(new, self.place)
        # A list that held something twice before may go on doing so.
        if repeated := [*judge_lists(new, self.place)]:
            causes += [] if old is not None and any(judge_lists(old, self.place)) else repeated
        if self._rules is not None:
            if any(cause.reason in _BLOCKING for cause in causes):
                causes.append(_NOT_CHECKED)
            else:
                causes += judge_rules(self._rules, new, old)
        return tuple(causes)


def compile_schema(openapi: Mapping[str, Any]) -> Schema:
    """Compile a schema as it stands in a CRD; it is taken to be a good one."""
    return Schema(read(openapi))
