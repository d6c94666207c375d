"""Every field of the published kinds is there, with its defaults, bounds and rules."""

from __future__ import annotations

from typing import Any

import pytest
from cel_expr_python import cel
from tests.apis.crd_server import admit
from tests.apis.karpenter.samples import beta_pool, node_pool
from tests.apis.manifests import problems_of

from springtide.apis.crds import Flavour
from springtide.apis.karpenter import KINDS, types, v1beta1
from springtide.apis.karpenter.disruption import Budget, Disruption
from springtide.apis.karpenter.types import NodePoolTaint, NodeRequirement
from springtide.apis.kinds import CelRule, View
from springtide.apis.problems import format_path
from springtide.apis.schema import schema_of, with_defaults

FIELDS: dict[type[View], str] = {
    types.NodePoolSpec: "disruption weight limits replicas template",
    Disruption: "consolidateAfter consolidationPolicy budgets budgetDefault* budgetAccounting* expirationPolicy*"
    " disruptAfter* repair*",
    Budget: "reasons nodes schedule duration timeZone* from* until* calendars* mode* maxPer* cooldown*",
    types.NodeTemplate: "metadata spec",
    types.NodeTemplateSpec: "expireAfter terminationGracePeriod requirements taints startupTaints nodeClassRef",
    types.NodeClassReference: "group kind name",
    NodeRequirement: "key operator values minValues",
    NodePoolTaint: "key value effect timeAdded",
    types.NodePoolStatus: "nodes resources nodeClassObservedGeneration conditions",
    types.NodeClaimSpec: "requirements resources taints startupTaints nodeClassRef expireAfter terminationGracePeriod",
    types.NodeClaimStatus: "nodeName providerID imageID capacity allocatable lastPodEventTime conditions",
    v1beta1.NodePoolSpecV1Beta1: "disruption weight limits template replicas*",
    v1beta1.DisruptionV1Beta1: "consolidateAfter consolidationPolicy expireAfter budgets"
    " budgetDefault* budgetAccounting* expirationPolicy* disruptAfter* repair*",
    v1beta1.NodeTemplateSpecV1Beta1: "requirements resources taints startupTaints nodeClassRef kubelet"
    " terminationGracePeriod*",
    v1beta1.NodeClassReferenceV1Beta1: "apiVersion kind name",
    v1beta1.NodeClaimSpecV1Beta1: "requirements resources taints startupTaints nodeClassRef kubelet"
    " expireAfter* terminationGracePeriod*",
    v1beta1.Kubelet: "clusterDNS maxPods podsPerCore systemReserved kubeReserved evictionHard evictionSoft"
    " evictionSoftGracePeriod evictionMaxPodGracePeriod imageGCHighThresholdPercent imageGCLowThresholdPercent"
    " cpuCFSQuota",
}


@pytest.mark.parametrize("view", FIELDS, ids=lambda view: f"{view.__module__.rpartition('.')[2]}.{view.__name__}")
def test_fields(view: type[View]) -> None:
    """All of upstream's, and the extensions (*) marked as such."""
    found = {f"{field.name}{'*' if field.schema.extension else ''}" for field in schema_of(view).fields}

    assert set(FIELDS[view].split()) == found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(
            node_pool(),
            {
                "consolidateAfter": "0s",
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "budgets": [{"nodes": "10%", "mode": "Limit"}],
                "budgetDefault": "Floor",
                "budgetAccounting": "Total",
                "expirationPolicy": "Forceful",
            },
            id="v1",
        ),
        pytest.param(
            beta_pool(),
            {
                "consolidationPolicy": "WhenUnderutilized",
                "expireAfter": "720h",
                "budgets": [{"nodes": "10%", "mode": "Limit"}],
                "budgetDefault": "Fallback",
                "budgetAccounting": "Total",
                "expirationPolicy": "Graceful",
            },
            id="v1beta1",
        ),
    ],
)
def test_defaults(value: dict[str, Any], expected: dict[str, Any]) -> None:
    """A pool that says nothing about disruption gets its version's defaults."""
    view = v1beta1.NodePoolV1Beta1 if value["apiVersion"].endswith("beta1") else types.NodePool

    filled = with_defaults(value, schema_of(view))

    assert expected == filled["spec"]["disruption"]


