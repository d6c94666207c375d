"""The stored objects: the current state, and the history of changes since the last compaction.

One counter numbers the changes of all collections; it is the resourceVersion. Stored objects are immutable and shared
between the current state, the history, older lists and watches.

The list of an older version is the current state with the later changes undone, so its cost depends only on their
number. The keys of deleted objects stay in the order of a collection as long as a version that contains them can be
listed.

Everything is in memory. A `Journal` may persist it as well: it records a change before the change becomes visible, and
an error there aborts the write.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from springtide.apiserver.errors import too_old_resource_version
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import WatchEvent, WatchEventType

if TYPE_CHECKING:
    from springtide.apiserver.list_watch import WatchSubscription


_MIN_TRIM = 1024
"""The history is trimmed when it has doubled since the last time, but never below this many changes."""


class CollectionId(NamedTuple):
    """The group and plural under which the objects of a kind are stored, in whichever version."""

    group: str
    plural: str


@dataclass(slots=True, eq=False)
class StoredChange:
    """One change of one object, with its watch event."""

    revision: int
    key: Key
    old: Object | None
    new: Object | None
    event: WatchEvent


_REVISION = attrgetter("revision")


class Journal(Protocol):
    """Persists the storage. Raises `ApiError` where that fails, and has then recorded nothing.

    Versions up to `compacted` may be dropped, except for objects that still exist.
    """

    def record(self, identity: CollectionId, change: StoredChange, compacted: int) -> None:
        """Record a change that is about to be committed."""
        ...

    def compact(self, compacted: int) -> None:
        """Record that older versions are compacted."""
        ...


@dataclass(frozen=True, slots=True)
class RevisionGap:
    """A range of versions that count as compacted: they may have been assigned before a crash, and were lost."""

    after: int
    before: int


class Collection:
    """The objects of one kind."""

    __slots__ = ("_fresh", "_known", "_order", "_trim_at", "changes", "identity", "live", "subscriptions")

    def __init__(self, identity: CollectionId) -> None:
        self.identity = identity
        self.live: dict[Key, Object] = {}
        self.changes: list[StoredChange] = []
        self.subscriptions: list[WatchSubscription] = []
        self._order: list[Key] = []
        self._fresh: list[Key] = []
        self._known: set[Key] = set()
        self._trim_at = _MIN_TRIM

    def record(self, change: StoredChange, compacted: int) -> None:
        """Apply a change to the current state."""
        key = change.key
        if change.new is None:
            del self.live[key]
        else:
            self.live[key] = change.new
            if key not in self._known:
                self._known.add(key)
                self._fresh.append(key)
        self.changes.append(change)
        if len(self.changes) >= self._trim_at:
            self.trim(compacted)

    def trim(self, compacted: int) -> None:
        """Drop compacted changes, and keys that only they contained."""
        del self.changes[: bisect_right(self.changes, compacted, key=_REVISION)]
        self._trim_at = max(_MIN_TRIM, 2 * len(self.changes))
        gone = {change.key: None for change in self.changes if change.key not in self.live}
        self._order, self._fresh = sorted([*self.live, *gone]), []
        self._known = set(self._order)

    def since(self, revision: int) -> list[StoredChange]:
        """Return the changes after a version, in order."""
        return self.changes[bisect_right(self.changes, revision, key=_REVISION) :]

    def keys(self, namespace: str, after: Key | None) -> Iterator[Key]:
        """Iterate over keys in order, in one namespace or all, including those of deleted objects."""
        if self._fresh:
            self._order.extend(self._fresh)
            self._order.sort()
            self._fresh.clear()
        start = bisect_right(self._order, after) if after else 0
        if namespace:
            start = max(start, bisect_left(self._order, Key(namespace, "")))
        for position in range(start, len(self._order)):
            key = self._order[position]
            if namespace and key.namespace != namespace:
                return
            yield key


class Storage:
    """All collections, with one resourceVersion counter."""

    def __init__(self, *, history: int, journal: Journal | None = None) -> None:
        self.revision = 0
        self.compacted = 0
        """The oldest version that can still be listed or watched from."""
        self._gaps: tuple[RevisionGap, ...] = ()
        self._history = history
        self._journal = journal
        self._collections: dict[CollectionId, Collection] = {}

    def collection(self, identity: CollectionId) -> Collection:
        """Return a collection; it is created where there is none."""
        found = self._collections.get(identity)
        if found is None:
            found = self._collections[identity] = Collection(identity)
        return found

    def collections(self) -> Iterator[tuple[CollectionId, Collection]]:
        """Iterate over all collections in order of creation."""
        return iter(list(self._collections.items()))

    def write(self, collection: Collection, key: Key, new: Object | None) -> StoredChange:
        """Store an object under the next version, or remove it."""
        revision = self.revision + 1
        change = _change(collection, key, None if new is None else at_version(new, revision), revision)
        compacted = max(self.compacted, revision - self._history)
        if self._journal is not None:
            self._journal.record(collection.identity, change, compacted)
        self.revision, self.compacted = revision, compacted
        collection.record(change, compacted)
        return change

    def restore(self, identity: CollectionId, key: Key, revision: int, item: Object | None) -> None:
        """Apply a change from a journal, under its original version."""
        collection = self.collection(identity)
        collection.record(_change(collection, key, item, revision), self.compacted)
        self.revision = revision

    def resume(self, revision: int, compacted: int, gaps: Iterable[RevisionGap]) -> None:
        """Continue from a version after a restore; versions within gaps count as compacted."""
        self.revision = revision
        self._gaps = tuple(gaps)
        self.compact(max(compacted, revision - self._history))

    def compact(self, to: int) -> None:
        """Drop the history before a version."""
        compacted = max(self.compacted, min(to, self.revision))
        if self._journal is not None:
            self._journal.compact(compacted)
        self.compacted = compacted
        for _, collection in self.collections():
            collection.trim(compacted)

    def check(self, revision: int) -> None:
        """Refuse a compacted version."""
        if revision < self.compacted:
            raise too_old_resource_version(revision, self.compacted)
        for gap in self._gaps:
            if gap.after < revision < gap.before:
                raise too_old_resource_version(revision, gap.before)

    def at(self, collection: Collection, key: Key, revision: int) -> Object | None:
        """Return an object as it was at a version; None where it did not exist."""
        self.check(revision)
        for change in collection.since(revision):
            if change.key == key:
                return change.old
        return collection.live.get(key)

    def listed(
        self, collection: Collection, revision: int, *, namespace: str = "", after: Key | None = None
    ) -> Iterator[tuple[Key, Object]]:
        """Iterate over the objects of a version, in key order."""
        self.check(revision)
        undone: dict[Key, Object | None] = {}
        for change in collection.since(revision):
            undone.setdefault(change.key, change.old)
        live = collection.live
        for key in collection.keys(namespace, after):
            item = undone[key] if key in undone else live.get(key)
            if item is not None:
                yield key, item


def _change(collection: Collection, key: Key, new: Object | None, revision: int) -> StoredChange:
    old = collection.live.get(key)
    if new is not None:
        return StoredChange(
            revision,
            key,
            old,
            new,
            WatchEvent(WatchEventType.MODIFIED if old is not None else WatchEventType.ADDED, new),
        )
    return StoredChange(
        revision, key, old, None, WatchEvent(WatchEventType.DELETED, at_version(collection.live[key], revision))
    )


def at_version(item: Object, revision: int) -> Object:
    """Return an object with another resourceVersion."""
    return {**item, "metadata": {**item["metadata"], "resourceVersion": str(revision)}}
