"""A server on loopback that answers queries by script."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class FakePrometheus:
    """Its requests and its URL."""

    port: int = 0
    secure: bool = False
    queries: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.secure else 'http'}://127.0.0.1:{self.port}"


def saying(text: str | bytes, status: int = 200, headers: dict[str, str] | None = None) -> Answering:
    """Answer always the same."""
    body = text.encode() if isinstance(text, str) else text

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, headers=headers)

    return answer


@asynccontextmanager
async def prometheus(answering: Answering, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakePrometheus]:
    """Serve for as long as the block lasts."""
    fake = FakePrometheus(secure=tls is not None)

    async def handle(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        fake.queries.append(str(form.get("query")))
        fake.paths.append(f"{request.method} {request.path_qs}")
        fake.headers.append(dict(request.headers))
        return await answering(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    fake.port = runner.addresses[0][1]
    try:
        yield fake
    finally:
        await runner.cleanup()
