"""What is served: the kinds, by every name under which a request may ask for them."""

from __future__ import annotations

from collections.abc import Iterable

from springtide.cluster.resources import Resource
from springtide.simulator.api.answers import no_such_resource
from springtide.simulator.api.kinds import ServedKind
from springtide.simulator.api.storage import CollectionId


class Catalogue:
    """The kinds that are served now; CRDs add to them and take away."""

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        self._kinds: dict[tuple[str, str, str], ServedKind] = {}
        self._named: dict[tuple[str, str], ServedKind] = {}
        self._collections: dict[CollectionId, ServedKind] = {}
        self._selectable: dict[CollectionId, tuple[str, ...]] = {}
        for kind in kinds:
            self._add(kind)

    def serve(self, identity: CollectionId, kinds: Iterable[ServedKind], selectable: tuple[str, ...] = ()) -> None:
        """Serve these versions of one kind, and no others of it; `selectable` are fields that lists select by."""
        self.withdraw(identity)
        self._selectable[identity] = selectable
        for kind in kinds:
            self._add(kind)

    def withdraw(self, identity: CollectionId) -> None:
        """Serve a kind no longer."""
        self._selectable.pop(identity, None)
        self._collections.pop(identity, None)
        for place, kind in list(self._kinds.items()):
            if identity_of(kind.resource) == identity:
                del self._kinds[place]
                del self._named[kind.resource.api_version, kind.resource.kind]

    def find(self, resource: Resource) -> ServedKind:
        """Find what a request is about; `NotFound` where it is not served."""
        kind = self._kinds.get((resource.group, resource.version, resource.plural))
        if kind is None:
            raise no_such_resource()
        return kind

    def of_kind(self, api_version: str, kind: str) -> ServedKind | None:
        """Find what an object or a reference names; None where it is not served."""
        return self._named.get((api_version, kind))

    def of_collection(self, identity: CollectionId) -> ServedKind | None:
        """Find the kind of stored objects, in the version that they are stored in if that is served."""
        return self._collections.get(identity)

    def stored(self) -> tuple[ServedKind, ...]:
        """Give every kind once, by group and plural."""
        return tuple(self._collections[identity] for identity in sorted(self._collections))

    def all(self) -> tuple[ServedKind, ...]:
        """Give everything that is served, by group, version and plural."""
        return tuple(self._kinds[place] for place in sorted(self._kinds))

    def selectable(self, kind: ServedKind) -> tuple[str, ...]:
        """Give the fields that a CRD lets lists select by."""
        return self._selectable.get(identity_of(kind.resource), ())

    def _add(self, kind: ServedKind) -> None:
        self._kinds[_place(kind)] = kind
        self._named[kind.resource.api_version, kind.resource.kind] = kind
        identity = identity_of(kind.resource)
        if identity not in self._collections or kind.stored_version in ("", kind.resource.version):
            self._collections[identity] = kind


def identity_of(resource: Resource) -> CollectionId:
    """Tell where the objects of a resource are stored."""
    return CollectionId(resource.group, resource.plural)


def _place(kind: ServedKind) -> tuple[str, str, str]:
    resource = kind.resource
    return resource.group, resource.version, resource.plural
