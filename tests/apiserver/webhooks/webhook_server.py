"""Webhooks on loopback with configurable responses, and requests to a server that calls them."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from tests.apiserver.objects import WRITE, make_server

from springtide.apiserver.admission import ExecutedWrite, User
from springtide.apiserver.server import ApiServer
from springtide.apiserver.webhooks import AdmissionWebhooks
from springtide.cluster.certificates import CertificatePair, make_authority, make_serving
from springtide.cluster.errors import ApiError
from springtide.cluster.resources import Object, Resource
from springtide.cluster.serving import TlsIdentity, serving
from springtide.cluster.transport import Write

USER = User("alice", ("testers", "system:authenticated"), "u-1")
MUTATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
EVERYTHING: Object = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}

Answer = Callable[[Object], Awaitable[Object | bytes]]
"""Returns the response, or the raw body, for a request."""


@cache
def authority() -> CertificatePair:
    return make_authority("tests", now=int(time.time()), seconds=3600)


@cache
def identity(*names: str) -> TlsIdentity:
    return TlsIdentity(make_serving(authority(), names, now=int(time.time()), seconds=3600))


def bundle(pair: CertificatePair) -> str:
    return base64.b64encode(pair.certificate).decode()


@dataclass
class WebhookServer:
    """A webhook server: each path has a response, and all requests are recorded."""

    port: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, Object]] = field(default_factory=list)

    def client(self, path: str) -> Object:
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": bundle(authority())}

    def on(self, path: str, answer: Answer | Object | bytes) -> Object:
        """Configure the response of a path; returns its `clientConfig`."""

        async def always(_: Object) -> Object | bytes:
            assert not callable(answer)
            return answer

        self.answers[path] = answer if callable(answer) else always
        return self.client(path)

    def requests(self, path: str) -> list[Object]:
        return [request for asked, request in self.asked if asked == path]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            part = await receive()
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        review = json.loads(body)
        self.asked.append((scope["path"], review["request"]))
        answer = await self.answers[scope["path"]](review["request"])
        status = 200
        if isinstance(answer, dict):
            status = answer.pop("http", 200)
            response = {"uid": review["request"]["uid"], "allowed": True} | answer
            answer = json.dumps(
                {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
            ).encode()
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]}
        )
        await send({"type": "http.response.body", "body": answer})


@dataclass
class WebhookCluster:
    """A server with webhooks, and requests to it."""

    server: ApiServer
    hooks: WebhookServer
    reviews: AdmissionWebhooks

    async def execute(self, verb: Callable[[], Any], user: User = USER) -> ExecutedWrite[Any]:
        return await self.reviews.execute(verb, user)

    def register(self, resource: Resource, *webhooks: Object, name: str = "hooks") -> None:
        self.server.create(resource, {"metadata": {"name": name}, "webhooks": list(webhooks)}, Write("admin"))

    async def create(self, resource: Resource, body: Object, write: Write = WRITE) -> Object:
        namespace = "default" if resource.namespaced else ""
        created: Object = (
            await self.execute(lambda: self.server.create(resource, body, write, namespace=namespace))
        ).value
        return created


def webhook(client: Object, *, name: str = "hook.example.com", **fields: Any) -> Object:
    """Return a webhook that matches everything."""
    return {
        "name": name,
        "clientConfig": client,
        "rules": [EVERYTHING],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


def patch(*operations: Object) -> Object:
    """Return a response with a patch."""
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


@asynccontextmanager
async def webhook_cluster(server: ApiServer | None = None) -> AsyncIterator[WebhookCluster]:
    hooks = WebhookServer()
    async with serving(hooks, identity=identity("127.0.0.1", "localhost", "hook.default.svc")) as served:
        hooks.port = served.port
        server = server or make_server()
        async with AdmissionWebhooks(server) as reviews:
            yield WebhookCluster(server, hooks, reviews)


def run_story(story: Callable[[WebhookCluster], Awaitable[None]], server: ApiServer | None = None) -> None:
    """Run a coroutine in a cluster with webhooks."""

    async def main() -> None:
        async with webhook_cluster(server) as cluster:
            await story(cluster)

    asyncio.run(main())


DENIED: Object = {"allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": "no"}}


def label_response(name: str, value: str = "yes") -> Object:
    """Return a response that adds a label."""
    return patch({"op": "add", "path": "/metadata/labels", "value": {name: value}})


async def error_of(cluster: WebhookCluster, error: type[ApiError], verb: Callable[[], Any]) -> ApiError:
    """Return the error of a request that must fail."""
    with pytest.raises(error) as caught:
        await cluster.execute(verb)
    return caught.value
