"""How far rules have come: the annotation, and from when on firings count."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apis.meta.instants import parse_instant
from springtide.controllers.cron.cursor import Life, Mark, Standing, read_cursor, standing_of, timing_of, write_cursor

CREATED, EDITED, HANDLED, NOW = 1_000, 5_000, 4_000, 9_000
LIFE = Life(CREATED, EDITED)
SAME = timing_of("30 8 * * *", None, None)
OTHER = timing_of("30 9 * * *", None, None)


def test_the_annotation_reads_back() -> None:
    """It is compact, and people can read it."""
    marks = {"up": Mark(parse_instant("2026-06-05T08:30:00Z"), SAME, True), "down": Mark(0, OTHER, False)}

    text = write_cursor(marks)

    assert read_cursor(text) == marks
    assert text.startswith('{"up":{"handled":"2026-06-05T08:30:00Z","timing":"')


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="none"),
        pytest.param("{", id="no-json"),
        pytest.param("[]", id="a-list"),
        pytest.param('{"up": 3}', id="no-entry"),
        pytest.param('{"up": {}}', id="nothing-in-it"),
        pytest.param('{"up": {"handled": "today", "timing": "x"}}', id="no-time"),
        pytest.param('{"up": {"handled": null, "timing": "x"}}', id="null"),
        pytest.param('{"up": {"handled": "2026-06-05T08:30:00+99:99", "timing": "x"}}', id="a-time-of-no-day"),
        pytest.param('{"up": {"handled": ' + "[" * 100_000 + "]" * 100_000 + "}}", id="endlessly-deep"),
    ],
)
def test_what_cannot_be_read_counts_as_absent(text: str) -> None:
    """Somebody's slip in an annotation stops nothing."""
    assert read_cursor(text) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(("30 8 * * *", None, None), ("30 9 * * *", None, None), id="schedule"),
        pytest.param(("30 8 * * *", None, None), ("30 8 * * *", None, "UTC"), id="zone"),
        pytest.param((None, "2026-06-05T08:30:00Z", None), (None, "2026-06-06T08:30:00Z", None), id="at"),
        pytest.param(("a", None, "b"), ("b", None, "a"), id="order"),
    ],
)
def test_other_times_have_another_fingerprint(one: tuple[Any, Any, Any], other: tuple[Any, Any, Any]) -> None:
    """Only what makes the times counts."""
    assert timing_of(*one) != timing_of(*other)


@pytest.mark.parametrize(
    ("before", "asked", "expected"),
    [
        pytest.param(None, {}, Standing(EDITED), id="new-object"),
        pytest.param(None, {"life": Life(CREATED, None)}, Standing(CREATED), id="new-object-without-managed-fields"),
        pytest.param(None, {"recorded": 8_000}, Standing(8_000), id="taken-over-with-a-history"),
        pytest.param(None, {"in_force": False}, Standing(EDITED, EDITED), id="new-and-suspended"),
        pytest.param({}, {}, Standing(EDITED), id="new-rule"),
        pytest.param({}, {"recorded": 8_000}, Standing(8_000), id="mark-removed-by-hand"),
        pytest.param({}, {"life": Life(CREATED, None)}, Standing(NOW), id="new-rule-without-managed-fields"),
        pytest.param({"up": Mark(HANDLED, SAME, True)}, {}, Standing(HANDLED), id="as-before"),
        pytest.param({"up": Mark(HANDLED, SAME, True)}, {"recorded": 8_000}, Standing(8_000), id="cursor-behind"),
        pytest.param({"up": Mark(8_000, SAME, True)}, {"recorded": HANDLED}, Standing(8_000), id="history-trimmed"),
        pytest.param({"up": Mark(HANDLED, OTHER, True)}, {}, Standing(EDITED), id="other-times"),
        pytest.param({"up": Mark(8_000, OTHER, True)}, {}, Standing(8_000), id="other-times-never-go-back"),
        pytest.param({"up": Mark(HANDLED, SAME, False)}, {}, Standing(EDITED), id="resumed"),
        pytest.param(
            {"up": Mark(HANDLED, SAME, False)},
            {"life": Life(CREATED, None)},
            Standing(NOW),
            id="resumed-without-managed-fields",
        ),
        pytest.param(
            {"up": Mark(HANDLED, SAME, True)}, {"in_force": False}, Standing(HANDLED, EDITED), id="just-suspended"
        ),
        pytest.param(
            {"up": Mark(HANDLED, OTHER, True)},
            {"in_force": False},
            Standing(HANDLED, HANDLED),
            id="suspended-with-other-times",
        ),
        pytest.param(
            {"up": Mark(HANDLED, SAME, False)}, {"in_force": False}, Standing(HANDLED, HANDLED), id="still-suspended"
        ),
        pytest.param({"up": Mark(HANDLED, OTHER, True)}, {"life": Life(CREATED, 9_900)}, Standing(NOW), id="clock"),
        pytest.param({"up": Mark(500, SAME, True)}, {}, Standing(CREATED), id="copied-with-the-cursor-of-another"),
        pytest.param({"up": Mark(500, SAME, False)}, {"in_force": False}, Standing(CREATED, CREATED), id="copied-idle"),
        pytest.param({"up": Mark(9_900, SAME, True)}, {}, Standing(9_900), id="clock-set-back-a-little"),
        pytest.param({"up": Mark(999_000, SAME, True)}, {}, Standing(NOW), id="clock-set-back-by-days"),
        pytest.param({"up": Mark(HANDLED, SAME, True)}, {"recorded": 9_900}, Standing(9_900), id="recorded-just-ahead"),
        pytest.param(
            {"up": Mark(HANDLED, SAME, True)}, {"life": Life(999_000, EDITED)}, Standing(HANDLED), id="created-ahead"
        ),
    ],
)
def test_from_when_on_firings_count(before: dict[str, Mark] | None, asked: dict[str, Any], expected: Standing) -> None:
    """Nothing counts from before the object, the rule, its being resumed or its times were there."""
    question = {"timing": SAME, "in_force": True, "recorded": None, "life": LIFE, "now": NOW, **asked}

    assert standing_of(before, "up", **question) == expected
