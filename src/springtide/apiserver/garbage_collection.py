"""The controllers that complete deletions: the garbage collector and the namespace controller.

Both look at one object at a time and decide from the stored state, so the order of events does not matter. A write
enqueues what it may affect. The garbage collector deletes objects whose owners are all gone, and honours the deletion
policies Foreground (dependents first) and Orphan. The namespace controller deletes the contents of a terminating
namespace, reports what is left as conditions, and removes the finalizer when the namespace is empty.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable
from typing import Any, Generic, NamedTuple, TypeVar

from springtide.apiserver.admission_plugins import NAMESPACES
from springtide.apiserver.kinds import ServedKind, collection_id
from springtide.apiserver.metadata import FOREGROUND, ORPHAN
from springtide.apiserver.server import ApiServer, CommittedWrite
from springtide.apiserver.storage import CollectionId
from springtide.apiserver.strategy import NAMESPACE_FINALIZER, WritePart
from springtide.apiserver.values import timestamp, with_metadata
from springtide.cluster.clock import Clock
from springtide.cluster.resources import Key, Object, Selection
from springtide.cluster.transport import Precondition, Propagation, Write

T = TypeVar("T", bound=Hashable)

GARBAGE_COLLECTOR = "garbage-collector"

NAMESPACE_CONTROLLER = "namespace-controller"

_UNBLOCKED = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""Reason and message of each condition when nothing blocks the deletion of the namespace."""