def test_expiry_defaults_to_a_month() -> None:
    """In v1 it is in the template."""
    filled = with_defaults(node_pool(), schema_of(types.NodePool))

    assert filled["spec"]["template"]["spec"]["expireAfter"] == "720h"


def changed(path: str, part: Any, *, value: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a pool with another part at a path; `None` takes it away."""
    made = value or node_pool()
    inner: Any = made
    *steps, last = path.split(".")
    for step in steps:
        inner = inner.setdefault(step, {})
    if part is None:
        del inner[last]
    else:
        inner[last] = part
    return made


SPEC = "spec.template.spec"
CLASS = f"{SPEC}.nodeClassRef"


def requirement(**parts: Any) -> list[dict[str, Any]]:
    return [{"key": "kubernetes.io/arch", **parts}]


@pytest.mark.parametrize(
    ("path", "part", "expected"),
    [
        pytest.param("spec.template", None, "spec.template", id="no-template"),
        pytest.param(SPEC, None, SPEC, id="no-template-spec"),
        pytest.param(CLASS, None, CLASS, id="no-class"),
        pytest.param(f"{SPEC}.requirements", None, f"{SPEC}.requirements", id="no-requirements"),
        pytest.param(f"{CLASS}.group", "a/b", f"{CLASS}.group", id="class-group"),
        pytest.param(f"{CLASS}.name", "", f"{CLASS}.name", id="class-name"),
        pytest.param("spec.weight", 0, "spec.weight", id="weight-low"),
        pytest.param("spec.weight", 101, "spec.weight", id="weight-high"),
        pytest.param("spec.replicas", -1, "spec.replicas", id="replicas"),
        pytest.param("spec.limits", {"cpi": "1"}, "spec.limits.cpi", id="misspelt-limit"),
        pytest.param("spec.limits", {"cpu": "1 core"}, "spec.limits.cpu", id="limits-quantity"),
        pytest.param("spec.disruption.consolidateAfter", "soon", "spec.disruption.consolidateAfter", id="after"),
        pytest.param(
            "spec.disruption.consolidationPolicy", "whenEmpty", "spec.disruption.consolidationPolicy", id="case"
        ),
        pytest.param("spec.disruption.budgets", [{}] * 51, "spec.disruption.budgets", id="51-budgets"),
        pytest.param(f"{SPEC}.expireAfter", "1d", f"{SPEC}.expireAfter", id="expiry"),
        pytest.param(f"{SPEC}.terminationGracePeriod", "Never", f"{SPEC}.terminationGracePeriod", id="grace"),
        pytest.param(
            f"{SPEC}.requirements", requirement(operator="In"), f"{SPEC}.requirements[0].values", id="in-none"
        ),
        pytest.param(
            f"{SPEC}.requirements",
            requirement(operator="Gt", values=["1", "2"]),
            f"{SPEC}.requirements[0].values",
            id="gt-two",
        ),
        pytest.param(
            f"{SPEC}.requirements",
            requirement(operator="Lte", values=["x"]),
            f"{SPEC}.requirements[0].values",
            id="lte",
        ),
        pytest.param(
            f"{SPEC}.requirements",
            requirement(operator="In", values=["a"], minValues=2),
            f"{SPEC}.requirements[0].minValues",
            id="min-values",
        ),
        pytest.param(
            f"{SPEC}.requirements",
            requirement(operator="Exists", minValues=51),
            f"{SPEC}.requirements[0].minValues",
            id="min-values-high",
        ),
        pytest.param(
            f"{SPEC}.requirements", requirement(operator="in"), f"{SPEC}.requirements[0].operator", id="operator"
        ),
        pytest.param(
            f"{SPEC}.requirements",
            [{"key": "kubernetes.io/hostname", "operator": "Exists"}],
            f"{SPEC}.requirements[0].key",
            id="hostname",
        ),
        pytest.param(
            f"{SPEC}.requirements",
            [{"key": "karpenter.sh/nodepool", "operator": "Exists"}],
            f"{SPEC}.requirements[0].key",
            id="nodepool",
        ),
        pytest.param(
            "spec.template.metadata",
            {"labels": {"karpenter.sh/nodepool": "a"}},
            "spec.template.metadata.labels[karpenter.sh/nodepool]",
            id="label-nodepool",
        ),
        pytest.param(
            "spec.template.metadata",
            {"labels": {"sub.karpenter.sh/x": "a"}},
            "spec.template.metadata.labels[sub.karpenter.sh/x]",
            id="label-karpenter",
        ),
        pytest.param(f"{SPEC}.taints", [{"key": "a", "effect": "Never"}], f"{SPEC}.taints[0].effect", id="taint"),
    ],
)
def test_errors(path: str, part: Any, expected: str) -> None:
    """What the server refuses is an error at its place, and the only one."""
    found = problems_of(changed(path, part))

    assert [("error", expected)] == [(problem.severity, format_path(problem.path)) for problem in found]


@pytest.mark.parametrize(
    ("path", "part"),
    [
        pytest.param("spec.limits", {"cpu": 1000, "memory": "1Ti", "nodes": 5, "nvidia.com/gpu": 4}, id="limits"),
        pytest.param("spec.disruption.consolidationPolicy", "Balanced", id="balanced"),
        pytest.param("spec.disruption.consolidateAfter", "1h30m10s", id="after"),
        pytest.param(f"{SPEC}.expireAfter", "Never", id="expiry"),
        pytest.param(f"{SPEC}.requirements", requirement(operator="Gte", values=["0"]), id="gte"),
        pytest.param(f"{SPEC}.requirements", [], id="no-requirements-at-all"),
        pytest.param(
            f"{SPEC}.requirements",
            [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"], "minValues": 1}],
            id="capacity-type",
        ),
        pytest.param("spec.template.metadata", {"labels": {"team.example.com/x": "a"}}, id="label"),
        pytest.param(f"{SPEC}.taints", [{"key": "a/b", "effect": "NoExecute", "value": ""}], id="taint"),
        pytest.param("spec.replicas", 3, id="static"),
    ],
)
def test_accepted(path: str, part: Any) -> None:
    """Valid pools have no problems."""
    assert problems_of(changed(path, part)) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"replicas": 3, "weight": 10}, ["spec.weight"], id="weight"),
        pytest.param({"replicas": 3, "limits": {"nodes": 5}}, [], id="limit-of-nodes"),
        pytest.param({"replicas": 3, "limits": {"cpu": 5, "nodes": 5}}, ["spec.limits.cpu"], id="limit-of-cpu"),
    ],
)
def test_static_pools(spec: dict[str, Any], expected: list[str]) -> None:
    """A pool with a fixed number of nodes has neither weight nor limits but of nodes."""
    found = problems_of(node_pool(**spec))

    assert expected == [format_path(problem.path) for problem in found]
    assert bool(expected) is any(not holds(rule, spec) for rule in types.NodePoolSpec.__rules__[1:])


def holds(rule: CelRule, value: Any, old: Any = None) -> bool:
    variables = {"self": cel.Type.DYN, "oldSelf": cel.Type.DYN}
    found = cel.NewEnv(variables=variables).compile(rule.rule).eval(data={"self": value, "oldSelf": old})
    return found.value() is True


VALUES: tuple[dict[str, Any], ...] = ({}, {"values": []}, {"values": ["1"]}, {"values": ["a", "b"]})
REQUIREMENTS: list[dict[str, Any]] = [
    {"operator": operator, **values, **least}
    for operator in ("In", "NotIn", "Exists", "Gt", "Lte")
    for values in VALUES
    for least in ({}, {"minValues": 2})
]


@pytest.mark.parametrize("parts", REQUIREMENTS, ids=str)
def test_requirements_are_refused_by_the_server_as_by_us(parts: dict[str, Any]) -> None:
    """The rules of the CRD and the checks here agree."""
    refused = not all(holds(rule, {"key": "a", **parts}) for rule in NodeRequirement.__rules__)

    found = problems_of(changed(f"{SPEC}.requirements", requirement(**parts)))

    assert refused is any(problem.severity == "error" for problem in found)


BUDGET_PARTS: tuple[dict[str, Any], ...] = (
    {"schedule": "0 9 * * *"},
    {"duration": "1h"},
    {"from": "2027-01-01T00:00:00Z"},
    {"until": "2027-01-02T00:00:00Z"},
    {"timeZone": "UTC"},
)


@pytest.mark.parametrize("mask", range(2 ** len(BUDGET_PARTS)))
@pytest.mark.parametrize("beta", [False, True], ids=["v1", "v1beta1"])
def test_budgets_are_refused_by_the_server_as_by_us(mask: int, beta: bool) -> None:
    """Every combination of time fields is rejected by a CEL rule exactly if Python finds an error."""
    budget: dict[str, Any] = {"nodes": "5"}
    for position, part in enumerate(BUDGET_PARTS):
        budget |= part if mask & 1 << position else {}
    view, pool = (v1beta1.BudgetV1Beta1, beta_pool) if beta else (Budget, node_pool)
    refused = not all(holds(rule, budget) for rule in view.__rules__)

    found = problems_of(pool({"budgets": [budget]}))

    assert refused is any(problem.severity == "error" for problem in found)


@pytest.mark.parametrize("nodes", [0, 10, 2147483647, -1, 2147483648, "10", "10%", "101%", "-1"])
def test_counts_are_refused_by_the_server_as_by_us(nodes: int | str) -> None:
    """Integers, which no pattern sees, have bounds of their own."""
    pool = node_pool({"budgets": [{"nodes": nodes}]})

    assert bool(admit(pool)) is any(problem.severity == "error" for problem in problems_of(pool))


@pytest.mark.parametrize(
    ("label", "fine"),
    [
        ("team.example.com/x", True),
        ("karpenter.sh/capacity-type", True),
        ("karpenter.sh/x", False),
        ("a.karpenter.sh/x", False),
        ("kubernetes.io/hostname", False),
        ("notkarpenter.sh/x", True),
        ("topology.kubernetes.io/zone", True),
    ],
)
def test_labels_are_refused_by_the_server_as_by_us(label: str, fine: bool) -> None:
    """The rule of the CRD and the check here agree on which labels are Karpenter's own."""
    key = next(field for field in schema_of(NodeRequirement).fields if field.name == "key").schema
    labels = next(field for field in schema_of(types.TemplateMetadata).fields if field.name == "labels").schema

    assert fine is all(holds(rule, label) for rule in key.rules)
    assert fine is all(holds(rule, {label: "x"}) for rule in labels.rules)
    assert fine is (problems_of(changed("spec.template.metadata", {"labels": {label: "x"}})) == [])


def test_what_cannot_change() -> None:
    """A pool stays in its class of nodes and static or not; a claim stays what it is."""
    reference = next(f for f in schema_of(types.NodeTemplateSpec).fields if f.name == "nodeClassRef").schema
    claim = next(f for f in schema_of(types.NodeClaim).fields if f.name == "spec").schema
    old = {"group": "a", "kind": "B", "name": "c"}

    assert all(holds(rule, old | {"name": "d"}, old) for rule in reference.rules)
    assert [holds(rule, old | {"group": "x"}, old) for rule in reference.rules] == [False, True]
    assert [holds(rule, old | {"kind": "X"}, old) for rule in reference.rules] == [True, False]
    assert not holds(types.STATIC_POOL_RULES[0], {"replicas": 1}, {})
    assert [holds(rule, {"a": 1}, {"a": 2}) for rule in claim.rules] == [False]


def test_incomplete_pools_of_v1beta1_are_warned_of() -> None:
    """They can be looked at, but the server would refuse them."""
    value = {"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": "a"}, "spec": {}}

    assert [(p.severity, format_path(p.path)) for p in problems_of(value)] == [("warning", "spec.template")]
    assert not all(holds(rule, {}, {}) for rule in v1beta1.NodePoolSpecV1Beta1.__rules__)


