"""Aliases of fields, and repairs of mistakes with only one possible meaning."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.manifests import problems_of, shown

from springtide.apis.problems import format_path
from springtide.apis.xk8s import fixes
from springtide.apis.xk8s.aliases import read_class, read_request

DRAFT: dict[str, Any] = {
    "apiVersion": "autoscaling.x-k8s.io/v1",
    "kind": "ProvisioningRequest",
    "metadata": {"name": "batch"},
    "spec": {
        "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 3}],
        "provisioningClass": "atomic-scale-up.kubernetes.io",
        "Parameters": {"ValidUntilSeconds": "2h"},
    },
    "status": {"statuses": {"zone": "a"}},
}


def test_a_request_of_the_draft_is_understood() -> None:
    """Every former name is read as what it became, in its place, with a warning where the user wrote it."""
    reading = read_request(DRAFT)

    assert list(reading.value["spec"]) == ["podSets", "provisioningClassName", "parameters"]
    assert reading.value["status"] == {"provisioningClassDetails": {"zone": "a"}}
    assert [format_path(problem.path) for problem in reading.problems] == [
        "spec.provisioningClass",
        "spec.Parameters",
        "status.statuses",
    ]
    assert {problem.severity for problem in reading.problems} == {"warning"}
    assert reading.origins[("spec", "provisioningClassName")] == ("spec", "provisioningClass")


def test_the_class_keeps_the_name_that_was_written() -> None:
    """Pods name the class too, so a former class name is never rewritten."""
    assert read_request(DRAFT).value["spec"]["provisioningClassName"] == "atomic-scale-up.kubernetes.io"
    assert fixes(DRAFT).value["spec"]["provisioningClassName"] == "atomic-scale-up.kubernetes.io"


def test_the_draft_works() -> None:
    """It has no errors, and every warning has the path that the user wrote."""
    assert shown(problems_of(DRAFT)) == [
        "warning spec.Parameters",
        "warning spec.provisioningClass",
        "warning spec.provisioningClass",
        "warning status.statuses",
    ]


def test_two_spellings_at_once_are_not_merged() -> None:
    """Where the new name is there too, the old one stays and is reported as unknown."""
    both = deepcopy(DRAFT)
    both["spec"]["provisioningClassName"] = "check-capacity.autoscaling.x-k8s.io"

    assert "error spec.provisioningClass" in shown(problems_of(both))


def test_reading_changes_nothing_in_place() -> None:
    """The tree that was given is left as it was."""
    before = deepcopy(DRAFT)

    read_request(DRAFT)
    fixes(DRAFT)

    assert before == DRAFT


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param({"mem": "5120Mi", "cpi": 40}, {"memory": "5120Mi", "cpu": 40}, id="design"),
        pytest.param({"mem": 1, "memory": 2}, {"mem": 1, "memory": 2}, id="taken"),
        pytest.param({"gpu": 1}, {"gpu": 1}, id="whose-gpu"),
        pytest.param({"nvidia.com/gpu": 1, "cpu": 2}, {"nvidia.com/gpu": 1, "cpu": 2}, id="nothing-to-do"),
        pytest.param({"widgets": 1}, {"widgets": 1}, id="no-idea"),
        pytest.param({"mem": 1, "memroy": 2}, {"memory": 1, "memroy": 2}, id="the-first-takes-the-name"),
    ],
)
def test_misspelt_resources_are_repaired(limits: dict[str, Any], expected: dict[str, Any]) -> None:
    """Misspelt cpu and memory are renamed in place, each with a warning."""
    value = {"kind": "CapacityBuffer", "spec": {"replicas": 1, "limits": limits}}

    reading = fixes(value)

    assert list(expected.items()) == list(reading.value["spec"]["limits"].items())
    assert len(expected.keys() - limits.keys()) == len(reading.problems)


names = st.sampled_from(["limits", "provisioningClass", "Parameters", "statuses", "mem", "cpi"])
scalars = st.sampled_from([None, True, 0, "", "mem"])
parts = scalars | st.lists(scalars, max_size=2) | st.dictionaries(names, scalars | st.dictionaries(names, scalars))
kinds = st.sampled_from(["CapacityBuffer", "ProvisioningRequest", "ProvisioningClass", "Other", 7, None])


@given(tree=st.dictionaries(st.sampled_from(["spec", "status", "Parameters"]), parts), kind=kinds)
def test_anything_can_be_read(tree: dict[str, Any], kind: object) -> None:
    """Garbage is left as it is, and repairing twice changes nothing more."""
    value = {**tree, "kind": kind}

    for read in (read_request, read_class, fixes):
        once = read(value).value
        assert once == read(once).value
