"""Events: what happened to an object, where people look for it (`kubectl describe`).

They are best effort. Recording one never waits and never fails; sending is done in the background, and what cannot be
sent after some tries is dropped. Nothing may depend on an event having been written. One that fails goes to the end of
the queue, so that others wait no longer than a pause for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.cluster.backoff import Bucket, Rate
from springtide.cluster.clock import Clock
from springtide.cluster.controller import Permission
from springtide.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound
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

__all__ = ["EVENTS", "PERMISSIONS", "EventSink", "EventType", "Notice", "Recorder", "Subject", "normal", "warning"]

EVENTS = Resource("", "v1", "events", "Event")
PERMISSIONS = (Permission(EVENTS, ("get", "create", "patch")),)
QUEUED = 20_000
"""How many events may wait to be sent; more are dropped."""
PACE = Rate(per_second=50.0, burst=100)
"""How fast they are sent. When something happens to very many objects at once, telling people of it must not take the
server's time from doing it."""
TRIES = 12
PAUSE = 10.0
"""Seconds after a try that failed, for all: most likely it is the server that has trouble, not the event."""
LOOKS = 5
"""How often in one try an event is read again that others write at the same time."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Earlier:
    """What to add to our count of an event to get the server's: another process may have counted before us."""

    count: int = 0


@dataclass(slots=True, eq=False)
class _Pending:
    """An event that waits to be sent."""

    component: str
    sighting: Sighting
    tries: int = 0
    based: bool = False
    """Whether it is known what was counted before it: a try whose answer was lost has changed that."""


class EventSink:
    """Sends events, one after the other, and in floods not faster than `PACE`."""

    def __init__(self, transport: Transport, clock: Clock, *, permit: Callable[[], None]) -> None:
        self._transport = transport
        self._clock = clock
        self._permit = permit
        self._waiting: deque[_Pending] = deque()
        self._sending = False
        self._changed: deque[asyncio.Future[None]] = deque()
        self._earlier: Memory[str, _Earlier] = Memory(_Earlier)
        self._turns = Bucket(PACE)
        self._overflowing = False
        self.sent = 0
        self.dropped = 0

    def put(self, component: str, sighting: Sighting) -> None:
        """Send an event soon, unless too many wait already."""
        if len(self._waiting) >= QUEUED:
            self.dropped += 1
            if not self._overflowing:
                self._overflowing = True
                log.warning("events are dropped until fewer than %d wait, %s the first", QUEUED, sighting.name)
            return
        self._overflowing = False
        self._waiting.append(_Pending(component, sighting))
        self._wake()

    async def run(self) -> None:
        """Send events until cancelled."""
        while True:
            while not self._waiting:
                await self._change()
            if pause := self._turns.reserve(self._clock.monotonic()):
                await self._clock.sleep(pause)
            pending = self._waiting.popleft()
            self._sending = True
            try:
                sent = await self._try(pending)
            finally:
                self._sending = False
                self._wake()
            if not sent:
                await self._clock.sleep(PAUSE)

    async def flushed(self) -> None:
        """Wait until nothing waits to be sent."""
        while self._waiting or self._sending:
            await self._change()

    async def _try(self, pending: _Pending) -> bool:
        """Send an event, or drop it where that is hopeless; else let it wait for another try, and tell so."""
        pending.tries += 1
        try:
            await self._send(pending)
        except ClusterError as failure:
            if pending.tries < TRIES and (failure.retriable or isinstance(failure, AlreadyExists | Conflict)):
                self._put_last(pending)
                return False
            self.dropped += 1
            log.warning("dropped the event %s of %s: %s", pending.sighting.name, pending.component, failure)
        else:
            self.sent += 1
        return True

    def _put_last(self, pending: _Pending) -> None:
        """Let others go first, but for later sightings of the same event: they are counted in their order."""
        name = pending.sighting.name
        others = [one for one in self._waiting if one.sighting.name != name]
        same = [one for one in self._waiting if one.sighting.name == name]
        self._waiting = deque([*others, pending, *same])

    async def _send(self, pending: _Pending) -> None:
        for look in range(1, LOOKS + 1):
            try:
                await self._create_or_count(pending)
            except (AlreadyExists, Conflict):
                # Somebody else wrote or removed it between our reading and our writing: look again.
                if look == LOOKS:
                    raise
            else:
                return

    async def _create_or_count(self, pending: _Pending) -> None:
        component, sighting = pending.component, pending.sighting
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
        await self._count(key, current, pending, write)

    async def _count(self, key: Key, current: Object, pending: _Pending, write: Write) -> None:
        sighting = pending.sighting
        last = format_instant(sighting.last)
        seen = current.get("count", 1)
        if sighting.count == 1 and not pending.based:
            if seen == 1 and current.get("firstTimestamp") == last:
                # Our own, sent by a try whose answer was lost.
                return
            self._earlier.recall(sighting.name).count = seen
            pending.based = True
        # The count is absolute, so that a try whose answer was lost counts nothing twice.
        count = self._earlier.recall(sighting.name).count + sighting.count
        patch = Patch.merge({"count": max(count, seen), "lastTimestamp": last, "message": sighting.message})
        try:
            await self._transport.patch(EVENTS, key, patch, write, precondition=Origin.of(current).precondition())
        except NotFound as failure:
            raise Conflict(str(failure)) from failure

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
