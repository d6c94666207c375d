"""Counts the requests that go to a cluster: a transport around another one, which notices nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Histogram

from springtide.cluster.errors import ApiError, ClusterError, RequestTimeout, TransportError
from springtide.cluster.port import UNCONDITIONAL, Event, Page, Patch, Precondition, Propagation, Transport, Write
from springtide.cluster.resources import Key, Object, Resource, Selection

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


class MeasuredTransport:
    """A transport whose requests are counted."""

    def __init__(self, inner: Transport, meter: RequestMeter) -> None:
        self._inner = inner
        self._meter = meter

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read one object."""
        with self._meter.request("get", resource, subresource):
            return await self._inner.get(resource, key, subresource=subresource)

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> Page:
        """Read a page of objects."""
        with self._meter.request("list", selection.resource):
            return await self._inner.list(selection, limit=limit, continue_=continue_, version=version, exact=exact)

    async def watch(
        self, selection: Selection, *, version: str = "", initial_events: bool = False, timeout: float | None = None
    ) -> AsyncGenerator[Event, None]:
        """Tell what happens; the request is counted when the stream has ended."""
        stream = self._inner.watch(selection, version=version, initial_events=initial_events, timeout=timeout)
        with self._meter.counting("watch", selection.resource):
            async with aclosing(stream) as events:
                async for event in events:
                    yield event

    async def create(
        self,
        resource: Resource,
        body: Object,
        write: Write,
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
    ) -> Object:
        """Create an object."""
        with self._meter.request("create", resource, subresource):
            return await self._inner.create(
                resource, body, write, namespace=namespace, name=name, subresource=subresource
            )

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Patch,
        write: Write,
        *,
        subresource: str = "",
        precondition: Precondition = UNCONDITIONAL,
    ) -> Object:
        """Change one object."""
        with self._meter.request("patch", resource, subresource):
            return await self._inner.patch(
                resource, key, patch, write, subresource=subresource, precondition=precondition
            )

    async def delete(
        self,
        resource: Resource,
        key: Key,
        write: Write,
        *,
        precondition: Precondition = UNCONDITIONAL,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Ask an object to go."""
        with self._meter.request("delete", resource):
            await self._inner.delete(
                resource, key, write, precondition=precondition, propagation=propagation, grace_seconds=grace_seconds
            )


def _code(failure: ClusterError) -> str:
    if isinstance(failure, ApiError):
        return str(failure.code)
    if isinstance(failure, TransportError):
        return "timeout" if isinstance(failure, RequestTimeout) else "no_answer"
    return "not_sent"
