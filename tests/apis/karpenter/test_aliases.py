"""Older and looser spellings of budgets: what they are read as, and what is said about it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.karpenter.samples import beta_pool, node_pool
from tests.apis.manifests import loaded, problems_of

from springtide.apis.karpenter.aliases import fixes, read_v1, read_v1beta1
from springtide.apis.problems import format_path

BUDGETS = "spec.disruption.budgets"


def read_budget(budget: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Read one budget; give it, and where something was said about it, relative to it."""
    reading = read_v1(node_pool({"budgets": [budget]}))
    paths = [format_path(problem.path).removeprefix(f"{BUDGETS}[0].") for problem in reading.problems]
    return reading.value["spec"]["disruption"]["budgets"][0], paths


@pytest.mark.parametrize(
    ("written", "meant", "said_at"),
    [
        pytest.param({"reasons": ["Drifted"]}, {"reasons": ["Drifted"]}, [], id="canonical"),
        pytest.param(
            {"reason": ["drifted", "underutilized"]},
            {"reasons": ["Drifted", "Underutilized"]},
            ["reason", "reason[0]", "reason[1]"],
            id="lower-case-reasons",
        ),
        pytest.param(
            {"reasons": ["consolidation", "drift", "Expired", "EMPTY"]},
            {"reasons": ["Underutilized", "Drifted", "Expired", "Empty"]},
            ["reasons[0]", "reasons[1]", "reasons[3]"],
            id="reasons-in-any-case",
        ),
        pytest.param({"reason": "Drifted"}, {"reasons": ["Drifted"]}, ["reason"], id="scalar-reason"),
        pytest.param({"reasons": "Drifted"}, {"reasons": ["Drifted"]}, ["reasons"], id="scalar-reasons"),
        pytest.param(
            {"reason": "Drifted", "reasons": ["Empty"]},
            {"reasons": ["Empty", "Drifted"]},
            ["reason"],
            id="both",
        ),
        pytest.param(
            {"reasons": ["Drifted", "drift", "Empty"]},
            {"reasons": ["Drifted", "Empty"]},
            ["reasons[1]"],
            id="repeated",
        ),
        pytest.param({"reasons": ["Whatever"]}, {"reasons": ["Whatever"]}, [], id="unknown"),
        pytest.param({"reasons": []}, {"reasons": []}, [], id="empty"),
        pytest.param({"reasons": [1]}, {"reasons": [1]}, [], id="not-a-name"),
        pytest.param({"reason": {"a": 1}}, {"reason": {"a": 1}}, [], id="not-a-list"),
        pytest.param({"nodes": 10}, {"nodes": "10"}, ["nodes"], id="integer"),
        pytest.param({"nodes": True}, {"nodes": True}, [], id="not-a-number"),
        pytest.param({"nodes": -1}, {"nodes": -1}, [], id="negative"),
    ],
)
def test_budgets(written: dict[str, Any], meant: dict[str, Any], said_at: list[str]) -> None:
    """Every alias is resolved, with a warning at its path."""
    assert (meant, said_at) == read_budget(written)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("underutilized", "Underutilized"),
        ("underutilised", "Underutilized"),
        ("consolidation", "Underutilized"),
        ("Consolidate", "Underutilized"),
        ("drift", "Drifted"),
        ("DRIFTED", "Drifted"),
        ("empty", "Empty"),
        ("emptiness", "Empty"),
        ("expired", "Expired"),
        ("expiration", "Expired"),
        ("expiry", "Expired"),
        ("expire", "Expired"),
    ],
)
def test_c3_names_of_reasons(name: str, reason: str) -> None:
    """All names that have been used for a reason mean it, in any case."""
    assert [reason] == read_budget({"reasons": [name]})[0]["reasons"]


def test_c3_unknown_reasons_are_refused_with_what_is_accepted() -> None:
    """The error names the accepted reasons, at the place where the wrong one was written."""
    (problem,) = (
        p
        for p in problems_of(node_pool({"budgets": [{"reason": ["Empty", "empty", "bored"]}]}))
        if p.severity == "error"
    )

    assert f"{BUDGETS}[0].reason[2]" == format_path(problem.path)
    assert all(name in problem.message for name in ("Empty", "Drifted", "Underutilized", "Expired", "bored"))


@pytest.mark.parametrize(
    ("count", "refused"), [pytest.param(50, False, id="50-budgets"), pytest.param(51, True, id="51-budgets")]
)
def test_c5_how_many_reasons_may_be_listed(count: int, refused: bool) -> None:
    """Fifty are taken, repeated or not; more are rejected as upstream."""
    found = problems_of(node_pool({"budgets": [{"reasons": ["Empty"] * count}]}))

    assert refused is any(problem.severity == "error" for problem in found)


def test_order_of_fields_is_kept() -> None:
    """A renamed field stays where it stood."""
    found, _ = read_budget({"schedule": "@daily", "reason": "Empty", "nodes": 5})

    assert list(found) == ["schedule", "reasons", "nodes"]


PER_METHOD = {
    "defaults": {"budgets": [{"nodes": "10%", "schedule": "0 0 1 * *", "duration": "1h"}]},
    "consolidation": {"consolidationPolicy": "WhenUnderutilized", "disruptAfter": "30m"},
    "drift": {
        "budgets": [
            {"nodes": "20%", "schedule": "0 0 1 * *", "duration": "1h"},
            {"nodes": "10%", "schedule": "0 0 * * 0", "duration": "2h"},
            {"nodes": 5, "schedule": "@monthly"},
        ]
    },
}


