"""Thousands of random requests: each gets a valid response, and the server keeps working."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
import yaml
from tests.apiserver.http.request_fuzzer import TOKEN, Fuzzer, Request

from springtide.apiserver.admission import ADMIN
from springtide.apiserver.conversion import convert
from springtide.apiserver.http import ApiApp, TokenAuthenticator
from springtide.apiserver.server import ApiServer
from springtide.cluster.resources import Selection, key_of
from springtide.cluster.transport import Write
from springtide.simulator.bootstrap import install

REQUESTS = 10_000
SEEDS = 8
"""The number of seeds, so that test workers can share the requests."""
TIMEOUT = 30.0
_EXPECTED_FAILURES = (501, 504)
"""Features that the embedded cluster lacks return 501; a future version times out, as on any API server."""
_NAMED = {"metadata": {"name": "sound", "namespace": "default", "labels": {"a": "b"}, "annotations": {"c": "d"}}}
_TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
}
VALID: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}} | _NAMED),
    ("/api/v1/namespaces/default/secrets", {"apiVersion": "v1", "kind": "Secret", "stringData": {"k": "v"}} | _NAMED),
    ("/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "spec": _TEMPLATE["spec"]} | _NAMED),
    (
        "/api/v1/namespaces/default/services",
        {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}} | _NAMED,
    ),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE},
        }
        | _NAMED,
    ),
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
        }
        | _NAMED,
    ),
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "second", "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}},
        },
    ),
    (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "spec": {"holderIdentity": "x", "renewTime": "2026-11-16T00:00:00.000000Z"},
        }
        | _NAMED,
    ),
    (
        "/apis/springtide.dev/v1alpha1/calendars",
        {
            "apiVersion": "springtide.dev/v1alpha1",
            "kind": "Calendar",
            "metadata": {"name": "sound"},
            "spec": {"timeZone": "Europe/Berlin", "dates": ["2026-12-24"], "yearly": ["01-01"]},
        },
    ),
    (
        "/apis/karpenter.sh/v1/nodepools",
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "sound"},
            "spec": {
                "template": {
                    "spec": {
                        "nodeClassRef": {"group": "springtide.dev", "kind": "NodeClass", "name": "x"},
                        "requirements": [{"key": "a", "operator": "In", "values": ["b"]}],
                    }
                },
                "disruption": {"budgets": [{"nodes": "10%", "schedule": "0 9 * * *", "duration": "8h"}]},
            },
        },
    ),
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "properties": {
                                    "spec": {
                                        "type": "object",
                                        "properties": {"size": {"type": "integer", "default": 1, "maximum": 9}},
                                        "x-kubernetes-validations": [{"rule": "self.size > 0"}],
                                    }
                                },
                            }
                        },
                    }
                ],
            },
        },
    ),
    (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "sound"},
            "webhooks": [
                {
                    "name": "a.example.com",
                    "clientConfig": {"url": "https://127.0.0.1:1/x"},
                    "rules": [
                        {"apiGroups": ["x"], "apiVersions": ["*"], "operations": ["*"], "resources": ["nothing"]}
                    ],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
            ],
        },
    ),
)
PLAIN = (
    "/",
    "/api",
    "/apis",
    "/api/v1",
    "/apis/apps",
    "/apis/apps/v1",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/apis/apps/v1",
    "/version",
    "/healthz",
    "/readyz",
    "/metrics",
    "/apis/example.com/v1/namespaces/default/widgets",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/api/v1/pods",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/finalize",
)


@dataclass(slots=True)
class AsgiResponse:
    """A response."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


async def answered(app: ApiApp, request: Request) -> AsgiResponse:
    """Send a request to the application, and disconnect a moment after its body."""
    sent = False
    got = AsgiResponse()

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": request.body, "more_body": False}
        await asyncio.sleep(0.005)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            got.status = message["status"]
            got.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        else:
            got.body += message.get("body", b"")

    path, _, _ = request.path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "https",
        "path": _unquoted(path),
        "raw_path": path.encode(),
        "query_string": request.query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in request.headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    async with asyncio.timeout(TIMEOUT):
        await app(scope, receive, send)
    return got


def _unquoted(path: str) -> str:
    from urllib.parse import unquote

    return unquote(path)


def populated_server() -> ApiServer:
    server = ApiServer(now=lambda: int(time.time()), random=Random(0), converter=convert)
    install(server)
    for collection, body in VALID:
        parts = collection.strip("/").split("/")
        api_version = body["apiVersion"]
        kind = server.catalogue.of_kind(api_version, body["kind"])
        assert kind is not None, parts
        made = server.create(
            kind.resource, body, Write("setup"), namespace="default" if kind.resource.namespaced else ""
        )
        if body["kind"] == "Pod":
            # Budgets only protect running pods; two budgets select this one.
            running = made | {"status": {"phase": "Running"}}
            server.update(kind.resource, key_of(made), running, Write("setup"), subresource="status")
    return server


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_requests_get_valid_responses(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    server = populated_server()
    app = ApiApp(server, authenticate=TokenAuthenticator({TOKEN: ADMIN}))
    fuzzer = Fuzzer(seed, VALID, plain=PLAIN)

    async def story() -> None:
        for number in range(REQUESTS // SEEDS):
            request = fuzzer.request()
            got = await answered(app, request)
            expected_text = f"request {number} of seed {seed}: {request}\n  got {got.status} {got.body[:500]!r}"
            assert 200 <= got.status < 500 or got.status in _EXPECTED_FAILURES, expected_text
            if got.status >= 400 and request.method != "HEAD":
                _check_refusal(got, expected_text)
        await _still_works(app, server)

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert not [record for record in caplog.records if record.exc_info]


def _check_refusal(got: AsgiResponse, expected_text: str) -> None:
    """Check that an error is a Status; only unknown paths get plain text."""
    media = got.headers["content-type"]
    if media.startswith("text/plain"):
        assert got.status == 404, expected_text
    else:
        assert (yaml.safe_load if "yaml" in media else json.loads)(got.body)["kind"] == "Status", expected_text


async def _still_works(app: ApiApp, server: ApiServer) -> None:
    """Check that all stored objects can be read, directly and over HTTP."""
    for kind in server.catalogue.all():
        if "list" in kind.verbs:
            server.list(Selection(kind.resource))
    valid = Request("GET", "/api/v1/pods", headers=(("authorization", f"Bearer {TOKEN}"),))
    got = await answered(app, valid)
    assert got.status == 200
    assert json.loads(got.body)["kind"] == "PodList"


@pytest.mark.parametrize(
    "header",
    [
        pytest.param((), id="no header"),
        pytest.param((("authorization", "Bearer wrong"),), id="a wrong token"),
        pytest.param((("authorization", f"Basic {TOKEN}"),), id="another scheme"),
        pytest.param((("authorization", "Bearer"),), id="no token"),
        pytest.param((("authorization", f"Bearer {TOKEN}x"),), id="longer token"),
        pytest.param((("authorization", f"Bearer {TOKEN[:-1]}"),), id="shorter token"),
    ],
)
def test_requests_without_a_token_are_unauthorized(header: tuple[tuple[str, str], ...]) -> None:
    app = ApiApp(populated_server(), authenticate=TokenAuthenticator({TOKEN: ADMIN}))

    async def story() -> None:
        for path in ("/api/v1/pods", "/apis", "/api/v1/namespaces/default/secrets/sound", "/nowhere"):
            got = await answered(app, Request("GET", path, headers=header))
            assert got.status == 401
            assert json.loads(got.body)["reason"] == "Unauthorized"

    asyncio.run(story())
