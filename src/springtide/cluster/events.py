"""Kubernetes Events about objects (`kubectl describe` shows them): recording, correlation and sending.

Events are best effort. Recording one never waits and never fails; they are sent in the background, and an event that
still fails after some tries is dropped. Nothing may depend on an event. One that fails moves to the end of the queue.

As in client-go, equal events are counted, similar ones are combined, and there is a rate limit for each object; the
numbers are those of Kubernetes' own components.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from springtide.apis.forecast import format_instant
from springtide.apis.redaction import redacted
from springtide.cluster.clock import Clock, RateLimit, TokenBucket
from springtide.cluster.controller import Permission
from springtide.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import ObjectVersion, Patch, Transport, Write

SIMILAR = 10
"""After so many different events about one object with one reason, further ones are combined into one."""
SIMILAR_WITHIN = 600
"""Seconds without a similar event after which their count restarts."""
BURST = 25
"""Events about one object that may be sent at once."""
REFILL = 300
"""Seconds after which one more event may be sent."""
REMEMBERED = 4096
"""The capacity of each correlation cache."""

LONGEST_EVENT_MESSAGE = 1024
"""Longer messages are truncated; the conditions of the object have the full text."""

_LONGEST_NAME = 253 - 17
"""The part of an Event's name that is the name of the object; the rest is a dot and sixteen digits."""
_COMBINED = "(combined from similar events): "


class EventType(StrEnum):
    """The type of an event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class EventContent:
    """The type, reason and message of an event.

    Events with the same `same` are counted as one; by default it is the message. Set it if the message has numbers
    that change each time.
    """

    type: EventType
    reason: str
    message: str
    same: str = ""


def normal(reason: str, message: str, *, same: str = "") -> EventContent:
    """Make the content of a normal event."""
    return EventContent(EventType.NORMAL, reason, message, same)


def warning(reason: str, message: str, *, same: str = "") -> EventContent:
    """Make the content of a warning."""
    return EventContent(EventType.WARNING, reason, message, same)


@dataclass(frozen=True, slots=True)
class InvolvedObject:
    """The object that an event is about."""

    resource: Resource
    key: Key
    uid: str = ""


@dataclass(frozen=True, slots=True)
class CountedEvent:
    """An event to send, with its count so far, and the times of the first and the last one."""

    involved: InvolvedObject
    name: str
    type: EventType
    reason: str
    message: str
    count: int
    first: int
    last: int


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruMap(Generic[K, V]):
    """A mapping that drops the least recently used entry when it is full."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get_or_create(self, key: K) -> V:
        """Return the entry of a key, or make one."""
        if key not in self._entries:
            self._entries[key] = self._make()
            if len(self._entries) > REMEMBERED:
                self._entries.popitem(last=False)
        self._entries.move_to_end(key)
        return self._entries[key]


@dataclass(slots=True)
class _Similar:
    """Different events about one object with one reason."""

    last: int = 0
    seen: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Count:
    """The count of one event, and the time of the first one."""

    count: int = 0
    first: int = 0


