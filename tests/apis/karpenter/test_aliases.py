"""Older and looser spellings of budgets: what they are read as, and what is said about it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.karpenter.samples import beta_pool, node_pool
from tests.apis.manifests import loaded, problems_of

from springtide.apis.karpenter.aliases import fixes, read_v1, read_v1beta1
from springtide.apis.kinds import Normalizer
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
        ("unhealthy", "Unhealthy"),
        ("Repair", "Unhealthy"),
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
        "disruptAfter": {"Underutilized": "30m"},
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


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        pytest.param({"drift": {"disruptAfter": "2h"}}, {"Drifted": "2h"}, id="drift"),
        pytest.param({"empty": {"disruptAfter": "5m"}}, {"Empty": "5m"}, id="empty"),
        pytest.param({"consolidation": {"disruptAfter": "30m"}}, {"Underutilized": "30m"}, id="consolidation"),
        pytest.param(
            {"defaults": {"disruptAfter": "1h"}},
            {"Empty": "1h", "Drifted": "1h", "Underutilized": "1h"},
            id="defaults-are-for-every-reason",
        ),
        pytest.param(
            {"defaults": {"disruptAfter": "1h"}, "drift": {"disruptAfter": "2h"}},
            {"Drifted": "2h", "Empty": "1h", "Underutilized": "1h"},
            id="defaults-are-for-the-other-reasons",
        ),
        pytest.param(
            {"disruptAfter": {"Empty": "5m"}, "drift": {"disruptAfter": "Never"}},
            {"Empty": "5m", "Drifted": "Never"},
            id="beside-the-canonical-form",
        ),
    ],
)
@pytest.mark.parametrize("read", [read_v1, read_v1beta1])
def test_delays_under_a_key_for_each_method(read: Normalizer, written: dict[str, Any], meant: dict[str, Any]) -> None:
    """A delay is that of its reason only, with a warning at the place where it was written."""
    reading = read(node_pool(written))

    assert reading.value["spec"]["disruption"] == {"disruptAfter": meant}
    said = [format_path(problem.path) for problem in reading.problems]
    moved = [key for key in written if key != "disruptAfter"]
    assert sorted(said) == sorted(f"spec.disruption.{key}.disruptAfter" for key in moved)
    assert not [problem for problem in reading.problems if "consolidateAfter" in f"{problem.message} {problem.hint}"]


@pytest.mark.parametrize(
    ("written", "path", "hint"),
    [
        pytest.param({"disruptAfter": "2h"}, "disruptAfter", "such as `{Drifted: 2h}`", id="text"),
        pytest.param({"disruptAfter": {"Expired": "2h"}}, "disruptAfter.Expired", "`expireAfter`", id="expired-key"),
        pytest.param({"disruptAfter": {"expiry": "2h"}}, "disruptAfter.expiry", "`expireAfter`", id="alias-of-expired"),
        pytest.param({"disruptAfter": {"drift": "2h"}}, "disruptAfter.drift", "`Drifted`", id="alias-of-drifted"),
        pytest.param(
            {"disruptAfter": {"Unhealthy": "2h"}}, "disruptAfter.Unhealthy", "`repair: {after: 30m}`", id="unhealthy"
        ),
        pytest.param({"disruptAfter": {"Drifted": "soon"}}, "disruptAfter.Drifted", "", id="no-duration"),
        pytest.param({"expired": {"disruptAfter": "2h"}}, "expired", "`expireAfter`", id="expired-method"),
        pytest.param({"drift": {"consolidateAfter": "2h"}}, "drift", "`disruptAfter: {Drifted: 2h}`", id="no-setting"),
        pytest.param(
            {"drift": {"disruptAfter": "1h"}, "disruptAfter": {"Drifted": "2h"}}, "drift", "`disruptAfter", id="twice"
        ),
    ],
)
@pytest.mark.parametrize("pool", [node_pool, beta_pool])
def test_delays_that_are_refused(
    pool: Callable[[dict[str, Any]], dict[str, Any]], written: dict[str, Any], path: str, hint: str
) -> None:
    """What is no delay of one reason is an error with the fix, never a setting of the whole pool."""
    (found,) = (problem for problem in problems_of(pool(written)) if problem.severity == "error")

    assert format_path(found.path) == f"spec.disruption.{path}"
    assert hint in found.hint


def test_c15_budgets_under_default() -> None:
    """`default` is read as `defaults` is: budgets without reasons."""
    found = loaded(node_pool({"default": {"budgets": [{"nodes": "5"}]}}))

    assert found.value["spec"]["disruption"]["budgets"] == [{"nodes": "5"}]


def test_what_is_no_reason_is_not_called_one_once_more() -> None:
    found = problems_of(node_pool({"budgets": [{"nodes": "5", "reasons": ["", ""]}]}))

    assert not [problem for problem in found if "once more" in problem.message]
