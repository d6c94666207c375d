"""The operations endpoints of a process, for probes and Prometheus: `/metrics`, `/healthz` and `/readyz`.

`/healthz` answers as long as the event loop turns: that it answers at all is the check that matters. Both health
endpoints answer as those of Kubernetes' own components do: `ok`, or with `?verbose`, and whenever something is wrong, a
line for everything that was looked at.
"""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from springtide.metrics.checks import Check, Finding


def operations(registry: CollectorRegistry, *, alive: Sequence[Check] = (), ready: Sequence[Check] = ()) -> Starlette:
    """Make the application; who is not alive is not ready either."""
    return Starlette(
        routes=[
            Route("/metrics", _metrics(registry)),
            Route("/healthz", _health("healthz", alive)),
            Route("/readyz", _health("readyz", (*alive, *ready))),
        ]
    )


def report(name: str, findings: Sequence[Finding]) -> str:
    """Put findings into lines, with a verdict at the end."""
    lines = [
        f"[-]{finding.name} failed: {finding.problem}" if finding.problem else f"[+]{finding.name} ok"
        for finding in findings
    ]
    verdict = "failed" if any(finding.problem for finding in findings) else "passed"
    return "".join(f"{line}\n" for line in (*lines, f"{name} check {verdict}"))


def _health(name: str, checks: Sequence[Check]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        findings = [Finding("ping"), *(finding for check in checks for finding in check())]
        healthy = not any(finding.problem for finding in findings)
        body = report(name, findings) if "verbose" in request.query_params or not healthy else "ok"
        return PlainTextResponse(body, status_code=200 if healthy else 503, headers={"Cache-Control": "no-store"})

    return endpoint


def _metrics(registry: CollectorRegistry) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        body = encode(registry)
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            body = gzip.compress(body, compresslevel=1)
            headers["Content-Encoding"] = "gzip"
        return Response(body, headers=headers)

    return endpoint
