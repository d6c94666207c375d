"""The embedded API server answers as a kube-apiserver does, except for known differences."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from tests.conformance.answers import recorded, recorded_areas
from tests.conformance.case import Case, all_cases
from tests.conformance.known import HEADING, KNOWN, Known, literal, section
from tests.conformance.servers import DifferencesOf, embedded_servers

_PAGE = Path(__file__).parents[2] / "docs" / "embedded.md"


@pytest.fixture(scope="module")
def differences_of() -> Iterator[DifferencesOf]:
    """Serve the embedded servers."""
    with embedded_servers() as differences_of:
        yield differences_of


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in all_cases()])
def test_answers_as_recorded(case: Case, differences_of: DifferencesOf) -> None:
    unknown = [each for each in differences_of(case) if not any(known.covers(case.id, each) for known in KNOWN)]

    assert "\n".join(map(str, unknown)) == ""


@pytest.mark.parametrize("known", [pytest.param(known, id=known.sentence[:40]) for known in KNOWN])
def test_a_known_difference_is_still_there(known: Known, differences_of: DifferencesOf) -> None:
    """A difference that no longer exists must leave the list."""
    agreed = []
    for where, field in known.patterns:
        only = Known(known.sentence, ((where, field),), known.when)
        cases = (case for case in all_cases() if fnmatchcase(case.id, literal(where)))
        if not any(only.covers(case.id, each) for case in cases for each in differences_of(case)):
            agreed.append((where, field))

    assert agreed == []


def test_every_answer_belongs_to_a_case() -> None:
    kept = {f"{area}/{name}" for area in recorded_areas() for name in recorded(area)}

    assert {case.id for case in all_cases()} == kept


def test_no_two_cases_share_a_name() -> None:
    names = [case.id for case in all_cases()]

    assert len(set(names)) == len(names)


def test_the_documentation_lists_the_differences() -> None:
    """`python -m tests.conformance.known` prints the section."""
    _, heading, rest = _PAGE.read_text().partition(HEADING)
    body = rest.split("\n## ")[0]

    assert section().strip() == (heading + body).strip()
