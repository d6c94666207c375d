"""Calling webhooks over the network, and the messages of failures."""

from __future__ import annotations

import asyncio
import base64
import time
from typing import Any

import pytest
from tests.apiserver.objects import CONFIG_MAPS, PODS, SERVICES, WRITE, config_map
from tests.apiserver.webhooks.webhook_server import (
    MUTATING,
    VALIDATING,
    WebhookCluster,
    WebhookServer,
    authority,
    bundle,
    identity,
    patch,
    run_story,
    webhook,
)

from springtide.cluster.certificates import make_authority
from springtide.cluster.errors import ServerError
from springtide.cluster.resources import Object
from springtide.cluster.serving import serving

_FAILED = 'Internal error occurred: failed calling webhook "hook.example.com": '


async def failed(cluster: WebhookCluster, client: Object, **fields: Any) -> str:
    """Return the message for a failed webhook, without its constant prefix."""
    cluster.register(VALIDATING, webhook(client, timeoutSeconds=1, **fields))
    with pytest.raises(ServerError) as caught:
        await cluster.create(CONFIG_MAPS, config_map("a"))
    error = caught.value
    assert (error.code, error.answered) == (500, "InternalError")
    assert error.message.removeprefix("Internal error occurred: ") == error.causes[0].message
    assert error.message.startswith(_FAILED)
    return error.message.removeprefix(_FAILED)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({"http": 404}, "the server could not find the requested resource", id="404"),
        pytest.param({"http": 302}, "the server responded with the status code 302", id="a redirect"),
        pytest.param({"http": 500}, 'an error on the server ("{', id="500"),
        pytest.param(
            b"", "0-length response with status code: 200 and content type: application/json", id="empty response"
        ),
        pytest.param(b"nonsense", "couldn't get version/kind; json parse error", id="not JSON"),
        pytest.param(b" " * (17 << 20), "the answer has more than 16777216 bytes", id="response too large"),
    ],
)
def test_invalid_responses(answer: Object | bytes, expected: str) -> None:
    async def story(cluster: WebhookCluster) -> None:
        words = await failed(cluster, cluster.hooks.on("/bad", answer))

        assert words.startswith(f"failed to call webhook: {expected}")

    run_story(story)


def test_a_response_after_the_timeout() -> None:
    async def story(cluster: WebhookCluster) -> None:
        never = asyncio.Event()

        async def slow(_: Object) -> Object:
            await never.wait()
            return {}

        client = cluster.hooks.on("/slow", slow)
        words = await failed(cluster, client)
        never.set()

        url = f"https://127.0.0.1:{cluster.hooks.port}/slow?timeout=1s"
        assert words == f'failed to call webhook: Post "{url}": context deadline exceeded'

    run_story(story)


def test_an_untrusted_certificate() -> None:
    async def story(cluster: WebhookCluster) -> None:
        other = make_authority("other", now=int(time.time()), seconds=3600)

        words = await failed(cluster, cluster.hooks.on("/hook", {}) | {"caBundle": bundle(other)})

        assert words.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")
        assert cluster.hooks.asked == []

    run_story(story)


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        pytest.param({"caBundle": None}, "x509: certificate signed by unknown authority", id="without a bundle"),
        pytest.param(
            {"caBundle": base64.b64encode(b"nonsense").decode()},
            "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block",
            id="bundle without certificates",
        ),
        pytest.param({"caBundle": "%%"}, "unable to parse bytes as PEM block", id="bundle is not base64"),
    ],
)
def test_ca_bundles(client: Object, expected: str) -> None:
    async def story(cluster: WebhookCluster) -> None:
        given = cluster.hooks.on("/hook", {}) | client

        words = await failed(cluster, {name: value for name, value in given.items() if value is not None})

        assert words.endswith(expected)
        assert cluster.hooks.asked == []

    run_story(story)


def test_a_certificate_for_another_name() -> None:
    async def story(cluster: WebhookCluster) -> None:
        hooks = WebhookServer()
        async with serving(hooks, identity=identity("elsewhere.example.com")) as served:
            hooks.port = served.port
            words = await failed(cluster, hooks.client("/hook"))

        assert words.endswith("tls: failed to verify certificate: x509: certificate is not valid for 127.0.0.1")

    run_story(story)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param(
            "https://127.0.0.1:1/x", "dial tcp 127.0.0.1:1: connect: connection refused", id="connection refused"
        ),
        pytest.param("https://localhost:1", "dial tcp localhost:1: connect: connection refused", id="unknown host"),
    ],
)
def test_connection_failures(url: str, expected: str) -> None:
    async def story(cluster: WebhookCluster) -> None:
        words = await failed(cluster, {"url": url, "caBundle": bundle(authority())})

        assert words.endswith(expected)

    run_story(story)


