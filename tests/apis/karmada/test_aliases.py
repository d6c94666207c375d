"""Slips that `springtide convert` repairs, because they can mean only one thing.

The manifests of the CronFederatedHPA proposal: as they were written, and as they are repaired.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.karmada.objects import DEPLOYMENT, cron
from tests.apis.manifests import CONTEXT, loaded, shown

from springtide.apis.karmada import fixes
from springtide.apis.objects import LoadedObject, load

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
    """Rule names and the target are repaired, each with a warning."""
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
    """Repairs never raise, and do not change the given object."""
    value = {"kind": kind, "spec": spec}
    before = copy.deepcopy(value)
    fixes(value)

    assert before == value


DESIGNS = Path(__file__).parents[2] / "fixtures" / "designs"
NAMES = ["error spec.rules[0].ruleName", "error spec.rules[1].ruleName"]


def read(name: str) -> LoadedObject:
    (found,) = load((DESIGNS / name).read_text(), CONTEXT)
    assert isinstance(found, LoadedObject)
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("cron-federated-hpa-1.yaml", [*NAMES, "error spec.scaleTargetRef.apiVersion"], id="workload"),
        pytest.param("cron-federated-hpa-2.yaml", NAMES, id="bounds"),
        pytest.param("cron-federated-hpa-3.yaml", NAMES, id="zones"),
    ],
)
def test_as_written_and_repaired(name: str, expected: list[str]) -> None:
    written = read(name)

    assert expected == shown(written.problems)
    assert loaded(fixes(written.value).value).problems == ()
