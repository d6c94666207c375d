"""Extension fields in an annotation: merged into the spec before anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, load
from springtide.apis.problems import format_path
from springtide.apis.validation import ANNOTATION, merge_extensions


def annotated(spec: Any, text: str) -> dict[str, Any]:
    return {"metadata": {"name": "a", "annotations": {ANNOTATION: text}}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [
        pytest.param({"a": 1}, "b: 2", {"a": 1, "b": 2}, id="added"),
        pytest.param({"a": {"x": 1}}, "a: {y: 2}", {"a": {"x": 1, "y": 2}}, id="nested"),
        pytest.param({"a": 1}, "a: 2", {"a": 2}, id="the annotation wins"),
        pytest.param(
            {"l": [{"name": "x"}, {"name": "y"}]},
            "l: [{name: y, z: 1}]",
            {"l": [{"name": "x"}, {"name": "y", "z": 1}]},
            id="lists by name",
        ),
        pytest.param(
            {"l": [{"a": 1}, {"a": 2}]}, "l: [{}, {b: 3}]", {"l": [{"a": 1}, {"a": 2, "b": 3}]}, id="by position"
        ),
        pytest.param({}, "l: [{a: 1}]", {"l": [{"a": 1}]}, id="a list that was not there"),
        pytest.param({"l": [1, 2]}, "l: [3]", {"l": [3]}, id="scalars are replaced"),
        pytest.param({"a": 1}, "", {"a": 1}, id="empty"),
    ],
)
def test_merging(spec: Any, text: str, expected: Any) -> None:
    merged, problems = merge_extensions(annotated(spec, text))
    assert (merged["spec"], problems) == (expected, [])


@pytest.mark.parametrize(
    ("spec", "text", "path", "message"),
    [
        pytest.param({"l": [{}, {}]}, "l: [{b: 1}]", "spec.l", "has 1 entries for a list of 2", id="lengths differ"),
        pytest.param({"l": [{"name": "x"}]}, "l: [{name: q}]", "spec.l", "does not exist: q", id="no such name"),
        pytest.param(
            {"l": [{"name": "x"}]}, "l: [{name: [x]}]", "spec.l", "does not exist: ['x']", id="no name at all"
        ),
        pytest.param(
            {}, "a: [", "metadata.annotations[springtide.dev/extensions]", "of the annotation", id="unreadable"
        ),
        pytest.param({}, "- a", "metadata.annotations[springtide.dev/extensions]", "one YAML mapping", id="no mapping"),
    ],
)
def test_what_cannot_be_merged_is_an_error_and_nothing_is_lost(spec: Any, text: str, path: str, message: str) -> None:
    merged, (problem,) = merge_extensions(annotated(spec, text))
    assert format_path(problem.path) == path
    assert message in problem.message
    assert merged["spec"] == spec


def test_an_extension_is_validated_like_a_field_with_the_position_of_the_annotation() -> None:
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "a", "annotations": {ANNOTATION: "disruption: {budgets: [{timeZone: Mars/Olympus}]}"}},
        "spec": {
            "disruption": {"budgets": [{"nodes": "1", "schedule": "0 9 * * *", "duration": "1h"}]},
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "springtide.dev", "kind": "NodeClass", "name": "a"},
                    "requirements": [],
                }
            },
        },
    }
    (loaded,) = load(json.dumps(pool, indent=1), ValidationContext(now=0))
    assert isinstance(loaded, LoadedObject)
    (problem,) = loaded.problems
    assert format_path(problem.path) == "spec.disruption.budgets[0].timeZone"
    assert ANNOTATION in loaded.document.text.splitlines()[loaded.place(problem).line - 1]
