"""Invariants: what must hold after every step of a scenario, and the hooks that check it.

The simulator calls an invariant for each write, when it leaves a process and when it takes effect, and for each change
of each store. An invariant that does not hold raises `InvariantViolated`; the scenario ends at that step and reports
the message, the time, the seed and the last lines of the trace.

A controller that raises is retried with backoff and does not stop others. In production that is right; in a scenario it
would hide a bug. Errors of the API server are logged without a traceback, so a logged traceback always means a bug, and
ends the scenario.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import msgspec

from springtide.apiserver.kinds import collection_id
from springtide.apiserver.list_watch import selection_filter
from springtide.apiserver.server import CommittedWrite
from springtide.cluster.controller import Cached
from springtide.cluster.resources import Key, Object, Resource, Selection, key_of, version_of
from springtide.cluster.store import Store
from springtide.cluster.transport import WatchEvent, WatchEventType
from springtide.simulator.faults.connection import SentRequest
from springtide.simulator.world import World


class WatchedStore(Store[Any]):
    """A store that calls `stepped` after each change, with the key, or None if many keys may have changed."""

    def __init__(self, cached: Cached, stepped: Callable[[tuple[Store[Any], Key | None]], None]) -> None:
        super().__init__(cached.record, cached.indexes)
        self._stepped = stepped

    def apply(self, event: WatchEvent) -> None:
        """Apply one watch event."""
        super().apply(event)
        self._stepped((self, None if event.change is WatchEventType.BOOKMARK else key_of(event.object)))

    def replace_records(self, records: Mapping[Key, Any], version: int) -> None:
        """Replace all records."""
        super().replace_records(records, version)
        self._stepped((self, None))


_LOGGER = logging.getLogger("springtide")


class LoggedTracebacks(logging.Handler):
    """While entered, calls `failed` for each exception that is logged with a traceback, except tolerated ones."""

    def __init__(self, failed: Callable[[BaseException], None], tolerated: tuple[type[BaseException], ...]) -> None:
        super().__init__()
        self._failed = failed
        self._tolerated = tolerated

    def __enter__(self) -> LoggedTracebacks:
        _LOGGER.addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _LOGGER.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Check one log record."""
        failure = record.exc_info[1] if record.exc_info else None
        if failure is not None and not isinstance(failure, self._tolerated):
            self._failed(failure)


class InvariantViolated(AssertionError):
    """An invariant does not hold."""


class Invariant:
    """The base class, which checks nothing. One instance serves one run; `begin` is called first."""

    def begin(self, world: World) -> None:
        """Prepare for a run."""

    def left(self, world: World, sent: SentRequest) -> None:
        """Check a write that leaves a process, whether or not it will take effect."""

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Check a write that took effect."""

    def opened(self, world: World, process: str, selection: Selection, store: Store[Any]) -> None:
        """Register a store of a process."""

    def stepped(self, world: World, process: str, selection: Selection, store: Store[Any], key: Key | None) -> None:
        """Check a store after a change of one key; None: of any number of keys."""

    def end(self, world: World) -> None:
        """Check the end state, after the time to settle."""


class OnlyTheLeaderWrites(Invariant):
    """Only the holder of the lease writes.

    Writes of these field managers may come only from the process that holds the lease, both when a write leaves the
    process and when it takes effect.
    """

    def __init__(self, lease: Key, *managers: str) -> None:
        self._lease = lease
        self._managers = managers
        self._holder = ""

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Follow the holder of the lease, and check writes against it."""
        if written.resource.kind == "Lease":
            if written.key == self._lease:
                self._holder = written.new["spec"].get("holderIdentity") or "" if written.new is not None else ""
            return
        sent = written.write
        if isinstance(sent, SentRequest) and self._is_foreign(sent):
            late = world.clock.monotonic() - sent.at
            msg = (
                f"{written.verb} of {written.resource.kind} {written.key} by {sent.sender} took effect "
                f"{late:.3f} s after it left, while {self._holder or 'no process'} held the lease"
            )
            raise InvariantViolated(msg)

    def left(self, world: World, sent: SentRequest) -> None:  # noqa: ARG002
        """Check that the sender holds the lease."""
        if self._is_foreign(sent):
            msg = f"{sent.sender} sent a write ({sent.because}) while {self._holder or 'no process'} held the lease"
            raise InvariantViolated(msg)

    def _is_foreign(self, sent: SentRequest) -> bool:
        return sent.manager in self._managers and sent.sender != self._holder


_JUDGED_BY_THE_SERVER = ("create/binding", "create/eviction")
"""Subresources whose writes do not depend on the state of the object."""


class NoLostUpdates(Invariant):
    """No process overwrites a version of an object that it has not read.

    Events are exempt: their counts are kept in memory, and no decision depends on them.
    """

    def wrote(self, world: World, written: CommittedWrite) -> None:  # noqa: ARG002
        """Compare the version that the write was computed from with the version that it replaced."""
        sent, old = written.write, written.old
        if old is None or not isinstance(sent, SentRequest) or written.resource.kind == "Event":
            return
        met = old["metadata"]["resourceVersion"]
        if written.verb in _JUDGED_BY_THE_SERVER or (written.verb == "delete" and sent.precondition.uid):
            return
        if sent.precondition.version != met:
            msg = (
                f"{written.verb} of {written.resource.kind} {written.key} by {sent.sender} was computed from version "
                f"{sent.precondition.version or 'nothing'} and has overwritten version {met}"
            )
            raise InvariantViolated(msg)


