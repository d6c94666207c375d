"""Direct transports pass webhooks if they are given a `WriteExecutor`."""

from __future__ import annotations

import asyncio

import pytest
from tests.apiserver.objects import CONFIG_MAPS, PODS, WRITE, config_map, key, pod
from tests.apiserver.webhooks.webhook_server import MUTATING, VALIDATING, WebhookCluster, patch, run_story, webhook

from springtide.apiserver.admission import User
from springtide.apiserver.direct import DirectTransport
from springtide.cluster.errors import BadRequest, ConnectionLost, NotLeader
from springtide.cluster.resources import Object, Selection
from springtide.cluster.transport import Patch, Write


def test_direct_writes_are_reviewed_with_their_user() -> None:
    async def story(cluster: WebhookCluster) -> None:
        user = User("system:kube-scheduler")
        transport = DirectTransport(cluster.server, executor=cluster.reviews.execute, user=user)
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/no", {"allowed": False})))

        with pytest.raises(BadRequest, match="denied the request without explanation"):
            await transport.create(PODS, pod(), WRITE, namespace="default")

        assert cluster.hooks.requests("/no")[0]["userInfo"]["username"] == "system:kube-scheduler"
        assert (await transport.list(Selection(PODS))).items == []

    run_story(story)


def test_without_an_executor_no_webhook_is_called() -> None:
    async def story(cluster: WebhookCluster) -> None:
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/no", {"allowed": False})))

        await DirectTransport(cluster.server).create(PODS, pod(), WRITE, namespace="default")

        assert cluster.hooks.asked == []

    run_story(story)


def test_permit_is_called_right_before_the_effect() -> None:
    async def story(cluster: WebhookCluster) -> None:
        transport = DirectTransport(cluster.server, executor=cluster.reviews.execute)
        leading = True

        def permit() -> None:
            if not leading:
                raise NotLeader("the lease is lost")

        async def losing(_: Object) -> Object:
            nonlocal leading
            leading = False
            return patch({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}})

        cluster.register(MUTATING, webhook(cluster.hooks.on("/lose", losing)))
        before = cluster.server.revision

        with pytest.raises(NotLeader):
            await transport.create(CONFIG_MAPS, config_map("a"), Write("me", permit=permit), namespace="default")

        assert cluster.server.revision == before

    run_story(story)


def test_a_connection_cut_during_a_review_has_no_effect() -> None:
    async def story(cluster: WebhookCluster) -> None:
        transport = DirectTransport(cluster.server, executor=cluster.reviews.execute)

        async def cutting(_: Object) -> Object:
            transport.cut()
            return {}

        cluster.register(VALIDATING, webhook(cluster.hooks.on("/cut", cutting)))
        before = cluster.server.revision

        with pytest.raises(ConnectionLost):
            await transport.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")

        assert cluster.server.revision == before

    run_story(story)


def test_a_pending_review_does_not_block_other_requests() -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def thinking(_: Object) -> Object:
            reached.set()
            await go_on.wait()
            return {}

        hook = webhook(cluster.hooks.on("/think", thinking))
        cluster.register(VALIDATING, hook | {"objectSelector": {"matchLabels": {"slow": "yes"}}})
        transport = DirectTransport(server, executor=cluster.reviews.execute)
        slow = asyncio.create_task(
            transport.create(CONFIG_MAPS, config_map("slow", labels={"slow": "yes"}), WRITE, namespace="default")
        )
        await reached.wait()

        await transport.patch(CONFIG_MAPS, key("a"), Patch.merge({"data": {"k": "w"}}), WRITE)
        other = int(server.get(CONFIG_MAPS, key("a"))["metadata"]["resourceVersion"])
        go_on.set()

        assert int((await slow)["metadata"]["resourceVersion"]) > other

    run_story(story)
