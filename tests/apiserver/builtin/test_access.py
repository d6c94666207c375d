"""Roles, their bindings and network policies: stored and validated as by kube-apiserver, enforced by nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.builtin.samples import BY_KIND, defaulted, messages, other_object, validated

from springtide.cluster.resources import Object

RBAC = "rbac.authorization.k8s.io"
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ACCOUNT = {"kind": "ServiceAccount", "name": "springtide", "namespace": "springtide"}


def rbac(kind: str, **fields: Any) -> Object:
    return other_object(kind, f"{RBAC}/v1", **fields)


def binding(kind: str = "RoleBinding", role: str = "Role", *subjects: Object) -> Object:
    return rbac(kind, roleRef={"apiGroup": RBAC, "kind": role, "name": "r"}, subjects=list(subjects) or [ACCOUNT])


def policy(**spec: Any) -> Object:
    return other_object("NetworkPolicy", "networking.k8s.io/v1", spec={"podSelector": {}} | spec)


def incoming(**port: Any) -> Object:
    return policy(ingress=[{"ports": [port]}])


@pytest.mark.parametrize(
    ("kind", "plural", "namespaced", "generation"),
    [
        pytest.param("ClusterRole", "clusterroles", False, False, id="cluster-role"),
        pytest.param("ClusterRoleBinding", "clusterrolebindings", False, False, id="cluster-role-binding"),
        pytest.param("Role", "roles", True, False, id="role"),
        pytest.param("RoleBinding", "rolebindings", True, False, id="role-binding"),
    ],
)
def test_rbac_kinds_are_served(kind: str, plural: str, namespaced: bool, generation: bool) -> None:
    served = BY_KIND[kind, f"{RBAC}/v1"]

    assert (served.resource.plural, served.resource.namespaced, served.generation) == (plural, namespaced, generation)
    assert served.short_names == ()


def test_network_policies_are_served() -> None:
    served = BY_KIND["NetworkPolicy", "networking.k8s.io/v1"]

    assert (served.resource.plural, served.short_names, served.generation) == ("networkpolicies", ("netpol",), True)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(rbac("Role", rules=[RULE]), [], id="role"),
        pytest.param(rbac("ClusterRole", rules=[{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]), [], id="urls"),
        pytest.param(rbac("ClusterRole"), [], id="role-without-rules"),
        pytest.param(
            rbac("Role", rules=[RULE | {"verbs": []}]),
            ["rules[0].verbs: Required value: verbs must contain at least one value"],
            id="no-verbs",
        ),
        pytest.param(
            rbac("Role", rules=[{"verbs": ["get"]}]),
            [
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ],
            id="no-resources",
        ),
        pytest.param(
            rbac("Role", rules=[{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]),
            [
                'rules[0].nonResourceURLs: Invalid value: ["/metrics"]: namespaced rules cannot apply to non-resource'
                " URLs"
            ],
            id="urls-in-a-namespace",
        ),
        pytest.param(
            rbac("ClusterRole", rules=[RULE | {"nonResourceURLs": ["/metrics"]}]),
            [
                'rules[0].nonResourceURLs: Invalid value: ["/metrics"]: rules cannot apply to both regular resources'
                " and non-resource URLs"
            ],
            id="urls-and-resources",
        ),
        pytest.param(
            rbac("ClusterRole", aggregationRule={"clusterRoleSelectors": []}),
            [
                "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if"
                " aggregationRule is non-nil"
            ],
            id="aggregation-of-nothing",
        ),
        pytest.param(binding(), [], id="binding"),
        pytest.param(binding("RoleBinding", "ClusterRole"), [], id="binding-of-a-cluster-role"),
        pytest.param(
            binding("ClusterRoleBinding"),
            ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'],
            id="cluster-binding-of-a-role",
        ),
        pytest.param(
            rbac("RoleBinding", roleRef={"kind": "Role", "name": "r", "apiGroup": "rbac"}),
            [f'roleRef.apiGroup: Unsupported value: "rbac": supported values: "{RBAC}"'],
            id="another-group",
        ),
        pytest.param(rbac("RoleBinding", roleRef={"kind": "Role"}), ["roleRef.name: Required value"], id="no-name"),
        pytest.param(
            rbac("RoleBinding", roleRef={"kind": "Role", "name": "a/b"}),
            ["roleRef.name: Invalid value: \"a/b\": may not contain '/'"],
            id="invalid-name",
        ),
        pytest.param(binding("RoleBinding", "Role", {"kind": "ServiceAccount", "name": "default"}), [], id="same-ns"),
        pytest.param(
            binding("ClusterRoleBinding", "ClusterRole", {"kind": "ServiceAccount", "name": "default"}),
            ["subjects[0].namespace: Required value"],
            id="account-without-namespace",
        ),
        pytest.param(
            binding("RoleBinding", "Role", {"kind": "Robot", "name": "r2"}),
            ['subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"'],
            id="unknown-subject",
        ),
        pytest.param(
            binding("RoleBinding", "Role", ACCOUNT | {"apiGroup": RBAC}),
            [f'subjects[0].apiGroup: Unsupported value: "{RBAC}": supported values: ""'],
            id="account-with-a-group",
        ),
        pytest.param(policy(), [], id="policy"),
        pytest.param(incoming(port=8080), [], id="port"),
        pytest.param(incoming(port="metrics"), [], id="named-port"),
        pytest.param(incoming(port=80, endPort=90), [], id="range"),
        pytest.param(
            incoming(port=0),
            ["spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"],
            id="port-zero",
        ),
        pytest.param(
            incoming(port=8080, protocol="HTTP"),
            ['spec.ingress[0].ports[0].protocol: Unsupported value: "HTTP": supported values: "TCP", "UDP", "SCTP"'],
            id="protocol",
        ),
        pytest.param(
            incoming(port=90, endPort=80),
            ["spec.ingress[0].ports[0].endPort: Invalid value: 90: must be greater than or equal to `port`"],
            id="range-backwards",
        ),
        pytest.param(
            policy(ingress=[{"from": [{}]}]),
            ["spec.ingress[0].from[0]: Required value: must specify a peer"],
            id="no-peer",
        ),
        pytest.param(
            policy(egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}]),
            ["spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer"],
            id="two-peers",
        ),
        pytest.param(
            policy(policyTypes=["Inward"]),
            ['spec.policyTypes[0]: Unsupported value: "Inward": supported values: "Ingress", "Egress"'],
            id="policy-type",
        ),
    ],
)
def test_validation(item: Object, expected: list[str]) -> None:
    assert messages(validated(item)) == expected


def test_the_role_of_a_binding_cannot_change() -> None:
    before, after = binding(), binding()
    after["roleRef"] = after["roleRef"] | {"name": "other"}

    (message,) = messages(validated(after, before))

    assert message.startswith("roleRef: Invalid value: ")
    assert message.endswith(": cannot change roleRef")


def test_defaults() -> None:
    users = [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, ACCOUNT]
    bound = defaulted(rbac("RoleBinding", roleRef={"kind": "Role", "name": "r"}, subjects=users))
    both = defaulted(policy(egress=[{"ports": [{"port": 53}]}]))

    assert bound["roleRef"]["apiGroup"] == RBAC
    assert [subject.get("apiGroup", "") for subject in bound["subjects"]] == [RBAC, RBAC, ""]
    assert defaulted(policy())["spec"]["policyTypes"] == ["Ingress"]
    assert both["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert both["spec"]["egress"][0]["ports"] == [{"port": 53, "protocol": "TCP"}]