def test_c15_budgets_under_a_key_for_each_method() -> None:
    """They become budgets with that reason; those of the defaults have none."""
    reading = read_v1beta1(beta_pool(PER_METHOD))

    assert reading.value["spec"]["disruption"] == {
        "consolidationPolicy": "WhenUnderutilized",
        "consolidateAfter": "30m",
        "budgets": [
            {"nodes": "10%", "schedule": "0 0 1 * *", "duration": "1h"},
            {"nodes": "20%", "schedule": "0 0 1 * *", "duration": "1h", "reasons": ["Drifted"]},
            {"nodes": "10%", "schedule": "0 0 * * 0", "duration": "2h", "reasons": ["Drifted"]},
            {"nodes": "5", "schedule": "@monthly", "reasons": ["Drifted"]},
        ],
    }
    assert {"warning"} == {problem.severity for problem in reading.problems}
    assert "spec.disruption.drift.budgets[2].nodes" in [format_path(problem.path) for problem in reading.problems]


def test_c15_problems_point_at_what_was_written() -> None:
    """A problem of a moved budget has its original position."""
    found = loaded(node_pool({"drift": {"budgets": [{"nodes": "5"}, {"nodes": "lots"}]}}))

    errors = [format_path(problem.path) for problem in found.problems if problem.severity == "error"]

    assert errors == ["spec.disruption.drift.budgets[1].nodes"]


def test_c15_what_cannot_be_moved_is_refused() -> None:
    """A setting that is already given stays where it is, and is an unknown field there."""
    found = problems_of(node_pool({"consolidateAfter": "1m", "consolidation": {"consolidateAfter": "2m"}}))

    assert [format_path(p.path) for p in found if p.severity == "error"] == ["spec.disruption.consolidation"]


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        pytest.param(node_pool({"consolidationPolicy": "WhenUnderutilized"}), "WhenEmptyOrUnderutilized", id="v1"),
        pytest.param(beta_pool({"consolidationPolicy": "WhenEmptyOrUnderutilized"}), "WhenUnderutilized", id="v1beta1"),
    ],
)
def test_c16_policies_of_the_other_version(value: dict[str, Any], meant: str) -> None:
    """The policy that was renamed is taken by both names, with a warning."""
    found = loaded(value)

    assert meant == found.value["spec"]["disruption"]["consolidationPolicy"]
    assert [(problem.severity, format_path(problem.path)) for problem in found.problems] == [
        ("warning", "spec.disruption.consolidationPolicy")
    ]


def test_c16_expiry_moves_to_the_template() -> None:
    """In v1 it is in the template; problems still have the original path."""
    found = loaded(node_pool({"expireAfter": "a while"}))

    assert found.value["spec"]["template"]["spec"]["expireAfter"] == "a while"
    assert [format_path(problem.path) for problem in found.problems] == ["spec.disruption.expireAfter"] * 2


def test_c16_two_expiries_are_refused() -> None:
    """It is ambiguous which one is intended."""
    value = node_pool({"expireAfter": "1h"})
    value["spec"]["template"]["spec"]["expireAfter"] = "2h"

    assert [(problem.severity, format_path(problem.path)) for problem in problems_of(value)] == [
        ("error", "spec.disruption.expireAfter")
    ]


def test_references_to_node_classes_are_repaired() -> None:
    """In v1 they have a group; the version says nothing more."""
    value = node_pool()
    value["spec"]["template"]["spec"]["nodeClassRef"] = {
        "apiVersion": "karpenter.k8s.aws/v1beta1",
        "kind": "EC2NodeClass",
        "name": "default",
    }

    reading = fixes(value)

    assert reading.value["spec"]["template"]["spec"]["nodeClassRef"] == {
        "group": "karpenter.k8s.aws",
        "kind": "EC2NodeClass",
        "name": "default",
    }
    assert [format_path(p.path) for p in reading.problems] == ["spec.template.spec.nodeClassRef.apiVersion"]


def test_fixes_read_leniently() -> None:
    """All aliases are repaired."""
    value = beta_pool({"budgets": [{"reason": "drift", "nodes": 3}]})

    assert read_v1beta1(value) == fixes(value)


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "drift", "5", "Empty", "@daily"])
KEYS = st.sampled_from(
    ["budgets", "reason", "reasons", "nodes", "drift", "defaults", "consolidation", "expireAfter", "spec", "apiVersion"]
)
GARBAGE = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))


@given(garbage=GARBAGE, where=st.sampled_from(["apiVersion", "spec", "disruption", "budgets", "template"]))
def test_any_tree_is_survived(garbage: Any, where: str) -> None:
    """Aliases never raise, do not change the given object, and are idempotent."""
    value = node_pool({})
    match where:
        case "apiVersion" | "spec":
            value[where] = garbage
        case "template":
            value["spec"] |= {"template": garbage, "disruption": {"expireAfter": "1h"}}
        case "disruption":
            value["spec"]["disruption"] = garbage
        case "budgets":
            value["spec"]["disruption"]["budgets"] = [garbage]
    before = copy.deepcopy(value)

    for read in (read_v1, read_v1beta1, fixes):
        once = read(value)
        assert before == value
        assert once.value == read(once.value).value


def test_c15_budgets_under_default() -> None:
    """`default` is read as `defaults` is: budgets without reasons."""
    found = loaded(node_pool({"default": {"budgets": [{"nodes": "5"}]}}))

    assert found.value["spec"]["disruption"]["budgets"] == [{"nodes": "5"}]


def test_what_is_no_reason_is_not_called_one_once_more() -> None:
    found = problems_of(node_pool({"budgets": [{"nodes": "5", "reasons": ["", ""]}]}))

    assert not [problem for problem in found if "once more" in problem.message]
