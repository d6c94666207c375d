"""Which events are worth sending: the same one is counted, similar ones are combined, floods are cut off.

The numbers are those of Kubernetes' own components, so that our events behave as people know them.

Events: what happened to an object, where people look for it (`kubectl describe`).

They are best effort. Recording one never waits and never fails; sending is done in the background, and what cannot be
sent after some tries is dropped. Nothing may depend on an event having been written. One that fails goes to the end of
the queue, so that others wait no longer than a pause for it.
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
from springtide.cluster.clock import Clock, RateLimit, TokenBucket
from springtide.cluster.controller import Permission
from springtide.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import ObjectVersion, Patch, Transport, Write

SIMILAR = 10
"""So many different events about one object for one reason, and from then on they are combined into one."""
SIMILAR_WITHIN = 600
"""Seconds without a similar event after which the counting starts anew."""
BURST = 25
"""So many events about one object may be sent at once."""
REFILL = 300
"""Seconds after which one more may be."""
REMEMBERED = 4096
"""How many objects and events are kept in mind; the one not seen for longest is forgotten."""

LONGEST_EVENT_MESSAGE = 1024
"""Longer ones are cut: those who want it all find it in the conditions of the object."""

_LONGEST_NAME = 253 - 17
"""What a name of the API leaves to that of the object, besides a dot and sixteen digits."""
_COMBINED = "(combined from similar events): "


class EventType(StrEnum):
    """Whether an event is just told, or somebody should look."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class EventContent:
    """Something that happened to an object, for people.

    `same` is what makes two notices the same; the message where it is empty. Give one where a message holds numbers
    that change each time.
    """

    type: EventType
    reason: str
    message: str
    same: str = ""


def normal(reason: str, message: str, *, same: str = "") -> EventContent:
    """Tell that something went as it should."""
    return EventContent(EventType.NORMAL, reason, message, same)


def warning(reason: str, message: str, *, same: str = "") -> EventContent:
    """Tell that somebody should look."""
    return EventContent(EventType.WARNING, reason, message, same)


@dataclass(frozen=True, slots=True)
class InvolvedObject:
    """The object that an event is about."""

    resource: Resource
    key: Key
    uid: str = ""


