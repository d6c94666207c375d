"""A server that answers by script, down to the byte: it plays every failure of networks and servers."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from springtide.cluster.clock import Backoff
from springtide.cluster.http import ClusterAccess, HttpSettings, HttpTransport, RetrySettings
from springtide.cluster.resources import Object, Resource

PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
HASTY = HttpSettings(
    connect=2,
    request=2,
    listing=2,
    watch_read_timeout=2,
    watch_grace=0.05,
    max_bytes=100_000,
    retries=RetrySettings(attempts=3, pauses=Backoff(first=0.001, longest=0.01), max_elapsed=1.5),
)


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Cut(Exception):
    """The server breaks the connection."""


Step = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """Records the requests, and answers them with the steps of a script; the last step is repeated."""

    steps: list[Step] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    secure: bool = False
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.secure else 'http'}://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self.writers.append(writer)
        try:
            while (asked := await read_request(reader, number)) is not None:
                self.asked.append(asked)
                step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
                await step(asked, writer)
                await writer.drain()
        except (Cut, ConnectionError):
            writer.transport.abort()
        finally:
            writer.close()

    def close_connections(self) -> None:
        """Close what is open, as a server does with connections that were idle for long."""
        for writer in self.writers:
            writer.close()


async def read_request(reader: asyncio.StreamReader, connection: int) -> Asked | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode().strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        name = name.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, body, connection)


@asynccontextmanager
async def playing(*steps: Step, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[Server]:
    """Serve these steps, one for each request, for as long as the block lasts."""
    server = Server(list(steps), secure=tls is not None)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", port, ssl=tls, limit=1 << 24)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for writer in server.writers:
            writer.transport.abort()
        await asyncio.sleep(0)


@asynccontextmanager
async def connected(
    server: Server, *, settings: HttpSettings = HASTY, below: str = "", **access: Any
) -> AsyncIterator[HttpTransport]:
    """Connect to a scripted server; `below` is the base path of its API."""
    async with HttpTransport(
        ClusterAccess(server.url + below, **access), settings=settings, random=Random(7)
    ) as transport:
        yield transport


def raw(code: int, body: bytes, **headers: str) -> bytes:
    """Write an answer as it goes over the wire; underscores in the names of headers are dashes."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {code} Whatever\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body


def answers(value: Any = None, *, code: int = 200, **headers: str) -> Step:
    """Answer with JSON."""
    body = value if isinstance(value, bytes) else json.dumps({} if value is None else value).encode()

    async def step(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(raw(code, body, **headers))

    return step


def refuses(code: int, reason: str, message: str = "no", *, details: Object | None = None, **headers: str) -> Step:
    """Answer with a Status."""
    return answers(status(code, reason, message, details), code=code, **headers)


def status(code: int, reason: str, message: str = "no", details: Object | None = None) -> Object:
    received = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return received | {"code": code, "reason": reason, "message": message, "details": details or {}}


async def cuts(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Break the connection instead of an answer."""
    raise Cut


async def hangs(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Never answer."""
    await asyncio.sleep(60)


def cuts_within(body: bytes) -> Step:
    """Begin an answer, and break the connection in the middle of it."""

    async def step(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(raw(200, body)[: -len(body) // 2])
        await writer.drain()
        await asyncio.sleep(0.01)
        raise Cut

    return step


def streams(*chunks: bytes, then: Step | None = None) -> Step:
    """Answer in chunks; `then` is done instead of an orderly end."""

    async def step(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for chunk in chunks:
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
        if then is not None:
            await asyncio.sleep(0.02)
            await then(asked, writer)
        writer.write(b"0\r\n\r\n")

    return step


def line(kind: str, received: Any) -> bytes:
    """Write one line of a watch."""
    return json.dumps({"type": kind, "object": received}).encode() + b"\n"


def pod(name: str, version: int = 1) -> Object:
    metadata = {"name": name, "namespace": "default", "resourceVersion": str(version), "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
