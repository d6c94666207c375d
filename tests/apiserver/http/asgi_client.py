"""An ASGI client: sends requests to the application without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from springtide.apiserver import builtin
from springtide.apiserver.admission import ADMIN, WriteExecutor, execute_directly
from springtide.apiserver.http import ApiApp, TokenAuthenticator
from springtide.apiserver.server import ApiServer
from springtide.simulator.bootstrap import install

TOKEN = "token-of-the-tests"
NOW = 1_800_000_000
BEE: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "bees.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "bees", "kind": "Bee", "shortNames": ["b"], "categories": ["all"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "additionalPrinterColumns": [
                    {"name": "Legs", "type": "integer", "jsonPath": ".spec.legs"},
                    {"name": "First", "type": "string", "jsonPath": ".spec.flights[?(@.far==true)].to"},
                    {"name": "Since", "type": "date", "jsonPath": ".spec.since", "priority": 1},
                ],
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "An insect.",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "legs": {"type": "integer"},
                                    "since": {"type": "string"},
                                    "flights": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {"to": {"type": "string"}, "far": {"type": "boolean"}},
                                        },
                                    },
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                            "status": {"type": "object", "properties": {"well": {"type": "boolean"}}},
                        },
                    }
                },
            }
        ],
    },
}


@dataclass(slots=True)
class AsgiResponse:
    """A complete or partial response."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    chunks: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        """The body so far."""
        return b"".join(self.chunks)

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        """The decoded lines of a watch."""
        return [json.loads(line) for line in self.body.splitlines()]

    @property
    def warnings(self) -> list[str]:
        """The texts of warning headers."""
        texts = [value for name, value in self.headers if name == "warning"]
        return [json.loads(text.removeprefix("299 - ")) for text in texts]

    def header(self, name: str) -> str:
        """Return a header; empty where it is absent."""
        return dict(self.headers).get(name, "")


class AsgiClient:
    """A client of a fresh API server."""

    def __init__(self, *, executor: WriteExecutor = execute_directly, crds: bool = False) -> None:
        self.now = NOW
        self.server = ApiServer(now=lambda: self.now, random=Random(0), converter=builtin.convert)
        if crds:
            install(self.server)
        self.app = ApiApp(
            self.server, authenticate=TokenAuthenticator({TOKEN: ADMIN}), executor=executor, random=Random(0)
        )

    def request(self, method: str, target: str, body: Any = None, **headers: str) -> AsgiResponse:
        """Send one request and wait for the complete response."""
        return asyncio.run(self.send(method, target, body, None, None, **headers))

    async def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        on_chunk: Callable[[AsgiResponse], None] | None = None,
        leave: asyncio.Event | None = None,
        /,
        **headers: str,
    ) -> AsgiResponse:
        """Send a request; `on_chunk` is called for each chunk, and the client disconnects when `leave` is set."""
        got = AsgiResponse()
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": content, "more_body": False}
            await (leave or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                got.status = message["status"]
                got.headers = [(name.decode(), value.decode("latin-1")) for name, value in message["headers"]]
            elif message.get("body"):
                got.chunks.append(message["body"])
                if on_chunk is not None:
                    on_chunk(got)

        given = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json", "user-agent": "asker/1"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items() if value],
        }
        async with asyncio.timeout(20):
            await self.app(scope, receive, send)
        return got


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    """Return a pod."""
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


PODS = "/api/v1/namespaces/default/pods"
CONFIGS = "/api/v1/namespaces/default/configmaps"
BEES = "/apis/example.com/v1/namespaces/default/bees"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
