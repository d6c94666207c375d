"""Webhook configurations: which writes API servers send to which webhook."""

from __future__ import annotations

import base64
import copy
from functools import cache
from typing import Any

import pytest
from cel_expr_python import cel
from cel_expr_python.ext import ext_optional
from tests.apis.karpenter.samples import node_pool
from tests.cluster.admission.review_requests import foreign_pool

from springtide.apis.crds import Flavour, all_crds
from springtide.apis.validation import ANNOTATION
from springtide.cluster.admission import PERMISSIONS
from springtide.cluster.admission.configurations import (
    ServiceTarget,
    UrlTarget,
    conversion,
    converted_definitions,
    webhook_configurations,
    with_conversion,
)

SERVICE = ServiceTarget("springtide-system", "springtide")
URL = UrlTarget("https://127.0.0.1:9443/")
VALIDATING, MUTATING = webhook_configurations(SERVICE, b"bundle")
POOL = node_pool({"budgets": [{"nodes": "5"}]})


@pytest.mark.parametrize("configuration", [VALIDATING, MUTATING], ids=["validating", "mutating"])
def test_webhooks_have_no_side_effects_and_little_time(configuration: dict[str, Any]) -> None:
    (webhook,) = configuration["webhooks"]

    assert webhook["sideEffects"] == "None"
    assert webhook["timeoutSeconds"] <= 10
    assert webhook["admissionReviewVersions"] == ["v1"]
    assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == b"bundle"


def test_only_the_failure_policy_of_validation_may_be_fail() -> None:
    """It is configurable."""
    policies = [made["webhooks"][0]["failurePolicy"] for made in (VALIDATING, MUTATING)]
    lenient = [
        made["webhooks"][0]["failurePolicy"] for made in webhook_configurations(SERVICE, failure_policy="Ignore")
    ]

    assert (policies, lenient) == (["Fail", "Ignore"], ["Ignore", "Ignore"])


def test_every_kind_of_ours_is_validated_in_every_version() -> None:
    """Except kinds that Springtide never owns; deletions and subresources call no webhook."""
    rules = VALIDATING["webhooks"][0]["rules"]
    asked = {(rule["apiGroups"][0], rule["resources"][0], version) for rule in rules for version in rule["apiVersions"]}
    kinds = {
        (crd["spec"]["group"], crd["spec"]["names"]["plural"], version["name"])
        for crd in all_crds(Flavour.EXTENDED)
        for version in crd["spec"]["versions"]
    }

    assert kinds - asked == {("autoscaling.karmada.io", "federatedhpas", "v1alpha1")}
    assert asked <= kinds
    assert {operation for rule in rules for operation in rule["operations"]} == {"CREATE", "UPDATE"}


def test_a_target_is_a_service_or_a_url() -> None:
    services = [made["webhooks"][0]["clientConfig"]["service"]["path"] for made in webhook_configurations(SERVICE)]
    urls = [made["webhooks"][0]["clientConfig"]["url"] for made in webhook_configurations(URL)]

    assert services == ["/validate", "/default"]
    assert urls == ["https://127.0.0.1:9443/validate", "https://127.0.0.1:9443/default"]


def test_certificates_have_the_names_that_api_servers_use() -> None:
    assert SERVICE.names[0] == "springtide.springtide-system.svc"
    assert URL.names == ("127.0.0.1", "localhost")
    assert UrlTarget("https://localhost:1").names == ("localhost",)


def test_without_a_bundle_there_is_none() -> None:
    """Objects rendered before certificates exist leave the field to the webhook server."""
    assert all("caBundle" not in made["webhooks"][0]["clientConfig"] for made in webhook_configurations(SERVICE))


def test_versions_that_differ_are_converted_and_served() -> None:
    assert converted_definitions() == ("nodepools.karpenter.sh", "nodeclaims.karpenter.sh")
    (pools,) = [crd for crd in all_crds(Flavour.EXTENDED) if crd["metadata"]["name"] == "nodepools.karpenter.sh"]
    before = copy.deepcopy(pools)

    made = with_conversion(pools, SERVICE, b"bundle")

    assert made["spec"]["conversion"] == conversion(SERVICE, b"bundle")
    assert [version["served"] for version in made["spec"]["versions"]] == [True, True]
    assert before == pools


def test_permissions_are_minimal() -> None:
    """All that can be limited to names are."""
    assert {(permission.resource.plural, permission.verbs) for permission in PERMISSIONS if not permission.names} == {
        ("secrets", ("create",))
    }


# The conditions, as the API server evaluates them


@cache
def environment() -> Any:
    variables = dict.fromkeys(("object", "oldObject", "request"), cel.Type.DYN)
    return cel.NewEnv(variables=variables, extensions=[ext_optional.ExtOptional()])


def asked_about(item: Any, old: Any = None, configuration: dict[str, Any] = VALIDATING) -> bool:
    """Return whether the API server calls the webhook; a condition that cannot be evaluated fails the test."""
    group, _, version = item["apiVersion"].rpartition("/")
    request = {
        "operation": "CREATE" if old is None else "UPDATE",
        "kind": {"group": group, "version": version, "kind": item["kind"]},
    }
    scope = environment().Activation({"object": item, "oldObject": old, "request": request})
    outcomes = [
        environment().compile(condition["expression"]).eval(scope)
        for condition in configuration["webhooks"][0]["matchConditions"]
    ]
    assert all(outcome.type() == cel.Type.BOOL for outcome in outcomes), [outcome.value() for outcome in outcomes]
    return all(outcome.value() for outcome in outcomes)


def pool(**metadata: Any) -> dict[str, Any]:
    made = copy.deepcopy(POOL)
    made["metadata"] |= metadata
    return made


@pytest.mark.parametrize(
    ("item", "old", "expected"),
    [
        pytest.param(POOL, None, True, id="new"),
        pytest.param(foreign_pool({}), None, False, id="new, not owned"),
        pytest.param(node_pool(), POOL, True, id="another spec"),
        pytest.param(POOL, POOL, False, id="nothing changes"),
        pytest.param(pool(labels={"a": "b"}), POOL, False, id="labels"),
        pytest.param(pool(annotations={"a": "b"}), POOL, False, id="annotations"),
        pytest.param(pool(annotations={ANNOTATION: "{}"}), POOL, True, id="extensions"),
        pytest.param({**POOL, "status": {"nodes": 1}}, POOL, False, id="status"),
        pytest.param(
            {**node_pool(), "metadata": pool(deletionTimestamp="2026-01-01T00:00:00Z")["metadata"]},
            POOL,
            False,
            id="being deleted",
        ),
        pytest.param({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {}}, None, False, id="empty"),
        pytest.param(
            {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": {}}, None, True,
            id="of the default strategy",
        ),
        pytest.param(
            {"apiVersion": "springtide.dev/v1alpha1", "kind": "Calendar", "metadata": {}, "spec": {}}, None, True,
            id="only ours",
        ),
        pytest.param(
            {"apiVersion": "springtide.dev/v1alpha1", "kind": "Calendar", "metadata": {}, "spec": {}},
            {"apiVersion": "springtide.dev/v1alpha1", "kind": "Calendar", "metadata": {}, "spec": {}},
            False,
            id="only ours, unchanged",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("configuration", [VALIDATING, MUTATING], ids=["validating", "mutating"])
def test_match_conditions_select_changes_of_owned_objects(
    item: Any, old: Any, expected: bool, configuration: dict[str, Any]
) -> None:
    assert expected == asked_about(item, old, configuration)
