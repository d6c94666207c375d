"""Counts the requests that go to a cluster: a transport around another one, which notices nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from time import perf_counter
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram

from springtide.cluster.errors import ApiError, ClusterError, RequestTimeout, TransportError
from springtide.cluster.port import Event, Transport
from springtide.cluster.resources import Resource
from springtide.cluster.wrapping import Request, WrappingTransport

T = TypeVar("T")

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_OK = "200"


class RequestMeter:
    """What is counted of requests. A request that the transport tried several times counts once."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "springtide_api_requests",
            "Requests to the API server, by how they ended: a status code, `timeout`, `no_answer`, `not_sent` or"
            " `given_up`.",
            ("verb", "resource", "code"),
            registry=registry,
        )
        self._seconds = Histogram(
            "springtide_api_request_duration_seconds",
            "How long requests took until their answer had come; watches not counted.",
            ("verb",),
            buckets=_SECONDS,
            registry=registry,
        )

    @contextmanager
    def request(self, verb: str, resource: Resource, subresource: str = "") -> Iterator[None]:
        """Count and time what happens in the block as one request."""
        began = perf_counter()
        with self.counting(verb, resource, subresource):
            try:
                yield
            finally:
                self._seconds.labels(verb).observe(perf_counter() - began)

    @contextmanager
    def counting(self, verb: str, resource: Resource, subresource: str = "") -> Iterator[None]:
        """Count what happens in the block as one request, however long it takes."""
        target = f"{resource}/{subresource}" if subresource else str(resource)
        code = _OK
        try:
            yield
        except ClusterError as failure:
            code = _code(failure)
            raise
        except asyncio.CancelledError:
            # Whoever asked could wait no longer, as a leader that has to renew its lease cannot.
            code = "given_up"
            raise
        finally:
            self._requests.labels(verb, target, code).inc()


class MeasuredTransport(WrappingTransport):
    """A transport whose requests are counted; a watch is when it has ended."""

    def __init__(self, inner: Transport, meter: RequestMeter) -> None:
        super().__init__(inner)
        self._meter = meter

    async def through(self, request: Request, send: Callable[[], Awaitable[T]]) -> T:
        """Count and time a request."""
        with self._meter.request(request.verb, request.resource, request.subresource):
            return await send()

    async def streaming(self, request: Request, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """Count a watch, however long it takes."""
        with self._meter.counting(request.verb, request.resource):
            async with aclosing(events) as told:
                async for event in told:
                    yield event


def _code(failure: ClusterError) -> str:
    if isinstance(failure, ApiError):
        return str(failure.code)
    if isinstance(failure, TransportError):
        return "timeout" if isinstance(failure, RequestTimeout) else "no_answer"
    return "not_sent"
