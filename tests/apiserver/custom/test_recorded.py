"""Objects and definitions are defaulted and validated as `k8s.io/apiextensions-apiserver` did it."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import pytest
from tests.apiserver.custom.recorded import DefinitionCase, ObjectCase, definitions, objects

from springtide.apiserver import custom
from springtide.cluster.errors import Invalid, StatusCause


def _sorted(causes: Iterable[StatusCause]) -> list[StatusCause]:
    return sorted(causes, key=lambda cause: (cause.field, cause.message))


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in objects()])
def test_objects_are_defaulted_and_validated_as_recorded(case: ObjectCase) -> None:
    schema = custom.compile_schema(case.schema)
    stored = schema.apply_defaults(schema.prune(copy.deepcopy(case.new)))
    assert stored == case.stored
    assert _sorted(schema.validate(stored, case.old)) == _sorted(case.causes)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in objects()])
def test_validating_again_gives_the_same_causes(case: ObjectCase) -> None:
    """Cached results change no answer."""
    schema = custom.compile_schema(case.schema)
    stored = schema.apply_defaults(schema.prune(copy.deepcopy(case.new)))
    first = schema.validate(stored, case.old)
    assert [schema.validate(copy.deepcopy(stored), case.old) for _ in range(2)] == [first, first]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in definitions()])
def test_definitions_are_validated_as_recorded(case: DefinitionCase) -> None:
    try:
        custom.served_kinds(case.crd)
        causes: tuple[StatusCause, ...] = ()
    except Invalid as refusal:
        causes = refusal.causes
    assert _sorted(causes) == _sorted(case.causes)
