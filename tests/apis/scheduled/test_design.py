"""The manifests of the scheduled-capacity design: as they were written, and with comments that YAML knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.apis.judging import CONTEXT, shown

from springtide.apis.objects import LoadedObject, load
from springtide.apis.yaml import Unreadable

DESIGNS = Path(__file__).parents[2] / "fixtures" / "designs"
FIRST = "spec.schedule.behaviors[0]"


@pytest.mark.parametrize("name", ["scheduled-capacity-1.yaml", "scheduled-capacity-2.yaml"])
def test_comments_of_another_language(name: str) -> None:
    """X15: `//` does not start a comment, and that is said of each; the object is judged all the same."""
    text = (DESIGNS / name).read_text()
    *slips, meant = load(text, CONTEXT)

    assert [(number, "write `#` instead") for number, line in enumerate(text.splitlines(), 1) if "//" in line] == [
        (found.line, found.hint) for found in slips if isinstance(found, Unreadable)
    ]
    assert isinstance(meant, LoadedObject)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("scheduled-capacity-1.yaml", ["warning spec.schedule.behaviors[2]"], id="week"),
        pytest.param(
            "scheduled-capacity-2.yaml",
            [
                "error metadata.name",
                f"error {FIRST}.end.months",
                f"error {FIRST}.end.weekdays",
                f"error {FIRST}.start.months",
                f"error {FIRST}.start.weekdays",
                "warning spec.schedule.behaviors[1].start",
            ],
            id="X16-ranges-and-lists",
        ),
    ],
)
def test_with_legal_comments(name: str, expected: list[str]) -> None:
    (found,) = load((DESIGNS / name).read_text().replace("//", "#"), CONTEXT)

    assert isinstance(found, LoadedObject)
    assert expected == shown(found.problems)