def test_a_server_without_tls() -> None:
    async def story(cluster: WebhookCluster) -> None:
        async with serving(WebhookServer()) as served:
            client = {"url": f"https://127.0.0.1:{served.port}/", "caBundle": bundle(authority())}
            words = await failed(cluster, client)

        assert words.startswith(f'failed to call webhook: Post "https://127.0.0.1:{served.port}/?timeout=1s": ')

    run_story(story)


def test_a_service_with_an_external_name_is_resolved() -> None:
    async def story(cluster: WebhookCluster) -> None:
        hooks = cluster.hooks
        hooks.on("/path", {"warnings": ["reached"]})
        leading = {"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        cluster.server.create(SERVICES, leading, WRITE, namespace="default")
        service = {"namespace": "default", "name": "hook", "path": "/path", "port": hooks.port}
        cluster.register(VALIDATING, webhook({"service": service, "caBundle": bundle(authority())}))

        done = await cluster.execute(
            lambda: cluster.server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        )

        assert done.warnings == ("reached",)

    run_story(story)


def test_a_service_must_have_the_certificate_of_its_name() -> None:
    async def story(cluster: WebhookCluster) -> None:
        leading = {"metadata": {"name": "other"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        cluster.server.create(SERVICES, leading, WRITE, namespace="default")
        service = {"namespace": "default", "name": "other", "port": cluster.hooks.port}

        words = await failed(cluster, {"service": service, "caBundle": bundle(authority())})

        assert words.endswith("x509: certificate is not valid for other.default.svc")

    run_story(story)


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        pytest.param("gone", 'service "gone" not found', id="no such service"),
        pytest.param(
            "pods",
            'service "pods" is of type ClusterIP, and the embedded cluster has no pod network: '
            "use a service of type ExternalName, or clientConfig.url",
            id="service without an external name",
        ),
    ],
)
def test_services_that_cannot_be_resolved(service: str, expected: str) -> None:
    async def story(cluster: WebhookCluster) -> None:
        cluster.server.create(
            SERVICES, {"metadata": {"name": "pods"}, "spec": {"ports": [{"port": 443}]}}, WRITE, namespace="default"
        )
        client = {"service": {"namespace": "default", "name": service}, "caBundle": bundle(authority())}

        words = await failed(cluster, client)

        url = f"https://{service}.default.svc:443/?timeout=1s"
        assert words == f'failed to call webhook: Post "{url}": {expected}'

    run_story(story)


@pytest.mark.parametrize("resource", [MUTATING, VALIDATING], ids=["mutating", "validating"])
def test_failures_are_ignored_with_policy_ignore(resource: Any) -> None:
    async def story(cluster: WebhookCluster) -> None:
        nowhere = {"url": "https://127.0.0.1:1/"}
        cluster.register(resource, webhook(nowhere, failurePolicy="Ignore"), name="a")
        cluster.register(MUTATING, webhook(cluster.hooks.on("/next", {"warnings": ["asked"]})), name="b")

        done = await cluster.execute(
            lambda: cluster.server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        )

        assert done.warnings == ("asked",)

    run_story(story)


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "remove", "path": "/metadata/nothing"}, id="patch of a missing path"),
        pytest.param({"op": "dance", "path": "/metadata"}, id="unknown patch operation"),
        pytest.param({"op": "replace", "path": "", "value": 7}, id="patch removes the object"),
        pytest.param({"op": "replace", "path": "/metadata", "value": 7}, id="patch removes metadata"),
    ],
)
def test_an_inapplicable_patch_fails_with_any_policy(policy: str, operation: Object) -> None:
    async def story(cluster: WebhookCluster) -> None:
        cluster.register(MUTATING, webhook(cluster.hooks.on("/patch", patch(operation)), failurePolicy=policy))
        before = cluster.server.revision

        with pytest.raises(ServerError, match=r'Internal error occurred: admission webhook "hook\.example\.com" '):
            await cluster.create(
                PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            )

        assert cluster.server.revision == before

    run_story(story)
