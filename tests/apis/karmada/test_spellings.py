"""Slips that `springtide convert` repairs, because they can mean only one thing."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.apis.judging import loaded, shown
from tests.apis.karmada.objects import DEPLOYMENT, cron

from springtide.apis.karmada import fixes

TREES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["rules", "ruleName", "name", "scaleTargetRef", "kind", "apiVersion"]), inner, max_size=4
        )
    ),
)


def test_example_of_the_proposal() -> None:
    """X1, X4: two slips in every rule list and target; each repair is told."""
    value = cron(
        {"ruleName": "Scale-Up", "schedule": "30 08 * * *", "targetReplicas": 1000},
        {"ruleName": "Scale-Down", "schedule": "0 11 * * *", "targetReplicas": 1},
        target={**DEPLOYMENT, "apiVersion": "app/v1"},
    )
    reading = fixes(value)

    assert shown(reading.problems) == [
        "warning spec.rules[0].ruleName",
        "warning spec.rules[1].ruleName",
        "warning spec.scaleTargetRef.apiVersion",
    ]
    assert reading.origins[("spec", "rules", 0, "name")] == ("spec", "rules", 0, "ruleName")
    assert loaded(reading.value).problems == ()


def test_name_that_is_taken_stays() -> None:
    value = cron({"ruleName": "a", "name": "b", "schedule": "0 9 * * *", "targetReplicas": 1})

    assert fixes(value).value == value


def test_order_of_fields_stays() -> None:
    (repaired,) = fixes(cron({"schedule": "0 9 * * *", "ruleName": "a", "targetReplicas": 1})).value["spec"]["rules"]

    assert list(repaired) == ["schedule", "name", "targetReplicas"]


@given(TREES, st.sampled_from(["CronFederatedHPA", "FederatedHPA", "Other"]))
def test_garbage_is_left_alone(spec: Any, kind: str) -> None:
    """Whatever stands there, nothing is raised, and the object itself is not changed."""
    value = {"kind": kind, "spec": spec}
    before = copy.deepcopy(value)
    fixes(value)

    assert before == value
