"""Requests to the application without a network: ASGI messages, given and taken."""

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
class Answered:
    """What came back."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    chunks: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        """All of the body."""
        return b"".join(self.chunks)

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        """The lines of a watch, read."""
        return [json.loads(line) for line in self.body.splitlines()]

    @property
    def warnings(self) -> list[str]:
        """The texts of the warnings."""
        texts = [value for name, value in self.headers if name == "warning"]
        return [json.loads(text.removeprefix("299 - ")) for text in texts]

    def header(self, name: str) -> str:
        """One header; empty where it is not there."""
        return dict(self.headers).get(name, "")


class Asker:
    """A client of a fresh server."""

    def __init__(self, *, executor: WriteExecutor = execute_directly, crds: bool = False) -> None:
        self.now = NOW
        self.server = ApiServer(now=lambda: self.now, random=Random(0), converter=builtin.convert)
        if crds:
            install(self.server)
        self.app = ApiApp(
            self.server, authenticate=TokenAuthenticator({TOKEN: ADMIN}), executor=executor, random=Random(0)
        )

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> Answered:
        """Put one request, and wait for all of the answer."""
        return asyncio.run(self.asked(method, target, body, None, None, **headers))

    async def asked(
        self,
        method: str,
        target: str,
        body: Any = None,
        heard: Callable[[Answered], None] | None = None,
        leave: asyncio.Event | None = None,
        /,
        **headers: str,
    ) -> Answered:
        """Put a request; `heard` is told of every chunk, and the client goes away when `leave` is set."""
        got = Answered()
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
                if heard is not None:
                    heard(got)

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
    """Make a pod."""
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


PODS = "/api/v1/namespaces/default/pods"
CONFIGS = "/api/v1/namespaces/default/configmaps"
BEES = "/apis/example.com/v1/namespaces/default/bees"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