class StoresFollowTheServer(Invariant):
    """Each store equals the server at its version, never goes back, and catches up in the end."""

    def __init__(self) -> None:
        self._history = WriteHistory()
        self._versions: dict[Store[Any], int] = {}
        self._stores: list[tuple[str, Selection, Store[Any]]] = []

    def begin(self, world: World) -> None:
        """Record the objects that exist already."""
        for kind in world.server.catalogue.stored():
            for key, item in world.server.objects(collection_id(kind.resource)):
                self._history.note(kind.resource, key, version_of(item), item)

    def wrote(self, world: World, written: CommittedWrite) -> None:  # noqa: ARG002
        """Record every version of every object, since the server compacts its history."""
        self._history.note(written.resource, written.key, written.revision, written.new)

    def opened(self, world: World, process: str, selection: Selection, store: Store[Any]) -> None:  # noqa: ARG002
        """Register the store, which must catch up."""
        self._stores.append((process, selection, store))

    def stepped(self, world: World, process: str, selection: Selection, store: Store[Any], key: Key | None) -> None:
        """Compare the change, or all records, with the server at that version."""
        before = self._versions.get(store, 0)
        if store.version < before:
            msg = f"the store of {selection} in {process} went back from version {before} to {store.version}"
            raise InvariantViolated(msg)
        self._versions[store] = store.version
        for each in [key] if key is not None else self._keys(selection, store):
            self._compare(world, process, selection, store, each, store.version)

    def end(self, world: World) -> None:
        """Compare the stores of running processes with the server, once all faults have ended."""
        alive = [process.identity for process in world.processes if process.alive and world.availability.is_calm]
        for process, selection, store in self._stores:
            resource = selection.resource
            # The cluster does not serve this kind, so there is nothing to cache.
            served = world.server.catalogue.of_kind(resource.api_version, resource.kind) is not None
            if process in alive and served:
                if not store.synced:
                    msg = f"the store of {selection} in {process} was never filled"
                    raise InvariantViolated(msg)
                for key in self._keys(selection, store):
                    self._compare(world, process, selection, store, key, world.server.revision)

    def _keys(self, selection: Selection, store: Store[Any]) -> list[Key]:
        return sorted({*store.keys(), *self._history.keys(selection.resource)})

    def _matches(self, world: World, selection: Selection, key: Key, item: Object) -> bool:
        if selection.namespace not in ("", key.namespace):
            return False
        matches = selection_filter(
            selection, world.server.catalogue.selectable(world.server.catalogue.find(selection.resource))
        )
        return matches is None or matches(item)

    def _compare(
        self, world: World, process: str, selection: Selection, store: Store[Any], key: Key, version: int
    ) -> None:
        item = self._history.at(selection.resource, key, version)
        if item is not None and not self._matches(world, selection, key, item):
            item = None
        expected = None if item is None else store.record(_viewed(item, selection))
        if store.get(key) != expected:
            msg = (
                f"the store of {selection} in {process} says it is at version {store.version}, but has "
                f"{_shown(store.get(key))} under {key}, and the server had {_shown(item)} at {version}"
            )
            raise InvariantViolated(msg)


class SharedObjectsAreNotMutated(Invariant):
    """Stored and delivered objects are shared and must not be changed in place."""

    def __init__(self) -> None:
        self._written: list[tuple[CommittedWrite, bytes]] = []

    def wrote(self, world: World, written: CommittedWrite) -> None:  # noqa: ARG002
        """Record the written object."""
        self._written.append((written, msgspec.json.encode(written.new)))

    def end(self, world: World) -> None:  # noqa: ARG002
        """Compare each written object with what it is now."""
        for written, encoded in self._written:
            if msgspec.json.encode(written.new) != encoded:
                msg = f"{written.resource.kind} {written.key} of version {written.revision} was changed in place"
                raise InvariantViolated(msg)


class WriteHistory:
    """Every version of every object."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], dict[Key, list[tuple[int, Object | None]]]] = {}

    def note(self, resource: Resource, key: Key, version: int, item: Object | None) -> None:
        """Record a version of an object."""
        objects = self._versions.setdefault((resource.group, resource.plural), {})
        objects.setdefault(key, []).append((version, item))

    def keys(self, resource: Resource) -> list[Key]:
        """List all keys that ever existed."""
        return list(self._versions.get((resource.group, resource.plural), ()))

    def at(self, resource: Resource, key: Key, version: int) -> Object | None:
        """Return an object as it was at a version."""
        known = self._versions.get((resource.group, resource.plural), {}).get(key, [])
        position = bisect_right(known, version, key=lambda entry: entry[0])
        return known[position - 1][1] if position else None


def _viewed(item: Object, selection: Selection) -> Any:
    return item if selection.view is dict else msgspec.convert(item, selection.view)


def _shown(item: Any) -> str:
    if item is None:
        return "nothing"
    return f"version {item['metadata']['resourceVersion']}" if isinstance(item, dict) else repr(item)
