"""Stores that tell of their steps, so that invariants can judge them.

Bugs that a runtime survives: it logs them with their stack, and goes on. A scenario must not.

A controller that raises on every reconcile stops nobody else, and tries again for ever: in production that is right, in
a test it would pass. What a cluster answers is logged without a stack, so a stack always means a bug.

What must hold at every step of a scenario, not only at its end.

An invariant is told of every write when it takes effect and of every step of every store, and raises `Broken` where
something is not as it must be. The scenario then ends at that step, with the words of the invariant, the time, the seed
and the last lines of the trace.
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
    """A store that calls somebody after each of its steps: with a key, or None where any number may have changed."""

    def __init__(self, cached: Cached, stepped: Callable[[tuple[Store[Any], Key | None]], None]) -> None:
        super().__init__(cached.record, cached.indexes)
        self._stepped = stepped

    def apply(self, event: WatchEvent) -> None:
        """Take one event of a watch."""
        super().apply(event)
        self._stepped((self, None if event.change is WatchEventType.BOOKMARK else key_of(event.object)))

    def replace_records(self, records: Mapping[Key, Any], version: int) -> None:
        """Hold exactly these records."""
        super().replace_records(records, version)
        self._stepped((self, None))


_LOGGER = logging.getLogger("springtide")


class LoggedTracebacks(logging.Handler):
    """While it is entered, tells somebody of every failure that is logged with a stack, but for those it tolerates."""

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
        """Look at one record of the log."""
        failure = record.exc_info[1] if record.exc_info else None
        if failure is not None and not isinstance(failure, self._tolerated):
            self._failed(failure)


class InvariantViolated(AssertionError):
    """Something that must always hold does not."""


class Invariant:
    """The base: it demands nothing. One instance serves one run; `begin` comes first."""

    def begin(self, world: World) -> None:
        """Prepare for a world, before anything happens in it."""

    def left(self, world: World, sent: SentRequest) -> None:
        """Judge a write that leaves a process, whether or not it will have an effect."""

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Judge a write that has just taken effect."""

    def opened(self, world: World, process: str, selection: Selection, store: Store[Any]) -> None:
        """Take note of a store that a process has made."""

    def stepped(self, world: World, process: str, selection: Selection, store: Store[Any], key: Key | None) -> None:
        """Judge a store of a process after a change of one key, or (None) of any number of them."""

    def end(self, world: World) -> None:
        """Judge the world at its end, after it was given time to settle."""


