"""What the server's own housekeepers have still to look at, in the order in which it came up.

The garbage collector: objects whose owners are all gone go too.

It looks at one object at a time and decides by what it finds, so that the order of events does not matter. What may
have changed the answer for an object puts it on the backlog: a write to it, its owner's end, or its owner's wish to go
only after its dependents (foreground), or to leave them behind (orphan).

The end of a namespace: its contents are deleted, and when the last object is gone, it goes too.
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


class UniqueQueue(Generic[T]):
    """Items, each at most once, and one waiter; nothing is polled."""

    def __init__(self) -> None:
        self._items: dict[T, None] = {}
        self._waiter: asyncio.Future[None] | None = None

    def add(self, item: T) -> None:
        """Note an item, and wake who waits."""
        self._items.setdefault(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def filled(self) -> None:
        """Wait until there is something."""
        if not self._items:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def take(self) -> T | None:
        """Give the oldest item and forget it; None where nothing is left."""
        for item in self._items:
            del self._items[item]
            return item
        return None


GARBAGE_COLLECTOR = "garbage-collector"


class ObjectPlace(NamedTuple):
    """Where an object is stored."""

    collection: CollectionId
    key: Key


class OwnerStates(NamedTuple):
    """The owners that an object names, by what has become of them."""

    present: list[Object]
    gone: list[Object]
    waiting: list[Object]
    """Those that go once their dependents have."""


class GarbageCollector:
    """Deletes what nobody owns any more."""

    def __init__(self, server: ApiServer, *, delay: float = 0.0) -> None:
        self._server = server
        self._delay = delay
        self._backlog: UniqueQueue[ObjectPlace] = UniqueQueue()
        self._dependents: dict[str, dict[ObjectPlace, None]] = {}
        for identity, _ in server.storage.collections():
            for key, item in server.objects(identity):
                self._note(ObjectPlace(identity, key), None, item)
        server.observers.append(self._on_write)

    async def run(self, clock: Clock) -> None:
        """Collect for ever: what comes up is looked at `delay` seconds later."""
        while True:
            await self._backlog.filled()
            await clock.sleep(self._delay)
            self.collect()

    def collect(self) -> None:
        """Look at everything that has come up."""
        while (place := self._backlog.take()) is not None:
            item = self._server.find(*place)
            kind = self._server.catalogue.of_collection(place.collection)
            if item is not None and kind is not None:
                self._look_at(kind, place, item)

    def _on_write(self, written: CommittedWrite) -> None:
        self._note(ObjectPlace(collection_id(written.resource), written.key), written.old, written.new)

    def _note(self, place: ObjectPlace, old: Object | None, new: Object | None) -> None:
        """Keep the index of dependents, and put on the backlog whose answer may have changed."""
        before, after = _references(old), _references(new)
        for uid, reference in before.items():
            if uid not in after:
                self._forget(uid, place)
            if old is not None and after.get(uid) != reference:
                # An owner may have waited for this dependent to go, or to stop blocking it.
                self._add(self._owner_place(old, reference))
        for uid in after:
            self._dependents.setdefault(uid, {})[place] = None
        if new is None and old is not None:
            self._add(*self._dependents.get(old["metadata"]["uid"], {}))
        elif new is not None and (after or _is_going(new, FOREGROUND) or _is_going(new, ORPHAN)):
            self._add(place)
            if _is_going(new, FOREGROUND) and not _is_going(old, FOREGROUND):
                self._add(*self._dependents.get(new["metadata"]["uid"], {}))

    def _forget(self, uid: str, place: ObjectPlace) -> None:
        places = self._dependents.get(uid, {})
        places.pop(place, None)
        if not places:
            self._dependents.pop(uid, None)

    def _add(self, *places: ObjectPlace | None) -> None:
        for place in places:
            if place is not None:
                self._backlog.add(place)

    def _look_at(self, kind: ServedKind, place: ObjectPlace, item: Object) -> None:
        metadata = item["metadata"]
        if _is_going(item, ORPHAN):
            self._orphan(kind, place, item)
        elif _is_going(item, FOREGROUND):
            self._release(kind, place, item)
        elif "deletionTimestamp" not in metadata and metadata.get("ownerReferences"):
            self._judge(kind, place, item)

    def _judge(self, kind: ServedKind, place: ObjectPlace, item: Object) -> None:
        """Delete an object without owners; where only some are gone, let it forget them."""
        owners = self._owners(item)
        if owners is None:
            return
        lost = owners.gone + owners.waiting
        if owners.present:
            if lost:
                self._change(kind, place, _without_owners(item, [each["uid"] for each in lost]), "an owner is gone")
            return
        uid = item["metadata"]["uid"]
        dependents = self._dependents.get(uid, {})
        because = f"its owner {lost[0]['kind']} {lost[0]['name']} is {'going' if owners.waiting else 'gone'}"
        if owners.waiting and dependents:
            if any(_is_going(self._server.find(*each), FOREGROUND) for each in dependents):
                # A cycle of owners that all wait for each other would wait for ever.
                self._change(kind, place, _unblocking(item), "its dependents wait too")
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

    def _release(self, kind: ServedKind, place: ObjectPlace, item: Object) -> None:
        """Let an owner go when no dependent that blocks it is left."""
        uid = item["metadata"]["uid"]
        blocking = [each for each in self._dependents.get(uid, {}) if _blocks(self._server.find(*each), uid)]
        if not blocking:
            self._change(kind, place, _without_finalizer(item, FOREGROUND), "its dependents are gone")

    def _orphan(self, kind: ServedKind, place: ObjectPlace, item: Object) -> None:
        """Make the dependents of an owner forget it, then let it go."""
        uid = item["metadata"]["uid"]
        for each in list(self._dependents.get(uid, {})):
            dependent = self._server.find(*each)
            dependent_kind = self._server.catalogue.of_collection(each.collection)
            if dependent is not None and dependent_kind is not None:
                self._change(dependent_kind, each, _without_owners(dependent, [uid]), "its owner leaves it behind")
        self._change(kind, place, _without_finalizer(item, ORPHAN), "its dependents are left behind")

    def _owners(self, item: Object) -> OwnerStates | None:
        """Find what has become of an object's owners; None where it names a kind that is not served."""
        owners = OwnerStates([], [], [])
        for reference in item["metadata"]["ownerReferences"]:
            place = self._owner_place(item, reference)
            if place is None:
                return None
            owner = self._server.find(*place)
            if owner is None or owner["metadata"]["uid"] != reference["uid"]:
                owners.gone.append(reference)
            elif _is_going(owner, FOREGROUND):
                owners.waiting.append(reference)
            else:
                owners.present.append(reference)
        return owners

    def _owner_place(self, dependent: Object, reference: Object) -> ObjectPlace | None:
        """Tell where an owner is: in the namespace of the dependent, or in none; None where its kind is not served."""
        kind = self._server.catalogue.of_kind(reference["apiVersion"], reference["kind"])
        if kind is None:
            return None
        namespace = dependent["metadata"].get("namespace", "") if kind.resource.namespaced else ""
        return ObjectPlace(collection_id(kind.resource), Key(namespace, reference["name"]))

    def _change(self, kind: ServedKind, place: ObjectPlace, new: Object, because: str) -> None:
        self._server.modify(kind, place.key, lambda _: new, Write(GARBAGE_COLLECTOR, because), "patch")


