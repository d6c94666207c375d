"""The built-in kinds as the API server serves them."""

from __future__ import annotations

import pytest
from tests.apiserver.builtin.samples import BY_KIND

from springtide.apiserver import builtin
from springtide.apiserver.kinds import ListType, StructureNode, ValueType


def test_kinds_are_built_once() -> None:
    assert builtin.kinds() is builtin.kinds()


def test_the_version_of_kubernetes_is_known() -> None:
    assert builtin.kubernetes_version() == "v1.36.0"


@pytest.mark.parametrize(
    ("kind", "api_version", "plural", "namespaced", "subresources", "generation"),
    [
        pytest.param("Pod", "v1", "pods", True, ("binding", "eviction", "status"), True, id="pod"),
        pytest.param("Node", "v1", "nodes", False, ("status",), False, id="node"),
        pytest.param("Namespace", "v1", "namespaces", False, ("finalize", "status"), False, id="namespace"),
        pytest.param("ConfigMap", "v1", "configmaps", True, (), False, id="config-map"),
        pytest.param("Deployment", "apps/v1", "deployments", True, ("scale", "status"), True, id="deployment"),
        pytest.param("DaemonSet", "apps/v1", "daemonsets", True, ("status",), True, id="daemon-set"),
        pytest.param("Lease", "coordination.k8s.io/v1", "leases", True, (), False, id="lease"),
        pytest.param("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", True, ("status",), True, id="budget"),
        pytest.param(
            "HorizontalPodAutoscaler",
            "autoscaling/v1",
            "horizontalpodautoscalers",
            True,
            ("status",),
            False,
            id="autoscaler",
        ),
        pytest.param("CSINode", "storage.k8s.io/v1", "csinodes", False, (), False, id="csi-node"),
        pytest.param(
            "CustomResourceDefinition",
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            False,
            ("status",),
            True,
            id="crd",
        ),
    ],
)
def test_kinds_have_the_names_and_verbs_of_kube_apiserver(
    kind: str, api_version: str, plural: str, namespaced: bool, subresources: tuple[str, ...], generation: bool
) -> None:
    kind_of = BY_KIND[kind, api_version]

    assert (kind_of.resource.plural, kind_of.resource.namespaced) == (plural, namespaced)
    assert (kind_of.subresources, kind_of.generation) == (subresources, generation)
    assert kind_of.strategic


def test_scale_paths() -> None:
    scaled = {kind.resource.kind for kind in builtin.kinds() if "scale" in kind.subresources}

    assert scaled == {kind.resource.kind for kind in builtin.kinds() if kind.scale is not None}
    assert scaled == {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"}


def test_both_autoscaler_versions_are_stored_as_v2() -> None:
    versions = ("autoscaling/v1", "autoscaling/v2")

    assert [BY_KIND["HorizontalPodAutoscaler", version].stored_version for version in versions] == ["v2", "v2"]


def test_short_names_are_unique_within_a_version() -> None:
    names = [
        (name, kind.resource.version) for kind in builtin.kinds() for name in (*kind.short_names, kind.resource.plural)
    ]

    assert len(names) == len(set(names))


def _at(*path: str) -> StructureNode:
    node = BY_KIND["Deployment", "apps/v1"].structure.child("spec").child("template").child("spec")
    for name in path:
        node = (node.items or node).child(name) if name else (node.items or node)
    return node


def test_merge_strategies_of_lists() -> None:
    """Containers merge by name, their ports by number and protocol, which default to 0 and TCP."""
    ports = _at("containers", "ports")

    assert (ports.list_kind, ports.keys) == (ListType.MAP, ("containerPort", "protocol"))
    assert (ports.key_defaults, ports.patch_key) == ({"containerPort": 0, "protocol": "TCP"}, "containerPort")
    assert (_at("containers").patch_merge, _at("containers").patch_key) == (True, "name")
    assert (_at("tolerations").list_kind, _at("tolerations").patch_merge) == (ListType.ATOMIC, False)


def test_atomic_objects_and_retained_keys() -> None:
    spec = BY_KIND["Deployment", "apps/v1"].structure.child("spec")

    assert (spec.child("selector").atomic, _at("nodeSelector").atomic, _at("securityContext").atomic) == (
        True,
        True,
        False,
    )
    assert (spec.child("strategy").patch_retain_keys, spec.child("template").patch_retain_keys) == (True, False)
    assert _at("volumes", "").patch_retain_keys


def test_schemas_of_custom_resources_refer_back_to_themselves() -> None:
    versions = BY_KIND["CustomResourceDefinition", "apiextensions.k8s.io/v1"].structure.child("spec").child("versions")
    assert versions.items is not None
    schema = versions.items.child("schema").child("openAPIV3Schema")

    assert schema.child("properties").child("anything") is schema
    assert schema.child("default").type is ValueType.ANY


def test_no_object_prunes_unknown_fields() -> None:
    """Built-in kinds are never pruned."""
    waiting = [kind.structure for kind in builtin.kinds()]
    seen: dict[int, StructureNode] = {}
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        waiting += [*node.fields.values(), *(part for part in (node.values, node.items) if part is not None)]

    assert len(seen) > 500
    assert all(node.open for node in seen.values() if node.type is ValueType.OBJECT)