@dataclass(frozen=True, slots=True)
class CountedEvent:
    """An event to send: how often it was seen by now, and when first and last."""

    subject: InvolvedObject
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
    """A mapping that forgets what was not asked for in the longest time."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get_or_create(self, key: K) -> V:
        """Give what is kept under a key, or something new."""
        if key not in self._entries:
            self._entries[key] = self._make()
            if len(self._entries) > REMEMBERED:
                self._entries.popitem(last=False)
        self._entries.move_to_end(key)
        return self._entries[key]


@dataclass(slots=True)
class _Similar:
    """Different events about one object for one reason."""

    last: int = 0
    seen: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Count:
    """How often one event was seen, and when first."""

    count: int = 0
    first: int = 0


@dataclass(slots=True)
class _Allowance:
    """How many more events one object may have; tokens come back with time."""

    tokens: float = BURST
    since: int | None = None

    def take(self, now: int) -> bool:
        """Use one, if there is one left."""
        passed = max(now - self.since, 0) if self.since is not None else 0
        self.tokens = min(BURST, self.tokens + passed / REFILL)
        self.since = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class EventCorrelator:
    """The memory of one component about the events that it has seen."""

    def __init__(self, component: str) -> None:
        self._component = component
        self._similar: LruMap[tuple[InvolvedObject, EventType, str], _Similar] = LruMap(_Similar)
        self._counts: LruMap[str, _Count] = LruMap(_Count)
        self._allowances: LruMap[tuple[InvolvedObject, EventType], _Allowance] = LruMap(_Allowance)

    def see(self, subject: InvolvedObject, notice: EventContent, now: int) -> CountedEvent | None:
        """Take note of a notice, and give the event to send, if there is one."""
        same = notice.same or notice.message
        message = notice.message
        if self._is_one_of_many(subject, notice, same, now):
            same, message = _COMBINED, _COMBINED + message
        name = self._name(subject, notice, same)
        counted = self._counts.get_or_create(name)
        counted.count += 1
        counted.first = now if counted.count == 1 else counted.first
        if not self._allowances.get_or_create((subject, notice.type)).take(now):
            return None
        message = message if len(message) <= LONGEST_EVENT_MESSAGE else f"{message[: LONGEST_EVENT_MESSAGE - 1]}…"
        return CountedEvent(subject, name, notice.type, notice.reason, message, counted.count, counted.first, now)

    def _is_one_of_many(self, subject: InvolvedObject, notice: EventContent, same: str, now: int) -> bool:
        similar = self._similar.get_or_create((subject, notice.type, notice.reason))
        if now - similar.last > SIMILAR_WITHIN:
            similar.seen.clear()
        similar.last = now
        if same in similar.seen:
            return False
        if len(similar.seen) >= SIMILAR:
            return True
        similar.seen[same] = None
        return False

    def _name(self, subject: InvolvedObject, notice: EventContent, same: str) -> str:
        """Name the event after what it says, so that a restarted process goes on counting the same one."""
        parts = (
            self._component,
            str(subject.resource),
            str(subject.key),
            subject.uid,
            notice.type,
            notice.reason,
            same,
        )
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return f"{subject.key.name[:_LONGEST_NAME].rstrip('-.')}.{digest[:16]}"


EVENTS = Resource("", "v1", "events", "Event")
PERMISSIONS = (Permission(EVENTS, ("get", "create", "patch")),)
QUEUED = 20_000
"""How many events may wait to be sent; more are dropped."""
PACE = RateLimit(per_second=50.0, burst=100)
"""How fast they are sent. When something happens to very many objects at once, telling people of it must not take the
server's time from doing it."""
TRIES = 12
PAUSE = 10.0
"""Seconds after a try that failed, for all: most likely it is the server that has trouble, not the event."""
CONFLICT_RETRIES = 5
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
    sighting: CountedEvent
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
        self._earlier: LruMap[str, _Earlier] = LruMap(_Earlier)
        self._turns = TokenBucket(PACE)
        self._overflowing = False
        self.sent = 0
        self.dropped = 0

    def put(self, component: str, sighting: CountedEvent) -> None:
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
        for look in range(1, CONFLICT_RETRIES + 1):
            try:
                await self._create_or_count(pending)
            except (AlreadyExists, Conflict):
                # Somebody else wrote or removed it between our reading and our writing: look again.
                if look == CONFLICT_RETRIES:
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
                self._earlier.get_or_create(sighting.name).count = 0
                return
        try:
            current = await self._transport.get(EVENTS, key)
        except NotFound:
            # The server keeps events for a while only; this one was cleaned up and begins anew.
            await self._transport.create(EVENTS, body, write, namespace=key.namespace)
            self._earlier.get_or_create(sighting.name).count = 1 - sighting.count
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
            self._earlier.get_or_create(sighting.name).count = seen
            pending.based = True
        # The count is absolute, so that a try whose answer was lost counts nothing twice.
        count = self._earlier.get_or_create(sighting.name).count + sighting.count
        patch = Patch.merge({"count": max(count, seen), "lastTimestamp": last, "message": sighting.message})
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

    def record(self, resource: Resource, of: Any, notice: EventContent) -> None:
        """Tell what happened to an object; returns at once. `of` is the object, a view of it, its origin or key."""
        if isinstance(of, Key):
            subject = InvolvedObject(resource, of)
        else:
            origin = ObjectVersion.of(of)
            subject = InvolvedObject(resource, origin.key, origin.uid)
        sighting = self._correlator.see(subject, notice, self._clock.now())
        if sighting is not None:
            self._sink.put(self._component, sighting)


def _body(component: str, key: Key, sighting: CountedEvent) -> Object:
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
