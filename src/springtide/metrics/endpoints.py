"""The operations endpoints of a process, for probes and Prometheus: `/metrics`, `/healthz` and `/readyz`.

Probes have a listener of their own (`serve_health`): a client that occupies all places of the others must not make the
kubelet restart the process. The health endpoints beside `/metrics` are for users.

`/healthz` fails when the event loop is blocked: that it answers at all is the important check. Both health endpoints
answer like those of Kubernetes components: `ok`, or, with `?verbose` and whenever a check fails, one line per check.

The kubelet restarts a process that is not alive; one that is not ready gets no requests, and rollouts wait for it.
Neither helps when the API server is down, so no check depends on it, and a cache that has synced once counts as synced:
during an outage the process keeps its caches, withholds writes, and recovers without a restart. A controller that
cannot be created, or a replica on standby, fails no check either.
"""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
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
from springtide.cluster.serving import RunningServer, serving


@dataclass(frozen=True, slots=True)
class HealthResult:
    """The result of one check."""

    name: str
    problem: str = ""
    """Empty: the check passed."""


HealthCheck: TypeAlias = Callable[[], Iterable[HealthResult]]
"""Checks something inside the process; must be quick, without I/O."""


def operations_app(
    registry: CollectorRegistry, *, alive: Sequence[HealthCheck] = (), ready: Sequence[HealthCheck] = ()
) -> Starlette:
    """Make the application; the checks of liveness are part of readiness."""
    return Starlette(routes=[Route("/metrics", _metrics(registry)), *_health_routes(alive, ready)])


_PROBE_IDLE_SECONDS = 5
"""How long a probe's connection is kept: probes connect anew every time, so only strangers keep idle connections."""


def serve_health(
    host: str, port: int, *, alive: Sequence[HealthCheck] = (), ready: Sequence[HealthCheck] = ()
) -> AbstractAsyncContextManager[RunningServer]:
    """Serve the health endpoints alone, for probes, within the block."""
    app = Starlette(routes=_health_routes(alive, ready))
    return serving(app, host=host, port=port, idle=_PROBE_IDLE_SECONDS)


def _health_routes(alive: Sequence[HealthCheck], ready: Sequence[HealthCheck]) -> list[Route]:
    return [Route("/healthz", _health("healthz", alive)), Route("/readyz", _health("readyz", (*alive, *ready)))]


def fact_check(name: str, fact: Callable[[], bool], otherwise: str) -> HealthCheck:
    """Make a check of one fact, with the message for when it is false."""

    def check() -> Iterator[HealthResult]:
        yield HealthResult(name, "" if fact() else otherwise)

    return check


def caches_synced(manager: Manager) -> HealthCheck:
    """Make the check that the caches of all controllers of a manager have synced once.

    A standby replica fills its caches, too, and is ready to take over once they are synced.
    """

    def check() -> Iterator[HealthResult]:
        for cache in manager.cache_health():
            yield HealthResult(f"cache {cache.selection}", _missing(cache))

    return check


def report(name: str, findings: Sequence[HealthResult]) -> str:
    """Format results as lines, with the overall result at the end."""
    lines = [
        f"[-]{finding.name} failed: {finding.problem}" if finding.problem else f"[+]{finding.name} ok"
        for finding in findings
    ]
    verdict = "failed" if any(finding.problem for finding in findings) else "passed"
    return "".join(f"{line}\n" for line in (*lines, f"{name} check {verdict}"))


def _missing(cache: CacheHealth) -> str:
    if cache.synced or cache.not_installed:
        return ""
    return cache.last_error or "not complete yet"


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
