"""Repairs of trees: what is changed, what is left alone, and where a change is reported.

Which apiVersion must be meant.
"""

from __future__ import annotations

import pytest

from springtide.apis.meta.repair import TreeRepair
from springtide.apis.meta.scaling import expected_api_version
from springtide.apis.problems import format_path


def test_rename_keeps_order_and_the_original() -> None:
    value = {"spec": {"a": 1, "old": 2, "z": 3}}
    repair = TreeRepair(value)
    repair.rename(("spec",), "old", "new", "renamed")

    assert list(repair.value["spec"].items()) == [("a", 1), ("new", 2), ("z", 3)]
    assert value == {"spec": {"a": 1, "old": 2, "z": 3}}


def test_taken_name_stays() -> None:
    repair = TreeRepair({"old": 1, "new": 2})
    repair.rename((), "old", "new", "renamed")

    assert repair.result().value == {"old": 1, "new": 2}
    assert repair.result().problems == ()


def test_changes_below_a_renamed_part_are_reported_where_they_were_written() -> None:
    repair = TreeRepair({"old": [{"x": 1}]})
    repair.rename((), "old", "new", "renamed")
    repair.rename(("new", 0), "x", "y", "renamed")
    repair.replace(("new", 0, "y"), 5, "replaced")
    reading = repair.result()

    assert reading.value == {"new": [{"y": 5}]}
    assert [format_path(problem.path) for problem in reading.problems] == ["old", "old[0].x", "old[0].x"]
    assert reading.origins == {("new",): ("old",), ("new", 0, "y"): ("old", 0, "x")}


def test_what_is_not_there() -> None:
    repair = TreeRepair({"a": [1]})
    repair.rename(("a", 0), "x", "y", "renamed")
    repair.rename(("b",), "x", "y", "renamed")

    assert repair.at(("a", 3)) is None
    assert repair.at(("a", "x")) is None
    assert repair.entries(("b",)) == []
    assert repair.result().problems == ()


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        pytest.param("Deployment", "apps/v1", None, id="right"),
        pytest.param("Deployment", "app/v1", "apps/v1", id="letter-missing"),
        pytest.param("Deployment", "Apps/v1", "apps/v1", id="case"),
        pytest.param("Deployment", "apps/v1beta2", "apps/v1", id="older-version"),
        pytest.param("Deployment", "extensions/v1beta1", "apps/v1", id="older-group"),
        pytest.param("Deployment", "v1", "apps/v1", id="core"),
        pytest.param("Deployment", "apps", "apps/v1", id="no-version"),
        pytest.param("Deployment", None, "apps/v1", id="nothing"),
        pytest.param("StatefulSet", "apps.kruise.io/v1alpha1", None, id="kind-of-another-group"),
        pytest.param("ReplicationController", "v1", None, id="controller"),
        pytest.param("ReplicationController", "apps/v1", "v1", id="controller-in-apps"),
        pytest.param("HorizontalPodAutoscaler", "autoscaling/v1", None, id="hpa-v1"),
        pytest.param("HorizontalPodAutoscaler", "autoscaling/v2beta2", "autoscaling/v2", id="hpa-beta"),
        pytest.param("ScaledObject", "keda.k8s.io/v1alpha1", "keda.sh/v1alpha1", id="keda-1"),
        pytest.param("FederatedHPA", "autoscaling/v1alpha1", "autoscaling.karmada.io/v1alpha1", id="group-cut-short"),
        pytest.param("Rollout", "argoproj.io/v1alpha1", None, id="kind-that-is-not-known"),
        pytest.param("Rollout", None, None, id="kind-that-is-not-known-and-nothing"),
    ],
)
def test_intended_version(kind: str, written: str | None, meant: str | None) -> None:
    assert meant == expected_api_version(kind, written)
