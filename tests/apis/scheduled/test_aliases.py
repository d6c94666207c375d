"""Other spellings: what is read as something else, and what is repaired.

The manifests of the scheduled-capacity design: as they were written, and with comments that YAML knows.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.manifests import CONTEXT, loaded, problems_of, shown
from tests.apis.scheduled.objects import at, behavior, daily, producer, schedule, scheduled

from springtide.apis.objects import LoadedObject, load
from springtide.apis.scheduled import fixes
from springtide.apis.scheduled.aliases import read_producer
from springtide.apis.yaml import UnreadableDocument

TREES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["spec", "schedule", "scheduleSpec", "behaviors", "start", "end", "hours", "weekdays"]),
            inner,
            max_size=4,
        )
    ),
)


def start_of(value: dict[str, Any]) -> Any:
    return value["spec"]["schedule"]["behaviors"][0]["start"]


def test_former_name_of_the_schedule() -> None:
    """`scheduleSpec` is read with a warning."""
    value = producer({"scheduleSpec": schedule(daily(9, 17))})
    reading = read_producer(value)

    assert reading.value == producer({"schedule": schedule(daily(9, 17))})
    assert shown(reading.problems) == ["warning spec.scheduleSpec"]
    assert reading.origins == {("spec", "schedule"): ("spec", "scheduleSpec")}
    assert "scheduleSpec" in value["spec"]


def test_problems_stand_where_they_were_written() -> None:
    value = producer({"scheduleSpec": schedule(daily(9, 25))})

    assert shown(problems_of(value)) == ["error spec.scheduleSpec.behaviors[0].end.hours", "warning spec.scheduleSpec"]


@pytest.mark.parametrize(
    ("written", "repaired"),
    [
        pytest.param(at(weekdays="Mon-Fri"), at(weekdays="Mon,Tue,Wed,Thu,Fri"), id="weekdays"),
        pytest.param(at(months="Jan-Mar"), at(months="Jan,Feb,Mar"), id="months"),
        pytest.param(at(months="january-march"), at(months="Jan,Feb,Mar"), id="full-names"),
        pytest.param(at(hours="9-11, 15"), at(hours="9,10,11,15"), id="range-in-a-list"),
        pytest.param(at(weekdays="Sat-7"), at(weekdays="Sat,Sun"), id="seven-is-sunday"),
        pytest.param(at(weekdays="Fri-Mon"), at(weekdays="Fri-Mon"), id="over-the-weekend"),
        pytest.param(at(hours="22-6"), at(hours="22-6"), id="backwards"),
        pytest.param(at(hours="22-28"), at(hours="22-28"), id="out-of-bounds"),
        pytest.param(at(hours="*/2"), at(hours="*/2"), id="step"),
        pytest.param(at(hours=9, weekdays="Mon, Tue"), at(hours=9, weekdays="Mon, Tue"), id="legal"),
    ],
)
def test_ranges_are_written_out(written: dict[str, Any], repaired: dict[str, Any]) -> None:
    reading = fixes(scheduled(behavior(written, at(hours=23))))

    assert repaired == start_of(reading.value)
    assert len(reading.problems) == (written != repaired)


def test_repairs_go_through_a_renamed_part() -> None:
    reading = fixes(producer({"scheduleSpec": schedule(behavior(at(weekdays="Mon-Tue"), at(hours=1)))}))

    assert start_of(reading.value) == at(weekdays="Mon,Tue")
    assert shown(reading.problems) == [
        "warning spec.scheduleSpec",
        "warning spec.scheduleSpec.behaviors[0].start.weekdays",
    ]


def test_target_of_an_autoscaler_is_repaired() -> None:
    value = {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "HorizontalAutoscaler",
        "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": {"apiVersion": "app/v1", "kind": "Deployment", "name": "b"}},
    }

    assert fixes(value).value["spec"]["scaleTargetRef"]["apiVersion"] == "apps/v1"


def test_repaired_objects_have_no_errors() -> None:
    value = producer(
        {"scheduleSpec": schedule(behavior(at(weekdays="Mon-Fri", hours=9), at(weekdays="Mon-Fri", hours=17)))}
    )

    assert loaded(fixes(value).value).sound


@given(st.dictionaries(st.sampled_from(["kind", "spec", "metadata"]), TREES, max_size=3), st.booleans())
def test_garbage_is_left_alone(value: dict[str, Any], named: bool) -> None:
    """Repairs never raise, and do not change the given object."""
    if named:
        value["kind"] = "MetricsProducer"
    before = copy.deepcopy(value)
    read_producer(value)
    fixes(value)

    assert before == value


DESIGNS = Path(__file__).parents[2] / "fixtures" / "designs"
FIRST = "spec.schedule.behaviors[0]"


@pytest.mark.parametrize("name", ["scheduled-capacity-1.yaml", "scheduled-capacity-2.yaml"])
def test_comments_of_another_language(name: str) -> None:
    """`//` does not start a comment, which is reported for each; the object is still validated."""
    text = (DESIGNS / name).read_text()
    *unreadable, loaded_object = load(text, CONTEXT)

    assert [(number, "write `#` instead") for number, line in enumerate(text.splitlines(), 1) if "//" in line] == [
        (found.line, found.hint) for found in unreadable if isinstance(found, UnreadableDocument)
    ]
    assert isinstance(loaded_object, LoadedObject)


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
            id="ranges-and-lists",
        ),
    ],
)
def test_with_legal_comments(name: str, expected: list[str]) -> None:
    (found,) = load((DESIGNS / name).read_text().replace("//", "#"), CONTEXT)

    assert isinstance(found, LoadedObject)
    assert expected == shown(found.problems)