@dataclass(slots=True)
class _Allowance:
    """The token bucket of one object."""

    tokens: float = BURST
    since: int | None = None

    def take(self, now: int) -> bool:
        """Take a token, if there is one."""
        passed = max(now - self.since, 0) if self.since is not None else 0
        self.tokens = min(BURST, self.tokens + passed / REFILL)
        self.since = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class EventCorrelator:
    """Counts, combines and limits the events of one component."""

    def __init__(self, component: str) -> None:
        self._component = component
        self._similar: LruMap[tuple[InvolvedObject, EventType, str], _Similar] = LruMap(_Similar)
        self._counts: LruMap[str, _Count] = LruMap(_Count)
        self._allowances: LruMap[tuple[InvolvedObject, EventType], _Allowance] = LruMap(_Allowance)

    def correlate(self, involved: InvolvedObject, content: EventContent, now: int) -> CountedEvent | None:
        """Count an event, and give the one to send, if there is one."""
        same = content.same or content.message
        message = redacted(content.message)
        if self._is_combined(involved, content, same, now):
            same, message = _COMBINED, _COMBINED + message
        name = self._name(involved, content, same)
        counted = self._counts.get_or_create(name)
        counted.count += 1
        # After a step of the clock back, the first event must not lie after the last one.
        counted.first = now if counted.count == 1 else min(counted.first, now)
        if not self._allowances.get_or_create((involved, content.type)).take(now):
            return None
        message = message if len(message) <= LONGEST_EVENT_MESSAGE else f"{message[: LONGEST_EVENT_MESSAGE - 1]}…"
        return CountedEvent(involved, name, content.type, content.reason, message, counted.count, counted.first, now)

    def _is_combined(self, involved: InvolvedObject, content: EventContent, same: str, now: int) -> bool:
        similar = self._similar.get_or_create((involved, content.type, content.reason))
        if now - similar.last > SIMILAR_WITHIN:
            similar.seen.clear()
        similar.last = now
        if same in similar.seen:
            return False
        if len(similar.seen) >= SIMILAR:
            return True
        similar.seen[same] = None
        return False

    def _name(self, involved: InvolvedObject, content: EventContent, same: str) -> str:
        """Derive the name from the content, so that a restarted process continues the count."""
        parts = (
            self._component,
            str(involved.resource),
            str(involved.key),
            involved.uid,
            content.type,
            content.reason,
            same,
        )
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return f"{involved.key.name[:_LONGEST_NAME].rstrip('-.')}.{digest[:16]}"


