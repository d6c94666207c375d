"""What is said about CapacityBuffers: their shape, their size, and fields that do nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.manifests import problems_of, shown

from springtide.apis.schema import schema_of, with_defaults
from springtide.apis.xk8s import KINDS
from springtide.apis.xk8s.buffers import (
    ACTIVE_CAPACITY,
    CapacityBuffer,
    CapacityBufferSpec,
    CapacityBufferStatus,
    ScalableReference,
)

TEMPLATE: dict[str, Any] = {"podTemplateRef": {"name": "chunk"}}
DEPLOYMENT: dict[str, Any] = {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}}


def buffer(version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"autoscaling.x-k8s.io/{version}",
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare", "namespace": "team"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({**TEMPLATE, "replicas": 3}, [], id="template-count"),
        pytest.param({**TEMPLATE, "limits": {"cpu": 40, "memory": "5120Mi"}}, [], id="template-limits"),
        pytest.param({**DEPLOYMENT, "percentage": 10, "replicas": 1}, [], id="ten-percent-at-least-one"),
        pytest.param({**DEPLOYMENT, "percentage": 200}, [], id="more-than-all"),
        pytest.param({**DEPLOYMENT, "replicas": 0}, [], id="empty"),
        pytest.param({**TEMPLATE, **DEPLOYMENT, "replicas": 1}, ["error spec.scalableRef"], id="both-shapes"),
        pytest.param({"replicas": 1}, ["error spec"], id="no-shape"),
        pytest.param({**TEMPLATE}, ["error spec"], id="no-size"),
        pytest.param({**DEPLOYMENT}, ["error spec"], id="workload-without-size"),
        pytest.param({}, ["error spec", "error spec"], id="nothing"),
        pytest.param({**TEMPLATE, "percentage": 5}, ["error spec.percentage"], id="share-of-template"),
        pytest.param(
            {**TEMPLATE, "percentage": 5, "replicas": 2}, ["warning spec.percentage"], id="trap-16-share-is-ignored"
        ),
        pytest.param({**TEMPLATE, "replicas": -1}, ["error spec.replicas"], id="negative-count"),
        pytest.param({**TEMPLATE, "replicas": 2**31}, ["error spec.replicas"], id="count-beyond-32-bits"),
        pytest.param({**DEPLOYMENT, "percentage": -5}, ["error spec.percentage"], id="negative-share"),
        pytest.param({**TEMPLATE, "limits": {"cpu": -1}}, ["error spec.limits.cpu"], id="negative-limit"),
        pytest.param({**TEMPLATE, "limits": {"cpu": "4 cores"}}, ["error spec.limits.cpu"], id="not-a-quantity"),
        pytest.param({**TEMPLATE, "limits": {"nvidia.com/gpu": 1}}, [], id="qualified-name"),
        pytest.param({**TEMPLATE, "limits": {"hugepages-2Mi": "1Gi"}}, [], id="huge-pages"),
        pytest.param({**TEMPLATE, "limits": {}}, ["error spec"], id="empty-limits-are-no-size"),
        pytest.param({**TEMPLATE, "limits": {"pods": 3}}, ["error spec.limits.pods"], id="pods-ask-for-no-pods"),
        pytest.param(
            {**TEMPLATE, "replicas": 1, "provisioningStrategy": "buffer.gke.io/standby-capacity"},
            ["warning spec.provisioningStrategy"],
            id="strategy-of-others",
        ),
        pytest.param({**TEMPLATE, "replicas": 1, "provisioningStrategy": ""}, [], id="empty-strategy-is-ours"),
        pytest.param(
            {**TEMPLATE, "replicas": 1, "dedicated": True}, ["error spec.dedicated"], id="dedicated-without-selector"
        ),
        pytest.param(
            {**TEMPLATE, "replicas": 1, "dedicated": True, "podSelector": {"matchLabels": {"app": "web"}}},
            [],
            id="dedicated",
        ),
        pytest.param(
            {**TEMPLATE, "replicas": 1, "podSelector": {"matchLabels": {"app": "web"}}},
            ["warning spec.podSelector"],
            id="selector-without-dedicated",
        ),
        pytest.param(
            {"podTemplateRef": {"name": ""}, "replicas": 1}, ["error spec.podTemplateRef.name"], id="empty-name"
        ),
        pytest.param({**TEMPLATE, "replicas": 1, "replica": 2}, ["error spec.replica"], id="unknown-field"),
    ],
)
def test_problems(spec: dict[str, Any], expected: list[str]) -> None:
    """Each buffer has exactly these problems."""
    assert expected == shown(problems_of(buffer(**spec)))


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        pytest.param({"apiGroup": "apps", "kind": "StatefulSet", "name": "db"}, [], id="stateful-set"),
        pytest.param({"apiGroup": "", "kind": "ReplicationController", "name": "old"}, [], id="core-group"),
        pytest.param({"apiGroup": "core", "kind": "ReplicationController", "name": "old"}, [], id="core-by-name"),
        pytest.param({"kind": "ReplicationController", "name": "old"}, [], id="no-group"),
        pytest.param({"apiGroup": "batch", "kind": "Job", "name": "j"}, [], id="job"),
        pytest.param(
            {"apiGroup": "leaderworkerset.x-k8s.io", "kind": "LeaderWorkerSet", "name": "l"}, [], id="any-scale"
        ),
        pytest.param(
            {"apiGroup": "apps/v1", "kind": "Deployment", "name": "web"},
            ["error spec.scalableRef.apiGroup"],
            id="group-with-version",
        ),
        pytest.param(
            {"kind": "Deployment", "name": "web"}, ["warning spec.scalableRef.apiGroup"], id="deployment-without-group"
        ),
        pytest.param(
            {"apiGroup": "apps", "kind": "DaemonSet", "name": "d"}, ["error spec.scalableRef.kind"], id="no-replicas"
        ),
        pytest.param({"apiGroup": "apps", "kind": "Deployment"}, ["error spec.scalableRef.name"], id="no-name"),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            ["error spec.scalableRef.apiVersion", "warning spec.scalableRef.apiGroup"],
            id="api-version",
        ),
    ],
)
def test_scalable_references(reference: dict[str, Any], expected: list[str]) -> None:
    """Each reference to a workload has exactly these problems."""
    assert expected == shown(problems_of(buffer(scalableRef=reference, replicas=1)))


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        pytest.param("mem", "memory", id="mem"),
        pytest.param("cpi", "cpu", id="cpi"),
        pytest.param("CPU", "cpu", id="upper-case"),
        pytest.param("memroy", "memory", id="swapped"),
        pytest.param("gpu", "nvidia.com/gpu", id="gpu"),
    ],
)
def test_misspelt_resources_name_the_fix(slip: str, meant: str) -> None:
    """A limit on something no pod can ask for never applies, so it is an error with a proposal."""
    (problem,) = problems_of(buffer(**TEMPLATE, limits={slip: 40, "ephemeral-storage": "1Gi"}))

    assert ("error", ("spec", "limits", slip)) == (problem.severity, problem.path)
    assert f"did you mean `{meant}`?" == problem.hint


def test_share_of_template_is_named_once() -> None:
    """A share without a workload says what to do, and does not also claim that there is no size."""
    (problem,) = problems_of(buffer(**TEMPLATE, percentage=10))

    assert "scalableRef" in problem.hint


def test_both_versions_have_the_same_problems() -> None:
    """v1alpha1 and v1beta1 have the same schema."""
    spec = {**TEMPLATE, **DEPLOYMENT, "limits": {"mem": 1}}

    assert problems_of(buffer("v1alpha1", **spec)) == problems_of(buffer("v1beta1", **spec))


def test_strategy_has_a_default() -> None:
    """A buffer without a strategy follows the active one."""
    filled = with_defaults(buffer(**TEMPLATE, replicas=1), schema_of(CapacityBuffer))

    assert filled["spec"]["provisioningStrategy"] == ACTIVE_CAPACITY


def test_field_names() -> None:
    """Every field of the published schema exists under its name on the wire, and ours beside them."""
    spec = {field.name: field.schema.extension for field in schema_of(CapacityBufferSpec).fields}
    status = {field.name: field.schema.extension for field in schema_of(CapacityBufferStatus).fields}

    upstream = {"provisioningStrategy", "podTemplateRef", "scalableRef", "replicas", "percentage", "limits"}
    assert {name for name, extension in spec.items() if not extension} == upstream
    assert {name for name, extension in spec.items() if extension} == {"schedule", "dedicated", "podSelector"}
    assert {name for name, extension in status.items() if not extension} == {
        "podTemplateRef",
        "replicas",
        "podTemplateGeneration",
        "provisioningStrategy",
        "conditions",
    }
    assert {name for name, extension in status.items() if extension} == {"readyReplicas"}
    assert [field.name for field in schema_of(ScalableReference).fields] == ["apiGroup", "kind", "name"]


def test_names_and_versions() -> None:
    """The kind is served as upstream serves it."""
    kind = next(kind for kind in KINDS if kind.kind == "CapacityBuffer")

    assert (kind.plural, kind.short_names, kind.scope) == ("capacitybuffers", ("cb",), "Namespaced")
    assert [(version.name, version.storage, version.deprecated is not None) for version in kind.versions] == [
        ("v1alpha1", False, True),
        ("v1beta1", True, False),
    ]
    stock = [column.name for column in kind.versions[1].columns if not column.extension]
    assert stock == [
        "Strategy",
        "PodTemplate",
        "Replicas",
        "ConditionsType",
        "ConditionsStatus",
        "ConditionsReason",
        "Age",
    ]
