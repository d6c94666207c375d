"""Repairs of trees: what is changed, what is left alone, and where a change is reported."""

from __future__ import annotations

from springtide.apis.meta.mending import Mending
from springtide.apis.problems import format_path


def test_rename_keeps_order_and_the_original() -> None:
    value = {"spec": {"a": 1, "old": 2, "z": 3}}
    mending = Mending(value)
    mending.rename(("spec",), "old", "new", "renamed")

    assert list(mending.value["spec"].items()) == [("a", 1), ("new", 2), ("z", 3)]
    assert value == {"spec": {"a": 1, "old": 2, "z": 3}}


def test_taken_name_stays() -> None:
    mending = Mending({"old": 1, "new": 2})
    mending.rename((), "old", "new", "renamed")

    assert mending.reading().value == {"old": 1, "new": 2}
    assert mending.reading().problems == ()


def test_changes_below_a_renamed_part_are_reported_where_they_were_written() -> None:
    mending = Mending({"old": [{"x": 1}]})
    mending.rename((), "old", "new", "renamed")
    mending.rename(("new", 0), "x", "y", "renamed")
    mending.replace(("new", 0, "y"), 5, "replaced")
    reading = mending.reading()

    assert reading.value == {"new": [{"y": 5}]}
    assert [format_path(problem.path) for problem in reading.problems] == ["old", "old[0].x", "old[0].x"]
    assert reading.origins == {("new",): ("old",), ("new", 0, "y"): ("old", 0, "x")}


def test_what_is_not_there() -> None:
    mending = Mending({"a": [1]})
    mending.rename(("a", 0), "x", "y", "renamed")
    mending.rename(("b",), "x", "y", "renamed")

    assert mending.at(("a", 3)) is None
    assert mending.at(("a", "x")) is None
    assert mending.entries(("b",)) == []
    assert mending.reading().problems == ()
