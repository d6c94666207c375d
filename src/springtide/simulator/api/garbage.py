"""The garbage collector: objects whose owners are all gone go too.

It looks at one object at a time and decides by what it finds, so that the order of events does not matter. What may
have changed the answer for an object puts it on the backlog: a write to it, its owner's end, or its owner's wish to go
only after its dependents (foreground), or to leave them behind (orphan).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from springtide.cluster.clock import Clock
from springtide.cluster.port import Precondition, Propagation, Write
from springtide.cluster.resources import Key, Object
from springtide.simulator.api.backlog import Backlog
from springtide.simulator.api.catalogue import identity_of
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.metadata import FOREGROUND, ORPHAN
from springtide.simulator.api.server import ApiServer, Written
from springtide.simulator.api.storage import CollectionId
from springtide.simulator.api.values import with_metadata

MANAGER = "garbage-collector"


class Place(NamedTuple):
    """Where an object is stored."""

    collection: CollectionId
    key: Key


class Owners(NamedTuple):
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
        self._backlog: Backlog[Place] = Backlog()
        self._dependents: dict[str, dict[Place, None]] = {}
        for identity, _ in server.storage.collections():
            for key, item in server.objects(identity):
                self._note(Place(identity, key), None, item)
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

    def _on_write(self, written: Written) -> None:
        self._note(Place(identity_of(written.resource), written.key), written.old, written.new)

    def _note(self, place: Place, old: Object | None, new: Object | None) -> None:
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

    def _forget(self, uid: str, place: Place) -> None:
        places = self._dependents.get(uid, {})
        places.pop(place, None)
        if not places:
            self._dependents.pop(uid, None)

    def _add(self, *places: Place | None) -> None:
        for place in places:
            if place is not None:
                self._backlog.add(place)

    def _look_at(self, kind: ServedKind, place: Place, item: Object) -> None:
        metadata = item["metadata"]
        if _is_going(item, ORPHAN):
            self._orphan(kind, place, item)
        elif _is_going(item, FOREGROUND):
            self._release(kind, place, item)
        elif "deletionTimestamp" not in metadata and metadata.get("ownerReferences"):
            self._judge(kind, place, item)

    def _judge(self, kind: ServedKind, place: Place, item: Object) -> None:
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
            Write(MANAGER, because),
            precondition=Precondition(uid=uid),
            propagation=propagation,
        )

    def _release(self, kind: ServedKind, place: Place, item: Object) -> None:
        """Let an owner go when no dependent that blocks it is left."""
        uid = item["metadata"]["uid"]
        blocking = [each for each in self._dependents.get(uid, {}) if _blocks(self._server.find(*each), uid)]
        if not blocking:
            self._change(kind, place, _without_finalizer(item, FOREGROUND), "its dependents are gone")

    def _orphan(self, kind: ServedKind, place: Place, item: Object) -> None:
        """Make the dependents of an owner forget it, then let it go."""
        uid = item["metadata"]["uid"]
        for each in list(self._dependents.get(uid, {})):
            dependent = self._server.find(*each)
            dependent_kind = self._server.catalogue.of_collection(each.collection)
            if dependent is not None and dependent_kind is not None:
                self._change(dependent_kind, each, _without_owners(dependent, [uid]), "its owner leaves it behind")
        self._change(kind, place, _without_finalizer(item, ORPHAN), "its dependents are left behind")

    def _owners(self, item: Object) -> Owners | None:
        """Find what has become of an object's owners; None where it names a kind that is not served."""
        owners = Owners([], [], [])
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

    def _owner_place(self, dependent: Object, reference: Object) -> Place | None:
        """Tell where an owner is: in the namespace of the dependent, or in none; None where its kind is not served."""
        kind = self._server.catalogue.of_kind(reference["apiVersion"], reference["kind"])
        if kind is None:
            return None
        namespace = dependent["metadata"].get("namespace", "") if kind.resource.namespaced else ""
        return Place(identity_of(kind.resource), Key(namespace, reference["name"]))

    def _change(self, kind: ServedKind, place: Place, new: Object, because: str) -> None:
        self._server.modify(kind, place.key, lambda _: new, Write(MANAGER, because), "patch")


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