@pytest.mark.parametrize(
    ("kubelet", "expected"),
    [
        pytest.param({"maxPods": 10, "clusterDNS": ["10.0.0.1"], "cpuCFSQuota": True}, [], id="fine"),
        pytest.param(
            {"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 60},
            ["imageGCHighThresholdPercent"],
            id="thresholds",
        ),
        pytest.param({"evictionSoft": {"memory.available": "5%"}}, ["evictionSoft[memory.available]"], id="no-period"),
        pytest.param(
            {"evictionSoftGracePeriod": {"memory.available": "5m"}},
            ["evictionSoftGracePeriod[memory.available]"],
            id="no-threshold",
        ),
        pytest.param({"kubeReserved": {"gpu": "1"}}, ["kubeReserved.gpu"], id="reserved"),
        pytest.param({"evictionHard": {"memory": "1Gi"}}, ["evictionHard.memory"], id="signal"),
    ],
)
def test_settings_of_the_kubelet(kubelet: dict[str, Any], expected: list[str]) -> None:
    """Only v1beta1 has them; what does not go together is an error."""
    value = beta_pool()
    value["spec"]["template"]["spec"]["kubelet"] = kubelet

    found = problems_of(value)

    assert [f"spec.template.spec.kubelet.{path}" for path in expected] == [format_path(p.path) for p in found]


def test_claims_are_checked() -> None:
    """A claim has the requirements and the class of its pool, and may name the pool."""
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "a"},
        "spec": {
            "requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["a"]}],
            "nodeClassRef": {"group": "springtide.dev", "kind": "NodeClass", "name": "a"},
            "resources": {"requests": {"cpu": "1"}},
        },
    }

    assert [problem for problem in problems_of(claim) if problem.severity == "error"] == []
    assert [format_path(p.path) for p in problems_of(changed("spec.nodeClassRef", None, value=claim))] == [
        "spec.nodeClassRef"
    ]


