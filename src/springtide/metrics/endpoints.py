"""What a process is asked about its health, and what it must not be blamed for.

A process that is not alive is killed and started again; one that is not ready gets no requests, and a rollout waits for
it. Neither helps when something else is broken. So nothing here asks whether the API server answers, and what was once
complete counts as complete: during an outage a process keeps what it knows, holds its writes back, and goes on by
itself. Nor is a process blamed for a controller that cannot be made, or for standing by: others of it do their work.

The operations endpoints of a process, for probes and Prometheus: `/metrics`, `/healthz` and `/readyz`.

`/healthz` answers as long as the event loop turns: that it answers at all is the check that matters. Both health
endpoints answer as those of Kubernetes' own components do: `ok`, or with `?verbose`, and whenever something is wrong, a
line for everything that was looked at.
"""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from springtide.cluster.health import CacheHealth
from springtide.cluster.manager import Manager


@dataclass(frozen=True, slots=True)
class HealthResult:
    """One thing that was looked at, and what is wrong with it."""

    name: str
    problem: str = ""
    """Empty where all is well."""


HealthCheck: TypeAlias = Callable[[], Iterable[HealthResult]]
"""Looks at something, now; quick, and with no question to anybody outside the process."""


def fact_check(name: str, fact: Callable[[], bool], otherwise: str) -> HealthCheck:
    """Make a check of one fact, with the words for when it is not so."""

    def check() -> Iterator[HealthResult]:
        yield HealthResult(name, "" if fact() else otherwise)

    return check


def caches_synced(manager: Manager) -> HealthCheck:
    """Make the check that a manager has read everything that its controllers need, at least once.

    A replica that stands by fills its caches as well, and is ready to take over when they are complete.
    """

    def check() -> Iterator[HealthResult]:
        for cache in manager.cache_health():
            yield HealthResult(f"cache {cache.selection}", _missing(cache))

    return check


def _missing(cache: CacheHealth) -> str:
    if cache.synced or cache.not_installed:
        return ""
    return cache.last_error or "not complete yet"


def operations_app(
    registry: CollectorRegistry, *, alive: Sequence[HealthCheck] = (), ready: Sequence[HealthCheck] = ()
) -> Starlette:
    """Make the application; who is not alive is not ready either."""
    return Starlette(
        routes=[
            Route("/metrics", _metrics(registry)),
            Route("/healthz", _health("healthz", alive)),
            Route("/readyz", _health("readyz", (*alive, *ready))),
        ]
    )


def report(name: str, findings: Sequence[HealthResult]) -> str:
    """Put findings into lines, with a verdict at the end."""
    lines = [
        f"[-]{finding.name} failed: {finding.problem}" if finding.problem else f"[+]{finding.name} ok"
        for finding in findings
    ]
    verdict = "failed" if any(finding.problem for finding in findings) else "passed"
    return "".join(f"{line}\n" for line in (*lines, f"{name} check {verdict}"))


def _health(name: str, checks: Sequence[HealthCheck]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        findings = [HealthResult("ping"), *(finding for check in checks for finding in check())]
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
