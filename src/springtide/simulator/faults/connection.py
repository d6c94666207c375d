"""A transport with faults: requests fail, are late or lose their answers; watches lag, repeat events and break.

A request has left the process once its `permit` allowed it. From then on the network carries it: it takes effect even
if the process stops meanwhile, unless the connection is cut.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from springtide.cluster.errors import ConnectionLost, Gone, Invalid, RequestTimeout
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import UNCONDITIONAL, ListPage, Patch, Precondition, Propagation, WatchEvent, Write
from springtide.simulator.faults.profile import ServerAvailability
from springtide.simulator.faults.requests import RequestFault, RequestFaultSource
from springtide.simulator.processes import Disconnectable
from springtide.simulator.virtual_time import VirtualLoop, settle


class FaultyStream:
    """A watch stream: events arrive in order, each `lag` seconds after it was sent."""

    def __init__(self, loop: VirtualLoop, *, lag: Callable[[], float]) -> None:
        self._loop = loop
        self._lag = lag
        self._arriving: deque[tuple[float, WatchEvent]] = deque()
        self._last = 0.0
        self._over = False
        self._failure: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    async def pump(self, events: AsyncIterator[WatchEvent]) -> None:
        """Receive events until the server or the network ends the stream."""
        failure: Exception | None = None
        try:
            async for event in events:
                if self._over:
                    return
                # An event never overtakes the one before it.
                self._last = max(self._last, self._loop.time() + self._lag())
                self._arriving.append((self._last, event))
                self._wake()
        except Exception as raised:  # passed on to the reader
            failure = raised
        self.break_off(failure)

    def break_off(self, failure: Exception | None) -> None:
        """End the stream: events that have arrived can still be read; those under way are lost on a failure."""
        if not self._over:
            self._over, self._failure = True, failure
            if failure is not None:
                now = self._loop.time()
                self._arriving = deque((at, event) for at, event in self._arriving if at <= now)
            self._wake()

    async def read(self) -> WatchEvent | None:
        """Return the next event, None at the end; raises the failure that broke the stream."""
        while True:
            at = self._arriving[0][0] if self._arriving else None
            if at is not None and at <= self._loop.time():
                return self._arriving.popleft()[1]
            if at is None and self._over:
                if self._failure is not None:
                    raise self._failure
                return None
            await self._woken(at)

    async def _woken(self, at: float | None) -> None:
        """Wait until the stream changes or its next event arrives."""
        waiting = self._waiting = self._loop.create_future()
        timer = None if at is None else self._loop.call_at(at, settle, waiting)
        try:
            await waiting
        finally:
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


T = TypeVar("T")

_REPLAYED = 25
"""The largest number of versions that a stream repeats."""


@dataclass(frozen=True, slots=True)
class SentRequest(Write):
    """A write that left a process: its sender, time and precondition, for invariants."""

    sender: str = ""
    at: float = 0.0
    precondition: Precondition = UNCONDITIONAL


class FaultyConnection:
    """The connection of one run of a process."""

    def __init__(
        self,
        inner: Disconnectable,
        *,
        loop: VirtualLoop,
        random: Random,
        availability: ServerAvailability,
        identity: str,
        left: Callable[[SentRequest], None],
        crossed: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._loop = loop
        self._fault_source = RequestFaultSource(availability, random)
        self._availability = availability
        self._identity = identity
        self._left = left
        self._crossed = crossed

    def cut(self) -> None:
        """Disconnect: nothing more takes effect, not even requests under way."""
        self._inner.cut()

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read one object."""
        return await self._request(lambda: self._inner.get(resource, key, subresource=subresource))

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> ListPage:
        """Read a page of objects; with a minimum version, possibly the state at that version."""
        source = self._fault_source
        if continue_ and source.happens(source.faults.expired):
            msg = "The provided continue parameter is too old to display a consistent list result."
            raise Gone(msg)

        async def read() -> ListPage:
            page = await self._inner.list(selection, limit=limit, continue_=continue_, version=version, exact=exact)
            if not version or exact or not source.happens(source.faults.stale):
                return page
            # Any state since the requested version is allowed; version 0 allows all.
            newest = int(page.version)
            older = newest - source.below(min(_REPLAYED, newest - max(1, int(version)) + 1))
            try:
                return await self._inner.list(selection, limit=limit, version=str(older), exact=True)
            except Gone:
                return page

        return await self._request(read)

    async def watch(
        self, selection: Selection, *, version: str = "", initial_events: bool = False, timeout: float | None = None
    ) -> AsyncGenerator[WatchEvent, None]:
        """Watch: events may be late, repeated, or end early."""
        source, faults = self._fault_source, self._fault_source.faults
        await self._request(_nothing)
        if initial_events and not self._availability.watch_list:
            msg = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            raise Invalid(msg)
        if version not in ("", "0"):
            if source.happens(faults.expired):
                msg = f"too old resource version: {version}"
                raise Gone(msg)
            if not initial_events and source.happens(faults.replay):
                version = str(max(1, int(version) - source.below(_REPLAYED)))
        lagging = source.happens(faults.lag)
        stream = FaultyStream(
            self._loop, lag=lambda: source.up_to(source.faults.longest_lag if lagging else source.faults.latency)
        )
        breaking = self._break_later(stream) if source.happens(faults.cut) else None
        events = self._inner.watch(selection, version=version, initial_events=initial_events, timeout=timeout)
        self._availability.opened(stream)
        pump = self._loop.create_owned_task(None, _pump(stream, events))
        try:
            while (event := await stream.read()) is not None:
                self._crossed()
                yield event
        finally:
            self._availability.closed(stream)
            pump.cancel()
            if breaking is not None:
                breaking.cancel()

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

        def send(sent: Write) -> Awaitable[Object]:
            return self._inner.create(resource, body, sent, namespace=namespace, name=name, subresource=subresource)

        return await self._write(write, send, UNCONDITIONAL)

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

        def send(sent: Write) -> Awaitable[Object]:
            return self._inner.patch(resource, key, patch, sent, subresource=subresource, precondition=precondition)

        return await self._write(write, send, precondition)

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
        """Delete an object."""

        def send(sent: Write) -> Awaitable[None]:
            return self._inner.delete(
                resource, key, sent, precondition=precondition, propagation=propagation, grace_seconds=grace_seconds
            )

        await self._write(write, send, precondition)

    async def _write(self, write: Write, send: Callable[[Write], Awaitable[T]], precondition: Precondition) -> T:
        sent: list[SentRequest] = []

        def permit() -> None:
            write.permit()
            left = SentRequest(
                write.manager,
                write.because,
                write.dry_run,
                sender=self._identity,
                at=self._loop.time(),
                precondition=precondition,
            )
            self._left(left)
            sent.append(left)

        conditional = precondition.version != ""
        return await self._request(lambda: send(sent[0]), permit=permit, conditional=conditional)

    async def _request(
        self, call: Callable[[], Awaitable[T]], *, permit: Callable[[], None] | None = None, conditional: bool = False
    ) -> T:
        if self._availability.is_calm:
            return await self._arrive_at_once(call, permit)
        fault = self._fault_source.draw(conditional=conditional)
        self._crossed()
        await asyncio.sleep(fault.queued)
        if permit is not None:
            permit()
        answer: asyncio.Future[T] = self._loop.create_future()
        self._loop.create_owned_task(None, self._travel(call, fault, answer))
        try:
            return await answer
        finally:
            self._crossed()

    async def _arrive_at_once(self, call: Callable[[], Awaitable[T]], permit: Callable[[], None] | None) -> T:
        """Make a request without faults: no random draw, no delay."""
        self._crossed()
        if permit is not None:
            permit()
        if self._availability.down:
            msg = "connection refused"
            raise ConnectionLost(msg)
        try:
            return await call()
        finally:
            self._crossed()

    async def _travel(self, call: Callable[[], Awaitable[T]], fault: RequestFault, answer: asyncio.Future[T]) -> None:
        """Deliver a request and its answer, even if the waiting process ends meanwhile."""
        if fault.client_timeout is not None:
            self._loop.call_later(fault.client_timeout, _fail, answer, RequestTimeout("nothing came back in time"))
        await asyncio.sleep(fault.there)
        if self._availability.down:
            _fail(answer, ConnectionLost("connection refused"))
            return
        if fault.refused is not None:
            await asyncio.sleep(fault.back)
            _fail(answer, fault.refused)
            return
        try:
            result = await call()
        except Exception as failure:  # passed on to the process that sent the request
            await asyncio.sleep(fault.back)
            _fail(answer, failure)
            return
        await asyncio.sleep(fault.back)
        if fault.lost is not None:
            _fail(answer, fault.lost)
        elif not answer.done():
            answer.set_result(result)

    def _break_later(self, stream: FaultyStream) -> asyncio.TimerHandle:
        source = self._fault_source
        failures: tuple[Exception | None, ...] = (
            None,
            ConnectionLost("connection reset by peer"),
            Gone("the resourceVersion for the provided watch is too old")
            if source.happens(source.faults.expired)
            else None,
        )
        return self._loop.call_later(
            source.up_to(source.faults.stream_life), stream.break_off, failures[source.below(len(failures))]
        )


async def _nothing() -> None:
    """Check only that the server is up."""


async def _pump(stream: FaultyStream, events: AsyncGenerator[WatchEvent, None]) -> None:
    async with aclosing(events) as closing:
        await stream.pump(closing)


def _fail(answer: asyncio.Future[Any], failure: Exception) -> None:
    if not answer.done():
        answer.set_exception(failure)