def test_names_and_versions() -> None:
    """What `kubectl` needs to know."""
    pool, claim = KINDS

    assert [(v.name, v.served, v.storage) for v in pool.versions] == [("v1", True, True), ("v1beta1", False, False)]
    assert (pool.plural, claim.plural) == ("nodepools", "nodeclaims")
    assert (pool.scope, claim.categories) == ("Cluster", ("karpenter",))
    assert pool.scale is not None
    assert (pool.scale.spec_path, pool.scale.status_path) == (".spec.replicas", ".status.nodes")
    assert [column.name for column in pool.versions[0].columns] == [
        "NodeClass",
        "Nodes",
        "Ready",
        "Age",
        "Weight",
        "CPU",
        "Memory",
    ]


DOMAIN = "a" * 61 + "." + "b" * 63 + "." + "c" * 63 + "." + "d" * 63
"""A domain of 253 characters."""


def labelled(**labels: str) -> dict[str, Any]:
    return changed("spec.template.metadata", {"labels": {f"example.com/{name}": text for name, text in labels.items()}})


def required(key: str) -> dict[str, Any]:
    return changed(f"{SPEC}.requirements", [{"key": key, "operator": "Exists"}])


def tainted(key: str, field: str = "taints", **parts: str) -> dict[str, Any]:
    return changed(f"{SPEC}.{field}", [{"key": key, "effect": "NoSchedule", **parts}])