class UniqueQueue(Generic[T]):
    """A queue that holds each item at most once, for one consumer."""

    def __init__(self) -> None:
        self._items: dict[T, None] = {}
        self._waiter: asyncio.Future[None] | None = None

    def add(self, item: T) -> None:
        """Enqueue an item, and wake the consumer."""
        self._items.setdefault(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Wait until the queue is not empty."""
        if not self._items:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def pop(self) -> T | None:
        """Remove and return the oldest item; None when the queue is empty."""
        for item in self._items:
            del self._items[item]
            return item
        return None


class ObjectPlace(NamedTuple):
    """The collection and key of an object."""

    collection: CollectionId
    key: Key


class OwnerStates(NamedTuple):
    """The owner references of an object, by the state of the owner."""

    present: list[Object]
    gone: list[Object]
    waiting: list[Object]
    """Owners in foreground deletion, which wait for their dependents."""


class GarbageCollector:
    """Deletes objects whose owners are gone."""

    def __init__(self, server: ApiServer, *, delay: float = 0.0) -> None:
        self._server = server
        self._delay = delay
        self._queue: UniqueQueue[ObjectPlace] = UniqueQueue()
        self._dependents: dict[str, dict[ObjectPlace, None]] = {}
        for identity, _ in server.storage.collections():
            for key, item in server.objects(identity):
                self._enqueue_affected(ObjectPlace(identity, key), None, item)
        server.observers.append(self._on_write)

    async def run(self, clock: Clock) -> None:
        """Collect forever; an enqueued object is looked at `delay` seconds later."""
        while True:
            await self._queue.wait()
            await clock.sleep(self._delay)
            self.collect()

    def collect(self) -> None:
        """Look at all enqueued objects."""
        while (place := self._queue.pop()) is not None:
            item = self._server.find(*place)
            kind = self._server.catalogue.of_collection(place.collection)
            if item is not None and kind is not None:
                self._process(kind, place, item)

    def _on_write(self, written: CommittedWrite) -> None:
        self._enqueue_affected(ObjectPlace(collection_id(written.resource), written.key), written.old, written.new)

    def _enqueue_affected(self, place: ObjectPlace, old: Object | None, new: Object | None) -> None:
        """Update the index of dependents, and enqueue the objects that a write may affect."""
        before, after = _references(old), _references(new)
        for uid, reference in before.items():
            if uid not in after:
                self._unindex(uid, place)
            if old is not None and after.get(uid) != reference:
                # The owner may have been waiting for this dependent to be deleted, or to stop blocking it.
                self._add(self._owner_place(old, reference))
        for uid in after:
            self._dependents.setdefault(uid, {})[place] = None
        if new is None and old is not None:
            self._add(*self._dependents.get(old["metadata"]["uid"], {}))
        elif new is not None and (after or _is_deleted_with(new, FOREGROUND) or _is_deleted_with(new, ORPHAN)):
            self._add(place)
            if _is_deleted_with(new, FOREGROUND) and not _is_deleted_with(old, FOREGROUND):
                self._add(*self._dependents.get(new["metadata"]["uid"], {}))

    def _unindex(self, uid: str, place: ObjectPlace) -> None:
        places = self._dependents.get(uid, {})
        places.pop(place, None)
        if not places:
            self._dependents.pop(uid, None)

    def _add(self, *places: ObjectPlace | None) -> None:
        for place in places:
            if place is not None:
                self._queue.add(place)

    def _process(self, kind: ServedKind, place: ObjectPlace, item: Object) -> None:
        metadata = item["metadata"]
        if _is_deleted_with(item, ORPHAN):
            self._orphan_dependents(kind, place, item)
        elif _is_deleted_with(item, FOREGROUND):
            self._finish_foreground(kind, place, item)
        elif "deletionTimestamp" not in metadata and metadata.get("ownerReferences"):
            self._delete_or_release(kind, place, item)

    def _delete_or_release(self, kind: ServedKind, place: ObjectPlace, item: Object) -> None:
        """Delete an object without present owners; where only some are gone, remove their references."""
        owners = self._owners(item)
        if owners is None:
            return
        lost = owners.gone + owners.waiting
        if owners.present:
            if lost:
                self._change(kind, place, _without_owners(item, [each["uid"] for each in lost]), "an owner was deleted")
            return
        uid = item["metadata"]["uid"]
        dependents = self._dependents.get(uid, {})
        because = (
            f"its owner {lost[0]['kind']} {lost[0]['name']} {'is being deleted' if owners.waiting else 'was deleted'}"
        )
        if owners.waiting and dependents:
            if any(_is_deleted_with(self._server.find(*each), FOREGROUND) for each in dependents):
                # In a cycle, each owner would wait for the next one forever.
                self._change(kind, place, _unblocking(item), "its owners form a cycle")
            propagation = Propagation.FOREGROUND
        else:
            finalizers = item["metadata"].get("finalizers", ())
            propagation = Propagation.ORPHAN if ORPHAN in finalizers else Propagation.BACKGROUND
            propagation = Propagation.FOREGROUND if FOREGROUND in finalizers else propagation
        self._server.delete(
            kind.resource,
            place.key,
            Write(GARBAGE_COLLECTOR, because),
            precondition=Precondition(uid=uid),
            propagation=propagation,
        )

    def _finish_foreground(self, kind: ServedKind, place: ObjectPlace, item: Object) -> None:
        """Remove the foreground finalizer when no dependent blocks the deletion of the owner."""
        uid = item["metadata"]["uid"]
        blocking = [each for each in self._dependents.get(uid, {}) if _blocks(self._server.find(*each), uid)]
        if not blocking:
            self._change(kind, place, _without_finalizer(item, FOREGROUND), "its dependents were deleted")

    def _orphan_dependents(self, kind: ServedKind, place: ObjectPlace, item: Object) -> None:
        """Remove the references of all dependents to an owner, then the orphan finalizer."""
        uid = item["metadata"]["uid"]
        for each in list(self._dependents.get(uid, {})):
            dependent = self._server.find(*each)
            dependent_kind = self._server.catalogue.of_collection(each.collection)
            if dependent is not None and dependent_kind is not None:
                self._change(dependent_kind, each, _without_owners(dependent, [uid]), "its owner orphans it")
        self._change(kind, place, _without_finalizer(item, ORPHAN), "its dependents are orphaned")

    def _owners(self, item: Object) -> OwnerStates | None:
        """Return the states of an object's owners; None if the kind of one is not served."""
        owners = OwnerStates([], [], [])
        for reference in item["metadata"]["ownerReferences"]:
            place = self._owner_place(item, reference)
            if place is None:
                return None
            owner = self._server.find(*place)
            if owner is None or owner["metadata"]["uid"] != reference["uid"]:
                owners.gone.append(reference)
            elif _is_deleted_with(owner, FOREGROUND):
                owners.waiting.append(reference)
            else:
                owners.present.append(reference)
        return owners

    def _owner_place(self, dependent: Object, reference: Object) -> ObjectPlace | None:
        """Return where an owner is stored; None if its kind is not served."""
        kind = self._server.catalogue.of_kind(reference["apiVersion"], reference["kind"])
        if kind is None:
            return None
        namespace = dependent["metadata"].get("namespace", "") if kind.resource.namespaced else ""
        return ObjectPlace(collection_id(kind.resource), Key(namespace, reference["name"]))

    def _change(self, kind: ServedKind, place: ObjectPlace, new: Object, because: str) -> None:
        self._server.modify(kind, place.key, lambda _: new, Write(GARBAGE_COLLECTOR, because), "patch")


def _references(item: Object | None) -> dict[str, Object]:
    """Return the owner references of an object by uid."""
    return {each["uid"]: each for each in item["metadata"].get("ownerReferences", ())} if item else {}


def _is_deleted_with(item: Object | None, finalizer: str) -> bool:
    if item is None or "deletionTimestamp" not in item["metadata"]:
        return False
    return finalizer in item["metadata"].get("finalizers", ())


def _blocks(item: Object | None, uid: str) -> bool:
    references: list[Any] = item["metadata"].get("ownerReferences", []) if item else []
    return any(each["uid"] == uid and each.get("blockOwnerDeletion") for each in references)


def _without_owners(item: Object, uids: list[str]) -> Object:
    kept = [each for each in item["metadata"].get("ownerReferences", ()) if each["uid"] not in uids]
    return with_metadata(item, ownerReferences=kept or None)


def _without_finalizer(item: Object, finalizer: str) -> Object:
    kept = [each for each in item["metadata"].get("finalizers", ()) if each != finalizer]
    return with_metadata(item, finalizers=kept or None)


def _unblocking(item: Object) -> Object:
    references = item["metadata"]["ownerReferences"]
    return with_metadata(item, ownerReferences=[{**each, "blockOwnerDeletion": False} for each in references])


class NamespaceController:
    """Deletes the contents of terminating namespaces, then the namespaces."""

    def __init__(self, server: ApiServer, *, delay: float = 0.0) -> None:
        self._server = server
        self._delay = delay
        self._queue: UniqueQueue[str] = UniqueQueue()
        for key, item in server.objects(NAMESPACES):
            self._enqueue_affected(key.name, item)
        server.observers.append(self._on_write)

    async def run(self, clock: Clock) -> None:
        """Run forever; an enqueued namespace is handled `delay` seconds later."""
        while True:
            await self._queue.wait()
            await clock.sleep(self._delay)
            self.process()

    def process(self) -> None:
        """Handle all enqueued namespaces."""
        while (name := self._queue.pop()) is not None:
            namespace = self._server.find(NAMESPACES, Key("", name))
            kind = self._server.catalogue.of_collection(NAMESPACES)
            if namespace is not None and kind is not None and "deletionTimestamp" in namespace["metadata"]:
                self._delete_contents(kind, name, Write(NAMESPACE_CONTROLLER, f"namespace {name} is being deleted"))

    def _on_write(self, written: CommittedWrite) -> None:
        if collection_id(written.resource) == NAMESPACES:
            self._enqueue_affected(written.key.name, written.new)
        elif written.new is None and written.key.namespace:
            self._enqueue_affected(written.key.namespace, self._server.find(NAMESPACES, Key("", written.key.namespace)))

    def _enqueue_affected(self, name: str, namespace: Object | None) -> None:
        if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
            self._queue.add(name)

    def _delete_contents(self, kind: ServedKind, name: str, write: Write) -> None:
        key = Key("", name)
        for content in self._server.catalogue.stored():
            if content.resource.namespaced and "deletecollection" in content.verbs:
                selection = Selection(content.resource, namespace=name)
                self._server.deletecollection(selection, write, propagation=Propagation.BACKGROUND)
        counts, finalizers = self._remaining(name)

        def reported(old: Object) -> Object:
            conditions = _conditions(old, counts, finalizers, timestamp(self._server.now()))
            return {**old, "status": {**(old.get("status") or {}), "phase": "Terminating", "conditions": conditions}}

        self._server.modify(kind, key, reported, write, "patch/status", part=WritePart.STATUS)
        if not counts:

            def finalized(old: Object) -> Object:
                spec: Object = old.get("spec") or {}
                kept = [each for each in spec.get("finalizers") or () if each != NAMESPACE_FINALIZER]
                return {**old, "spec": {**spec, "finalizers": kept}}

            self._server.modify(kind, key, finalized, write, "update/finalize", part=WritePart.WHOLE)

    def _remaining(self, name: str) -> tuple[dict[str, int], Counter[str]]:
        """Count the objects in a namespace by resource, and their finalizers."""
        counts: dict[str, int] = {}
        finalizers: Counter[str] = Counter()
        for content in self._server.catalogue.stored():
            resource = content.resource
            items = (
                [item for _, item in self._server.objects(collection_id(resource), name)] if resource.namespaced else []
            )
            if items:
                counts[f"{resource.plural}.{resource.group}"] = len(items)
            for item in items:
                finalizers.update(item["metadata"].get("finalizers", ()))
        return counts, finalizers


def _conditions(namespace: Object, counts: dict[str, int], finalizers: Counter[str], now: str) -> list[Object]:
    """Return the conditions of a terminating namespace; unchanged ones keep their transition time."""
    blocked: dict[str, tuple[str, str]] = {}
    if counts:
        listed = ", ".join(f"{resource} has {count} resource instances" for resource, count in counts.items())
        blocked["NamespaceContentRemaining"] = "SomeResourcesRemain", f"Some resources are remaining: {listed}"
    if finalizers:
        listed = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        message = f"Some content in the namespace has finalizers remaining: {listed}"
        blocked["NamespaceFinalizersRemaining"] = "SomeFinalizersRemain", message
    present = {each["type"]: each for each in (namespace.get("status") or {}).get("conditions") or ()}
    conditions = []
    for name, unblocked in _UNBLOCKED.items():
        reason, message = blocked.get(name, unblocked)
        fresh = {"type": name, "status": "True" if name in blocked else "False", "reason": reason, "message": message}
        old: Object = present.get(name, {})
        unchanged = old.items() >= fresh.items()
        conditions.append(fresh | {"lastTransitionTime": old["lastTransitionTime"] if unchanged else now})
    return conditions
