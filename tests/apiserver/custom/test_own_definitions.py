"""Springtide's own definitions and examples on the embedded API server."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from springtide.apis.crds import Flavour, all_crds
from springtide.apis.yaml import Document, read
from springtide.apiserver import custom
from springtide.apiserver.kinds import ServedKind

ROOT = Path(__file__).parents[3]


def kinds(flavour: Flavour = Flavour.EXTENDED) -> dict[tuple[str, str], ServedKind]:
    """Return the kinds of all our definitions."""
    served = [kind for crd in all_crds(flavour) for kind in custom.served_kinds(crd)]
    return {(kind.resource.api_version, kind.resource.kind): kind for kind in served}


def write(value: dict[str, Any], old: dict[str, Any] | None = None, flavour: Flavour = Flavour.EXTENDED) -> list[str]:
    """Validate a write, and return the causes of its rejection."""
    kind = kinds(flavour)[value["apiVersion"], value["kind"]]
    causes = kind.validate(kind.apply_defaults(copy.deepcopy(value)), old)
    return [f"{cause.field}: {cause.message}" for cause in causes]


def examples() -> Iterator[Any]:
    """Yield the examples of our kinds."""
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        for number, document in enumerate(read(path.read_text(encoding="utf-8"))):
            assert isinstance(document, Document)
            if (document.value["apiVersion"], document.value["kind"]) in kinds():
                yield pytest.param(document.value, id=f"{path.stem}-{number}")


@pytest.mark.parametrize("flavour", list(Flavour))
def test_every_served_version_of_our_definitions_is_served(flavour: Flavour) -> None:
    declared = {
        (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"])
        for crd in all_crds(flavour)
        for version in crd["spec"]["versions"]
        if version["served"]
    }
    assert {*kinds(flavour)} == declared


@pytest.mark.parametrize("value", [*examples()])
def test_every_example_is_accepted(value: dict[str, Any]) -> None:
    assert write(value) == []


@pytest.mark.parametrize("value", [*examples()])
def test_defaulting_an_example_is_idempotent(value: dict[str, Any]) -> None:
    kind = kinds()[value["apiVersion"], value["kind"]]
    once = kind.apply_defaults(copy.deepcopy(value))
    assert kind.apply_defaults(copy.deepcopy(once)) == once


def pool(**changes: Any) -> dict[str, Any]:
    """Return a NodePool with changes."""
    spec = {
        "disruption": {"consolidateAfter": "30s"},
        "template": {
            "spec": {
                "nodeClassRef": {"group": "springtide.dev", "kind": "NodeClass", "name": "default"},
                "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
            }
        },
    }
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"}, "spec": spec | changes}


def buffer(**spec: Any) -> dict[str, Any]:
    """Return a CapacityBuffer."""
    kind = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": "a"}}
    return {**kind, "spec": spec}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(
            pool(weight="heavy"),
            [
                'spec.weight: Invalid value: "string": spec.weight in body must be of type integer: "string"',
                "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation",
            ],
            id="wrong type",
        ),
        pytest.param(
            pool(weight=1, replicas=2),
            ["spec: Invalid value: remove `weight`: a pool with `replicas` has none"],
            id="rule of the spec",
        ),
        pytest.param(
            pool(disruption={"consolidateAfter": "30s", "budgets": [{"nodes": "10%", "schedule": "@daily"}]}),
            ["spec.disruption.budgets[0]: Invalid value: set `schedule` and `duration` together, or neither"],
            id="rule of an entry of a list",
        ),
        pytest.param(
            buffer(podTemplateRef={"name": "a"}, scalableRef={"apiGroup": "apps", "kind": "Deployment", "name": "a"}),
            [
                "spec: Invalid value: A buffer with podTemplateRef needs a size: set replicas or limits.",
                "spec: Invalid value: Set either podTemplateRef or scalableRef, not both.",
                "spec: Invalid value: Set replicas, percentage or limits: the buffer needs a size.",
            ],
            id="two sources of a buffer",
        ),
        pytest.param(
            buffer(),
            [
                "spec: Invalid value: Set podTemplateRef or scalableRef: the buffer needs a shape.",
                "spec: Invalid value: Set replicas, percentage or limits: the buffer needs a size.",
            ],
            id="a buffer without template",
        ),
    ],
)
def test_an_invalid_object_is_rejected_with_its_causes(value: dict[str, Any], expected: list[str]) -> None:
    assert write(value) == expected


def test_an_immutable_field_cannot_be_changed() -> None:
    old = kinds()["karpenter.sh/v1", "NodePool"].apply_defaults(pool())
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"]["nodeClassRef"]["group"] = "example.com"
    path = "spec.template.spec.nodeClassRef"
    assert write(new, old) == [
        f"{path}: Invalid value: create a new NodePool: the group of `nodeClassRef` cannot change"
    ]
    assert write(old, old) == []


def test_an_object_that_violates_a_new_rule_can_still_be_labelled() -> None:
    old = kinds()["karpenter.sh/v1", "NodePool"].apply_defaults(pool(weight=1, replicas=2))
    relabelled = old | {"metadata": {"name": "a", "labels": {"team": "b"}}}
    assert write(relabelled, old) == []
    assert write(relabelled) == ["spec: Invalid value: remove `weight`: a pool with `replicas` has none"]


TEMPLATE = pool()["spec"]["template"]["spec"]


def federated(target: dict[str, Any], source: str = "resource") -> dict[str, Any]:
    """Return a FederatedHPA with one metric."""
    named = {"name": "cpu"} if source == "resource" else {"metric": {"name": "backlog"}}
    return {
        "apiVersion": "autoscaling.karmada.io/v1alpha1",
        "kind": "FederatedHPA",
        "metadata": {"name": "a"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            "maxReplicas": 3,
            "metrics": [{"type": source.capitalize(), source: {**named, "target": target}}],
        },
    }


@pytest.mark.parametrize(
    ("value", "field", "stock"),
    [
        pytest.param(
            pool(template={"metadata": {"labels": {"a": "v" * 64}}, "spec": TEMPLATE}),
            "spec.template.metadata.labels.a",
            True,
            id="long label value",
        ),
        pytest.param(
            pool(template={"metadata": {"labels": {"a": "b c"}}, "spec": TEMPLATE}),
            "spec.template.metadata.labels.a",
            True,
            id="label value with a blank",
        ),
        pytest.param(
            pool(template={"spec": {**TEMPLATE, "requirements": [{"key": "k" * 317, "operator": "Exists"}]}}),
            "spec.template.spec.requirements[0].key",
            True,
            id="long requirement key",
        ),
        pytest.param(
            pool(template={"spec": {**TEMPLATE, "taints": [{"key": "k" * 317, "effect": "NoSchedule"}]}}),
            "spec.template.spec.taints[0].key",
            False,
            id="long taint key",
        ),
        pytest.param(
            federated({"type": "Utilization", "averageUtilization": 60, "averageValue": "1"}),
            "spec.metrics[0].resource",
            False,
            id="utilization and average value",
        ),
        pytest.param(
            federated({"type": "Value", "value": "1", "averageValue": "1"}, "external"),
            "spec.metrics[0].external",
            False,
            id="value and average value",
        ),
    ],
)
def test_bounds_of_fields_are_enforced(value: dict[str, Any], field: str, stock: bool) -> None:
    """Bounds that upstream does not have are part of the extended flavour only."""
    assert [cause.partition(": ")[0] for cause in write(value)][:1] == [field]
    assert bool(write(value, flavour=Flavour.STOCK)) is stock


@pytest.mark.parametrize("flavour", list(Flavour))
def test_the_replicas_of_a_pool_are_64_bits_that_scaling_limits_to_32(flavour: Flavour) -> None:
    schema = next(crd for crd in all_crds(flavour) if crd["metadata"]["name"] == "nodepools.karpenter.sh")
    storage = next(version for version in schema["spec"]["versions"] if version["storage"])["schema"]["openAPIV3Schema"]
    replicas = storage["properties"]["spec"]["properties"]["replicas"]

    assert (replicas["format"], replicas["minimum"], "maximum" in replicas) == ("int64", 0, False)
    assert write(pool(replicas=2**31 - 1), flavour=flavour) == []
    assert write(pool(replicas=2**31), flavour=flavour) == [
        ".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647"
    ]
