"""Which events are worth sending: the same one is counted, similar ones are combined, floods are cut off.

The numbers are those of Kubernetes' own components, so that our events behave as people know them.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from springtide.cluster.resources import Key, Resource

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

LONGEST_MESSAGE = 1024
"""Longer ones are cut: those who want it all find it in the conditions of the object."""

_LONGEST_NAME = 253 - 17
"""What a name of the API leaves to that of the object, besides a dot and sixteen digits."""
_COMBINED = "(combined from similar events): "


class EventType(StrEnum):
    """Whether an event is just told, or somebody should look."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that happened to an object, for people.

    `same` is what makes two notices the same; the message where it is empty. Give one where a message holds numbers
    that change each time.
    """

    type: EventType
    reason: str
    message: str
    same: str = ""


def normal(reason: str, message: str, *, same: str = "") -> Notice:
    """Tell that something went as it should."""
    return Notice(EventType.NORMAL, reason, message, same)


def warning(reason: str, message: str, *, same: str = "") -> Notice:
    """Tell that somebody should look."""
    return Notice(EventType.WARNING, reason, message, same)


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an event is about."""

    resource: Resource
    key: Key
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """An event to send: how often it was seen by now, and when first and last."""

    subject: Subject
    name: str
    type: EventType
    reason: str
    message: str
    count: int
    first: int
    last: int


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memory(Generic[K, V]):
    """A mapping that forgets what was not asked for in the longest time."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._entries: OrderedDict[K, V] = OrderedDict()

    def recall(self, key: K) -> V:
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


class Correlator:
    """The memory of one component about the events that it has seen."""

    def __init__(self, component: str) -> None:
        self._component = component
        self._similar: Memory[tuple[Subject, EventType, str], _Similar] = Memory(_Similar)
        self._counts: Memory[str, _Count] = Memory(_Count)
        self._allowances: Memory[tuple[Subject, EventType], _Allowance] = Memory(_Allowance)

    def see(self, subject: Subject, notice: Notice, now: int) -> Sighting | None:
        """Take note of a notice, and give the event to send, if there is one."""
        same = notice.same or notice.message
        message = notice.message
        if self._is_one_of_many(subject, notice, same, now):
            same, message = _COMBINED, _COMBINED + message
        name = self._name(subject, notice, same)
        counted = self._counts.recall(name)
        counted.count += 1
        counted.first = now if counted.count == 1 else counted.first
        if not self._allowances.recall((subject, notice.type)).take(now):
            return None
        message = message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…"
        return Sighting(subject, name, notice.type, notice.reason, message, counted.count, counted.first, now)

    def _is_one_of_many(self, subject: Subject, notice: Notice, same: str, now: int) -> bool:
        similar = self._similar.recall((subject, notice.type, notice.reason))
        if now - similar.last > SIMILAR_WITHIN:
            similar.seen.clear()
        similar.last = now
        if same in similar.seen:
            return False
        if len(similar.seen) >= SIMILAR:
            return True
        similar.seen[same] = None
        return False

    def _name(self, subject: Subject, notice: Notice, same: str) -> str:
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
