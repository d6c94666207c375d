"""The embedded API server answers as a real one does, but for what is known."""

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
def played() -> Iterator[DifferencesOf]:
    """Have the embedded servers."""
    with embedded_servers() as played:
        yield played


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in all_cases()])
def test_answers_as_recorded(case: Case, played: DifferencesOf) -> None:
    unknown = [each for each in played(case) if not any(known.covers(case.id, each) for known in KNOWN)]

    assert "\n".join(map(str, unknown)) == ""


@pytest.mark.parametrize("known", [pytest.param(known, id=known.what[:40]) for known in KNOWN])
def test_a_known_difference_is_still_there(known: Known, played: DifferencesOf) -> None:
    """A place where the servers have come to agree must leave the table."""
    agreed = []
    for where, field in known.places:
        only = Known(known.what, ((where, field),), known.when)
        cases = (case for case in all_cases() if fnmatchcase(case.id, literal(where)))
        if not any(only.covers(case.id, each) for case in cases for each in played(case)):
            agreed.append((where, field))

    assert agreed == []


def test_every_answer_belongs_to_a_case() -> None:
    kept = {f"{area}/{name}" for area in recorded_areas() for name in recorded(area)}

    assert {case.id for case in all_cases()} == kept


def test_no_two_cases_share_a_name() -> None:
    names = [case.id for case in all_cases()]

    assert len(set(names)) == len(names)


def test_the_documentation_lists_the_differences() -> None:
    """`python -m tests.conformance.known` writes the section that belongs there."""
    _, heading, rest = _PAGE.read_text().partition(HEADING)
    body = rest.split("\n## ")[0]

    assert section().strip() == (heading + body).strip()
