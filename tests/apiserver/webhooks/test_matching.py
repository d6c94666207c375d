"""Which webhooks match which requests."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import DEPLOYMENTS, NAMESPACES, NODES, PODS
from tests.apiserver.webhooks.webhook_server import EVERYTHING, MUTATING, VALIDATING, webhook

from springtide.apiserver.admission import AdmissionOperation, AdmissionRequest, AdmissionStage, admission_attributes
from springtide.apiserver.webhooks.configurations import Webhook, invocation, is_exempt, webhooks_of
from springtide.cluster.errors import NotFound
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Write

AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
AUTOSCALERS_V1 = Resource("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
LABELS = {"prod": {"tier": "gold"}, "dev": {}}


def make_webhook(*rules: Object, **fields: Any) -> Webhook:
    described = webhook({"url": "https://example.com"}, rules=[EVERYTHING | rule for rule in rules], **fields)
    return webhooks_of({"metadata": {"uid": "u"}, "webhooks": [described]})[0]


def sent_resource(
    hook: Webhook,
    resource: Resource = PODS,
    *,
    namespace: str = "prod",
    operation: AdmissionOperation = AdmissionOperation.CREATE,
    subresource: str = "",
    new: Object | None = None,
    old: Object | None = None,
) -> Resource | None:
    """Return the resource that a webhook receives; None if it does not match."""

    def labels(name: str) -> dict[str, str]:
        if name not in LABELS:
            raise NotFound(name)
        return LABELS[name]

    key = Key(namespace if resource.namespaced else "", namespace if resource is NAMESPACES else "x")
    matter = admission_attributes(operation, resource, key, Write("me"), subresource)
    review = AdmissionRequest(AdmissionStage.VALIDATING, matter, old, new)
    served = {AUTOSCALERS.plural: (AUTOSCALERS_V1, AUTOSCALERS)}
    found = invocation(hook, review, lambda asked: served.get(asked.plural, (asked,)), labels)
    return None if found is None else found.resource


def labelled(**labels: str) -> Object:
    return {"metadata": {"labels": labels}}


@pytest.mark.parametrize(
    ("rule", "request_", "expected"),
    [
        pytest.param({}, {}, True, id="everything"),
        pytest.param({"resources": ["pods"]}, {}, True, id="the resource"),
        pytest.param({"resources": ["nodes"]}, {}, False, id="another resource"),
        pytest.param({"resources": ["*"]}, {}, True, id="all resources"),
        pytest.param({"resources": ["*"]}, {"subresource": "status"}, False, id="all resources, no subresource"),
        pytest.param({"resources": ["pods"]}, {"subresource": "status"}, False, id="the resource, not its status"),
        pytest.param({"resources": ["pods/status"]}, {"subresource": "status"}, True, id="the status"),
        pytest.param({"resources": ["pods/status"]}, {}, False, id="the status, not the resource"),
        pytest.param({"resources": ["pods/*"]}, {"subresource": "eviction"}, True, id="any subresource"),
        pytest.param({"resources": ["pods/*"]}, {}, True, id="wildcard includes the resource"),
        pytest.param({"resources": ["*/scale"]}, {"subresource": "scale"}, True, id="the scale of anything"),
        pytest.param({"resources": ["*/scale"]}, {}, False, id="wildcard scale excludes the resource"),
        pytest.param({"apiGroups": [""]}, {}, True, id="the core group"),
        pytest.param({"apiGroups": ["apps"]}, {}, False, id="another group"),
        pytest.param({"apiVersions": ["v1"]}, {}, True, id="the version"),
        pytest.param({"apiVersions": ["v2"]}, {}, False, id="a version that is not served"),
        pytest.param({"operations": ["CREATE"]}, {}, True, id="the operation"),
        pytest.param({"operations": ["UPDATE", "DELETE"]}, {}, False, id="other operations"),
        pytest.param({"scope": "Namespaced"}, {}, True, id="in a namespace"),
        pytest.param({"scope": "Cluster"}, {}, False, id="cluster scope, namespaced object"),
        pytest.param({"scope": "Namespaced"}, {"resource": NODES}, False, id="namespaced scope, cluster object"),
        pytest.param({"scope": "Cluster"}, {"resource": NODES}, True, id="cluster scope"),
        pytest.param(
            {"scope": "Cluster"}, {"resource": NAMESPACES, "new": labelled()}, True, id="namespaces have cluster scope"
        ),
        pytest.param(
            {"scope": "Namespaced"},
            {"resource": NAMESPACES, "new": labelled()},
            False,
            id="namespaces do not have namespaced scope",
        ),
    ],
)
def test_rules(rule: Object, request_: dict[str, Any], expected: bool) -> None:
    assert expected is (sent_resource(make_webhook(rule), **request_) is not None)


def test_one_matching_rule_is_enough() -> None:
    hook = make_webhook({"resources": ["nodes"]}, {"resources": ["pods"]})

    assert sent_resource(hook) is PODS
    assert sent_resource(hook, DEPLOYMENTS) is None


@pytest.mark.parametrize(
    ("policy", "asked", "expected"),
    [
        pytest.param("Equivalent", AUTOSCALERS, AUTOSCALERS_V1, id="sent in its own version"),
        pytest.param("Equivalent", AUTOSCALERS_V1, AUTOSCALERS_V1, id="sent in the requested version"),
        pytest.param("Exact", AUTOSCALERS, None, id="exact match, other version"),
        pytest.param("Exact", AUTOSCALERS_V1, AUTOSCALERS_V1, id="exact match"),
    ],
)
def test_requests_in_other_versions(policy: str, asked: Resource, expected: Resource | None) -> None:
    hook = make_webhook({"apiGroups": ["autoscaling"], "apiVersions": ["v1"]}, matchPolicy=policy)

    assert expected == sent_resource(hook, asked)


GOLD = {"matchLabels": {"tier": "gold"}}
NOT_GOLD = {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gold"]}]}


@pytest.mark.parametrize(
    ("selector", "request_", "expected"),
    [
        pytest.param(GOLD, {"namespace": "prod"}, True, id="selected"),
        pytest.param(GOLD, {"namespace": "dev"}, False, id="not selected"),
        pytest.param(NOT_GOLD, {"namespace": "dev"}, True, id="selected by an absent label"),
        pytest.param(GOLD, {"resource": NODES}, True, id="cluster-scoped objects always match"),
        pytest.param(
            GOLD, {"resource": NAMESPACES, "namespace": "new", "new": labelled(tier="gold")}, True, id="a new namespace"
        ),
        pytest.param(
            GOLD, {"resource": NAMESPACES, "namespace": "prod", "new": labelled()}, False, id="by its new labels"
        ),
        pytest.param(
            GOLD,
            {"resource": NAMESPACES, "namespace": "prod", "operation": AdmissionOperation.DELETE, "old": labelled()},
            True,
            id="deleted namespace by its stored labels",
        ),
    ],
)
def test_namespace_selectors(selector: Object, request_: dict[str, Any], expected: bool) -> None:
    assert expected is (sent_resource(make_webhook({}, namespaceSelector=selector), **request_) is not None)


def test_a_missing_namespace_matters_only_to_matching_rules() -> None:
    with pytest.raises(NotFound):
        sent_resource(make_webhook({}, namespaceSelector=GOLD), namespace="gone")
    assert sent_resource(make_webhook({"resources": ["nodes"]}, namespaceSelector=GOLD), namespace="gone") is None


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(labelled(tier="gold"), None, True, id="new"),
        pytest.param(labelled(), None, False, id="new without the label"),
        pytest.param(labelled(), labelled(tier="gold"), True, id="label removed"),
        pytest.param(None, labelled(tier="gold"), True, id="object deleted"),
        pytest.param(None, labelled(), False, id="other object deleted"),
        pytest.param({}, None, False, id="no metadata"),
    ],
)
def test_object_selectors(new: Object | None, old: Object | None, expected: bool) -> None:
    assert expected is (sent_resource(make_webhook({}, objectSelector=GOLD), new=new, old=old) is not None)


@pytest.mark.parametrize(
    ("resource", "expected"), [(MUTATING, True), (VALIDATING, True), (PODS, False)], ids=lambda part: str(part)
)
def test_webhook_configurations_are_exempt(resource: Resource, expected: bool) -> None:
    assert expected is is_exempt(resource)