def _references(item: Object | None) -> dict[str, Object]:
    """Give the owners that an object names, by their uids."""
    return {each["uid"]: each for each in item["metadata"].get("ownerReferences", ())} if item else {}


def _is_going(item: Object | None, finalizer: str) -> bool:
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


NAMESPACE_CONTROLLER = "namespace-controller"

_IN_ORDER = {
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
"""What a namespace that is going tells when nothing holds it: reason and message of its conditions."""


class NamespaceController:
    """Empties namespaces that are to be deleted."""

    def __init__(self, server: ApiServer, *, delay: float = 0.0) -> None:
        self._server = server
        self._delay = delay
        self._backlog: UniqueQueue[str] = UniqueQueue()
        for key, item in server.objects(NAMESPACES):
            self._note(key.name, item)
        server.observers.append(self._on_write)

    async def run(self, clock: Clock) -> None:
        """Empty namespaces for ever: what comes up is done `delay` seconds later."""
        while True:
            await self._backlog.filled()
            await clock.sleep(self._delay)
            self.empty()

    def empty(self) -> None:
        """Do what is to be done now."""
        while (name := self._backlog.take()) is not None:
            namespace = self._server.find(NAMESPACES, Key("", name))
            kind = self._server.catalogue.of_collection(NAMESPACES)
            if namespace is not None and kind is not None and "deletionTimestamp" in namespace["metadata"]:
                self._empty(kind, name, Write(NAMESPACE_CONTROLLER, f"namespace {name} is being deleted"))

    def _on_write(self, written: CommittedWrite) -> None:
        if collection_id(written.resource) == NAMESPACES:
            self._note(written.key.name, written.new)
        elif written.new is None and written.key.namespace:
            self._note(written.key.namespace, self._server.find(NAMESPACES, Key("", written.key.namespace)))

    def _note(self, name: str, namespace: Object | None) -> None:
        if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
            self._backlog.add(name)

    def _empty(self, kind: ServedKind, name: str, write: Write) -> None:
        key = Key("", name)
        for content in self._server.catalogue.stored():
            if content.resource.namespaced and "deletecollection" in content.verbs:
                selection = Selection(content.resource, namespace=name)
                self._server.deletecollection(selection, write, propagation=Propagation.BACKGROUND)
        counts, finalizers = self._remaining(name)

        def told(old: Object) -> Object:
            conditions = _conditions(old, counts, finalizers, timestamp(self._server.now()))
            return {**old, "status": {**(old.get("status") or {}), "phase": "Terminating", "conditions": conditions}}

        self._server.modify(kind, key, told, write, "patch/status", part=WritePart.STATUS)
        if not counts:

            def finalized(old: Object) -> Object:
                spec: Object = old.get("spec") or {}
                kept = [each for each in spec.get("finalizers") or () if each != NAMESPACE_FINALIZER]
                return {**old, "spec": {**spec, "finalizers": kept}}

            self._server.modify(kind, key, finalized, write, "update/finalize", part=WritePart.WHOLE)

    def _remaining(self, name: str) -> tuple[dict[str, int], Counter[str]]:
        """Count what is left in a namespace, by resource and by finalizer."""
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
    """Tell what holds a namespace; the time of a condition's last change is kept where it says the same."""
    held: dict[str, tuple[str, str]] = {}
    if counts:
        listed = ", ".join(f"{resource} has {count} resource instances" for resource, count in counts.items())
        held["NamespaceContentRemaining"] = "SomeResourcesRemain", f"Some resources are remaining: {listed}"
    if finalizers:
        listed = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        message = f"Some content in the namespace has finalizers remaining: {listed}"
        held["NamespaceFinalizersRemaining"] = "SomeFinalizersRemain", message
    present = {each["type"]: each for each in (namespace.get("status") or {}).get("conditions") or ()}
    conditions = []
    for name, in_order in _IN_ORDER.items():
        reason, message = held.get(name, in_order)
        fresh = {"type": name, "status": "True" if name in held else "False", "reason": reason, "message": message}
        old: Object = present.get(name, {})
        unchanged = old.items() >= fresh.items()
        conditions.append(fresh | {"lastTransitionTime": old["lastTransitionTime"] if unchanged else now})
    return conditions