EVENTS = Resource("", "v1", "events", "Event")
PERMISSIONS = (Permission(EVENTS, ("get", "create", "patch")),)
QUEUED = 20_000
"""The capacity of the queue; further events are dropped."""
PACE = RateLimit(per_second=50.0, burst=100)
"""The rate limit of sending: events about thousands of objects must not slow down the writes that they are about."""
TRIES = 12
PAUSE = 10.0
"""Seconds without sending after a try that failed: most likely the API server has a problem, not the event."""
CONFLICT_RETRIES = 5
"""How often one try reads an event again after a conflict."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Earlier:
    """The count that an event already had on the server: another process may have recorded it before."""

    count: int = 0


@dataclass(slots=True, eq=False)
class _Pending:
    """An event in the queue."""

    component: str
    counted_event: CountedEvent
    tries: int = 0
    based: bool = False
    """Whether the earlier count is known; a try whose answer was lost may have changed the count since."""


class EventSink:
    """Sends events one by one, not faster than `PACE`."""

    def __init__(self, transport: Transport, clock: Clock, *, permit: Callable[[], None]) -> None:
        self._transport = transport
        self._clock = clock
        self._permit = permit
        self._waiting: deque[_Pending] = deque()
        self._sending = False
        self._changed: deque[asyncio.Future[None]] = deque()
        self._earlier: LruMap[str, _Earlier] = LruMap(_Earlier)
        self._turns = TokenBucket(PACE)
        self._overflowing = False
        self.sent = 0
        self.dropped = 0

    def put(self, component: str, counted_event: CountedEvent) -> None:
        """Queue an event, unless the queue is full."""
        if len(self._waiting) >= QUEUED:
            self.dropped += 1
            if not self._overflowing:
                self._overflowing = True
                log.warning("the event queue is full (%d), events are dropped from %s on", QUEUED, counted_event.name)
            return
        self._overflowing = False
        self._waiting.append(_Pending(component, counted_event))
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
        """Wait until the queue is empty."""
        while self._waiting or self._sending:
            await self._change()

    async def _try(self, pending: _Pending) -> bool:
        """Send an event, or drop it after a permanent failure; False if it is queued for another try."""
        pending.tries += 1
        try:
            await self._send(pending)
        except ClusterError as failure:
            if pending.tries < TRIES and (failure.retriable or isinstance(failure, AlreadyExists | Conflict)):
                self._put_last(pending)
                return False
            self.dropped += 1
            log.warning("dropped the event %s of %s: %s", pending.counted_event.name, pending.component, failure)
        else:
            self.sent += 1
        return True

    def _put_last(self, pending: _Pending) -> None:
        """Move an event to the end of the queue, before later counts of the same event."""
        name = pending.counted_event.name
        others = [each for each in self._waiting if each.counted_event.name != name]
        same = [each for each in self._waiting if each.counted_event.name == name]
        self._waiting = deque([*others, pending, *same])

    async def _send(self, pending: _Pending) -> None:
        for attempt in range(1, CONFLICT_RETRIES + 1):
            try:
                await self._create_or_count(pending)
            except (AlreadyExists, Conflict):
                # Another process wrote or deleted it between the read and the write.
                if attempt == CONFLICT_RETRIES:
                    raise
            else:
                return

    async def _create_or_count(self, pending: _Pending) -> None:
        component, counted_event = pending.component, pending.counted_event
        write = Write(component, counted_event.reason, permit=self._permit)
        key = Key(counted_event.involved.key.namespace or "default", counted_event.name)
        body = _body(component, key, counted_event)
        if counted_event.count == 1:
            try:
                await self._transport.create(EVENTS, body, write, namespace=key.namespace)
            except AlreadyExists:
                pass
            else:
                self._earlier.get_or_create(counted_event.name).count = 0
                return
        try:
            current = await self._transport.get(EVENTS, key)
        except NotFound:
            # The server deletes events after a while; this one starts again.
            await self._transport.create(EVENTS, body, write, namespace=key.namespace)
            self._earlier.get_or_create(counted_event.name).count = 1 - counted_event.count
            return
        await self._count(key, current, pending, write)

    async def _count(self, key: Key, current: Object, pending: _Pending, write: Write) -> None:
        counted_event = pending.counted_event
        last = format_instant(counted_event.last)
        seen = current.get("count", 1)
        if counted_event.count == 1 and not pending.based:
            if seen == 1 and current.get("firstTimestamp") == last:
                # It was sent by a try whose answer was lost.
                return
            self._earlier.get_or_create(counted_event.name).count = seen
            pending.based = True
        # The count is absolute, so that a try whose answer was lost does not count twice.
        count = self._earlier.get_or_create(counted_event.name).count + counted_event.count
        patch = Patch.merge({"count": max(count, seen), "lastTimestamp": last, "message": counted_event.message})
        try:
            await self._transport.patch(
                EVENTS, key, patch, write, precondition=ObjectVersion.of(current).precondition()
            )
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


class EventRecorder:
    """Records events of one controller."""

    def __init__(self, component: str, sink: EventSink, clock: Clock) -> None:
        self._component = component
        self._sink = sink
        self._clock = clock
        self._correlator = EventCorrelator(component)

    def record(self, resource: Resource, of: Any, content: EventContent) -> None:
        """Record an event; returns at once. `of` is the object, a view of it, its `ObjectVersion` or key."""
        if isinstance(of, Key):
            involved = InvolvedObject(resource, of)
        else:
            version = ObjectVersion.of(of)
            involved = InvolvedObject(resource, version.key, version.uid)
        counted_event = self._correlator.correlate(involved, content, self._clock.now())
        if counted_event is not None:
            self._sink.put(self._component, counted_event)


def _body(component: str, key: Key, counted_event: CountedEvent) -> Object:
    involved = counted_event.involved
    reference = {
        "apiVersion": involved.resource.api_version,
        "kind": involved.resource.kind,
        "name": involved.key.name,
        "namespace": involved.key.namespace,
        "uid": involved.uid,
    }
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "involvedObject": {name: value for name, value in reference.items() if value},
        "type": str(counted_event.type),
        "reason": counted_event.reason,
        "message": counted_event.message,
        "count": 1,
        "firstTimestamp": format_instant(counted_event.last),
        "lastTimestamp": format_instant(counted_event.last),
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
    }
