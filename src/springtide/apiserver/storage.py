"""Where the objects are: the present state, and what it was at every version since the last compaction.

One number counts all changes of all collections; it is the resourceVersion. Nothing stored is ever changed in place:
the history, lists of older versions and everybody who watches hold the same objects as the present state.

A list of an older version is the present state with the changes since then undone: what costs is only how much has
changed in between. Keys of objects that are gone stay in the order of their collection for as long as a version that
shows them can be asked for.

All of it is in memory. A `Journal` may keep it as well: it is told of a change before anybody can see it, so that what
it could not keep has not happened.
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


_LEAST_TRIM = 1024
"""History is trimmed when it has doubled since the last time, and never below this many changes."""


class CollectionId(NamedTuple):
    """Where the objects of a kind are stored, whichever of its versions they are read in."""

    group: str
    plural: str


@dataclass(slots=True, eq=False)
class StoredChange:
    """One change of one object: what it was, what it is, and how watches tell it."""

    revision: int
    key: Key
    old: Object | None
    new: Object | None
    event: WatchEvent


_REVISION = attrgetter("revision")


class Journal(Protocol):
    """Keeps what is stored beyond the end of the process. Raises `ApiError` where it cannot, and has kept nothing then.

    Versions up to `compacted` may be forgotten, but for what of them is still there.
    """

    def record(self, identity: CollectionId, change: StoredChange, compacted: int) -> None:
        """Keep a change that is about to take effect."""
        ...

    def compact(self, compacted: int) -> None:
        """Keep in mind that older versions are not to be shown again."""
        ...


@dataclass(frozen=True, slots=True)
class RevisionGap:
    """Versions that count as compacted, between the last that is known and the first of those that came later."""

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
        self._trim_at = _LEAST_TRIM

    def record(self, change: StoredChange, compacted: int) -> None:
        """Make a change the present state."""
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
        """Forget the changes that nobody may ask for any more, and the keys that only they knew."""
        del self.changes[: bisect_right(self.changes, compacted, key=_REVISION)]
        self._trim_at = max(_LEAST_TRIM, 2 * len(self.changes))
        gone = {change.key: None for change in self.changes if change.key not in self.live}
        self._order, self._fresh = sorted([*self.live, *gone]), []
        self._known = set(self._order)

    def since(self, revision: int) -> list[StoredChange]:
        """Give the changes after a version, in order."""
        return self.changes[bisect_right(self.changes, revision, key=_REVISION) :]

    def keys(self, namespace: str, after: Key | None) -> Iterator[Key]:
        """Give keys in order, of one namespace or all, those of objects that are gone among them."""
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
    """All collections, under one count of versions."""

    def __init__(self, *, history: int, journal: Journal | None = None) -> None:
        self.revision = 0
        self.compacted = 0
        """The oldest version that can still be listed, or watched from."""
        self._gaps: tuple[RevisionGap, ...] = ()
        self._history = history
        self._journal = journal
        self._collections: dict[CollectionId, Collection] = {}

    def collection(self, identity: CollectionId) -> Collection:
        """Give a collection, empty when it is new."""
        found = self._collections.get(identity)
        if found is None:
            found = self._collections[identity] = Collection(identity)
        return found

    def collections(self) -> Iterator[tuple[CollectionId, Collection]]:
        """Give all collections, in the order in which they first came up."""
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
        """Repeat a change that was made in an earlier life, under the version that it had then."""
        collection = self.collection(identity)
        collection.record(_change(collection, key, item, revision), self.compacted)
        self.revision = revision

    def resume(self, revision: int, compacted: int, gaps: Iterable[RevisionGap]) -> None:
        """Go on from a version, after what was restored; of what was before it, gaps cannot be asked for."""
        self.revision = revision
        self._gaps = tuple(gaps)
        self.compact(max(compacted, revision - self._history))

    def compact(self, to: int) -> None:
        """Forget what was before a version."""
        compacted = max(self.compacted, min(to, self.revision))
        if self._journal is not None:
            self._journal.compact(compacted)
        self.compacted = compacted
        for _, collection in self.collections():
            collection.trim(compacted)

    def check(self, revision: int) -> None:
        """Refuse a version that is compacted."""
        if revision < self.compacted:
            raise too_old_resource_version(revision, self.compacted)
        for gap in self._gaps:
            if gap.after < revision < gap.before:
                raise too_old_resource_version(revision, gap.before)

    def at(self, collection: Collection, key: Key, revision: int) -> Object | None:
        """Give an object as it was at a version; None where it did not exist."""
        self.check(revision)
        for change in collection.since(revision):
            if change.key == key:
                return change.old
        return collection.live.get(key)

    def listed(
        self, collection: Collection, revision: int, *, namespace: str = "", after: Key | None = None
    ) -> Iterator[tuple[Key, Object]]:
        """Give the objects as they were at a version, in the order of their keys."""
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
    """Give an object under another version."""
    return {**item, "metadata": {**item["metadata"], "resourceVersion": str(revision)}}
