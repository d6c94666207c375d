"""The cursor annotation of handled firings, and the time from which firings of a rule count."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from springtide.apis.meta.times import parse_instant
from springtide.cluster.client import Mode
from springtide.cluster.controller import Cached
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch
from springtide.controllers.cron_federated_hpa.cursor import (
    ANNOTATION,
    ObjectAge,
    RuleProgress,
    RuleWindow,
    read_cursor,
    rule_window,
    timing_fingerprint,
    write_cursor,
)
from springtide.controllers.cron_federated_hpa.recorder import ExecutionRecorder
from springtide.controllers.cron_federated_hpa.records import CronRecord, record_of

CREATED, EDITED, HANDLED, NOW = 1_000, 5_000, 4_000, 9_000
AGE = ObjectAge(CREATED, EDITED)
SAME = timing_fingerprint("30 8 * * *", None, None)
OTHER = timing_fingerprint("30 9 * * *", None, None)


def test_cursor_round_trips() -> None:
    """The annotation is compact and readable."""
    marks = {
        "up": RuleProgress(parse_instant("2026-06-05T08:30:00Z"), SAME, True),
        "down": RuleProgress(0, OTHER, False),
    }

    text = write_cursor(marks)

    assert read_cursor(text) == marks
    assert text.startswith('{"up":{"handled":"2026-06-05T08:30:00Z","timing":"')


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="no-json"),
        pytest.param("[]", id="a-list"),
        pytest.param('{"up": 3}', id="number-as-entry"),
        pytest.param('{"up": {}}', id="empty-entry"),
        pytest.param('{"up": {"handled": "today", "timing": "x"}}', id="invalid-time"),
        pytest.param('{"up": {"handled": null, "timing": "x"}}', id="null"),
        pytest.param('{"up": {"handled": "2026-06-05T08:30:00+99:99", "timing": "x"}}', id="invalid-offset"),
        pytest.param('{"up": {"handled": ' + "[" * 100_000 + "]" * 100_000 + "}}", id="deeply-nested"),
    ],
)
def test_unreadable_cursor_counts_as_absent(text: str) -> None:
    """An error in the annotation does not stop the rules."""
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
def test_fingerprint_differs_for_other_times(one: tuple[Any, Any, Any], other: tuple[Any, Any, Any]) -> None:
    """Only the fields that determine the firing times count."""
    assert timing_fingerprint(*one) != timing_fingerprint(*other)


@pytest.mark.parametrize(
    ("before", "asked", "expected"),
    [
        pytest.param(None, {}, RuleWindow(EDITED), id="new-object"),
        pytest.param(
            None, {"age": ObjectAge(CREATED, None)}, RuleWindow(CREATED), id="new-object-without-managed-fields"
        ),
        pytest.param(None, {"recorded": 8_000}, RuleWindow(8_000), id="taken-over-with-a-history"),
        pytest.param(None, {"in_force": False}, RuleWindow(EDITED, EDITED), id="new-and-suspended"),
        pytest.param({}, {}, RuleWindow(EDITED), id="new-rule"),
        pytest.param({}, {"recorded": 8_000}, RuleWindow(8_000), id="entry-removed-by-a-user"),
        pytest.param({}, {"age": ObjectAge(CREATED, None)}, RuleWindow(NOW), id="new-rule-without-managed-fields"),
        pytest.param({"up": RuleProgress(HANDLED, SAME, True)}, {}, RuleWindow(HANDLED), id="unchanged"),
        pytest.param(
            {"up": RuleProgress(HANDLED, SAME, True)}, {"recorded": 8_000}, RuleWindow(8_000), id="cursor-behind"
        ),
        pytest.param(
            {"up": RuleProgress(8_000, SAME, True)}, {"recorded": HANDLED}, RuleWindow(8_000), id="history-trimmed"
        ),
        pytest.param({"up": RuleProgress(HANDLED, OTHER, True)}, {}, RuleWindow(EDITED), id="schedule-changed"),
        pytest.param(
            {"up": RuleProgress(8_000, OTHER, True)}, {}, RuleWindow(8_000), id="schedule-changed-before-the-cursor"
        ),
        pytest.param({"up": RuleProgress(HANDLED, SAME, False)}, {}, RuleWindow(EDITED), id="resumed"),
        pytest.param(
            {"up": RuleProgress(HANDLED, SAME, False)},
            {"age": ObjectAge(CREATED, None)},
            RuleWindow(NOW),
            id="resumed-without-managed-fields",
        ),
        pytest.param(
            {"up": RuleProgress(HANDLED, SAME, True)},
            {"in_force": False},
            RuleWindow(HANDLED, EDITED),
            id="just-suspended",
        ),
        pytest.param(
            {"up": RuleProgress(HANDLED, OTHER, True)},
            {"in_force": False},
            RuleWindow(HANDLED, HANDLED),
            id="suspended-and-schedule-changed",
        ),
        pytest.param(
            {"up": RuleProgress(HANDLED, SAME, False)},
            {"in_force": False},
            RuleWindow(HANDLED, HANDLED),
            id="still-suspended",
        ),
        pytest.param(
            {"up": RuleProgress(HANDLED, OTHER, True)},
            {"age": ObjectAge(CREATED, 9_900)},
            RuleWindow(NOW),
            id="edited-in-the-future",
        ),
        pytest.param(
            {"up": RuleProgress(500, SAME, True)}, {}, RuleWindow(CREATED), id="copied-with-the-cursor-of-another"
        ),
        pytest.param(
            {"up": RuleProgress(500, SAME, False)},
            {"in_force": False},
            RuleWindow(CREATED, CREATED),
            id="copied-and-suspended",
        ),
        pytest.param({"up": RuleProgress(9_900, SAME, True)}, {}, RuleWindow(9_900), id="clock-set-back-a-little"),
        pytest.param({"up": RuleProgress(999_000, SAME, True)}, {}, RuleWindow(NOW), id="clock-set-back-by-days"),
        pytest.param(
            {"up": RuleProgress(HANDLED, SAME, True)},
            {"recorded": 9_900},
            RuleWindow(9_900),
            id="recorded-shortly-in-the-future",
        ),
        pytest.param(
            {"up": RuleProgress(HANDLED, SAME, True)},
            {"age": ObjectAge(999_000, EDITED)},
            RuleWindow(HANDLED),
            id="created-in-the-future",
        ),
    ],
)
def test_time_from_which_firings_count(
    before: dict[str, RuleProgress] | None, asked: dict[str, Any], expected: RuleWindow
) -> None:
    """Firings before the object or rule existed, was resumed, or got its present schedule do not count."""
    question = {"timing": SAME, "in_force": True, "recorded": None, "age": AGE, "now": NOW, **asked}

    assert rule_window(before, "up", **question) == expected


class RecordedWrites:
    """Stands for the context of a controller: the cache has one record, and writes are noted."""

    mode = Mode.ACT

    def __init__(self, cached: CronRecord | None) -> None:
        self.cached = cached
        self.written: list[Object] = []
        self.client = self
        self.events: Any = None

    def store(self, cached: Cached) -> Any:
        return {} if self.cached is None else {self.cached.origin.key: self.cached}

    async def wait_for_object(self, key: Key) -> None:
        """The cache shows all writes."""

    async def patch(self, resource: Resource, patch: Patch, *, of: Any, because: str) -> None:
        self.written.append(patch.body)


@pytest.mark.parametrize(
    ("cursor", "uid", "writes"),
    [
        pytest.param("", "u", 1, id="as-it-was-read"),
        pytest.param('{"r":{"handled":"2030-01-01T00:00:00Z","timing":"x"}}', "u", 0, id="moved-by-another-writer"),
        pytest.param("", "other", 0, id="another-object-of-the-same-name"),
        pytest.param(None, "u", 0, id="deleted"),
    ],
)
def test_progress_is_saved_only_over_the_cursor_that_was_read(cursor: str | None, uid: str, writes: int) -> None:
    """A cursor that another writer has moved stays: its change enqueues the object again."""
    metadata = {"name": "daily", "namespace": "default", "creationTimestamp": "2026-06-05T00:00:00Z"}
    read = record_of({"metadata": {**metadata, "uid": "u", "resourceVersion": "1"}, "spec": {}})
    annotations = {"annotations": {ANNOTATION: cursor}} if cursor else {}
    cached = None
    if cursor is not None:
        cached = record_of({"metadata": {**metadata, **annotations, "uid": uid, "resourceVersion": "2"}, "spec": {}})
    context = RecordedWrites(cached)
    recorder = ExecutionRecorder(cast("Any", context), cast("Any", None), cast("Any", None))

    asyncio.run(recorder.save_progress(read.origin.key, read, {"r": RuleProgress(0, "x", in_force=True)}))

    assert len(context.written) == writes


def test_progress_that_is_saved_already_is_not_written() -> None:
    """Between two firings nothing is written."""
    progress = {"r": RuleProgress(0, "x", in_force=True)}
    metadata = {
        "name": "daily",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2026-06-05T00:00:00Z",
        "annotations": {ANNOTATION: write_cursor(progress)},
    }
    read = record_of({"metadata": metadata, "spec": {}})
    context = RecordedWrites(read)
    recorder = ExecutionRecorder(cast("Any", context), cast("Any", None), cast("Any", None))

    asyncio.run(recorder.save_progress(read.origin.key, read, progress))

    assert context.written == []