class OnlyTheLeaderWrites(Invariant):
    """A process that is not the leader sends nothing, and what it sent before has no effect any more.

    What these field managers write may come only from the process that the lease names at that moment: when it leaves,
    and when it takes effect.
    """

    def __init__(self, lease: Key, *managers: str) -> None:
        self._lease = lease
        self._managers = managers
        self._holder = ""

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Follow the lease, and judge the writes of processes by it."""
        if written.resource.kind == "Lease":
            if written.key == self._lease:
                self._holder = written.new["spec"].get("holderIdentity") or "" if written.new is not None else ""
            return
        sent = written.write
        if isinstance(sent, SentRequest) and self._is_foreign(sent):
            late = world.clock.monotonic() - sent.at
            msg = (
                f"{written.verb} of {written.resource.kind} {written.key} by {sent.sender} took effect "
                f"{late:.3f} s after it left, while {self._holder or 'nobody'} held the lease"
            )
            raise InvariantViolated(msg)

    def left(self, world: World, sent: SentRequest) -> None:  # noqa: ARG002
        """Judge what leaves a process."""
        if self._is_foreign(sent):
            msg = f"{sent.sender} sent a write ({sent.because}) while {self._holder or 'nobody'} held the lease"
            raise InvariantViolated(msg)

    def _is_foreign(self, sent: SentRequest) -> bool:
        return sent.manager in self._managers and sent.sender != self._holder


_JUDGED_BY_THE_SERVER = ("create/binding", "create/eviction")
"""Writes that are right or wrong whatever else has changed, and that the server itself refuses where they are wrong."""


class NoLostUpdates(Invariant):
    """No process changes an object in a state that it has not read: that is how updates are lost.

    Events are left out: they are counted up from memory, and nobody depends on them.
    """

    def wrote(self, world: World, written: CommittedWrite) -> None:  # noqa: ARG002
        """Compare what the write was computed from with what it met."""
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
    """Every store equals the server at the version that it says, never goes back, and arrives in the end."""

    def __init__(self) -> None:
        self._history = WriteHistory()
        self._versions: dict[Store[Any], int] = {}
        self._stores: list[tuple[str, Selection, Store[Any]]] = []

    def begin(self, world: World) -> None:
        """Start from what is there already."""
        for kind in world.server.catalogue.stored():
            for key, item in world.server.objects(collection_id(kind.resource)):
                self._history.note(kind.resource, key, version_of(item), item)

    def wrote(self, world: World, written: CommittedWrite) -> None:  # noqa: ARG002
        """Remember every version of every object: the server forgets them."""
        self._history.note(written.resource, written.key, written.revision, written.new)

    def opened(self, world: World, process: str, selection: Selection, store: Store[Any]) -> None:  # noqa: ARG002
        """Expect the store to arrive."""
        self._stores.append((process, selection, store))

    def stepped(self, world: World, process: str, selection: Selection, store: Store[Any], key: Key | None) -> None:
        """Compare what changed, or everything, with what the server had at that version."""
        before = self._versions.get(store, 0)
        if store.version < before:
            msg = f"the store of {selection} in {process} went back from version {before} to {store.version}"
            raise InvariantViolated(msg)
        self._versions[store] = store.version
        for each in [key] if key is not None else self._keys(selection, store):
            self._compare(world, process, selection, store, each, store.version)

    def end(self, world: World) -> None:
        """Compare the stores of everybody who is still there with the server as it is, if the world has calmed down."""
        alive = [process.identity for process in world.processes if process.alive and world.weather.is_calm]
        for process, selection, store in self._stores:
            resource = selection.resource
            # What the cluster does not have, nobody can see.
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
    """Objects that were stored or handed out stay as they are: whoever wants to change one copies it first."""

    def __init__(self) -> None:
        self._written: list[tuple[CommittedWrite, bytes]] = []

    def wrote(self, world: World, written: CommittedWrite) -> None:  # noqa: ARG002
        """Remember what was written."""
        self._written.append((written, msgspec.json.encode(written.new)))

    def end(self, world: World) -> None:  # noqa: ARG002
        """Compare what was written with what has become of it."""
        for written, encoded in self._written:
            if msgspec.json.encode(written.new) != encoded:
                msg = f"{written.resource.kind} {written.key} of version {written.revision} was changed in place"
                raise InvariantViolated(msg)


class WriteHistory:
    """Every version of every object."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], dict[Key, list[tuple[int, Object | None]]]] = {}

    def note(self, resource: Resource, key: Key, version: int, item: Object | None) -> None:
        """Remember what an object became."""
        objects = self._versions.setdefault((resource.group, resource.plural), {})
        objects.setdefault(key, []).append((version, item))

    def keys(self, resource: Resource) -> list[Key]:
        """List everything that ever was."""
        return list(self._versions.get((resource.group, resource.plural), ()))

    def at(self, resource: Resource, key: Key, version: int) -> Object | None:
        """Give an object as it was at a version."""
        known = self._versions.get((resource.group, resource.plural), {}).get(key, [])
        position = bisect_right(known, version, key=lambda entry: entry[0])
        return known[position - 1][1] if position else None


def _viewed(item: Object, selection: Selection) -> Any:
    return item if selection.view is dict else msgspec.convert(item, selection.view)


def _shown(item: Any) -> str:
    if item is None:
        return "nothing"
    return f"version {item['metadata']['resourceVersion']}" if isinstance(item, dict) else repr(item)
