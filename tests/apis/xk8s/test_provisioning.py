"""What is said about ProvisioningRequests and ProvisioningClasses: names old and new, bounds, and parameters."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.manifests import problems_of, shown

from springtide.apis.schema import schema_of
from springtide.apis.xk8s import KINDS
from springtide.apis.xk8s.provisioning import (
    ATOMIC_SCALE_UP,
    CHECK_CAPACITY,
    PodSet,
    ProvisioningClass,
    ProvisioningRequestSpec,
    ProvisioningRequestStatus,
    engine_of,
    valid_for,
)

POD_SETS = [{"podTemplateRef": {"name": "worker"}, "count": 3}]


def request(version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"autoscaling.x-k8s.io/{version}",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "batch", "namespace": "team"},
        "spec": {"podSets": POD_SETS, "provisioningClassName": CHECK_CAPACITY, **spec},
    }


def provisioning_class(name: str = ATOMIC_SCALE_UP, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningClass",
        "metadata": {"name": name},
        **more,
    }


def pod_sets(count: int) -> list[dict[str, Any]]:
    return [{"podTemplateRef": {"name": f"t{position}"}, "count": 1} for position in range(count)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="check-capacity"),
        pytest.param({"provisioningClassName": ATOMIC_SCALE_UP}, [], id="atomic"),
        pytest.param({"podSets": pod_sets(32)}, [], id="32-sets"),
        pytest.param({"podSets": pod_sets(33)}, ["error spec.podSets"], id="33-sets"),
        pytest.param({"podSets": []}, ["error spec.podSets"], id="no-sets"),
        pytest.param({"podSets": None}, ["error spec.podSets"], id="sets-missing"),
        pytest.param({"podSets": [{**POD_SETS[0], "count": 0}]}, ["error spec.podSets[0].count"], id="none-of-a-set"),
        pytest.param({"podSets": [{**POD_SETS[0], "count": 16_385}]}, [], id="more-than-the-draft-allowed"),
        pytest.param({"podSets": [{**POD_SETS[0], "count": 2**31}]}, ["error spec.podSets[0].count"], id="too-many"),
        pytest.param(
            {"podSets": [{"podTemplateRef": {"name": "Worker_1"}, "count": 1}]},
            ["error spec.podSets[0].podTemplateRef.name"],
            id="template-name",
        ),
        pytest.param({"provisioningClassName": None}, ["error spec.provisioningClassName"], id="class-missing"),
        pytest.param(
            {"provisioningClassName": "Check Capacity"}, ["error spec.provisioningClassName"], id="class-name"
        ),
        pytest.param({"parameters": {f"p{i}": "" for i in range(100)}}, [], id="100-parameters"),
        pytest.param({"parameters": {f"p{i}": "" for i in range(101)}}, ["error spec.parameters"], id="101-parameters"),
        pytest.param({"parameters": {"any": "x" * 255}}, [], id="long-value"),
        pytest.param({"parameters": {"any": "x" * 256}}, ["error spec.parameters.any"], id="too-long-value"),
        pytest.param({"parameters": {"any": 7}}, ["error spec.parameters.any"], id="value-not-a-string"),
    ],
)
def test_bounds(spec: dict[str, Any], expected: list[str]) -> None:
    """The bounds of every field, and nothing more."""
    assert expected == shown(problems_of(request(**spec)))


@pytest.mark.parametrize(
    ("name", "engine", "severity", "hint"),
    [
        pytest.param(CHECK_CAPACITY, CHECK_CAPACITY, None, "", id="check-capacity"),
        pytest.param(ATOMIC_SCALE_UP, ATOMIC_SCALE_UP, None, "", id="atomic-scale-up"),
        pytest.param("check-capacity.kubernetes.io", CHECK_CAPACITY, "warning", CHECK_CAPACITY, id="draft-check"),
        pytest.param("atomic-scale-up.kubernetes.io", ATOMIC_SCALE_UP, "warning", ATOMIC_SCALE_UP, id="draft-atomic"),
        pytest.param(
            "best-effort-atomic-scale-up.kubernetes.io", ATOMIC_SCALE_UP, "warning", ATOMIC_SCALE_UP, id="former-atomic"
        ),
        pytest.param("invalid", None, "warning", "ours are", id="invalid"),
        pytest.param("queued-provisioning.gke.io", None, "warning", "ours are", id="class-of-others"),
        pytest.param("check-capacty.autoscaling.x-k8s.io", None, "warning", CHECK_CAPACITY, id="misspelt"),
    ],
)
def test_classes(name: str, engine: str | None, severity: str | None, hint: str) -> None:
    """Former names lead to the same engine with a warning; names of other projects are ignored with a warning."""
    problems = problems_of(request(provisioningClassName=name))

    assert engine == engine_of(name)
    assert ([] if severity is None else [severity]) == [problem.severity for problem in problems]
    assert all(hint in problem.hint for problem in problems)


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        pytest.param(ATOMIC_SCALE_UP, {"ValidUntilSeconds": "60"}, [], id="seconds"),
        pytest.param(ATOMIC_SCALE_UP, {"ValidUntilSeconds": "2h"}, [], id="duration"),
        pytest.param(
            ATOMIC_SCALE_UP,
            {"ValidUntilSeconds": "2 hours"},
            ["error spec.parameters.ValidUntilSeconds"],
            id="neither",
        ),
        pytest.param(
            ATOMIC_SCALE_UP, {"ValidUntilSeconds": "-5m"}, ["error spec.parameters.ValidUntilSeconds"], id="negative"
        ),
        pytest.param(
            ATOMIC_SCALE_UP, {"ValidUntilSeconds": "0"}, ["error spec.parameters.ValidUntilSeconds"], id="nothing"
        ),
        pytest.param(
            ATOMIC_SCALE_UP, {"validUntilSeconds": "60"}, ["warning spec.parameters.validUntilSeconds"], id="case"
        ),
        pytest.param(CHECK_CAPACITY, {"noRetry": "true"}, [], id="no-retry"),
        pytest.param(CHECK_CAPACITY, {"noRetry": "false"}, [], id="retry"),
        pytest.param(CHECK_CAPACITY, {"noRetry": "yes"}, ["warning spec.parameters.noRetry"], id="no-retry-unclear"),
        pytest.param(ATOMIC_SCALE_UP, {"noRetry": "true"}, ["warning spec.parameters.noRetry"], id="no-retry-atomic"),
        pytest.param(CHECK_CAPACITY, {"processorInstance": "a"}, [], id="processor-instance"),
        pytest.param(CHECK_CAPACITY, {"maxRunDurationSeconds": "x"}, [], id="unknown-parameters-are-normal"),
        pytest.param(
            "queued-provisioning.gke.io",
            {"ValidUntilSeconds": "soon", "noRetry": "?"},
            ["warning spec.provisioningClassName"],
            id="parameters-of-others-are-theirs",
        ),
        pytest.param(
            "atomic-scale-up.kubernetes.io",
            {"ValidUntilSeconds": "soon"},
            ["error spec.parameters.ValidUntilSeconds", "warning spec.provisioningClassName"],
            id="former-names-take-the-same",
        ),
    ],
)
def test_parameters(name: str, parameters: dict[str, str], expected: list[str]) -> None:
    """Known parameters are checked, unknown ones are ignored."""
    assert expected == shown(problems_of(request(provisioningClassName=name, parameters=parameters)))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("60", 60, id="seconds"),
        pytest.param("2h", 7200, id="hours"),
        pytest.param("1h30m", 5400, id="hours-and-minutes"),
        pytest.param("1.5s", 1, id="parts-are-cut-off"),
    ],
)
def test_validity_in_seconds(text: str, seconds: int) -> None:
    """Both notations come to whole seconds."""
    assert seconds == valid_for(text)


@pytest.mark.parametrize("text", ["", "soon", "60 s", "-1", "0s", "١٢"])
def test_validity_that_is_none(text: str) -> None:
    """What is neither seconds nor a duration, or over at once, is refused with its own text."""
    with pytest.raises(ValueError, match=r"neither|shorter") as caught:
        valid_for(text)

    assert f'"{text}"' in str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(provisioning_class(), [], id="bare"),
        pytest.param(
            provisioning_class(parameters={"ValidUntilSeconds": "2h"}, description="waits"), [], id="settings"
        ),
        pytest.param(
            provisioning_class(parameters={"ValidUntilSeconds": "never"}),
            ["error parameters.ValidUntilSeconds"],
            id="settings-that-do-not-work",
        ),
        pytest.param(provisioning_class("atomic-scale-up.kubernetes.io"), ["warning metadata.name"], id="former-name"),
        pytest.param(provisioning_class(spec={"parameters": {}}), ["error spec"], id="has-no-spec"),
        pytest.param(provisioning_class(Parameters={"a": "b"}), ["warning Parameters"], id="former-field"),
    ],
)
def test_provisioning_classes(value: dict[str, Any], expected: list[str]) -> None:
    """A class is a name with settings, like a StorageClass."""
    assert expected == shown(problems_of(value))


def test_both_versions_have_the_same_problems() -> None:
    """v1 and v1beta1 have the same schema and the same aliases."""
    spec = {"provisioningClassName": None, "provisioningClass": "nobody", "Parameters": {"a": "b"}}

    assert problems_of(request("v1", **spec)) == problems_of(request("v1beta1", **spec))


def test_field_names() -> None:
    """Every field of the published schema exists under its name on the wire."""
    names = {
        view: [field.name for field in schema_of(view).fields]
        for view in (ProvisioningRequestSpec, PodSet, ProvisioningRequestStatus, ProvisioningClass)
    }

    assert names == {
        ProvisioningRequestSpec: ["podSets", "provisioningClassName", "parameters"],
        PodSet: ["podTemplateRef", "count"],
        ProvisioningRequestStatus: ["conditions", "provisioningClassDetails"],
        ProvisioningClass: ["apiVersion", "kind", "metadata", "description", "parameters"],
    }


def test_names_and_versions() -> None:
    """The kinds are served as upstream serves them, with the columns that people look for."""
    kinds = {kind.kind: kind for kind in KINDS}
    requests, classes = kinds["ProvisioningRequest"], kinds["ProvisioningClass"]

    assert (requests.short_names, requests.scope) == (("provreq", "provreqs"), "Namespaced")
    assert [(version.name, version.storage, version.deprecated is not None) for version in requests.versions] == [
        ("v1", True, False),
        ("v1beta1", False, True),
    ]
    assert [column.name for column in requests.versions[0].columns] == ["Accepted", "Provisioned", "Failed", "Age"]
    assert [column.name for column in requests.versions[0].columns if not column.extension] == ["Age"]
    assert (classes.scope, classes.status) == ("Cluster", False)
