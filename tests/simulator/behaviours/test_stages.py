"""Stages: golden pairs of what goes in and what comes out, and the small languages that they are written in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from springtide.apis.forecast import format_instant
from springtide.cluster.resources import Object
from springtide.simulator.behaviours import settings
from springtide.simulator.behaviours.settings import BehaviourSettings, Delay
from springtide.simulator.behaviours.stages import compile_stage, load_stages
from springtide.simulator.behaviours.stages.engine import TemplateContext, compile_path, compile_template

TESTDATA = Path(__file__).parent / "testdata"
CASES = [
    pytest.param(path.stem.partition("-")[0], case, id=f"{path.stem}: {case['case']}")
    for path in sorted(TESTDATA.glob("*.yaml"))
    for case in yaml.safe_load(path.read_text("utf-8"))
]
CREATED = {"name": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_the_next_stage_of_an_object_matches_the_table(kind: str, case: Object) -> None:
    stages = load_stages(kind, BehaviourSettings())
    item = case["object"]
    due = stages.next(item)
    if "stage" not in case:
        assert due is None
        return
    assert due is not None
    change = stages.status(due.stage, item, due.at)
    found = {"stage": due.stage.name, "at": format_instant(due.at), "change": change or "delete"}
    assert found == {name: case[name] for name in ("stage", "at", "change")}


@pytest.mark.parametrize("kind", ["node", "pod"])
def test_stages_name_settings_and_annotations_that_exist(kind: str) -> None:
    known = {settings.BOOT_SECONDS, settings.START_SECONDS, settings.RUN_SECONDS, ""}
    for stage in load_stages(kind, BehaviourSettings())._stages:
        assert stage.annotation in known
        assert not stage.setting or isinstance(getattr(BehaviourSettings(), stage.setting), Delay)


def test_a_delay_from_a_range_is_drawn_once_for_each_object() -> None:
    def due(uid: str, seed: str = "s") -> int:
        stages = load_stages("node", BehaviourSettings(seed=seed, node_boot=Delay(10, 1000)))
        found = stages.next({"metadata": {**CREATED, "uid": uid}})
        assert found is not None
        return found.at - 1_767_225_600

    assert due("a") == due("a")
    assert len({due(str(number)) for number in range(50)}) > 40
    assert all(10 <= due(str(number)) <= 1000 for number in range(50))
    assert due("a") != due("a", seed="t")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("metadata.name", "n", id="fields"),
        pytest.param('metadata.annotations["a.b/c"]', "x", id="quoted"),
        pytest.param("list[kind=two].value", 2, id="entry"),
        pytest.param("list[on=true].kind", "one", id="entry by a boolean"),
        pytest.param("list[kind=three].value", None, id="no such entry"),
        pytest.param("metadata.name.more", None, id="through a text"),
        pytest.param("list.more", None, id="through a list"),
        pytest.param("nothing.at.all", None, id="nothing"),
    ],
)
def test_paths_read_objects(path: str, expected: object) -> None:
    item = {
        "metadata": {"name": "n", "annotations": {"a.b/c": "x"}},
        "list": [{"kind": "one", "on": True}, {"kind": "two", "value": 2}],
    }
    assert compile_path(path)(item) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param({"a": "$metadata.name", "b": "$nothing"}, {"a": "n"}, id="a place that finds nothing"),
        pytest.param({"a": None}, {"a": None}, id="null is written"),
        pytest.param(["$now", "plain", 1], ["T", "plain", 1], id="lists"),
        pytest.param({"$first": ["$nothing", "$metadata.name", "x"]}, "n", id="first"),
        pytest.param({"$overlay": [{"a": 1, "b": 1}, "$nothing", {"b": 2}]}, {"a": 1, "b": 2}, id="overlay"),
        pytest.param({"$sum": ["$nothing", "$count", 2]}, 5, id="sum"),
        pytest.param({"$each": "list", "$make": {"x": "$item.k"}}, [{"x": 1}, {"x": 2}], id="each"),
        pytest.param({"$each": "nothing", "$make": {}}, None, id="each of nothing"),
        pytest.param({"$address": "$metadata.name"}, "10.27.22.178", id="address"),
        pytest.param(
            {"$conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}]},
            [
                {"type": "C", "status": "Unknown"},
                {"type": "A", "status": "True", "lastTransitionTime": "before"},
                {"type": "B", "status": "False", "lastTransitionTime": "T"},
            ],
            id="conditions",
        ),
    ],
)
def test_templates_are_filled_in(written: Any, expected: object) -> None:
    conditions = [
        {"type": "C", "status": "Unknown"},
        {"type": "A", "status": "True", "lastTransitionTime": "before"},
    ]
    item = {"metadata": {"name": "n"}, "count": 3, "list": [{"k": 1}, {"k": 2}], "status": {"conditions": conditions}}
    assert compile_template(written)(TemplateContext(item, "T", BehaviourSettings())) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"since": "a..b"}, "`a..b` is not a path", id="path"),
        pytest.param({"status": {"$guess": []}}, "`\\$guess` is not an operation", id="operation"),
        pytest.param({"when": {"a": {"like": 1}}}, "`like` is not a test", id="test"),
        pytest.param({"delete": True}, "either `status` or `delete: true`", id="two effects"),
    ],
)
def test_errors_in_stages_are_reported(change: Object, message: str) -> None:
    written = {"name": "s", "because": "b", "when": {}, "since": "a", "status": {}, **change}
    with pytest.raises(ValueError, match=message):
        compile_stage(written)
