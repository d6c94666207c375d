"""Which requests webhooks see: subresources, deletions, other versions, and exempt resources."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import (
    BUDGETS,
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    QUOTAS,
    WIDGETS,
    WIDGETS_BETA,
    WRITE,
    config_map,
    definition,
    deployment,
    key,
    pod,
    widget,
)
from tests.apiserver.webhooks.webhook_server import (
    DENIED,
    EVERYTHING,
    MUTATING,
    VALIDATING,
    WebhookCluster,
    error_of,
    label_response,
    patch,
    run_story,
    webhook,
)

from springtide.cluster.errors import ApiError, Forbidden, NotFound, ServerError
from springtide.cluster.resources import Key, Object, Selection
from springtide.cluster.transport import Patch


def test_scales_are_reviewed_as_scales() -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        server.create(DEPLOYMENTS, deployment(), WRITE, namespace="default")
        scales = [EVERYTHING | {"resources": ["*/scale"]}]
        cap = patch({"op": "replace", "path": "/spec/replicas", "value": 5})
        cluster.register(MUTATING, webhook(cluster.hooks.on("/cap", cap), rules=scales))
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {}), rules=scales))
        change = Patch.merge({"spec": {"replicas": 9}})

        await cluster.execute(lambda: server.patch(DEPLOYMENTS, key("web"), change, WRITE, subresource="scale"))

        assert server.get(DEPLOYMENTS, key("web"))["spec"]["replicas"] == 5
        (first,), (second,) = cluster.hooks.requests("/cap"), cluster.hooks.requests("/agree")
        assert {"group": "autoscaling", "version": "v1", "kind": "Scale"} == first["kind"] == second["requestKind"]
        assert (first["subResource"], first["resource"]["resource"]) == ("scale", "deployments")
        assert tuple(item["spec"]["replicas"] for item in (first["oldObject"], first["object"], second["object"])) == (
            1,
            9,
            5,
        )

    run_story(story)


def test_the_status_is_reviewed_as_a_subresource() -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        server.create(PODS, pod(), WRITE, namespace="default")
        cluster.register(
            VALIDATING, webhook(cluster.hooks.on("/no", DENIED), rules=[EVERYTHING | {"resources": ["pods"]}])
        )
        change = Patch.merge({"status": {"message": "m"}})

        await cluster.execute(lambda: server.patch(PODS, key("p"), change, WRITE, subresource="status"))

        assert server.get(PODS, key("p"))["status"]["message"] == "m"
        assert cluster.hooks.asked == []

    run_story(story)


def test_evictions_and_bindings_are_creations_of_a_subresource() -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        server.create(PODS, pod(), WRITE, namespace="default")
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {})))

        def posted(body: Object, subresource: str) -> Any:
            return lambda: server.create(PODS, body, WRITE, namespace="default", name="p", subresource=subresource)

        await cluster.execute(posted({"target": {"name": "n"}}, "binding"))
        await cluster.execute(posted({"metadata": {"name": "p"}}, "eviction"))

        # The pod deleted by an eviction, and its budget, are written by the server itself.
        assert [
            (request["operation"], request["subResource"], request["kind"]["kind"])
            for request in cluster.hooks.requests("/agree")
        ] == [("CREATE", "binding", "Binding"), ("CREATE", "eviction", "Eviction")]
        assert "deletionTimestamp" in server.get(PODS, key("p"))["metadata"]

    run_story(story)


def test_quota_updates_are_not_reviewed() -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1"}}}
        server.create(QUOTAS, quota, WRITE, namespace="default")
        counted = Patch.merge({"status": {"used": {"configmaps": "0"}}})
        server.patch(QUOTAS, key("q"), counted, WRITE, subresource="status")
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {})))

        await cluster.execute(lambda: server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default"))

        assert [request["kind"]["kind"] for request in cluster.hooks.requests("/agree")] == ["ConfigMap"]
        assert server.get(QUOTAS, key("q"))["status"]["used"] == {"configmaps": "1"}

    run_story(story)


def test_a_refused_eviction_does_not_use_the_budget() -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        server.create(PODS, pod(labels={"app": "a"}), WRITE, namespace="default")
        budget = {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}}
        server.create(BUDGETS, budget, WRITE, namespace="default")
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/no", DENIED)))
        before = server.revision

        await error_of(
            cluster,
            Forbidden,
            lambda: server.create(
                PODS, {"metadata": {"name": "p"}}, WRITE, namespace="default", name="p", subresource="eviction"
            ),
        )

        assert server.revision == before

    run_story(story)


def test_a_deletion_is_reviewed_with_the_old_object() -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        old = server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {})))

        await cluster.execute(lambda: server.delete(CONFIG_MAPS, key("a"), WRITE, grace_seconds=3))

        (asked,) = cluster.hooks.requests("/agree")
        assert (None, old) == (asked["object"], asked["oldObject"])
        assert asked["options"] == {
            "kind": "DeleteOptions",
            "apiVersion": "meta.k8s.io/v1",
            "gracePeriodSeconds": 3,
        }
        with pytest.raises(NotFound):
            server.get(CONFIG_MAPS, key("a"))

    run_story(story)


def test_a_deletion_cannot_be_patched() -> None:
    async def story(cluster: WebhookCluster) -> None:
        cluster.server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        cluster.register(MUTATING, webhook(cluster.hooks.on("/change", label_response("a"))))

        error = await error_of(cluster, ServerError, lambda: cluster.server.delete(CONFIG_MAPS, key("a"), WRITE))

        assert error.message.endswith("attempted to modify the object, which is not supported for this operation")

    run_story(story)


def test_deletecollection_needs_all_objects_allowed() -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        for number in range(20):
            server.create(CONFIG_MAPS, config_map(f"m{number:02}"), WRITE, namespace="default")

        async def but_one(request: Object) -> Object:
            return DENIED if request["oldObject"]["metadata"]["name"] == "m13" else {}

        cluster.register(VALIDATING, webhook(cluster.hooks.on("/but-one", but_one)))
        every = Selection(CONFIG_MAPS, "default")

        await error_of(cluster, Forbidden, lambda: server.deletecollection(every, WRITE))
        assert len(server.list(every).items) == 20

        server.delete(CONFIG_MAPS, key("m13"), WRITE)
        await cluster.execute(lambda: server.deletecollection(every, WRITE))
        assert server.list(every).items == []

    run_story(story)


def test_webhook_configurations_are_never_reviewed() -> None:
    async def story(cluster: WebhookCluster) -> None:
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/no", DENIED)))

        await cluster.execute(lambda: cluster.server.delete(VALIDATING, Key("", "hooks"), WRITE))
        await cluster.create(CONFIG_MAPS, config_map("a"))

        assert cluster.hooks.asked == []

    run_story(story)


def test_custom_objects_are_sent_in_the_version_of_the_webhook() -> None:
    async def story(cluster: WebhookCluster) -> None:
        cluster.server.create(DEFINITIONS, definition(beta=True), WRITE)
        rules = [EVERYTHING | {"apiGroups": ["example.com"], "apiVersions": ["v1"]}]
        size = patch({"op": "replace", "path": "/spec/size", "value": 8})
        cluster.register(MUTATING, webhook(cluster.hooks.on("/grow", size), rules=rules))

        new = await cluster.create(WIDGETS_BETA, widget(of=WIDGETS_BETA, size=1))

        (asked,) = cluster.hooks.requests("/grow")
        assert (asked["resource"]["version"], asked["requestResource"]["version"]) == ("v1", "v1beta1")
        assert (asked["object"]["apiVersion"], asked["object"]["spec"]["size"]) == ("example.com/v1", 1)
        assert (new["apiVersion"], new["spec"]["size"]) == ("example.com/v1beta1", 8)

    run_story(story)


def test_namespaces_are_selected_by_their_new_labels() -> None:
    async def story(cluster: WebhookCluster) -> None:
        selector = {"matchLabels": {"guarded": "yes"}}
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/no", DENIED), namespaceSelector=selector))
        guarded = {"metadata": {"name": "n", "labels": {"guarded": "yes"}}}

        await error_of(cluster, Forbidden, lambda: cluster.server.create(NAMESPACES, guarded, WRITE))
        await cluster.create(NAMESPACES, {"metadata": {"name": "m"}})

        (asked,) = cluster.hooks.requests("/no")
        assert (asked["name"], asked["namespace"]) == ("n", "n")

    run_story(story)


def test_a_conversion_webhook_of_a_foreign_kind_is_not_called() -> None:
    """The embedded server converts without webhooks: other versions get the same fields under another apiVersion."""

    async def story(cluster: WebhookCluster) -> None:
        crd = definition(beta=True)
        client = {"url": "https://127.0.0.1:1/convert"}
        crd["spec"]["conversion"] = {
            "strategy": "Webhook",
            "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
        }
        cluster.server.create(DEFINITIONS, crd, WRITE)

        await cluster.create(WIDGETS, widget(size=2))

        assert cluster.server.get(WIDGETS_BETA, key("w"))["spec"]["size"] == 2

    run_story(story)


@pytest.mark.parametrize("subresource", ["binding", "eviction"])
@pytest.mark.parametrize("body", [7, [], {"metadata": 7}, {"kind": "Pod"}, {"metadata": {"labels": 7}}], ids=str)
def test_invalid_bodies_are_refused_before_or_after_a_review(subresource: str, body: Any) -> None:
    async def story(cluster: WebhookCluster) -> None:
        cluster.server.create(PODS, pod(), WRITE, namespace="default")
        selector = {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/no", DENIED), objectSelector=selector))
        before = cluster.server.revision

        await error_of(
            cluster,
            ApiError,
            lambda: cluster.server.create(PODS, body, WRITE, namespace="default", name="p", subresource=subresource),
        )

        assert cluster.server.revision == before

    run_story(story)
