"""The store of an informer: a record of every object of a selection, with indexes.

A store always equals the state of the server at one resourceVersion, and that version only grows. A replay after a
reconnect, or a list from a server that lags behind, therefore changes nothing: an event that is not newer than the
store's version is in it already, or the object was deleted since.

An object of which no record can be made counts as absent until it changes, so that one invalid object does not hide all
others of its kind. It is logged, and `unreadable` names it. The function that makes records can also hold an object
back (`ObjectHeldBack`), for a while or until it changes.

Only the reflector writes. Records are shared: do not change them.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from sys import intern
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from springtide.cluster.resources import Key, key_of, version_of
from springtide.cluster.transport import WatchEvent, WatchEventType

R = TypeVar("R")

log = logging.getLogger(__name__)


class StoreIndex(Generic[R]):
    """The keys of all records under each of their index values.

    A record whose values cannot be computed is found under none; other records are not affected.
    """

    def __init__(self, values: Callable[[R], Iterable[Hashable]]) -> None:
        self._values = values
        # Dicts as ordered sets: smaller than sets, and nearly sorted already.
        self._keys: dict[Hashable, dict[Key, None]] = {}

    def keys(self, value: Hashable) -> list[Key]:
        """List the keys under a value, sorted."""
        return sorted(self._keys.get(value, ()))

    def move(self, key: Key, old: R | None, new: R | None) -> None:
        """Move a key from the values of its old record to those of the new one."""
        before, after = self._values_of(key, old), self._values_of(key, new)
        if before == after:
            return
        for value in before:
            under = self._keys.get(value)
            if under is not None:
                under.pop(key, None)
                if not under:
                    del self._keys[value]
        for value in after:
            self._keys.setdefault(value, {})[key] = None

    def _values_of(self, key: Key, record: R | None) -> tuple[Hashable, ...]:
        if record is None:
            return ()
        try:
            values = tuple(self._values(record))
            hash(values)
        except Exception:
            log.exception("an index fails on %s, which is not found by it", key)
            return ()
        return values


@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """Replaces the record of an object of which none can be made."""

    reason: str


@dataclass(frozen=True, slots=True)
class HeldBackObject(UnreadableObject):
    """Replaces the record of an object of which none is made yet, or none at all, because that would cost too much."""

    item: Any
    """The object; only what a write of its status needs where it is set aside."""
    set_aside: bool
    """Whether it counts as absent until it changes; otherwise it is decided soon, and the former record stays."""


class ObjectHeldBack(Exception):
    """Raised by the function that makes records: none is made of this object now."""

    def __init__(self, reason: str, item: Any, *, set_aside: bool) -> None:
        super().__init__(reason)
        self.held_back = HeldBackObject(reason, item, set_aside)


class Delta(NamedTuple, Generic[R]):
    """One record that changed: added if there is no old one, deleted if there is no new one."""

    key: Key
    old: R | None
    new: R | None


def whole_object(item: Any) -> Any:
    """Keep an item as it is."""
    return item


NO_INDEXES: Mapping[str, Callable[[Any], Iterable[Hashable]]] = MappingProxyType({})


class Store(Generic[R]):
    """Records by key, and by the values of named indexes.

    `record` makes a record of an item, and an index gives the values that a record is found under; both are pure. A
    change of an object that leaves its record equal makes no delta.
    """

    def __init__(
        self,
        record: Callable[[Any], R] = whole_object,
        indexes: Mapping[str, Callable[[R], Iterable[Hashable]]] = NO_INDEXES,
    ) -> None:
        self.record = record
        self.version = 0
        """The highest resourceVersion that the contents reflect."""
        self.synced = False
        """Whether the first complete list is in the store."""
        self.unreadable: dict[Key, UnreadableObject] = {}
        """Objects of which no record can be made."""
        self._records: dict[Key, R] = {}
        self._indexes = {name: StoreIndex(values) for name, values in indexes.items()}
        self._order: list[Key] | None = None
        self._aside_listeners: list[Callable[[Key], None]] = []
        self._listeners: list[Callable[[Delta[R]], None]] = []
        self._sync: list[asyncio.Future[None]] = []
        self._barriers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._barriers_made = 0

    def get(self, key: Key) -> R | None:
        """Return a record, if there is one."""
        return self._records.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._records

    def __len__(self) -> int:
        return len(self._records)

    def keys(self) -> list[Key]:
        """List all keys, sorted."""
        return self._ordered().copy()

    def values(self) -> list[R]:
        """List all records, in the order of their keys."""
        records = self._records
        return [records[key] for key in self._ordered()]

    def keys_by(self, index: str, value: Hashable) -> list[Key]:
        """List the keys that an index has under a value, sorted."""
        return self._indexes[index].keys(value)

    def by(self, index: str, value: Hashable) -> list[R]:
        """List the records that an index has under a value, in the order of their keys."""
        records = self._records
        return [records[key] for key in self._indexes[index].keys(value)]

    def listen(self, listener: Callable[[Delta[R]], None], *, replay: bool = False) -> Callable[[], None]:
        """Call a function for every delta, when the store shows it already; gives the function that removes it.

        With `replay` it is first called for every record, in the order of the keys, as for one that was added.
        """
        if replay:
            for key in self._ordered():
                _call(listener, Delta(key, None, self._records[key]))
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def listen_to_set_aside(self, listener: Callable[[Key], None]) -> Callable[[], None]:
        """Call a function for every object that is set aside; gives the function that removes it."""
        self._aside_listeners.append(listener)
        return lambda: self._aside_listeners.remove(listener)

    def set_aside(self, key: Key) -> HeldBackObject | None:
        """Return what is left of an object that was set aside."""
        held = self.unreadable.get(key)
        return held if isinstance(held, HeldBackObject) and held.set_aside else None

    async def wait_synced(self) -> None:
        """Wait until the first complete list is in the store."""
        if not self.synced:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._sync.append(waiting)
            try:
                await waiting
            finally:
                if waiting in self._sync:
                    self._sync.remove(waiting)

    async def wait_for_version(self, version: int) -> None:
        """Wait until the contents reflect at least this version."""
        if version > self.version:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._barriers_made += 1
            heapq.heappush(self._barriers, (version, self._barriers_made, waiting))
            try:
                await waiting
            except asyncio.CancelledError:
                self._barriers = [barrier for barrier in self._barriers if barrier[2] is not waiting]
                heapq.heapify(self._barriers)
                raise

    async def wait_until_gone(self, key: Key, version: int) -> None:
        """Wait until the store has lost an object that the server did not have at a version, or is newer."""
        while key in self and self.version < version:
            await self.wait_for_version(self.version + 1)

    def read(self, item: Any) -> R | UnreadableObject:
        """Make the record of an item, or note that it is unreadable."""
        try:
            record = self.record(item)
            if record is None:
                msg = "its record is None, expected a value; a selector leaves objects out"
                raise TypeError(msg)
        except ObjectHeldBack as held:
            return held.held_back
        except Exception as failure:
            log.exception("no record can be made of %s, which counts as absent until it changes", key_of(item))
            return UnreadableObject(f"{type(failure).__name__}: {failure}")
        return record

    def replace(self, items: Iterable[Any], version: int) -> None:
        """Replace the contents with a complete list as of a version."""
        self.replace_records({key_of(item): self.read(item) for item in items}, version)

    def replace_records(self, records: Mapping[Key, R | UnreadableObject], version: int) -> None:
        """Replace the contents with the records of a complete list as of a version; the difference becomes deltas."""
        if version < self.version:
            return
        self.unreadable = {key: record for key, record in records.items() if isinstance(record, UnreadableObject)}
        usable = {key: record for key, record in records.items() if not isinstance(record, UnreadableObject)}
        for key, record in self.unreadable.items():
            if key in self._records and _is_undecided(record):
                usable[key] = self._records[key]
        self._replace(usable, version)
        for key in [key for key, record in self.unreadable.items() if _is_undecided(record)]:
            self.reread(key)  # it may have been decided while the list was read
        for key in self.unreadable:
            self._notify_if_set_aside(key)

    def _replace(self, records: Mapping[Key, R], version: int) -> None:
        held = self._records
        deltas = [Delta(key, old, None) for key, old in held.items() if key not in records]
        for key, new in records.items():
            old = held.get(key)
            if old is None or old != new:
                deltas.append(Delta(key, old, new))
        for delta in deltas:
            self._put(delta)
        self.synced = True
        _release(self._sync)
        self.advance(version)
        self._notify(deltas)

    def apply(self, event: WatchEvent) -> None:
        """Apply one event of a watch."""
        version = version_of(event.object)
        if version <= self.version:
            return
        if event.change is WatchEventType.BOOKMARK:
            self.advance(version)
            return
        key = key_of(event.object)
        old = self._records.get(key)
        new: R | None = None
        if self.unreadable:
            self.unreadable.pop(key, None)
        if event.change is not WatchEventType.DELETED:
            new = self._usable(key, self.read(event.object), old)
        if old != new:
            self._put(Delta(key, old, new))
        self.advance(version)
        if old != new:
            self._notify((Delta(key, old, new),))
        self._notify_if_set_aside(key)

    def reread(self, key: Key) -> None:
        """Make the record of an object that was held back, now that it is decided whether one is made."""
        held = self.unreadable.get(key)
        if not isinstance(held, HeldBackObject) or held.set_aside:
            return
        del self.unreadable[key]
        old = self._records.get(key)
        new = self._usable(key, self.read(held.item), old)
        if old != new:
            delta = Delta(key, old, new)
            self._put(delta)
            self._notify((delta,))
        self._notify_if_set_aside(key)

    def _usable(self, key: Key, record: R | UnreadableObject, old: R | None) -> R | None:
        """Return the record that counts now: the former one while it is undecided whether a new one is made."""
        if not isinstance(record, UnreadableObject):
            return record
        self.unreadable[key] = record
        return old if _is_undecided(record) else None

    def _notify_if_set_aside(self, key: Key) -> None:
        if self.set_aside(key) is not None:
            for listener in self._aside_listeners:
                listener(key)

    def advance(self, version: int) -> None:
        """Note that the contents are current as of a version."""
        if version > self.version:
            self.version = version
            while self._barriers and self._barriers[0][0] <= version:
                _release([heapq.heappop(self._barriers)[2]])

    def _put(self, delta: Delta[R]) -> None:
        key, old, new = delta
        if old is None:
            # A key lives as long as its record: intern the namespace, so that each key does not hold a copy.
            key = Key(intern(key.namespace), key.name)
        for index in self._indexes.values():
            index.move(key, old, new)
        if new is None:
            del self._records[key]
            self._order = None
        else:
            self._records[key] = new
            if old is None:
                self._order = None

    def _ordered(self) -> list[Key]:
        if self._order is None:
            self._order = sorted(self._records)
        return self._order

    def _notify(self, deltas: Iterable[Delta[R]]) -> None:
        for delta in deltas:
            for listener in self._listeners:
                _call(listener, delta)


def _is_undecided(record: UnreadableObject) -> bool:
    return isinstance(record, HeldBackObject) and not record.set_aside


def _call(listener: Callable[[Delta[R]], None], delta: Delta[R]) -> None:
    """Call a listener; an exception of one listener does not affect the others."""
    try:
        listener(delta)
    except Exception:
        log.exception("a listener failed on the change of %s; others go on", delta.key)


def _release(waiting: list[asyncio.Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
    waiting.clear()
