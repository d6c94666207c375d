"""Events: what happened to an object, where people look for it (`kubectl describe`).

They are best effort. Recording one never waits and never fails; sending is done in the background, and what cannot be
sent after some tries is dropped. Nothing may depend on an event having been written.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.cluster.clock import Clock
from springtide.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound, NotSent
from springtide.cluster.event_correlation import (
    Correlator,
    EventType,
    Memory,
    Notice,
    Sighting,
    Subject,
    normal,
    warning,
)
from springtide.cluster.origins import Origin
from springtide.cluster.port import Patch, Transport, Write
from springtide.cluster.resources import Key, Object, Resource

__all__ = ["EVENTS", "EventSink", "EventType", "Notice", "Recorder", "Subject", "normal", "warning"]

EVENTS = Resource("", "v1", "events", "Event")
QUEUED = 1000
"""How many events may wait to be sent; more are dropped."""
TRIES = 12
PAUSE = 10.0
"""Seconds between two tries."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Earlier:
    """What to add to our count of an event to get the server's: another process may have counted before us."""

    count: int = 0


class EventSink:
    """Sends events, one after the other."""

    def __init__(self, transport: Transport, clock: Clock, *, permit: Callable[[], None]) -> None:
        self._transport = transport
        self._clock = clock
        self._permit = permit
        self._waiting: deque[tuple[str, Sighting]] = deque()
        self._sending = False
        self._changed: deque[asyncio.Future[None]] = deque()
        self._earlier: Memory[str, _Earlier] = Memory(_Earlier)
        self.sent = 0
        self.dropped = 0

    def put(self, component: str, sighting: Sighting) -> None:
        """Send an event soon, unless too many wait already."""
        if len(self._waiting) >= QUEUED:
            self.dropped += 1
            log.warning("dropped an event about %s %s: too many wait", sighting.subject.resource.kind, sighting.name)
            return
        self._waiting.append((component, sighting))
        self._wake()

    async def run(self) -> None:
        """Send events until cancelled."""
        while True:
            while not self._waiting:
                await self._change()
            component, sighting = self._waiting.popleft()
            self._sending = True
            try:
                await self._try(component, sighting)
            finally:
                self._sending = False
                self._wake()

    async def flushed(self) -> None:
        """Wait until nothing waits to be sent."""
        while self._waiting or self._sending:
            await self._change()

    async def _try(self, component: str, sighting: Sighting) -> None:
        for attempt in range(TRIES):
            if attempt:
                await self._clock.sleep(PAUSE)
            try:
                await self._send(component, sighting)
            except (AlreadyExists, Conflict, NotFound) as failure:
                # Somebody else wrote or removed it between our reading and our writing: look again.
                reason: ClusterError = failure
            except NotSent as failure:
                reason = failure
                break
            except ClusterError as failure:
                reason = failure
                if not failure.retriable:
                    break
            else:
                self.sent += 1
                return
        self.dropped += 1
        log.warning("dropped the event %s of %s: %s", sighting.name, component, reason)

    async def _send(self, component: str, sighting: Sighting) -> None:
        write = Write(component, sighting.reason, permit=self._permit)
        key = Key(sighting.subject.key.namespace or "default", sighting.name)
        body = _body(component, key, sighting)
        if sighting.count == 1:
            try:
                await self._transport.create(EVENTS, body, write, namespace=key.namespace)
            except AlreadyExists:
                pass
            else:
                self._earlier.recall(sighting.name).count = 0
                return
        try:
            current = await self._transport.get(EVENTS, key)
        except NotFound:
            # The server keeps events for a while only; this one was cleaned up and begins anew.
            await self._transport.create(EVENTS, body, write, namespace=key.namespace)
            self._earlier.recall(sighting.name).count = 1 - sighting.count
            return
        await self._count(key, current, sighting, write)

    async def _count(self, key: Key, current: Object, sighting: Sighting, write: Write) -> None:
        last = format_instant(sighting.last)
        seen = current.get("count", 1)
        if sighting.count == 1:
            if seen == 1 and current.get("firstTimestamp") == last:
                # Our own, sent by a try whose answer was lost.
                return
            self._earlier.recall(sighting.name).count = seen
        # The count is absolute, so that a try whose answer was lost counts nothing twice.
        count = self._earlier.recall(sighting.name).count + sighting.count
        patch = Patch.merge({"count": max(count, seen), "lastTimestamp": last, "message": sighting.message})
        await self._transport.patch(EVENTS, key, patch, write, precondition=Origin.of(current).precondition())

    async def _change(self) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changed.append(waiting)
        await waiting

    def _wake(self) -> None:
        while self._changed:
            waiting = self._changed.popleft()
            if not waiting.done():
                waiting.set_result(None)


class Recorder:
    """Records events of one controller."""

    def __init__(self, component: str, sink: EventSink, clock: Clock) -> None:
        self._component = component
        self._sink = sink
        self._clock = clock
        self._correlator = Correlator(component)

    def record(self, resource: Resource, of: Any, notice: Notice) -> None:
        """Tell what happened to an object; returns at once. `of` is the object, a view of it, its origin or key."""
        if isinstance(of, Key):
            subject = Subject(resource, of)
        else:
            origin = Origin.of(of)
            subject = Subject(resource, origin.key, origin.uid)
        sighting = self._correlator.see(subject, notice, self._clock.now())
        if sighting is not None:
            self._sink.put(self._component, sighting)


def _body(component: str, key: Key, sighting: Sighting) -> Object:
    subject = sighting.subject
    involved = {
        "apiVersion": subject.resource.api_version,
        "kind": subject.resource.kind,
        "name": subject.key.name,
        "namespace": subject.key.namespace,
        "uid": subject.uid,
    }
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "involvedObject": {name: value for name, value in involved.items() if value},
        "type": str(sighting.type),
        "reason": sighting.reason,
        "message": sighting.message,
        "count": 1,
        "firstTimestamp": format_instant(sighting.last),
        "lastTimestamp": format_instant(sighting.last),
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
    }
