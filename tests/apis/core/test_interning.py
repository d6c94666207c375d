"""Labels are kept once."""

from __future__ import annotations

from springtide.apis.core.interning import intern_labels


def test_equal_labels_are_one_object() -> None:
    first = intern_labels({"app": "web", "tier": "front"})

    assert intern_labels({"tier": "front", "app": "web"}) is first
    assert first == {"app": "web", "tier": "front"}


def test_different_labels_stay_apart() -> None:
    assert intern_labels({"app": "web"}) != intern_labels({"app": "db"})


def test_no_labels_are_an_empty_map() -> None:
    assert intern_labels(None) is intern_labels({})
    assert intern_labels(None) == {}