@pytest.mark.parametrize(
    ("pool", "expected", "by_extended", "by_stock"),
    [
        pytest.param(labelled(a=""), [], False, False, id="empty-label-value"),
        pytest.param(labelled(a="v" * 63), [], False, False, id="label-value-of-63"),
        pytest.param(labelled(a="v" * 64), ["labels[example.com/a]"], True, True, id="label-value-of-64"),
        pytest.param(labelled(a="not legal"), ["labels[example.com/a]"], True, True, id="label-value-with-a-blank"),
        pytest.param(
            labelled(a="-x"), ["labels[example.com/a]"], True, True, id="label-value-that-starts-with-a-hyphen"
        ),
        pytest.param(required(f"{DOMAIN}/{'k' * 62}"), [], False, False, id="requirement-key-of-316"),
        pytest.param(
            required(f"{DOMAIN}/{'k' * 63}"), ["requirements[0].key"], True, True, id="requirement-key-of-317"
        ),
        pytest.param(
            required(f"a.example/{'k' * 64}"), ["requirements[0].key"], False, False, id="requirement-name-of-64"
        ),
        pytest.param(required(f"d{DOMAIN}/k"), ["requirements[0].key"], False, False, id="requirement-domain-of-254"),
        pytest.param(required("a b"), ["requirements[0].key"], True, True, id="requirement-key-with-a-blank"),
        pytest.param(tainted(f"{DOMAIN}/{'k' * 62}"), [], False, False, id="taint-key-of-316"),
        pytest.param(tainted(f"{DOMAIN}/{'k' * 63}"), ["taints[0].key"], True, False, id="taint-key-of-317"),
        pytest.param(tainted("k" * 64), ["taints[0].key"], False, False, id="taint-name-of-64"),
        pytest.param(tainted("Example.com/k"), ["taints[0].key"], True, True, id="taint-domain-in-capitals"),
        pytest.param(tainted(""), ["taints[0].key"], True, True, id="empty-taint-key"),
        pytest.param(tainted("k" * 64, "startupTaints"), ["startupTaints[0].key"], False, False, id="startup-taint"),
        pytest.param(tainted("k", value="v" * 63), [], False, False, id="taint-value-of-63"),
        pytest.param(tainted("k", value="v" * 64), ["taints[0].value"], True, False, id="taint-value-of-64"),
        pytest.param(tainted("k", value="a/b"), ["taints[0].value"], False, False, id="taint-value-with-a-domain"),
        pytest.param(node_pool(replicas=2**31 - 1), [], False, False, id="most-replicas"),
        pytest.param(node_pool(replicas=2**31), ["spec.replicas"], False, False, id="replicas-that-cannot-be-scaled"),
        pytest.param(node_pool(replicas=-1), ["spec.replicas"], True, True, id="negative-replicas"),
        pytest.param(beta_pool(replicas=2**31), ["spec.replicas"], False, None, id="replicas-in-v1beta1"),
    ],
)
def test_keys_values_and_counts_have_the_bounds_of_karpenter(
    pool: dict[str, Any], expected: list[str], by_extended: bool | None, by_stock: bool | None
) -> None:
    """Karpenter's schema bounds keys as a whole, its controller bounds their domains and names, and the API server
    bounds replicas where they are scaled. Upstream's v1beta1 has no replicas (None).
    """
    found = [problem for problem in problems_of(pool) if problem.severity == "error"]

    assert [
        format_path(problem.path).removeprefix(f"{SPEC}.").removeprefix("spec.template.metadata.") for problem in found
    ] == expected
    for flavour, refused in ((Flavour.EXTENDED, by_extended), (Flavour.STOCK, by_stock)):
        assert refused in (None, bool(admit(pool, flavour)))
